"""From result files to records: one module per format, each a pure function from a stream of bytes.

An adapter is called as `read(stream, context)` and returns a `Reading`. It raises nothing, whatever the bytes are: what
can't be used is a reject or a defect, with its place, and costs no other record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Protocol

from comborun.plan import ResultRules

if TYPE_CHECKING:
    from comborun.episode import EpisodeRecord


@dataclass(frozen=True)
class Context:
    """What is known about a result file before it is read. `policy` and `environment` are None when its records must
    name their own combo; `path` is how people shall see the file."""

    path: str
    policy: str | None = None
    environment: str | None = None
    rules: ResultRules = field(default_factory=ResultRules)
    session: str = ""
    attempt: int = 0


class RejectKind(StrEnum):
    """Why something in a result file gave no record."""

    TORN = "torn"
    """a last line without its end: in progress, or cut off"""
    NOT_A_RECORD = "not a record"
    """not JSON, not an object, too long, or without an episode or a combo"""
    FOREIGN = "foreign"
    """it names another combo than the session that wrote it"""
    UNREADABLE = "unreadable"
    """the file as a whole"""


@dataclass(frozen=True)
class Reject:
    """A line that gave no record; line 0 means the file as a whole."""

    path: str
    line: int
    kind: RejectKind
    reason: str


@dataclass(frozen=True)
class Defect:
    """Something wrong with a record that was taken all the same."""

    path: str
    line: int
    reason: str


@dataclass(frozen=True)
class Reading:
    records: tuple[EpisodeRecord, ...] = ()
    rejects: tuple[Reject, ...] = ()
    defects: tuple[Defect, ...] = ()


class Adapter(Protocol):
    """Reads one result file of one format."""

    def __call__(self, stream: BinaryIO, context: Context) -> Reading: ...
