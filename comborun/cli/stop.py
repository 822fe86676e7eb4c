"""combo stop: the only command that ends anything."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from comborun.cli.control import check_no_servers
from comborun.cli.options import HostChoice, Target, json_option, root_options, run_option, sessions_argument
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, note, program, show_json, working
from comborun.errors import HostError, UserError
from comborun.model.work import combo_of
from comborun.monitor.addressing import UnknownSessionError, sessions_of
from comborun.monitor.steering import PlannedStop
from comborun.monitor.watch import once
from comborun.remote.program import stop as stop_sessions
from comborun.remote.runs import list_runs
from comborun.text import did_you_mean, harmless, several

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.model.plan import Plan
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
