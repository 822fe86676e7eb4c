"""combo logs, attach and explain: look at single sessions. They change nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from comborun.answers.runs import Window
from comborun.api.looking import causes_of, explanations, log_records
from comborun.cli.log_text import drawn, named_lines
from comborun.cli.options import json_lines_option, json_option, of_run_option, sessions_argument
from comborun.cli.terminal import note, program, show_json, show_record, wrapped
from comborun.errors import HostError, UserError
from comborun.model.attempt import SLURM
from comborun.monitor.addressing import sessions_of
from comborun.monitor.explain import Command, Explanation
from comborun.monitor.snapshot import ServerStatus
from comborun.monitor.watch import once
from comborun.monitor.wording import MARKS, SERVER_MARKS, UNMARKED
from comborun.remote.logs import (
    LatestAttempt,
    LogPosition,
    Merged,
    attach_command,
    can_be_shown,
    follow,
    follow_command,
    is_open,
    latest,
    rank_log,
    step_command,
    tile,
)
from comborun.remote.program import refuse_elsewhere
from comborun.remote.transport import LOCAL
from comborun.rules.names import RunLayout
from comborun.rules.vocabulary import first_of, several
from comborun.text import harmless
from comborun.words import say
from comborun.words.endings import outcome_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from comborun.api.named import Target
    from comborun.model.attempt import Begin
    from comborun.monitor.causes import RunCauses
    from comborun.monitor.status import SessionStatus
    from comborun.monitor.watch import Source
    from comborun.remote.logs import LogPiece

    Moved = Callable[[Sequence[str]], Collection[str]]


_MOST_NAMED = 8
"""sessions of a cause that are named"""

_KNOWN_TERMINAL = 'infocmp >/dev/null 2>&1 || TERM=xterm-256color; export TERM; exec "$@"'
"""a host rarely knows the terminals Ghostty and kitty, and tmux opens nothing on one that it does not know"""
_PANE = 'TMUX= "$@"; if [ $? = 255 ]; then printf "%s" "ssh failed; Enter closes this pane"; read -r _; fi'
"""255 is the code of ssh itself: its message stays on the screen"""


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
    parts = _parts(target, sessions, guess=True)
    if on and target.boxes:
        _show_logs(*_followed_on_all(target, parts, lines, **of), as_json=as_json)
        return
    for part, own in parts:
        _show_logs(*_followed(part, own, on=on, lines=lines, asked=target, **of), as_json=as_json)


def _parts(target: Target, words: tuple[str, ...], *, guess: bool) -> Sequence[tuple[Target, tuple[str, ...]]]:
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
        names, pieces = _followed(part, own, on=True, lines=lines, asked=target, moved=partial(moved, part), **of)
        every += names
        merged.add(pieces)
    return every, iter(merged)


def _followed(
    target: Target,
    sessions: tuple[str, ...],
    *,
    on: bool,
    lines: int,
    asked: Target,
    moved: Moved | None = None,
    **of: Any,
) -> tuple[Sequence[str], Iterator[LogPiece]]:
    """The sessions of a host, and their logs. `asked`: the whole run, whose commands find a session that moves."""
    source = target.source()
    current = tuple(one.name for one in source.view.plan.sessions if one.flag != "elsewhere")
    every = current if current != source.view.sessions[: len(current)] else source.view.sessions
    names = sessions_of(source, sessions, note, guess=True) if sessions else every
    chosen = [LogPosition(name) for name in names]
    if of["rank"] is not None or of["stderr"]:
        chosen = [_of_rank(target, names, **of)]
    pieces = follow(target.transport, target.directory, chosen, lines, on=on, own=target.same_program, moved=moved)
    return names, _begun(asked, pieces, wait=on) if len(names) == 1 else pieces


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


@click.command()
@sessions_argument("words", metavar="[SESSION]")
@partial(of_run_option, together=True)
@click.option("--all", "tiled", is_flag=True, help="Open a tmux window here, with a pane for every running session.")
@click.option("--write", is_flag=True, help="Send keys to the session: Ctrl-C then reaches the program.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
@json_option
def attach(words: tuple[str, ...], target: Target, tiled: bool, as_json: bool, **how: bool) -> None:
    """Open a session's window, read-only unless --write; leave it with Ctrl-B D (tmux) or Ctrl-A D (screen).

    Shows the log of a session that has ended. screen has no read-only view: without --write this follows the log. On
    Slurm this runs on the session's node, in its allocation: it follows the log, or with --write opens a shell.

    \b
    combo attach stairs_flat
    combo attach --all
    """
    if tiled:
        _attach_all(target, show=how["show"], as_json=as_json)
        return
    if not words:
        raise UserError("name a session, or give --all", "combo status lists them")
    target, words = _of_one_host(target, words)
    source = target.source()
    session, alive = _chosen(source, words, write=how["write"])
    seen = latest(target.transport, RunLayout(target.directory), [session])[session]
    why = f"`{target.command('explain', session)}` says why"
    if not seen.number or (alive and seen.begin is None):
        raise UserError(f"{session} has not started yet", why, code="not_started")
    if as_json and alive is None:
        raise UserError(f"{session} has ended, so it has no window", f"combo logs {session} shows its log")
    if alive is None or seen.begin is None:
        click.echo(f"{session} has ended: this is the end of its log (attempt {seen.number})", err=True)
        _print_log(target, session, on=False)
        return
    command = _command(target, alive, seen, write=how["write"])
    if as_json:
        show_json([Window(session, tuple(_on_host(target.transport.host, command)))])
    elif how["show"]:
        click.echo(shlex.join(_on_host(target.transport.host, command)))
    elif command == follow_command(seen.log):
        click.echo(_instead(session, seen.begin), err=True)
        _print_log(target, session, on=True)
    elif not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("a window needs a terminal, and this is not one", f"combo logs -f {session}")
    else:
        _become(_on_host(target.transport.host, command))


def _of_one_host(target: Target, words: tuple[str, ...]) -> tuple[Target, tuple[str, ...]]:
    parts = _parts(target, words, guess=True)
    if len(parts) > 1:
        raise UserError(f"{' '.join(words)} means sessions on {len(parts)} hosts", "name one of them")
    return parts[0]


def _chosen(source: Source, words: tuple[str, ...], *, write: bool) -> tuple[str, SessionStatus | ServerStatus | None]:
    """The named session (of several the running one), and its status; None if it does not run."""
    names = list(sessions_of(source, words, note, guess=not write))
    status = once(source)
    refuse_elsewhere(status.elsewhere, source.view.id)
    running: dict[str, SessionStatus | ServerStatus] = {one.name: one for one in status.every if one.alive}
    running |= {one.name: one for one in status.servers if one.alive}
    if len(names) > 1:
        names = [name for name in names if name in running] or names
    if len(names) > 1:
        raise UserError(f"{' '.join(words)} means {len(names)} sessions", f"name one of them: {', '.join(names[:8])}")
    return names[0], running.get(names[0])


def _command(target: Target, alive: SessionStatus | ServerStatus, seen: LatestAttempt, *, write: bool) -> list[str]:
    """The command that shows a running session on its host. Raises UserError if Slurm does not tell its job."""
    assert seen.begin
    if seen.begin.multiplexer != SLURM:
        return _view(target.transport.host, seen, write=write)
    if isinstance(alive, ServerStatus) or alive.task is None or not alive.task.id:
        hint = f"combo logs -f {alive.name} follows its output"
        raise UserError(f"Slurm does not tell which job runs {alive.name}", hint)
    return step_command(alive.task.id, seen.log, write=write)


def _instead(session: str, begin: Begin) -> str:
    """Why this follows a running session's log and opens no window."""
    if not can_be_shown(begin):
        return f"{begin.multiplexer} has no read-only view: this follows the log until Ctrl-C; --write opens the window"
    return f"the window of {session} is gone, but it still runs: this follows its log"


