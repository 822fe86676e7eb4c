"""What a model server is doing, what it waits for, or how it ended; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from comborun.monitor.answer.servers import ServerStatus
from comborun.monitor.lastline import visible
from comborun.monitor.observe import RunView
from comborun.monitor.reasons.explain import Command, Explanation
from comborun.monitor.reasons.hints import held
from comborun.monitor.showing.serverline import happening
from comborun.monitor.status import RunStatus
from comborun.plan import Plan
from comborun.servers import Instance, instances
from comborun.text import several


def server_names(plan: Plan) -> tuple[str, ...]:
    """Of everything that `explain_server` can be asked about."""
    return tuple(one.name for one in instances(plan))


def explain_server(view: RunView, status: RunStatus, name: str) -> Explanation:
    """`name` is one of `server_names`."""
    one = next(one for one in instances(view.plan) if one.name == name)
    seen = next((seen for seen in status.servers if seen.name == name), ServerStatus(name, "queued"))
    reasons = tuple(_reasons(view.plan, status, one, seen))
    commands = tuple(_commands(view, status, seen))
    return Explanation(view.id, name, "the server", seen.state or "queued", seen.attempt, reasons, commands)


def _reasons(plan: Plan, status: RunStatus, one: Instance, seen: ServerStatus) -> Iterator[str]:
    if status.stopped:
        yield "the run was stopped: nothing starts until it is resumed"
    if status.hold:
        yield f"the run is {held(status.hold)}"
    where = f", on GPU {seen.gpus.replace(',', ', ')}" if seen.gpus else ""
    where += f", on port {seen.port}" if seen.port else ""
    yield f"it {happening(seen, status.now)}{where}"
    if waits := status.server_waits.get(one.name):
        yield f"it waits: {visible(waits)}"
    asking = sum(one.server.name in dict(session.servers) for session in plan.sessions if session.flag != "dropped")
    yield f"{several(asking, 'session')} of the run {'asks' if asking == 1 else 'ask'} it"
    if seen.attempt > 1:
        again = several(one.server.restarts, "time")
        yield f"this is its start {seen.attempt}; when it ends by itself it is started again, {again} in a row at most"


def _commands(view: RunView, status: RunStatus, seen: ServerStatus) -> Iterator[Command]:
    if status.stopped or status.hold:
        yield Command(f"resume {shlex.quote(view.id)}", "lets the run go on")
    if seen.attempt:
        following = "" if seen.state == "ended" else "-f "
        yield Command(f"logs {following}{shlex.quote(seen.name)} --run {shlex.quote(view.id)}", "shows its log")
