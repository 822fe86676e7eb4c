"""The keys `placement` and `components` of a grid file: where a program puts its parts, and what each of them takes."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from comborun.errors import UserError
from comborun.grid.keys.count import Count
from comborun.grid.keys.shapes import Keys, OrJust
from comborun.grid.keys.values import Size, guarded, refusal, scalar_of
from comborun.grid.yaml_tree import Items
from comborun.placement import GPUS, NODES, PlacementError, parse_placement
from comborun.resources import mebibytes

MOST_GPUS = 64
"""of one host"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BASE_SIXTY = re.compile(r"\+?[1-9][0-9_]*(:[0-5]?[0-9])+")
_BASE_EIGHT = re.compile(r"\+?0[0-7_]+")


@dataclass(frozen=True)
class Wanted:
    """One entry of `placement`."""

    names: tuple[str, ...]
    """of the components that share it"""
    placement: str
    node_group: str = GPUS


@dataclass(frozen=True)
class Needs:
    """One entry of `components`."""

    gpu_memory: int = 0
    """MiB, of a process or of a copy in it; 0: not said"""
    copies: str = ""
    """a number, or the attribute that holds it; empty: none"""
    videos: str = ""


def names_of(key: str) -> tuple[str, ...]:
    """The components that share one entry; RLinf splits the key at its commas."""
    return tuple(name.strip() for name in key.split(","))


def _component(key: str) -> str:
    for name in names_of(key):
        if not _NAME.fullmatch(name):
            hint = 'letters, digits, _ and -; within braces quote what holds a comma: {"rollout,env": "0-3"}'
            raise UserError(f"`{name}` is no name of a component", hint)
    return key


def _one_component(key: str) -> str:
    if "," in key:
        raise UserError(f"`{key}` are several components", "say what each of them takes in an entry of its own")
    return _component(key)


def _string(tree: object) -> str:
    scalar = scalar_of(tree)
    if not scalar.quoted and (other := _elsewhere(scalar.text)):
        number, base = other
        message = f"`{scalar.text}` without quotes is {number} to RLinf, whose YAML reads it in base {base}"
        raise UserError(message, f'write it in quotes: "{scalar.text}"')
    _check_somewhere(scalar.text)
    return scalar.text


def _elsewhere(text: str) -> tuple[int, str] | None:
    """What YAML 1.1 makes of an unquoted number that is no such thing here; OmegaConf and Hydra read YAML 1.1."""
    digits = text.replace("_", "")
    if _BASE_SIXTY.fullmatch(text):
        number = 0
        for part in digits.lstrip("+").split(":"):
            number = number * 60 + int(part)
        return number, "sixty"
    if _BASE_EIGHT.fullmatch(text) and int(digits, 8) != int(digits):
        return int(digits, 8), "eight"
    return None


def _check_somewhere(text: str) -> None:
    """Raise PlacementError for what no host could take. `all` may need another number of GPUs than the most."""
    try:
        parse_placement(text, MOST_GPUS)
    except PlacementError:
        for gpus in range(1, MOST_GPUS if "all" in text.lower() else 1):
            with suppress(PlacementError):
                parse_placement(text, gpus)
                return
        raise


def _group(tree: object) -> str:
    if isinstance(tree, Items):
        hint = "RLinf would take the list for one name; on one host all GPUs are one group, so leave it out"
        raise UserError("a list of node groups", hint)
    name = scalar_of(tree).text
    if name in {GPUS, NODES}:
        return name
    if "," in name:
        raise UserError(f"`{name}` are several groups of machines", "comborun gives a session one host: leave it out")
    hint = f"on one host it is `{GPUS}`, all of its GPUs, which need not be said, or `{NODES}`, the host without them"
    raise UserError(f"`{name}` is a group of machines that the program's own configuration describes", hint)


_STRING_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}]}
String = Annotated[str, PlainValidator(guarded(_string)), WithJsonSchema(_STRING_SCHEMA)]
Group = Annotated[str, PlainValidator(guarded(_group)), WithJsonSchema({"enum": [GPUS, NODES]})]


class PlacedKeys(Keys):
    """Where the processes of a component are."""

    model_config = ConfigDict(json_schema_extra={"required": ["placement"]})

    placement: String = Field(default="", description='the string: "0-3", "0-1:0-3", "0:0,1:1", "all"')
    node_group: Group = Field(default=GPUS, description="what is numbered: cluster, the GPUs; or node, the host itself")

    @model_validator(mode="after")
    def _fits_its_group(self) -> Self:
        if "placement" not in self.model_fields_set:
            raise refusal(UserError("no `placement`", 'such as {placement: "0-3"}'))
        if self.node_group == NODES:
            try:
                parse_placement(self.placement, 1)
            except PlacementError:
                message = f"node_group: {NODES} counts machines, and a session has one, number 0"
                raise refusal(UserError(message, 'such as "0", or "0:0-3" for four processes')) from None
        return self


class ComponentKeys(Keys):
    """What a component takes, wherever it is."""

    gpu_memory: Size = Field(
        default=0, description="memory that one process takes on each of its GPUs; where there are copies, one copy"
    )
    copies: Count | None = Field(
        default=None, description="copies of the environment in all, dealt evenly to its processes"
    )
    videos: Count | None = Field(default=None, description="videos that each of its processes writes")


Placing = dict[
    Annotated[str, AfterValidator(guarded(_component))], Annotated[PlacedKeys, OrJust("placement", _STRING_SCHEMA)]
]
Taking = dict[Annotated[str, AfterValidator(guarded(_one_component))], ComponentKeys]


def wanted(keys: Placing) -> tuple[Wanted, ...]:
    return tuple(Wanted(names_of(name), entry.placement, entry.node_group) for name, entry in keys.items())


def needs(below: Needs, keys: ComponentKeys) -> Needs:
    """What `keys` say, on top of what an earlier layer said."""
    asked = {"gpu_memory": mebibytes(keys.gpu_memory), "copies": keys.copies, "videos": keys.videos}
    return Needs(**{**vars(below), **{key: value for key, value in asked.items() if key in keys.model_fields_set}})
