"""Checks on what is put around a command: files that nobody reads, launchers that can't start it, and folders and
containers that contradict another key.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from comborun.command import FILE, CommandError, check_arguments, launched, placeholders, split_command
from comborun.errors import Problem
from comborun.grid.checks.commands import Use, check_filled, some, uses
from comborun.grid.combos import Combo
from comborun.grid.draft import Draft, Path
from comborun.grid.model import Layer

_SEVERAL_GPUS = ("cvd", "both")
"""pin modes in which rank r finds the r-th GPU that was granted under the number r"""


def around_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    for path, layer in draft.layers:
        yield from _layer_problems(draft, path, layer)
    yield from _file_problems(draft, combos)
    if not draft.broken & {"launcher", "overrides", "command", "resources", "pin"}:
        yield from _launcher_problems(draft, [combo for combo in combos if combo.settings.launcher])
    if not draft.broken & {"container", "overrides", "pin"}:
        yield from _container_problems(draft, [combo for combo in combos if combo.settings.container])


def around_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    read = {name for use in uses(draft, combos) for name in placeholders(use.text)}
    read |= {name for combo in combos for text in combo.settings.variables.values() for name in placeholders(text)}
    setups = " ".join([draft.file.setup, *(entry.setup for entry in draft.file.overrides)])
    for path, layer in draft.layers:
        for name in layer.files:
            if FILE + name not in read and "COMBORUN_FILES" not in setups:
                message = f"no command reads the file `{name}`"
                place = draft.source.key_place(*path, "files", name)
                if not place.file:
                    yield draft.source.problem(place, message, f"{{file.{name}}} in the command is its path")
    for combo in _first_each([combo for combo in combos if combo.settings.launcher]):
        ranks = ranks_of(combo)
        episodes = combo.settings.episodes or 0
        if ranks > 1 and episodes % ranks and "episodes_per_rank" in placeholders(combo.settings.command):
            each = -(-episodes // ranks)
            message = f"{episodes} {combo.settings.unit}s are no multiple of {ranks} ranks: each makes {each}"
            yield draft.at_key(
                ("launcher",), f"`launcher`: {message}, {each * ranks} in all", f"`episodes: {each * ranks}`"
            )


def ranks_of(combo: Combo) -> int:
    """Processes of a combo's launcher; 0 without one."""
    launcher = combo.settings.launcher
    return (launcher.processes or combo.settings.gpus) if launcher else 0


def _layer_problems(draft: Draft, path: Path, layer: Layer) -> Iterator[Problem]:
    workdir, place = layer.workdir, draft.source.key_place(*path, "workdir")
    if workdir.folder and workdir.link_from:
        yield draft.source.problem(place, "`workdir`: `folder` and `link_from`", "leave one of them")
    elif workdir.exclude and not workdir.link_from:
        yield draft.source.problem(place, "`workdir`: `exclude` without `link_from`", "what would be linked?")
    for key, text in _option_texts(layer):
        try:
            words = split_command(text) if text else ()
            if key == ("launcher", "arguments"):
                check_arguments(text) if words else None
        except CommandError as error:
            yield draft.source.problem(
                draft.source.place(*path, *key), f"`{'.'.join(key)}`: {error.message}", error.hint
            )


def _option_texts(layer: Layer) -> Iterator[tuple[tuple[str, str], str]]:
    launcher, container = layer.launcher, layer.container
    if launcher:
        yield ("launcher", "arguments"), launcher.arguments
        yield ("launcher", "program"), launcher.program
    if container:
        yield ("container", "options"), container.options


def _file_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Placeholders in files that nothing fills for a combo that gets the file."""
    for path, layer in draft.layers:
        for name, content in layer.files.items():
            users = tuple(combo for combo in combos if combo.settings.files.get(name) is content)
            place_of = (*path, "files", name)
            for asked in dict.fromkeys(content.asks):
                try:
                    check_filled(draft, Use(place_of, "", users), asked)
                except CommandError as error:
                    place = draft.source.place(*place_of)
                    yield draft.source.problem(place, f"`files`: {name}: {error.message}", error.hint)


def _launcher_problems(draft: Draft, combos: list[Combo]) -> Iterator[Problem]:
    at = ("launcher",)
    for combo in _first_each(combos):
        try:
            if combo.settings.command and combo.settings.launcher:
                launched(combo.settings.command, combo.settings.launcher)
        except CommandError as error:
            yield draft.at_key(at, f"`launcher`: {error.message}", error.hint)
    if idle := [combo.label for combo in combos if not ranks_of(combo)]:
        message = f"`launcher`: {some(idle)} asks for no GPU: how many processes?"
        yield draft.at_key(at, message, "`resources: {gpus: N}`, one for each; or `launcher: {processes: N}`")
    if pinned := [combo.label for combo in combos if combo.settings.gpus and combo.settings.pin not in _SEVERAL_GPUS]:
        message = (
            f"`launcher`: rank r takes the r-th GPU that it sees, and with `pin` so that is another's: {some(pinned)}"
        )
        yield draft.at_key(at, message, "`pin: cvd`, the default")


def _container_problems(draft: Draft, combos: list[Combo]) -> Iterator[Problem]:
    if imageless := [
        combo.label for combo in combos if combo.settings.container and not combo.settings.container.image
    ]:
        yield draft.at_key(
            ("container",), f"`container` without an `image` for {some(imageless)}", "`container: {image: NAME}`"
        )
    docked = [combo for combo in combos if combo.settings.container and combo.settings.container.runtime == "docker"]
    if numbered := [combo.label for combo in docked if combo.settings.gpus and combo.settings.pin == "device-arg"]:
        message = f"`pin: device-arg` counts the host's GPUs, and in a container they count from 0: {some(numbered)}"
        yield draft.at_key(("container",), message, "`pin: both`, and {gpu} counts within")
    relative = [
        combo.label for combo in combos if combo.settings.workdir and not combo.settings.workdir.startswith(("/", "~"))
    ]
    if relative:
        message = f"`workdir` is a folder inside the container, and relative for {some(relative)}"
        yield draft.at_key(("workdir",), message, "write it out: /workspace/...")


def _first_each(combos: list[Combo]) -> Iterator[Combo]:
    """One combo for each set of settings, which many share."""
    for _, same in groupby(combos, key=lambda combo: id(combo.settings)):
        yield next(same)
