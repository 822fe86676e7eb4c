"""combo launch and combo run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comborun.again.smoke import smoke_sessions
from comborun.cli.changing import changed_option
from comborun.cli.on_slurm import slurm_option
from comborun.cli.options import SLOTS, grid_argument, json_option, where_options
from comborun.cli.request import Request
from comborun.cli.smoking import smoke_test
from comborun.cli.starting import start_run
from comborun.cli.status import Watching, watch_until_the_end
from comborun.cli.terminal import SOME_DID_NOT, answer, program, tell
from comborun.text import harmless, several

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.cli.starting import Launched

_OPTIONS = (
    where_options,
    slurm_option,
    click.option("--parallel", type=SLOTS, metavar="N", help="Sessions at once."),
    click.option("--multiplexer", type=click.Choice(["tmux", "screen"]), help="What holds the sessions."),
    click.option("--new", is_flag=True, help="Start another run, even when this grid has one."),
    changed_option,
    click.option(
        "--smoke",
        type=click.IntRange(min=1),
        metavar="K",
        help="First K episodes of every combo; go on only if each leaves a record.",
    ),
)


def _launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@grid_argument
@_launch_options
@json_option
def launch(grid: Path, as_json: bool, **options: Any) -> int:
    """Start a grid's sessions and return; the same command again resumes what is missing.

    \b
    combo launch grid.yaml
    combo launch grid.yaml --parallel 4 --multiplexer screen
    combo launch grid.yaml --smoke 1            an episode of each combo first
    combo launch grid.yaml --changed rerun      what has changed is done anew
    combo launch grid.yaml --slurm --host login1
    """
    launched = start_run(Request(grid, **options))
    if not as_json:
        _tell(launched)
    tried = bool(options["smoke"]) and not launched.hold
    passed = smoke_test(launched, quiet=as_json) if tried else True
    if as_json:
        answer(_record(launched) | ({"smoke": passed} if tried else {}))
    return 0 if passed else SOME_DID_NOT


@click.command()
@click.argument("grid", type=click.Path(path_type=Path), metavar="GRID", envvar="COMBORUN_GRID")
@_launch_options
@click.option("--interval", type=click.FloatRange(min=0.2), metavar="S", help="Seconds between two looks.")
@click.option("--plain", is_flag=True, help="Lines instead of a live table.")
def run(grid: Path, interval: float | None, plain: bool, **options: Any) -> int:
    """Launch a grid, watch it, and report once all sessions have exited.

    \b
    combo run grid.yaml
    Ctrl-C stops watching only: the sessions go on.
    """
    launched = start_run(Request(grid, **options))
    _tell(launched)
    if launched.hold:
        return 0
    if options["smoke"] and not smoke_test(launched):
        return SOME_DID_NOT
    publication = launched.publication
    watching = Watching(publication.run, publication.directory, interval=interval, plain=plain)
    return watch_until_the_end(launched.transport, watching)


def _record(launched: Launched) -> dict[str, Any]:
    publication = launched.publication
    return {
        "run": publication.run,
        "host": launched.transport.host,
        "directory": publication.directory,
        "state": publication.state,
        "hold": {"kind": launched.hold.kind, "why": launched.hold.why} if launched.hold else None,
        "sessions": [session.name for session in launched.plan.sessions if session.flag != "dropped"],
        "shipped": list(launched.shipped),
        "replaced": list(launched.replaced),
        "waits": launched.waits or None,
        "engine": launched.plan.engine,
        "submitted": list(launched.submitted),
        "changes": list(launched.changes),
        "lacks": launched.lacks or None,
    }


def _sentence(launched: Launched) -> str:
    if hold := launched.hold:
        lifts = f"`{program()} resume {launched.publication.run}{launched.options}` lets it go on"
        return f"this grid's run is {hold.kind}{f' ({hold.why})' if hold.why else ''}, and nothing was started: {lifts}"
    tried = len(smoke_sessions(launched.plan))
    rest = sum(session.flag != "dropped" for session in launched.plan.sessions) - tried
    smoke = f", and {tried} of a smoke test before them" if tried else ""
    waits = f"the first {launched.waits}" if launched.waits else ""
    begins = "Slurm has them" if launched.plan.slurm else waits or "the first is running"
    return {
        "new": f"{several(rest, 'session')} planned{smoke}; {begins}",
        "resumed": f"this grid's run is there already: what is missing goes on{f'; {waits}' if waits else ''}",
        "finished": "this grid's run has finished, and no session is started again; --new starts another run",
    }[launched.publication.state]


def _tell(launched: Launched) -> None:
    publication = launched.publication
    names = [session.name for session in launched.plan.sessions if session.flag != "dropped"]
    click.echo(f"{click.style(launched.plan.grid, bold=True)}: {harmless(_sentence(launched))}")
    shipped = (f"shipped {line}" for line in launched.shipped)
    for note in (*shipped, *launched.replaced, *launched.submitted, *launched.changes, launched.lacks):
        if note:
            click.echo(f"  {harmless(note)}")
    rows = {"run": publication.run, "folder": publication.directory}
    if publication.state != "finished":
        rows |= {
            "watch": f"{program()} monitor {publication.run}{launched.options}",
            "attach": f"{program()} attach {names[0]} --run {publication.run}{launched.options}",
            "stop": f"{program()} stop {publication.run}{launched.options}",
        }
    elif launched.lacks:
        rows |= {
            "resume": f"{program()} resume {publication.run}{launched.options}",
            "report": f"{program()} report {publication.run}{launched.options}",
        }
    tell(rows)
