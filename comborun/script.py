"""The files of a session in a run: the script `session.sh`, and `session.json` for its supervisor. Pure."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from comborun.command import asks_for
from comborun.judging import ResultRules
from comborun.page import command_lines, exports, page
from comborun.plan import Session
from comborun.rules.names import AFTER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.plan import After, Notify, Plan
    from comborun.resources import PinMode
    from comborun.servers import Instance, Server


FRONT = """\
#!/usr/bin/env bash
# Starts this run, or resumes it; safe to repeat.
#   bash run_parallel.sh [--parallel N] [--multiplexer tmux|screen]
#   bash run_parallel.sh resume | pause [WHY] | drain [WHY] | slots N | retry SESSION... | stop [SESSION]...
run=${0%run_parallel.sh}.
source "$run/lib/find_python.sh"
python_of_run "$run" start "$@"
"""


def session_script(session: Session, secrets: tuple[str, ...] = ()) -> str:
    """The text of `sessions/<name>/session.sh`; `secrets` are the names of those that its run has."""
    policy, environment = shlex.quote(session.policy), shlex.quote(session.environment)
    return page(session, f"policy {policy} in environment {environment}, {_range(session)}", secrets=secrets)


def server_script(one: Instance) -> str:
    """The text of `servers/<name>/session.sh`: a model server is supervised like a session."""
    session = _session(one.name, one.server, gpus=one.server.gpus, pin=one.server.pin)
    return page(session, "a model server, until no session is left that asks it", family="servers")


def after_script(after: After) -> str:
    """The text of `sessions/after/session.sh`: the grid's own command for the end."""
    return page(_session(AFTER, after), "runs once, when all sessions have ended")


def _session(name: str, program: After | Server, gpus: int = 0, pin: PinMode = "cvd") -> Session:
    """A program that is no combo's, as a session without episodes."""
    own = program.command, program.setup, program.workdir, program.variables
    return Session(name, "", "", "step", 0, 0, None, *own, gpus, ResultRules(()), "", pin=pin)


def notify_script(notify: Notify) -> str:
    """The text of `dispatch/notify.sh`: the grid's own command for news, which it reads on its standard input."""
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            "# notify: hands one notice, a JSON object on standard input, to the grid's own command",
            'run=$(cd -- "${0%notify.sh}.." && pwd) || exit 66',
            'IFS= read -r COMBORUN_RUN <"$run/id" || exit 66',
            'export COMBORUN_RUN COMBORUN_RUN_DIR="$run" COMBORUN_RESULTS_DIR="$run/results"',
            "unset COMBORUN_SESSION TMUX TMUX_PANE STY",
            *exports(notify.variables),
            *((f"cd -- {notify.workdir} || exit 78",) if notify.workdir else ()),
            *command_lines(notify.command),
            'exec -- "${command[@]}"',
            "",
        ]
    )


def scripts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Session name and script text of everything that a plan runs, in its order."""
    secrets = tuple(name for name, _ in plan.secrets)
    for session in plan.sessions:
        yield session.name, session_script(session, secrets)
    if plan.after:
        yield AFTER, after_script(plan.after)


def sheets(plan: Plan) -> Iterator[tuple[str, str]]:
    """Session name and `session.json` of everything that a plan runs, in its order."""
    for session in plan.sessions:
        yield session.name, session_data(session)
    if plan.after:
        yield AFTER, _text(name=AFTER, unit="step", first=0, count=0)


def _range(session: Session) -> str:
    unit = f"{session.unit}s"
    if not session.count:
        return f"{unit} as the program decides"
    return f"{unit} {session.first} to {session.first + session.count - 1}"


def session_data(session: Session) -> str:
    around, watch, display = session.around, session.watch, session.display
    return _text(
        name=session.name,
        unit=session.unit,
        first=session.first,
        count=session.count,
        judging=judging(session),
        hang_s=watch.hang_s,
        stall_s=watch.stall_s or None,
        max_s=watch.max_s or None,
        memory_mib=session.request.memory if watch.memory else None,
        progress=session.progress.pattern or None,
        signatures=[list(signature) for signature in session.failures],
        pin=None if session.pin == "cvd" else session.pin,
        wants_port=asks_for(session, "port"),
        draws=[api for api in ("egl", "vulkan") if asks_for(session, f"{api}_device")],
        display=display and {"word": display.word(), "geometry": display.geometry},
        servers=[name for name, _ in session.servers],
        files=bool(around.files),
        container=around.container.runtime if around.container else None,
    )


def server_sheet(one: Instance) -> str:
    """The text of `servers/<name>/session.json`."""
    server = one.server
    return _text(
        name=one.name,
        unit="step",
        first=0,
        count=0,
        pin=None if server.pin == "cvd" else server.pin,
        wants_port=True,
        ready=server.ready,
        ready_within_s=server.ready_within_s,
        warm_up=server.warm_up,
        health_s=server.health_s,
        health_misses=server.misses,
    )


def _text(**values: Any) -> str:
    given = {key: value for key, value in values.items() if value is not None and value is not False and value != []}
    return json.dumps(given, indent=1, ensure_ascii=False) + "\n"


def judging(session: Session) -> dict[str, Any]:
    """What comborun/host/judging.py reads as `Rules.of_session`."""
    results, evidence = session.results, session.evidence
    records = evidence.records and results.counted
    return {
        "policy": session.policy,
        "environment": session.environment,
        "unit": session.unit,
        "files": list(results.files),
        "success": results.success,
        "episode": results.episode,
        "policy_field": results.policy,
        "environment_field": results.environment,
        "pattern": results.pattern,
        **({"seed_field": results.seed} if results.seed else {}),
        **({"base": str(results.base)} if results.base else {}),
        "format": results.format,
        "source": results.source,
        "videos": list(results.videos),
        "ranged": session.ranged,
        "records": records,
        "results": bool(results.files) and evidence.records and not (records or evidence.files),
        "line": evidence.line,
        "evidence_files": list(evidence.files),
    }
