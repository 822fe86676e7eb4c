"""The rows of one result file, counted as its bytes come. Pure."""

from __future__ import annotations

from comborun.rules.episodes import (
    COMPLETION,
    COMPLETION_ROWS,
    EPISODE_ID,
    JOB_ROWS,
    LINE_LIMIT,
    JobRows,
    decode,
    job_success,
)
from comborun.rules.fields import NO_RECORD, TORN, Identity, RefusedError, read_row

SAMPLES = 20
"""rows of a file that are kept to say what would make them count"""


class Rows:
    """The rows of one file of a session's own."""

    def __init__(self, identity: Identity, kind: str) -> None:
        words = {COMPLETION_ROWS: (COMPLETION, EPISODE_ID), JOB_ROWS: ("success", "episode")}.get(kind)
        self.identity = identity.in_words(*words) if words else identity
        self.rows = 0
        """records, repeated ones among them, and what was refused"""
        self.taken = 0
        """records, repeated ones among them"""
        self.episodes: dict[int, bool | None] = {}
        """index -> the first verdict, or None where no row had one"""
        self.numbered: dict[int, bool | None] = {}
        """the same for rows that are numbered as they ended, counted from 0"""
        self.refused: dict[str, Refusals] = {}
        self.complaints: dict[str, int] = {}
        """why records have no verdict"""
        self.samples: list[dict[str, object]] = []
        """the first rows"""
        self._jobs = JobRows() if kind == JOB_ROWS else None
        self._rest = b""
        self._line = 0
        self._skipping = False

    @property
    def jobs(self) -> bool:
        """Whether these are job-rows, whose numbers go on in the file of a rebuilt scene."""
        return self._jobs is not None

    @property
    def ordered(self) -> bool:
        """Whether they are numbered in the order in which they were written, on from the file before."""
        return bool(self.identity.episode.word)

    @property
    def copies(self) -> int:
        """Of the environment, side by side, where the rows name them."""
        return len(self._jobs.copies) if self._jobs else 0

    def feed(self, data: bytes) -> None:
        """More bytes of the file; each is looked at once."""
        lines = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._line += 1
            if self._skipping:
                self._skipping = False
            elif line:
                self._take_line(line)
        if len(self._rest) >= LINE_LIMIT or self._skipping:
            if not self._skipping:
                self.rows += 1
                self._refuse(RefusedError(NO_RECORD, f"longer than {LINE_LIMIT >> 20} MiB"))
            self._skipping, self._rest = True, b""

    def last(self) -> Rows:
        """Including what follows the last newline: it counts if it is whole; else it is being written, or cut off."""
        if not self._rest.strip():
            return self
        import copy

        whole = copy.deepcopy(self)  # more bytes of that line may come
        whole.finish()
        return whole

    def finish(self) -> None:
        """Take what stands behind the last newline; nothing more is fed."""
        self._line += 1
        self._take_line(self._rest, torn=True)
        self._rest = b""

    def _take_line(self, line: bytes, *, torn: bool = False) -> None:
        values, fault = decode(line.decode("utf-8", "replace"))
        for value in values:
            self._take(value)
        if fault:
            self.rows += 1
            self._refuse(RefusedError(TORN, "the last line is cut off") if torn else RefusedError(NO_RECORD, fault))

    def _take(self, value: object) -> None:
        self.rows += 1
        number = self.taken if self.ordered else None
        if len(self.samples) < SAMPLES and isinstance(value, dict):
            self.samples.append(value)
        try:
            if self._jobs and isinstance(value, dict):
                own, number = self._jobs.place(value)
                value = dict(value, success=job_success(value))
                if own is not None:
                    value["episode"] = own
            record = read_row(value, self.identity, number)
        except RefusedError as refused:
            self._refuse(refused)
            return
        if record.complaint:
            self.complaints[record.complaint] = self.complaints.get(record.complaint, 0) + 1
        self.taken += 1
        known = self.episodes if number is None else self.numbered
        if known.get(record.index) is None:
            known[record.index] = record.verdict

    def _refuse(self, refused: RefusedError) -> None:
        self.refused.setdefault(refused.reason, Refusals()).add(refused, self._line)


class Refusals:
    """Rows that don't count for one reason, with the first as an example."""

    __slots__ = ("about", "count", "line", "text", "where")

    def __init__(self) -> None:
        self.count = 0
        self.text = self.about = self.where = ""
        self.line = 0

    def add(self, refused: RefusedError, line: int) -> None:
        """One more row, or file."""
        self._take(1, str(refused), refused.about, line, "")

    def join(self, other: Refusals, where: str) -> None:
        """Those of another file as well."""
        self._take(other.count, other.text, other.about, other.line, where)

    def _take(self, count: int, text: str, about: str, line: int, where: str) -> None:
        if not self.count:
            self.text, self.about, self.line, self.where = text, about, line, where
        elif self.about != about:
            self.about = ""  # they don't all name the same
        self.count += count
