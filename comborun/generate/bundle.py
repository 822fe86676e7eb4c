"""The files of a new run directory. Pure, except that it reads the texts of the host program."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from comborun import __version__
from comborun.generate.run_scripts import FRONT, notify_script, scripts, server_script, server_session
from comborun.generate.slurm_jobs import texts
from comborun.model.command import asks_for
from comborun.model.work import grouped, process_of, whole
from comborun.planner.laying import kind
from comborun.rules.names import AFTER, RUN, SERVERS
from comborun.rules.records import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.model.plan import Plan, Session
    from comborun.model.resources import ServerInstance


SCHEMA = 1
MOST = 999_999_999
"""the dispatcher reads nine digits"""


@dataclass(frozen=True)
class RunFile:
    path: str
    text: str
    executable: bool = False


def bundle(plan: Plan, grid_text: str, library: Mapping[str, str], provenance: Mapping[str, Any]) -> Iterator[RunFile]:
    template, plan = plan, plan.following
    yield RunFile(RUN.manifest, manifest(plan, provenance))
    yield RunFile(RUN.plan(1), plan.to_json())
    yield RunFile(RUN.grid, grid_text)
    yield RunFile(RUN.front, FRONT, executable=True)
    for name, text in library.items():
        yield RunFile(f"{RUN.library}/{name}", text)
    yield from session_files(template)
    yield from dispatch_files(plan)
    if plan.replaces:
        yield RunFile(RUN.replaces, "".join(f"{name}\n" for name in plan.replaces))
    if plan.secrets:
        yield RunFile(RUN.wanted_secrets, render(plan.secrets))


def session_files(plan: Plan) -> Iterator[RunFile]:
    yield from (RunFile(RUN.script(name), text) for name, text in scripts(plan))
    yield from (RunFile(RUN.session_json(name), text) for name, text in session_manifests(plan))


def dispatch_files(plan: Plan) -> Iterator[RunFile]:
    """What the dispatcher goes by, or Slurm: an amendment writes it anew."""
    for one in plan.server_instances:
        yield RunFile(RUN.script(SERVERS + one.name), server_script(one))
        yield RunFile(RUN.session_json(SERVERS + one.name), server_manifest(one))
    if plan.servers:
        yield RunFile(RUN.server_table, server_table(plan))
    yield RunFile(RUN.queue, queue(plan))
    yield RunFile(RUN.policy, policy(plan))
    if plan.notify:
        yield RunFile(RUN.notify, notify_script(plan.notify))
    if plan.slurm:
        yield from (RunFile(path, text) for path, text in texts(plan))


def manifest(plan: Plan, provenance: Mapping[str, Any]) -> str:
    """`run.json`: the expected episodes, fixed before anything starts."""
    keys = ("policy", "environment", "unit", "first", "count", "seed", "digest")
    expected = [{"session": one.name, **{key: getattr(one, key) for key in keys}} for one in plan.sessions]
    content = {
        "schema": SCHEMA,
        "grid": plan.grid,
        "digest": plan.digest,
        "expected": expected,
        **({"stop_early": plan.stop_early.as_data()} if plan.stop_early else {}),
        "provenance": {"comborun": __version__, **provenance},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def queue(plan: Plan) -> str:
    """`dispatch/queue.jsonl`: a record for each session in plan order; a session keeps its place."""
    return "".join(
        _row(
            name=session.name,
            flag=session.flag,
            **asdict(session.resources),
            servers=[name for name, _ in session.servers],
            kind=kind(session),
            together=[one.name for one in members if session.together],
            dropped=[one.name for one in members if session.together and one.flag == "dropped"],
        )
        for members in grouped(plan.sessions, process_of).values()
        for session in [whole(members)]
    )


def server_table(plan: Plan) -> str:
    """`dispatch/servers.jsonl`: a record for each process of a model server."""
    return "".join(
        _row(name=one.name, kind=one.server.name, gpu=one.gpu, **asdict(one.request), restarts=one.server.restarts)
        for one in plan.server_instances
    )


def _row(**fields: Any) -> str:
    """A record without its empty fields."""
    return render(_given(fields).items())


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value not in (None, "", (), []) and value is not False}


def policy(plan: Plan) -> str:
    """`dispatch/policy.json`: the settings of the dispatcher, as integers and words."""
    limits = asdict(plan.limits)
    entries: dict[str, Any] = {
        **{f"{name}_ms": _milliseconds(limits.pop(name)) for name in ("stagger", "warm_up")},
        **limits,
        "gpus": ",".join(map(str, plan.gpus)),
        "reserve_gpu_mib": plan.reserve.gpu_memory,
        "reserve_memory_mib": plan.reserve.memory,
        "cpus": plan.cpus,
    }
    if plan.slurm:
        entries |= {"slurm_parallel": plan.slurm.parallel, "slurm_array": plan.slurm.array}
    for rule in plan.retry:
        entries[f"retry_{rule.failure}"] = rule.times
        if rule.times:
            entries[f"wait_{rule.failure}_ms"] = _milliseconds(rule.wait)
    if plan.notify:
        entries |= {"notify_every_ms": _milliseconds(plan.notify.every), "notify_kinds": ",".join(plan.notify.kinds)}
    return render((key, min(value, MOST) if isinstance(value, int) else value) for key, value in entries.items())


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


# `session.json`: how the supervisor judges and watches


def session_manifests(plan: Plan) -> Iterator[tuple[str, str]]:
    """Session name and `session.json` of everything that a plan runs, in its order."""
    for name, members in grouped(plan.sessions, process_of).items():
        yield from ((one.name, session_manifest(one)) for one in members)
        if members[0].together:
            live = tuple(one.name for one in members if one.flag != "dropped")
            yield name, session_manifest(whole(members), live)
    if plan.after:
        yield AFTER, _text(name=AFTER, unit="step", first=0, count=0)


def session_manifest(session: Session, members: tuple[str, ...] = ()) -> str:
    """`members`: the sessions that share the process."""
    around, watch, display = session.around, session.watch, session.display
    return _text(
        name=session.name,
        unit=session.unit,
        first=session.first,
        count=session.count,
        judging=judging(session),
        together=members or (session.together if session.environment else ""),
        ranks=around.ranks if members else None,
        hang_s=watch.hang_s,
        stall_s=watch.stall_s or None,
        max_s=watch.max_s or None,
        memory_mib=session.request.memory if watch.memory else None,
        progress=session.progress.pattern,
        signatures=[list(signature) for signature in session.failures],
        pin=None if session.pin == "cvd" else session.pin,
        wants_port=asks_for(session, "port"),
        draws=_draws(session),
        display=display and {"word": display.word(), "geometry": display.geometry},
        servers=[name for name, _ in session.servers],
        files=bool(around.files),
        container=around.container.runtime if around.container else None,
    )


def _draws(session: Session) -> list[str]:
    return [api for api in ("egl", "vulkan") if asks_for(session, f"{api}_device")]


def server_manifest(one: ServerInstance) -> str:
    server = one.server
    return _text(
        name=one.name,
        unit="step",
        first=0,
        count=0,
        pin=None if server.pin == "cvd" else server.pin,
        wants_port=True,
        draws=_draws(server_session(one)),
        ready=server.ready,
        ready_within_s=server.ready_within_s,
        warm_up=server.warm_up,
        health_s=server.health_s,
        health_misses=server.misses,
    )


def _text(**values: Any) -> str:
    return json.dumps(_given(values), indent=1, ensure_ascii=False) + "\n"


def judging(session: Session) -> dict[str, Any]:
    """What comborun/host/record/judging.py reads as `Rules`."""
    results, evidence = session.results, session.evidence
    records = evidence.records and results.counted
    files = bool(results.files) and evidence.records and not (records or evidence.files)
    return {
        **{key: getattr(session, key) for key in ("policy", "environment", "unit", "ranged")},
        "results": results.as_data(),
        "evidence": {"records": True}
        if session.together and session.environment
        else {
            "records": records,
            "any_files": files,
            "line": evidence.line,
            "files": list(evidence.files),
            **({"steps": session.progress.pattern} if evidence.steps else {}),
        },
    }
