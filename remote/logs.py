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
    from collections.abc import Iterable, Iterator

    from comborun.remote.transport import Completed, Transport
    from comborun.rules.names import RunLayout

Stream = Literal["stdout", "stderr"]

_PIECE = 1 << 20
"""bytes of a log that one answer holds at most"""


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
    done = _ask(transport, layout.directory, "latest", layout.directory, session)
    if done.code == 69:
        raise UserError(f"{session} has not started yet", "combo status shows what it waits for")
    if done.code:
        name = PurePosixPath(layout.directory).name
        raise UserError(f"there is no session {session} in {name}", f"combo status {name} names them")
    told = program.answer(transport, done)
    number, begin = int(told["number"]), str(told["begin"])
    attempt = (layout.server_attempt if told["family"] == "servers" else layout.attempt)(session, number)
    return Latest(number, PurePosixPath(attempt.log), Begin.parse(begin) if begin.strip() else None)


def rank_log(transport: Transport, seen: Latest, rank: int, stream: Stream) -> PurePosixPath:
    """The log of one rank in an attempt that a launcher started; after a restart of the ranks the newest.

    Raises UserError when there is none.
    """
    ranks = str(seen.log.parent / "out" / RANKS)
    told = program.answer(transport, _ask(transport, seen.log.parents[3], "rank", ranks, str(rank), stream))
    if told["found"]:
        return PurePosixPath(told["found"])
    if not told["ranks"]:
        raise UserError("no launcher started ranks in this attempt", "`launcher: torchrun` in the grid does")
    raise UserError(f"there is no rank {rank}", f"there are {', '.join(map(str, told['ranks']))}")


def begins(transport: Transport, layout: RunLayout, sessions: Iterable[str]) -> dict[str, Begin]:
    """The begin records of the sessions' newest attempts, where there are any; one round trip."""
    told = program.answer(transport, _ask(transport, layout.directory, "begins", layout.directory, *sessions))
    return {name: Begin.parse(record) for name, record in told.items() if record.strip()}


def follow(
    transport: Transport, log: PurePosixPath, lines: int, *, on: bool, end: PurePosixPath | None = None
) -> Iterator[bytes]:
    """The last `lines` lines of a log, and with `on` what comes after them until the session has ended.

    `end` is the attempt's end record, where that does not lie beside the log. One round trip a second at most. A log
    that is longer than a piece comes in several pieces, without a pause.
    """
    over = str(end or log.with_name("end"))
    offset = int(program.answer(transport, _read(transport, log, "start", str(lines))))
    while True:
        piece = _read(transport, log, "next", str(offset), str(_PIECE), over)
        if piece.stdout:
            yield piece.stdout
        offset += len(piece.stdout)
        if len(piece.stdout) == _PIECE:
            continue
        if not on or piece.stderr.endswith(b"1"):
            return
        time.sleep(1.0)


def _read(transport: Transport, log: PurePosixPath, verb: str, *words: str) -> Completed:
    done = _ask(transport, log.parents[3], verb, str(log), *words)
    if done.code:
        raise HostError(f"the log {log} on {transport.host} can't be read", done.complaint)
    return done


def _ask(transport: Transport, run: object, *words: str) -> Completed:
    return program.run_packed(transport, "logs", *words, timeout=60, python=program.of_run(run))
