"""The keys `files`, `workdir`, `launcher` and `container` of a grid file: what is put around a session's command."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from comborun.command import FileText, JsonTree, Number
from comborun.errors import UserError
from comborun.grid.keys.shapes import Keys, OneOrMany, OrJust, OrNone
from comborun.grid.keys.values import Line, Pattern, Positive, Text, Workdir, guarded, line_of, scalar_of
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar
from comborun.resources import RUNTIMES, Runtime
from comborun.text import did_you_mean

_FILE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LAUNCHERS = ("torchrun",)
_INSIDE = re.compile(r"(?P<host>[^:]+):(?P<inside>/[^:]*)(:(ro|rw))?")


def _file_name(name: str) -> str:
    if not _FILE.fullmatch(name):
        hint = "letters, digits, _ and -, with dots between them, such as job.json: {file.job.json} names it"
        raise UserError(f"`{name}` can't be the name of a file here", hint)
    return name


def _file_text(tree: object) -> FileText:
    if isinstance(tree, (Map, Items)):
        return FileText(tree=_json(tree))
    scalar = scalar_of(tree)
    if "\0" in scalar.text:
        raise UserError("a NUL, which no text file holds", "remove the escape")
    text = scalar.text
    return FileText(text if text.endswith("\n") or not text else f"{text}\n")


def _json(tree: object) -> JsonTree:
    match tree:
        case Map():
            return {key: _json(value) for key, value in tree.items()}
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
    """As it was written, where JSON has it so."""
    text = scalar.text.removeprefix("+")
    if not _NUMBER.fullmatch(text):
        raise UserError(
            f"`{scalar.text}` is a number that JSON does not have so", "write it in plain decimals, or in quotes"
        )
    return Number(text)


def _launcher(tree: object) -> str:
    word = line_of(tree)
    if word not in _LAUNCHERS:
        raise UserError(f"there is no launcher `{word}`", did_you_mean(word, _LAUNCHERS))
    return word


def _runtime(tree: object) -> str:
    word = line_of(tree)
    if word in RUNTIMES:
        return word
    raise UserError(f"there is no runtime `{word}`", did_you_mean(word, RUNTIMES))


def _mount(tree: object) -> str:
    text = line_of(tree)
    if ":" not in text and text.startswith(("/", "~/")) and text not in {"/", "~/"}:
        return text.rstrip("/")
    match = _INSIDE.fullmatch(text)
    if not match or not match["host"].startswith(("/", "~/")):
        hint = "~/data:/data, /data:/data:ro, or ~/data for the same place inside"
        raise UserError(f"`{text}` is no folder of the host and its place in the container", hint)
    return text


FileName = Annotated[str, AfterValidator(guarded(_file_name))]
FileBody = Annotated[
    Any,  # a FileText: pydantic would look into its tree, which has no end
    PlainValidator(guarded(_file_text)),
    WithJsonSchema({"type": ["string", "object", "array", "number"]}),
]
Files = dict[FileName, FileBody]


class WorkdirKeys(Keys):
    folder: Workdir | None = Field(default=None, description="the folder itself, which need not be said so")
    link_from: Workdir | None = Field(
        default=None, description="a folder whose entries every attempt gets links to, in a folder of its own"
    )
    exclude: Annotated[tuple[Pattern, ...], OneOrMany()] = Field(
        default=(), description="entries of `link_from` that get no link"
    )


class LauncherKeys(Keys):
    name: Annotated[str, PlainValidator(guarded(_launcher)), WithJsonSchema({"enum": list(_LAUNCHERS)})] = Field(
        default="torchrun", description="torchrun: torch's launcher, which starts the command once on each GPU"
    )
    processes: Positive | None = Field(default=None, description="how many it starts; else one for each GPU")
    arguments: Text = Field(default="", description="more options of the launcher")
    program: Text = Field(default="", description="what starts it, where `python -m torch.distributed.run` does not")


class ContainerKeys(Keys):
    image: Line | None = Field(default=None, description="the image; for apptainer a file or docker://NAME")
    runtime: Annotated[Runtime, PlainValidator(guarded(_runtime)), WithJsonSchema({"enum": list(RUNTIMES)})] = Field(
        default="docker", description="docker or apptainer"
    )
    mounts: Annotated[
        tuple[Annotated[str, PlainValidator(guarded(_mount)), WithJsonSchema({"type": "string"})], ...], OneOrMany()
    ] = Field(default=(), description="folders of the host, HOST:INSIDE or HOST:INSIDE:ro; the run directory is there")
    options: Text = Field(default="", description="more options of the runtime")


_STRING: dict[str, Any] = {"type": "string", "minLength": 1}
WorkdirOr = Annotated[WorkdirKeys, OrJust("folder", _STRING)]
LauncherOr = Annotated[Annotated[LauncherKeys, OrJust("name", {"enum": list(_LAUNCHERS)})] | None, OrNone(just=True)]
ContainerOr = Annotated[Annotated[ContainerKeys, OrJust("image", _STRING)] | None, OrNone(just=True)]
