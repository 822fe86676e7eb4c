"""The answer about a run at one moment.

Times are seconds since 1970 on the host's clock, sizes are bytes, GPU memory is in MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from comborun.answers import Untrusted, UntrustedFacts
from comborun.rules.facts import Fact
from comborun.rules.room.capacity import Card
from comborun.rules.vocabulary import Life, Outcome


@dataclass(frozen=True)
class Space:
    total: int
    free: int


@dataclass(frozen=True)
class Hold:
    """Why nothing new starts."""

    kind: str
    """paused or draining by a person, halted by comborun"""
    since: float | None
    why: Untrusted
    fact: Fact | None = None


@dataclass(frozen=True)
class ClosedGpu:
    gpu: int
    failure: str
    since: float | None


@dataclass(frozen=True)
class ClosedEnvironment:
    """An environment that gets no new sessions, though others go on."""

    environment: str
    failure: str
    since: float | None


@dataclass(frozen=True)
class Server:
    """A model server."""

    name: str
    state: str
    attempt: int
    since: float | None
    gpus: tuple[int, ...]
    port: int | None
    cause: str | None
    """how its latest attempt ended"""
    ending: UntrustedFacts
    why: Untrusted | None
    waits: Untrusted | None
    """what it waits for"""
    fact: Fact | None


@dataclass(frozen=True)
class Slurm:
    answered: bool
    last_answer: float | None
    complaint: Untrusted | None


@dataclass(frozen=True)
class HostEvent:
    """Something that ended many sessions at once."""

    kind: str
    """restarted, or vanished"""
    last_sign: float | None
    sessions: tuple[str, ...]
    host: str
    """of a run on several hosts; else empty"""


@dataclass(frozen=True)
class Task:
    """A task of a Slurm array."""

    job: str
    attempt: int
    state: str
    reason: Untrusted | None
    node: str | None
    start: float | None
    """expected, if Slurm gives it"""


@dataclass(frozen=True)
class Waiting:
    until: float | None
    """the next try; null: after an event"""
    fact: Fact | None
    for_: str
    """the code of what is waited for"""
    detail: Untrusted


@dataclass(frozen=True)
class Session:
    policy: str
    environment: str
    extra: bool
    """a smoke test, or dropped by a changed grid: its episodes are not planned"""
    started: float | None
    seconds: float | None
    """run time of its latest attempt so far"""
    failure: str | None
    """the class of its latest attempt's failure"""
    stalled_since: float | None
    part: str | None
    """its difference from other sessions of its combo: smoke, superseded, or its range"""
    window: str | None
    uncounted: Untrusted | None
    """why rows of its result files don't count"""
    state: Life
    outcome: Outcome | None
    """null until it has ended"""
    name: str
    episodes_done: int | None
    episodes_planned: int
    unit: Literal["episode", "step"]
    successes: int | None
    episodes_recorded: int | None
    """episodes with a verdict"""
    idle_seconds: float | None
    """since its log last grew; null unless it is alive"""
    silent: bool
    """whether its program is known to print nothing for long"""
    estimated_end: float | None
    estimated_end_range: tuple[float, float] | None
    attempt: int
    """the number of its latest attempt; 0: none"""
    node: str | None
    gpus: tuple[int, ...]
    last_line: Untrusted
    """the last line of its log"""
    note: Untrusted
    """how it ended, or what is wrong"""
    progressed: float | None
    """when its progress was last seen to grow"""
    peak_memory: int | None
    task: Task | None
    facts: UntrustedFacts
    waiting: Waiting | None
    """set if it waits for more than its turn"""
    ending: UntrustedFacts
    """the evidence of how its latest attempt ended"""
    host: str | None = None
    """where it runs, in a run on several hosts"""


@dataclass(frozen=True)
class HostOfRun:
    """One of several hosts of a run."""

    host: str
    run: str
    """the id of its part"""
    lost: bool
    """whether it was given up: its sessions run elsewhere"""
    reachable: bool
    complaint: Untrusted | None
    last_seen_seconds: float | None
    counts: Mapping[str, int]
    load: float | None
    gpus: tuple[Card, ...]
    folder_gone: bool = False
    """the host answers, but has not the folder of its part; then `reachable` is false, too"""
    hold: Hold | None = None
    """why nothing new starts there; that of the run is set only if all hosts with work left have one"""


@dataclass(frozen=True)
class Status:
    """A run at one moment."""

    schema: int
    run: str
    grid: str
    host: str
    directory: str
    reachable: bool
    unreachable_since: float | None
    complaint: Untrusted | None
    last_seen_seconds: float | None
    hold: Hold | None
    finished: bool
    """nothing runs, and nothing starts by itself any more; with `hold`, what is queued waits for a `resume`"""
    stopped: bool
    quarantine: tuple[ClosedGpu, ...]
    closed: tuple[ClosedEnvironment, ...]
    dispatcher: int | None
    """the pid of what starts sessions; null if it is gone"""
    slots: int | None
    servers: tuple[Server, ...]
    slurm: Slurm | None
    load: float | None
    cpus: int | None
    memory: Space | None
    disk: Space | None
    gpus: tuple[Card, ...]
    now: float | None
    started: float | None
    seconds: float | None
    """in which at least one of its sessions ran, until now"""
    successes: int
    host_event: HostEvent | None
    estimated_end: float | None
    estimated_end_range: tuple[float, float] | None
    episodes_done: int
    episodes_recorded: int
    episodes_planned: int
    counts: Mapping[str, int]
    """state or outcome -> number of planned sessions"""
    smoke: Mapping[str, int]
    """the same for the smoke test"""
    sessions: tuple[Session, ...]
    after: Session | None
    multiplexer: str | None
    undecided: str | None
    """why `stop_early` can't decide"""
    hint: Untrusted | None
    """what to do, for example if nothing starts any more"""
    unheard: Untrusted | None
    """set if the latest notice could not be sent"""
    facts: UntrustedFacts
    folder_gone: bool = False
    """the host answers, but has not the run's folder; then `reachable` is false, too"""
    hosts: tuple[HostOfRun, ...] = ()
    """of a run on several hosts; then `host` names all of them, and the numbers are of all together"""
    record: Literal["status"] = "status"

    def _repr_html_(self) -> str:
        """For notebooks."""
        from comborun.answers.page import page_of

        return page_of(self)
