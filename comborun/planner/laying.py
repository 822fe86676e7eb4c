"""Lays a grid out for a host: its combos become sessions, in the order of their starts."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.grid.keys.limits_retry import retries
from comborun.model.command import FILE, OF_GPUS, fill, late, takes_count, values_of
from comborun.model.judging import NO_PROGRESS, ProgressRules
from comborun.model.plan import After, Limits, Notify, Plan, Session
from comborun.model.stopping import StopRequest, stop_rule
from comborun.model.work import episodes_by_combo
from comborun.planner.knowledge import NOTHING_KNOWN, Knowledge
from comborun.planner.packing import at_once, check_fit
from comborun.planner.processes import added, in_processes, shared_files, shared_values
from comborun.planner.program import (
    allowed_gpus,
    around_of,
    common_variables,
    gpus_counted,
    hydra_overrides,
    kept_apart,
    server_of,
    variables_of,
    with_components,
    with_servers,
    work_folder,
)
from comborun.planner.ranges import digest_of, session_digest
from comborun.planner.scheduling import arranged
from comborun.rules.results.fields import number
from comborun.rules.room.capacity import Card
from comborun.text import clean, several, shortened
from comborun.words import say
from comborun.words.doctor import advice

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from comborun.grid import Combo, Grid
    from comborun.model.resources import HostFacts, ModelServer

_SHORT_MINUTES = 5
"""minutes; in a shorter task the time of Slurm's warning matters"""
_SCRIPTS = (".py", ".sh")


class Drafts:
    """Plans of one grid: hosts of one shape share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[Hashable, Plan] = {}
        """by what it depends on; with the threads of its sessions, which depend on what is free, too"""

    def of(self, shape: Hashable | None, make: Callable[[], Plan]) -> Plan:
        """The draft for a shape of host, made by whoever asks first; the others wait. None: a host's own."""
        if shape is None:
            return make()
        with self._lock:
            if shape not in self._made:
                self._made[shape] = make()
            return self._made[shape]


def _shape(grid: Grid, host: HostFacts, shipped: str, known: Knowledge) -> tuple[Hashable, ...] | None:
    """What a draft depends on; None if it is this host's alone."""
    automatic = any(combo.settings.shards == "auto" or combo.settings.placement for combo in grid.combos)
    if automatic or known is not NOTHING_KNOWN:
        return None
    keys = (grid.policy_files, repr(grid.use_gpus), repr(grid.reserve), repr(grid.limits), shipped)
    return (*keys, host.local, host.cpus, host.memory, host.gpus)


def lay_out(
    grid: Grid,
    host: HostFacts,
    shipped: str = "",
    known: Knowledge = NOTHING_KNOWN,
    *,
    here: bool = True,
    drafts: Drafts | None = None,
) -> Plan:
    """The plan of `grid` for `host`. Pure: the same arguments give the same plan, byte for byte.

    `shipped` is the digest of all files of `sync`: other files are other work. `known` changes how the work is cut and
    scheduled, never what it is. Raises UserError if a session could never start, but only if sessions run `here`.
    `drafts` are those of other hosts for the same grid.
    """
    drafts, shape = drafts or Drafts(), _shape(grid, host, shipped, known)
    plan = drafts.of(shape, partial(_draft, grid, host, shipped, known, here=here))
    share = _share(plan, host)
    plan = drafts.of(shape and (*shape, share), partial(_threaded, plan, grid, share))
    _check_displays(plan)
    if here:
        check_fit(plan, host)
    if grid.stop_early:
        request = StopRequest(**dict(grid.stop_early))
        plan = replace(plan, stop_early=stop_rule(request, episodes_by_combo(plan.sessions)))
    return plan


