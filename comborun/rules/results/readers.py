"""From the bytes of a file to its rows: one small reader for each format, fed as the file grows. Pure.

A reader gives entries: the line (0: the whole file), its content, a remark (a fact), and the episode's number if the
format has one. The content is a decoded row, a Count, a RefusedError, or NOTHING if only the remark matters. Numbers
count from the first episode of the attempt.
"""

from __future__ import annotations

import re

from comborun.rules.counting import escape
from comborun.rules.facts import Fact
from comborun.rules.patterns import LONGEST_RECORD
from comborun.rules.results.caught import OVERWRITTEN, Caught
from comborun.rules.results.codings import verdict_word
from comborun.rules.results.counts import UNCLEAR_COMMA
from comborun.rules.results.episodes import (
    COMPLETION,
    COPY,
    EPISODE_ID,
    INDICES,
    JOB,
    LINE_LIMIT,
    ORDER,
    decode,
    job_success,
    rebuild,
)
from comborun.rules.results.fields import (
    MISSING,
    NO_RECORD,
    TORN,
    UNREADABLE,
    Identity,
    RefusedError,
    integer,
    numbers_itself,
)
from comborun.rules.results.proposals import is_verdict
from comborun.rules.results.rates import Count, total
from comborun.rules.results.stated_counts import aggregate, are_counts, stated, sums_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

    Decoded = Callable[[bytes], Tuple[List[Any], str]]
    Entry = Tuple[int, Any, Optional[Fact], Optional[int]]

WHOLE_MOST = 64 << 20
"""bytes of such a file"""
SAMPLES = 20
"""rows of a file that are kept for proposals"""
HELD_MOST = 10_000
"""rows that may be counts"""
NOTHING = object()
"""in an entry with only a remark"""
EPISODES_PER_COPY = 20
"""with so many episodes of each copy, the bias of the first K is too small to be seen"""
_CELLS = {"true": True, "false": False, "": None, "none": None, "null": None}
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,300},\d{1,300}")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
"""a number with commas, which may be thousands: a log does not say which"""
_UNNAMED = ("", "Unnamed: 0")
"""headers of a column that only numbers the rows"""
_NUMBER = re.compile(r"[+-]?(\d+|\d*\.\d+|\d+\.\d*)([eE][+-]?\d{1,4})?")
_TELLS = re.compile(r"ep|trial|rollout|task|scene|env|id|rank|inst|seed|suite|index|^i$|^n$|number", re.IGNORECASE)
"""names of groups that tell one episode from another"""
_SEARCHED_MOST = 1 << 17
"""characters of a line that are searched for records, LONGEST_RECORD at a time"""
VERDICT = "verdict"
"""the group of a pattern that holds the verdict as a word"""
_COUNTS = ("successes", "episodes")
"""the groups of a pattern that finds counts"""


class Reader:
    """Reads one file. `identity` is that of its session, in the words of the format."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        self.identity = identity
        self.path = path
        """below the output folder; in some formats it holds an episode's number"""
        self.copies = 1
        """copies of the environment that run side by side. With several, episodes are numbered as they ended"""
        self.unpaired = ""
        """why neither index nor seed identifies the start of an episode; empty if one does"""
        self.over = False
        """whether the file is complete: its program has ended"""
        self.passed: list[dict[str, Any]] = []
        """the first rows that were passed over and look like episodes"""

    def feed(self, data: bytes) -> Iterator[Entry]:
        """More bytes of the file; each is looked at once."""
        raise NotImplementedError

    @property
    def pending(self) -> bool:
        return True

    def finish(self) -> Iterator[Entry]:
        """The entries at the end of the file."""
        raise NotImplementedError

    def ended(self, copies: int, episodes: int) -> Iterator[Entry]:
        """Warns of the bias of the first episodes that ended, in several copies of an environment.

        A success ends early and a failure runs to its limit. So too many of the first K episodes that end are
        successes, the more so the more copies there are in relation to K.
        """
        self.copies = max(copies, self.copies)
        if copies > 1:
            self.unpaired = "its episodes are numbered in the order in which they ended"
        if copies > 1 and copies * EPISODES_PER_COPY > episodes:
            yield 0, NOTHING, Fact("first_to_end", episodes=episodes, copies=copies), None


