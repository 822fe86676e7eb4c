"""combo logs, attach, runs: look at what is there; none of them changes or ends anything."""

from __future__ import annotations

import codecs
import os
import shlex
import shutil
import stat
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from comborun.cli.frame import answer, json_option
from comborun.cli.where import LOCAL, Where, root_option, where_options
from comborun.errors import UserError
from comborun.layout import RunLayout
from comborun.plaintext import harmless
from monitor.observe import load_run
from monitor.watch import Source, once
from remote.control import Latest, attach_command, begins, latest
from remote.follow import follow as follow_log

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
    _print(follow_log(transport, attempt.log, lines, on=follow))


@click.command()
@click.argument("session", required=False)
@_run_option
@where_options
@root_option
@click.option("--all", "tiled", is_flag=True, help="A tmux window here, with a pane for every running session.")
@click.option("--write", is_flag=True, help="Let keys through: Ctrl-C then reaches the program.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
def attach(session: str | None, wanted: str | None, where: Where, root: str | None, **how: bool) -> None:
    """Open a session's window, read-only unless --write; leave it with Ctrl-B D (tmux) or Ctrl-A D (screen).

    screen has no read-only view: without --write its log is followed instead.

    \b
    combo attach stairs_flat
    combo attach --all
    """
    transport, found = where.find(wanted, root)
    if how["tiled"]:
        _attach_all(found.id, _panes(transport, found.directory), show=how["show"])
        return
    if not session:
        raise UserError("name a session, or give --all", "combo status names them")
    seen = latest(transport, RunLayout(PurePosixPath(found.directory)), session)
    if seen.begin is None:
        raise UserError(f"{session} is only just starting", "try again in a moment")
    command = _way(transport.host, _view(transport.host, seen, write=how["write"]))
    if how["show"]:
        click.echo(shlex.join(command))
        return
    if seen.begin.multiplexer == "screen" and not how["write"]:
        click.echo("screen has no read-only view: this follows the log; --write opens the window", err=True)
        _print(follow_log(transport, seen.log, 50, on=True))
        return
    _refuse_closed(transport.host, session, seen.begin)
    _become(command)


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
    found = where.runs(transport, root)
    if as_json:
        answer([{"run": run.id, "directory": run.directory, "done": dict(run.done)} for run in found])
        return
    for run in found:
        state = ", ".join(
            f"{run.done[outcome]} {outcome}"
            for outcome in ("succeeded", "partial", "failed", "cancelled", "lost")
            if run.done.get(outcome, "0") != "0"
        )
        click.echo(harmless(f"{run.id}  {state or 'not ended'}  ") + click.style(harmless(run.directory), dim=True))
    if not found:
        click.echo(f"no runs on {transport.host}")


def _print(pieces: Iterable[bytes]) -> None:
    """A log on standard output: every byte as it is, or on a terminal without what would act on it."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:  # \r stays: progress bars draw over themselves
        click.echo(harmless(decoder.decode(piece), keep="\n\r\t"), nl=False)


def _view(host: str, seen: Latest, *, write: bool) -> list[str]:
    """What shows a session: its window, or its log where a window can't be shown read-only."""
    assert seen.begin
    if seen.begin.multiplexer == "screen" and not write:
        return ["tail", "-n", "50", "-F", "--", str(seen.log)]
    return attach_command(seen.begin, _socket(host), write=write)


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
    from remote.ssh.config import Address, Options, ssh_arguments

    if not shutil.which("ssh"):
        raise UserError("opening a window on another host needs the ssh program", "install openssh-client")
    return ["ssh", "-t", *options, *ssh_arguments(Address.parse(host), Options().config), shlex.join(command)]


def _refuse_closed(host: str, session: str, begin: Begin) -> None:
    if host != LOCAL or begin.multiplexer != "tmux":
        return
    from remote.windows import open_windows

    if begin.address not in open_windows(_socket(host)):
        raise UserError(f"the window of {session} is closed: it has ended", f"combo logs {session} shows its output")


def _panes(transport: Transport, directory: str) -> dict[str, str]:
    """Session name -> what shows it, for every one that runs; a host is reached over one connection for all of them."""
    status = once(Source(transport, load_run(transport, directory)))
    running = [session.name for session in status.sessions if session.alive]
    layout = RunLayout(PurePosixPath(directory))
    shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={_control_folder()}/%C", "-o", "ControlPersist=10")
    panes: dict[str, str] = {}
    for name, begin in begins(transport, layout, running).items():
        if begin.multiplexer != "none":
            seen = Latest(begin.attempt, layout.attempt(name, begin.attempt).log, begin)
            view = _view(transport.host, seen, write=False)
            panes[name] = "TMUX= " + shlex.join(_way(transport.host, view, *shared))
    if not panes:
        raise UserError("no session is running that has a window", "combo status shows them all")
    return panes


def _attach_all(run: str, panes: dict[str, str], *, show: bool) -> None:
    from remote.windows import tile

    if show:
        click.echo("\n".join(panes.values()))
        return
    if not sys.stdout.isatty():
        raise UserError("a window needs a terminal, and there is none here", "--show prints the commands")
    _become(tile(f"combo-{run[-4:]}", panes))


def _control_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"comborun-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700 or not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{folder} is not a folder of yours alone", "set TMPDIR to a folder of your own")
    return folder
