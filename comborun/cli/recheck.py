"""combo recheck: run a few episodes of a run's combos again, alone, and compare the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console

from comborun.amendment.smoke import episodes_each, recheck_plan
from comborun.cli.options import Target, episodes_option, json_option, of_run
from comborun.cli.report import collected
from comborun.cli.terminal import SOME_DID_NOT, program, show_json, show_rows
from comborun.errors import HostError, UserError
from comborun.monitor.beginning import await_beginning
from comborun.monitor.screen import JsonScreen, open_screen
from comborun.monitor.watch import Clock, Settings, Source, once, watch
from comborun.remote.launching import launch_recheck
from comborun.text import harmless, several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.records.collected import Canary
    from comborun.reporter.records.reading import Reject

_WRITE = """
case $1 in "~/"*) run=$HOME/${1#"~/"} ;; *) run=$1 ;; esac
cat >"$run/.canary.part" && mv -fT -- "$run/.canary.part" "$run/canary.json"
"""


@click.command()
@of_run
@episodes_option(default=3)
@json_option
def recheck(target: Target, episodes: int, as_json: bool) -> int:
    """Run the first episodes of every combo once more, alone, and compare them with the run.

    Runs one session at a time, with the same commands and seeds. If outcomes or starts of episodes differ, the program
    is not repeatable, or parallel sessions change its results. Then the run's report begins with that.

    \b
    combo recheck
    combo recheck 4_env_test --episodes 5
    """
    from comborun.reporter.canary import compare_canary

    transport = target.transport
    source = target.source()
    view = source.view
    _refuse_company(source)
    plan = recheck_plan(view.plan, view.id, episodes)
    publication = launch_recheck(transport, plan, view.directory, episodes)
    await_beginning(transport, publication.directory)
    alone = Target(transport, publication.run, publication.directory)
    if not as_json:
        click.echo(f"{view.id}: {episodes_each(plan)} of every combo run alone, as {alone.run}")
    _watch(alone, quiet=as_json)
    (beside, _), (found, _) = collected(target), collected(alone)
    result = compare_canary(alone.run, beside.records, found.records)
    # beside the run's records, so that every report of the run shows it
    done = transport.run(_WRITE, target.directory, stdin=result.to_json().encode("utf-8", "replace"))
    if done.code:
        raise HostError(f"can't write {target.directory}/canary.json on {transport.host}", done.complaint)
    _show(result, target, found.rejects, as_json=as_json)
    return SOME_DID_NOT if result.differing or result.silent or not result.combos else 0


def _refuse_company(source: Source) -> None:
    """Raise UserError while the run goes on: a recheck must run alone."""
    view = source.view
    if view.plan.slurm:
        hint = f"on a node of yours (srun --pty bash): {program()} run GRID --new, and then {program()} recheck"
        raise UserError(f"{view.id} ran on Slurm, and a recheck needs a machine for itself", hint)
    if not once(source).finished:
        hint = f"wait for its end, or {program()} stop {view.id}"
        raise UserError(f"{view.id} still runs, and a recheck must be alone on the machine", hint)


def _watch(alone: Target, *, quiet: bool) -> None:
    source = alone.source()
    screen = JsonScreen(lambda _: None) if quiet else open_screen(Console(highlight=False), plain=False)
    try:
        watch(source, screen, Clock(), Settings(min(source.view.plan.poll, 5.0)))
    except KeyboardInterrupt:
        click.echo(f"\nNo longer watching. The recheck goes on; {program()} stop {alone.run} ends it.", err=True)
        raise


def _show(result: Canary, target: Target, rejects: Sequence[Reject], *, as_json: bool) -> None:
    if as_json:
        combos = [vars(combo) for combo in result.combos]
        show_json({"run": target.run, "canary": result.run, "combos": combos, "rejected": len(rejects)})
        return
    click.echo()
    show_rows({harmless(combo.name, keep=""): ("! " if combo.differs else "") + combo.words for combo in result.combos})
    if result.differing:
        click.echo(
            "Some episodes had another outcome alone: the program is not repeatable, or parallel sessions affect each"
            " other."
        )
    elif result.combos and not result.silent:
        click.echo("All compared episodes had the same outcome as in the run.")
    elif result.combos:
        click.echo(f"{several(len(result.silent), 'combo')} of {len(result.combos)} could not be compared.")
    elif not rejects:
        click.echo("The recheck left no record, so nothing can be compared.")
    if rejects:
        from comborun.reporter.canary import told_rejects

        click.echo(harmless(told_rejects(result, rejects)))
    show_rows({"report": f"{program()} report {target.run}"})
