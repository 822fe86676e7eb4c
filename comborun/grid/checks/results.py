"""Checks how sessions are judged, limited and retried: results, progress, evidence, limits, retry, notify."""

from __future__ import annotations

from collections.abc import Iterator

from comborun.errors import Problem
from comborun.grid.draft import Draft, some
from comborun.grid.keys.results import ProgressKeys, naming
from comborun.model.command import CommandError, placeholders, split_command
from comborun.model.judging import EvidenceRules
from comborun.rules.endings.failures import Failure
from comborun.rules.results.counts import PLANNED
from comborun.text import did_you_mean

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
            given = getattr(combo.settings.rules, kind)
            path = draft.set_at("results", kind, combo=combo)
            yield from draft.checked(path, f"`results.{kind}`", naming, given, getattr(combo, kind))


def nominal_problems(draft: Draft) -> Iterator[Problem]:
    if draft.broken & {"results", "overrides", "environments"}:
        return
    names = draft.names["environment"]
    found = {
        draft.set_at("results", "nominal", combo=combo): name
        for combo in draft.combos
        if (name := combo.settings.rules.nominal) and name not in names
    }
    for path, name in found.items():
        message = f"`results.nominal`: there is no environment `{name}`"
        yield draft.at_value(path, message, did_you_mean(name, names) or f"one of {', '.join(names)}")


def count_warnings(draft: Draft) -> Iterator[Problem]:
    if uncounted := draft.where(lambda it: it.rules.files and not it.episodes and not it.evidence.line):
        where = "" if len(uncounted) == len(draft.combos) else f" for {some(combo.label for combo in uncounted)}"
        message = f"no `episodes`{where}: only the exit code says whether a session did all its work"
        yield draft.at_key((), message, "set their number, such as `episodes: 100`")


def judging_problems(draft: Draft) -> Iterator[Problem]:
    """A `notify` that can't run or has no kinds, a memory limit without memory, evidence without a number."""
    yield from _notify_problems(draft)
    yield from draft.wrong(
        lambda it: it.watch.memory and not it.resources.request.memory,
        draft.set_at("limits", "memory"),
        "`limits.memory: enforce`: {} asks for no memory",
        "such as `resources: {memory: 16 GiB}`",
    )
    yield from draft.wrong(
        lambda it: it.evidence.steps and not (it.progress or ProgressKeys()).pattern,
        draft.set_at("evidence", "steps"),
        "`evidence.steps` without a pattern",
        r"name the lines that count steps: `progress: {pattern: 'step=(\d+)'}`",
    )
    yield from draft.wrong(
        lambda it: PLANNED in it.evidence.line and not it.episodes,
        draft.set_at("evidence", "line"),
        f"`evidence.line` uses {PLANNED}, but there is no number of episodes for {{}}",
        "set it, such as `episodes: 100`",
    )


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
    yield from draft.wrong(
        lambda it: it.rules.counted and it.evidence.rules == EvidenceRules(records=False),
        draft.set_at("evidence", "records"),
        "`evidence: {records: false}` without other evidence for {}: only the exit code decides",
        "add a `line` of the log or `files`: programs may exit with 0 before their work is done",
    )
    yield from draft.wrong(
        lambda it: it.limits.stall_after and it.progress and it.progress.silent,
        draft.set_at("limits", "stall_after"),
        "`stall_after` for {}, but `progress: {silent: true}` says that it prints nothing for long",
        "make it longer than such a session takes, or set `stall_after: 0` for it in `overrides`",
    )
    for failure, keys in (draft.file.retry or {}).items():
        if failure in _OF_THE_POLICY and keys.times:
            why = "the policy may cause the failure; repeating episodes until they end biases the success rate"
            hint = "leave it out if you can; the report says which episodes took more than one attempt"
            yield draft.at_key(("retry", failure.value), f"`retry.{failure}`: {why}", hint)
