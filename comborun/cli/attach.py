"""combo attach: the windows of sessions, or the log of a session that has none. It changes and ends nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from comborun.attempt import SLURM
from comborun.cli.logs import print_log
from comborun.cli.options import Target, of_run_option
from comborun.errors import UserError
from comborun.monitor.watch import once
from comborun.remote.logs import Latest, begins, follow, latest
from comborun.remote.transport import LOCAL
from comborun.remote.windows import attach_command, follow_command, open_windows, step_command, tile
from comborun.rules.names import RunLayout

if TYPE_CHECKING:
    from comborun.attempt import Begin
    from comborun.monitor.status import SessionStatus


@click.command()
@click.argument("session", required=False)
@of_run_option
@click.option("--all", "tiled", is_flag=True, help="A tmux window here, with a pane for every running session.")
@click.option("--write", is_flag=True, help="Let keys through: Ctrl-C then reaches the program.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
def attach(session: str | None, target: Target, tiled: bool, write: bool, show: bool) -> None:
    """Open a session's window, read-only unless --write; leave it with Ctrl-B D (tmux) or Ctrl-A D (screen).

    screen has no read-only view: without --write its log is followed instead. On Slurm it goes to the session's node,
    into its allocation: to its log, or with --write to a shell beside it.

    \b
    combo attach stairs_flat
    combo attach --all
    """
    if tiled:
        _attach_all(target, show=show)
        return
    if not session:
        raise UserError("name a session, or give --all", "combo status names them")
    host, seen = target.transport.host, latest(target.transport, RunLayout(target.directory), session)
    if seen.begin is None:
        raise UserError(f"{session} is only just starting", "try again in a moment")
    if seen.begin.multiplexer == SLURM:
        command = step_command(_task(target, session), seen.log, write=write)
    else:
        command = _view(host, seen, write=write)
    if show:
        click.echo(shlex.join(_way(host, command)))
    elif instead := _instead(target, session, seen.begin, write=write):
        click.echo(instead, err=True)
        print_log(follow(target.transport, seen.log, 50, on=True))
    else:
        _become(_way(host, command))


def _instead(target: Target, session: str, begin: Begin, *, write: bool) -> str:
    """Why the log of a session is followed where its window can't be opened; empty where it can.

    Raises UserError where nothing of the session runs any more.
    """
    if begin.multiplexer == "screen" and not write:
        return "screen has no read-only view: this follows the log; --write opens the window"
    if not _closed(target.transport.host, begin):
        return ""
    if _alive(target, session) is None:
        raise UserError(f"the window of {session} is closed: it has ended", f"combo logs {session} shows its output")
    return f"the window of {session} is gone, but it still runs: this follows its log"


def _view(host: str, seen: Latest, *, write: bool) -> list[str]:
    """What shows a session: its window, or its log where a window can't be shown read-only."""
    assert seen.begin
    if (seen.begin.multiplexer in ("screen", SLURM) and not write) or _closed(host, seen.begin):
        return follow_command(seen.log)
    return attach_command(seen.begin, _socket(host), write=write)


def _task(target: Target, session: str) -> str:
    """The number of the job that runs a session. Raises UserError where none does, or Slurm does not tell."""
    found = _alive(target, session)
    if found is None:
        raise UserError(f"nothing of {session} runs: it has ended", f"combo logs {session} shows its output")
    if found.task is None or not found.task.id:
        raise UserError(f"Slurm does not tell which job runs {session}", f"combo logs -f {session} follows its output")
    return found.task.id


def _alive(target: Target, session: str) -> SessionStatus | None:
    """How a session stands; None where nothing of it runs any more."""
    seen = once(target.source())
    return next((one for one in (*seen.sessions, seen.after) if one and one.name == session and one.alive), None)


def _become(command: list[str]) -> None:
    """Leave the host and go on as another program."""
    click.get_current_context().close()
    os.execvp(command[0], command)


def _socket(host: str) -> str:
    """The socket name of comborun's tmux server on a host."""
    return os.environ.get("COMBORUN_TMUX_SOCKET", "comborun") if host == LOCAL else "comborun"


def _way(host: str, command: list[str], *options: str) -> list[str]:
    """The command as it is typed here; on another host through the user's ssh, which has a terminal."""
    if host == LOCAL:
        return command
    from comborun.remote.ssh.config import Address, Options, ssh_arguments

    if not shutil.which("ssh"):
        raise UserError("opening a window on another host needs the ssh program", "install openssh-client")
    return ["ssh", "-t", *options, *ssh_arguments(Address.parse(host), Options().config), shlex.join(command)]


def _closed(host: str, begin: Begin) -> bool:
    """Whether a session's window is gone: its session has ended, or the tmux server has, which ends no session."""
    return host == LOCAL and begin.multiplexer == "tmux" and begin.address not in open_windows(_socket(host))


def _attach_all(target: Target, *, show: bool) -> None:
    """A pane for every session that runs; a host is reached over one connection for all of them."""
    host, layout = target.transport.host, RunLayout(target.directory)
    status = once(target.source())
    running = [session.name for session in status.sessions if session.alive]
    shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={_control_folder()}/%C", "-o", "ControlPersist=10")
    panes: dict[str, str] = {}
    for name, begin in begins(target.transport, layout, running).items():
        if begin.multiplexer != "none":
            seen = Latest(begin.attempt, PurePosixPath(layout.attempt(name, begin.attempt).log), begin)
            panes[name] = "TMUX= " + shlex.join(_way(host, _view(host, seen, write=False), *shared))
    if not panes:
        raise UserError("no session is running that has a window", "combo status shows them all")
    if show:
        click.echo("\n".join(panes.values()))
        return
    if not sys.stdout.isatty():
        raise UserError("a window needs a terminal, and there is none here", "--show prints the commands")
    _become(tile(f"combo-{target.run[-4:]}", panes))


def _control_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"comborun-attach-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700 or not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{folder} is not a folder of yours alone", "set TMPDIR to a folder of your own")
    return folder
