"""The model servers of a plan as programs on its host: one of each, or one on each GPU. Pure.

Each has a name of its own below `servers/` in the run directory, and a line in `dispatch/servers.tsv`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.plan import Plan
    from comborun.servers import Server


class Instance(NamedTuple):
    """One program on the host."""

    name: str
    gpu: int | None
    """whose sessions it serves; None: it is the only one"""
    server: Server


def instances(plan: Plan) -> Iterator[Instance]:
    """Everything that runs, in the plan's order."""
    for server in plan.servers:
        if server.each_gpu:
            for gpu in server.request.only or plan.gpus:
                yield Instance(f"{server.name}-gpu{gpu}", gpu, server)
        else:
            yield Instance(server.name, None, server)


def table(plan: Plan) -> str:
    """`dispatch/servers.tsv`: name kind gpu gpus gpu_memory_mib cpus memory_mib tokens only restarts; - is nothing."""
    return "".join("\t".join(map(str, _row(one))) + "\n" for one in instances(plan))


def _row(one: Instance) -> tuple[object, ...]:
    server, request = one.server, one.server.request
    only = (one.gpu,) if one.gpu is not None else request.only
    return (
        *(one.name, server.name, "-" if one.gpu is None else one.gpu, server.gpus),
        *(request.gpu_memory, request.cpus, request.memory),
        *(",".join(request.tokens) or "-", ",".join(map(str, only)) or "-", server.restarts),
    )
