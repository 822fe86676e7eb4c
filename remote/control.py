"""What a user does to a run that is there: stop it, look at its logs, open its windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.attempt import Begin
from comborun.errors import UserError
from comborun.layout import RunLayout
from comborun.plaintext import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import PurePosixPath

    from comborun.transport import Transport

_STOP = 'directory=$1; shift; exec bash "$directory/lib/stop.sh" "$directory" "$@"'
_STOP_S = 900.0
"""seconds; stop.sh is bounded by itself, and cutting it off would leave things half ended"""

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
[[ -d $1 ]] || exit 66
newest "$1" log
((n)) || exit 69
printf '%s\\n' "$n"
cat "$1/attempt-$n/begin" 2>/dev/null
exit 0
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
class Stopped:
    """What stop.sh said: a line per session, and whether nothing of them is left."""

    lines: tuple[str, ...]
    clean: bool


@dataclass(frozen=True)
class Latest:
    """The newest attempt of a session."""

    number: int
    log: PurePosixPath
    begin: Begin | None


def stop(transport: Transport, directory: str, sessions: tuple[str, ...] = ()) -> Stopped:
    """End sessions, or the whole run when none is named: INT, TERM, KILL, then a sweep by marker."""
    done = transport.run(_STOP, directory, *sessions, timeout=_STOP_S)
    lines = harmless(done.text + done.stderr.decode("utf-8", "replace")).splitlines()
    return Stopped(tuple(line for line in lines if line.strip()), clean=done.code == 0)


def latest(transport: Transport, layout: RunLayout, session: str) -> Latest:
    """The newest attempt of `session`. Raises UserError when it has none, or when there is no such session."""
    done = transport.run(_NEWEST + _LATEST, str(layout.directory), session, timeout=30)
    if done.code == 69:
        raise UserError(f"{session} has not started yet", "combo status shows what it waits for")
    if done.code:
        run = layout.directory.name
        raise UserError(f"there is no session {session} in {run}", f"combo status {run} names them")
    number, _, record = done.text.partition("\n")
    attempt = layout.attempt(session, int(number))
    return Latest(int(number), attempt.log, Begin.parse(record) if record.strip() else None)


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
    raise UserError("this session was started by hand and has no window", "combo logs shows what it prints")
