"""combo logs: the ends of the logs of some sessions, or of all."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from comborun.api.looking import log_records
from comborun.cli.log_text import drawn, named_lines
from comborun.cli.options import json_lines_option, of_run_option, sessions_argument
from comborun.cli.terminal import note, show_record
from comborun.errors import UserError
from comborun.monitor.addressing import sessions_of
from comborun.remote.logs import LogPosition, Merged, follow, latest, rank_log
from comborun.rules.names import RunLayout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from comborun.api.named import Target
    from comborun.remote.logs import LogPiece

    Moved = Callable[[Sequence[str]], Collection[str]]


@click.command()
@sessions_argument("sessions", metavar="[SESSION]...")
@partial(of_run_option, together=True)
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
def logs(sessions: tuple[str, ...], target: Target, on: bool, lines: int, as_json: bool, **of: Any) -> None:
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
    parts = parts_of(target, sessions, guess=True)
    if on and target.boxes:
        names, pieces = _followed_on_all(target, parts, lines, **of)
    else:
        found = [_followed(part, own, on=on, lines=lines, **of) for part, own in parts]
        names, pieces = [name for own, _ in found for name in own], chain.from_iterable(one for _, one in found)
    _show_logs(names, _begun(target, pieces, wait=on) if len(names) == 1 else pieces, as_json=as_json)


def parts_of(target: Target, words: tuple[str, ...], *, guess: bool) -> Sequence[tuple[Target, tuple[str, ...]]]:
    """The run with the words; of a run on several hosts the parts with the sessions that the words name."""
    if not target.boxes:
        return [(target, words)]
    from comborun.api.joint import by_host, going

    return by_host(target, words, note, guess=guess) if words else [(one, ()) for one in going(target)]


def _followed_on_all(
    target: Target, parts: Sequence[tuple[Target, tuple[str, ...]]], lines: int, **of: Any
) -> tuple[Sequence[str], Iterator[LogPiece]]:
    """The sessions of several hosts, and their logs; a session that moves before it begins is followed to its host."""
    from comborun.api.joint import by_host

    merged, every = Merged(), list[str]()

    def moved(former: Target, waiting: Sequence[str]) -> set[str]:
        gone = set[str]()
        with suppress(UserError):  # no host answers: the next time
            for part, names in by_host(target, waiting, note):
                if part is not former:
                    gone |= {*names}
                    logs = [LogPosition(name) for name in names]
                    more = partial(moved, part)
                    merged.add(follow(part.transport, part.directory, logs, lines, on=True, moved=more))
        return gone

    for part, own in parts:
        names, pieces = _followed(part, own, on=True, lines=lines, moved=partial(moved, part), **of)
        every += names
        merged.add(pieces)
    return every, iter(merged)


def _followed(
    target: Target,
    sessions: tuple[str, ...],
    *,
    on: bool,
    lines: int,
    moved: Moved | None = None,
    **of: Any,
) -> tuple[Sequence[str], Iterator[LogPiece]]:
    """The sessions of a host, and their logs."""
    source = target.source()
    current = tuple(one.name for one in source.view.plan.sessions if one.flag != "elsewhere")
    every = current if current != source.view.sessions[: len(current)] else source.view.sessions
    names = sessions_of(source, sessions, note, guess=True) if sessions else every
    chosen = [LogPosition(name) for name in names]
    if of["rank"] is not None or of["stderr"]:
        chosen = [_of_rank(target, names, **of)]
    return names, follow(target.transport, target.directory, chosen, lines, on=on, own=target.same_program, moved=moved)


def _show_logs(names: Sequence[str], pieces: Iterator[LogPiece], *, as_json: bool) -> None:
    if as_json:
        for one in log_records(pieces):
            show_record(one)
    elif len(names) > 1:
        _print_lines(pieces, max(map(len, names)))
    else:
        print_log(pieces)


def _of_rank(target: Target, names: Sequence[str], rank: int | None, *, stderr: bool) -> LogPosition:
    """The log of one rank. Raises UserError if the options don't name one, or it does not exist."""
    if rank is None:
        raise UserError("--stderr needs --rank", "such as --rank 0; the session's log holds both streams")
    if len(names) != 1:
        raise UserError("--rank needs one session", "combo logs --rank 0 SESSION")
    seen = latest(target.transport, RunLayout(target.directory), names)[names[0]]
    path = rank_log(target.transport, seen, rank, "stderr" if stderr else "stdout")
    return LogPosition(names[0], seen.number, path=str(path))


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


def _print_lines(pieces: Iterable[LogPiece], width: int) -> None:
    """Print whole lines of several logs, each after the name of its session."""
    for name, text in named_lines(pieces):
        click.echo(f"{click.style(name.ljust(width), dim=True)}  {text}")


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
