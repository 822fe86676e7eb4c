"""The rows of one result file, counted as its bytes come. Pure."""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.rules.results.caught import ASIDE, WITH_ERRORS, broken_off
from comborun.rules.results.codings import Coding
from comborun.rules.results.counts import UNCLEAR_COMMA, keys_of
from comborun.rules.results.fields import ENVIRONMENT, NAMES_ANOTHER, TEXT_MOST, RefusedError
from comborun.rules.results.one_row import names_sibling, of_sibling, order_of, read_row
from comborun.rules.results.rates import Count
from comborun.rules.results.readers import NOTHING, SAMPLES
from comborun.rules.results.repeats import Kept, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from comborun.rules.results.readers import Entry, Reader

VAGUE = ("unknown_format", "unknown_document", "unknown_list", "unknown_text", "rates_of_no_number")
"""why a file that may be none of results is refused: another one is the better example"""
NAMES_MOST = 5
"""names of policies or environments that a reason quotes"""


class Rows:
    """The counts of one result file, made by the reader of its format."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.rows = 0
        """records, including repeated ones, and refused rows"""
        self.taken = 0
        """records, repeated ones among them"""
        self.episodes: dict[int, bool | None] = {}
        """index -> the first verdict, or None without any"""
        self.numbered: dict[int, bool | None] = {}
        """the same for rows that are numbered as they ended, from 0"""
        self.counted: list[Count] = []
        """how many episodes succeeded, if the program reports only this"""
        self.refused: dict[str, Refusals] = {}
        self.complaints: dict[Fact, int] = {}
        """why records have no verdict -> how many"""
        self.bare = 0
        """records whose verdict is null or empty, which is no mistake"""
        self.remarks: list[Fact] = []
        """about verdicts that come after errors"""
        self.broken: dict[str, tuple[int, str]] = {}
        """fields of failures that tell of an error -> in how many rows, and the first text"""
        self.keys: dict[tuple[object, ...], int] = {}
        """if the grid names several fields: their values -> the number of the episode"""
        self.kept = Kept()
        self.coding = Coding(reader.identity.success.name)
        """how their verdicts are written"""
        self.samples: list[dict[str, object]] = reader.passed
        """the first rows"""

    @property
    def jobs(self) -> bool:
        """Whether these are job-rows, whose numbers continue in the file of a rebuilt scene."""
        return self.reader.continues

    @property
    def ordered(self) -> bool:
        """Whether rows are numbered as they were written, continuing from the file before."""
        return bool(self.reader.identity.episode.word)

    def feed(self, data: bytes) -> None:
        """More bytes of the file; each is looked at once."""
        for entry in self.reader.feed(data):
            self._take(entry)

    def last(self) -> Rows:
        """The rows including the text after the last newline. It counts if it is complete."""
        if not self.reader.pending:
            return self
        if self.reader.over:
            whole = self
        else:
            import copy

            whole = copy.deepcopy(self)  # the line may still grow
        whole.finish()
        return whole

    def finish(self) -> None:
        """Take the text after the last newline as complete; nothing more is fed."""
        for entry in self.reader.finish():
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        line, value, remark, order = entry
        if value is NOTHING:
            self.remarks += [remark] if remark and remark.code in (*ASIDE, UNCLEAR_COMMA) else []
            return
        self.rows += 1
        if isinstance(value, RefusedError):
            self._refuse(value, line)
        elif isinstance(value, Count):
            self._count(value, line)
        else:
            self._row(line, value, order)

    def _row(self, line: int, value: object, order: int | None) -> None:
        identity = self.reader.identity
        if of_sibling(value, identity):
            self.rows -= 1
            return
        number = self.taken if self.ordered else order_of(value, order, identity)
        if identity.episode.names and isinstance(value, dict):
            try:
                number = self.keys.setdefault(key_of(value, identity.episode, self.reader.path), len(self.keys))
            except RefusedError as refused:
                self._refuse(refused, line)
                return
        if len(self.samples) < SAMPLES and isinstance(value, dict):
            numbered = number is not None and not self.ordered
            self.samples.append({**value, identity.episode.name: number} if numbered else value)
        try:
            record = read_row(value, identity, number)
        except RefusedError as refused:
            self._refuse(refused, line)
            return
        if record.complaint:
            self.complaints[record.complaint] = self.complaints.get(record.complaint, 0) + 1
        elif record.verdict is None:
            self.bare += 1
        self.coding.add(record.value, record.verdict)
        self.taken += 1
        self._broken_off(value if record.verdict is False else None)
        known = self.episodes if number is None else self.numbered
        if isinstance(value, dict) and not self.ordered:
            self.kept.add(record.index, value)
        if known.get(record.index) is None:
            known[record.index] = record.verdict

    def _broken_off(self, failed: object) -> None:
        row = failed if isinstance(failed, dict) else {}
        field = next((name for name, one in row.items() if broken_off(name, one, failed=True)), None)
        if field is not None:
            episodes, text = self.broken.get(field, (0, str(row[field])[:TEXT_MOST]))
            self.broken[field] = episodes + 1, text

    def told(self) -> list[Fact]:
        """What is remarked about rows that count."""
        broken = ((field[:TEXT_MOST], *one) for field, one in self.broken.items())
        return [
            *self.remarks,
            *(Fact(WITH_ERRORS, episodes=count, field=name, text=text) for name, count, text in broken),
        ]

    def _count(self, counted: Count, line: int) -> None:
        identity = self.reader.identity
        if names_sibling(counted.environment, identity):
            self.rows -= 1
        elif identity.rules.named and not counted.environment:  # a total of several environments
            self._refuse(RefusedError(ENVIRONMENT, "names_none", kind=ENVIRONMENT), line)
        else:
            self.counted.append(counted)

    def _refuse(self, refused: RefusedError, line: int) -> None:
        self.refused.setdefault(refused.reason, Refusals()).add(refused, line)


class Refusals:
    """The number of rows that don't count for one reason, with the first as an example."""

    __slots__ = ("count", "file", "line", "named", "why")

    def __init__(self) -> None:
        self.count = 0
        self.why: Fact | None = None
        """of the example"""
        self.file, self.line = "", 0
        self.named: list[str] = []
        """the policies or environments that the rows name, the first few"""

    def add(self, refused: RefusedError, line: int, file: str = "") -> None:
        self._take(1, refused.fact, line, file)
        named = refused.fact.text("named")
        if refused.fact.code == NAMES_ANOTHER and named not in self.named and len(self.named) < NAMES_MOST:
            self.named.append(named)

    def join(self, other: Refusals, file: str) -> None:
        """Add the refusals of another file."""
        self._take(other.count, other.why, other.line, file)
        self.named = list(dict.fromkeys([*self.named, *other.named]))[:NAMES_MOST]

    def _take(self, count: int, why: Fact | None, line: int, file: str) -> None:
        if not self.count or (self.why and self.why.code in VAGUE and why and why.code not in VAGUE):
            self.why, self.line, self.file = why, line, file
        self.count += count

    def fields(self, of: int) -> dict[str, Any]:
        """The fields of a fact about them; `of`: the number of all rows."""
        why = self.why.as_data() if self.why else {}
        keys = why.pop("keys") if self.why and keys_of(self.why) else None
        example = {"file": self.file, "line": self.line, "keys": keys, "why": why}
        return {"rows": self.count, "of": of, **{key: value for key, value in example.items() if value}}
