"""Reads the logs of the newest attempts of a run's sessions, byte for byte."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

from comborun.errors import HostError, UserError
from comborun.model.attempt import Begin
from comborun.model.command import RANKS
from comborun.remote import program
from comborun.rules.names import SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.remote.transport import Completed, Transport
    from comborun.rules.names import RunLayout

Stream = Literal["stdout", "stderr"]

_MOST = 1 << 20
"""most bytes of logs in one answer"""


@dataclass(frozen=True)
class LatestAttempt:
    number: int
    log: PurePosixPath
    begin: Begin | None


@dataclass(frozen=True)
class LogPosition:
    """A log, and the position up to which it was read."""

    session: str
    attempt: int = 0
    offset: int = -1
    """-1: start at the last lines"""
    path: str = ""
    """empty: the log of the newest attempt, whatever its number"""
    ended: bool = False


class LogPiece(NamedTuple):
    """New bytes of a log."""

    log: LogPosition
    data: bytes


def latest(transport: Transport, layout: RunLayout, sessions: Sequence[str]) -> dict[str, LatestAttempt]:
    """The newest attempts of sessions and model servers of a run; one round trip."""
    answer = program.answer(transport, _ask(transport, layout.directory, "latest", layout.directory, *sessions))
    found = {}
    for name, one in answer.items():
        number, begin = int(one["number"]), str(one["begin"])
        attempt = layout.attempt(SERVERS + name if one["family"] == "servers" else name, max(1, number))
        found[name] = LatestAttempt(number, PurePosixPath(attempt.log), Begin.parse(begin) if begin.strip() else None)
    return found


def rank_log(transport: Transport, seen: LatestAttempt, rank: int, stream: Stream) -> PurePosixPath:
    """The log of one rank in an attempt with a launcher, of the newest start of the ranks. Raises UserError if there is
    none.
    """
    ranks = str(seen.log.parent / "out" / RANKS)
    answer = program.answer(transport, _ask(transport, seen.log.parents[3], "rank", ranks, str(rank), stream))
    if answer["found"]:
        return PurePosixPath(answer["found"])
    if not answer["ranks"]:
        raise UserError("no launcher started ranks in this attempt", "`launcher: torchrun` in the grid does")
    raise UserError(f"there is no rank {rank}", f"there are {', '.join(map(str, answer['ranks']))}")


def follow(transport: Transport, run: str, logs: Sequence[LogPosition], lines: int, *, on: bool) -> Iterator[LogPiece]:
    """The last `lines` lines of logs; with `on`, also what follows until all of the sessions have ended.

    An attempt that begins meanwhile is followed from its first byte. There is at most one round trip a second. A log
    that is longer than an answer comes in several pieces, without a pause. A piece without data means that a log has
    not begun, or that it has nothing new.
    """
    while True:
        pieces = _read(transport, run, logs, lines)
        yield from pieces
        logs = [piece.log if piece.log.attempt else replace(piece.log, offset=0) for piece in pieces]
        if sum(len(piece.data) for piece in pieces) == _MOST:
            continue
        if not on or all(log.ended for log in logs):
            return
        time.sleep(1.0)


def end_of_log(transport: Transport, log: PurePosixPath, lines: int) -> bytes:
    attempt, run = log.parent, log.parents[3]
    one = LogPosition(attempt.parent.name, int(attempt.name.rpartition("-")[2]), path=str(log))
    return b"".join(piece.data for piece in follow(transport, str(run), [one], lines, on=False))


def _read(transport: Transport, run: str, logs: Sequence[LogPosition], lines: int) -> list[LogPiece]:
    asked = json.dumps([[log.session, log.attempt, log.offset, log.path] for log in logs]).encode()
    done = _ask(transport, run, "read", run, str(lines), str(_MOST), stdin=asked)
    head, newline, data = done.stdout.partition(b"\n")
    if done.code or not newline:
        raise HostError(f"the logs of {run} on {transport.host} can't be read", done.complaint)
    pieces, begin = [], 0
    for log, (_, attempt, offset, length, ended) in zip(logs, json.loads(head), strict=True):
        at = replace(log, attempt=attempt, offset=offset + length, ended=ended)
        pieces.append(LogPiece(at, data[begin : begin + length]))
        begin += length
    return pieces


def _ask(transport: Transport, run: object, *words: str, stdin: bytes = b"") -> Completed:
    return program.run_packed(transport, "logs", *words, stdin=stdin, timeout=60, python=program.of_run(run))
