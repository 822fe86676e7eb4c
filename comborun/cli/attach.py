"""combo attach: the window of a session, or a pane for each one that runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import click

from comborun.answers.runs import Window
from comborun.api.joint import parts_of
from comborun.cli.logs import print_log
from comborun.cli.options import json_option, of_run_option, sessions_argument
from comborun.cli.terminal import note, show_json
from comborun.errors import HostError, UserError
from comborun.model.attempt import SLURM
from comborun.monitor.addressing import sessions_of
from comborun.monitor.snapshot import ServerStatus
from comborun.monitor.watch import once
from comborun.remote.logs import (
    LatestAttempt,
    LogPosition,
    attach_command,
    can_be_shown,
    follow,
    follow_command,
    is_open,
    latest,
    step_command,
    tile,
)
from comborun.remote.program import refuse_elsewhere
from comborun.remote.transport import LOCAL
from comborun.rules.names import RunLayout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.api.named import Target
    from comborun.model.attempt import Begin
    from comborun.monitor.status import SessionStatus
    from comborun.monitor.watch import Source


_KNOWN_TERMINAL = 'infocmp >/dev/null 2>&1 || TERM=xterm-256color; export TERM; exec "$@"'
"""a host rarely knows the terminals Ghostty and kitty, and tmux opens nothing on one that it does not know"""
_PANE = 'TMUX= "$@"; if [ $? = 255 ]; then printf "%s" "ssh failed; Enter closes this pane"; read -r _; fi'
"""255 is the code of ssh itself: its message stays on the screen"""


@click.command()
@sessions_argument("words", metavar="[SESSION]")
@of_run_option
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
    parts = parts_of(target, words, guess=True)
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
    print_log(follow(target.transport, target.directory, [LogPosition(session)], 50, on=on))


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
