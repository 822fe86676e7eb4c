"""The records of a run: how attempts began and ended, why they ended in words for people, and their episodes."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from comborun.rules.endings.failures import Failure, failure_of, named
from comborun.rules.facts import Fact
from comborun.rules.names import SOCKETS
from comborun.rules.records import UNTIMED, ending, integer, parse, seconds
from comborun.rules.results.counts import Counts
from comborun.rules.vocabulary import Cause, Completeness, Outcome, cause_of, completeness_of, outcome_of
from comborun.text import KIB
from comborun.words.endings import in_words

if TYPE_CHECKING:
    from comborun.model.work import Combo


SLURM = "slurm"
"""multiplexer of a session that a Slurm task runs: it has no window"""


def own_end(claim: str, end: str) -> bool:
    """Whether an `end` is of the same start as a `claim`.

    After Slurm requeued a task, the process of its earlier start may still live on another node, and write.
    """
    nonce = parse(claim).get("nonce")
    return nonce is None or parse(end).get("nonce") == nonce


@dataclass(frozen=True)
class Begin:
    """`attempt-N/begin`: written once the command runs. Times are seconds since 1970 on the host's clock."""

    attempt: int
    started: float
    supervisor: int
    pid: int
    boot: str
    host: str
    multiplexer: str
    """its name, SLURM, or none when the script was started by hand"""
    address: str
    """how the multiplexer finds its window, such as the name of a tmux session"""
    sockets: str
    """the multiplexer's folder of sockets; empty: the user's usual one"""
    gpus: str
    first: int
    count: int
    driver: str = ""
    """version of the GPU driver; empty if unknown"""
    gpu_models: str = ""
    environment: int = 0
    """the row of dispatch/environments.jsonl with its variables; 0 if unknown"""

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls.of(parse(text))

    @classmethod
    def of(cls, record: Mapping[str, str]) -> Self:
        kinds: dict[str, str] = cls.__annotations__
        found: dict[str, Any] = {
            name: integer(record, name) or 0 if kind == "int" else record.get(name, "") for name, kind in kinds.items()
        }
        found |= {"started": seconds(record, "started") or 0.0, "multiplexer": record.get("multiplexer", "none")}
        found["sockets"] = record.get(SOCKETS.get(found["multiplexer"], "").lower(), "")  # not that of another one
        return cls(**found)


class End(NamedTuple):
    """`attempt-N/end`: how the attempt ended. `code` is None if no supervisor saw the command exit."""

    attempt: int
    started: float | None
    ended: float
    code: int | None
    signal: int | None
    cause: Cause
    completeness: Completeness
    outcome: Outcome
    counts: Counts
    facts: tuple[Fact, ...] = ()
    """how it ended: why a launch failed, who stopped it, what its log says"""
    remark: str = ""
    """a sentence instead of facts, in a record of the former version"""
    failure: Failure | None = None
    """None if the work was done, or the user stopped it"""
    peak_memory: int | None = None
    """bytes of main memory: the largest sample of all its processes together"""
    timed: bool = True
    """False: its process ran other sessions, too, and only the times of the process are known"""

    @property
    def records(self) -> int:
        return self.counts.records

    @property
    def note(self) -> str:
        """How it ended, in words."""
        return in_words(self.remark, self.facts)

    @property
    def how(self) -> Fact:
        """What ended the command."""
        failure = self.failure and str(self.failure)
        return Fact("command_ended", cause=str(self.cause), exit_code=self.code, signal=self.signal, failure=failure)

    @property
    def called_off(self) -> bool:
        """Whether somebody has ended it before its program started, if nothing says that this has begun."""
        return self.cause in {Cause.STOPPED, Cause.NOT_NEEDED} and self.started is None

    @property
    def clean(self) -> bool:
        """Whether the command ended by itself with code 0."""
        return self.cause is Cause.EXITED and self.code == 0

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls.of(parse(text))

    @classmethod
    def of(cls, record: Mapping[str, str]) -> Self:
        cause, completeness = cause_of(record), completeness_of(record)
        code, signal = integer(record, "code"), integer(record, "signal")
        peak = integer(record, "peak_memory_kib")
        return cls(
            attempt=integer(record, "attempt") or 0,
            started=seconds(record, "started"),
            ended=seconds(record, "ended") or 0.0,
            code=code,
            signal=signal,
            cause=cause,
            completeness=completeness,
            outcome=outcome_of(record),
            counts=Counts.of(record),
            facts=ending(record),
            remark=record.get("note", ""),
            failure=named(record.get("class", "")) or failure_of(completeness, cause, code, signal),
            peak_memory=None if peak is None else peak * KIB,
            timed=not integer(record, UNTIMED),
        )


