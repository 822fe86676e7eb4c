"""Puts the components of a combo's program on GPUs of a host: which GPUs a session gets, and the arguments for that.
Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.grid.placement import MOST_GPUS, ComponentKeys, PlacedKeys
from comborun.placement import (
    GPUS,
    NODES,
    Component,
    GpuBudget,
    PlacementError,
    claimed,
    layouts,
    memory_on,
    parse_placement,
    too_much,
)
from comborun.resources import mebibytes
from comborun.rules.placement import HEADROOM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.grid import Combo, Grid
    from comborun.plan import Session
    from comborun.resources import HostFacts, Reserve

SETTING = "cluster.component_placement"
"""the key in RLinf's configuration"""


def with_components(session: Session, combo: Combo, grid: Grid, host: HostFacts) -> Session:
    """The session with the GPUs of its components; unchanged without a placement.

    Raises UserError for what the host can't do, with the layouts that it can.
    """
    if not combo.settings.placement:
        return session
    free = rooms(host, grid.reserve.kept)
    components = _placed(combo, host, free)
    gpus = claimed(components)
    _check_claim(combo, grid, gpus)
    if problem := next(filter(None, (too_much(components, room.gpu, room) for room in free)), ""):
        raise UserError(f"{combo.label}: `placement` {problem}", _advice(components, free))
    most = [memory_on(components, gpu) for gpu in gpus]
    memory = session.request.gpu_memory or (max(most, default=0) if all(most) else 0)
    request = replace(session.request, only=gpus, gpu_memory=memory)
    return replace(session, gpus=len(gpus), request=request, components=components)


def gpus_counted(combo: Combo) -> int:
    """The number of GPUs that a combo's placement needs; 0 if that depends on the machine."""
    placed = (entry.processes for _, entry in combo.settings.placed if entry.node_group != NODES)
    return max((gpu + 1 for processes in placed for gpus in processes for gpu in gpus), default=0)


def _check_claim(combo: Combo, grid: Grid, gpus: Sequence[int]) -> None:
    allowed = grid.use_gpus
    if others := [gpu for gpu in gpus if allowed is not None and gpu not in allowed]:
        raise UserError(
            f"{combo.label}: `placement` takes {_listed(others)}, which `use_gpus` does not allow",
            "name the GPUs one by one; RLinf takes `all` for every GPU of the host",
        )
    if combo.settings.gpus not in {0, len(gpus)}:
        raise UserError(
            f"{combo.label}: `placement` takes {_listed(gpus)}, and `resources` asks for {combo.settings.gpus}",
            "leave `gpus` out: a session claims what its components take",
        )


def _placed(combo: Combo, host: HostFacts, free: Sequence[GpuBudget]) -> tuple[Component, ...]:
    """The components of a combo on this host. Raises UserError if it lacks GPUs, or copies can't be shared out."""
    entries = combo.settings.placed
    try:
        components = tuple(_component(name, entry, combo, host.gpus) for name, entry in entries)
    except PlacementError as error:
        anywhere = tuple(_component(name, entry, combo, range(MOST_GPUS)) for name, entry in entries if entry.fixed)
        hint = _advice(anywhere, free) if len(anywhere) == len(entries) else error.hint
        message = f"{combo.label}: `placement` on {host.host}: {error.message}"
        raise UserError(message, hint) from None
    for one in components:
        if one.uneven:
            raise UserError(
                f"{combo.label}: {one.copies} copies of `{one.name}` for {len(one.processes)} processes on {host.host}",
                f"RLinf gives each process as many; {_advice(components, free)}",
            )
    return components


def _component(name: str, entry: PlacedKeys, combo: Combo, gpus: Sequence[int]) -> Component:
    on_gpus = entry.node_group != NODES
    needs = combo.settings.components.get(name, ComponentKeys())
    found = parse_placement(entry.placement, len(gpus) if on_gpus else 1)
    return Component(
        name=name,
        placement=_tight(entry.placement),
        node_group=entry.node_group,
        processes=tuple(tuple(gpus[rank] for rank in ranks) if on_gpus else () for ranks in found.values()),
        gpu_memory=mebibytes(needs.gpu_memory) if on_gpus else 0,
        copies=combo.number(needs.copies),
        videos=combo.number(needs.videos),
    )


def _advice(components: Sequence[Component], free: Sequence[GpuBudget]) -> str:
    fitting = [layout for layout in layouts(components, free) if not layout.problem]
    could = "; ".join(f"{layout.description} ({layout.kind})" for layout in fitting)
    return f"these layouts fit this host: {could}" if could else "no usual layout fits this host"


def hydra_overrides(placed: Sequence[tuple[str, PlacedKeys]]) -> tuple[str, ...]:
    """The two arguments that replace RLinf's placement; none without a placement.

    Verified with Hydra 1.3.8: a key such as `rollout,env` of the configuration has no path, so the whole map is removed
    and added again. Unquoted strings would be read as sweeps. Components that share an entry get one each.
    """
    if not placed:
        return ()
    entries = ",".join(f"{name}:{_value(entry)}" for name, entry in placed)
    return f"~{SETTING}", f"+{SETTING}={{{entries}}}"


def _value(entry: PlacedKeys) -> str:
    text = f'"{_tight(entry.placement)}"'
    return text if entry.node_group == GPUS else f'{{node_group:"{entry.node_group}",placement:{text}}}'


def _tight(placement: str) -> str:
    """A placement without blanks, which have no meaning in it."""
    return "".join(placement.split())


def rooms(host: HostFacts, reserve: Reserve) -> tuple[GpuBudget, ...]:
    """The memory of each GPU for sessions."""
    totals = {card.index: card.total for card in host.cards}
    kept = reserve.gpu_memory + HEADROOM
    found = {gpu: totals.get(gpu) for gpu in host.gpus}
    return tuple(GpuBudget(gpu, None if total is None else max(0, total - kept)) for gpu, total in found.items())


def _listed(gpus: Sequence[int]) -> str:
    return f"GPU{'s' * (len(gpus) > 1)} {', '.join(map(str, gpus))}"
