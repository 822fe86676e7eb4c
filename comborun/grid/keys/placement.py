"""The keys `placement` and `components`: where a program puts its parts, and what each needs."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Self

from pydantic import ConfigDict, model_validator

from comborun.errors import UserError
from comborun.grid.keys.shapes import Keys, OrJust, key
from comborun.grid.keys.values import TEXT, Count, Reads, Size, refusal, scalar_of
from comborun.model.placement import GPUS, NODES, PlacementError, parse_placement

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
            raise refusal(UserError("no `placement`", 'such as {placement: "0-3"}'))
        if self.node_group == NODES:
            try:
                parse_placement(self.placement, 1)
            except PlacementError:
                message = f"node_group: {NODES} counts machines, and a session has only number 0"
                raise refusal(UserError(message, 'such as "0", or "0:0-3" for four processes')) from None
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
