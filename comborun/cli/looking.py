"""combo logs, attach, runs: look at what is there; none of them changes or ends anything."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import click

from comborun.cli.frame import answer, connect, find_run, host_option, json_option, root_option
from comborun.errors import UserError
from comborun.layout import RunLayout
from remote.control import attach_command, follow_command, latest, shown
from remote.runs import DEFAULT_ROOT, list_runs, remembered

_run_option = click.option("--run", "wanted", metavar="RUN", help="The run; the newest by default.")


@click.command()
@click.argument("session")
@_run_option
@host_option
@root_option
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows.")
@click.option("-n", "--lines", default=20, show_default=True, help="Lines from the end.")
def logs(session: str, wanted: str | None, host: str | None, root: str | None, follow: bool, lines: int) -> None:
    """Show the end of a session's log.

    \b
    combo logs -f stairs_flat
    """
    transport = connect(host)
    layout = RunLayout(PurePosixPath(find_run(transport, wanted, root).directory))
    command = follow_command(latest(transport, layout, session).log, lines, follow=follow)
    os.execvp(command[0], command)


@click.command()
@click.argument("session")
@_run_option
@host_option
@root_option
@click.option("--write", is_flag=True, help="Let keys through: Ctrl-C then reaches the program.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
def attach(session: str, wanted: str | None, host: str | None, root: str | None, write: bool, show: bool) -> None:
    """Open a session's window, read-only unless --write; leave it with Ctrl-B D (tmux) or Ctrl-A D (screen).

    \b
    combo attach stairs_flat
    """
    from remote.windows import open_windows, tmux_socket

    transport = connect(host)
    layout = RunLayout(PurePosixPath(find_run(transport, wanted, root).directory))
    begin = latest(transport, layout, session).begin
    if begin is None:
        raise UserError(f"{session} is only just starting", "try again in a moment")
    command = attach_command(begin, tmux_socket(), write=write)
    if show:
        click.echo(shown(command))
        return
    if begin.multiplexer == "tmux" and begin.address not in open_windows(tmux_socket()):
        raise UserError(f"the window of {session} is closed: it has ended", f"combo logs {session} shows its output")
    os.execvp(command[0], command)


@click.command()
@host_option
@root_option
@json_option
def runs(host: str | None, root: str | None, as_json: bool) -> None:
    """List the runs on a host, newest first.

    \b
    combo runs
    """
    transport = connect(host)
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
