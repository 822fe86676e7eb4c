"""The rows of result files, counted as their bytes come, and the reasons why rows don't count. Pure."""

from __future__ import annotations

from collections import Counter

from comborun.rules.facts import Fact
from comborun.rules.results import counts as reasons
from comborun.rules.results.caught import ASIDE, WITH_ERRORS, broken_off
from comborun.rules.results.codings import Coding, joined
from comborun.rules.results.counts import Counts, join, marked, within
from comborun.rules.results.episodes import rebuild
from comborun.rules.results.fields import (
    ENVIRONMENT,
    FORMAT,
    IGNORE,
    INDEX,
    NAMES_ANOTHER,
    NO_RECORD,
    OUTSIDE,
    POLICY,
    REPEATED,
    TEXT_MOST,
    TORN,
    UNREADABLE,
    RefusedError,
)
from comborun.rules.results.one_row import names_sibling, of_sibling, order_of, read_row
from comborun.rules.results.proposals import failures_only, propose, proposed
from comborun.rules.results.rates import Count, not_settled, settled
from comborun.rules.results.readers import NOTHING, SAMPLES
from comborun.rules.results.repeats import Kept, key_of, why_repeated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping

    from comborun.rules.results.counts import Span, Verdicts
    from comborun.rules.results.fields import Identity
    from comborun.rules.results.readers import Entry, Reader

VAGUE = ("unknown_format", "unknown_document", "unknown_list", "unknown_text", "rates_of_no_number")
"""why a file that may be none of results is refused: another one is the better example"""
NAMES_MOST = 5
"""names of policies or environments that a reason quotes"""
REASONS_MOST = 3
"""reasons that an attempt keeps"""


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
        self.complaints: Counter[Fact] = Counter()
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
            self.remarks += [remark] if remark and remark.code in (*ASIDE, reasons.UNCLEAR_COMMA) else []
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
            self.complaints[record.complaint] += 1
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
        keys = why.pop("keys") if self.why and reasons.keys_of(self.why) else None
        example = {"file": self.file, "line": self.line, "keys": keys, "why": why}
        return {"rows": self.count, "of": of, **{key: value for key, value in example.items() if value}}


class Files:
    def __init__(self) -> None:
        self.rows: list[tuple[str, Rows]] = []
        """path below the output folder and rows, in the order in which the report reads them"""
        self.refused: list[tuple[str, RefusedError]] = []
        """files without rows, and why"""
        self.foreign: list[tuple[str, Fact]] = []
        """files that are not counted, and why"""

    @property
    def samples(self) -> list[Any]:
        """Some rows of the first file that has any; of all files if each has one."""
        first = next((rows.samples for _, rows in self.rows if rows.samples), [])
        ones = [rows.samples[0] for _, rows in self.rows if len(rows.samples) == 1]
        return ones[:SAMPLES] if len(first) == 1 else first

    def proposed(self, identity: Identity, span: Span, seen: Iterable[int]) -> dict[str, Any]:
        """What to write in `results`. To ignore several names would lose rows if they are more than planned."""
        keys = propose(self.samples, identity, span, seen)
        ignored = [kind for kind in (POLICY, ENVIRONMENT) if keys.get(kind) == IGNORE]
        refused = [rows.refused[kind] for _, rows in self.rows for kind in ignored if kind in rows.refused]
        several = len({name for one in refused for name in one.named}) > 1
        return {} if several and sum(rows.rows for _, rows in self.rows) > span[1] > 0 else keys


def tally(files: Files, identity: Identity, span: Span, over: bool = False) -> Counts:
    """The counts of one attempt. `over`: the session has ended, so a line that is cut off stays so."""
    found, counts = _All(files, span[0]), Counts()
    planned, outside = within(found.verdicts, span)
    counts.ordered = any(rows.reader.copies > 1 for _, rows in files.rows)
    totals = [one for _, rows in files.rows for one in rows.counted]
    if totals and not any(verdict is not None for verdict in found.verdicts.values()):
        if counted := settled(totals, span[1]):
            first = span[0] if span[1] else 0  # which ones succeeded is unknown, so any order is as good
            any_order: Verdicts = {first + at: at < counted.successes for at in range(counted.episodes)}
            planned, outside, counts.ordered = any_order, [], True
        else:
            path = next(path for path, rows in files.rows if rows.counted)
            found.refusals.setdefault(FORMAT, Refusals()).add(not_settled(totals, span[1]), 0, path)
    counts.take(planned)
    counts.rows = found.rows
    counts.marks = marked(planned, span)
    counts.numeric = found.coding.field if found.coding.numeric else ""
    counts.countable = bool(files.rows) or not files.foreign
    counts.refused = {reason: one.count for reason, one in found.refusals.items()}
    for reason, number in ((OUTSIDE, len(outside)), (REPEATED, found.taken - len(found.verdicts))):
        if number:
            counts.refused[reason] = number
    differ: dict[str, Any] = {}
    if counts.refused.get(REPEATED, 0):
        kept = [(path, rows.kept) for path, rows in files.rows]
        words = next((rows.reader.identity for _, rows in files.rows if rows.kept), identity)
        differ = why_repeated(kept, words, span)
    if differ:  # which rows are an episode's is not decided
        counts.take({})
        counts.marks = ""
    said = [*_reasons(found, identity), *_of_episodes(counts, outside, span, differ)]
    torn = found.refusals.get(TORN)
    if over and torn:
        said.append(Fact(reasons.REFUSED, **torn.fields(counts.rows)))
    counts.facts = tuple(said[:REASONS_MOST])
    if not counts.proposes:
        _propose(counts, files, found, identity, span)
    counts.facts += tuple(remark for _, rows in files.rows for remark in rows.told())[:REASONS_MOST]
    if not counts.countable and not said:
        path, why = files.foreign[0]
        counts.facts = (Fact(reasons.NOT_COUNTED, file=path, why=why.as_data()),)
    return counts