def _draft(grid: Grid, host: HostFacts, shipped: str, known: Knowledge, *, here: bool) -> Plan:
    if grid.policy_glob and grid.policy_files is None:
        raise ValueError("the files of the policies' glob are not known yet")
    servers = tuple(server_of(name, keys, grid, host) for name, keys in grid.servers.items())
    sessions = in_processes(
        (
            with_servers(_session(combo, grid, host, place), servers)
            for combo in grid.combos
            for place in range(len(combo.settings.seeded))
        ),
        grid,
    )
    after = None
    if grid.after is not None:
        after = After(fill(grid.after, {}), grid.setup, work_folder(grid.workdir, grid, host), common_variables(grid))
    steps = {combo.policy.name: number(combo.policy.attributes.get("step", "")) for combo in grid.combos}
    plan = Plan(
        grid=grid.name,
        sessions=sessions,
        limits=_limits(grid, known.best or max(1, host.cpus)),
        gpus=_gpus(grid, host, (*sessions, *servers)),
        after=after,
        poll=grid.poll,
        digest=digest_of(sorted(one.digest for one in sessions), after and asdict(after), shipped, [*grid.secrets]),
        replaces=grid.replaces,
        secrets=tuple(grid.secrets.items()),
        shipped=shipped,
        retry=retries(grid.retry),
        notify=_notify(grid, host),
        reserve=grid.reserve.reserved,
        cpus=max(0, host.cpus - grid.reserve.cpus),
        servers=servers,
        policy_files=grid.policy_files,
        follow=grid.follow,
        steps=tuple((name, step) for name, step in steps.items() if step is not None),
    )
    return arranged(kept_apart(plan, grid), grid, host if here else None, known)


def _limits(grid: Grid, parallel: int) -> Limits:
    """The limits of a plan. `parallel`: the number of slots if the grid gives none."""
    given = grid.limits
    failures = {"fail_fast": given.fail_fast.sessions, "fail_fast_percent": given.fail_fast.percent}
    same = {name: getattr(given, name) for name in ("stagger", "attempts", "breaker", "warm_up")}
    return Limits(parallel=given.parallel or parallel, per_gpu=given.per_gpu or 0, **same, **failures)


def _session(combo: Combo, grid: Grid, host: HostFacts, place: int) -> Session:
    """The session of a combo for one of its seeds. Each seed continues the episode numbers of the one before."""
    settings, progress = combo.settings, combo.settings.progress
    seed, episode_offset = settings.seeded[place], place * (settings.episodes or 0)
    name = f"{combo.session}_seed{seed}" if settings.seeds else combo.session
    name = shortened(name)
    values = values_of("policy", combo.policy.name, combo.policy.attributes)
    values |= values_of("environment", combo.environment.name, combo.environment.attributes)
    values |= {"session": name, "seed": str(seed), **{FILE + file: "" for file in settings.files}}
    own, (files, entries) = values, shared_files(settings)
    if settings.together:
        settings, values = settings.model_copy(update={"files": files}), shared_values(values)
    command = settings.launcher.command(settings.command) if settings.launcher else settings.command
    request = settings.resources.request
    if request.per_gpu or request.per_host:  # at most so many of an environment, which needs a name for that
        request = replace(request, group=clean(combo.environment.name))
    session = Session(
        name=name,
        policy=combo.policy.name,
        environment=combo.environment.name,
        unit=settings.unit,
        first=episode_offset + settings.first_episode,
        count=settings.episodes or 0,
        seed=seed,
        command=fill(command, values, hydra_overrides(settings.placed)),
        setup=settings.setup,
        workdir=work_folder(settings.workdir, grid, host, inside=settings.container is not None),
        variables=variables_of(settings.variables, values),
        gpus=settings.gpus,
        request=request,
        pin=settings.pinned,
        display=settings.display,
        results=combo.rules.replace(base=episode_offset),
        digest="",
        around=around_of(settings, grid, host, values),
        progress=ProgressRules(
            progress.pattern, progress.counts_from, progress.silent, each=combo.number(progress.each)
        )
        if progress
        else NO_PROGRESS,
        evidence=settings.evidence.rules,
        failures=tuple((failure, text) for failure, texts in settings.failures.items() for text in texts),
        watch=settings.watch,
        counted=bool(settings.episodes) and takes_count(combo.settings.command_text),
        ranged=bool(settings.episodes) and settings.ranged,
        unpaired=grid.program.about.unpaired if grid.program else "",
    )
    session = _with_display(with_components(session, combo, grid, host))
    if settings.together:
        session = replace(session, each=tuple(added(session, combo.environment, entries, own)))
    return replace(session, digest=session_digest(session))