def _print_log(target: Target, session: str, *, on: bool) -> None:
    pieces = follow(target.transport, target.directory, [LogPosition(session)], 50, on=on)
    print_log(pieces)


def _view(host: str, seen: LatestAttempt, *, write: bool) -> list[str]:
    """The command that shows a session: its window, or its log if the window can't be shown read-only."""
    assert seen.begin
    begin, local = seen.begin, host == LOCAL
    gone = local and not is_open(begin)
    by_hand = begin.multiplexer == "none"  # attach_command refuses it
    if gone or not (write or by_hand or can_be_shown(begin)):
        return follow_command(seen.log)
    return attach_command(begin, local=local, write=write)


def _become(command: list[str]) -> None:
    """Close the connection and replace this process by another program."""
    click.get_current_context().close()
    os.execvp(command[0], command)


def _on_host(host: str, command: list[str], *options: str) -> list[str]:
    """The command for this machine; for another host through the user's ssh, with a terminal."""
    if host == LOCAL:
        return command
    from comborun.remote.ssh.config import Address, Options, ssh_arguments

    if not shutil.which("ssh"):
        raise UserError("a window on another host needs the program ssh", "install openssh-client")
    there = shlex.join(["sh", "-c", _KNOWN_TERMINAL, "sh", *command])
    return ["ssh", "-t", *options, *ssh_arguments(Address.parse(host), Options().config), there]