def _propose(counts: Counts, files: Files, found: _All, identity: Identity, span: Span) -> None:
    """Add the line that would make more rows count, or the field in which it must name what means a success."""
    if counts.misread and (keys := files.proposed(identity, span, found.verdicts)):
        counts.facts += (Fact(reasons.PROPOSAL, **proposed(keys, files.samples)),)
    elif not counts.verdicts and (words := failures_only(files.samples))[0]:
        told = Fact(reasons.UNDECIDED, rows=found.taken, of=found.rows, values=words[1], field=words[0])
        counts.facts = (*(fact for fact in counts.facts if fact.code != reasons.WITHOUT_VERDICT), told)


class _All:
    """The rows of all files together. `base`: the first episode of the attempt."""

    def __init__(self, files: Files, base: int) -> None:
        self.verdicts: Verdicts = {}
        self.refusals: dict[str, Refusals] = {}
        """by the reason"""
        self.complaints: Counter[Fact] = Counter()
        self.coding = joined(rows.coding for _, rows in files.rows)
        self.rows = self.taken = self.bare = 0
        self._base = base
        self._keys: dict[tuple[object, ...], int] = {}
        self._rebuilt: dict[str, int] = {}
        """how many episodes were numbered that the next file continues to count, by folder"""
        for path, rows in files.rows:
            self._add(path, rows)
        if self.coding.undecided:
            self.verdicts = dict.fromkeys(self.verdicts)
        for path, refused in files.refused:
            self.refusals.setdefault(refused.reason, Refusals()).add(refused, 0, path)

    def _add(self, path: str, rows: Rows) -> None:
        folder, _, name = path.rpartition("/")
        group = "" if rows.ordered else folder
        before = self._rebuilt.get(group, 0)
        base = self._base + (before if rows.ordered or rebuild(name) else 0)
        self._rebuilt[group] = before + (rows.taken if rows.ordered or rows.jobs else 0)
        join(self.verdicts, rows.episodes.items())
        # the same keys may come in several files
        numbers = {at: self._keys.setdefault(key, len(self._keys)) for key, at in rows.keys.items()}
        join(self.verdicts, ((base + numbers.get(index, index), verdict) for index, verdict in rows.numbered.items()))
        for reason, one in rows.refused.items():
            self.refusals.setdefault(reason, Refusals()).join(one, path)
        self.complaints.update(rows.complaints)
        self.rows += rows.rows
        self.taken += rows.taken
        self.bare += rows.bare


def _reasons(found: _All, identity: Identity) -> Iterator[Fact]:
    """Why rows are no records of this session, or have no verdict."""
    for reason in (POLICY, ENVIRONMENT, INDEX, NO_RECORD, FORMAT, UNREADABLE):
        if one := found.refusals.get(reason):
            fields = one.fields(found.rows)
            if reason in (POLICY, ENVIRONMENT):
                own = getattr(identity, reason)
                yield Fact(reasons.OF_ANOTHER, kind=reason, named=one.named, own=own, **fields)
            else:
                yield Fact(reasons.WITHOUT_INDEX if reason == INDEX else reasons.REFUSED, **fields)
    if found.coding.undecided:
        fields = {"rows": found.taken, "of": found.rows, "values": found.coding.values, **undecided(found.coding)}
        yield Fact(reasons.UNDECIDED, **fields)
    elif found.complaints:  # an episode that is meant to be errored has null, and no complaint
        complaint, rows = max(found.complaints.items(), key=lambda pair: pair[1])
        every = sum(found.complaints.values()) + found.bare
        part = {"part": rows} if rows < every else {}
        yield Fact(reasons.WITHOUT_VERDICT, rows=every, of=found.rows, why=complaint.as_data(), **part)


def undecided(coding: Coding) -> dict[str, Any]:
    """The field whose values are no verdicts, and the line that says which of them mean a success."""
    proposal, of_numbers = coding.proposal(), {"numbers": True} if coding.numbers else {}
    keys = {"keys": [{"key": "success", "value": proposal}]} if proposal else {}
    return {"field": coding.field, **of_numbers, **keys}


def _of_episodes(counts: Counts, outside: list[int], span: Span, why: Mapping[str, Any]) -> Iterator[Fact]:
    """Why records don't count. `why`: by what rows of one index differ."""
    if outside and not why:
        yield Fact(reasons.NOT_PLANNED, episodes=len(outside), some=outside[:3], first=span[0], count=span[1])
    if repeated := counts.refused.get(REPEATED, 0):
        yield Fact(reasons.REPEAT, rows=repeated, of=counts.rows, **why)


def steps(files: Files) -> Counts:
    """The counts of a session that is counted in steps: each row is one."""
    counts = Counts()
    counts.rows = sum(rows.rows for _, rows in files.rows)
    refused = [(reason, one.count) for _, rows in files.rows for reason, one in rows.refused.items()]
    counts.records = counts.rows - sum(count for reason, count in refused if reason in {NO_RECORD, TORN})
    counts.countable = bool(files.rows) or not files.foreign
    return counts
