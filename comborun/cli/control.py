"""combo retry, slots, pause, drain and notify: steer a run. They end nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from comborun.cli.options import (
    SLOTS,
    Target,
    environment_option,
    json_option,
    of_run,
    of_run_option,
    sessions_argument,
    take_over_option,
)
from comborun.cli.terminal import SOME_DID_NOT, note, program, repeatable, show_json
from comborun.errors import UserError
from comborun.monitor.addressing import sessions_of
from comborun.monitor.explain import server_names
from comborun.monitor.watch import once
from comborun.remote.program import Reply, restart_dispatcher, send_test_notice, steer
from comborun.remote.slurm import settle
from comborun.text import harmless
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.monitor.observe import RunView
    from comborun.monitor.watch import Source


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
    code = _show(target, steered, _go_on(source, environment) if steered.done else "", as_json=as_json)
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


def _go_on(source: Source, environment: str) -> str:
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
