"""The rows of one result file, counted as its bytes come. Pure."""

from __future__ import annotations

from comborun.rules.episodes import (
    COMPLETION,
    COMPLETION_ROWS,
    EPISODE_ID,
    JOB_ROWS,
    JobRows,
    job_success,
)
from comborun.rules.fields import Identity, RefusedError, order_of, read_row
from comborun.rules.readers import reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.rules.readers import Entry

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
        self._reader = reader(kind, self.identity)

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
        for entry in self._reader.feed(data):
            self._take(entry)

    def last(self) -> Rows:
        """Including what follows the last newline: it counts if it is whole; else it is being written, or cut off."""
        if not self._reader.pending:
            return self
        import copy

        whole = copy.deepcopy(self)  # more bytes of that line may come
        whole.finish()
        return whole

    def finish(self) -> None:
        """Take what stands behind the last newline; nothing more is fed."""
        for entry in self._reader.finish():
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        line, value, _, order = entry
        self.rows += 1
        if isinstance(value, RefusedError):
            self._refuse(value, line)
            return
        number = self.taken if self.ordered else order_of(value, order, self.identity)
        if len(self.samples) < SAMPLES and isinstance(value, dict):
            numbered = number is not None and not self.ordered
            self.samples.append({**value, self.identity.episode.name: number} if numbered else value)
        try:
            if self._jobs and isinstance(value, dict):
                own, number = self._jobs.place(value)
                value = dict(value, success=job_success(value))
                if own is not None:
                    value["episode"] = own
            record = read_row(value, self.identity, number)
        except RefusedError as refused:
            self._refuse(refused, line)
            return
        if record.complaint:
            self.complaints[record.complaint] = self.complaints.get(record.complaint, 0) + 1
        self.taken += 1
        known = self.episodes if number is None else self.numbered
        if known.get(record.index) is None:
            known[record.index] = record.verdict

    def _refuse(self, refused: RefusedError, line: int) -> None:
        self.refused.setdefault(refused.reason, Refusals()).add(refused, line)


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
