"""Checks how sessions are judged, limited and retried: results, progress, evidence, limits, retry, notify."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from comborun.errors import Problem
from comborun.grid.draft import some
from comborun.grid.keys.results import ProgressKeys, naming, rules_of
from comborun.model.command import CommandError, placeholders, split_command
from comborun.model.judging import EvidenceRules
from comborun.rules.endings.failures import Failure
from comborun.rules.results.counts import PLANNED
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from comborun.grid.draft import Draft

_OF_THE_POLICY = (Failure.ERROR, Failure.NO_RESULT)


def progress_problems(draft: Draft) -> Iterator[Problem]:
    """An `each` whose attribute is not a number."""
    if draft.broken & {"progress", "overrides", "policies", "environments"}:
        return
    for combo in draft.combos:
        if combo.settings.progress and (each := combo.settings.progress.each):
            path = draft.set_at("progress", "each", combo=combo)
            yield from draft.checked(path, "`progress.each`", combo.number, each)


def naming_problems(draft: Draft) -> Iterator[Problem]:
    if draft.broken & {"results", "overrides", "policies", "environments"}:
        return
    for combo in draft.combos:
        for kind in ("policy", "environment"):
            given = getattr(rules_of(combo.settings.results), kind)
            path = draft.set_at("results", kind, combo=combo)
            yield from draft.checked(path, f"`results.{kind}`", naming, given, getattr(combo, kind))


def nominal_problems(draft: Draft) -> Iterator[Problem]:
    if draft.broken & {"results", "overrides", "environments"}:
        return
    names = [entry.name for entry in draft.file.environments]
    found = {
        draft.set_at("results", "nominal", combo=combo): name
        for combo in draft.combos
        if (name := rules_of(combo.settings.results).nominal) and name not in names
    }
    for path, name in found.items():
        message = f"`results.nominal`: there is no environment `{name}`"
        yield draft.at_value(path, message, did_you_mean(name, names) or f"one of {', '.join(names)}")


def count_warnings(draft: Draft) -> Iterator[Problem]:
    uncounted = [
        combo.label
        for combo in draft.combos
        if rules_of(combo.settings.results).files and not combo.settings.episodes and not combo.settings.evidence.line
    ]
    if uncounted:
        where = "" if len(uncounted) == len(draft.combos) else f" for {some(uncounted)}"
        message = f"no `episodes`{where}: only the exit code says whether a session did all its work"
        yield draft.at(None, message, "set their number, such as `episodes: 100`")


def judging_problems(draft: Draft) -> Iterator[Problem]:
    """A `notify` that can't run or has no kinds, a memory limit without memory, evidence without a number."""
    yield from _notify_problems(draft)
    unbound = draft.where(lambda one: one.settings.watch.memory and not one.settings.resources.request.memory)
    message = "`limits.memory: enforce`: {} asks for no memory"
    yield from draft.for_combos(
        unbound, draft.set_at("limits", "memory"), message, "such as `resources: {memory: 16 GiB}`"
    )
    stepless = draft.where(
        lambda one: one.settings.evidence.steps and not (one.settings.progress or ProgressKeys()).pattern
    )
    hint = r"name the lines that count steps: `progress: {pattern: 'step=(\d+)'}`"
    yield from draft.for_combos(stepless, draft.set_at("evidence", "steps"), "`evidence.steps` without a pattern", hint)
    counting = draft.where(lambda one: PLANNED in one.settings.evidence.line and not one.settings.episodes)
    message = f"`evidence.line` uses {PLANNED}, but there is no number of episodes for {{}}"
    yield from draft.for_combos(counting, draft.set_at("evidence", "line"), message, "set it, such as `episodes: 100`")


def _notify_problems(draft: Draft) -> Iterator[Problem]:
    notify = draft.file.notify
    if notify is None or "notify" in draft.broken:
        return
    if notify.command is None:
        message = "`notify` without a `command`"
        yield draft.at_value(("notify",), message, "such as `command: python tell_me.py`")
    else:
        yield from draft.checked(("notify", "command"), "`notify`", _check_unfilled, notify.command)
    if not notify.on:
        yield draft.at_value(("notify", "on"), "`notify.on` is empty", "remove it for all kinds")


def _check_unfilled(command: str) -> None:
    split_command(command)
    for name in placeholders(command):
        hint = "everything is in the JSON on standard input; {{ is a literal {"
        raise CommandError(f"{{{name}}} is not filled here", hint, f"{{{name}}}")


def judging_warnings(draft: Draft) -> Iterator[Problem]:
    nothing = draft.where(
        lambda one: (
            rules_of(one.settings.results).counted and one.settings.evidence.rules == EvidenceRules(records=False)
        )
    )
    message = "`evidence: {records: false}` without other evidence for {}: only the exit code decides"
    hint = "add a `line` of the log or `files`: programs may exit with 0 before their work is done"
    yield from draft.for_combos(nothing, draft.set_at("evidence", "records"), message, hint)
    yield from _retry_warnings(draft)
    silent = draft.where(
        lambda one: one.settings.limits.stall_after and one.settings.progress and one.settings.progress.silent
    )
    message = "`stall_after` for {}, but `progress: {silent: true}` says that it prints nothing for long"
    hint = "make it longer than such a session takes, or set `stall_after: 0` for it in `overrides`"
    yield from draft.for_combos(silent, draft.set_at("limits", "stall_after"), message, hint)


def _retry_warnings(draft: Draft) -> Iterator[Problem]:
    named = draft.file.retry or {}
    for failure in (one for one in _OF_THE_POLICY if one in named and named[one].times):
        message = (
            f"`retry.{failure}`: the policy may cause the failure; repeating episodes until they end biases the success"
            " rate"
        )
        hint = "leave it out if you can; the report says which episodes took more than one attempt"
        yield draft.at_key(("retry", failure.value), message, hint)
