"""What holds for one combo: the grid's own settings, with the overrides that match it on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from comborun.command import FileText, Launcher, takes_range
from comborun.grid.keys.placement import Needs, Wanted
from comborun.grid.keys.shard import ShardCount
from comborun.grid.keys.stopping import StopKeys
from comborun.grid.keys.survival import (
    LimitKeys,
    NotifyKeys,
)
from comborun.grid.keys.survival_values import NEVER, FailFast
from comborun.grid.model import DEFAULT_SHIPPED, SyncKeys
from comborun.judging import (
    ANY_PROGRESS,
    BY_RECORDS,
    NO_LIMITS,
    EvidenceRules,
    NoticeKind,
    ProgressRules,
    ResultRules,
    WatchRules,
)
from comborun.plan import Unit
from comborun.resources import NOTHING, Display, PinMode, Request, Runtime
from comborun.stopping import StopRequest

DEFAULT_RECORDS = ResultRules()
NO_RECORDS = ResultRules(files=())
"""`results: none`: the exit code has to do"""


@dataclass(frozen=True)
class Linked:
    """`workdir: {link_from: ...}`."""

    source: str
    """as written: absolute, below ~/, or relative to the grid file's folder"""
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contained:
    """`container`, its words not yet filled."""

    image: str = ""
    runtime: Runtime = "docker"
    mounts: tuple[str, ...] = ()
    options: str = ""


@dataclass(frozen=True)
class Settings:
    command: str = ""
    episodes: int | None = None
    """None: the program decides, and nothing is known about how many there should be"""
    first_episode: int = 0
    block: int | None = None
    """episodes of one session; None: all of them"""
    shards: ShardCount | None = None
    """sessions of one combo; None: one"""
    seed: int | None = None
    unit: Unit = "episode"
    setup: str = ""
    workdir: str | None = None
    """as written: absolute, below ~/, or relative to the grid file's folder"""
    links: Linked | None = None
    """instead of a folder, one of links to what is in another"""
    files: Mapping[str, FileText] = field(default_factory=lambda: MappingProxyType({}))
    launcher: Launcher | None = None
    container: Contained | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    gpus: int = 0
    request: Request = NOTHING
    pin: PinMode = "cvd"
    display: Display | None = None
    threads: int | None = None
    """None: as many as its share of the cores; 0: as many as the program likes"""
    placement: tuple[Wanted, ...] = ()
    components: Mapping[str, Needs] = field(default_factory=lambda: MappingProxyType({}))
    """by the component's name"""
    results: ResultRules = DEFAULT_RECORDS
    progress: ProgressRules = ANY_PROGRESS
    each: str = ""
    """`each` of `progress`: a number, or the attribute that holds it; empty: none"""
    evidence: EvidenceRules = BY_RECORDS
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """failure class, or `ignore` -> regular expressions"""
    watch: WatchRules = NO_LIMITS

    @property
    def told(self) -> str:
        """All by which the program can be told what to do: its command, and the placeholders of its files."""
        asked = dict.fromkeys(name for content in self.files.values() for name in content.asks)
        return " ".join([self.command, *(f"{{{name}}}" for name in asked)])

    @property
    def ranged(self) -> bool:
        """Whether the program can be told to do any range of episodes."""
        return self.unit == "episode" and takes_range(self.told)


@dataclass(frozen=True)
class GridLimits:
    parallel: int | None
    """None: decided for the host when the plan is made"""
    per_gpu: int | None
    stagger: float
    """seconds between two starts, at least"""
    attempts: int
    breaker: int = 3
    fail_fast: FailFast = NEVER
    warm_up: float = 0.0
    """seconds; 0: none"""
    """seconds; 0: never"""

    @classmethod
    def of(cls, keys: LimitKeys) -> GridLimits:
        limits = cls(keys.parallel, keys.per_gpu, keys.stagger, keys.attempts, keys.breaker, keys.fail_fast or NEVER)
        return replace(limits, warm_up=keys.warm_up)


@dataclass(frozen=True)
class Notifying:
    """The grid's `notify`."""

    command: str
    kinds: tuple[NoticeKind, ...]
    every: float
    """seconds between two of a kind, at least"""

    @classmethod
    def of(cls, keys: NotifyKeys) -> Notifying:
        return cls(keys.command or "", tuple(dict.fromkeys(keys.on)), keys.every)


def stop_request(keys: StopKeys) -> StopRequest:
    return StopRequest(keys.alpha, keys.comparisons, keys.environments, keys.n_max)


@dataclass(frozen=True)
class Shipped:
    """An entry of `sync`."""

    source: str
    """as written: absolute, below ~/ of this machine, or relative to the grid file's folder"""
    to: str
    """on the host: absolute or below ~/"""
    exclude: tuple[str, ...] = ()
    max_size: int = DEFAULT_SHIPPED
    """bytes"""

    @classmethod
    def of(cls, keys: SyncKeys) -> Shipped:
        return cls(keys.source or "", keys.to or "", keys.exclude, keys.max_size)
