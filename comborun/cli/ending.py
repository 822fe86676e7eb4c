"""combo stop and combo report."""

from __future__ import annotations

from pathlib import Path

import click

from comborun.cli.frame import SOME_DID_NOT, answer, json_option
from comborun.cli.reporting import report_on, tell_report
from comborun.cli.where import Where, root_option, where_options
from comborun.errors import UserError
from remote.control import stop as stop_sessions


@click.command()
@click.argument("run", required=False, metavar="[RUN]")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@where_options
@root_option
@json_option
def stop(run: str | None, sessions: tuple[str, ...], where: Where, root: str | None, as_json: bool) -> int:
    """End a run, or single sessions of it, and everything that they started.

    INT first, then TERM, then KILL, and at last a sweep of every process that carries the session's marker. What could
    not be ended is named with its pid. The same launch command later resumes what is missing.

    \b
    combo stop                      the newest run
    combo stop 4_env_test           the newest run of a grid
    combo stop 4_env_test stairs_flat
    """
    transport, found = where.find(run, root)
    stopped = stop_sessions(transport, found.directory, sessions)
    if as_json:
        answer({"run": found.id, "clean": stopped.clean, "lines": list(stopped.lines)})
    else:
        click.echo("\n".join(stopped.lines) or f"{found.id}: nothing was running")
    return 0 if stopped.clean else SOME_DID_NOT


@click.command()
@click.argument("run", required=False, metavar="[RUN|FOLDER]")
@where_options
@root_option
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Where the report goes.")
@json_option
def report(run: str | None, where: Where, root: str | None, output: Path | None, as_json: bool) -> None:
    """Report on a run, or on any folder of result files.

    \b
    combo report
    combo report ~/old_results
    """
    if run and _is_folder(run, where, root):
        from reporter import report_folder

        target = output or Path(run) / "report"
        summary = report_folder(Path(run), target)
    else:
        transport, found = where.find(run, root)
        summary, target = report_on(transport, found.id, found.directory, output)
    tell_report(summary, target, as_json=as_json)


def _is_folder(word: str, where: Where, root: str | None) -> bool:
    """Whether a word means a folder of result files here: a path does; a bare name only when no run is called so."""
    folder = Path(word)
    if where.host is not None or not folder.is_dir() or (folder / "run.json").is_file():
        return False
    if "/" in word or word in {".", ".."}:
        return True
    try:
        _, run = where.find(word, root)
    except UserError:
        return True
    return word not in {run.id, run.id.rsplit("-", 2)[0]}
