"""What surrounds a session's program: folder, files, container, variables, model servers, components. Pure."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.grid.keys.program import MOST_GPUS, ComponentKeys, PlacedKeys, WorkdirKeys
from comborun.model.command import (
    FILLED,
    PLAN_TIME,
    START_TIME,
    escaped,
    file_word,
    fill,
    placeholders,
    values_of,
    word,
)
from comborun.model.placement import (
    GPUS,
    NODES,
    Budgets,
    Component,
    PlacementError,
    claimed,
    layouts,
    memory_on,
    parse_placement,
    too_much,
)
from comborun.model.resources import (
    ASKED,
    BashWord,
    Container,
    ExecEnvironment,
    HostFacts,
    LinkedFolder,
    ModelServer,
    Reserve,
    asked_by,
    mebibytes,
)
from comborun.planner.ranges import digest_of, session_digest
from comborun.rules.room.capacity import HEADROOM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.grid import Combo, Grid, SettingKeys
    from comborun.grid.keys.resources import ReadyKeys, ServerKeys
    from comborun.model.plan import Plan, Session

_NOT_IN_DIGEST = {"request", "pin", "ready", "ready_within_s", "warm_up", "health_s", "misses", "restarts", "digest"}
"""fields that don't change the answers of a server"""


def around_of(settings: SettingKeys, grid: Grid, host: HostFacts, values: Mapping[str, str]) -> ExecEnvironment:
    """Files, links, ranks and container; `values` holds the plan-time placeholders of the combo."""
    links, box = host_folder(settings.workdir.link_from, grid, host), settings.container
    container = None
    if box:
        mounts = tuple(_mount(mount, values) for mount in box.mounts)
        options = fill(box.options, values) if box.options else ()
        container = Container(word(box.image or "", values), box.runtime, mounts, options)
    return ExecEnvironment(
        files=tuple((name, file_word(content, values)) for name, content in sorted(settings.files.items())),
        links=LinkedFolder(links, settings.workdir.exclude) if links else None,
        ranks=settings.ranks,
        container=container,
    )


def _mount(text: str, values: Mapping[str, str]) -> str:
    """A mount. Without a place inside, it has the same path there."""
    return word(text, values) if ":" in text else f"{word(text, values)}:{word(text, values)}"


def work_folder(keys: WorkdirKeys, grid: Grid, host: HostFacts, *, inside: bool = False) -> BashWord | None:
    """The folder of setup and command; by default the grid file's on this machine. `inside`: in a container."""
    own = "." if host.local and not inside and not keys.link_from else None
    return host_folder(keys.folder or own, grid, host)


def host_folder(folder: str | None, grid: Grid, host: HostFacts) -> BashWord | None:
    """A folder of the grid as a path on the host. Raises UserError for a relative one on another machine."""
    if folder is None:
        return None
    if not folder.startswith(("/", "~")):
        if not host.local:
            raise UserError(
                f"workdir {folder!r} is relative to the grid file, which is not on {host.host}",
                "give the folder on the host: ~/... or /...",
            )
        folder = str((grid.path.parent / folder).resolve())
    return word((folder + "/" if folder == "~" else folder).replace("{", "{{"), {})


def variables_of(variables: Mapping[str, str], values: Mapping[str, str]) -> tuple[tuple[str, BashWord], ...]:
    """Variables with their placeholders; `values` holds the plan-time ones.

    Any other brace is text, even two of them, because values may be JSON or a template. MuJoCo gets its EGL device
    unless the grid sets it: it would take the first one of the host.
    """
    if variables.get("MUJOCO_GL") == "egl":
        variables = {"MUJOCO_EGL_DEVICE_ID": "{egl_device}", **variables}

    def known(name: str) -> bool:
        return name in START_TIME or name in values or ASKED.fullmatch(f"{{{name}}}") is not None

    return tuple((name, word(escaped(text, FILLED, known), values)) for name, text in variables.items())


def common_variables(grid: Grid) -> tuple[tuple[str, BashWord], ...]:
    """Variables without a placeholder, for `after` and `notify`, which run for all sessions."""
    known = {*PLAN_TIME, *START_TIME, "server", "file"}
    return tuple(
        (name, word(text.replace("{", "{{"), {}))
        for name, text in grid.variables.items()
        if not any(asked.partition(".")[0] in known for piece in FILLED.findall(text) for asked in placeholders(piece))
    )


