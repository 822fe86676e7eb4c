"""Start the dispatcher of a run that is on a host, or resume it; safe to repeat."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from comborun.errors import HostError
from comborun.remote import program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.remote.transport import Transport

_SAID = """
cd -- "$1" || exit 73
cat dispatch/out dispatch/journal 2>/dev/null | tail -n 20
"""
_WATCHED = 20
"""new sessions that are looked for: the first ones start first"""


@dataclass(frozen=True)
class StartOptions:
    parallel: int | None = None
    """sessions at once; None: what the plan says, or what was set before"""
    multiplexer: Literal["tmux", "screen"] | None = None
    """None: tmux where it is, else screen"""
    secrets: bytes = field(default=b"", repr=False)
    """NAME=VALUE and a NUL for each that this machine gives (see remote/secrets.py)"""


def start(transport: Transport, directory: str, options: StartOptions) -> str:
    """Start or resume the dispatcher of a run; returns what was said of it, a sentence a line.

    It takes long when sessions of the user's own have to go first.
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


def first_s() -> float:
    """Seconds within which a session begins that waits for nothing; tests have less time."""
    return float(os.environ.get("COMBORUN_FIRST_S") or 20)


class Beginning(Enum):
    """How a run begins; the values are exit codes."""

    BEGUN = 0
    """a session has"""
    NOT_BEGUN = 1
    """none has within `first_s`, or none will: the run is halted, or over"""
    WAITS = 75
    """none has, and for two seconds the host has said that the first ones wait for a part of it: memory, cores, a GPU.
    A model server that loads is nothing of that kind, because it may fail within `first_s`"""


def await_first(transport: Transport, directory: str) -> Beginning:
    """Look for the first begin record, for `first_s` at most."""
    seconds = first_s()
    done = program.run(transport, directory, "begun", f"{seconds:g}", timeout=seconds + 30)
    try:
        return Beginning(done.code)
    except ValueError:
        raise HostError(f"{directory} on {transport.host} can't be looked at", done.complaint) from None


def said_by_dispatcher(transport: Transport, directory: str) -> str:
    """The last lines of what the dispatcher of a run said and noted down."""
    done = transport.run(_SAID, directory, timeout=30)
    return done.text.strip() or done.complaint


def await_added(transport: Transport, directory: str, sessions: Sequence[str]) -> bool:
    """Whether a run has taken up sessions that it got; not when its dispatcher was just leaving and hasn't seen them.

    They may wait long for their slot, so nothing is waited for beyond a moment.
    """
    done = program.run(transport, directory, "begun", "added", *sessions[:_WATCHED], timeout=30)
    return done.code != 75
