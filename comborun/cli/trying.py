"""One run of `combo calibrate`, from its start to what its sessions told. Ctrl-C ends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from comborun import __version__
from comborun.errors import HostError, UserError
from comborun.forecast.calibrating import Seen, Trial
from comborun.monitor.beginning import await_beginning, first_wait, refuse_halted
from comborun.monitor.classify import classify
from comborun.monitor.history import History
from comborun.monitor.observe import load_run
from comborun.monitor.pace import backoff
from comborun.monitor.watch import Source, SystemClock
from comborun.remote.calibrate import Held, abandon, abandoned, calibration_root, discard, sample
from comborun.remote.control import stop
from comborun.remote.launch import StartOptions, first_s, start
from comborun.remote.publish import Draft, publish
from comborun.rules.words import Outcome
from comborun.text import KIB, MIB, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.monitor.answer.snapshot import Attempt
    from comborun.monitor.observe import RunView
    from comborun.plan import Plan
    from comborun.remote.transport import Transport

_TIDY = "the next calibration here ends and removes it"
_LOCAL_S, _FAR_S = 0.25, 1.0
_MOST_MISSES = 20
"""looks in a row that the host did not answer; then whoever is at the terminal has to decide"""


@dataclass
class _Idle:
    """Says what is waited for, once, when no session has run for a while."""

    since: float | None = None
    """on the clock's elapsed(); None: something runs, or nobody has looked"""
    told: set[str] = field(default_factory=set)

    def look(self, view: RunView, history: History, now: float) -> None:
        """Raises UserError when nothing will run any more."""
        status = classify(view, history)
        if status.dispatcher is None:
            refuse_halted(status)
            raise HostError(f"the dispatcher of {view.directory} is gone", "calibrate again")
        self.since = now if self.since is None else self.since
        if now - self.since >= first_s():
            self.tell(first_wait(view, history, status))

    def tell(self, waits: str) -> None:
        what = waits.partition(":")[0].partition(", which")[0]  # numbers and times behind it change all the while
        if what and what not in self.told:
            self.told.add(what)
            click.echo(f"  the first {harmless(waits)}; Ctrl-C ends the calibration", err=True)


@dataclass(frozen=True)
class Bench:
    """Where calibrations run."""

    transport: Transport
    root: str
    """of the grid"""
    grid_text: str
    secrets: bytes
    ready: Callable[[str], object]
    """is called with the folder of the runs before the first session starts; delivers files"""

    @property
    def interval(self) -> float:
        return _LOCAL_S if self.transport.host == "local" else _FAR_S

    def run(self, plan: Plan, told: Callable[[int, int], object]) -> dict[str, Trial]:
        """Run `plan` to its end; how each session went, by name. `told` hears how many of them have ended.

        What is left of an interrupted one is ended. A run that told all is removed, another one stays to be looked at.
        """
        draft = Draft(plan, self.grid_text, calibration_root(self.root), {"comborun": __version__, "calibrates": True})
        directory = publish(self.transport, draft, "new").directory
        try:
            self.ready(directory.rpartition("/")[0])
            start(self.transport, directory, StartOptions(secrets=self.secrets))
            idle = _Idle()
            idle.tell(await_beginning(self.transport, directory))
            trials = self._watch(plan, directory, told, idle)
        except BaseException as error:
            self._abandon(directory, keep=isinstance(error, UserError))
            raise
        if all(trial.whole for trial in trials.values()):
            discard(self.transport, directory)
        else:
            click.echo(f"  what went wrong is in {directory}", err=True)
        return trials

    def _abandon(self, directory: str, *, keep: bool) -> None:
        click.echo("\nEnding the sessions of the calibration ...", err=True)
        try:
            if not keep:
                abandon(self.transport, directory)
            stopped = stop(self.transport, directory)
            if stopped.clean and not keep:
                discard(self.transport, directory)
        except KeyboardInterrupt:
            click.echo(f"\nInterrupted again: what is left is in {directory}; {_TIDY}", err=True)
            raise
        except HostError as error:
            click.echo(f"they could not be ended ({error.message}); they end by themselves, in {directory}", err=True)
            return
        if keep:
            click.echo(f"  what went wrong is in {directory}", err=True)
        elif not stopped.clean:
            click.echo(f"not all of them could be ended, and {directory} stays; {_TIDY}", err=True)

    def tidy(self) -> None:
        """End and remove what earlier calibrations have abandoned."""
        for directory in abandoned(self.transport, self.root):
            try:
                if not stop(self.transport, directory).clean:
                    continue
            except HostError:
                continue
            except UserError:  # its removal had begun, and nothing of it ran any more
                pass
            discard(self.transport, directory)

    def _watch(self, plan: Plan, directory: str, told: Callable[[int, int], object], idle: _Idle) -> dict[str, Trial]:
        source, clock = Source(self.transport, load_run(self.transport, directory)), SystemClock()
        history, held, misses, counted = History(), Held(), 0, 0
        while True:
            try:
                history = source.fold(history)
                misses = 0
            except HostError:
                misses += 1
                if misses > _MOST_MISSES:
                    raise
                clock.sleep(backoff(60.0, misses, 1.0))
                continue
            snapshot = history.snapshot
            assert snapshot
            sample(self.transport, directory, held, snapshot.now)
            latest = {one.name: history.of(one.name)[-1:] for one in plan.sessions}
            ended = sum(bool(found and found[0].end) for found in latest.values())
            if ended > counted:
                told(ended, len(plan.sessions))
                counted = ended
            if snapshot.done is not None:
                return {name: _trial(found, held, name, plan) for name, found in latest.items()}
            if any(found and found[0].alive for found in latest.values()):
                idle.since = None
            else:
                idle.look(source.view, history, clock.elapsed())
            clock.sleep(self.interval)


def _trial(found: Sequence[Attempt], held: Held, name: str, plan: Plan) -> Trial:
    episodes = {one.name: one.count for one in plan.sessions}[name]
    if not found or found[0].end is None:
        return Trial(episodes, 0.0, 0.0, whole=False, how="it never began")
    attempt, end = found[0], found[0].end
    started = (attempt.begin.started if attempt.begin else end.started) or end.ended
    elapsed = held.at[name] - started
    return Trial(
        episodes=episodes,
        started=started,
        ended=end.ended,
        whole=end.outcome is Outcome.SUCCEEDED,
        how=f"{end.outcome}{f', {end.failure}' if end.failure else ''}{f' ({end.note})' if end.note else ''}",
        seen=tuple(Seen(mark.time - started, mark.done) for mark in attempt.marks if mark.time < end.ended),
        memory=held.memory_kib[name] * KIB // MIB,
        gpu_memory=held.gpu_mib[name],
        cores=held.cpu_s[name] / elapsed if elapsed > 1 else None,
    )
