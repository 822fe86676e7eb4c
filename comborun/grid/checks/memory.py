"""Checks on `resources`: GPU memory for who has no GPU."""

from __future__ import annotations

from collections.abc import Iterator

from comborun.errors import Problem
from comborun.grid.checks.commands import some
from comborun.grid.combos import Combo
from comborun.grid.draft import Draft, Path

_HINT = "`gpus: 1` beside it, since it is memory of each GPU that is granted"


def memory_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """`gpu_memory` where nobody is granted a GPU, of the sessions or of a server."""
    lacking = [] if _meant(draft) else _lacking(combos)
    if lacking and not any(combo.settings.gpus or combo.settings.placement for combo in combos):
        message = f"`resources` has `gpu_memory` and no `gpus`: {some(lacking)} would get no GPU at all"
        yield draft.at_key(_setter(draft), message, _HINT)
    for name, keys in draft.file.servers.items():
        if keys.resources.gpu_memory and not keys.resources.gpus and keys.per != "gpu":
            message = f"`resources` has `gpu_memory` and no `gpus`: the server `{name}` would get no GPU at all"
            yield draft.at_key(("servers", name, "resources", "gpu_memory"), message, _HINT)


def memory_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """The same, where other combos are granted some: it may be meant."""
    if not _meant(draft) and (lacking := _lacking(combos)):
        message = f"`gpu_memory` without `gpus`: {some(lacking)} gets no GPU"
        yield draft.at_key(_setter(draft), message, "`gpus: 1`, or `gpu_memory: 0` where that is meant")


def _meant(draft: Draft) -> bool:
    """`gpus: 0` in so many words: a program of a preset that is to do without."""
    return "gpus" in draft.file.resources.model_fields_set and not draft.file.resources.gpus


def _lacking(combos: tuple[Combo, ...]) -> list[str]:
    settings = ((combo.label, combo.settings) for combo in combos)
    return [label for label, one in settings if one.request.gpu_memory and not one.gpus and not one.placement]


def _setter(draft: Draft) -> Path:
    """Where the first `gpu_memory` stands; of a preset the file itself."""
    for path, layer in draft.layers:
        if layer.resources.gpu_memory:
            return (*path, "resources", "gpu_memory")
    return ()
