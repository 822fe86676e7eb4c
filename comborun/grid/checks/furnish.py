"""Checks on what stands around sessions: displays by GPU without a GPU, and commands that don't name theirs."""

from __future__ import annotations

from collections.abc import Iterator

from comborun.errors import Problem
from comborun.grid.checks.commands import some
from comborun.grid.combos import Combo
from comborun.grid.draft import Draft, Path

_NAMES_ITS_GPU = ("{gpu}", "{gpus}", "COMBORUN_GPU")
_TOLD = ("device-arg", "both")


def furnish_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """A display for each GPU, for sessions without one."""
    without = [
        combo.label
        for combo in combos
        if combo.settings.display
        and combo.settings.display.by_gpu
        and not (combo.settings.gpus or combo.settings.placement)
    ]
    if without and "display" not in draft.broken:
        message = f"`display` goes by the GPU, and {some(without)} asks for none"
        yield draft.at_key(
            _setter(draft, "display"), message, '`resources: {gpus: 1}`, or one display: `display: ":1"`'
        )


def furnish_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """A pin mode that leaves it to the command, and a command that says nothing."""
    silent = [
        combo.label for combo in combos if combo.settings.gpus and combo.settings.pin in _TOLD and not _names(combo)
    ]
    if silent:
        message = f"`pin`: the command is to say which GPU it takes, and that of {some(silent)} does not"
        yield draft.at_key(
            _setter(draft, "pin"), message, "such as `--device cuda:{gpu}`; `pin: cvd` needs no argument"
        )


def _names(combo: Combo) -> bool:
    settings = combo.settings
    texts = (settings.command, settings.setup, *settings.variables.values(), *map(str, settings.files.values()))
    return any(name in text for name in _NAMES_ITS_GPU for text in texts)


def _setter(draft: Draft, key: str) -> Path:
    """Where a key stands, last in the overrides and else at the top."""
    return next(((*path, key) for path, layer in reversed(draft.layers) if key in layer.model_fields_set), (key,))
