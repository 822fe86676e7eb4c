"""The keys `files`, `workdir`, `launcher` and `container`: the surroundings of a session's program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

from comborun.errors import Problem, UserError
from comborun.grid.axes import Combo
from comborun.grid.commands import Use, check_filled
from comborun.grid.shapes import ONE_OR_MANY, OR_JUST_NONE, Keys, key, or_just
from comborun.grid.values import (
    TEXT,
    Line,
    Pattern,
    Positive,
    Reads,
    Text,
    Workdir,
    line_of,
    matching,
    one_of,
    scalar_of,
)
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar
from comborun.model.command import FileText, JsonTree, Number, check_arguments, launched, placeholders, split_command
from comborun.model.resources import RUNTIMES, Runtime

if TYPE_CHECKING:
    from comborun.grid.draft import Draft, Path
    from comborun.grid.model import SettingKeys

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_MOUNT = re.compile(r"(?P<host>[^:]+):(?P<inside>/[^:]*)(:(ro|rw))?")
_LAUNCHERS = ("torchrun",)
_SEVERAL_GPUS = ("cvd", "both")
"""pin modes in which rank r finds its GPU under the number r"""


def _file_text(tree: object) -> FileText:
    if isinstance(tree, (Map, Items)):
        return FileText(tree=_json(tree))
    text = scalar_of(tree).text
    if "\0" in text:
        raise UserError("a NUL character, which a text file can't have", "remove the escape")
    return FileText(text if text.endswith("\n") or not text else f"{text}\n")


def _json(tree: object) -> JsonTree:
    match tree:
        case Map():
            return {name: _json(value) for name, value in tree.items()}
        case Items():
            return tuple(_json(value) for value in tree)
        case Scalar(kind=Kind.NULL):
            return Number("null")
        case Scalar(kind=Kind.BOOLEAN):
            return Number(tree.text.lower())
        case Scalar(kind=Kind.NUMBER):
            return _number(tree)
        case _:
            return scalar_of(tree).text


def _number(scalar: Scalar) -> Number:
    text = scalar.text.removeprefix("+")
    if not _JSON_NUMBER.fullmatch(text):
        hint = "write it in plain decimals, or in quotes"
        raise UserError(f"`{scalar.text}` is a number that JSON can't write in this form", hint)
    return Number(text)


def _mount(tree: object) -> str:
    text = line_of(tree)
    if ":" not in text and text.startswith(("/", "~/")) and text not in {"/", "~/"}:
        return text.rstrip("/")
    match = _MOUNT.fullmatch(text)
    if not match or not match["host"].startswith(("/", "~/")):
        hint = "~/data:/data, /data:/data:ro, or ~/data for the same place inside"
        raise UserError(f"`{text}` is not a folder of the host and its path in the container", hint)
    return text


FileName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*",
        "can't be the name of a file here",
        "letters, digits, _ and -, with dots between them, such as job.json: {file.job.json} names it",
    ),
]
FileBody = Annotated[Any, Reads(_file_text, {"type": ["string", "object", "array", "number"]})]
"""a FileText, but typed as Any: pydantic does not finish with its recursive tree"""
Files = dict[FileName, FileBody]


class WorkdirKeys(Keys):
    folder: Workdir | None = key("the folder itself; may be written without this key")
    link_from: Workdir | None = key("every attempt runs in its own folder, with links to all entries of this folder")
    exclude: Annotated[tuple[Pattern, ...], ONE_OR_MANY] = key("entries of `link_from` that get no link", ())


class LauncherKeys(Keys):
    name: Annotated[str, one_of("launcher", _LAUNCHERS)] = key(
        "torchrun: torch's launcher, which starts the command once on each GPU", "torchrun"
    )
    processes: Positive | None = key("number of processes; else one for each GPU")
    arguments: Text = key("more options of the launcher", "")
    program: Text = key("the command that starts it, instead of `python -m torch.distributed.run`", "")

    def command(self, command: str) -> str:
        """The command after the launcher, still with placeholders. Raises CommandError."""
        return launched(command, self.processes, self.arguments, self.program)


class ContainerKeys(Keys):
    image: Line | None = key("the image; for apptainer a file or docker://NAME")
    runtime: Annotated[Runtime, one_of("runtime", RUNTIMES)] = key("docker or apptainer", "docker")
    mounts: Annotated[tuple[Annotated[str, Reads(_mount, {"type": "string"})], ...], ONE_OR_MANY] = key(
        "folders of the host, HOST:INSIDE or HOST:INSIDE:ro, besides the run directory", ()
    )
    options: Text = key("more options of the runtime", "")


WorkdirOr = Annotated[WorkdirKeys, or_just("folder", TEXT)]
LauncherOr = Annotated[Annotated[LauncherKeys, or_just("name", {"enum": list(_LAUNCHERS)})] | None, OR_JUST_NONE]
ContainerOr = Annotated[Annotated[ContainerKeys, or_just("image", TEXT)] | None, OR_JUST_NONE]


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
        use = Use((*path, "files", name), "", users)
        for asked in dict.fromkeys(content.asks):
            yield from draft.checked(use.path, f"`files`: {name}", check_filled, draft, use, asked)


def _launcher_problems(draft: Draft) -> Iterator[Problem]:
    combos = draft.where(lambda combo: combo.settings.launcher)
    for settings in _settings_of(combos):
        if settings.command and settings.launcher:
            yield from draft.checked(("launcher",), "`launcher`", settings.launcher.command, settings.command)
    idle = [combo for combo in combos if not combo.settings.ranks]
    hint = "`resources: {gpus: N}`, one for each; or `launcher: {processes: N}`"
    yield from draft.for_combos(idle, ("launcher",), "`launcher`: {} asks for no GPU: how many processes?", hint)
    pinned = [combo for combo in combos if combo.settings.gpus and combo.settings.pinned not in _SEVERAL_GPUS]
    message = "`launcher`: rank r takes the r-th visible GPU; with this `pin` it may be another session's: {}"
    yield from draft.for_combos(pinned, ("launcher",), message, "`pin: cvd`, the default")


def _container_problems(draft: Draft) -> Iterator[Problem]:
    boxed = [(combo, combo.settings.container) for combo in draft.combos if combo.settings.container]
    imageless = [combo for combo, box in boxed if not box.image]
    yield from draft.for_combos(
        imageless, ("container",), "`container` without an `image` for {}", "`container: {image: NAME}`"
    )
    docked = [combo for combo, box in boxed if box.runtime == "docker" and combo.settings.gpus]
    numbered = [combo for combo in docked if combo.settings.pinned == "device-arg"]
    message = "`pin: device-arg` uses the host's GPU numbers, but in a container they start at 0: {}"
    yield from draft.for_combos(
        numbered, ("container",), message, "`pin: both`: then {gpu} is the number in the container"
    )
    relative = [combo for combo, _ in boxed if not (combo.settings.workdir.folder or "/").startswith(("/", "~"))]
    message = "`workdir` is a folder inside the container, but a relative path for {}"
    yield from draft.for_combos(relative, ("workdir",), message, "write it out: /workspace/...")


def program_warnings(draft: Draft) -> Iterator[Problem]:
    """Ranks that can't share out the episodes evenly."""
    for settings in _settings_of(draft.where(lambda combo: combo.settings.launcher)):
        ranks, episodes = settings.ranks, settings.episodes or 0
        if ranks > 1 and episodes % ranks and "episodes_per_rank" in placeholders(settings.command):
            each = -(-episodes // ranks)
            message = f"`launcher`: {episodes} {settings.unit}s are not a multiple of {ranks} ranks: each runs {each}"
            yield draft.at_key(("launcher",), f"{message}, {each * ranks} in all", f"`episodes: {each * ranks}`")


def _settings_of(combos: list[Combo]) -> Iterator[SettingKeys]:
    for _, same in groupby(combos, key=lambda combo: id(combo.settings)):
        yield next(same).settings
