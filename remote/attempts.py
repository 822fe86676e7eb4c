"""The newest attempts of a run's sessions: their logs, their begin records, what opens their windows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from comborun.attempt import SLURM, Begin
from comborun.errors import UserError
from comborun.session.launcher import RANKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.layout import RunLayout
    from comborun.transport import Transport

Stream = Literal["stdout", "stderr"]

_NEWEST = """
newest() { # <session> <file> -> n: its highest attempt that has the file, 0 for none
  local directory
  n=0
  for directory in "$1"/attempt-*; do
    [[ ${directory##*-} =~ ^[1-9][0-9]*$ && -e $directory/$2 ]] && ((${directory##*-} > n)) && n=${directory##*-}
  done
}
cd -- "$1/sessions" 2>/dev/null || exit 66
shift
"""

_LATEST = """
family=sessions
[[ -d $1 ]] || { family=servers && cd ../servers 2>/dev/null && [[ -d $1 ]]; } || exit 66
newest "$1" log
((n)) || exit 69
printf '%s %s\\n' "$n" "$family"
cat "$1/attempt-$n/begin" 2>/dev/null
exit 0
"""

_RANK = """
shopt -s nullglob
found='' ranks=()
for log in "$1"/*/attempt_*/*/"$3.log"; do
  directory=${log%/*}
  [[ ${directory##*/} =~ ^[0-9]+$ ]] || continue
  ranks+=("${directory##*/}")
  [[ ${directory##*/} == "$2" && (! $found || $log -nt $found) ]] && found=$log
done
printf '%s\\0' "$found"
printf '%s\n' "${ranks[@]}" | sort -nu | tr '\\n' '\\0'
"""

_BEGINS = """
for name in "$@"; do
  newest "$name" begin
  printf '%s\\0' "$name"
  cat "$name/attempt-$n/begin" 2>/dev/null
  printf '\\0'
done
"""


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
    done = transport.run(_NEWEST + _LATEST, str(layout.directory), session, timeout=30)
    if done.code == 69:
        raise UserError(f"{session} has not started yet", "combo status shows what it waits for")
    if done.code:
        run = layout.directory.name
        raise UserError(f"there is no session {session} in {run}", f"combo status {run} names them")
    first, _, record = done.text.partition("\n")
    number, _, family = first.partition(" ")
    attempt = (layout.server_attempt if family == "servers" else layout.attempt)(session, int(number))
    return Latest(int(number), attempt.log, Begin.parse(record) if record.strip() else None)


def rank_log(transport: Transport, seen: Latest, rank: int, stream: Stream) -> PurePosixPath:
    """The log of one rank in an attempt that a launcher started; after a restart of the ranks the newest.

    Raises UserError when there is none.
    """
    done = transport.run(_RANK, str(seen.log.parent / "out" / RANKS), str(rank), stream, timeout=30)
    found, *ranks = done.text.split("\0")
    if found:
        return PurePosixPath(found)
    if not any(ranks):
        raise UserError("no launcher started ranks in this attempt", "`launcher: torchrun` in the grid does")
    known = ", ".join(sorted(filter(None, ranks), key=int))
    raise UserError(f"there is no rank {rank}", f"there are {known}")


def begins(transport: Transport, layout: RunLayout, sessions: Iterable[str]) -> dict[str, Begin]:
    """The begin records of the sessions' newest attempts, where there are any; one round trip."""
    words = transport.run(_NEWEST + _BEGINS, str(layout.directory), *sessions, timeout=60).text.split("\0")
    pairs = zip(words[0::2], words[1::2], strict=False)
    return {name: Begin.parse(record) for name, record in pairs if record.strip()}


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
