"""combo stop, resume, retry, slots, pause, drain and notify: steer a run. Only `stop` ends anything."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from comborun.api import steering
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
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, note, program, repeatable, show_json
from comborun.errors import HostError, UserError
from comborun.monitor.addressing import UnknownSessionError, sessions_of
from comborun.monitor.steering import resume_answer, resume_lines
from comborun.monitor.watch import once
from comborun.text import harmless, several

if TYPE_CHECKING:
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
    filters, asks = (how["policy"], how["environment"]), not how["yes"] and not as_json and sys.stdin.isatty()
    if target.boxes and not (words or how["dry_run"] or any(filters)):
        if asks:
            hosts = ", ".join(harmless(one.transport.host) for one in target.boxes)
            click.confirm(f"Stop {target.run} on {hosts}?", abort=True, err=True)
        return _show_stopped(steering.stop_now(target, take_over=how["take_over"]), as_json=as_json)
    planned = steering.planned_stops(target, words, *filters, take_over=how["take_over"] and not how["dry_run"])
    planned_orders = [order for _, order in planned]
    if not as_json:
        click.echo("\n".join(harmless(line) for order in planned_orders for line in order.lines()))
    if how["dry_run"]:
        if as_json:
            answers = [order.answer for order in planned_orders]
            show_json(answers if target.boxes else answers[0])
        return 0
    runs = any(order.running or order.unseen for order in planned_orders)
    if asks and runs and not (words or wanted or any(filters)):
        click.confirm("Stop it?", abort=True, err=True)
    try:
        stopped = steering.stop(target, planned)
    except KeyboardInterrupt:
        if target.boxes:
            raise
        _show_what_is_left(target, planned_orders[0].names)
        return INTERRUPTED
    return _show_stopped(stopped, as_json=as_json, silent=not runs)


def _show_stopped(stopped: orders.Stopped, *, as_json: bool, silent: bool = False) -> int:
    """`silent`: whether nothing is said where nothing was running."""
    if as_json:
        show_json(stopped)
    elif stopped.lines or not silent:
        click.echo("\n".join(map(harmless, stopped.lines)) or f"{stopped.run}: nothing was running")
    return 0 if stopped.clean else SOME_DID_NOT


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
    if sum(which.values()) + bool(sessions) != 1:
        raise UserError("name sessions, or give either --failed or --stalled", "combo status lists them")
    kind: Literal["", "failed", "stalled"] = "failed" if which["failed"] else "stalled" if which["stalled"] else ""
    code = _show(steering.retry(target, sessions, kind, environment, take_over=take_over), as_json=as_json)
    return 0 if kind else code  # no failed session is not an error


@click.command("set")
@click.argument("values", metavar="KEY=VALUE...", nargs=-1, required=True)
@repeatable()
@of_run_option
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
    return _show(steering.retune(target, given, because), as_json=as_json)


@click.command()
@click.argument("count", metavar="N", type=SLOTS)
@repeatable()
@of_run_option
@json_option
def slots(count: int, target: Target, as_json: bool) -> int:
    """Let N sessions run at once from now on, as `combo set parallel=N`. Running sessions go on, even if they are more.

    Of a run on several hosts, N on each of them.

    \b
    combo slots 4
    """
    return _show(steering.slots(target, count), as_json=as_json)


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
        return _show(steering.hold(target, verb, why), as_json=as_json)

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
    return _show(steering.notify(target), as_json=as_json)


def _show(done: orders.Steered, *, as_json: bool) -> int:
    if as_json:
        show_json(done)
    else:
        click.echo("\n".join((*done.lines, *([harmless(done.note)] if done.note else []))))
    return 0 if done.done else SOME_DID_NOT


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
    act = not dry_run
    plans = steering.planned_resumes(target, environment, take_over=take_over, act=act)
    if as_json:
        answers = [resume_answer(going, done=act and not going.nothing) for _, going in plans]
        show_json(answers if target.boxes else answers[0])
    for part, going in plans:
        host = f"{harmless(part.transport.host)}: " if target.boxes else ""
        if not as_json:
            click.echo(host + "\n".join(map(harmless, resume_lines(going))))
        said = steering.resume(part, going, environment) if act else ""
        if said and not as_json:
            click.echo(f"{host}{harmless(said)}")
