"""What sessions show: their logs, byte for byte, and their windows, one at a time or many at once, through libtmux."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Literal, NamedTuple

from comborun.clock import elapsed
from comborun.errors import HostError, UserError
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.model.attempt import SLURM, Begin
from comborun.model.command import RANKS
from comborun.remote import program
from comborun.rules import events
from comborun.rules.names import SERVERS, RunLayout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import libtmux

    from comborun.remote.transport import Completed, Transport

Stream = Literal["stdout", "stderr"]

_MOST = 1 << 20
"""most bytes of logs in one answer"""
_EVENTS_KEPT = 1 << 17
_EVENTS = """
tail -c "$2" -- "$1"
printf '\\n\\0'
tail -c "$2" -- "$3" 2>/dev/null
exit 0
"""
"""events, then who gave orders"""
# The log is a file that our supervisor made: a link in its place leads to something else.
_PART = """
[[ -f $1 && ! -L $1 ]] || exit 4
size=$(wc -c <"$1")
from=$2
((from >= 0)) || from=$((size > $3 ? size - $3 : 0))
((from <= size)) || from=$size
printf '%s %s\\n' "$from" "$size"
tail -c +"$((from + 1))" -- "$1" | head -c "$3"
"""
_MOVES_S = 5.0
"""seconds between two questions where sessions are that have not begun"""


def newest_events(transport: Transport, directory: str) -> list[events.Event]:
    """What happened in a run, and who gave its orders. Raises HostError."""
    run = RunLayout(directory)
    answer = transport.run(_EVENTS, run.events, str(_EVENTS_KEPT), run.people)
    happened, _, people = answer.text.partition("\0")
    return events.named(events.parse(happened), people)


class LogPart(NamedTuple):
    start: int
    size: int
    """of the whole log"""
    data: bytes


def log_part(transport: Transport, run: str, name: str, attempt: int, start: int, most: int) -> LogPart | None:
    """At most so many bytes of a log from an offset on; -1: the last ones. None if there is no log. Raises HostError.

    It is a short script, which costs the host less than a Python: views ask for it every second.
    """
    done = transport.run(_PART, RunLayout(run).attempt(name, attempt).log, str(start), str(most), timeout=60.0)
    if done.code == 4:
        return None
    head, newline, data = done.stdout.partition(b"\n")
    if done.code or not newline:
        raise HostError(f"the log of {name} can't be read", done.complaint)
    begun, size = map(int, head.split())
    return LogPart(begun, size, data)


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
    """The log of one rank, of the newest start of an attempt's ranks. Raises UserError if there is none."""
    ranks = str(seen.log.parent / "out" / RANKS)
    answer = program.answer(transport, _ask(transport, seen.log.parents[3], "rank", ranks, str(rank), stream))
    if answer["found"]:
        return PurePosixPath(answer["found"])
    if not answer["ranks"]:
        raise UserError("no launcher started ranks in this attempt", "`launcher: torchrun` in the grid does")
    raise UserError(f"there is no rank {rank}", f"there are {', '.join(map(str, answer['ranks']))}")


def follow(
    transport: Transport,
    run: str,
    logs: Sequence[LogPosition],
    lines: int,
    *,
    on: bool,
    own: bool = False,
    moved: Callable[[Sequence[str]], Collection[str]] | None = None,
) -> Iterator[LogPiece]:
    """The last `lines` lines of logs; with `on`, also what follows until all of the sessions have ended.

    An attempt that begins meanwhile is followed from its first byte. There is at most one round trip a second. A log
    that is longer than an answer comes in several pieces, without a pause. A piece without data means that a log has
    not begun, or that it has nothing new. With `own` the program of the run reads them: it must be the same as ours.
    Every few seconds `moved` gets the sessions that have not begun; those that it returns are followed no more.
    """
    due = elapsed() + _MOVES_S
    while True:
        pieces = _read(transport, run, logs, lines, own=own)
        yield from pieces
        logs = [piece.log if piece.log.attempt else replace(piece.log, offset=0) for piece in pieces]
        if sum(len(piece.data) for piece in pieces) == _MOST:
            continue
        waiting = [log.session for log in logs if not log.attempt]
        if moved and waiting and elapsed() >= due:
            gone = moved(waiting)
            logs = [log for log in logs if log.session not in gone]
            due = elapsed() + _MOVES_S
        if not on or all(log.ended for log in logs):
            return
        time.sleep(1.0)


