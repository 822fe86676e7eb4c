"""combo logs, attach, runs: look at what is there; none of them changes or ends anything."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from comborun.cli.frame import answer, json_option
from comborun.cli.where import LOCAL, Where, root_option, where_options
from comborun.errors import UserError
from comborun.layout import RunLayout
from monitor.lastline import visible
from monitor.observe import load_run
from monitor.watch import Source, once
from remote.control import attach_command, begins, latest
from remote.follow import follow as follow_log
from remote.runs import DEFAULT_ROOT, list_runs, remembered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.attempt import Begin
    from comborun.transport import Transport

_run_option = click.option("--run", "wanted", metavar="RUN", help="The run; the newest by default.")


@click.command()
@click.argument("session")
@_run_option
@where_options
@root_option
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows, until the session has ended.")
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(min=0), help="Lines from the end.")
def logs(session: str, wanted: str | None, where: Where, root: str | None, follow: bool, lines: int) -> None:
    """Show the end of a session's log. On a terminal, control characters of the log are not let through.

    \b
    combo logs -f stairs_flat
    combo logs stairs_flat -n 1000000 > stairs_flat.log      every byte as it is
    """
    transport, found = where.find(wanted, root)
    layout = RunLayout(PurePosixPath(found.directory))
    attempt = latest(transport, layout, session)
    pieces = follow_log(transport, attempt.log, lines, on=follow)
    if sys.stdout.isatty():
        for line in _lines(pieces):
            click.echo(visible(line))
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


@click.command()
@click.argument("session", required=False)
@_run_option
@where_options
@root_option
@click.option("--all", "tiled", is_flag=True, help="A tmux window here, with a pane for every running session.")
@click.option("--write", is_flag=True, help="Let keys through: Ctrl-C then reaches the program.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
def attach(
    session: str | None, wanted: str | None, where: Where, root: str | None, tiled: bool, write: bool, show: bool
) -> None:
    """Open a session's window, read-only unless --write; leave it with Ctrl-B D (tmux) or Ctrl-A D (screen).

    \b
    combo attach stairs_flat
    combo attach --all
    """
    transport, found = where.find(wanted, root)
    if tiled:
        _attach_all(transport, found.directory)
        return
    if not session:
        raise UserError("name a session, or give --all", "combo status names them")
    begin = latest(transport, RunLayout(PurePosixPath(found.directory)), session).begin
    if begin is None:
        raise UserError(f"{session} is only just starting", "try again in a moment")
    command = _way(transport.host, attach_command(begin, _socket(), write=write))
    if show:
        click.echo(shlex.join(command))
        return
    _refuse_closed(transport.host, session, begin)
    os.execvp(command[0], command)


@click.command()
@where_options
@root_option
@json_option
def runs(where: Where, root: str | None, as_json: bool) -> None:
    """List the runs on a host, newest first.

    \b
    combo runs --host h100
    """
    transport = where.connect()
    roots = (root,) if root else (DEFAULT_ROOT, *(launch.root for launch in remembered()))
    found = list_runs(transport, roots)
    if as_json:
        answer([{"run": run.id, "directory": run.directory, "done": dict(run.done)} for run in found])
        return
    for run in found:
        state = ", ".join(
            f"{run.done[outcome]} {outcome}"
            for outcome in ("succeeded", "partial", "failed", "cancelled", "lost")
            if run.done.get(outcome, "0") != "0"
        )
        click.echo(f"{run.id}  {state or 'not ended'}  {click.style(run.directory, dim=True)}")
    if not found:
        click.echo(f"no runs on {transport.host}")


def _lines(pieces: Iterable[bytes]) -> Iterable[str]:
    """Whole lines of a stream of bytes; a last piece without its newline comes when the stream ends."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
    if rest:
        yield rest.decode("utf-8", "replace")


def _socket() -> str:
    return os.environ.get("COMBORUN_TMUX_SOCKET", "comborun")


def _way(host: str, command: list[str], *options: str) -> list[str]:
    """The command as it is typed here; on another host through the user's ssh, which has a terminal."""
    if host == LOCAL:
        return command
    from remote.ssh_config import Address, Options, ssh_arguments

    if not shutil.which("ssh"):
        raise UserError("opening a window on another host needs the ssh program", "install openssh-client")
    return ["ssh", "-t", *options, *ssh_arguments(Address.parse(host), Options().config), shlex.join(command)]


def _refuse_closed(host: str, session: str, begin: Begin) -> None:
    if host != LOCAL or begin.multiplexer != "tmux":
        return
    from remote.windows import open_windows

    if begin.address not in open_windows(_socket()):
        raise UserError(f"the window of {session} is closed: it has ended", f"combo logs {session} shows its output")


def _attach_all(transport: Transport, directory: str) -> None:
    """Every running session in a pane of one window; a host is reached over one connection for all of them."""
    from remote.windows import tile

    seen = once(Source(transport, load_run(transport, directory)))
    running = [session.name for session in seen.sessions if session.alive]
    records = begins(transport, RunLayout(PurePosixPath(directory)), running)
    shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={_control_folder()}/%C", "-o", "ControlPersist=10")
    panes = {
        name: "TMUX= " + shlex.join(_way(transport.host, attach_command(begin, _socket(), write=False), *shared))
        for name, begin in records.items()
        if begin.multiplexer != "none"
    }
    if not panes:
        raise UserError("no session is running that has a window", "combo status shows them all")
    command = tile(f"combo-{seen.run[-4:]}", panes)
    os.execvp(command[0], command)


def _control_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"comborun-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UserError(f"{folder} belongs to somebody else", "set TMPDIR to a folder of your own")
    return folder
