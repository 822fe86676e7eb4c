"""combo logs: the ends of the sessions' logs."""

from __future__ import annotations

import codecs
import sys
from typing import TYPE_CHECKING, Any

import click

from comborun.cli.options import Target, of_run_option, sessions_argument
from comborun.cli.terminal import note
from comborun.errors import UserError
from comborun.monitor.addressing import sessions_of
from comborun.remote.logs import LogPosition, follow, latest, rank_log
from comborun.rules.counting import shown
from comborun.rules.names import RunLayout
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comborun.remote.logs import LogPiece


@click.command()
@sessions_argument("sessions", metavar="[SESSION]...")
@of_run_option
@click.option("-f", "--follow", "on", is_flag=True, help="Follow the log as it grows; wait for a queued session.")
@click.option(
    "-n",
    "--lines",
    default=20,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of lines from the end.",
)
@click.option("--rank", type=click.IntRange(min=0), metavar="R", help="Show the output of one rank of a launcher.")
@click.option("--stderr", is_flag=True, help="With --rank: show its standard error.")
def logs(sessions: tuple[str, ...], target: Target, on: bool, lines: int, **of: Any) -> None:
    """Show the end of the logs of some sessions, or of all. With several, each line names its session.

    On a terminal, control characters are removed.

    \b
    combo logs -f stairs_flat
    combo logs flat stairs                      by policy and environment
    combo logs vlm                              a model server, by its name
    combo logs -f                               all sessions, as they print
    combo logs --rank 3 --stderr pick_ppo
    combo logs stairs_flat -n 1000000 > it.log  every byte, unchanged
    """
    source = target.source()
    names = sessions_of(source, sessions, note, guess=True) if sessions else source.view.sessions
    chosen = [LogPosition(name) for name in names]
    if of["rank"] is not None or of["stderr"]:
        chosen = [_of_rank(target, names, **of)]
    elif len(names) == 1:
        _check_begun(target, names[0], wait=on)
    pieces = follow(target.transport, target.directory, chosen, lines, on=on)
    if len(names) > 1:
        _print_lines(pieces, max(map(len, names)))
    else:
        print_log(piece.data for piece in pieces)


def _of_rank(target: Target, names: Sequence[str], rank: int | None, *, stderr: bool) -> LogPosition:
    """The log of one rank. Raises UserError if the options don't name one, or it does not exist."""
    if rank is None:
        raise UserError("--stderr needs --rank", "such as --rank 0; the session's log holds both streams")
    if len(names) != 1:
        raise UserError("--rank needs one session", "combo logs --rank 0 SESSION")
    seen = latest(target.transport, RunLayout(target.directory), names)[names[0]]
    path = rank_log(target.transport, seen, rank, "stderr" if stderr else "stdout")
    return LogPosition(names[0], seen.number, path=str(path))


def _check_begun(target: Target, name: str, *, wait: bool) -> None:
    """For a session without a log: print that this waits, or raise UserError unless `wait` is set."""
    if latest(target.transport, RunLayout(target.directory), [name])[name].number:
        return
    why = f"`{target.command('explain', name)}` says what it waits for"
    if not wait:
        raise UserError(f"{name} has not started yet", f"{why}; logs -f waits with it")
    click.echo(f"{name} has not started yet; its log follows when it does, Ctrl-C leaves. {why}", err=True)


def _print_lines(pieces: Iterable[LogPiece], width: int) -> None:
    """Print whole lines of several logs, each after the name of its session."""
    begun: dict[str, bytes] = {}
    for piece in pieces:
        name = piece.log.session
        *lines, begun[name] = (begun.get(name, b"") + piece.data).split(b"\n")
        if piece.log.ended and begun[name]:
            lines.append(begun.pop(name))
        for line in lines:
            text = harmless(shown(line.decode("utf-8", "replace")), keep="\t")
            click.echo(f"{click.style(name.ljust(width), dim=True)}  {text}")


def print_log(pieces: Iterable[bytes]) -> None:
    """Print a log: every byte unchanged, but on a terminal without control characters."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:  # \r stays for progress bars
        click.echo(harmless(decoder.decode(piece), keep="\n\r\t"), nl=False)
