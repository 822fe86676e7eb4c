"""Checks on what a grid says about surviving: what can't work, and what looks like a mistake."""

from __future__ import annotations

from collections.abc import Iterator

from comborun.command import CommandError, placeholders, split_command
from comborun.errors import Problem
from comborun.grid.checks.commands import some
from comborun.grid.combos import Combo, matching
from comborun.grid.draft import Draft, Path
from comborun.judging import PLANNED
from comborun.rules.words import Failure
from comborun.text import listed

SHORT_SILENCE = 60
"""seconds; loading a scene or compiling its shaders easily takes as long"""
_OF_THE_POLICY = (Failure.ERROR, Failure.NO_RESULT)


def survival_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """A `notify` that can't be run or is told of nothing, classes of failures without a pattern, lines that count
    what is not planned.
    """
    yield from _notify_problems(draft)
    yield from _uncounted(draft, combos)
    for path, layer in draft.layers:
        for name, patterns in layer.failures.items():
            if not patterns and "failures" not in draft.broken:
                place = draft.source.place(*path, "failures", name)
                yield draft.source.problem(place, f"`failures.{name}` is empty", "name a pattern, or remove the line")


def _uncounted(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    lines = [combo.label for combo in combos if PLANNED in combo.settings.evidence.line and not combo.settings.episodes]
    if lines:
        message = f"`evidence.line` counts {PLANNED}, and {some(lines)} has no number of them"
        yield draft.at_key(_setter(draft, "evidence", "line"), message, "say how many, such as `episodes: 100`")


def _notify_problems(draft: Draft) -> Iterator[Problem]:
    notify = draft.file.notify
    if notify is None or "notify" in draft.broken:
        return
    if notify.command is None:
        place = draft.source.place("notify")
        yield draft.source.problem(place, "`notify` without a `command`", "such as `command: python tell_me.py`")
    elif found := _command_problem(notify.command):
        piece = "" if found.text == notify.command else found.text
        yield draft.at_piece(("notify", "command"), piece, f"`notify`: {found.message}", found.hint)
    if not notify.on:
        yield draft.source.problem(
            draft.source.place("notify", "on"), "`notify.on` is empty", "remove it for all kinds"
        )


def _command_problem(command: str) -> CommandError | None:
    try:
        split_command(command)
    except CommandError as error:
        return error
    for name in placeholders(command):
        hint = "the run and all else is in the JSON on standard input; {{ is a literal {"
        return CommandError(f"{{{name}}} is not filled here", hint, f"{{{name}}}")
    return None


def survival_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """What is allowed and still looks like a mistake."""
    yield from _evidence_warnings(draft, combos)
    yield from _retry_warnings(draft)
    for path, layer in draft.layers:
        if 0 < layer.limits.stall_after < SHORT_SILENCE:
            message = f"`stall_after`: {layer.limits.stall_after} s are short: programs take that long to start"
            yield draft.at_key((*path, "limits", "stall_after"), message, "1 min at least, 20 min for most simulators")
    silent = [combo.label for combo in combos if combo.settings.progress.silent and combo.settings.watch.stall_s]
    if silent:
        message = f"`stall_after` for {some(silent)}, which `progress: {{silent: true}}` says to print nothing"
        hint = "make it longer than such a session takes, or say `stall_after: 0` for it in `overrides`"
        yield draft.at_key(_setter(draft, "limits", "stall_after"), message, hint)


def _evidence_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    for path, layer in draft.layers:
        asked = "records" in layer.evidence.model_fields_set and layer.evidence.records
        without = [combo.label for combo in combos if asked and _applies(draft, path, combo) and not _records(combo)]
        if without:
            message = f"`evidence`: records are asked for, and {some(without)} has none (`results: none`)"
            yield draft.at_key((*path, "evidence", "records"), message, "say which files they are in, or remove it")
    nothing = [combo.label for combo in combos if _records(combo) and _shows_nothing(combo)]
    if nothing:
        message = f"`evidence: {{records: false}}` names nothing else for {some(nothing)}: the exit code decides alone"
        hint = "name a `line` of the log or `files`; programs end with 0 without having done their work"
        yield draft.at_key(_setter(draft, "evidence", "records"), message, hint)


def _applies(draft: Draft, path: Path, combo: Combo) -> bool:
    return not path or path[1] in matching(draft.file, combo.policy, combo.environment)


def _records(combo: Combo) -> bool:
    return combo.settings.results.lines


def _shows_nothing(combo: Combo) -> bool:
    evidence = combo.settings.evidence
    return not (evidence.records or evidence.line or evidence.files)


def _retry_warnings(draft: Draft) -> Iterator[Problem]:
    named = draft.file.retry or {}
    biased = [failure for failure in _OF_THE_POLICY if failure in named and named[failure].times]
    for failure in biased:
        message = (
            f"`retry.{failure}`: a program that fails may fail because of the policy; episodes that are tried until"
            " they end bias the success rate"
        )
        hint = "leave it out where that is possible; the report says which episodes took more than one attempt"
        yield draft.at_key(("retry", failure.value), message, hint)
    if draft.file.limits.attempts == 1 and (some_times := [name for name, keys in named.items() if keys.times]):
        message = f"`attempts: 1` allows no second start, so `retry` does nothing for {listed(some_times)}"
        yield draft.at_key(("limits", "attempts"), message, "remove one of the two")


def _setter(draft: Draft, section: str, key: str) -> Path:
    """Where a key of a section stands, first at the top and then in the overrides."""
    for path, layer in draft.layers:
        if key in getattr(layer, section).model_fields_set:
            return (*path, section, key)
    return (section,)
