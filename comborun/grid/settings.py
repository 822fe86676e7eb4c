"""What holds for one combo: the grid's own settings, with the overrides that match it on top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from comborun.display import Display
from comborun.grid.around_settings import Contained, Linked, around_changes
from comborun.grid.model import DEFAULT_SHIPPED, Layer, SettingKeys, SyncKeys
from comborun.grid.placement_keys import Needs, Wanted, needs, wanted
from comborun.grid.resource_keys import ReserveKeys, ResourceKeys
from comborun.grid.shard_keys import ShardCount
from comborun.grid.stopping_keys import StopKeys
from comborun.grid.survival_keys import (
    DEFAULT_GIVE_WAY,
    ComboLimitKeys,
    EvidenceKeys,
    LimitKeys,
    NotifyKeys,
    RetryKeys,
)
from comborun.grid.survival_values import NEVER, FailFast
from comborun.inputs import FileText
from comborun.launcher import Launcher
from comborun.plan import ProgressRules, ResultRules, Unit
from comborun.resources import NOTHING, PinMode, Request, Reserve, mebibytes
from comborun.state import Failure
from comborun.stopping import StopRequest
from comborun.survival import BY_RECORDS, DEFAULT_RETRY, NO_LIMITS, EvidenceRules, NoticeKind, RetryRule, WatchRules

DEFAULT_RECORDS = ResultRules()
NO_RECORDS = ResultRules(files=())
"""`results: none`: the exit code has to do"""
ANY_PROGRESS = ProgressRules()
NO_PROGRESS = ProgressRules(guess=False)
"""`progress: none`: the log tells nothing"""


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
    evidence: EvidenceRules = BY_RECORDS
    failures: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """failure class, or `ignore` -> regular expressions for grep -E"""
    watch: WatchRules = NO_LIMITS

    @property
    def told(self) -> str:
        """All by which the program can be told what to do: its command, and the placeholders of its files."""
        asked = dict.fromkeys(name for content in self.files.values() for name in content.asks)
        return " ".join([self.command, *(f"{{{name}}}" for name in asked)])


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
    give_way: float = DEFAULT_GIVE_WAY
    """seconds; 0: never"""

    @classmethod
    def of(cls, keys: LimitKeys) -> GridLimits:
        limits = cls(keys.parallel, keys.per_gpu, keys.stagger, keys.attempts, keys.breaker, keys.fail_fast or NEVER)
        return replace(limits, warm_up=keys.warm_up, give_way=keys.give_way)


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


def settings_of(layers: Iterable[Layer]) -> Settings:
    """The settings that result when each layer sets what it names; maps are merged key by key."""
    settings = Settings()
    for layer in layers:
        settings = _with(settings, layer)
    return settings


_EPISODES = ("episodes", "first_episode", "block", "shards", "seed", "unit")
_PLAIN = (*_EPISODES, "command", "setup", "pin", "display", "threads")


def _with(settings: Settings, layer: Layer) -> Settings:
    changes: dict[str, Any] = {key: getattr(layer, key) for key in _PLAIN if key in layer.model_fields_set}
    if layer.variables:
        changes["variables"] = MappingProxyType({**settings.variables, **layer.variables})
    if "gpus" in layer.resources.model_fields_set:
        changes["gpus"] = layer.resources.gpus
    if "resources" in layer.model_fields_set:
        changes["request"] = asked_of(settings.request, layer.resources)
    changes |= _placing(settings, layer) | around_changes(settings, layer)
    if "results" in layer.model_fields_set:
        changes["results"] = _results(settings.results, layer)
    if "progress" in layer.model_fields_set:
        keys = layer.progress
        changes["progress"] = ProgressRules(keys.pattern, keys.counts_from, keys.silent) if keys else NO_PROGRESS
    if "evidence" in layer.model_fields_set:
        changes["evidence"] = _evidence(settings.evidence, layer.evidence)
    if layer.failures:
        changes["failures"] = MappingProxyType({**settings.failures, **layer.failures})
    if layer.model_fields_set & {"evidence", "limits"}:
        changes["watch"] = _watch(settings.watch, layer.limits, layer.evidence)
    return replace(settings, **changes)


def _placing(settings: Settings, layer: Layer) -> dict[str, Any]:
    """A placement numbers the GPUs of the host, so nothing hides them from its program unless the grid says so."""
    below = settings.components
    taken = {name: needs(below.get(name, Needs()), keys) for name, keys in layer.components.items()}
    changes: dict[str, Any] = {"components": MappingProxyType({**below, **taken})}
    if "placement" in layer.model_fields_set:
        changes["placement"] = wanted(layer.placement)
    if layer.placement and "pin" not in layer.model_fields_set and settings.pin == "cvd":
        changes["pin"] = "none"
    return changes


def asked_of(request: Request, keys: ResourceKeys) -> Request:
    asked = {
        "gpu_memory": mebibytes(keys.gpu_memory),
        "cpus": keys.cpus or 0,
        "memory": mebibytes(keys.memory),
        "tokens": keys.exclusive,
        "per_gpu": keys.per_gpu or 0,
        "per_host": keys.per_host or 0,
    }
    named = {"tokens" if key == "exclusive" else key for key in keys.model_fields_set}
    changes: dict[str, Any] = {key: value for key, value in asked.items() if key in named}
    return replace(request, **changes)


def reserve(keys: ReserveKeys) -> Reserve:
    return Reserve(mebibytes(keys.gpu_memory), keys.cpus, mebibytes(keys.memory), mebibytes(keys.headroom))


def _evidence(rules: EvidenceRules, keys: EvidenceKeys) -> EvidenceRules:
    named = {key: getattr(keys, key) for key in ("records", "line", "files") if key in keys.model_fields_set}
    return replace(rules, **named)


def _watch(rules: WatchRules, limits: ComboLimitKeys, evidence: EvidenceKeys) -> WatchRules:
    named = {"stall_s": (limits, "stall_after"), "max_s": (limits, "max_time"), "hang_s": (evidence, "grace")}
    return replace(rules, **{to: getattr(at, key) for to, (at, key) in named.items() if key in at.model_fields_set})


def retries(keys: Mapping[Failure, RetryKeys] | None) -> tuple[RetryRule, ...]:
    """What the grid says on top of the defaults; None: nothing is started again."""
    if keys is None:
        return tuple(replace(rule, times=0) for rule in DEFAULT_RETRY)
    return tuple(_retry(rule, keys.get(rule.failure)) for rule in DEFAULT_RETRY)


def _retry(rule: RetryRule, keys: RetryKeys | None) -> RetryRule:
    named = {} if keys is None else {key: getattr(keys, key) for key in keys.model_fields_set}
    return replace(rule, **named)


def _results(rules: ResultRules, layer: SettingKeys) -> ResultRules:
    keys = layer.results
    if keys is None:
        return NO_RECORDS
    base = DEFAULT_RECORDS if rules == NO_RECORDS else rules
    if keys.source == "log":
        base = replace(base, files=())
    return replace(base, **{key: getattr(keys, key) for key in keys.model_fields_set})
