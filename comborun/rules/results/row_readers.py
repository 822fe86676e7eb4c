"""Reads files of rows: one JSON object on a line, or a header and cells. Pure."""

from __future__ import annotations

import re

from comborun.rules.facts import Fact
from comborun.rules.results.episodes import (
    COMPLETION,
    COPY,
    EPISODE_ID,
    INDICES,
    JOB,
    LINE_LIMIT,
    ORDER,
    cell,
    decode_line,
    job_success,
    rebuild,
)
from comborun.rules.results.fields import MISSING, NO_RECORD, TORN, Identity, RefusedError, integer
from comborun.rules.results.proposals import is_verdict
from comborun.rules.results.readers import NOTHING, SAMPLES, Lines, indexed, stating
from comborun.rules.results.stated_counts import aggregate, are_counts, counting_on, stated, sums_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    from comborun.rules.results.readers import Decoded, Entry

HELD_MOST = 10_000
"""rows that may be counts"""
_STATED = re.compile(r"([A-Za-z_][\w.-]{0,63})\s*[:=]\s*(\S[^\n]{0,255})")
_STATED_MORE = re.compile(r",\s*[A-Za-z_][\w.-]*\s*[:=]")
_UNNAMED = ("", "Unnamed: 0")
"""headers of a column that only numbers the rows"""


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
        try:
            if last := counting_on(rows, self.identity):
                yield from stating(last)
            elif are_counts(rows, self.identity):
                yield from stating(aggregate(rows, self.path.rpartition("/")[2]))
            elif rows and all(map(self._lists, rows)):
                from comborun.rules.results.candidates import spread

                yield from ((0, row, None, at) for row, at in spread(rows, self.identity))
            else:
                yield from self._released(self._held or [])
        except RefusedError as refused:
            yield 0, refused, None, None
        self._held = None


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


def numbers_itself(identity: Identity) -> bool:
    """Whether the grid says how episodes are numbered, so that a format does not."""
    return bool(identity.episode.word or identity.episode.names)


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
        self._taken, self.continues = 0, True

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
    """A header and cells between commas, semicolons or TABs. Comments before the header such as `# policy: pi0` are
    fields of all rows; of a session only those that are not its names.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._header: list[str] = []
        self._stated: dict[str, str] = {}
        """what comments state of all rows"""
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
            yield self.refused(TORN, "open_quote", at=self._line - len(self._open) + 1)
        yield from map(self._with_stated, super().finish())

    def _cells(self, line: str) -> Iterator[Entry]:
        if not line.strip():
            return
        if not self._header:
            if line.startswith("#"):
                self._stated.update(_stated(line.strip("# \t")))
            else:
                self._between = max("\t;,|", key=line.count)
                if self._between not in line:
                    self._between = " "
                names = [name.strip() for name in _split(line, self._between)]
                if _are_values(names):
                    yield self.refused(NO_RECORD, "no_header", cells=len(names))
                else:
                    self._header = names
                    self._stated = {name: said for name, said in self._stated.items() if self._may_state(name)}
            return
        cells = _split(line, self._between)
        names = [name.strip() for name in cells]
        if _begins_again(names, self._header):
            self._header = names
        elif len(cells) != len(self._header):
            if self._held is None and sums_up(dict(zip(self._header, cells)), self.identity, self._like):
                yield self._line, NOTHING, Fact("row_sums_up"), None
                return
            yield self.refused(NO_RECORD, "other_number_of_cells", cells=len(cells), header=len(self._header))
        else:
            comma = self._between != ","
            named = ((name, text) for name, text in zip(self._header, cells) if name not in _UNNAMED)
            yield from map(self._with_stated, self.held({name: cell(text, comma, True) for name, text in named}))

    def _may_state(self, name: str) -> bool:
        identity = self.identity
        known = {identity.success.name, identity.episode.name, *self._header}
        known.update({identity.policy_field.name} if identity.policy is not None else ())
        known.update({identity.environment_field.name} if not identity.asks_environment else ())
        return name not in known

    def _with_stated(self, entry: Entry) -> Entry:
        line, value, remark, order = entry
        return (line, {**value, **self._stated}, remark, order) if self._stated and isinstance(value, dict) else entry


def _stated(comment: str) -> dict[str, str]:
    """The names and values of `policy: pi0` or `policy=pi0, env=pick`; none if something else is in it."""
    parts = comment.split(",") if _STATED_MORE.search(comment) else [comment]
    found = [_STATED.fullmatch(part.strip()) for part in parts]
    return {match[1]: match[2].strip("\"'") for match in found if match} if all(found) else {}


def _are_values(names: list[str]) -> bool:
    """Whether the first line of a table has values, and no names. pandas numbers columns without names: 0, 1, 2."""
    told = [cell(name) for name in names]
    numbers = [str(at) for at in range(len(names))]
    return all(isinstance(one, (bool, int, float)) for one in told) and names != numbers


def _begins_again(names: list[str], header: list[str]) -> bool:
    """Whether a line is a header: the program started again, maybe with other columns. One name alone is a value."""
    here, before = {*filter(None, names)}, {*filter(None, header)}
    return len(here) > 1 < len(before) and (before <= here or here <= before)


def _split(line: str, between: str) -> list[str]:
    if '"' not in line:
        return line.split(None if between == " " else between)
    import csv

    csv.field_size_limit(LINE_LIMIT)
    try:
        return next(csv.reader([line], delimiter=between), [])
    except csv.Error:
        return [line]
