"""combo launch and combo run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from comborun.cli.frame import answer, grid_argument, json_option, program, tell
from comborun.cli.grids import check_setup, warn
from comborun.cli.watching import Watching, watch_until_the_end
from comborun.cli.where import Where, where_options
from comborun.errors import UserError
from comborun.grid import load_grid
from comborun.plaintext import harmless
from comborun.planner import lay_out, not_taken_over
from monitor.observe import load_run
from remote.host import ask, check
from remote.launch import Publication, StartOptions, await_first, publish, start
from remote.provenance import provenance, shipped_origin
from remote.replace import replaced
from remote.runs import Launch, remember
from remote.secrets import asked_of_host, check_host, from_laptop
from remote.shipping.survey import digest_of, survey
from remote.shipping.sync import compare, deliver, lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.plan import Plan
    from comborun.transport import Transport

_OPTIONS = (
    where_options,
    click.option("--parallel", type=click.IntRange(min=1), metavar="N", help="Sessions at once."),
    click.option("--multiplexer", type=click.Choice(["tmux", "screen"]), help="What holds the sessions."),
    click.option("--new", is_flag=True, help="Start another run, even when this grid has one."),
)


def _launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Request:
    """What a person asked to be launched."""

    grid: Path
    where: Where
    parallel: int | None
    multiplexer: Literal["tmux", "screen"] | None
    new: bool


@dataclass(frozen=True)
class Launched:
    transport: Transport
    plan: Plan
    publication: Publication
    options: str
    """what every later command needs to find the host, as it is typed"""
    shipped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """what of a changed grid its run does not take over"""


@click.command()
@grid_argument
@_launch_options
@json_option
def launch(grid: Path, as_json: bool, **options: Any) -> None:
    """Start a grid's sessions and return; the same command again resumes what is missing.

    \b
    combo launch grid.yaml
    combo launch grid.yaml --parallel 4 --multiplexer screen
    """
    launched = start_run(Request(grid, **options))
    if as_json:
        answer(_record(launched))
        return
    _tell(launched)


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
    publication = launched.publication
    watching = Watching(publication.run, publication.directory, interval=interval, plain=plain)
    return watch_until_the_end(launched.transport, watching)


def start_run(request: Request) -> Launched:
    """Check, publish and start a grid; safe to repeat, so that an interruption loses nothing."""
    try:
        return _start_run(request)
    except KeyboardInterrupt:
        click.echo("\nInterrupted. What had been started goes on; the same command again does the rest.", err=True)
        raise


def _start_run(request: Request) -> Launched:
    grid = load_grid(request.grid)
    warn(grid)
    check_setup(grid)
    secrets, shipments = from_laptop(grid.secrets), survey(grid.sync, grid.path.parent)
    transport = request.where.connect(grid.host)
    facts = ask(transport, asked_of_host(grid.secrets))
    check(facts, request.multiplexer)
    check_host(facts)
    plan = lay_out(grid, facts, digest_of(shipments))
    deliveries = compare(transport, shipments)
    origin = {**provenance(grid.path, grid.text, facts), "sync": shipped_origin(shipments)}
    publication = publish(transport, plan, grid.text, grid.root, origin, new=request.new)
    _refuse_changed(publication)
    root = publication.directory.removesuffix(f"/{publication.run}")
    way = request.where.way(transport.host)
    remember(Launch(publication.run, transport.host, root, publication.directory, grid.name, way))
    options = request.where.options(transport.host)
    if publication.state == "finished":
        return Launched(transport, plan, publication, options)
    deliver(transport, deliveries, root)
    kept, parallel = _resumed(transport, publication, plan)
    begin = StartOptions(request.parallel or parallel, request.multiplexer, secrets)
    said = start(transport, publication.directory, begin)
    await_first(transport, publication.directory)
    return Launched(transport, plan, publication, options, tuple(lines(deliveries)), replaced(said), kept)


def _refuse_changed(publication: Publication) -> None:
    if publication.state == "changed":
        raise UserError(
            f"the run {publication.run} of this grid has not ended, and the grid or what it ships has changed since",
            f"let it end, stop it ({program()} stop {publication.run}), or start another run with --new",
        )


def _resumed(transport: Transport, publication: Publication, plan: Plan) -> tuple[tuple[str, ...], int | None]:
    """What a run that goes on does not take over from its grid, in sentences; and the grid's slots, if they changed."""
    if publication.state != "resumed":
        return (), None
    before = load_run(transport, publication.directory).plan
    changed = before.limits.parallel != plan.limits.parallel
    return not_taken_over(before, plan), plan.limits.parallel if changed else None


def _record(launched: Launched) -> dict[str, Any]:
    publication = launched.publication
    return {
        "run": publication.run,
        "host": launched.transport.host,
        "directory": publication.directory,
        "state": publication.state,
        "sessions": [session.name for session in launched.plan.sessions],
        "shipped": list(launched.shipped),
        "replaced": list(launched.replaced),
        "kept": list(launched.kept),
    }


def _tell(launched: Launched) -> None:
    publication = launched.publication
    sentence = {
        "new": f"{len(launched.plan.sessions)} sessions planned; the first is running",
        "resumed": "this grid's run is there already: what is missing goes on",
        "finished": "this grid's run has finished, and no session is started again; --new starts another run",
    }[publication.state]
    click.echo(f"{click.style(launched.plan.grid, bold=True)}: {sentence}")
    for note in (*(f"shipped {line}" for line in launched.shipped), *launched.replaced, *launched.kept):
        click.echo(f"  {harmless(note)}")
    rows = {"run": publication.run, "folder": publication.directory}
    if publication.state != "finished":
        rows |= {
            "watch": f"{program()} monitor {publication.run}{launched.options}",
            "attach": f"{program()} attach {launched.plan.sessions[0].name} --run {publication.run}{launched.options}",
            "stop": f"{program()} stop {publication.run}{launched.options}",
        }
    tell(rows)