def indexed(row: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """The row with an index from elsewhere. Its own field of that name is kept under another name."""
    name = identity.episode.name
    return {f"record.{key}" if key == name else key: row[key] for key in row} if name in row else row


class Lines(Reader):
    """Splits bytes into lines; each format reads them in its own way."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._rest = b""
        self._line = 0
        self._skipping = False
        self.taken: Callable[[int, list[bytes]], bool] | None = None
        """takes whole lines together, of which the first has this number; False if each must be read by itself"""

    def feed(self, data: bytes) -> Iterator[Entry]:
        lines = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        self._rest = lines.pop()
        if lines and self.taken and not self._skipping and self.taken(self._line + 1, lines):
            self._line += len(lines)
            lines = []
        for line in lines:
            self._line += 1
            if self._skipping:
                self._skipping = False
            elif line:
                yield from self.take(line, whole=True)
        if len(self._rest) >= LINE_LIMIT or self._skipping:
            if not self._skipping:
                yield from self.too_long(self._rest)
            self._skipping, self._rest = True, b""

    @property
    def pending(self) -> bool:
        return bool(self._rest.strip())

    def finish(self) -> Iterator[Entry]:
        """The text behind the last newline."""
        if self._rest.strip():
            self._line += 1
            yield from self.take(self._rest, whole=False)
        self._rest = b""

    def take(self, line: bytes, *, whole: bool) -> Iterable[Entry]:
        """The rows of one line. A line that is not whole lacks its newline."""
        raise NotImplementedError

    def too_long(self, beginning: bytes) -> Iterator[Entry]:
        """The entry of a line beyond the limit, which is skipped."""
        del beginning
        yield self._line + 1, RefusedError(NO_RECORD, "line_too_long", most_mib=LINE_LIMIT >> 20), None, None

    def refused(self, reason: str, code: str, **fields: Any) -> Entry:
        return self._line, RefusedError(reason, code, **fields), None, None

    def row(self, value: Any, remark: Fact | None = None, order: int | None = None) -> Entry:
        return self._line, value, remark, order


class RowLines(Lines):
    """Rows on lines. Those that only say how many episodes of a task succeeded, or list their verdicts, count together
    if these are all. A row behind others that sums them up is none.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._held: list[tuple[int, Any]] | None = []
        """rows that may be such counts or lists, with their lines; None once there are others"""
        self._like: frozenset[str] = frozenset()
        """the fields of the first other one"""

    def held(self, value: Any) -> Iterable[Entry]:
        """The entry of a row, which may be held back until the file ends."""
        held = self._held
        if held is None:
            if isinstance(value, dict) and sums_up(value, self.identity, self._like):
                return ((self._line, NOTHING, Fact("row_sums_up"), None),)
            return ((self._line, value, None, None),)
        if len(held) < HELD_MOST and isinstance(value, dict) and (stated(value) or self._lists(value)):
            held.append((self._line, value))
            return ((self._line, NOTHING, None, None),)
        self._held, self._like = None, frozenset(value if isinstance(value, dict) else ())
        return (*self._released(held), (self._line, value, None, None))

    def _lists(self, value: dict[str, Any]) -> bool:
        if not any(isinstance(one, (list, dict)) for one in value.values()):
            return False
        from comborun.rules.results.candidates import lists_verdicts

        return lists_verdicts(value, self.identity)

    def _released(self, held: list[tuple[int, Any]]) -> Iterator[Entry]:
        return ((line, value, None, None) for line, value in held)

    @property
    def pending(self) -> bool:
        return super().pending or bool(self._held)

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        rows = [value for _, value in self._held or ()]
        if are_counts(rows, self.identity):
            try:
                counted = aggregate(rows, self.path.rpartition("/")[2])
            except RefusedError as refused:
                yield 0, refused, None, None
            else:
                yield 0, counted, counted.complaint if counted else None, None
        elif rows and all(map(self._lists, rows)):
            from comborun.rules.results.candidates import spread

            try:
                yield from ((0, row, None, at) for row, at in spread(rows, self.identity))
            except RefusedError as refused:
                yield 0, refused, None, None
        else:
            yield from self._released(self._held or [])
        self._held = None


def decode_line(line: bytes) -> tuple[list[Any], str]:
    """The JSON values of a line, and the code of the fault after the last."""
    return decode(line.decode("utf-8", "replace"))


class JsonLines(RowLines):
    """One object on a line. `decoded` may be a faster `decode_line` with the same results."""

    def __init__(self, identity: Identity, path: str = "", decoded: Decoded = decode_line) -> None:
        super().__init__(identity, path)
        self._decoded = decoded

    def take(self, line: bytes, *, whole: bool) -> Iterable[Entry]:
        values, fault = self._decoded(line)
        if whole and not fault and len(values) == 1:
            return self.held(values[0]) if type(self) is JsonLines else (self.place(values[0], None),)
        return self._unusual(values, fault, whole=whole)

    def _unusual(self, values: list[Any], fault: str, *, whole: bool) -> Iterator[Entry]:
        """The entries of a line that is not one whole record."""
        remark = Fact("several_on_a_line") if len(values) > 1 else None
        if values and not whole and not fault:
            remark = Fact("no_last_newline")
        for value in values:
            yield self.place(value, remark)
            remark = None
        if fault:
            yield self.refused(NO_RECORD, fault) if whole else self.refused(TORN, "last_line_cut_off")

    def place(self, value: Any, remark: Fact | None) -> Entry:
        """The entry of a decoded value."""
        return self._line, value, remark, None


class CompletionLines(JsonLines):
    """Runs of a legged robot: `{"episode_id": "stairs_rough_ep0006", "completion": false, "progress": 12.3, ...}`.

    A seed that was given but not used is kept, but does not identify the start.
    """

    def __init__(self, identity: Identity, path: str = "", decoded: Decoded = decode_line) -> None:
        episode = identity.episode if numbers_itself(identity) else EPISODE_ID
        super().__init__(identity.by(success=COMPLETION, episode=episode), path, decoded)
        self.unpaired = "its program takes a seed and uses none: an index pairs nothing"

    def place(self, value: Any, remark: Fact | None) -> Entry:
        if isinstance(value, dict) and "seed" in value:
            value = {"seed_unused" if key == "seed" else key: one for key, one in value.items()}
        return self._line, value, remark, None


class JobLines(JsonLines):
    """Jobs with several copies of an environment: `{"job_name": ..., "env_id": 3, "episode_in_env": 0, "success": null,
    ...}`, one file for each rebuild of the scene.

    Some versions have an index of their own. Others name only the copy and the position in it; then episodes are
    numbered in the order in which they ended.
    """

    def __init__(self, identity: Identity, path: str = "", decoded: Decoded = decode_line) -> None:
        self._numbered = not numbers_itself(identity)
        episode = "episode" if self._numbered else identity.episode
        super().__init__(identity.by(success="success", episode=episode), path, decoded)
        self._built = rebuild(path.rpartition("/")[2])
        self._numbers: dict[str, dict[tuple[int, int], int]] = {}
        """by job"""
        self._copies: set[int] = set()
        self._taken = 0

    def place(self, value: Any, remark: Fact | None) -> Entry:
        if not isinstance(value, dict):
            return self._line, value, remark, None
        self._taken += 1
        row = dict(value, success=job_success(value))
        job, field, copy = value.get(JOB), self.identity.environment_field, integer(value.get(COPY))
        if isinstance(job, str) and self.identity.asks_environment and field.find(row) is MISSING:
            row[field.name] = job
        if copy is not None:
            self._copies.add(copy)
            self.copies = len(self._copies)
            row[COPY] = f"{self._built}:{copy}" if self._built else str(copy)  # as text, so it is not a metric
        if not self._numbered:
            return self._line, row, remark, None
        own = next((index for key in INDICES if (index := integer(value.get(key))) is not None), None)
        if own is not None:
            return self._line, {**indexed(row, self.identity), "episode": own}, remark, None
        order = integer(value.get(ORDER))
        if copy is None or order is None:
            return self._line, row, remark, None
        known = self._numbers.setdefault(str(job) if self.identity.rules.named else "", {})
        number = known.setdefault((copy, order), len(known))  # a repeated row gets the same number
        return self._line, indexed(row, self.identity), remark, number

    @property
    def pending(self) -> bool:
        return super().pending or self.copies > 1

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        yield from self.ended(self.copies, self._taken)


class HistoryLines(JsonLines):
    """A history as Weights & Biases keeps it: rows with `_step` and whatever was logged then.

    Only rows that hold the verdict tell of an episode; others hold a loss, say. They are numbered in their order where
    they have no index.
    """

    def __init__(self, identity: Identity, path: str = "", decoded: Decoded = decode_line) -> None:
        super().__init__(identity, path, decoded)
        self._told = self._passed = 0

    @property
    def pending(self) -> bool:
        return super().pending or not self._told

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        if self._passed and not self._told:
            field = self.identity.success.name
            yield self.refused(NO_RECORD, "history_without_verdicts", passed=self._passed, field=field)

    def place(self, value: Any, remark: Fact | None) -> Entry:
        if not isinstance(value, dict):
            return self._line, value, remark, None
        if not self.identity.success.word and self.identity.success.find(value) is MISSING:
            self._passed += 1
            if len(self.passed) < SAMPLES and any(is_verdict(name) for name in value):
                self.passed.append({**value, self.identity.episode.name: len(self.passed)})
            return self._line, NOTHING, None, None
        self._told += 1
        row = {key: one for key, one in value.items() if key not in {"_runtime", "_timestamp"}}
        if self.identity.episode.find(row) is not MISSING:
            return self._line, row, remark, None
        self.unpaired = "its rows hold no index and are numbered in the order in which they were written"
        return self._line, row, remark, self._told - 1


class Table(RowLines):
    """A header and cells between commas, semicolons or TABs. Comments before the header are skipped."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._header: list[str] = []
        self._between = ","
        self._open: list[bytes] = []
        """lines of a row with an open quote"""
        self._size = 0

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        odd = line.count(b'"') % 2 == 1
        self._size += len(line) + 1
        if not whole:
            yield self.refused(TORN, "last_row_cut_off")
        elif self._size < LINE_LIMIT and odd != bool(self._open):
            self._open.append(line)
        else:
            text = b"\n".join([*self._open, line]).decode("utf-8", "replace")
            self._open, self._size = [], 0
            yield from self._cells(text.rstrip("\r"))

    @property
    def pending(self) -> bool:
        return super().pending or bool(self._open)

    def finish(self) -> Iterator[Entry]:
        if self._open and not self._rest.strip():
            yield self.refused(TORN, "open_quote")
        yield from super().finish()

    def _cells(self, line: str) -> Iterator[Entry]:
        if not line.strip():
            return
        if not self._header:
            if not line.startswith("#"):
                self._between = max("\t;,|", key=line.count)
                if self._between not in line:
                    self._between = " "
                self._header = [name.strip() for name in _split(line, self._between)]
            return
        cells = _split(line, self._between)
        if len(cells) != len(self._header):
            if self._held is None and sums_up(dict(zip(self._header, cells)), self.identity, self._like):
                yield self._line, NOTHING, Fact("row_sums_up"), None
                return
            yield self.refused(NO_RECORD, "other_number_of_cells", cells=len(cells), header=len(self._header))
        else:
            comma = self._between != ","
            named = ((name, text) for name, text in zip(self._header, cells) if name not in _UNNAMED)
            yield from self.held({name: cell(text, comma, True) for name, text in named})


def _split(line: str, between: str) -> list[str]:
    if '"' not in line:
        return line.split(None if between == " " else between)
    import csv

    csv.field_size_limit(LINE_LIMIT)
    try:
        return next(csv.reader([line], delimiter=between), [])
    except csv.Error:
        return [line]


def cell(text: str, comma: bool = False, table: bool = False) -> Any:
    """The value of a cell: a number, true or false, nothing, or text. `comma`: it may stand for the decimal point; in a
    `table` whose cells lie between other signs it always does.
    """
    text = text.strip()
    if comma and _DECIMAL_COMMA.fullmatch(text) and (table or not _THOUSANDS.fullmatch(text)):
        return float(text.replace(",", "."))
    if text.lower() in _CELLS:
        return _CELLS[text.lower()]
    if len(text) < 400 and _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return float("nan") if text.lower() == "nan" else text


class LogLines(Lines):
    """The lines of a log as a person would see them: split at newlines and carriage returns, without terminal codes.
    Text beyond the limit is skipped.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._escape = escape()

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        del whole
        for piece in line.decode("utf-8", "replace").split("\r"):
            text = self._escape.sub("", piece) if "\x1b" in piece else piece
            if text and not text.isspace():
                yield from self.hear(text)

    def hear(self, text: str) -> Iterator[Entry]:
        raise NotImplementedError

    def too_long(self, beginning: bytes) -> Iterator[Entry]:
        self._line += 1
        yield from self.take(beginning, whole=True)
        self._line -= 1


class LogPattern(LogLines):
    """Matches of the grid's pattern in a log. Its groups are the fields; `verdict` holds a word. With the groups
    `successes` and `episodes` they are counts: the last one, if it counts on, else all of them together.

    Every match counts. What a carriage return overwrites counts if it names its episode; of several that name the same
    one the last counts. Text behind the last line end counts when nothing more comes, since it may be cut off.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._pattern = re.compile(identity.pattern)
        named = {*self._pattern.groupindex}
        index = identity.episode.names or (identity.episode.name,)
        self._counting = {*_COUNTS} <= named
        self._counts: list[dict[str, Any]] = []
        self._has_index = "episode" in named or named.issuperset(index)
        self._count = 0
        self._caught = Caught(identity.rules.errors)
        self._unclear: dict[str, str] = {}
        """fields with numbers whose comma may stand for thousands, and the first of each"""
        self._overwritten: list[dict[str, Any]] = []
        """rows that name no episode, on text that a carriage return overwrites"""

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        pieces = [self._escape.sub("", piece) for piece in line.decode("utf-8", "replace").split("\r")]
        if not whole and not self.over:
            pieces.pop()
        pieces = [piece for piece in pieces if piece and not piece.isspace()]
        told: dict[tuple[Any, ...], dict[str, Any]] = {}
        if not self._has_index:
            for piece in pieces[:-1]:
                rows = [self._row(groups) for groups in self._matches(piece)]
                if not rows:
                    self._caught.hear(piece)
                elif self._caught.texts:
                    rows[0][self.identity.verdict_key] = None
                self._overwritten += rows
            pieces = pieces[-1:]
        for piece in pieces:
            for row in self._rows(piece):
                told[self._key(row) if self._has_index else (len(told),)] = row
        if self._counting:
            self._counts += told.values()
            return
        for row in told.values():
            yield self.row(row, None, None if "episode" in self._pattern.groupindex else self._count)
            self._count += 1

    @property
    def pending(self) -> bool:
        told = self._counts or self._unclear or self._overwritten
        return super().pending or bool(told) or any(self._caught.remarks())

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        if self._counts:
            yield from self._counted()
        planned = self.identity.planned
        if self.over and self._overwritten and not self._counting:
            if self._count + len(self._overwritten) == planned:  # so they are episodes, and no bar of one
                yield from (self.row(row, None, at) for at, row in enumerate(self._overwritten, self._count))
            elif self._count < planned or not planned:
                yield 0, NOTHING, Fact(OVERWRITTEN, matches=len(self._overwritten)), None
        for name, value in self._unclear.items():
            yield 0, NOTHING, Fact(UNCLEAR_COMMA, field=name, value=value), None
        for remark in self._caught.remarks():
            yield 0, NOTHING, remark, None

    def _counted(self) -> Iterator[Entry]:
        """The counts of all lines. A program that counts on says it anew after each episode."""
        pairs = [tuple(integer(row.get(name)) or 0 for name in _COUNTS) for row in self._counts]
        counts = [Count(good, of) for good, of in pairs if 0 <= good <= of and of]
        for one in counts:
            one.parts = (f"{one.successes} of {one.episodes}",)
        steps = [
            (after.successes - one.successes, after.episodes - one.episodes) for one, after in zip(counts, counts[1:])
        ]
        counting_on = bool(steps) and all(0 <= good <= of for good, of in steps)
        if counts:
            whole = counts[-1] if counting_on else total(counts)
            whole.sure = False
            yield 0, whole, None, None

    def _rows(self, piece: str) -> list[dict[str, Any]]:
        """The rows of a line; one that comes after a caught error has no verdict."""
        rows = [self._row(groups) for groups in self._matches(piece)]
        if not rows:
            self._caught.hear(piece)
        elif error := self._caught.verdict():
            rows[0].update({self.identity.verdict_key: None, "exception": error})
        return rows

    def _matches(self, text: str) -> Iterator[dict[str, Any]]:
        text = text[:_SEARCHED_MOST]
        position, end = 0, min(len(text), LONGEST_RECORD)
        while position < len(text):
            found = self._pattern.search(text, position, end)
            position = max(found.end(), position + 1) if found else end
            end = min(len(text), position + LONGEST_RECORD)
            if found:
                yield found.groupdict()

    def _key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        """What tells the episode of one match from others on its line."""
        own = (self.identity.success.name, "exception", *(name for name in row if not _TELLS.search(name)))
        return tuple((name, row[name]) for name in row if name not in own)

    def _row(self, groups: dict[str, Any]) -> dict[str, Any]:
        row = {name: cell(text, True) for name, text in groups.items() if text is not None and name != VERDICT}
        for name, value in row.items():
            if isinstance(value, str) and _THOUSANDS.fullmatch(value):
                self._unclear.setdefault(name, value)
        word = str(groups.get(VERDICT) or "").strip().lower()
        if word:
            row[self.identity.success.name] = verdict_word(word, wider=True)
        return row


class Whole(Reader):
    """Reads a file when it is complete."""

    def __init__(
        self, identity: Identity, path: str, read: Callable[[Whole], Iterable[Entry]], place: str = ""
    ) -> None:
        super().__init__(identity, path)
        self.place = place
        """where the file is; empty: not known"""
        self._read = read
        self.general: Callable[[Whole], Iterable[Entry]] | None = None
        """reads what its own format finds nothing in"""
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def feed(self, data: bytes) -> Iterator[Entry]:
        self._size += len(data)
        if self._size <= WHOLE_MOST:
            self._pieces.append(data)
        return iter(())

    def finish(self) -> Iterator[Entry]:
        """All rows, or why there are none."""
        if self._size > WHOLE_MOST:
            yield 0, RefusedError(UNREADABLE, "file_too_large", most_mib=WHOLE_MOST >> 20), None, None
            return
        identity, found = self.identity, self._entries(self._read)
        if self.general and not (_holds(found) or any(_torn(value) for _, value, _, _ in found)):
            own, self.identity = self.identity, identity  # what its format does not find may lie elsewhere in it
            general = self._entries(self.general)
            if _holds(general) or not found:
                found = general
            else:
                self.identity = own
        yield from found

    def _entries(self, read: Callable[[Whole], Iterable[Entry]]) -> list[Entry]:
        try:
            return list(read(self))
        except RefusedError as refused:
            return [(0, refused, None, None)]
        except (RecursionError, MemoryError):
            return [(0, RefusedError(NO_RECORD, "nested_too_deeply"), None, None)]


def _holds(entries: Iterable[Entry]) -> bool:
    return any(isinstance(value, (dict, Count)) for _, value, _, _ in entries)


def _torn(value: object) -> bool:
    return isinstance(value, RefusedError) and value.reason == TORN
