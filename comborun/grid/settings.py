"""What holds for one combo: the grid's own settings, with the overrides that match it on top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from comborun.grid.model import DEFAULT_SHIPPED, LimitKeys, SettingKeys, SyncKeys
from comborun.plan import ProgressRules, ResultRules, Unit

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
    seed: int | None = None
    unit: Unit = "episode"
    setup: str = ""
    workdir: str | None = None
    """as written: absolute, below ~/, or relative to the grid file's folder"""
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    gpus: int = 0
    results: ResultRules = DEFAULT_RECORDS
    progress: ProgressRules = ANY_PROGRESS


@dataclass(frozen=True)
class GridLimits:
    parallel: int | None
    """None: decided for the host when the plan is made"""
    per_gpu: int | None
    stagger: float
    """seconds between two starts, at least"""
    attempts: int

    @classmethod
    def of(cls, keys: LimitKeys) -> GridLimits:
        return cls(keys.parallel, keys.per_gpu, keys.stagger, keys.attempts)


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


def settings_of(layers: Iterable[SettingKeys]) -> Settings:
    """The settings that result when each layer sets what it names; maps are merged key by key."""
    settings = Settings()
    for layer in layers:
        settings = _with(settings, layer)
    return settings


_PLAIN = ("command", "episodes", "first_episode", "seed", "unit", "setup", "workdir")


def _with(settings: Settings, layer: SettingKeys) -> Settings:
    changes: dict[str, Any] = {key: getattr(layer, key) for key in _PLAIN if key in layer.model_fields_set}
    if layer.variables:
        changes["variables"] = MappingProxyType({**settings.variables, **layer.variables})
    if "gpus" in layer.resources.model_fields_set:
        changes["gpus"] = layer.resources.gpus
    if "results" in layer.model_fields_set:
        changes["results"] = _results(settings.results, layer)
    if "progress" in layer.model_fields_set:
        keys = layer.progress
        changes["progress"] = ProgressRules(keys.pattern, keys.counts_from, keys.silent) if keys else NO_PROGRESS
    return replace(settings, **changes)


def _results(rules: ResultRules, layer: SettingKeys) -> ResultRules:
    keys = layer.results
    if keys is None:
        return NO_RECORDS
    base = DEFAULT_RECORDS if rules == NO_RECORDS else rules
    return replace(base, **{key: getattr(keys, key) for key in keys.model_fields_set})
