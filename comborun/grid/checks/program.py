"""Checks what surrounds a program: files, launcher, container, GPUs, displays, secrets, and where its components run.

Mistakes in a placement that RLinf would refuse at its start are reported before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING

from comborun.errors import Problem, UserError
from comborun.grid.checks.commands import CommandUse, check_filled, uses
from comborun.grid.keys.program import ContainerKeys, LauncherKeys, component_names
from comborun.model.command import check_arguments, placeholders, split_command
from comborun.model.placement import NODES
from comborun.model.resources import OCI_RUNTIMES
from comborun.text import did_you_mean, several

if TYPE_CHECKING:
    from comborun.grid.combos import Combo
    from comborun.grid.draft import Draft, Path
    from comborun.grid.keys.grid_file import SettingKeys

_SEVERAL_GPUS = ("cvd", "both")
"""pin modes in which rank r finds its GPU under the number r"""
ENVIRONMENTS = "env"
"""RLinf's component with the simulators"""


def program_problems(draft: Draft) -> Iterator[Problem]:
    """Files without values, launchers that can't start the command, folders and containers that contradict the rest."""
    for path, layer in draft.layers:
        yield from _layer_problems(draft, path, layer)
    if not draft.broken & {"launcher", "overrides", "command", "resources", "pin"}:
        yield from _launcher_problems(draft)
    if not draft.broken & {"container", "overrides", "pin"}:
        yield from _container_problems(draft)


def _layer_problems(draft: Draft, path: Path, layer: SettingKeys) -> Iterator[Problem]:
    workdir = layer.workdir
    if workdir.folder and workdir.link_from:
        yield draft.at_key((*path, "workdir"), "`workdir`: `folder` and `link_from`", "leave one of them")
    elif workdir.exclude and not workdir.link_from:
        yield draft.at_key(
            (*path, "workdir"), "`workdir`: `exclude` without `link_from`", "name the folder whose entries are linked"
        )
    launcher, container = layer.launcher or LauncherKeys(), layer.container or ContainerKeys()
    for section, name, text, check in (
        ("launcher", "arguments", launcher.arguments, check_arguments),
        ("launcher", "program", launcher.program, split_command),
        ("container", "options", container.options, split_command),
    ):
        if text:
            yield from draft.checked((*path, section, name), f"`{section}.{name}`", check, text)
    for name, content in layer.files.items():
        users = tuple(combo for combo in draft.combos if combo.settings.files.get(name) is content)
        use = CommandUse((*path, "files", name), "", users)
        for asked in dict.fromkeys(content.asks):
            yield from draft.checked(use.path, f"`files`: {name}", check_filled, draft, use, asked)


def _launcher_problems(draft: Draft) -> Iterator[Problem]:
    combos = draft.where(lambda it: it.launcher)
    for settings in _settings_of(combos):
        if settings.command and settings.launcher:
            yield from draft.checked(("launcher",), "`launcher`", settings.launcher.command, settings.command)
    yield from draft.wrong(
        lambda it: it.launcher and not it.ranks,
        ("launcher",),
        "`launcher`: {} asks for no GPU: how many processes?",
        "`resources: {gpus: N}`, one for each; or `launcher: {processes: N}`",
    )
    yield from draft.wrong(
        lambda it: it.launcher and it.gpus and it.pinned not in _SEVERAL_GPUS,
        ("launcher",),
        "`launcher`: rank r takes the r-th visible GPU; with this `pin` it may be another session's: {}",
        "`pin: cvd`, the default",
    )


def _container_problems(draft: Draft) -> Iterator[Problem]:
    yield from draft.wrong(
        lambda it: it.container and not it.container.image,
        ("container",),
        "`container` without an `image` for {}",
        "`container: {image: NAME}`",
    )
    yield from draft.wrong(
        lambda it: it.container and it.container.runtime in OCI_RUNTIMES and it.gpus and it.pinned == "device-arg",
        ("container",),
        "`pin: device-arg` uses the host's GPU numbers, but in a container they start at 0: {}",
        "`pin: both`: then {gpu} is the number in the container",
    )
    yield from draft.wrong(
        lambda it: it.container and not (it.workdir.folder or "/").startswith(("/", "~")),
        ("workdir",),
        "`workdir` is a folder inside the container, but a relative path for {}",
        "write it out: /workspace/...",
    )


