"""From the layers of a grid to the settings of a combo: each layer sets what it names; maps are merged key by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from comborun.grid.around_settings import around_changes
from comborun.grid.keys.placement import Needs, needs, wanted
from comborun.grid.keys.resource import ReserveKeys, ResourceKeys
from comborun.grid.keys.survival import (
    ComboLimitKeys,
    EvidenceKeys,
    RetryKeys,
)
from comborun.grid.model import Layer, SettingKeys
from comborun.grid.settings import DEFAULT_RECORDS, NO_RECORDS, Settings
from comborun.judging import (
    DEFAULT_RETRY,
    NO_PROGRESS,
    EvidenceRules,
    ProgressRules,
    ResultRules,
    RetryRule,
    WatchRules,
)
from comborun.resources import Request, Reserve, mebibytes
from comborun.rules.words import Failure


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
        changes["each"] = (keys.each if keys else None) or ""
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
    return Reserve(mebibytes(keys.gpu_memory), keys.cpus, mebibytes(keys.memory))


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
