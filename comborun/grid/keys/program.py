"""The keys `files`, `workdir`, `launcher` and `container`: the surroundings of a session's program."""

from __future__ import annotations

import re
from typing import Annotated, Any

from comborun.errors import UserError
from comborun.grid.keys.shapes import ONE_OR_MANY, OR_JUST_NONE, Keys, OrJust, key
from comborun.grid.keys.values import (
    Line,
    OneOf,
    Pattern,
    Positive,
    Reads,
    Text,
    Workdir,
    line_of,
    matching,
    scalar_of,
)
from comborun.grid.yaml_tree import Items, Map, Scalar, ScalarKind
from comborun.model.command import FileText, JsonTree, Number, launched
from comborun.model.resources import Runtime

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_MOUNT = re.compile(r"(?P<host>[^:]+):(?P<inside>/[^:]*)(:(ro|rw))?")
_LAUNCHERS = ("torchrun",)


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
        case Scalar(kind=ScalarKind.NULL):
            return Number("null")
        case Scalar(kind=ScalarKind.BOOLEAN):
            return Number(tree.text.lower())
        case Scalar(kind=ScalarKind.NUMBER):
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
    name: Annotated[str, OneOf("launcher", words=_LAUNCHERS)] = key(
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
    runtime: Annotated[Runtime, OneOf("runtime")] = key("docker, podman or apptainer", "docker")
    mounts: Annotated[tuple[Annotated[str, Reads(_mount)], ...], ONE_OR_MANY] = key(
        "folders of the host, HOST:INSIDE or HOST:INSIDE:ro, besides the run directory", ()
    )
    options: Text = key("more options of the runtime", "")


WorkdirOr = Annotated[WorkdirKeys, OrJust("folder")]
LauncherOr = Annotated[Annotated[LauncherKeys, OrJust("name")] | None, OR_JUST_NONE]
ContainerOr = Annotated[Annotated[ContainerKeys, OrJust("image")] | None, OR_JUST_NONE]
