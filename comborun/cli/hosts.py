"""combo hosts: the hosts that share a run, and the loss of one of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from comborun.answers.orders import GivenUp
from comborun.api.losing import Loss, give_up, planned_loss
from comborun.api.watching import status_of
from comborun.cli.options import json_option, of_run, of_run_option
from comborun.cli.terminal import hush, show_json, show_rows, working
from comborun.errors import UserError
from comborun.monitor.document import answer
from comborun.monitor.status import HostStatus
from comborun.monitor.wording import listed
from comborun.text import harmless, several
from comborun.words.times import brief

if TYPE_CHECKING:
    from comborun.api.named import Target


@click.group(invoke_without_command=False)
def hosts() -> None:
    """Show the hosts that share a run, or give up one that is gone.

    \b
    combo hosts list          the hosts of the newest run
    combo hosts lost box2     what it had not completed runs on the others
    """


@hosts.command("list")
@partial(of_run, kept=True)
@json_option
def list_hosts(target: Target, as_json: bool) -> None:
    """Show the hosts of a run, and how many sessions each has.

    \b
    combo hosts list
    """
    seen = status_of(target)
    alone = HostStatus(seen.host, seen.run, seen.link, counts=seen.counts(), use=seen.use, hold=seen.hold)
    seen = replace(seen, hosts=seen.hosts or (alone,))
    if as_json:
        show_json(answer(seen).hosts)
        return
    rows = {}
    for one in seen.hosts:
        age = "never seen" if one.link.last_seen is None else f"seen {brief(one.link.last_seen)} ago"
        held = f"{one.hold.kind}; " if one.hold else ""
        state = "given up; " if one.lost else held if one.link.reachable else f"{one.link.trouble}, {age}; "
        rows[harmless(one.host)] = harmless(f"{state}{listed(one.counts) or 'no sessions'}")
    show_rows(rows)


@hosts.command()
@click.argument("names", metavar="HOST...", nargs=-1, required=True)
@of_run_option
@click.option("--stop", is_flag=True, help="Give up hosts that still answer, too: their sessions are ended first.")
@click.option("--dry-run", is_flag=True, help="Show what would move, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, also about the first host of the run.")
@json_option
def lost(names: tuple[str, ...], target: Target, as_json: bool, **how: bool) -> None:
    """Give up hosts that are gone: sessions that they had not completed run on the others.

    Episodes that a lost host had on record, as far as this machine has copied them, count. What it computes later does
    not count. If it comes back, what still runs there is ended by the next look, and it gets nothing more of this run.

    \b
    combo hosts lost box2
    combo hosts lost box2 --dry-run
    """
    if not target.boxes:
        raise UserError(f"{target.run} runs on one host", "`hosts` in a grid, or --host several times, shares a run")

    def ask(question: str) -> bool:
        hush()
        return how["yes"] or (sys.stdin.isatty() and click.confirm(question, err=True))

    waiting = partial(working, f"asking {several(len(target.boxes), 'host')}")
    asks = not how["yes"] and sys.stdin.isatty() and not as_json
    if how["dry_run"] or asks:  # before an answer nothing is promised, and nothing stopped
        with waiting():
            loss = planned_loss(target, names, stop=how["stop"], ask=None)
        if not as_json:
            _show(loss)
        if how["dry_run"]:
            _answer(target, loss, as_json=as_json, done=False)
            return
        click.confirm(f"Give up {', '.join(names)}?", abort=True, err=True)
    with waiting():
        loss = planned_loss(target, names, stop=how["stop"], ask=ask)
    if not as_json and not asks:
        _show(loss)
    if loss.lost:
        with waiting():
            give_up(target, loss)
    _answer(target, loss, as_json=as_json, done=True)


def _show(loss: Loss) -> None:
    if not loss.lost:
        return
    click.echo(f"{', '.join(map(harmless, loss.lost))}: {several(len(loss.moved), 'session')} to run elsewhere")
    shares: dict[str, list[str]] = {}
    for name, host in loss.moved.items():
        shares.setdefault(harmless(host), []).append(name)
    show_rows({host: ", ".join(own) for host, own in shares.items()})
    if loss.episodes:
        click.echo(f"  {several(loss.episodes, 'episode')} of these sessions were on record, and count as they are")
    for host, more in loss.more.items():
        whose = harmless(host)
        if host in loss.uncopied:
            known = "how many episodes it had is not known" if more is None else f"its last look showed {_done(more)}"
            click.echo(f"! this machine has no copy of the records of {whose}: all its sessions run again; {known}")
        elif more:
            click.echo(f"! {whose}: its last look showed {_done(more)} more than were copied here: they run again")


def _done(episodes: int) -> str:
    return several(episodes, "episode")


def _answer(target: Target, loss: Loss, *, as_json: bool, done: bool) -> None:
    if as_json:
        show_json(GivenUp(target.run, loss.lost, dict(loss.moved), loss.episodes, loss.again, done))
    elif not loss.lost:
        click.echo("given up before: nothing changes")
    elif done:
        click.echo(f"given up: {', '.join(map(harmless, loss.lost))}; {several(len(loss.moved), 'session')} moved")