def with_servers(session: Session, servers: Sequence[ModelServer]) -> Session:
    """The session with its servers: those named in its command, variables, setup or files."""
    asked = asked_by(session.texts, servers)
    if not asked:
        return session
    session = replace(session, servers=tuple((server.name, server.digest) for server in asked))
    return replace(session, digest=session_digest(session))


def allowed_gpus(grid: Grid, host: HostFacts) -> tuple[int, ...]:
    named = {gpu for keys in grid.servers.values() for gpu in keys.use_gpus or ()}
    return tuple(gpu for gpu in host.gpus if grid.use_gpus is None or gpu in grid.use_gpus or gpu in named)


def host_warnings(grid: Grid, host: HostFacts) -> tuple[str, ...]:
    """A sentence if the host lacks some GPUs of the grid; none if its GPUs are unknown."""
    absent = [gpu for gpu in grid.use_gpus or () if gpu not in host.gpus]
    if not (absent and host.gpus and any(combo.settings.gpus or combo.settings.placement for combo in grid.combos)):
        return ()
    named, has = _listed(absent), ", ".join(map(str, host.gpus))
    return (f"{grid.path}: `use_gpus` names {named}, and {host.called} has {has}: the others of it are used",)


def kept_apart(plan: Plan, grid: Grid) -> Plan:
    """The plan with sessions kept off the servers' own GPUs. Raises UserError if no room is left for sessions."""
    if not plan.servers:
        return plan
    own = tuple(gpu for gpu in plan.gpus if grid.use_gpus is None or gpu in grid.use_gpus)
    if len(own) < len(plan.gpus):
        sessions = (
            replace(one, request=replace(one.request, only=own)) if one.gpus and not one.request.only else one
            for one in plan.sessions
        )
        plan = replace(plan, sessions=tuple(sessions))
    _check_room(plan, own)
    return plan


def _check_room(plan: Plan, own: tuple[int, ...]) -> None:
    """Raise UserError if the servers leave no GPU for sessions. A server without `gpu_memory` has its GPUs alone."""
    alone = (
        0 if plan.limits.per_gpu else sum(s.gpus for s in plan.servers if not s.request.gpu_memory and not s.each_gpu)
    )
    apart = len(plan.gpus) - len(own)
    wanting = max((session.gpus for session in plan.sessions), default=0)
    if wanting and len(own) - max(0, alone - apart) < wanting:
        raise UserError(
            f"the servers have {alone} of {len(plan.gpus)} GPUs alone, but a session needs {wanting}",
            "say how much they take: `resources: {gpus: 1, gpu_memory: ...}` of the servers and of the sessions",
        )
    for server in plan.servers:
        if missing := [gpu for gpu in server.request.only if gpu not in plan.gpus]:
            message = f"the server {server.name} is to use GPU {missing[0]}, which this host does not have"
            raise UserError(message, "fix its `use_gpus`, or check `nvidia-smi -L` on the host")


def server_of(name: str, keys: ServerKeys, grid: Grid, host: HostFacts) -> ModelServer:
    values = values_of("server", name, keys.attributes)
    only = keys.use_gpus or () if keys.gpus else ()
    request = replace(keys.resources.request, only=only, per_gpu=0, per_host=0)
    server = ModelServer(
        name=name,
        command=fill(keys.command or "", values),
        setup=keys.setup,
        workdir=host_folder(keys.workdir, grid, host),
        variables=variables_of(keys.variables, values),
        gpus=keys.gpus,
        each_gpu=keys.per == "gpu",
        request=request,
        pin=keys.pin,
        ready=tuple(_check(check, values) for check in keys.ready) or ("tcp",),
        ready_within_s=keys.ready_within,
        warm_up=_warm_up(keys, values),
        health_s=keys.health.every if keys.health else 0,
        misses=keys.health.misses if keys.health else 1,
        restarts=keys.restarts,
    )
    content = {key: value for key, value in asdict(server).items() if key not in _NOT_IN_DIGEST}
    return replace(server, digest=digest_of(content))


def _check(keys: ReadyKeys, values: Mapping[str, str]) -> str:
    if keys.line is not None:
        return f"line {keys.line}"
    if keys.path is None:
        return "tcp"
    return f"http {keys.status} {keys.path}" + (f" {_text(keys.text, values)}" if keys.text else "")


