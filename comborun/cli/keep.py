"""combo keep: lets sessions of a run on several hosts move to those with room, until the run has ended."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from comborun.answers.orders import HostChange, SessionMove
from comborun.cli.options import interval_option, json_lines_option, of_run
from comborun.cli.terminal import INTERRUPTED, program, show_record, working
from comborun.errors import HostError, UserError
from comborun.monitor.screen import StatusScreen
from comborun.monitor.wording import listed
from comborun.text import harmless, several
from comborun.words import say
from comborun.words.times import clock, duration

if TYPE_CHECKING:
    from comborun.api.moving import Moved
    from comborun.api.named import Target
    from comborun.monitor.status import HostStatus, RunStatus
    from comborun.rules.facts import Fact


@click.command()
@partial(of_run, kept=True)
@click.option("--leave-out", is_flag=True, help="Begin even if a host does not answer.")
@interval_option
@json_lines_option
def keep(target: Target, leave_out: bool, interval: float | None, as_json: bool) -> int:
    """Let sessions that wait move to hosts with room, until the run has ended.

    It prints a line for each session that moves, and for each host that stops answering or answers again. It needs a
    machine that reaches all hosts of the run, for example in a tmux there. Ctrl-C ends it; the sessions go on. `combo
    monitor` and `combo view` let sessions move as well, while they look.

    \b
    tmux new -d -s keep combo keep
    combo keep 4_env_test
    """
    from comborun.api.joint_look import JointSource
    from comborun.monitor.watch import Clock, Settings
    from comborun.monitor.watcher import watch

    if not target.boxes:
        raise UserError(
            f"{target.run} runs on one host, so nothing can move",
            "`hosts` in a grid, or --host several times, shares a run",
            code="one_host",
        )
    with working(f"looking at {several(len(target.boxes), 'host')}"):
        _check_reach(target, leave_out=leave_out)
    screen = _Lines(target.run, as_json=as_json)
    screen.begin([one.transport.host for one in target.boxes])
    source = JointSource(target, moved=screen.moved)
    try:
        ended = watch(source, screen, Clock(), Settings(interval or source.poll))
    except KeyboardInterrupt:
        click.echo(f"\nNothing moves any more until `{program()} keep {target.run}`; the sessions go on.", err=True)
        return INTERRUPTED
    screen.end(ended)
    return 0


def _check_reach(target: Target, *, leave_out: bool) -> None:
    """Raise HostError if a host that was not given up can't be reached from here."""
    from comborun.api.joint import newest_of, states

    found = states(target)
    lost = newest_of(found.done)[0].lost if found.done else {}
    silent = {host: one for host, one in found.failed.items() if host not in lost}
    if not found.done or (silent and not leave_out):
        lines = "".join(f"\n  {host}: {one.headline}" for host, one in silent.items())
        away = all(isinstance(one, HostError) for one in silent.values())
        can, needs = ("be reached from here", "this machine needs keys for all hosts; ") if away else ("take part", "")
        raise HostError(
            f"{several(len(silent), 'host')} of {len(found.done) + len(found.failed)} can't {can}:{lines}",
            f"{needs}--leave-out begins without {'those that are away' if away else 'them'}",
        )


class _Lines(StatusScreen):
    def __init__(self, run: str, *, as_json: bool) -> None:
        self._run, self._as_json = run, as_json
        self._hosts: dict[str, str] = {}
        self._moves = 0
        self._unmoved: Fact | None = None

    def begin(self, hosts: list[str]) -> None:
        if not self._as_json:
            _say(f"{self._run} on {', '.join(hosts)}: what waits may move")

    def show(self, status: RunStatus) -> None:
        for one in status.hosts:
            state = "lost" if one.lost else "answers" if one.link.reachable else "away"
            before = self._hosts.get(one.host, "answers")
            self._hosts[one.host] = state
            if state != before:
                self._changed(one, state)
        if status.would_move and status.would_move != self._unmoved and not self._as_json:
            _say(f"! {say(status.would_move)}")
        self._unmoved = status.would_move

    def _changed(self, one: HostStatus, state: str) -> None:
        if self._as_json:
            show_record(HostChange(self._run, time.time(), one.host, state, one.link.complaint))
            return
        why = f": {one.link.complaint}" if state == "away" and one.link.complaint else ""
        missing = "has not the run's folder" if one.link.gone else "does not answer"
        words = {"answers": "answers again", "away": f"{missing}{why}", "lost": "was given up"}
        _say(f"{'! ' * (state != 'answers')}{one.host} {words[state]}")

    def moved(self, one: Moved) -> None:
        self._moves += 1
        if self._as_json:
            show_record(SessionMove(self._run, time.time(), one.session, one.giver, one.taker))
        else:
            _say(f"{one.session}: {one.giver} -> {one.taker}")

    def end(self, status: RunStatus) -> None:
        if not self._as_json:
            took = f", took {duration(status.seconds)}" if status.seconds else ""
            word = "ended" if status.how_over == "finished" else "held"
            _say(f"{word}: {listed(status.counts())}{took}; {several(self._moves, 'move')}")


def _say(line: str) -> None:
    click.echo(f"{clock(time.time())}  {harmless(line)}")