def _panes(target: Target) -> Iterator[tuple[str, list[str]]]:
    """Running sessions and the command of a pane for each; all share one connection to the host."""
    host, layout, source = target.transport.host, RunLayout(target.directory), target.source()
    status = once(source)
    refuse_elsewhere(status.elsewhere, source.view.id)
    running = [session.name for session in status.sessions if session.alive]
    shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={_control_path(host)}", "-o", "ControlPersist=10")
    for name, seen in latest(target.transport, layout, running).items():
        if seen.begin and seen.begin.multiplexer != "none":
            shown = _on_host(host, _view(host, seen, write=False), *shared)
            yield name, ["sh", "-c", _PANE, "sh", *shown]


def _attach_all(target: Target, *, show: bool, as_json: bool) -> None:
    """A pane for every running session, on all hosts that answer."""
    panes = dict[str, list[str]]()
    for part in target.boxes or (target,):
        try:
            panes.update(_panes(part))
        except HostError as error:
            if not target.boxes:
                raise
            note(f"! {part.transport.host}: {error.headline}")
    if not panes:
        raise UserError("no running session has a window", "combo status shows them all")
    if as_json:
        show_json([Window(name, tuple(words)) for name, words in panes.items()])
        return
    commands = {name: shlex.join(words) for name, words in panes.items()}
    if show:
        click.echo("\n".join(commands.values()))
        return
    if not sys.stdout.isatty():
        raise UserError("a window needs a terminal, and this is not one", "--show prints the commands")
    _become(tile(f"combo-{target.run[-4:]}", commands))


def _control_path(host: str) -> str:
    """Where the panes of a host share a connection. Raises HostError if there is no safe place."""
    if host == LOCAL:
        return "none"
    from comborun.remote.ssh.config import Options, resolve
    from comborun.remote.ssh.keeping import kept

    return str(kept("a", resolve(host, Options().config)).socket)


@click.command()
@sessions_argument("sessions", metavar="[SESSION]")
@partial(of_run_option, together=True)
@json_option
def explain(sessions: tuple[str, ...], target: Target, as_json: bool) -> None:
    """Explain why a session does not run, what it does, or how it ended, and how to continue.

    Without a session: what went wrong in the run, equal causes together, each with the next step.

    \b
    combo explain                        all failures of the newest run
    combo explain stairs_flat
    combo explain flat stairs            its policy and its environment
    combo explain vlm                    a model server
    """
    if not sessions:
        _explain_run(causes_of(target), target.options, as_json=as_json)
        return
    parts = _parts(target, sessions, guess=True)
    found = [one for part, own in parts for one in explanations(part, own)]
    if as_json:
        answers = [one.answer for one in found]
        show_json(answers[0] if len(answers) == 1 else answers)
        return
    for one in found:
        _show(one, "" if target.boxes else target.options)


def _explain_run(found: RunCauses, options: str, *, as_json: bool) -> None:
    if as_json:
        show_json(found.answer)
        return
    said = say(found.summary) if found.causes else "nothing has gone wrong"
    click.echo(f"{click.style(harmless(found.run), bold=True)}: {said}")
    for line in found.advice:
        click.echo(wrapped(harmless(line), "! "))
    for one in found.causes:
        kind = one.failure.row.words if one.failure else ""
        click.echo(f"\n{click.style(one.words, bold=True)}{f' ({kind})' if kind and kind not in one.words else ''}")
        click.echo(wrapped(f"{several(len(one.names), 'session')}: {first_of(one.names, _MOST_NAMED)}", "  "))
        click.echo(wrapped(f"next: {say(one.step)}", "  "))
        _show_commands(one.commands, options)


def _show(found: Explanation, options: str) -> None:
    word = found.outcome or found.state
    symbol, style, _ = MARKS.get(word) or SERVER_MARKS.get(word, UNMARKED)
    text = f"{symbol} {outcome_words(word)}"
    state = click.style(text, dim=style == "dim" or None, fg=None if style == "dim" else style)
    combo = harmless(f" ({found.policy} in {found.environment})" if found.policy else "")
    click.echo(f"{click.style(found.session, bold=True)}{combo} is {state}")
    for reason in found.reasons:
        click.echo(wrapped(harmless(say(reason)), "  - "))
    if found.last_lines:
        click.echo(f"\nThe end of its log (attempt {found.attempt}):")
    for line in found.last_lines:
        click.echo(f"  {click.style(line, dim=True)}")
    if found.commands:
        click.echo()
    _show_commands(found.commands, options)


def _show_commands(commands: Sequence[Command], options: str) -> None:
    words = [f"{program()} {one.words}{options}" for one in commands]
    width = max(map(len, words), default=0)
    for line, one in zip(words, commands, strict=True):
        click.echo(f"  {line.ljust(width)}  {click.style(one.does, dim=True)}")
