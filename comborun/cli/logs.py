"""combo logs: the ends of the logs of some sessions, or of all."""

from __future__ import annotations

import codecs
import shutil
import sys
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import click

from comborun.api import looking
from comborun.cli.options import json_lines_option, of_run_option, sessions_argument
from comborun.cli.terminal import show_record
from comborun.errors import UserError
from comborun.rules.counting import shown
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comborun.api.named import Target
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
@json_lines_option
def logs(
    sessions: tuple[str, ...], target: Target, on: bool, lines: int, rank: int | None, stderr: bool, as_json: bool
) -> None:
    """Show the end of the logs of some sessions, or of all. With several, each line names its session.

    On a terminal, control characters are removed, and of a progress bar the last state is shown.

    \b
    combo logs -f stairs_flat
    combo logs flat stairs                      by policy and environment
    combo logs vlm                              a model server, by its name
    combo logs -f                               all sessions, as they print
    combo logs --rank 3 --stderr pick_ppo
    combo logs stairs_flat -n 1000000 > it.log  every byte, unchanged
    """
    found = looking.logs(target, sessions, lines, on=on, rank=rank, errors=stderr)
    pieces = _begun(target, found.pieces, wait=on) if len(found.names) == 1 else found.pieces
    if as_json:
        for one in looking.log_records(pieces):
            show_record(one)
    elif len(found.names) > 1:
        width = max(map(len, found.names))
        for name, text in named_lines(pieces):
            click.echo(f"{click.style(name.ljust(width), dim=True)}  {text}")
    else:
        print_log(pieces)


def _begun(target: Target, pieces: Iterator[LogPiece], *, wait: bool) -> Iterator[LogPiece]:
    """The pieces; for a session without a log print that this waits, or raise UserError unless `wait` is set."""
    first = next(pieces)
    if not first.log.attempt:
        name = first.log.session
        why = f"`{target.command('explain', name)}` says what it waits for"
        if not wait:
            raise UserError(f"{name} has not started yet", f"{why}; logs -f waits with it", code="not_started")
        click.echo(f"{name} has not started yet; its log follows when it does, Ctrl-C leaves. {why}", err=True)
    return chain((first,), pieces)


def print_log(pieces: Iterable[LogPiece]) -> None:
    """Print a log: every byte unchanged, but on a terminal without control characters, and of bars the last state."""
    if sys.stdout.isatty():
        for text in drawn(pieces, shutil.get_terminal_size().columns):
            sys.stdout.write(text)
            sys.stdout.flush()
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece.data)
        sys.stdout.buffer.flush()


# Of a line that was drawn over and over, the last drawing, once

_CLEAR = "\r\x1b[K"


class _Log:
    """The part of one log that is not a whole line yet."""

    def __init__(self) -> None:
        self.attempt = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def lines(self, data: bytes) -> list[str]:
        """The lines that these bytes complete."""
        *whole, rest = (self._rest + self._decoder.decode(data)).split("\n")
        self._rest = "\r".join(rest.split("\r")[-2:])  # a newline may follow the last carriage return
        return [_safe(line) for line in whole]

    @property
    def drawn(self) -> str:
        """What stands in the line that has no end yet."""
        return _safe(self._rest)

    def end(self) -> list[str]:
        """That line, as a whole one: nothing more comes."""
        last, self._rest = self.drawn, ""
        return [last] if last else []


def _safe(line: str) -> str:
    return harmless(shown(line) or line.strip("\r"), keep="\t")


class NamedLine(NamedTuple):
    session: str
    text: str


def named_lines(pieces: Iterable[LogPiece]) -> Iterator[NamedLine]:
    """The lines of several logs. An attempt without a newline at its end is not joined with the next one."""
    logs: dict[str, _Log] = {}
    for piece in pieces:
        name = piece.log.session
        log = logs.setdefault(name, _Log())
        last = log.end() if log.attempt not in (0, piece.log.attempt) else []
        log.attempt = piece.log.attempt
        lines = [*last, *log.lines(piece.data), *(log.end() if piece.log.ended else ())]
        yield from (NamedLine(name, line) for line in lines)
    for name, log in logs.items():
        yield from (NamedLine(name, line) for line in log.end())


def drawn(pieces: Iterable[LogPiece], width: int) -> Iterator[str]:
    """What to write to a terminal for one log: whole lines, and a line that has no end yet in place."""
    log, open_line = _Log(), False
    for piece in pieces:
        last = log.end() if log.attempt not in (0, piece.log.attempt) else []
        log.attempt = piece.log.attempt
        for line in (*last, *log.lines(piece.data)):
            yield f"{_CLEAR if open_line else ''}{line}\n"
            open_line = False
        if log.drawn and piece.data:
            yield f"{_CLEAR if open_line else ''}{log.drawn[: max(1, width - 1)]}"
            open_line = True
    if open_line:
        yield f"{_CLEAR}{log.drawn}\n"
