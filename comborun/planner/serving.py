"""The model servers of a grid as the plan has them, and which sessions ask which. Pure."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from comborun.command import fill
from comborun.errors import UserError
from comborun.planner.program import host_folder, variables_of
from comborun.planner.ranges import digest_of, session_digest
from comborun.servers import Check, Server, WarmUp, asked_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.grid import Grid
    from comborun.grid.servers import ReadyKeys, ServerKeys
    from comborun.plan import Plan, Session
    from comborun.resources import HostFacts

_LOOKED_AFTER = {"request", "pin", "ready", "ready_within_s", "warm_up", "health_s", "misses", "restarts", "digest"}
"""what changes nothing of what a server answers"""


def servers_of(grid: Grid, host: HostFacts) -> tuple[Server, ...]:
    return tuple(_server(name, keys, grid, host) for name, keys in grid.servers.items())


def with_servers(session: Session, servers: Sequence[Server]) -> Session:
    """With the servers that it asks: by its command, its variables, its setup or its files."""
    texts = (*session.command, *(text for _, text in session.variables), session.setup, *session.around.words)
    asked = asked_by(texts, servers)
    if not asked:
        return session
    session = replace(session, servers=tuple((server.name, server.digest) for server in asked))
    return replace(session, digest=session_digest(session))


def allowed_gpus(grid: Grid, host: HostFacts) -> tuple[int, ...]:
    """Those that sessions or servers may be granted."""
    named = {gpu for keys in grid.servers.values() for gpu in keys.use_gpus or ()}
    return tuple(gpu for gpu in host.gpus if grid.use_gpus is None or gpu in grid.use_gpus or gpu in named)


def absent_gpus(grid: Grid, host: HostFacts) -> tuple[int, ...]:
    """Those that sessions are to use and the host doesn't have; none where its GPUs aren't known."""
    if not host.gpus or not any(combo.settings.gpus or combo.settings.placement for combo in grid.combos):
        return ()
    return tuple(gpu for gpu in grid.use_gpus or () if gpu not in host.gpus)


def kept_apart(plan: Plan, grid: Grid) -> Plan:
    """Where servers have GPUs of their own, the sessions keep to theirs.

    Raises UserError where there is no room for the sessions beside the servers.
    """
    if not plan.servers:
        return plan
    own = tuple(gpu for gpu in plan.gpus if grid.use_gpus is None or gpu in grid.use_gpus)
    if len(own) < len(plan.gpus):
        sessions = (_kept_to(session, own) for session in plan.sessions)
        plan = replace(plan, sessions=tuple(sessions))
    _check_room(plan, own)
    return plan


def _kept_to(session: Session, gpus: tuple[int, ...]) -> Session:
    if not session.gpus or session.request.only:
        return session
    return replace(session, request=replace(session.request, only=gpus))


def _check_room(plan: Plan, own: tuple[int, ...]) -> None:
    """A server that does not say how much memory it takes has its GPUs alone."""
    alone = (
        0 if plan.limits.per_gpu else sum(s.gpus for s in plan.servers if not s.request.gpu_memory and not s.each_gpu)
    )
    apart = len(plan.gpus) - len(own)
    wanting = max((session.gpus for session in plan.sessions), default=0)
    if wanting and len(own) - max(0, alone - apart) < wanting:
        raise UserError(
            f"the servers have {alone} of {len(plan.gpus)} GPUs alone, and a session needs {wanting}",
            "say how much they take: `resources: {gpus: 1, gpu_memory: ...}` of the servers and of the sessions",
        )
    for server in plan.servers:
        if missing := [gpu for gpu in server.request.only if gpu not in plan.gpus]:
            message = f"the server {server.name} is to use GPU {missing[0]}, which this host does not have"
            raise UserError(message, "fix its `use_gpus`, or check `nvidia-smi -L` on the host")


def _server(name: str, keys: ServerKeys, grid: Grid, host: HostFacts) -> Server:
    values = {"server": name, **{f"server.{key}": value for key, value in keys.attributes.items()}}
    only = keys.use_gpus or () if keys.gpus else ()
    request = replace(keys.resources.request, only=only, per_gpu=0, per_host=0)
    server = Server(
        name=name,
        command=fill(keys.command or "", values),
        setup=keys.setup,
        workdir=host_folder(keys.workdir, grid, host),
        variables=variables_of(keys.variables, values),
        gpus=keys.gpus,
        each_gpu=keys.per == "gpu",
        request=request,
        pin=keys.pin,
        ready=tuple(_check(check, values) for check in keys.ready) or (Check(),),
        ready_within_s=keys.ready_within,
        warm_up=_warm_up(keys, values),
        health_s=keys.health.every if keys.health else 0,
        misses=keys.health.misses if keys.health else 1,
        restarts=keys.restarts,
    )
    content = {key: value for key, value in asdict(server).items() if key not in _LOOKED_AFTER}
    return replace(server, digest=digest_of(content))


def _check(keys: ReadyKeys, values: Mapping[str, str]) -> Check:
    if keys.line is not None:
        return Check("line", pattern=keys.line)
    if keys.path is None:
        return Check("tcp")
    return Check("http", path=keys.path, status=keys.status, text=_text(keys.text or "", values))


def _text(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _warm_up(keys: ServerKeys, values: Mapping[str, str]) -> WarmUp | None:
    asked = keys.warm_up
    if asked is None:
        return None
    return WarmUp(asked.path or "/", _text(asked.body, values), asked.type, asked.within)
