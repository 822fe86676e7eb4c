"""Which scripts a run has, and what each of them runs. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from comborun.generate.script import command_lines, exports, page
from comborun.model.plan import After, Notify, Plan, Session
from comborun.model.resources import ModelServer, PinMode, ServerInstance
from comborun.model.work import grouped, process_of, whole
from comborun.rules.names import (
    AFTER,
    MULTIPLEXER_NAMES,
)
from comborun.rules.results.fields import ResultRules

if TYPE_CHECKING:
    from collections.abc import Iterator


FRONT = f"""\
#!/usr/bin/env bash
# Starts this run, or resumes it; safe to repeat.
#   bash run_parallel.sh [--parallel N] [--multiplexer {"|".join(MULTIPLEXER_NAMES)}]
#   bash run_parallel.sh resume | pause [WHY] | drain [WHY] | slots N | retry SESSION... | stop [SESSION]...
run=${{0%run_parallel.sh}}.
source "$run/lib/find_python.sh"
python_of_run "$run" start "$@"
"""


def session_script(*members: Session, secrets: tuple[str, ...] = ()) -> str:
    """The text of `sessions/<name>/session.sh`, for one session or for all `members` of a process; `secrets` are names
    of environment variables.
    """
    session = whole(members)
    if session.together:
        about = f"policy {shlex.quote(session.policy)} in the environments of COMBORUN_TOGETHER"
        return page(session, about, secrets=secrets, members=members)
    last = session.first + session.count - 1
    span = f"{session.first} to {last}" if session.count else "as the program decides"
    combo = f"policy {shlex.quote(session.policy)} in environment {shlex.quote(session.environment)}"
    return page(session, f"{combo}, {session.unit}s {span}", secrets=secrets)


def server_script(one: ServerInstance) -> str:
    """The text of `servers/<name>/session.sh`: a model server is supervised like a session."""
    return page(server_session(one), "a model server, until no session uses it any more", family="servers")


def server_session(one: ServerInstance) -> Session:
    return _session(one.name, one.server, gpus=one.server.gpus, pin=one.server.pin)


def after_script(after: After) -> str:
    """The text of `sessions/after/session.sh`: the grid's command for the end of a run."""
    return page(_session(AFTER, after), "runs once, when all sessions have ended")


def _session(name: str, program: After | ModelServer, gpus: int = 0, pin: PinMode = "cvd") -> Session:
    """A program without a combo, as a session without episodes."""
    own = program.command, program.setup, program.workdir, program.variables
    return Session(name, "", "", "step", 0, 0, None, *own, gpus, ResultRules(()), "", pin=pin)


def notify_script(notify: Notify) -> str:
    """The text of `dispatch/notify.sh`: the grid's command for notices."""
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
    for name, same in grouped(plan.sessions, process_of).items():
        yield name, session_script(*same, secrets=secrets)
    if plan.after:
        yield AFTER, after_script(plan.after)
