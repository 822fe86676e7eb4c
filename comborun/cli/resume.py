"""combo resume: continue a run, for exactly the episodes without a record."""

from __future__ import annotations

import click

from comborun.amendment.resumption import resumption
from comborun.cli.options import Target, json_option, of_run
from comborun.cli.report import collected
from comborun.cli.terminal import repeatable, show_json
from comborun.errors import HostError
from comborun.monitor.steering import PlannedResume, resume_document, resume_lines
from comborun.monitor.watch import once
from comborun.remote.program import restart_dispatcher, steer
from comborun.remote.publish import add_sessions
from comborun.rules.vocabulary import Life
from comborun.text import harmless


@click.command()
@repeatable()
@of_run
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option
def resume(target: Target, dry_run: bool, as_json: bool) -> None:
    """Continue a run: run what is missing. No episode with a record runs again, if the command takes a range.

    Ends a pause, drain or halt. Sessions without all of their records get another attempt. If episodes in the middle
    are missing and the command takes a range, this adds sessions for exactly these episodes.

    \b
    combo resume                the newest run
    combo resume --dry-run      show only what it would do
    """
    target.note_change()
    going = _missing_work(target)
    act = not dry_run and not going.nothing
    if as_json:
        show_json(resume_document(going, done=act))
    else:
        click.echo("\n".join(map(harmless, resume_lines(going))))
    said = _go_on(target, going) if act else ""
    if said and not as_json:
        click.echo(harmless(said))


def _missing_work(target: Target) -> PlannedResume:
    from comborun.reporter.merge import missing, rejected

    source = target.source()
    view, seen = source.view, once(source)
    records, _ = collected(target)
    ended = [one for one in seen.sessions if one.life is Life.ENDED and one.attempt]
    outcomes = {one.name: one.outcome for one in ended if one.outcome}
    what = resumption(view.plan, outcomes, missing(records), rejected(records))
    coming = tuple(one.name for one in view.plan.current if one.name not in outcomes)
    return PlannedResume(view, seen, what, coming)


def _go_on(target: Target, going: PlannedResume) -> str:
    """First fill gaps, then lift the hold, then ask for attempts, then start the dispatcher: this is safe to repeat."""
    transport, view, what = target.transport, going.view, going.what
    if what.added and not add_sessions(transport, view.directory, (view.plan, view.number), what.added):
        raise HostError(f"a launch has just changed {view.id}", "give the same command again")
    if going.held or going.kept:
        steer(transport, view.directory, "resume")
    if what.again:
        steer(transport, view.directory, "retry", *(one.name for one in what.again))
    return restart_dispatcher(transport, view.directory, view.plan)
