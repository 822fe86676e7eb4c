"""Refuse what can never start on a host, however long it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.resources import Request
from comborun.rules.placement import HEADROOM
from comborun.text import MIB, several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.plan import Plan
    from comborun.resources import HostFacts


@dataclass(frozen=True)
class Asking:
    """Who asks for what."""

    who: str
    gpus: int
    request: Request


def check_fit(plan: Plan, host: HostFacts) -> None:
    """Raise UserError, naming every request that no wait will meet, with the numbers."""
    sessions = (Asking(one.name, one.gpus, one.request) for one in plan.sessions)
    servers = (Asking(f"the server {one.name}", one.gpus, one.request) for one in plan.servers)
    kinds: dict[tuple[int, Request], Asking] = {}
    for one in (*sessions, *servers):
        kinds.setdefault((one.gpus, one.request), one)
    reasons = [f"\n  {one.who} {reason}" for one in kinds.values() for reason in _never(one, plan, host)]
    if reasons:
        raise UserError(
            f"{host.called} can never start this:{''.join(reasons)}",
            "lower what `resources` asks for, or what `reserve` keeps; `combo doctor` shows what the host has",
        )


def _never(one: Asking, plan: Plan, host: HostFacts) -> Iterator[str]:
    if one.request.cpus > plan.cpus:
        yield f"asks for {several(one.request.cpus, 'core')}; the host has {host.cpus}{_kept(plan.reserve.cpus)}"
    memory = host.memory // MIB
    if memory and one.request.memory > memory - plan.reserve.memory:
        yield f"asks for {one.request.memory} MiB of memory; the host has {memory}{_kept(plan.reserve.memory)}"
    allowed = [gpu for gpu in plan.gpus if not one.request.only or gpu in one.request.only]
    if one.gpus > len(allowed):
        among = f" among {list(one.request.only)}" if one.request.only else ""
        yield f"asks for {several(one.gpus, 'GPU')}{among}; of these it may use {allowed}"
    elif one.gpus and one.request.gpu_memory:
        yield from _too_small(one, allowed, plan, host)


def _too_small(one: Asking, allowed: list[int], plan: Plan, host: HostFacts) -> Iterator[str]:
    """Where nvidia-smi doesn't tell how large a GPU is, nothing is said."""
    totals = {card.index: card.total for card in host.cards}
    kept = plan.reserve.gpu_memory + HEADROOM
    fitting = [gpu for gpu in allowed if (total := totals.get(gpu)) is None or total - kept >= one.request.gpu_memory]
    if len(fitting) < one.gpus:
        have = ", ".join(f"GPU {gpu} {totals.get(gpu)}" for gpu in allowed)
        number = f" on each of {one.gpus} GPUs" if one.gpus > 1 else " of a GPU"
        yield (
            f"asks for {one.request.gpu_memory} MiB{number}; of MiB there are: {have}"
            f" (reserved {plan.reserve.gpu_memory}, headroom {HEADROOM})"
        )


def _kept(reserved: int) -> str:
    return f", {reserved} of them reserved" if reserved else ""
