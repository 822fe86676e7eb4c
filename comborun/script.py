"""The bash text of a session: constants, one `source`, one command, one call. Same grid, same bytes."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from comborun.layout import AFTER
from comborun.servers import serving
from comborun.session.furnishing import early, furnishing, late_variables
from comborun.session.wrapping import wrapped_late, wrapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comborun.instances import Instance
    from comborun.plan import After, Notify, Plan, Session
    from comborun.results import ResultRules
    from comborun.session.word import BashWord

FRONT = """\
#!/usr/bin/env bash
# Starts this run's dispatcher, or resumes it; safe to repeat.
#   bash run_parallel.sh [--parallel N] [--multiplexer tmux|screen]
exec bash "${0%run_parallel.sh}lib/start.sh" "${0%run_parallel.sh}." "$@"
"""

SLURM_FRONT = """\
#!/usr/bin/env bash
# Hands what is due of this run to Slurm, on a machine that has sbatch; safe to repeat.
#   bash run_parallel.sh [--parallel N]
exec bash "${0%run_parallel.sh}lib/slurm_submit.sh" "${0%run_parallel.sh}." "$@"
"""


def session_script(session: Session) -> str:
    """The text of `sessions/<name>/session.sh`."""
    policy, environment = shlex.quote(session.policy), shlex.quote(session.environment)
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            f"# {session.name}: policy {policy} in environment {environment}, {_range(session)}",
            *_constants(session.name, session.unit, session.first, session.count),
            *_surroundings(session.workdir, session.results, early(session.variables), session.setup),
            *_judging(session),
            *furnishing(session),
            *wrapping(session),
            *_call(session.command, (*late_variables(session.variables), *wrapped_late(session))),
        ]
    )


def server_script(one: Instance) -> str:
    """The text of `servers/<name>/session.sh`: a model server is supervised like a session."""
    server = one.server
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            f"# {one.name}: a model server, until no session is left that asks it",
            *_constants(one.name, "step", 0, 0),
            *_surroundings(server.workdir, None, early(server.variables), server.setup),
            *serving(server),
            *_call(server.command, late_variables(server.variables)),
        ]
    )


def after_script(after: After) -> str:
    """The text of `sessions/after/session.sh`: the grid's own command for the end."""
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            "# after: runs once, when all sessions have ended",
            *_constants(AFTER, "step", 0, 0),
            *_surroundings(after.workdir, None, after.variables, after.setup),
            *_call(after.command),
        ]
    )


def notify_script(notify: Notify) -> str:
    """The text of `dispatch/notify.sh`: the grid's own command for news, which it reads on its standard input."""
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            "# notify: hands one notice, a JSON object on standard input, to the grid's own command",
            *((f"workdir={notify.workdir}",) if notify.workdir else ()),
            *_exports(notify.variables),
            'source "${0%notify.sh}../lib/hook.sh"',
            *_command(notify.command),
            "hook::run",
            "",
        ]
    )


def scripts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Session name and script text of everything that a plan runs, in its order."""
    for session in plan.sessions:
        yield session.name, session_script(session)
    if plan.after:
        yield AFTER, after_script(plan.after)


def success_pattern(field: str) -> str:
    """The extended regular expression that finds a successful JSON record: field true, 1, 1.0 or "true" in any case."""
    # A line is searched, not parsed: an object within the record that has the same key misleads the host's count, which
    # is for the live table. The report parses each record.
    return rf'"{re.escape(field)}" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}}]'


def says_something(setup: str) -> bool:
    """Whether there is a command in it: bash takes a function of comments only for a mistake."""
    return any(line.strip() and not line.strip().startswith("#") for line in setup.splitlines())


def _range(session: Session) -> str:
    unit = f"{session.unit}s"
    if not session.count:
        return f"{unit} as the program decides"
    return f"{unit} {session.first} to {session.first + session.count - 1}"


def _constants(name: str, unit: str, first: int, count: int) -> Iterator[str]:
    yield f"name={name}"
    yield f"unit={unit}"
    yield f"first={first}"
    yield f"count={count}"


def _surroundings(
    workdir: BashWord | None, results: ResultRules | None, variables: Iterable[tuple[str, BashWord]], setup: str
) -> Iterator[str]:
    if workdir:
        yield f"workdir={workdir}"
    yield f"results=({' '.join(map(shlex.quote, results.files if results else ()))})"
    if results:
        yield f"success={shlex.quote(success_pattern(results.success))}"
        if results.source == "log":
            yield "results_log=1"
    yield from _exports(variables)
    if says_something(setup):
        yield from ("setup() {", setup.rstrip("\n"), "}")


def _exports(variables: Iterable[tuple[str, BashWord]]) -> Iterator[str]:
    if exported := [f"  {name}={value}" for name, value in variables]:
        yield from ("variables=(", *exported, ")")


def _judging(session: Session) -> Iterator[str]:
    """How the work is judged and watched; only what is not as the library has it."""
    evidence, watch = session.evidence, session.watch
    if session.ranged and session.results.files:
        yield "ranged=1"
        yield f"episode={shlex.quote(session.results.episode)}"
    if session.results.files and not (evidence.records and session.results.lines):
        yield "evidence_records=0"
    if session.results.files and evidence.records and not (session.results.lines or evidence.files):
        yield "evidence_results=1"
    if evidence.line:
        yield f"evidence_line={shlex.quote(evidence.line)}"
    if evidence.files:
        yield f"evidence_files=({' '.join(map(shlex.quote, evidence.files))})"
    yield from _seconds("hang_s", watch.hang_s)
    yield from _seconds("stall_s", watch.stall_s or None)
    yield from _seconds("max_s", watch.max_s or None)
    if session.failures:
        signatures = (f"  {shlex.quote(f'{failure} {pattern}')}" for failure, pattern in session.failures)
        yield from ("signatures=(", *signatures, ")")


def _seconds(name: str, value: int | None) -> Iterator[str]:
    if value is not None:
        yield f"{name}={value}"


def _call(command: tuple[BashWord, ...], late: Iterable[str] = ()) -> Iterator[str]:
    yield 'source "${0%session.sh}../../lib/session.sh"'
    yield 'session::prepare "$@"'
    yield from late
    yield from _command(command)
    yield "session::run"
    yield ""


def _command(command: tuple[BashWord, ...]) -> Iterator[str]:
    yield from ("command=(", *(f"  {line}" for line in _flag_per_line(command)), ")")


def _flag_per_line(command: tuple[BashWord, ...]) -> Iterator[str]:
    """The words of a command, a flag with its values on a line of their own."""
    line: list[str] = []
    for word in command:
        if line and (word.startswith("-") or not line[0].startswith("-")):
            yield " ".join(line)
            line = []
        line.append(word)
    yield " ".join(line)