def _text(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _warm_up(keys: ServerKeys, values: Mapping[str, str]) -> tuple[str, str, str, int, str] | None:
    asked = keys.warm_up
    if asked is None:
        return None
    return "POST" if asked.body else "GET", asked.path or "/", asked.type, asked.within, _text(asked.body, values)


# Components on GPUs
SETTING = "cluster.component_placement"
"""the key in RLinf's configuration"""


def with_components(session: Session, combo: Combo, grid: Grid, host: HostFacts) -> Session:
    """The session with the GPUs of its components; unchanged without a placement.

    Raises UserError for what the host can't do, with the layouts that it can.
    """
    if not combo.settings.placement:
        return session
    free = rooms(host, grid.reserve.reserved)
    components = _placed(combo, host, free)
    gpus = claimed(components)
    _check_claim(combo, grid, gpus)
    if problem := too_much(components, zip(free, free, strict=True), free):
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


def _placed(combo: Combo, host: HostFacts, free: Budgets) -> tuple[Component, ...]:
    """The components of a combo on this host. Raises UserError if GPUs are missing or copies can't be shared out."""
    entries = combo.settings.placed
    try:
        components = tuple(_component(name, entry, combo, host.gpus) for name, entry in entries)
    except PlacementError as error:
        anywhere = tuple(_component(name, entry, combo, range(MOST_GPUS)) for name, entry in entries if entry.fixed)
        hint = _advice(anywhere, free) if len(anywhere) == len(entries) else error.hint
        message = f"{combo.label}: `placement` on {host.host}: {error.message}"
        raise UserError(message, hint) from None
    for one in components:
        if one.copies % len(one.processes):
            raise UserError(
                f"{combo.label}: {one.copies} copies of `{one.name}` for {len(one.processes)} processes on {host.host}",
                f"RLinf gives each process the same number; {_advice(components, free)}",
            )
    return components


def _component(name: str, entry: PlacedKeys, combo: Combo, gpus: Sequence[int]) -> Component:
    on_gpus = entry.node_group != NODES
    needs = combo.settings.components.get(name, ComponentKeys())
    found = parse_placement(entry.placement, len(gpus) if on_gpus else 1)
    return Component(
        name=name,
        placement=_without_blanks(entry.placement),
        node_group=entry.node_group,
        processes=tuple(tuple(gpus[rank] for rank in ranks) if on_gpus else () for ranks in found.values()),
        gpu_memory=mebibytes(needs.gpu_memory) if on_gpus else 0,
        copies=combo.number(needs.copies),
        videos=combo.number(needs.videos),
    )


def _advice(components: Sequence[Component], free: Budgets) -> str:
    fitting = [layout for layout in layouts(components, free) if not layout.problem]
    if not fitting:
        return "no usual layout fits this host"
    could = "; ".join(f"{layout.description} ({layout.kind})" for layout in fitting)
    first = ", ".join(f'{one.name}: "{one.placement}"' for one in fitting[0].components)
    return f"these layouts fit this host: {could}. The first is `placement: {{{first}}}`"


def hydra_overrides(placed: Sequence[tuple[str, PlacedKeys]]) -> tuple[str, ...]:
    """The two arguments that replace RLinf's placement; none without a placement.

    Verified with Hydra 1.3.8: a key such as `rollout,env` of the configuration has no path, so the whole map is removed
    and added again. Unquoted strings would be read as sweeps. Components that share an entry get one each.
    """
    if not placed:
        return ()
    entries = []
    for name, entry in placed:
        text = f'"{_without_blanks(entry.placement)}"'
        value = text if entry.node_group == GPUS else f'{{node_group:"{entry.node_group}",placement:{text}}}'
        entries.append(f"{name}:{value}")
    return f"~{SETTING}", f"+{SETTING}={{{','.join(entries)}}}"


def _without_blanks(placement: str) -> str:
    """A placement without blanks, which have no meaning in it."""
    return "".join(placement.split())


def rooms(host: HostFacts, reserve: Reserve) -> Budgets:
    """The memory of each GPU for sessions."""
    totals = {card.index: card.total for card in host.cards}
    reserved = reserve.gpu_memory + HEADROOM
    found = {gpu: totals.get(gpu) for gpu in host.gpus}
    return {gpu: None if total is None else max(0, total - reserved) for gpu, total in found.items()}


def _listed(gpus: Sequence[int]) -> str:
    return f"GPU{'s' * (len(gpus) > 1)} {', '.join(map(str, gpus))}"