def _notify(grid: Grid, host: HostFacts) -> Notify | None:
    keys = grid.notify
    if keys is None:
        return None
    workdir, kinds = work_folder(grid.workdir, grid, host), tuple(dict.fromkeys(keys.on))
    return Notify(fill(keys.command or "", {}), workdir, common_variables(grid), kinds, keys.every)


def _gpus(grid: Grid, host: HostFacts, wanting: tuple[Session | ModelServer, ...]) -> tuple[int, ...]:
    most = max((one.gpus for one in wanting), default=0)
    if not most:
        return ()
    allowed = allowed_gpus(grid, host)
    if most <= len(allowed):
        return allowed
    asked = several(most, "GPU")
    slurm = "; on a login node: combo launch --slurm" if "slurm" in grid.model_fields_set else ""
    if host.gpu_trouble:
        raise UserError(
            f"a session asks for {asked}, but on {host.called} {say(host.gpu_trouble)}, so its GPUs are not known",
            f"`{advice(host.gpu_trouble)[1]}` there; `combo doctor` says more{slurm}",
        )
    raise UserError(
        f"a session asks for {asked}, but {host.called} offers {len(allowed)}"
        f" (found: {list(host.gpus)}, use_gpus: {list(grid.use_gpus) if grid.use_gpus else 'all'})",
        f"lower resources.gpus, widen use_gpus, or check `nvidia-smi -L` on the host{slurm}",
    )


def _with_display(session: Session) -> Session:
    """The session with its display as an exclusive resource, if needed, and without variables that have no value."""
    absent = [name for name in OF_GPUS if not session.gpus] + ([] if session.display else ["display"])
    variables = tuple((name, text) for name, text in session.variables if not any(late(text, one) for one in absent))
    token = session.display.token if session.display else ""
    tokens = (*session.request.tokens, token) if token else session.request.tokens
    return replace(session, variables=variables, request=replace(session.request, tokens=tokens))


def _check_displays(plan: Plan) -> None:
    """Raise UserError if a session may get a GPU for which its `display` names no X server."""
    for session in plan.sessions:
        named = {gpu for gpu, _ in session.display.by_gpu} if session.display else set()
        bare = [gpu for gpu in session.request.only or plan.gpus if gpu not in named]
        if named and bare:
            raise UserError(
                f"`display` names no X server for GPU {', '.join(map(str, bare))}, which {session.name} may be granted",
                f"add it, or keep to the others: use_gpus: {sorted(named)}",
            )


