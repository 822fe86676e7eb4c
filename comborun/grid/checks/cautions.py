"""What is allowed in a grid and still looks like a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comborun.command import PLAN_TIME, START_TIME, TELLS_HOW_MANY, fillable, placeholders, split_command
from comborun.errors import Problem
from comborun.grid.checks.around import around_warnings
from comborun.grid.checks.commands import OWNERS, Use, some, uses
from comborun.grid.checks.furnish import furnish_warnings
from comborun.grid.checks.memory import memory_warnings
from comborun.grid.checks.placement import placement_warnings
from comborun.grid.checks.server import server_warnings
from comborun.grid.checks.shard import shard_warnings
from comborun.grid.checks.stopping import stopping_warnings
from comborun.grid.checks.survival import survival_warnings
from comborun.grid.combos import Combo
from comborun.grid.draft import Draft, Path
from comborun.grid.globbed import found_by_glob

_SHELL = re.compile(r"\$(?:\w+|\{\w+[^}]*\}|\()")
_BRACED = re.compile(r"\{\s*([A-Za-z][\w.-]*)\s*\}")
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def warnings_of(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Warnings about a grid that has no mistake."""
    for use in uses(draft, combos):
        yield from _command_warnings(draft, use)
    for path, text in _unfilled_texts(draft):
        for name in placeholders(text):
            if name.partition(".")[0] in {*PLAN_TIME, *START_TIME}:
                if "variables" in path and _filled(draft, text, name):
                    continue
                message = f"`{path[0]}`: {{{name}}} is not filled here"
                yield draft.at_piece(path, f"{{{name}}}", message, "move it into the command")
    yield from _count_warnings(draft, combos)
    yield from _gpu_warnings(draft, combos)
    yield from memory_warnings(draft, combos)
    yield from shard_warnings(draft, combos)
    yield from _include_warnings(draft)
    yield from furnish_warnings(draft, combos)
    yield from placement_warnings(draft, combos)
    yield from server_warnings(draft, combos)
    yield from around_warnings(draft, combos)
    yield from survival_warnings(draft, combos)
    yield from stopping_warnings(draft, combos)


def _command_warnings(draft: Draft, use: Use) -> Iterator[Problem]:
    arguments = split_command(use.text)
    names = {name for text in (use.text, *(combo.settings.told for combo in use.combos)) for name in placeholders(text)}
    counted = [combo for combo in use.combos if combo.settings.unit == "episode" and combo.settings.episodes]
    recorded = [combo for combo in use.combos if combo.settings.results.files]
    if counted and not names & TELLS_HOW_MANY:
        message = "`command` has no {episodes}: how many are run is up to the program"
        hint = f"hand the number over, such as `--episodes {{episodes}}`: {counted[0].settings.episodes} are expected"
        yield draft.at_piece(use.path, "", message, hint)
    if recorded and "output_dir" not in names:
        message = "`command` has no {output_dir}: records are looked for there, and nowhere else"
        yield draft.at_piece(use.path, "", message, "have the program write there, or say `results: none`")
    if "-c" not in arguments and (match := _SHELL.search(use.text)):
        message = f"`command`: {match.group()} stays as it is: no shell reads the command"
        hint = "~/ at the start of an argument is the host's home; else bash -c '...', or setup"
        yield draft.at_piece(use.path, match.group(), message, hint)
    for match in _BRACED.finditer(use.text):
        meant = f"{{{match[1].lower()}}}"
        if match[1].lower() in {*PLAN_TIME, *START_TIME} and match.group() != meant:
            message = f"`command`: {match.group()} is text, not a placeholder"
            yield draft.at_piece(use.path, match.group(), message, f"write {meant}")


def _filled(draft: Draft, text: str, name: str) -> bool:
    """Whether a variable's text has a placeholder that stands for something."""
    kind, _, attribute = name.partition(".")
    known = not attribute or all(
        attribute in entry.attributes for entry in getattr(draft.file, OWNERS.get(kind, "policies"))
    )
    return known and f"{{{name}}}" in fillable(text)


def _unfilled_texts(draft: Draft) -> Iterator[tuple[Path, str]]:
    """Texts that people expect placeholders in, and that have none."""
    for path, layer in draft.layers:
        yield from (((*path, "variables", name), text) for name, text in layer.variables.items())
        yield from (
            ((*path, key), text or "") for key, text in (("workdir", layer.workdir.folder), ("setup", layer.setup))
        )
    for axis in OWNERS.values():
        if found_by_glob(draft.source.root.get(axis)):
            continue  # paths that the host has told, and a brace in one is a brace
        for index, entry in enumerate(getattr(draft.file, axis)):
            yield from (((axis, index, name), text) for name, text in entry.attributes.items())


def _count_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    uncounted = [
        combo.label
        for combo in combos
        if combo.settings.results.files and not combo.settings.episodes and not combo.settings.evidence.line
    ]
    if uncounted:
        where = "" if len(uncounted) == len(combos) else f" for {some(uncounted)}"
        message = f"no `episodes`{where}: whether a session did all its work is up to its exit code"
        yield draft.source.problem(None, message, "say how many each is to do, such as `episodes: 100`")


def _gpu_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    granted = [combo for combo in combos if combo.settings.gpus or combo.settings.placement]
    place = draft.source.key_place("use_gpus")
    if draft.file.use_gpus is not None and not granted:
        yield draft.source.problem(place, "`use_gpus` without a combo that asks for a GPU", "`resources: {gpus: 1}`")
    if any("{gpu" not in combo.settings.variables.get(_VISIBLE, "{gpu") for combo in granted):
        message = f"`variables` sets {_VISIBLE}, and so hides which GPU a session was granted"
        yield draft.source.problem(draft.source.key_place("variables", _VISIBLE), message, "leave it to comborun")


def _include_warnings(draft: Draft) -> Iterator[Problem]:
    if draft.file.include and not draft.file.exclude:
        message = "`include` brings back what `exclude` took out; nothing is excluded, so it does nothing"
        yield draft.source.problem(draft.source.key_place("include"), message, "remove it, or add `exclude`")
