"""The newest attempts of a run's sessions, and their logs, byte for byte."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from comborun.attempt import Begin
from comborun.command import RANKS
from comborun.errors import HostError, UserError
from comborun.remote import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from comborun.remote.transport import Transport
    from comborun.rules.names import RunLayout


Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Latest:
    """The newest attempt of a session."""

    number: int
    log: PurePosixPath
    begin: Begin | None


def latest(transport: Transport, layout: RunLayout, session: str) -> Latest:
    """The newest attempt of `session`, or of a model server of that name.

    Raises UserError when it has none, or when there is neither.
    """
    run = layout.directory
    done = program.run_packed(transport, "logs", "latest", run, session, timeout=30, python=program.of_run(run))
    if done.code == 69:
        raise UserError(f"{session} has not started yet", "combo status shows what it waits for")
    if done.code:
        name = PurePosixPath(run).name
        raise UserError(f"there is no session {session} in {name}", f"combo status {name} names them")
    told = program.answer(transport, done)
    attempt = (layout.server_attempt if told["family"] == "servers" else layout.attempt)(session, int(told["number"]))
    begin = str(told["begin"])
    return Latest(int(told["number"]), PurePosixPath(attempt.log), Begin.parse(begin) if begin.strip() else None)


def rank_log(transport: Transport, seen: Latest, rank: int, stream: Stream) -> PurePosixPath:
    """The log of one rank in an attempt that a launcher started; after a restart of the ranks the newest.

    Raises UserError when there is none.
    """
    words = (str(seen.log.parent / "out" / RANKS), str(rank), stream)
    done = program.run_packed(transport, "logs", "rank", *words, timeout=30, python=program.of_run(seen.log.parents[3]))
    told = program.answer(transport, done)
    if told["found"]:
        return PurePosixPath(told["found"])
    if not told["ranks"]:
        raise UserError("no launcher started ranks in this attempt", "`launcher: torchrun` in the grid does")
    raise UserError(f"there is no rank {rank}", f"there are {', '.join(map(str, told['ranks']))}")


def begins(transport: Transport, layout: RunLayout, sessions: Iterable[str]) -> dict[str, Begin]:
    """The begin records of the sessions' newest attempts, where there are any; one round trip."""
    run = layout.directory
    done = program.run_packed(transport, "logs", "begins", run, *sessions, timeout=60, python=program.of_run(run))
    told = program.answer(transport, done)
    return {name: Begin.parse(record) for name, record in told.items() if record.strip()}


_PIECE = 1 << 20
"""bytes of a log that one answer holds at most"""


def follow(
    transport: Transport,
    log: PurePosixPath,
    lines: int,
    *,
    on: bool,
    end: PurePosixPath | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[bytes]:
    """The last `lines` lines of a log, and with `on` what comes after them until the session has ended.

    `end` is the attempt's end record, where that does not lie beside the log.

    One round trip a second at most. A log that is longer than a piece comes in several pieces, without a pause.
    """
    python = program.of_run(log.parents[3])
    offset = _offset(transport, log, lines, python)
    over = str(end or log.with_name("end"))
    while True:
        words = (str(log), str(offset), str(_PIECE), over)
        answer = program.run_packed(transport, "logs", "next", *words, timeout=60, python=python)
        if answer.code:
            raise HostError(f"the log {log} on {transport.host} can't be read", answer.complaint)
        if answer.stdout:
            yield answer.stdout
        offset += len(answer.stdout)
        if len(answer.stdout) == _PIECE:
            continue
        if not on or answer.stderr.endswith(b"1"):
            return
        sleep(1.0)


def _offset(transport: Transport, log: PurePosixPath, lines: int, python: program.Python) -> int:
    done = program.run_packed(transport, "logs", "start", str(log), str(lines), timeout=60, python=python)
    if done.code:
        raise HostError(f"the log {log} on {transport.host} can't be read", done.complaint)
    return int(program.answer(transport, done))
