"""Checks what sessions get of the host: GPUs, memory, displays, files, secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from comborun.errors import Problem
from comborun.text import several

if TYPE_CHECKING:
    from comborun.grid.combos import Combo
    from comborun.grid.draft import Draft

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HINT = "add `gpus: 1`: it is the memory of each granted GPU"
_NAMES_ITS_GPU = ("{gpu}", "{gpus}", "COMBORUN_GPU")


def resource_problems(draft: Draft) -> Iterator[Problem]:
    """GPU memory without a GPU, for sessions or a server; more GPUs than may be used."""
    if not any(_has_gpu(combo) for combo in draft.combos):
        message = "`resources` has `gpu_memory` but no `gpus`: no GPU for {}"
        yield from draft.for_combos(_lacking(draft), draft.set_at("resources", "gpu_memory"), message, _HINT)
    for name, keys in draft.file.servers.items():
        if keys.resources.gpu_memory and not keys.resources.gpus and keys.per != "gpu":
            message = f"`resources` has `gpu_memory` but no `gpus`: the server `{name}` would get no GPU"
            yield draft.at_key(("servers", name, "resources", "gpu_memory"), message, _HINT)
    if (allowed := draft.file.use_gpus) is None:
        return
    if len(set(allowed)) < len(allowed):
        yield draft.at_value(("use_gpus",), "`use_gpus` names a GPU twice", "name each once")
    most = max((combo.settings.gpus for combo in draft.combos), default=0)
    if most > len(set(allowed)):
        message = f"a session asks for {several(most, 'GPU')}, and `use_gpus` allows {len(set(allowed))}"
        yield draft.at_value(("use_gpus",), message, "allow more, or lower `resources: {gpus: N}`")


def resource_warnings(draft: Draft) -> Iterator[Problem]:
    """GPU memory of only some combos without a GPU, which may be intended; hidden GPUs."""
    place = draft.set_at("resources", "gpu_memory")
    message = "`gpu_memory` without `gpus`: {} gets no GPU"
    yield from draft.for_combos(_lacking(draft), place, message, "`gpus: 1`, or `gpu_memory: 0` if it needs none")
    if any("{gpu" not in combo.settings.variables.get(_VISIBLE, "{gpu") for combo in draft.where(_has_gpu)):
        message = f"`variables` sets {_VISIBLE}, which hides the GPU that a session was granted"
        yield draft.at_key(("variables", _VISIBLE), message, "leave it to comborun")


def _has_gpu(combo: Combo) -> bool:
    return bool(combo.settings.gpus or combo.settings.placement)


def _lacking(draft: Draft) -> list[Combo]:
    """Combos with GPU memory and no GPU; none if the grid says `gpus: 0` on purpose, for a preset's program."""
    resources = draft.file.resources
    if "gpus" in resources.model_fields_set and not resources.gpus:
        return []
    return draft.where(lambda combo: combo.settings.resources.gpu_memory and not _has_gpu(combo))


def display_problems(draft: Draft) -> Iterator[Problem]:
    """Sessions without a GPU whose display depends on it."""

    def lacks_gpu(combo: Combo) -> bool:
        it = combo.settings
        return bool(it.display and it.display.by_gpu and not (it.gpus or it.placement))

    if "display" not in draft.broken:
        message = "`display` depends on the GPU, but there is none for {}"
        hint = '`resources: {gpus: 1}`, or one display: `display: ":1"`'
        yield from draft.for_combos(draft.where(lacks_gpu), draft.set_at("display"), message, hint)


def display_warnings(draft: Draft) -> Iterator[Problem]:
    """A pin mode with which the command must name the GPU, and a command that does not."""
    pinned = draft.where(lambda combo: combo.settings.gpus and combo.settings.pinned in {"device-arg", "both"})
    unnamed = [combo for combo in pinned if not _names_gpu(combo)]
    message = "`pin`: the command must name its GPU, but that of {} does not"
    hint = "such as `--device cuda:{gpu}`; `pin: cvd` needs no argument"
    yield from draft.for_combos(unnamed, draft.set_at("pin"), message, hint)


def _names_gpu(combo: Combo) -> bool:
    settings = combo.settings
    texts = (settings.command, settings.setup, *settings.variables.values(), *map(str, settings.files.values()))
    return any(name in text for name in _NAMES_ITS_GPU for text in texts)


_NEEDED_BY_ALL = {"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "SCREENDIR", "TMUX_TMPDIR"}
"""names that can't be secrets, since a secret is removed from the environment of all other processes"""


def launch_problems(draft: Draft) -> Iterator[Problem]:
    """Entries that are incomplete, overlap, or contradict another key."""
    first: dict[str, int] = {}
    for index, entry in enumerate(draft.file.sync):
        for name, value, example in (("from", entry.source, "./scripts"), ("to", entry.to, "~/my_project/scripts")):
            if not value and "sync" not in draft.broken:
                message = f"an entry of `sync` without `{name}`"
                yield draft.at_value(("sync", index), message, f"such as `{name}: {example}`")
        target = entry.to.rstrip("/")
        if entry.to and not entry.to.endswith("/") and first.setdefault(target, index) != index:
            hint = "give each a place of its own; a `/` at the end puts a file into that folder"
            yield draft.at_value(("sync", index, "to"), f"two entries of `sync` go to `{entry.to}`", hint)
    for name in _NEEDED_BY_ALL & draft.file.secrets.keys():
        message = f"{name} can't be a secret: sessions need it to start"
        yield draft.at_key(("secrets", name), message, "remove it")
    for path, layer in draft.layers:
        for name in draft.file.secrets.keys() & layer.variables.keys():
            message = f"`{name}` is in `secrets` too"
            yield draft.at_key((*path, "variables", name), message, "keep one of the two")
