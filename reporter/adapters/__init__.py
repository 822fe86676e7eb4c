"""From result files to records: one module per format, each a pure function from a stream of bytes.

An adapter is called as `read(stream, context)` and returns a `Reading`. It raises nothing, whatever the bytes are: what
can't be used is a reject or a defect, with its place, and costs no other record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Protocol

from comborun.judging import ResultRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.attempt import Aggregate, EpisodeRecord


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
    first: int = 0
    """the index of the first episode, where a file counts its own from the beginning"""


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


class CautionKind(StrEnum):
    """What must be known before numbers of a file are compared with others."""

    UNPAIRED = "unpaired"
    """an index (or a seed) says nothing of how its episode started: no pairing"""
    ENDING_ORDER = "ending-order"
    """episodes are numbered as they ended: no pairing, and no index of one attempt means the same in another"""
    FIRST_K = "first-k"
    """the program stopped at the first K episodes that ended, in several copies of the environment"""


@dataclass(frozen=True)
class Caution:
    """Holds for every record and aggregate of its file."""

    path: str
    kind: CautionKind
    reason: str
    num_envs: int | None = None
    """copies of the environment side by side, where the file tells"""


@dataclass(frozen=True)
class Training:
    """How far a training got: it has steps and no episodes."""

    path: str
    policy: str
    environment: str
    step: int
    """the highest that was reported"""
    total: int | None
    """as announced at the start"""
    metrics: Mapping[str, float]
    """of the last report"""


@dataclass(frozen=True)
class Reading:
    records: tuple[EpisodeRecord, ...] = ()
    rejects: tuple[Reject, ...] = ()
    defects: tuple[Defect, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    """counts without episodes; a file has these or records, not both"""
    cautions: tuple[Caution, ...] = ()
    trainings: tuple[Training, ...] = ()


class Adapter(Protocol):
    """Reads one result file of one format."""

    def __call__(self, stream: BinaryIO, context: Context) -> Reading: ...