class Merged:
    """The pieces of logs of several hosts, as they come. Whoever reads one of them may add more. Raises the first error
    of any.
    """

    def __init__(self) -> None:
        self._coming = Queue[LogPiece | Exception | int]()
        """a number says how many more are read from now on"""

    def add(self, pieces: Iterator[LogPiece]) -> None:
        self._coming.put(1)
        Thread(target=self._read, args=(pieces,), daemon=True).start()

    def __iter__(self) -> Iterator[LogPiece]:
        left = 0
        while True:
            one = self._coming.get()
            if isinstance(one, Exception):
                raise one
            if isinstance(one, LogPiece):
                yield one
                continue
            left += one
            if not left:
                return

    def _read(self, pieces: Iterator[LogPiece]) -> None:
        try:
            for piece in pieces:
                self._coming.put(piece)
            self._coming.put(-1)
        except Exception as error:  # noqa: BLE001 - whoever shows the logs raises it
            self._coming.put(error)


def end_of_log(transport: Transport, log: PurePosixPath, lines: int) -> bytes:
    attempt, run = log.parent, log.parents[3]
    one = LogPosition(attempt.parent.name, int(attempt.name.rpartition("-")[2]), path=str(log))
    return b"".join(piece.data for piece in follow(transport, str(run), [one], lines, on=False))


def _read(transport: Transport, run: str, logs: Sequence[LogPosition], lines: int, *, own: bool) -> list[LogPiece]:
    asked = json.dumps([[log.session, log.attempt, log.offset, log.path] for log in logs]).encode()
    words = ("read", run, str(lines), str(_MOST))
    if own:
        done = program.run(transport, run, "logs", *words, stdin=asked)
    else:
        done = _ask(transport, run, *words, stdin=asked)
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


def attach_command(begin: Begin, *, local: bool, write: bool) -> list[str]:
    """The command that opens a session's window, read-only by default where the multiplexer can show it so."""
    if engine := MULTIPLEXERS.get(begin.multiplexer):
        return engine.attach(begin.address, begin.sockets, local=local, write=write)
    if begin.multiplexer == SLURM:
        raise UserError(f"task {begin.address} of Slurm has no window", "combo attach without --all goes to its node")
    raise UserError("this session was started by hand and has no window", "combo logs shows what it prints")


def step_command(job: str, log: PurePosixPath, *, write: bool) -> list[str]:
    """The command that goes to the node of a task, into its allocation, and shows its log or a shell with its GPUs.

    `job` is the task's own number: srun does not accept `12_7`.
    """
    there = ["bash", "-l"] if write else follow_command(log)
    return ["srun", f"--jobid={job}", "--overlap", "--pty", *there]


def follow_command(log: PurePosixPath) -> list[str]:
    """The command that shows a log as it grows."""
    return ["tail", "-n", "50", "-F", "--", str(log)]


def is_open(begin: Begin) -> bool:
    """Whether a session's window is open on this machine, as far as its multiplexer tells."""
    engine = MULTIPLEXERS.get(begin.multiplexer)
    seen = engine.look(begin.sockets) if engine else None
    return seen is None or begin.address in seen


def can_be_shown(begin: Begin) -> bool:
    """Whether its window can be shown read-only."""
    engine = MULTIPLEXERS.get(begin.multiplexer)
    return engine is not None and engine.read_only


def tile(name: str, panes: Mapping[str, str]) -> list[str]:
    """Open a window on the user's own tmux server with a pane for every command; returns the command that shows it.

    Inside tmux it is a window of the user's session, otherwise its own session. A pane closes with its command, the
    window with its last pane. Raises UserError if tmux refuses.
    """
    import libtmux
    from libtmux.exc import LibTmuxException

    server = libtmux.Server()
    commands = iter(panes.items())
    title, first = next(commands)
    try:
        window = _window(server, name, first)
        _label(window.active_pane, title)
        for title, command in commands:
            _label(window.split(shell=command), title)
            window.select_layout("tiled")  # after each one, since a pane that is too small can't be split
        window.set_option("pane-border-status", "top")
        window.set_option("pane-border-format", " #{pane_title} ")
    except LibTmuxException as error:
        raise UserError(f"tmux could not open the window: {error}", "attach to a single session instead") from None
    inside = "select-window" if os.environ.get("TMUX") else "attach-session"
    return ["tmux", inside, "-t", window.window_id or name]


def _window(server: libtmux.Server, name: str, command: str) -> libtmux.Window:
    if os.environ.get("TMUX"):
        current = server.cmd("display-message", "-p", "#{session_id}").stdout[0]
        session = server.sessions.get(session_id=current)
        assert session
        return session.new_window(window_name=name, window_shell=command, attach=False)
    for session in server.sessions if server.is_alive() else ():
        if session.session_name == name:
            session.kill()
    return server.new_session(session_name=name, window_command=command, x=200, y=50).active_window


def _label(pane: libtmux.Pane | None, title: str) -> None:
    if pane:
        pane.cmd("select-pane", "-T", title)
