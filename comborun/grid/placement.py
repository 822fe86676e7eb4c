"""The keys `placement` and `components`: where a program puts its parts, and what each needs.

Mistakes that RLinf would refuse at its start are reported before anything starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import ConfigDict, model_validator

from comborun.errors import Problem, UserError
from comborun.grid.axes import Combo
from comborun.grid.commands import uses
from comborun.grid.shapes import Keys, key, or_just
from comborun.grid.values import TEXT, Count, Reads, Size, refusal, scalar_of
from comborun.model.command import placeholders
from comborun.model.placement import GPUS, NODES, PlacementError, parse_placement
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from comborun.grid.draft import Draft, Path
    from comborun.grid.model import SettingKeys

MOST_GPUS = 64
ENVIRONMENTS = "env"
"""RLinf's component with the simulators"""


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
    text = scalar_of(tree).text
    _check_somewhere(text)
    return text


def _check_somewhere(text: str) -> None:
    """Raise PlacementError for a placement that fits no host. With `all`, every number of GPUs is tried."""
    try:
        parse_placement(text, MOST_GPUS)
    except PlacementError:
        for gpus in range(1, MOST_GPUS if "all" in text.lower() else 1):
            with suppress(PlacementError):
                parse_placement(text, gpus)
                return
        raise


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


_NAME = {"type": "string"}
Placing = dict[Annotated[str, Reads(_components, _NAME)], Annotated[PlacedKeys, or_just("placement", _STRING)]]
Taking = dict[Annotated[str, Reads(_one_component, _NAME)], ComponentKeys]


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
    placed = draft.where(lambda combo: combo.settings.placement)
    yield from _unfilled(draft, placed)
    yield from _uneven(draft, placed)
    pinned = [combo for combo in placed if combo.settings.pinned != "none"]
    message = "`placement` uses the host's GPU numbers, but with this `pin` a session sees its own GPUs from 0: {}"
    hint = "`pin: none`: the program finds its GPUs by the placement"
    yield from draft.for_combos(pinned, ("placement",), message, hint)


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


def _unfilled(draft: Draft, placed: list[Combo]) -> Iterator[Problem]:
    for combo in placed:
        for name, needs in combo.settings.components.items():
            for count in ("copies", "videos"):
                path = ("components", name)
                yield from draft.checked(path, f"`{count}` of `{name}`", combo.number, getattr(needs, count))


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
                    yield _uneven_problem(draft, combo, name, copies, processes)


def _uneven_problem(draft: Draft, combo: Combo, name: str, copies: int, processes: int) -> Problem:
    message = f"`placement`: {combo.label} has {copies} copies of `{name}` for {processes} processes of it"
    lower, higher = copies // processes * processes, -(-copies // processes) * processes
    several = f"{lower} or {higher}" if lower else f"{higher}"
    return draft.at_key(("placement",), message, f"RLinf gives each process the same number: use {several} copies")