def program_warnings(draft: Draft) -> Iterator[Problem]:
    """Ranks that can't share out the episodes evenly."""
    for settings in _settings_of(draft.where(lambda it: it.launcher)):
        ranks, episodes = settings.ranks, settings.episodes or 0
        if ranks > 1 and episodes % ranks and "episodes_per_rank" in placeholders(settings.command):
            each = -(-episodes // ranks)
            message = f"`launcher`: {episodes} {settings.unit}s are not a multiple of {ranks} ranks: each runs {each}"
            yield draft.at_key(("launcher",), f"{message}, {each * ranks} in all", f"`episodes: {each * ranks}`")


def _settings_of(combos: list[Combo]) -> Iterator[SettingKeys]:
    for _, same in groupby(combos, key=lambda combo: id(combo.settings)):
        yield next(same).settings


def placement_problems(draft: Draft) -> Iterator[Problem]:
    """Components that are named twice or never, counts without a value, uneven copies, pin modes that renumber GPUs."""
    known = {name for combo in draft.combos for name, _ in combo.settings.placed}
    for path, layer in draft.layers:
        yield from _twice(draft, path, layer)
        for name in layer.components:
            if known and name not in known and not draft.source.key_place(*path, "components", name).file:
                message = f"`placement` has no component `{name}`"
                yield draft.at_key((*path, "components", name), message, did_you_mean(name, known))
    if draft.broken & {"placement", "components", "overrides", "policies", "environments"}:
        return
    placed = draft.where(lambda it: it.placement)
    for combo in placed:
        for name, needs in combo.settings.components.items():
            for count in ("copies", "videos"):
                label = f"`{count}` of `{name}`"
                yield from draft.checked(("components", name), label, combo.number, getattr(needs, count))
    yield from _uneven(draft, placed)
    yield from draft.wrong(
        lambda it: it.placement and it.pinned != "none",
        ("placement",),
        "`placement` uses the host's GPU numbers, but with this `pin` a session sees its own GPUs from 0: {}",
        "`pin: none`: the program finds its GPUs by the placement",
    )


def placement_warnings(draft: Draft) -> Iterator[Problem]:
    """Placements that are not passed to the program, and simulators on GPUs where they are known to hang."""
    for use in uses(draft):
        placed = "placement" in placeholders(use.text) or use.key != "command"
        untold = [combo for combo in use.combos if combo.settings.placement and not placed]
        message = "`command` has no {placement}: the program of {} is not told where to run"
        yield from draft.for_combos(
            untold, use.path, message, "put {placement} among its arguments: it becomes Hydra's overrides"
        )
    message = f"`placement`: {ENVIRONMENTS} does not begin with GPU 0 ({{}}), where Isaac Sim is known to hang"
    hint = f'such as {{{ENVIRONMENTS}: "0-1", rollout: "2-3"}} (RLinf/RLinf#756)'
    late = [
        combo
        for combo in draft.combos
        for name, entry in combo.settings.placed
        if name == ENVIRONMENTS and entry.node_group != NODES and entry.processes and 0 not in entry.processes[0]
    ]
    yield from draft.for_combos(late, ("placement",), message, hint)


def _twice(draft: Draft, path: Path, layer: SettingKeys) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for entry in layer.placement:
        for name in component_names(entry):
            if name in first:
                message = f"`placement` places `{name}` twice, which RLinf refuses"
                hint = f"it is in `{first[name]}` already"
                yield draft.at_key((*path, "placement", entry), message, hint)
            first.setdefault(name, entry)


def _uneven(draft: Draft, placed: list[Combo]) -> Iterator[Problem]:
    """Copies that can't be shared out evenly, if the number of processes does not depend on the host."""
    seen: set[tuple[str, int, int]] = set()
    for combo in placed:
        for name, entry in combo.settings.placed:
            needs, processes = combo.settings.components.get(name), len(entry.processes)
            with suppress(UserError):
                copies = combo.number(needs.copies) if needs else 0
                if processes and copies % processes and (name, copies, processes) not in seen:
                    seen.add((name, copies, processes))
                    lower, higher = copies // processes * processes, -(-copies // processes) * processes
                    even = f"{lower} or {higher}" if lower else f"{higher}"
                    message = f"`placement`: {combo.label} has {copies} copies of `{name}` for {processes} processes"
                    hint = f"RLinf gives each process the same number: use {even} copies"
                    yield draft.at_key(("placement",), f"{message} of it", hint)


_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HINT = "add `gpus: 1`: it is the memory of each granted GPU"
_NAMES_ITS_GPU = ("{gpu}", "{gpus}", "COMBORUN_GPU")


def resource_problems(draft: Draft) -> Iterator[Problem]:
    """GPU memory without a GPU, for sessions or a server; more GPUs than may be used."""
    if not draft.where(_has_gpu):
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


def _has_gpu(settings: SettingKeys) -> bool:
    return bool(settings.gpus or settings.placement)


def _lacking(draft: Draft) -> list[Combo]:
    """Combos with GPU memory and no GPU; none if the grid says `gpus: 0` on purpose, for a preset's program."""
    resources = draft.file.resources
    if "gpus" in resources.model_fields_set and not resources.gpus:
        return []
    return draft.where(lambda it: it.resources.gpu_memory and not _has_gpu(it))


def display_problems(draft: Draft) -> Iterator[Problem]:
    """Sessions without a GPU whose display depends on it."""

    if "display" not in draft.broken:
        yield from draft.wrong(
            lambda it: it.display and it.display.by_gpu and not _has_gpu(it),
            draft.set_at("display"),
            "`display` depends on the GPU, but there is none for {}",
            '`resources: {gpus: 1}`, or one display: `display: ":1"`',
        )


def display_warnings(draft: Draft) -> Iterator[Problem]:
    """A pin mode with which the command must name the GPU, and a command that does not."""
    yield from draft.wrong(
        lambda it: it.gpus and it.pinned in {"device-arg", "both"} and not _names_gpu(it),
        draft.set_at("pin"),
        "`pin`: the command must name its GPU, but that of {} does not",
        "such as `--device cuda:{gpu}`; `pin: cvd` needs no argument",
    )


def _names_gpu(settings: SettingKeys) -> bool:
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
