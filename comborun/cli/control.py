"""combo stop, resume, retry, slots, pause, drain and notify: steer a run. Only `stop` ends anything."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from comborun.api import steering
from comborun.api.joint import on_each
from comborun.cli.options import (
    SLOTS,
    environment_option,
    json_option,
    of_run,
    of_run_option,
    one_part,
    root_options,
    run_option,
    sessions_argument,
    take_over_option,
)
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, note, program, repeatable, show_json
from comborun.errors import HostError, UserError
from comborun.monitor.addressing import UnknownSessionError, sessions_of
from comborun.monitor.steering import resume_answer, resume_lines
from comborun.monitor.watch import once
from comborun.text import harmless, several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.answers import orders
    from comborun.api.named import HostChoice, Target


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

    Sends INT, then TERM, then KILL to each session, and KILL to every process that it started. Names processes that are
    left, with their pids. The same launch command resumes the run later.

    \b
    combo stop                      the newest run; asks first
    combo stop 4_env_test           the newest run of a grid
    combo stop stairs_flat          a session of the newest run
    combo stop flat stairs          the same, by policy and environment
    combo stop 4_env_test stairs_flat
    combo stop --policy flat
    """
    target, words = _run_and_sessions(where, wanted, words)
    if target.boxes:
        return _stop_together(target, words, as_json=as_json, **how)
    target.own(take_over=how["take_over"] and not how["dry_run"])
    order = steering.planned_stop(target, words, how["policy"], how["environment"])
    if not as_json:
        click.echo("\n".join(map(harmless, order.lines())))
    if how["dry_run"]:
        if as_json:
            show_json(order.answer)
        return 0
    runs = bool(order.running or order.unseen)
    bare = not (words or wanted or how["yes"] or how["policy"] or how["environment"])
    if bare and runs and not as_json and sys.stdin.isatty():
        click.confirm("Stop it?", abort=True, err=True)
    try:
        stopped = steering.stop(target, order)
    except KeyboardInterrupt:
        _show_what_is_left(target, order.names)
        return INTERRUPTED
    if as_json:
        show_json(stopped)
    elif stopped.lines or runs:
        click.echo("\n".join(stopped.lines) or f"{target.run}: nothing was running")
    return 0 if stopped.clean else SOME_DID_NOT


def _stop_together(target: Target, words: tuple[str, ...], *, as_json: bool, **how: Any) -> int:
    """Stop a run on several hosts, or sessions of it wherever they run."""
    from comborun.api import joint

    if how["policy"] or how["environment"]:
        one_part(target, "stop --policy")
    parts = joint.by_host(target, words, note) if words else [(one, ()) for one in target.boxes]
    if how["dry_run"]:
        orders = [steering.planned_stop(part, own, None, None) for part, own in parts]
        if as_json:
            show_json([order.answer for order in orders])
        else:
            click.echo("\n".join(harmless(line) for order in orders for line in order.lines()))
        return 0
    if not words and not how["yes"] and not as_json and sys.stdin.isatty():
        hosts = ", ".join(harmless(one.transport.host) for one in target.boxes)
        click.confirm(f"Stop {target.run} on {hosts}?", abort=True, err=True)
    if words:
        stopped = _joined(
            target, [steering.stop(one, steering.planned_stop(one, own, None, None)) for one, own in parts]
        )
    else:
        with target.listener.working("ending sessions"):
            stopped = joint.stop_all(target)
    if as_json:
        show_json(stopped)
    else:
        click.echo("\n".join(map(harmless, stopped.lines)) or f"{target.run}: nothing was running")
    return 0 if stopped.clean else SOME_DID_NOT


def _joined(target: Target, found: Sequence[orders.Stopped]) -> orders.Stopped:
    sessions, lines = ([one for part in found for one in getattr(part, key)] for key in ("sessions", "lines"))
    return replace(
        found[0], run=target.run, sessions=(*sessions,), clean=all(one.clean for one in found), lines=(*lines,)
    )


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
            raise UserError(
                f"{error.message}, and no session of that name in {newest.run}", hint, code="unknown_session"
            ) from error
        return newest, words


