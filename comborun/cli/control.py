"""combo stop, resume, retry, slots, pause, drain and notify: steer a run. Only `stop` ends anything."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from comborun.api.named import HostChoice, Target
from comborun.cli.options import (
    SLOTS,
    environment_option,
    json_option,
    of_run,
    of_run_option,
    root_options,
    run_option,
    sessions_argument,
    take_over_option,
)
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, note, program, repeatable, show_json, working
from comborun.errors import HostError, UserError
from comborun.model.work import combo_of
from comborun.monitor.addressing import UnknownSessionError, sessions_of
from comborun.monitor.explain import server_names
from comborun.monitor.steering import PlannedResume, PlannedStop, resume_document, resume_lines
from comborun.monitor.watch import once
from comborun.remote.program import Reply, refuse_elsewhere, restart_dispatcher, send_test_notice, steer
from comborun.remote.program import stop as stop_sessions
from comborun.remote.runs import list_runs
from comborun.remote.slurm import settle
from comborun.rules.vocabulary import Life
from comborun.text import did_you_mean, harmless, several
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.model.plan import Plan
    from comborun.monitor.observe import RunView
    from comborun.monitor.status import RunStatus
    from comborun.monitor.watch import Source


@click.command()
@sessions_argument("words", metavar="[RUN] [SESSION]...")
@run_option
@root_options
@click.option("--policy", metavar="P", help="Only sessions of this policy.")
@click.option("--environment", metavar="E", help="Only sessions in this environment.")
@click.option("--dry-run", is_flag=True, help="Show what would be stopped, and stop nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask; the default without a terminal.")
@take_over_option
@json_option
def stop(words: tuple[str, ...], wanted: str | None, where: HostChoice, as_json: bool, **how: Any) -> int:
    """End a run, or some of its sessions, and everything that they started.

    Sends INT, then TERM, then KILL, at last to every process with the session's marker. Names processes that are left,
    with their pids. The same launch command resumes the run later.

    \b
    combo stop                      the newest run; asks first
    combo stop 4_env_test           the newest run of a grid
    combo stop stairs_flat          a session of the newest run
    combo stop flat stairs          the same, by policy and environment
    combo stop 4_env_test stairs_flat
    combo stop --policy flat
    """
    filters = {key: how[key] for key in ("policy", "environment")}
    target, words = _run_and_sessions(where, wanted, words)
    target.own(take_over=how["take_over"] and not how["dry_run"])
    names, order = _ordered(target, words, filters)
    if not as_json:
        click.echo("\n".join(map(harmless, order.lines())))
    bare = not (words or wanted or how["yes"] or any(filters.values()))
    if how["dry_run"]:
        if as_json:
            show_json(order.to_document())
        return 0
    if bare and not as_json and (order.running or order.unseen) and sys.stdin.isatty():
        click.confirm("Stop it?", abort=True, err=True)
    try:
        with working("ending sessions"):
            stopped = stop_sessions(target.transport, target.directory, names)
    except KeyboardInterrupt:
        _show_what_is_left(target, names)
        return INTERRUPTED
    if as_json:
        ended = list(names or stopped.facts("session"))
        show_json({"run": target.run, "sessions": ended, "clean": stopped.done, "lines": list(stopped.texts)})
    elif stopped.lines or order.running or order.unseen:
        click.echo("\n".join(stopped.texts) or f"{target.run}: nothing was running")
    return 0 if stopped.done else SOME_DID_NOT


def _ordered(
    target: Target, words: tuple[str, ...], filters: Mapping[str, str | None]
) -> tuple[tuple[str, ...], PlannedStop]:
    """The sessions that the words and options mean, and what their stop would do.

    A run whose status is unknown can be stopped as a whole, or by exact names.
    """
    run, host = target.run, target.transport.host
    try:
        source = target.source()
    except UserError as error:
        if any(filters.values()):
            raise
        return words, PlannedStop(run, host, words, unseen=error.message)
    names = _chosen(source, words, **filters) if words or any(filters.values()) else ()
    try:
        seen = once(source)
    except UserError as error:
        return names, PlannedStop(run, host, names, unseen=error.message)
    refuse_elsewhere(seen.elsewhere, run)
    names = (*names, *_superseded(source.view.plan, seen, names, words))
    order = PlannedStop.of(source.view, seen, names)
    return names, order if order.running or names else replace(order, others=_others(target))


def _others(target: Target) -> tuple[str, ...]:
    """The other unfinished runs of its grid, the newest first."""
    there = list_runs(target.transport, (target.directory.rpartition("/")[0],))
    going = [run for run in there if not run.done and run.held.get("kind") != "stopped"]
    grid = target.run.rsplit("-", 2)[0]
    return tuple(run.id for run in going if run.grid == grid and run.id != target.run)


def _superseded(plan: Plan, seen: RunStatus, names: tuple[str, ...], words: tuple[str, ...]) -> Iterator[str]:
    """Running sessions of combos named by policy and environment that a changed grid has replaced."""
    combos = {combo_of(one) for one in plan.sessions if one.name in names and one.name not in words}
    alive = {one.name for one in seen.every if one.alive}
    dropped = (one for one in plan.sessions if one.flag == "dropped" and one.name in alive)
    return (one.name for one in dropped if combo_of(one) in combos and one.name not in names)


def _show_what_is_left(target: Target, names: tuple[str, ...]) -> None:
    """Print the sessions that have not ended yet, and the command that continues."""
    again = f"{program()} {shlex.join(('stop', '--run', target.run, *names))}{target.options}"
    click.echo(f"\nInterrupted. The host goes on; `{again}` waits for the end.", err=True)
    seen = once(target.source())
    meant = [one for one in seen.sessions if not names or one.name in names]
    left = [one.name for one in meant if one.alive]
    ended = sum(not one.alive and one.attempt > 0 for one in meant)
    starts = "; nothing new starts" if seen.stopped else ""
    click.echo(f"  {several(len(left), 'session')} not ended, {ended} ended{starts}", err=True)
    for name in left:
        click.echo(f"  {name}", err=True)


def _run_and_sessions(where: HostChoice, wanted: str | None, words: tuple[str, ...]) -> tuple[Target, tuple[str, ...]]:
    """The run, and words for its sessions. The first word is a run, or else a session of the newest run."""
    if wanted is not None or not words:
        return where.find(wanted), words
    try:
        return where.find(words[0]), words[1:]
    except HostError:
        raise
    except UserError as error:
        newest = where.find(None)
        try:
            sessions_of(newest.source(), words, note)
        except UnknownSessionError as missing:
            hint = missing.hint if missing.likely else error.hint
            raise UserError(f"{error.message}, and no session of that name in {newest.run}", hint) from error
        return newest, words


def _chosen(source: Source, words: tuple[str, ...], policy: str | None, environment: str | None) -> tuple[str, ...]:
    """The sessions that the words and options name. Raises UserError if there are none."""
    view, plan = source.view, source.view.plan
    names = sessions_of(source, words, note)
    check_no_servers(view, names)
    for key, value, known in (("policy", policy, plan.policies), ("environment", environment, plan.environments)):
        if value is not None and value not in known:
            raise UserError(f"there is no {key} {value} in {view.id}", did_you_mean(value, known))
    if policy is None and environment is None:
        return names
    fitting = (one for one in plan.sessions if policy in {None, one.policy} and environment in {None, one.environment})
    chosen = tuple(one.name for one in fitting if not names or one.name in names)
    if not chosen:
        raise UserError(f"no session of {view.id} matches all of that", "combo status shows them")
    return chosen


@click.command()
@sessions_argument("sessions", metavar="[SESSION]...")
@repeatable()
@of_run_option
@click.option("--failed", is_flag=True, help="All sessions that failed, are partial or were lost.")
@click.option("--stalled", is_flag=True, help="All sessions that were ended because they stalled.")
@environment_option
@take_over_option
@json_option
def retry(
    sessions: tuple[str, ...], target: Target, environment: str, take_over: bool, as_json: bool, **which: bool
) -> int:
    """Start sessions again that ended without success, each with a new budget of retries.

    Running and successful sessions are left alone, with a message.

    \b
    combo retry stairs_flat
    combo retry flat stairs        by policy and environment
    combo retry --failed
    """
    chosen = [f"--{word}" for word, given in which.items() if given]
    if len(chosen) + bool(sessions) != 1:
        raise UserError("name sessions, or give either --failed or --stalled", "combo status lists them")
    target.note_change()
    target.own(take_over=take_over)
    source = target.source()
    sessions = sessions_of(source, sessions, note)
    check_no_servers(source.view, sessions)
    steered = steer(target.transport, target.directory, "retry", *chosen, *sessions)
    code = _show(target, steered, restart(source, environment) if steered.done else "", as_json=as_json)
    return 0 if chosen else code  # no failed session is not an error


@click.command()
@click.argument("count", metavar="N", type=SLOTS)
@repeatable()
@of_run_option
@json_option
def slots(count: int, target: Target, as_json: bool) -> int:
    """Let N sessions run at once from now on. Running sessions go on, even if they are more.

    \b
    combo slots 4
    """
    return _show(target, steer(target.transport, target.directory, "slots", str(count)), as_json=as_json)


def _holding(verb: Literal["pause", "drain"], text: str) -> click.Command:
    """A command that lets nothing new start until `combo resume`."""

    @click.command(verb, help=text)
    @repeatable()
    @of_run
    @click.option(
        "--why", default="", metavar="TEXT", help="The reason, in one line; everybody who watches the run sees it."
    )
    @json_option
    def hold(target: Target, why: str, as_json: bool) -> int:
        line = " ".join(harmless(why).split())
        steered = steer(target.transport, target.directory, verb, *([line] if line else []))
        remark = f"run `{target.command('resume')}` to continue" if steered.done else ""
        return _show(target, steered, remark, as_json=as_json)

    return hold


pause = _holding(
    "pause",
    """Start nothing new until `combo resume`. Running sessions go on.

    \b
    combo pause --why "the training job needs the GPU until noon"
    """,
)
drain = _holding(
    "drain",
    """Start no new sessions, and let running sessions end; `combo resume` continues later.

    \b
    combo drain --why "the box is shut down tonight"
    """,
)


@click.command()
@of_run
@json_option
def notify(target: Target, as_json: bool) -> int:
    """Send a test notice through the grid's `notify` command, on the host, and show what it prints.

    \b
    combo notify
    """
    return _show(target, send_test_notice(target.transport, target.directory), as_json=as_json)


def check_no_servers(view: RunView, names: Iterable[str]) -> None:
    """Raise UserError for the name of a model server: it starts and ends with its sessions."""
    for name in names:
        if name in server_names(view.plan):
            raise UserError(
                f"{name} is a model server of {view.id}: it starts with the sessions that use it, and ends after them",
                f"{program()} explain {name} shows its state; {program()} stop {view.id} ends all",
            )


def restart(source: Source, environment: str) -> str:
    """Start the dispatcher if it is gone, unless the run is stopped or held. Returns a note for the user.

    On Slurm, submit the new attempts.
    """
    transport, view, status = source.transport, source.view, once(source)
    if status.stopped or status.hold:
        how = f"is {status.hold.kind}" if status.hold else "was stopped"
        return f"the run {how}: nothing starts until `{program()} resume {view.id}`"
    if status.dispatcher is None:
        if status.environment and environment != "first":
            note(say(status.environment))
        return restart_dispatcher(transport, view.directory, view.plan, environment)
    return settle(transport, view.directory) if view.plan.slurm else ""


def _show(target: Target, steered: Reply, remark: str = "", *, as_json: bool) -> int:
    if as_json:
        show_json({"run": target.run, "done": steered.done, "lines": list(steered.texts), "note": remark or None})
    else:
        click.echo("\n".join((*steered.texts, *([harmless(remark)] if remark else []))))
    return 0 if steered.done else SOME_DID_NOT


@click.command()
@repeatable()
@of_run
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@environment_option
@take_over_option
@json_option
def resume(target: Target, dry_run: bool, environment: str, take_over: bool, as_json: bool) -> None:
    """Continue a run: run what is missing. No episode with a record runs again, if the command takes a range.

    Ends a pause, drain or halt. Sessions without all of their records get another attempt. If episodes in the middle
    are missing and the command takes a range, this adds sessions for exactly these episodes.

    \b
    combo resume                the newest run
    combo resume --dry-run      show only what it would do
    """
    target.note_change()
    target.own(take_over=take_over and not dry_run)
    going = _missing_work(target)
    if environment == "first":
        going = replace(going, seen=replace(going.seen, environment=None))
    act = not dry_run and not going.nothing
    if as_json:
        show_json(resume_document(going, done=act))
    else:
        click.echo("\n".join(map(harmless, resume_lines(going))))
    said = _go_on(target, going, environment) if act else ""
    if said and not as_json:
        click.echo(harmless(said))


def _missing_work(target: Target) -> PlannedResume:
    from comborun.amendment.resumption import resumption  # `combo stop` needs no grid model
    from comborun.cli.report import collected
    from comborun.reporter.merge import missing, rejected

    source = target.source()
    view, seen = source.view, once(source)
    refuse_elsewhere(seen.elsewhere, view.id)
    records, _ = collected(target)
    ended = [one for one in seen.sessions if one.life is Life.ENDED and one.attempt]
    outcomes = {one.name: one.outcome for one in ended if one.outcome}
    what = resumption(view.plan, outcomes, missing(records), rejected(records))
    coming = tuple(one.name for one in view.plan.current if one.name not in outcomes)
    return PlannedResume(view, seen, what, coming)


def _go_on(target: Target, going: PlannedResume, environment: str) -> str:
    """First fill gaps, then lift the hold, then ask for attempts, then start the dispatcher: this is safe to repeat."""
    from comborun.remote.publish import add_sessions

    transport, view, what = target.transport, going.view, going.what
    if what.added and not add_sessions(transport, view.directory, (view.plan, view.number), what.added):
        raise HostError(f"a launch has just changed {view.id}", "give the same command again")
    if going.held or going.kept:
        steer(transport, view.directory, "resume")
    if what.again:
        steer(transport, view.directory, "retry", *(one.name for one in what.again))
    return restart_dispatcher(transport, view.directory, view.plan, environment)
