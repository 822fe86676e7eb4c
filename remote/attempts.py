"""The newest attempts of a run's sessions: their logs, their begin records, what opens their windows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from comborun.attempt import SLURM, Begin
from comborun.command import RANKS
from comborun.errors import UserError
from comborun.remote import program

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def attach_command(begin: Begin, socket: str, *, write: bool) -> list[str]:
    """The command that opens a session's window: exact names only; tmux's is read-only unless asked.

    screen knows no read-only view: whoever opens its window can type into it.
    """
    if begin.multiplexer == "tmux":
        read_only = [] if write else ["-r"]
        return ["tmux", "-L", socket, "attach-session", *read_only, "-t", f"={begin.address}"]
    if begin.multiplexer == "screen":
        place = ["env", f"SCREENDIR={begin.screendir}"] if begin.screendir else []
        return [*place, "screen", "-x", begin.address]
    if begin.multiplexer == SLURM:
        raise UserError(f"task {begin.address} of Slurm has no window", "combo attach without --all goes to its node")
    raise UserError("this session was started by hand and has no window", "combo logs shows what it prints")


def step_command(job: str, log: PurePosixPath, *, write: bool) -> list[str]:
    """The command that goes to the node of a task, into its allocation: its log grows there, or a shell with its GPUs.

    `job` is the task's own number: srun takes no `12_7`.
    """
    there = ["bash", "-l"] if write else ["tail", "-n", "50", "-F", "--", str(log)]
    return ["srun", f"--jobid={job}", "--overlap", "--pty", *there]