@click.command()
@sessions_argument("sessions", metavar="[SESSION]...")
@repeatable()
@partial(of_run_option, together=True)
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
    chosen = sum(which.values())
    if chosen + bool(sessions) != 1:
        raise UserError("name sessions, or give either --failed or --stalled", "combo status lists them")
    kind: Literal["", "failed", "stalled"] = "failed" if which["failed"] else "stalled" if which["stalled"] else ""
    retry_there = partial(steering.retry, which=kind, environment=environment, take_over=take_over)
    done = on_each(target, sessions, retry_there, some=bool(kind))
    code = _show(done, as_json=as_json)
    return 0 if chosen else code  # no failed session is not an error


@click.command("set")
@click.argument("values", metavar="KEY=VALUE...", nargs=-1, required=True)
@repeatable()
@partial(of_run_option, together=True)
@click.option("--because", default="", metavar="TEXT", help="The reason, in one line; the report names it.")
@json_option
def set_(values: tuple[str, ...], target: Target, because: str, as_json: bool) -> int:
    """Change settings of a run while it goes on, until the grid has another value.

    Added GPUs get sessions; on those that are taken away nothing new starts, and running sessions go on. A run on
    several hosts gets the values on each of them; with --host, on that host only.

    \b
    combo set parallel=6
    combo set use_gpus=0,1,3 --because "the training ends on GPU 3"
    combo set reserve.gpu_memory=50GiB reserve.memory=64GiB
    """
    given = {key: value for key, _, value in (pair.partition("=") for pair in values)}
    if len(given) < len(values):
        raise UserError("a key is given twice", "each key once, such as parallel=6 use_gpus=0,1,3")
    return _show(on_each(target, (), lambda one, _: steering.retune(one, given, because)), as_json=as_json)


@click.command()
@click.argument("count", metavar="N", type=SLOTS)
@repeatable()
@partial(of_run_option, together=True)
@json_option
def slots(count: int, target: Target, as_json: bool) -> int:
    """Let N sessions run at once from now on, as `combo set parallel=N`. Running sessions go on, even if they are more.

    Of a run on several hosts, N on each of them.

    \b
    combo slots 4
    """
    return _show(on_each(target, (), lambda one, _: steering.slots(one, count)), as_json=as_json)


def _holding(verb: Literal["pause", "drain"], text: str) -> click.Command:
    """A command that lets nothing new start until `combo resume`."""

    @click.command(verb, help=text)
    @repeatable()
    @partial(of_run, together=True)
    @click.option(
        "--why", default="", metavar="TEXT", help="The reason, in one line; everybody who watches the run sees it."
    )
    @json_option
    def hold(target: Target, why: str, as_json: bool) -> int:
        return _show(on_each(target, (), lambda one, _: steering.hold(one, verb, why)), as_json=as_json)

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
@partial(of_run, together=True)
@json_option
def notify(target: Target, as_json: bool) -> int:
    """Send a test notice through the grid's `notify` command, on the host, and show what it prints.

    \b
    combo notify
    """
    return _show(on_each(target, (), lambda one, _: steering.notify(one)), as_json=as_json)


def _show(done: orders.Steered, *, as_json: bool) -> int:
    if as_json:
        show_json(done)
    else:
        click.echo("\n".join((*done.lines, *([harmless(done.note)] if done.note else []))))
    return 0 if done.done else SOME_DID_NOT


@click.command()
@repeatable()
@partial(of_run, together=True)
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
    if target.boxes:
        _resume_together(target, environment, dry_run=dry_run, as_json=as_json)
        return
    going = steering.planned_resume(target, environment, take_over=take_over and not dry_run)
    act = not dry_run and not going.nothing
    if as_json:
        show_json(resume_answer(going, done=act))
    else:
        click.echo("\n".join(map(harmless, resume_lines(going))))
    said = steering.resume(target, going, environment) if act else ""
    if said and not as_json:
        click.echo(harmless(said))


def _resume_together(target: Target, environment: str, *, dry_run: bool, as_json: bool) -> None:
    """Continue a run on several hosts: lift its stop on all of them, then resume each part."""
    from comborun.api import joint

    if not dry_run:
        joint.lift_stops(target)
    plans = steering.planned_together(target, environment)
    if as_json:
        show_json([resume_answer(going, done=not dry_run and not going.nothing) for _, going in plans])
    for part, going in plans:
        act = not dry_run and not going.nothing
        if not as_json:
            lines = "\n".join(map(harmless, resume_lines(going)))
            click.echo(f"{harmless(part.transport.host)}: {lines}")
        said = steering.resume(part, going, environment) if act else ""
        if said and not as_json:
            click.echo(harmless(f"{part.transport.host}: {said}"))
