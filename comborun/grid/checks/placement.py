"""Checks on `placement` and `components`: what RLinf refuses when it starts, told before anything does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from comborun.command import CommandError, placeholders, split_command
from comborun.errors import Problem, UserError
from comborun.grid.checks.commands import some, uses
from comborun.grid.checks.count import no_number, number
from comborun.grid.combos import Combo
from comborun.grid.draft import Draft, Path
from comborun.grid.keys.placement import MOST_GPUS, Wanted
from comborun.grid.model import Layer
from comborun.placement import NODES, parse_placement
from comborun.text import did_you_mean

ENVIRONMENTS = "env"
"""the component of RLinf that runs simulators"""
_BY_HAND = re.compile(r"component_placement")


def placement_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Components named twice or nowhere, counts that nothing fills, copies that can't be shared out, a pin mode that
    would number the GPUs anew.
    """
    for path, layer in draft.layers:
        yield from _twice(draft, path, layer)
    yield from _strangers(draft, combos)
    if draft.broken & {"placement", "components", "overrides", "policies", "environments"}:
        return
    placed = [combo for combo in combos if combo.settings.placement]
    yield from _unfilled(draft, placed)
    yield from _uneven(draft, placed)
    if pinned := [combo.label for combo in placed if combo.settings.pin != "none"]:
        message = f"`placement` names the host's GPUs, and `pin` shows a session only its own, from 0: {some(pinned)}"
        yield draft.at_key(("placement",), message, "`pin: none`: the program finds its GPUs by the placement itself")


def placement_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Placements that nobody is told, and simulators where they are known to hang."""
    for use in uses(draft, combos):
        if untold := [combo.label for combo in use.combos if combo.settings.placement and not _told(combo)]:
            message = f"`command` has no {{placement}}: the program of {some(untold)} is not told where to run"
            yield draft.at_key(use.path, message, "put {placement} among its arguments: it becomes Hydra's overrides")
        if _BY_HAND.search(use.text):
            message = "`command` writes cluster.component_placement itself, which is not checked"
            hint = (
                "write it under `placement`, and {placement} into the command; a key such as `rollout,env` has no path"
            )
            yield draft.at_piece(use.path, "component_placement", message, hint)
    if late := [combo.label for combo in combos if _simulates_late(combo)]:
        message = (
            f"`placement`: {ENVIRONMENTS} does not begin with GPU 0 ({some(late)}), where Isaac Sim is known to hang"
        )
        yield draft.at_key(
            ("placement",), message, f'such as {{{ENVIRONMENTS}: "0-1", rollout: "2-3"}} (RLinf/RLinf#756)'
        )


def _twice(draft: Draft, path: Path, layer: Layer) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for key in layer.placement:
        for name in (part.strip() for part in key.split(",")):
            if name in first:
                place = draft.source.key_place(*path, "placement", key)
                message = f"`placement` places `{name}` twice, which RLinf asserts it does not"
                yield draft.source.problem(place, message, f"it stands in `{first[name]}` already")
            first.setdefault(name, key)


def _strangers(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Components that take something and are placed nowhere, where the grid itself says so."""
    known = {name for combo in combos for entry in combo.settings.placement for name in entry.names}
    for path, layer in draft.layers:
        for name in layer.components:
            place = draft.source.key_place(*path, "components", name)
            if known and name not in known and not place.file:
                yield draft.source.problem(place, f"`placement` has no component `{name}`", did_you_mean(name, known))


def _unfilled(draft: Draft, placed: list[Combo]) -> Iterator[Problem]:
    for combo in placed:
        for name, needs in combo.settings.components.items():
            for key in ("copies", "videos"):
                if problem := no_number(getattr(needs, key), combo):
                    yield draft.at_key(("components", name), f"`{key}` of `{name}`: {problem.message}", problem.hint)


def _uneven(draft: Draft, placed: list[Combo]) -> Iterator[Problem]:
    """Copies that RLinf would not share out, where the number of processes does not depend on the host."""
    seen: set[tuple[str, int, int]] = set()
    for combo in placed:
        for entry in combo.settings.placement:
            for name in entry.names:
                needs = combo.settings.components.get(name)
                with suppress(UserError, KeyError):
                    copies, processes = number(needs.copies, combo) if needs else 0, _processes(entry)
                    if copies and processes and copies % processes and (name, copies, processes) not in seen:
                        seen.add((name, copies, processes))
                        yield _uneven_problem(draft, combo, name, copies, processes)


def _uneven_problem(draft: Draft, combo: Combo, name: str, copies: int, processes: int) -> Problem:
    message = f"`placement`: {combo.label} has {copies} copies of `{name}` for {processes} processes of it"
    lower, higher = copies // processes * processes, -(-copies // processes) * processes
    several = f"{lower} or {higher}" if lower else f"{higher}"
    return draft.at_key(("placement",), message, f"RLinf gives each process as many: {several} copies would do")


def _processes(entry: Wanted) -> int:
    """How many processes a placement has on any host that can take it; 0 where that depends on the host."""
    if entry.node_group == NODES:
        return len(parse_placement(entry.placement, 1))
    if "all" in entry.placement.lower():
        return 0
    return len(parse_placement(entry.placement, MOST_GPUS))


def _told(combo: Combo) -> bool:
    try:
        return any("placement" in placeholders(argument) for argument in split_command(combo.settings.command))
    except CommandError:
        return True


def _simulates_late(combo: Combo) -> bool:
    return any(
        ENVIRONMENTS in entry.names and entry.node_group != NODES and _processes(entry) and not _begins(entry.placement)
        for entry in combo.settings.placement
    )


def _begins(text: str) -> bool:
    """Whether the first process has the first GPU."""
    return 0 in next(iter(parse_placement(text, MOST_GPUS).values()))
