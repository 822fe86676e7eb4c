"""The keys of what surrounds a program, and of where its parts run: from `files` to `components`."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Any, Self

from pydantic import ConfigDict, model_validator

from comborun.errors import UserError
from comborun.grid.keys.shapes import ONE_OR_MANY, OR_JUST_NONE, Keys, OrJust, key
from comborun.grid.keys.values import (
    TEXT,
    Count,
    Line,
    OneOf,
    Pattern,
    Positive,
    Reads,
    Size,
    Text,
    Workdir,
    line_of,
    matching,
    refusal,
    scalar_of,
)
from comborun.grid.yaml_tree import Items, Map, Scalar, ScalarKind
from comborun.model.command import FileText, JsonTree, Number, launched
from comborun.model.placement import GPUS, NODES, PlacementError, parse_placement
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


MOST_GPUS = 64


def component_names(entry: str) -> tuple[str, ...]:
    """The components that share one entry; RLinf splits the key at its commas."""
    return tuple(name.strip() for name in entry.split(","))


def _components(tree: object) -> str:
    entry = str(tree)
    for name in component_names(entry):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
            hint = 'letters, digits, _ and -; within braces quote what holds a comma: {"rollout,env": "0-3"}'
            raise UserError(f"`{name}` is not the name of a component", hint)
    return entry


def _one_component(tree: object) -> str:
    if "," in str(tree):
        raise UserError(f"`{tree}` are several components", "give each of them its own entry")
    return _components(tree)


def _string(tree: object) -> str:
    """A placement that fits some host. With `all`, every number of GPUs is tried."""
    text = scalar_of(tree).text
    try:
        parse_placement(text, MOST_GPUS)
    except PlacementError:
        for gpus in range(1, MOST_GPUS if "all" in text.lower() else 1):
            with suppress(PlacementError):
                parse_placement(text, gpus)
                return text
        raise
    return text


def _group(tree: object) -> str:
    name = scalar_of(tree).text
    if name in {GPUS, NODES}:
        return name
    hint = f"`{GPUS}` is all GPUs of the host, the default; `{NODES}` is the host itself, without GPUs"
    raise UserError(f"`{name}` is another group of machines, but a session has only one host", hint)


_STRING = {"anyOf": [TEXT, {"type": "integer", "minimum": 0}]}


class PlacedKeys(Keys):
    """The places of a component's processes."""

    model_config = ConfigDict(json_schema_extra={"required": ["placement"]})

    placement: Annotated[str, Reads(_string, _STRING)] = key('the string: "0-3", "0-1:0-3", "0:0,1:1", "all"', "")
    node_group: Annotated[str, Reads(_group, {"enum": [GPUS, NODES]})] = key(
        "what is numbered: cluster, the GPUs; or node, the host itself", GPUS
    )

    @model_validator(mode="after")
    def _fits_its_group(self) -> Self:
        if "placement" not in self.model_fields_set:
            raise refusal("no `placement`", 'such as {placement: "0-3"}')
        if self.node_group == NODES:
            try:
                parse_placement(self.placement, 1)
            except PlacementError:
                message = f"node_group: {NODES} counts machines, and a session has only number 0"
                raise refusal(message, 'such as "0", or "0:0-3" for four processes') from None
        return self

    @property
    def fixed(self) -> bool:
        """Whether it has the same meaning on every host."""
        return "all" not in self.placement.lower()

    @property
    def processes(self) -> tuple[tuple[int, ...], ...]:
        """The GPUs of each process; none if they depend on the host."""
        if not self.fixed:
            return ()
        return tuple(map(tuple, parse_placement(self.placement, 1 if self.node_group == NODES else MOST_GPUS).values()))


class ComponentKeys(Keys):
    """The needs of a component."""

    gpu_memory: Size = key("memory that one process takes on each of its GPUs; with `copies`, that one copy takes", 0)
    copies: Count | None = key("copies of the environment in total, shared out evenly to its processes")
    videos: Count | None = key("videos that each of its processes writes")


Placing = dict[Annotated[str, Reads(_components)], Annotated[PlacedKeys, OrJust("placement")]]
Taking = dict[Annotated[str, Reads(_one_component)], ComponentKeys]
