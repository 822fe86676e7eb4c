"""What a user does to a run that is there: stop it, hold it, have sessions started again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from comborun.errors import HostError, UserError
from comborun.remote import program
from comborun.remote.launch import StartOptions, start
from comborun.remote.secrets import from_laptop
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.plan import Plan
    from comborun.remote.transport import Completed, Transport

Verb = Literal["pause", "drain", "resume", "slots", "retry"]

_OLD_STOP = 'cd -- "$1" && shift && exec bash lib/stop.sh . "$@"'
_OF_SESSION = re.compile(r"([A-Za-z0-9_-]+): ")
_OF_ALL = {"stop", "survives"}
"""what other lines begin with; no session is called so: its name has an underscore"""
_STOP_S = 900.0
"""seconds; the stop is bounded by itself, and cutting it off would leave things half ended"""
_STEER_S = 120.0
"""seconds: the user's command for notices may take a minute"""


@dataclass(frozen=True)
class Stopped:
    """What the stop said: a line per session, and whether nothing of them is left."""

    lines: tuple[str, ...]
    clean: bool

    @property
    def sessions(self) -> tuple[str, ...]:
        """Those that something was said of."""
        told = (_OF_SESSION.match(line) for line in self.lines)
        return tuple(dict.fromkeys(found[1] for found in told if found and found[1] not in _OF_ALL))


@dataclass(frozen=True)
class Steered:
    """What was said: a line per thing, and whether any was done."""

    lines: tuple[str, ...]
    done: bool


def stop(transport: Transport, directory: str, sessions: tuple[str, ...] = ()) -> Stopped:
    """End sessions, or the whole run when none is named: INT, TERM, KILL, then a sweep by marker.

    A run that an older version made is stopped by its own script.
    """
    done = program.run(transport, directory, "stop", *sessions, timeout=_STOP_S)
    if done.code == program.OLD_RUN:
        done = transport.run(_OLD_STOP, directory, *sessions, timeout=_STOP_S)
    program.refuse(transport, directory, done)
    return Stopped(_lines(done), clean=done.code == 0)


def steer(transport: Transport, directory: str, verb: Verb, *words: str) -> Steered:
    """Tell a run's dispatcher something; it need not live.

    Raises UserError where the run can't do it, HostError where the host can't write.
    """
    done = program.run(transport, directory, "control", verb, *words, timeout=_STEER_S)
    program.refuse(transport, directory, done)
    lines = _lines(done)
    said = lines[-1] if lines else f"exit code {done.code}"
    if done.code in (64, 66):
        raise UserError(said.removeprefix("control: "), "combo status names the sessions")
    if done.code == 73:
        raise HostError(f"nothing was changed on {transport.host}: {said}", "is the disk full, or the run another's?")
    return Steered(lines, done=done.code == 0)


def tell_decided(transport: Transport, directory: str, decisions: str, not_needed: Sequence[str]) -> tuple[str, ...]:
    """Write down what was decided, a line each, and end those sessions that have not begun; safe to repeat.

    A line for each thing that was new. Raises HostError where the host can't be reached or can't write.
    """
    stdin = decisions.encode("utf-8", "surrogateescape")
    done = program.run(transport, directory, "control", "decided", *not_needed, stdin=stdin, timeout=_STEER_S)
    program.refuse(transport, directory, done)
    if done.code:
        raise HostError(f"decisions could not be written on {transport.host}", done.complaint)
    return _lines(done)


def send_test_notice(transport: Transport, directory: str) -> Steered:
    """Run the grid's command for notices once, now: its lines, and whether it ended with 0.

    Raises UserError when the grid names none.
    """
    done = program.run(transport, directory, "control", "notify", timeout=_STEER_S)
    program.refuse(transport, directory, done)
    lines = _lines(done)
    if done.code in (66, 69) and lines[-1:] and lines[-1].startswith("control: "):
        raise UserError(lines[-1].removeprefix("control: "), "`notify: COMMAND` in the grid names a command")
    return Steered(lines, done=done.code == 0)


def revive(transport: Transport, directory: str, plan: Plan) -> str:
    """Start the dispatcher of a run that has none; what was said of it. Raises UserError when a secret is missing."""
    return start(transport, directory, StartOptions(secrets=from_laptop(dict(plan.secrets))))


def _lines(done: Completed) -> tuple[str, ...]:
    lines = harmless(done.text + done.stderr.decode("utf-8", "replace")).splitlines()
    return tuple(line for line in lines if line.strip())
