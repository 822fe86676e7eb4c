"""combo canary: a few episodes of every combo of a run once more, alone, and whether they go as they went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console

from comborun import __version__
from comborun.again.smoke import OF, canary_plan
from comborun.cli.options import Where, json_option, root_option, run_argument, where_options
from comborun.cli.report import bring
from comborun.cli.terminal import SOME_DID_NOT, answer, program, tell
from comborun.errors import HostError, UserError
from comborun.monitor.beginning import await_beginning
from comborun.monitor.observe import load_run
from comborun.monitor.screen import JsonScreen, open_screen
from comborun.monitor.watch import Clock, Settings, Source, once, watch
from comborun.remote.control import StartOptions, laptop_secrets, start
from comborun.remote.publish import Draft, publish
from comborun.text import harmless, several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.monitor.observe import RunView
    from comborun.plan import Plan
    from comborun.remote.publish import Publication
    from comborun.remote.runs import Run
    from comborun.remote.transport import Transport
    from comborun.reporter.adapters.reading import Reject
    from comborun.reporter.comparing.canary import Canary

_WRITE = """
case $1 in "~/"*) run=$HOME/${1#"~/"} ;; *) run=$1 ;; esac
cat >"$run/.canary.part" && mv -fT -- "$run/.canary.part" "$run/canary.json"
"""


@click.command()
@run_argument
@where_options
@root_option
@click.option(
    "--episodes", type=click.IntRange(min=1), default=3, show_default=True, metavar="K", help="Of each combo."
)
@json_option
def canary(run: str | None, where: Where, root: str | None, episodes: int, as_json: bool) -> int:
    """Run the first episodes of every combo once more, alone, and compare them with the run.

    One session at a time, with the same commands and seeds. Other outcomes or starts than in the run mean that the
    program is not repeatable, or that running beside others changes its results; the run's report then says so first.

    \b
    combo canary
    combo canary 4_env_test --episodes 5
    """
    transport, found = where.find(run, root)
    view = load_run(transport, found.directory)
    _refuse_company(transport, view)
    plan = canary_plan(view.plan, view.id, episodes)
    publication = _launch(transport, view, plan, episodes)
    if not as_json:
        click.echo(f"{view.id}: {told_size(plan)} of every combo run alone, as {publication.run}")
    _watch(transport, publication, quiet=as_json)
    result, rejects = _compare(transport, found, publication)
    _write(transport, found, result)
    _tell(result, found, rejects, as_json=as_json)
    return SOME_DID_NOT if result.differing or result.silent or not result.combos else 0


def _refuse_company(transport: Transport, view: RunView) -> None:
    """Raise UserError while the run itself goes on: what runs beside it is no canary."""
    if view.plan.slurm:
        hint = "launch the same grid without --slurm on one machine: that run can have a canary"
        raise UserError(f"{view.id} ran on Slurm, and a canary needs one machine for itself", hint)
    seen = once(Source(transport, view))
    if not seen.finished:
        hint = f"wait for its end, or {program()} stop {view.id}"
        raise UserError(f"{view.id} still runs, and a canary has to be alone on the machine", hint)


def told_size(plan: Plan) -> str:
    """`3 episodes`, or `up to 3 episodes` where a combo has fewer than others."""
    counts = {session.count for session in plan.sessions}
    return ("up to " if len(counts) > 1 else "") + several(max(counts, default=0), "episode")


def _launch(transport: Transport, view: RunView, plan: Plan, episodes: int) -> Publication:
    root = view.directory.rpartition("/")[0]
    origin = {"comborun": __version__, OF: view.id, "episodes": episodes}
    draft = Draft(plan, f"# a canary of {view.id}; its grid is there\n", root, origin)
    publication = publish(transport, draft, "new")
    start(transport, publication.directory, StartOptions(secrets=laptop_secrets(dict(plan.secrets))))
    await_beginning(transport, publication.directory)  # what it waits for is shown while it is watched
    return publication


def _watch(transport: Transport, publication: Publication, *, quiet: bool) -> None:
    source = Source(transport, load_run(transport, publication.directory))
    screen = JsonScreen(lambda _: None) if quiet else open_screen(Console(highlight=False), plain=False)
    try:
        watch(source, screen, Clock(), Settings(min(source.view.plan.poll, 5.0)))
    except KeyboardInterrupt:
        click.echo(f"\nNo longer watching. The canary goes on; {program()} stop {publication.run} ends it.", err=True)
        raise


def _compare(transport: Transport, found: Run, publication: Publication) -> tuple[Canary, tuple[Reject, ...]]:
    """And what of the canary's records could not be taken."""
    from comborun.reporter.collect import collect_run
    from comborun.reporter.comparing.canary import compare_canary

    places = ((found.id, found.directory), (publication.run, publication.directory))
    parallel, alone = (collect_run(*bring(transport, *place)[:1]) for place in places)
    return compare_canary(publication.run, parallel.records, alone.records), alone.rejects


def _write(transport: Transport, found: Run, result: Canary) -> None:
    """Beside the run's own records, so that every report of it tells."""
    done = transport.run(_WRITE, found.directory, stdin=result.to_json().encode("utf-8", "replace"))
    if done.code:
        raise HostError(f"{found.directory}/canary.json can't be written on {transport.host}", done.complaint)


def _tell(result: Canary, found: Run, rejects: Sequence[Reject], *, as_json: bool) -> None:
    if as_json:
        combos = [vars(combo) for combo in result.combos]
        answer({"run": found.id, "canary": result.run, "combos": combos, "rejected": len(rejects)})
        return
    click.echo()
    tell({harmless(combo.name, keep=""): ("! " if combo.differs else "") + combo.words for combo in result.combos})
    if result.differing:
        click.echo("Run alone, episodes went otherwise: the program is not repeatable, or runs disturb each other.")
    elif result.combos:
        click.echo("All episodes that were compared went as in the run.")
    elif not rejects:
        click.echo("The canary left no record: nothing can be said.")
    if rejects:
        from comborun.reporter.comparing.canary import told_rejects

        click.echo(harmless(told_rejects(result, rejects)))
    tell({"report": f"{program()} report {found.id}"})
