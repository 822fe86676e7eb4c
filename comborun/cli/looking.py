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
from typing import TYPE_CHECKING, Any

import click

from comborun.attempt import SLURM
from comborun.cli.frame import answer, json_option, run_option
from comborun.cli.where import LOCAL, Where, root_option, where_options
from comborun.errors import UserError
from comborun.layout import RunLayout
from comborun.plaintext import harmless
from comborun.state import Outcome
from monitor.observe import load_run
from monitor.watch import Source, once
from remote.attempts import Latest, attach_command, begins, latest, rank_log, step_command
from remote.follow import follow as follow_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.attempt import Begin
    from comborun.transport import Transport
    from remote.runs import Run


@click.command()
@click.argument("session")
@run_option
@where_options
@root_option
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows, until the session has ended.")
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(min=0), help="Lines from the end.")
@click.option("--rank", type=click.IntRange(min=0), metavar="R", help="What one rank of a launcher prints.")
@click.option("--stderr", is_flag=True, help="With --rank: what it prints there.")
def logs(session: str, wanted: str | None, where: Where, root: str | None, **how: Any) -> None:
    """Show the end of a session's log. On a terminal, control characters of the log are not let through.

    \b
    combo logs -f stairs_flat
    combo logs vlm                       a model server's, by the name that the grid gives it
    combo logs --rank 3 --stderr pick_ppo
    combo logs stairs_flat -n 1000000 > stairs_flat.log      every byte as it is
    """
    transport, found = where.find(wanted, root)
    layout = RunLayout(PurePosixPath(found.directory))
    attempt = latest(transport, layout, session)
    log, end = attempt.log, attempt.log.with_name("end")
    if how["rank"] is not None:
        log = rank_log(transport, attempt, how["rank"], "stderr" if how["stderr"] else "stdout")
    elif how["stderr"]:
        raise UserError("--stderr is of one rank", "name it: --rank 0; a session's own log holds both")
    _print(follow_log(transport, log, how["lines"], on=how["follow"], end=end))


@click.command()
@click.argument("session", required=False)
@run_option
@where_options
@root_option
@click.option("--all", "tiled", is_flag=True, help="A tmux window here, with a pane for every running session.")
@click.option("--write", is_flag=True, help="Let keys through: Ctrl-C then reaches the program.")
@click.option("--show", is_flag=True, help="Print the command instead of running it.")
def attach(session: str | None, wanted: str | None, where: Where, root: str | None, **how: bool) -> None:
    """Open a session's window, read-only unless --write; leave it with Ctrl-B D (tmux) or Ctrl-A D (screen).

    screen has no read-only view: without --write its log is followed instead. On Slurm it goes to the session's node,
    into its allocation: to its log, or with --write to a shell beside it.

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
    if seen.begin.multiplexer == SLURM:
        step = step_command(_task(transport, found.directory, session), seen.log, write=how["write"])
        _show_or_become(_way(transport.host, step), show=how["show"])
        return
    command = _way(transport.host, _view(transport.host, seen, write=how["write"]))
    if how["show"]:
        click.echo(shlex.join(command))
        return
    if seen.begin.multiplexer == "screen" and not how["write"]:
        click.echo("screen has no read-only view: this follows the log; --write opens the window", err=True)
        _print(follow_log(transport, seen.log, 50, on=True))
        return
    if _closed(transport.host, seen.begin):
        _refuse_ended(transport, found.directory, session)
        click.echo(f"the window of {session} is gone, but it still runs: this follows its log", err=True)
        _print(follow_log(transport, seen.log, 50, on=True))
        return
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
        answer(
            [
                {"run": run.id, "directory": run.directory, "done": dict(run.done), "held": dict(run.held)}
                for run in found
            ]
        )
        return
    for run in found:
        click.echo(harmless(f"{run.id}  {_state(run)}  ") + click.style(harmless(run.directory), dim=True))
    if not found:
        click.echo(f"no runs on {transport.host}")


def _state(run: Run) -> str:
    """How a run ended, or what keeps it from going on."""
    if run.done:
        told = [f"{run.done[word]} {word}" for word in Outcome if run.done.get(word, "0") != "0"]
        return ", ".join(told) or "ended"
    if run.held:
        why = " ".join(run.held.get("why", "").split())
        return run.held.get("kind", "held") + (f" ({why})" if why else "")
    return "not ended"


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
    if (seen.begin.multiplexer in ("screen", SLURM) and not write) or _closed(host, seen.begin):
        return ["tail", "-n", "50", "-F", "--", str(seen.log)]
    return attach_command(seen.begin, _socket(host), write=write)


def _show_or_become(command: list[str], *, show: bool) -> None:
    if show:
        click.echo(shlex.join(command))
    else:
        _become(command)


def _task(transport: Transport, directory: str, session: str) -> str:
    """The number of the job that runs a session. Raises UserError where none does, or Slurm does not tell."""
    seen = once(Source(transport, load_run(transport, directory)))
    found = next((one for one in (*seen.sessions, seen.after) if one and one.name == session), None)
    if found is None or not found.alive:
        raise UserError(f"nothing of {session} runs: it has ended", f"combo logs {session} shows its output")
    if found.task is None or not found.task.id:
        raise UserError(f"Slurm does not tell which job runs {session}", f"combo logs -f {session} follows its output")
    return found.task.id


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


def _closed(host: str, begin: Begin) -> bool:
    """Whether a session's window is gone: its session has ended, or the tmux server has, which ends no session."""
    if host != LOCAL or begin.multiplexer != "tmux":
        return False
    from remote.windows import open_windows

    return begin.address not in open_windows(_socket(host))


def _refuse_ended(transport: Transport, directory: str, session: str) -> None:
    """Raises UserError where nothing of a session runs any more."""
    seen = once(Source(transport, load_run(transport, directory)))
    if not any(one.name == session and one.alive for one in (*seen.sessions, seen.after) if one):
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
    folder = Path(tempfile.gettempdir()) / f"comborun-attach-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700 or not stat.S_ISDIR(found.st_mode):
        raise UserError(f"{folder} is not a folder of yours alone", "set TMPDIR to a folder of your own")
    return folder
