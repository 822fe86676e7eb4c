"""combo plan: the model servers of a grid, a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.amounts import several
from comborun.instances import instances
from comborun.monitor.wording import amount

if TYPE_CHECKING:
    from comborun.plan import Plan
    from comborun.servers import Server

from comborun.amounts import MIB


def server_rows(plan: Plan) -> dict[str, str]:
    """What each takes, when it is ready, and how many sessions ask it."""
    count = {server.name: sum(one.server is server for one in instances(plan)) for server in plan.servers}
    return {f"server {server.name}": _row(server, plan, count[server.name]) for server in plan.servers}


def _row(server: Server, plan: Plan, count: int) -> str:
    asking = sum(server.name in dict(session.servers) for session in plan.sessions)
    parts = [f"{several(asking, 'session')} {'asks' if asking == 1 else 'ask'} it"]
    if server.gpus:
        of = f" of {', '.join(map(str, server.request.only))}" if server.request.only else ""
        memory = (
            f", {amount(server.request.gpu_memory * MIB)} on each" if server.request.gpu_memory else ", alone there"
        )
        parts.append(f"one on each of {several(count, 'GPU')}" if server.each_gpu else several(server.gpus, "GPU") + of)
        parts[-1] += memory
    parts.append("ready: " + " and ".join(check.line() for check in server.ready))
    return "; ".join(parts)
