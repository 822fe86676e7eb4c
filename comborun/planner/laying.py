"""Lay a grid out for a host: its combos become sessions, in the order in which they are to start."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from comborun.command import FILE, fill, takes_count
from comborun.errors import UserError
from comborun.grid.checks.count import number
from comborun.plan import After, Limits, Notify, Plan, Session
from comborun.planner.around import around_of, host_folder, started_by
from comborun.planner.arranging import arranged
from comborun.planner.digests import digest_of, session_digest
from comborun.planner.fitting import check_fit
from comborun.planner.furnished import check_displays, filled, furnished, unfilled, with_threads
from comborun.planner.knowledge import NOTHING_KNOWN
from comborun.planner.placing import hydra_overrides, with_components
from comborun.planner.serving import allowed_gpus, kept_apart, servers_of, with_servers
from comborun.resources import NO_SLURM, BashWord
from comborun.stopping import stop_rule
from comborun.text import clean, session_name, several

if TYPE_CHECKING:
    from comborun.grid import Axis, Combo, Grid, Settings
    from comborun.planner.knowledge import Knowledge
    from comborun.resources import HostFacts, Request
    from comborun.servers import Server


def lay_out(
    grid: Grid, host: HostFacts, shipped: str = "", known: Knowledge = NOTHING_KNOWN, *, here: bool = True
) -> Plan:
    """The plan of `grid` for `host`. Pure: the same arguments give the same plan, byte for byte.

    `shipped` is the digest of all that `sync` puts there: other files are other work. `known` changes how the work is
    cut and scheduled, and never what it is. Unless the sessions run elsewhere (`here`), UserError is raised where one
    of them could never start.
    """
    if grid.policy_glob and grid.policy_files is None:
        raise ValueError("nobody has asked the host which files are the policies")
    sessions = tuple(_session(combo, grid, host) for combo in grid.combos)
    servers = servers_of(grid, host)
    sessions = tuple(with_servers(session, servers) for session in sessions)
    gpus = _gpus(grid, host, (*sessions, *servers))
    after = _after(grid, host)
    plan = Plan(
        grid=grid.name,
        sessions=sessions,
        limits=Limits(
            parallel=grid.limits.parallel or known.best or max(1, host.cpus),
            per_gpu=grid.limits.per_gpu or 0,
            stagger=grid.limits.stagger,
            attempts=grid.limits.attempts,
            breaker=grid.limits.breaker,
            fail_fast=grid.limits.fail_fast.sessions,
            fail_fast_percent=grid.limits.fail_fast.percent,
            warm_up=grid.limits.warm_up,
        ),
        gpus=gpus,
        after=after,
        poll=grid.poll,
        digest=digest_of(sorted(one.digest for one in sessions), after and asdict(after), shipped, [*grid.secrets]),
        replaces=grid.replaces,
        secrets=tuple(grid.secrets.items()),
        shipped=shipped,
        retry=grid.retry,
        notify=_notify(grid, host),
        reserve=grid.reserve,
        cpus=max(0, host.cpus - grid.reserve.cpus),
        servers=servers,
        policy_files=grid.policy_files,
    )
    plan = with_threads(arranged(kept_apart(plan, grid), grid, host if here else None, known), grid, host)
    check_displays(plan)
    if here:
        check_fit(plan, host)
    return replace(plan, stop_early=stop_rule(grid.stop_early, plan.sessions) if grid.stop_early else None)


def _session(combo: Combo, grid: Grid, host: HostFacts) -> Session:
    settings = combo.settings
    name = session_name(combo.environment.name, combo.policy.name)
    values = _values("policy", combo.policy) | _values("environment", combo.environment)
    values |= {"session": name, "seed": str(settings.seed), **{FILE + file: "" for file in settings.files}}
    session = Session(
        name=name,
        policy=combo.policy.name,
        environment=combo.environment.name,
        unit=settings.unit,
        first=settings.first_episode,
        count=settings.episodes or 0,
        seed=settings.seed,
        command=fill(started_by(settings), values, {"placement": hydra_overrides(settings.placement)}),
        setup=settings.setup,
        workdir=_workdir(settings, grid, host),
        variables=filled(settings.variables, values),
        gpus=settings.gpus,
        request=_request(settings.request, combo.environment),
        pin=settings.pin,
        display=settings.display,
        results=settings.results,
        digest="",
        around=around_of(settings, grid, host, values),
        progress=replace(settings.progress, each=number(settings.each, combo)),
        evidence=settings.evidence,
        failures=tuple((failure, text) for failure, texts in settings.failures.items() for text in texts),
        watch=settings.watch,
        counted=bool(settings.episodes) and takes_count(settings.told),
        ranged=bool(settings.episodes) and settings.ranged,
        unpaired=grid.preset.about.unpaired if grid.preset else "",
    )
    session = furnished(with_components(session, combo, grid, host))
    return replace(session, digest=session_digest(session))


def _request(request: Request, environment: Axis) -> Request:
    """With the caps of its environment, which need a name for what they count."""
    return replace(request, group=clean(environment.name)) if request.per_gpu or request.per_host else request


def _values(kind: str, axis: Axis) -> dict[str, str]:
    return {kind: axis.name, **{f"{kind}.{key}": value for key, value in axis.attributes.items()}}


def _workdir(settings: Settings, grid: Grid, host: HostFacts) -> BashWord | None:
    return None if settings.workdir is None else host_folder(settings.workdir, grid, host)


def _after(grid: Grid, host: HostFacts) -> After | None:
    if grid.after is None:
        return None
    settings = grid.settings
    return After(fill(grid.after, {}), settings.setup, _workdir(settings, grid, host), unfilled(settings.variables))


def _notify(grid: Grid, host: HostFacts) -> Notify | None:
    if grid.notify is None:
        return None
    workdir, variables = _workdir(grid.settings, grid, host), unfilled(grid.settings.variables)
    return Notify(fill(grid.notify.command, {}), workdir, variables, grid.notify.kinds, grid.notify.every)


def _gpus(grid: Grid, host: HostFacts, wanting: tuple[Session | Server, ...]) -> tuple[int, ...]:
    most = max((one.gpus for one in wanting), default=0)
    if not most:
        return ()
    allowed = allowed_gpus(grid, host)
    asked = several(most, "GPU")
    if most > len(allowed) and host.gpu_trouble:
        raise UserError(
            f"a session asks for {asked}, and on {host.called} {host.gpu_trouble}, so its GPUs are not known",
            "try `nvidia-smi -L` there; `combo doctor` tells more"
            + ("; on a login node: --slurm" if grid.slurm != NO_SLURM else ""),
        )
    if most > len(allowed):
        raise UserError(
            f"a session asks for {asked}, and {host.called} offers {len(allowed)}"
            f" (found: {list(host.gpus)}, use_gpus: {list(grid.use_gpus) if grid.use_gpus else 'all'})",
            "lower resources.gpus, widen use_gpus, or check `nvidia-smi -L` on the host"
            + ("; on a login node: --slurm" if grid.slurm != NO_SLURM else ""),
        )
    return allowed
