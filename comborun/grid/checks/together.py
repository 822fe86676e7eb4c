"""Checks `together`: what the environments of one process share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from comborun.grid.keys.grid_file import SettingKeys
from comborun.grid.keys.program import ContainerKeys
from comborun.model.command import BY_INDEX, BY_SEED, ENVIRONMENTS, of_environment, placeholders, without_entries
from comborun.model.work import grouped
from comborun.rules.results.fields import IGNORE, LOG, ResultRules

if TYPE_CHECKING:
    from comborun.errors import Problem
    from comborun.grid.combos import Combo
    from comborun.grid.draft import Draft, Met
    from comborun.model.command import JsonTree

_TOTALS = frozenset({"kn-aggregate", "rank-metrics", "train-step"})
"""formats without a row for each episode"""
_BREAKS = frozenset(',"\\')
_OWN = frozenset({"episodes", "first_episode", "results"})
"""settings that may differ between the environments of a process"""
_OF_ONE_SESSION = frozenset({"session", "last_episode", "end_episode", "episodes_per_rank", BY_SEED, *BY_INDEX})
"""placeholders with another value for each environment; `{episodes}` may have the same one for all"""


def _names_environment(rules: ResultRules) -> bool:
    """Whether rows can name it: those that a pattern finds in the log have its groups only."""
    return rules.source != LOG or rules.environment.name in re.compile(rules.pattern).groupindex


_NEEDS: tuple[tuple[str, Met, str, str], ...] = (
    ("block", lambda it: it.block is None, "`block` cuts {}, but a process runs all episodes of its environments", ""),
    ("shards", lambda it: it.shards != "auto", "`shards: auto` does not know how to cut the list of {}", "a number"),
    ("unit", lambda it: it.unit == "episode", "{} counts steps, and only episodes name their environment", ""),
    ("episodes", lambda it: it.episodes, "there is no number of episodes for {}", "such as `episodes: 100`"),
    (
        "results",
        lambda it: it.rules.counted and it.rules.format not in _TOTALS,
        "the results of {} are totals, or none: which environment is done?",
        "rows of episodes, each with the field `environment` or the one that `results.environment` names",
    ),
    (
        "results",
        lambda it: it.rules.environment.word != IGNORE,
        "`results: {environment: ignore}` for {}: rows must name their environment",
        "name the field: `results: {environment: task}`",
    ),
    (
        "results",
        lambda it: _names_environment(it.rules),
        "no group of `results.pattern` of {} is the environment: rows must name it",
        "such as (?P<environment>\\S+), or the field that `results.environment` names",
    ),
    (
        "evidence",
        lambda it: it.evidence.rules.records,
        "`evidence: {records: false}` for {}: only records show which environment is done",
        "leave it out",
    ),
)


def together_problems(draft: Draft) -> Iterator[Problem]:
    sharing = draft.where(lambda it: it.together)
    if draft.broken or not sharing:
        return
    at = draft.set_at("together")
    if draft.file.stop_early:
        message = "`together` with `stop_early`: a process runs all its environments to their end"
        yield draft.at_key(at, message, "leave one of them out")
    for name, met, message, hint in _NEEDS:
        lacking = [combo for combo in sharing if not met(combo.settings)]
        yield from draft.for_combos(lacking, draft.set_at(name) or at, f"`together`: {message}", hint)
    for combos in grouped(sharing, lambda combo: combo.policy.name).values():
        yield from _unlike(draft, combos)
        yield from _same_names(draft, combos)
        yield from _texts(draft, combos)


def _unlike(draft: Draft, combos: list[Combo]) -> Iterator[Problem]:
    """Settings that differ within a process."""
    first = combos[0]
    for key in SettingKeys.model_fields.keys() - _OWN:
        others = [combo for combo in combos if getattr(combo.settings, key) != getattr(first.settings, key)]
        message = f"`together`: {{}} has another `{key}` than {first.label}, but one process runs both"
        yield from draft.for_combos(others, draft.set_at(key, combo=others[0]) if others else ("together",), message)


def _same_names(draft: Draft, combos: list[Combo]) -> Iterator[Problem]:
    """Environments that rows give the same name, or names that can't stand in a list."""
    settings = combos[0].settings
    texts = (settings.command_text, settings.setup, *settings.variables.values())
    listed = any(f"{{{ENVIRONMENTS}" in text for text in texts)
    first: dict[str, Combo] = {}
    for combo in combos:
        for name in combo.rules.environment.values or (combo.environment.name,):
            if (other := first.setdefault(name, combo)) is not combo:
                both = f"`{other.environment.name}` and `{combo.environment.name}`"
                message = f"`together`: rows call both {both} `{name}`"
                yield draft.at_key(("environments",), message, "give each its own name in `results.environment`")
        values = (combo.environment.name, *combo.environment.attributes.values())
        if listed and any(_BREAKS.intersection(value) for value in values):
            message = f"`together`: a comma, a quote or a backslash in `{combo.environment.name}` or its attributes"
            yield draft.at_key(("environments",), message, f"{{{ENVIRONMENTS}}} is a list with commas")


def _texts(draft: Draft, combos: list[Combo]) -> Iterator[Problem]:
    """Placeholders of one environment where all of a process share a text, and a process that is told none."""
    settings = combos[0].settings
    box = settings.container or ContainerKeys()
    shared = {"command": settings.command, "container": " ".join((box.image or "", *box.mounts, box.options or ""))}
    shared["variables"] = " ".join(settings.variables.values())
    entries: list[JsonTree] = []
    files = {name: without_entries(content, entries) for name, content in settings.files.items()}
    asked = {key: placeholders(text) for key, text in shared.items()}
    asked["files"] = tuple(name for content in files.values() for name in content.asks)
    for key, names in asked.items():
        for name in dict.fromkeys(names):
            if why := _why_not(name, combos):
                where = draft.set_at(key, combo=combos[0])
                hint = "put it into an entry of a list in `files`: it is written for each environment of a start"
                yield draft.at_key(where, f"`{key}`: {{{name}}} with `together`: {why}", hint)
    texts = " ".join((*(f"{{{name}}}" for names in asked.values() for name in names), settings.setup))
    if not entries and ENVIRONMENTS not in texts and "COMBORUN_ENVIRONMENTS" not in texts:
        message = f"`together`: nothing tells the program of {combos[0].policy.name} which environments to run"
        hint = f"{{{ENVIRONMENTS}}} in the command, or an entry with {{environment}} in a list of `files`"
        yield draft.at_key(draft.set_at("together"), message, hint)


def _why_not(name: str, combos: list[Combo]) -> str:
    """Why a placeholder can't stand where all environments of a process share the text; empty if it can."""
    settings = combos[0].settings
    if of_environment(name):
        return f"a process has several environments; {{{ENVIRONMENTS}}} is their list"
    if name in _OF_ONE_SESSION:
        return "its value is another one for each environment"
    if name == "episodes" and len({combo.settings.episodes for combo in combos}) > 1:
        return "the environments have different numbers of episodes"
    if name == "seed" and settings.ranks > 1:
        return "ranks make their seeds from it, and a retry gives an environment to another rank"
    return ""