JsonValue = str | int | float | bool | None | list[Any] | dict[str, Any]


class Verdict(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    ERRORED = "errored"
    """it ran, and its program says that the result does not count: an exception, `success: null`"""
    MEASURED = "measured"
    """it has numbers only, because the grid says `success: none`"""


Names = tuple[tuple[str, ...], tuple[str, ...]]
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class EpisodeRecord:
    """One episode of one combo, from one attempt of one session.

    A large run has millions of them. So metrics are packed numbers, and the names of fields and small integers are the
    same objects in all records.
    """

    policy: str
    environment: str
    episode: int
    """index within the combo, fixed before launch; counts from 0"""
    verdict: Verdict
    seed: int | float | str | None = None
    session: str = ""
    attempt: int = 0
    path: str = ""
    line: int = 0
    """0 means the file as a whole"""
    names: Names = ((), ())
    """names of its metrics, and of its other fields; `packed` makes them and the values"""
    numbers: bytes = b""
    others: tuple[JsonValue, ...] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """The finite numbers of the record; NaN and infinite ones are left out and counted as defects."""
        return dict(zip(self.names[0], memoryview(self.numbers).cast("d"), strict=True))

    @property
    def extra(self) -> dict[str, JsonValue]:
        return dict(zip(self.names[1], self.others, strict=True))

    def metric(self, name: str) -> float | None:
        names = self.names[0]
        return memoryview(self.numbers).cast("d")[names.index(name)] if name in names else None

    def field(self, name: str) -> JsonValue:
        names = self.names[1]
        return self.others[names.index(name)] if name in names else self.metric(name)

    @property
    def source(self) -> str:
        """file:line, for people"""
        return f"{self.path}:{self.line}" if self.line else self.path

    @property
    def combo(self) -> Combo:
        return self.policy, self.environment

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.policy, self.environment, self.episode)

    @property
    def success(self) -> bool | None:
        verdict = self.verdict
        return True if verdict is Verdict.SUCCESS else False if verdict is Verdict.FAILURE else None


def packed(metrics: Mapping[str, float] = _NO_FIELDS, extra: Mapping[str, JsonValue] = _NO_FIELDS) -> dict[str, Any]:
    """The arguments of an `EpisodeRecord` that hold its metrics and its other fields."""
    names = tuple(metrics), tuple(extra)
    numbers = array("d", metrics.values()).tobytes()
    return {"names": _NAMES.setdefault(names, names), "numbers": numbers, "others": tuple(extra.values())}


def having(records: Sequence[EpisodeRecord], *verdicts: Verdict) -> list[EpisodeRecord]:
    """The records with one of these verdicts, in their order."""
    if len(verdicts) == 1:
        (only,) = verdicts
        return [record for record in records if record.verdict is only]
    return [record for record in records if record.verdict in verdicts]


def held(records: Iterable[EpisodeRecord]) -> set[Names]:
    """The names of fields of these records, as they occur together."""
    return {*map(attrgetter("names"), records)}


def metric_columns(records: Iterable[EpisodeRecord], wanted: Collection[str] = ()) -> dict[str, list[float]]:
    """By metric, the values of the records that have it, in their order; of all metrics if none is named."""
    columns: dict[str, list[float]] = {}
    for (names, _), group in groupby(records, attrgetter("names")):
        cells = memoryview(b"".join(map(attrgetter("numbers"), group))).cast("d")
        for place, name in enumerate(names):
            if not wanted or name in wanted:
                columns.setdefault(name, []).extend(cells[place :: len(names)].tolist())
    return columns


def field_column(records: Iterable[EpisodeRecord], name: str) -> list[JsonValue]:
    """A field of each record, in their order; None where a record lacks it."""
    column: list[JsonValue] = []
    for (metrics, others), group in groupby(records, attrgetter("names")):
        if name in others:
            column += map(itemgetter(others.index(name)), map(attrgetter("others"), group))
        else:
            column += (record.metric(name) if name in metrics else None for record in group)
    return column


_NAMES: dict[Names, Names] = {}


@dataclass(frozen=True)
class Aggregate:
    """k successes of n episodes of a combo, from a program that reports only these totals."""

    policy: str
    environment: str
    successes: int
    episodes: int
    metrics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    session: str = ""
    attempt: int = 0
    source: str = ""

    @property
    def combo(self) -> Combo:
        return self.policy, self.environment
