"""Starts, steers and stops a run on its host. All safe to repeat."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from comborun.errors import HostError, UserError
from comborun.remote import program
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.model.plan import Plan, SecretSource
    from comborun.remote.transport import Completed, Transport

Verb = Literal["pause", "drain", "resume", "slots", "retry"]
_OLD_STOP = 'cd -- "$1" && shift && exec bash lib/stop.sh . "$@"'
_SAID = """
cd -- "$1" || exit 73
cat dispatch/out dispatch/journal dispatch/events.jsonl 2>/dev/null | tail -n 20
"""
_OF_SESSION = re.compile(r"([A-Za-z0-9_-]+): ")
_OF_ALL = {"stop", "survives"}
"""first words of other lines. No session has such a name: theirs contain an underscore"""
_STOP_S = 900.0
"""seconds; a stop has its own limits, and an early end would leave it incomplete"""
_STEER_S = 120.0
"""seconds; the notify command may take a minute"""


@dataclass(frozen=True)
class StartOptions:
    parallel: int | None = None
    """sessions at once; None: as the plan says, or as was set before"""
    multiplexer: str | None = None
    """None: tmux if there is one, else screen"""
    secrets: bytes = field(default=b"", repr=False)
    """from `laptop_secrets`; they travel on standard input, and no value is in an argument, a message or a record"""


class Beginning(Enum):
    """How a run begins; the values are exit codes."""

    BEGUN = 0
    """a session has begun"""
    NOT_BEGUN = 1
    """none has begun within `first_s`, or none will: the run is halted, or over"""
    WAITS = 75
    """none has begun, and for two seconds the first ones have waited for resources of the host: memory, cores, a GPU. A
    loading model server does not count, because it may fail within `first_s`
    """


@dataclass(frozen=True)
class Reply:
    """The output of an order, a line per session or action, and whether it was carried out."""

    lines: tuple[str, ...]
    done: bool
    """whether all have ended (of a stop), or whether anything was changed"""

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions that the lines name."""
        matches = (_OF_SESSION.match(line) for line in self.lines)
        return tuple(dict.fromkeys(found[1] for found in matches if found and found[1] not in _OF_ALL))


def laptop_secrets(secrets: Mapping[str, SecretSource], environment: Mapping[str, str] = os.environ) -> bytes:
    """`NAME=VALUE` and a NUL for each secret of this machine. Raises UserError if one is not set, or empty."""
    names = [name for name, source in secrets.items() if source == "laptop"]
    if missing := [name for name in names if not environment.get(name)]:
        raise UserError(
            f"secrets: this machine's environment has no {', '.join(missing)}",
            f"export {missing[0]}=... before the launch, or say `{missing[0]}: host` when the host has it",
        )
    entries = (f"{name}={environment[name]}\0" for name in names)
    return "".join(entries).encode("utf-8", "surrogateescape")


def start(transport: Transport, directory: str, options: StartOptions) -> str:
    """Start or resume the dispatcher of a run; returns sentences about it. It takes long if the user's old sessions
    must end first.
    """
    arguments: list[str] = []
    if options.parallel is not None:
        arguments += ["--parallel", str(options.parallel)]
    if options.multiplexer is not None:
        arguments += ["--multiplexer", options.multiplexer]
    if options.secrets:
        arguments += ["--secrets", "-"]
    done = program.run(transport, directory, "start", *arguments, stdin=options.secrets, timeout=240)
    program.refuse(transport, directory, done)
    if done.code:
        raise HostError(f"the run {directory} could not be started on {transport.host}", done.complaint)
    return done.text.strip()


def restart_dispatcher(transport: Transport, directory: str, plan: Plan) -> str:
    """Start a missing dispatcher of a run; returns sentences about it. Raises UserError if a secret is missing."""
    return start(transport, directory, StartOptions(secrets=laptop_secrets(dict(plan.secrets))))


def first_s() -> float:
    """Seconds within which a session begins if it waits for nothing; less in tests."""
    return float(os.environ.get("COMBORUN_FIRST_S") or 20)


def await_first(transport: Transport, directory: str) -> Beginning:
    """Wait for the first begin record, at most `first_s`."""
    seconds = first_s()
    done = program.run(transport, directory, "wait-started", f"{seconds:g}", timeout=seconds + 30)
    try:
        return Beginning(done.code)
    except ValueError:
        raise HostError(f"{directory} on {transport.host} can't be read", done.complaint) from None


def dispatcher_output(transport: Transport, directory: str) -> str:
    """The last lines of a dispatcher's output and events."""
    done = transport.run(_SAID, directory, timeout=30)
    return done.text.strip() or done.complaint


def stop(transport: Transport, directory: str, sessions: tuple[str, ...] = ()) -> Reply:
    """End sessions, or the whole run if none is named: INT, TERM, KILL, then a sweep by marker.

    A run of an older version is stopped by its own script.
    """
    done = program.run(transport, directory, "stop", *sessions, timeout=_STOP_S)
    if done.code == program.OLD_RUN:
        done = transport.run(_OLD_STOP, directory, *sessions, timeout=_STOP_S)
    program.refuse(transport, directory, done)
    steps = _split(done.stderr.decode("utf-8", "replace"))  # which came before what ended
    return Reply((*steps, *_split(done.text)), done=done.code == 0)


def steer(transport: Transport, directory: str, verb: Verb, *words: str) -> Reply:
    """Send an order to a run; its dispatcher need not live. Raises UserError if the run can't do it, HostError if the
    host can't write.
    """
    done = _control(transport, directory, verb, *words)
    lines = _lines(done)
    said = lines[-1] if lines else f"exit code {done.code}"
    if done.code in (64, 66):
        raise UserError(said.removeprefix("control: "), "combo status names the sessions")
    if done.code == 73:
        raise HostError(
            f"nothing was changed on {transport.host}: {said}",
            "check its free disk space, and that the run is yours",
        )
    return Reply(lines, done=done.code == 0)


def send_decisions(transport: Transport, directory: str, decisions: str, not_needed: Sequence[str]) -> tuple[str, ...]:
    """Record decisions, a line each, and end their sessions that have not begun. Returns a line for each new thing.

    Raises HostError if the host can't be reached or can't write.
    """
    stdin = decisions.encode("utf-8", "surrogateescape")
    done = _control(transport, directory, "decided", *not_needed, stdin=stdin)
    if done.code:
        raise HostError(f"decisions could not be written on {transport.host}", done.complaint)
    return _lines(done)


def send_test_notice(transport: Transport, directory: str) -> Reply:
    """Run the grid's notify command once: its output, and whether it ended with 0. Raises UserError without one."""
    done = _control(transport, directory, "notify")
    lines = _lines(done)
    if done.code in (66, 69) and lines[-1:] and lines[-1].startswith("control: "):
        raise UserError(lines[-1].removeprefix("control: "), "`notify: COMMAND` in the grid names a command")
    return Reply(lines, done=done.code == 0)


def _control(transport: Transport, directory: str, *words: str, stdin: bytes = b"") -> Completed:
    done = program.run(transport, directory, "control", *words, stdin=stdin, timeout=_STEER_S)
    program.refuse(transport, directory, done)
    return done


def _lines(done: Completed) -> tuple[str, ...]:
    return _split(done.text + done.stderr.decode("utf-8", "replace"))


def _split(text: str) -> tuple[str, ...]:
    return tuple(line for line in harmless(text).splitlines() if line.strip())