def _share(plan: Plan, host: HostFacts) -> int:
    """The cores of a session that requests none."""
    fitting = at_once(plan, host) or plan.limits.parallel
    return max(1, plan.cpus // max(1, min(fitting, plan.limits.parallel)))


def with_threads(plan: Plan, grid: Grid, host: HostFacts) -> Plan:
    """Each session with as many threads as cores: those that it requests, or its share of all. Ranks share them."""
    return _threaded(plan, grid, _share(plan, host))


def _threaded(plan: Plan, grid: Grid, share: int) -> Plan:
    wished = {combo.key: combo.settings.threads for combo in grid.combos}

    def threads(session: Session) -> int:
        wish = wished[session.policy, session.environment]
        return max(1, int(session.request.cpus or share) // max(1, session.around.ranks)) if wish is None else wish

    return replace(plan, sessions=tuple(replace(one, threads=threads(one)) for one in plan.sessions))


def kind(session: Session) -> str:
    """The same word for all sessions with the same program and setup, since they warm up the same caches."""
    program = session.command[:1]
    if len(session.command) > 1 and session.command[1].strip("'\"").endswith(_SCRIPTS):
        program = session.command[:2]
    content = "\0".join((session.setup, session.workdir or "", *program))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]


# For Slurm: the same sessions; Slurm assigns GPUs, cores and times


def lay_out_on_slurm(grid: Grid, login: HostFacts, shipped: str = "") -> Plan:
    """The plan of `grid` for the cluster whose login node is `login`. Pure, as lay_out is.

    Raises UserError, with every reason, if the grid asks for something that tasks on several nodes can't have.
    """
    if grid.follow:
        raise UserError("a training is followed on its own host, not on Slurm", "combo follow GRID --pid PID, there")
    most = max((max(combo.settings.gpus, gpus_counted(combo)) for combo in grid.combos), default=0)
    nodes = replace(login, gpus=tuple(range(most)), cards=tuple(map(Card, range(most))))
    plan = lay_out(grid.model_copy(update={"use_gpus": None, "servers": {}}), nodes, shipped, here=False)
    plan = replace(
        plan,
        limits=replace(plan.limits, parallel=grid.limits.parallel or len(plan.sessions)),
        gpus=(),
        cpus=0,
        slurm=grid.slurm.asked(grid.limits.parallel),
    )
    if reasons := tuple(_refusals(plan, grid)):
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise UserError(f"{grid.path}: not with --slurm:{listed}", "without --slurm all of it works on one machine")
    return plan


def not_held(plan: Plan, grid: Grid) -> tuple[str, ...]:
    """Keys of the grid that Slurm overrules, a sentence each."""
    limits, short = grid.limits, 0 < (grid.slurm.time or 0) <= _SHORT_MINUTES
    overruled = {
        "use_gpus: Slurm picks the GPUs": grid.use_gpus is not None,
        "limits.per_gpu: a task has its GPUs alone": bool(limits.per_gpu) and any(s.gpus for s in plan.sessions),
        "resources.gpu_memory: a task has its GPUs alone": any(s.request.gpu_memory for s in plan.sessions),
        "limits.stagger: tasks start as soon as Slurm has room": bool(limits.stagger),
        "limits.warm_up: tasks start as soon as Slurm has room": bool(limits.warm_up),
        "all of slurm.time: Slurm tells a session to end up to 2 min before it is over": short,
        "reserve: Slurm knows what is taken": bool(grid.reserve.gpu_memory or grid.reserve.cpus or grid.reserve.memory),
    }
    return tuple(sentence for sentence, applies in overruled.items() if applies)


def _refusals(plan: Plan, grid: Grid) -> Iterator[str]:
    if gaps := [one.name for one in plan.sessions if one.components and one.request.only != tuple(range(one.gpus))]:
        yield f"`placement` ({', '.join(gaps)}): the GPUs of a task count from 0, so name all of them up to the last"
    if any(session.together for session in plan.sessions):
        yield "`together`: a task of Slurm runs one combo"
    if grid.servers:
        yield "`servers`: tasks on another node can't use it; start it by hand where all nodes reach it"
    if grid.replaces:
        yield "`replaces`: your sessions on the login node use no node; end them by hand"
    if plan.slurm and any(option.partition("=")[0] == "--exclusive" for option in plan.slurm.options):
        return
    whole = "`slurm: {options: [--exclusive]}` gives each task a node of its own"
    if tokens := sorted({token for session in plan.sessions for token in session.request.tokens}):
        yield f"`resources.exclusive` ({', '.join(tokens)}): two tasks may share a node; {whole}"
    if any(session.request.per_host for session in plan.sessions):
        yield f"`resources.per_host`: Slurm decides how many tasks share a node; {whole}"
