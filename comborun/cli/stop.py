"""combo stop: the only command that ends anything."""

from __future__ import annotations

import shlex
from typing import Any

import click

from comborun.cli.control import check_names
from comborun.cli.options import Target, Where, json_option, root_options, run_option
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, answer, program
from comborun.errors import HostError, UserError
from comborun.monitor.observe import RunView
from comborun.monitor.watch import once
from comborun.remote.control import stop as stop_sessions
from comborun.text import close_to, did_you_mean, several


@click.command()
@click.argument("words", nargs=-1, metavar="[RUN] [SESSION]...")
@run_option
@root_options
@click.option("--policy", metavar="P", help="Only sessions of this policy.")
@click.option("--environment", metavar="E", help="Only sessions in this environment.")
@json_option
def stop(words: tuple[str, ...], wanted: str | None, where: Where, as_json: bool, **only: Any) -> int:
    """End a run, or single sessions of it, and everything that they started.

    INT first, then TERM, then KILL, and at last a sweep of every process that carries the session's marker. What could
    not be ended is named with its pid. The same launch command later resumes what is missing.

    \b
    combo stop                      the newest run
    combo stop 4_env_test           the newest run of a grid
    combo stop stairs_flat          a session of the newest run
    combo stop 4_env_test stairs_flat
    combo stop --policy flat
    """
    target, names = _meant(where, wanted, words)
    if names or any(only.values()):
        names = _chosen(target.source().view, names, **only)
    try:
        stopped = stop_sessions(target.transport, target.directory, names)
    except KeyboardInterrupt:
        _show_what_is_left(target, names)
        return INTERRUPTED
    if as_json:
        ended = list(names or stopped.sessions)
        answer({"run": target.run, "sessions": ended, "clean": stopped.clean, "lines": list(stopped.lines)})
    else:
        click.echo("\n".join(stopped.lines) or f"{target.run}: nothing was running")
    return 0 if stopped.clean else SOME_DID_NOT


def _show_what_is_left(target: Target, names: tuple[str, ...]) -> None:
    """What has not ended yet of what was to be stopped, and the command that goes on with it."""
    again = f"{program()} {shlex.join(('stop', '--run', target.run, *names))}{target.options}"
    click.echo(f"\nInterrupted. The host goes on with it; `{again}` waits for the end.", err=True)
    seen = once(target.source())
    meant = [one for one in seen.sessions if not names or one.name in names]
    left = [one.name for one in meant if one.alive]
    ended = sum(not one.alive and one.attempt > 0 for one in meant)
    starts = "; nothing new starts" if seen.stopped else ""
    click.echo(f"  {several(len(left), 'session')} not ended, {ended} ended{starts}", err=True)
    for name in left:
        click.echo(f"  {name}", err=True)


def _meant(where: Where, wanted: str | None, words: tuple[str, ...]) -> tuple[Target, tuple[str, ...]]:
    """The run, and the sessions of it: the first word is a run, or else a session of the newest run."""
    if wanted is not None or not words:
        return where.find(wanted), words
    try:
        return where.find(words[0]), words[1:]
    except HostError:
        raise
    except UserError as error:
        newest = where.find(None)
        names = newest.source().view.sessions
        if words[0] in names:
            return newest, words
        hint = did_you_mean(words[0], names) if close_to(words[0], names) else error.hint
        raise UserError(f"{error.message}, and no session of that name in {newest.run}", hint) from error


def _chosen(view: RunView, names: tuple[str, ...], policy: str | None, environment: str | None) -> tuple[str, ...]:
    """The sessions that are meant. Raises UserError when there are none."""
    check_names(view, names)
    plan = view.plan
    for key, value, known in (("policy", policy, plan.policies), ("environment", environment, plan.environments)):
        if value is not None and value not in known:
            raise UserError(f"there is no {key} {value} in {view.id}", did_you_mean(value, known))
    if policy is None and environment is None:
        return names
    fitting = (one for one in plan.sessions if policy in {None, one.policy} and environment in {None, one.environment})
    chosen = tuple(one.name for one in fitting if not names or one.name in names)
    if not chosen:
        raise UserError(f"no session of {view.id} is all of that", "combo status shows them")
    return chosen
