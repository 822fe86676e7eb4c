"""The runs of `combo calibrate`: in a folder of their own below the root, watched closely, and removed afterwards."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comborun import __version__
from comborun.errors import HostError, UserError
from comborun.forecast.calibrating import (
    LENGTH_S,
    Seen,
    Trial,
    again,
    alone,
    beside,
    crowded,
    kinds,
    measured,
    refused,
    step,
    stops,
)
from comborun.forecast.calibration import Step
from comborun.monitor.beginning import await_beginning, first_wait, refuse_halted
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, load_run
from comborun.monitor.watch import Clock, Source, backoff
from comborun.planner.laying import with_threads
from comborun.remote import program
from comborun.remote.control import StartOptions, first_s, start, stop
from comborun.remote.host import ask
from comborun.remote.publish import Draft, publish
from comborun.remote.transport import LOCAL
from comborun.rules.words import Outcome
from comborun.text import KIB, MIB, several

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.forecast.calibration import Measured
    from comborun.grid import Grid
    from comborun.monitor.observe import RunView
    from comborun.monitor.snapshot import Attempt
    from comborun.plan import Plan, Session
    from comborun.remote.transport import Transport
    from comborun.resources import HostFacts

_FOLDER = ".calibrate"
_TIDY = "the next calibration here ends and removes it"
_LOCAL_S, _FAR_S, _SAMPLE_S = 0.25, 1.0, 20.0
_MOST_MISSES = 20
"""looks in a row that the host did not answer; then whoever is at the terminal has to decide"""


@dataclass(frozen=True)
class Progress:
    """Who is told how a calibration goes."""

    say: Callable[[str], None]
    """the next part"""
    warn: Callable[[str], None]
    """what goes wrong, and what is waited for"""
    count: Callable[[int, int], None]
    """how many of how many sessions have ended"""


@dataclass(frozen=True)
class Bench:
    """What is calibrated, and where."""

    transport: Transport
    grid: Grid
    plan: Plan
    """one session for each combo, in the grid's order"""
    facts: HostFacts
    secrets: bytes = field(repr=False)
    ready: Callable[[str], object]
    """delivers files; is called with the folder of the runs before the first session starts"""
    progress: Progress


def measure_alone(bench: Bench, episodes: int) -> list[tuple[Session, Measured]]:
    """Every combo that is measured, alone; those that are over at once a second time, with more episodes."""
    sessions = kinds(bench.plan.sessions)
    whole = {(one.policy, one.environment) for one in bench.plan.sessions}
    bench.progress.say(f"alone, one after another: {several(len(sessions), 'combo')} of {len(whole)}")
    first = _run(bench, alone(bench.plan, sessions, [min(episodes, one.count) for one in sessions]))
    trials = {one.name: [trial] for one, trial in zip(sessions, first, strict=True)}
    counts = [again(one, trial, _length_s()) for one, trial in zip(sessions, first, strict=True)]
    more = [(one, count) for one, count in zip(sessions, counts, strict=True) if count]
    if more:
        bench.progress.say(f"{several(len(more), 'combo')} over too soon to tell: once more, with more episodes")
        longer = [one for one, _ in more]
        repeated = _run(bench, alone(bench.plan, longer, [count for _, count in more]))
        for one, trial in zip(longer, repeated, strict=True):
            trials[one.name].append(trial)
    found = [(one, measured(one, trials[one.name])) for one in sessions]
    return sorted(found, key=lambda pair: pair[1].pace.length(pair[0].count), reverse=True)


def measure_beside(bench: Bench, found: list[tuple[Session, Measured]], most: int) -> tuple[list[Step], str]:
    """Those steps that went well, one session alone first, and why there are no more."""
    length = round(sum(one.pace.length(one.episodes) for _, one in found), 3)
    counted = sum(one.episodes for _, one in found)
    steps, at_once = [Step(1, length, 1.0, episodes=counted, one_by_one_s=length)], 2
    most = min(most, bench.grid.limits.parallel or most)
    if not any(session.ranged for session in bench.plan.sessions):
        most = min(most, len(bench.plan.sessions))
    while at_once <= most:
        plan = beside(bench.plan, found, at_once, _length_s())
        if reason := crowded(found, plan, at_once) or refused(plan, ask(bench.transport), bench.facts):
            return steps, reason
        bench.progress.say(f"{at_once} side by side")
        tried = step(found, plan, _run(bench, plan))
        stopped = stops([*steps, tried])
        steps += [tried] if tried.speed else []
        if stopped:
            return steps, stopped
        at_once *= 2
    return steps, f"{most} at once is the most that was asked for"


def tidy(bench: Bench) -> None:
    """End and remove what earlier calibrations have abandoned."""
    done = program.run_packed(bench.transport, "runs", "abandoned", _root(bench.grid), timeout=30)
    for directory in () if done.code else program.answer(bench.transport, done):
        try:
            if not stop(bench.transport, directory).clean:
                continue
        except HostError:
            continue
        except UserError:  # its removal had begun, and nothing of it ran any more
            pass
        _note(bench.transport, directory, "discard")


def _length_s() -> float:
    """How long a session has to take to tell something; tests have less time."""
    return float(os.environ.get("COMBORUN_CALIBRATE_S") or LENGTH_S)


def _root(grid: Grid) -> str:
    return f"{grid.root.rstrip('/')}/{_FOLDER}"


def _note(transport: Transport, directory: str, verb: str) -> None:
    """`abandon`: nobody wants this run any more, so the next calibration removes it. `discard`: remove it, with what it
    has promised, when its dispatcher has left."""
    program.run_packed(transport, "runs", verb, directory, timeout=60, python=program.of_run(directory))


def _run(bench: Bench, plan: Plan) -> list[Trial]:
    """Run `plan` to its end; how each session went, in its order, with as many threads as it has cores.

    What is left of an interrupted run is ended. A run that told all is removed, another one stays to be looked at.
    """
    plan = with_threads(plan, bench.grid, bench.facts)
    origin = {"comborun": __version__, "calibrates": True}
    draft = Draft(plan, bench.grid.text, _root(bench.grid), origin)
    directory = publish(bench.transport, draft, "new").directory
    try:
        bench.ready(directory.rpartition("/")[0])
        start(bench.transport, directory, StartOptions(secrets=bench.secrets))
        watch = _Watch(bench, plan, directory)
        watch.tell(await_beginning(bench.transport, directory))
        trials = watch.to_the_end()
    except BaseException as error:
        _abandon(bench, directory, keep=isinstance(error, UserError))
        raise
    if all(trial.whole for trial in trials):
        _note(bench.transport, directory, "discard")
    else:
        bench.progress.warn(f"  what went wrong is in {directory}")
    return trials


def _abandon(bench: Bench, directory: str, *, keep: bool) -> None:
    warn = bench.progress.warn
    warn("\nEnding the sessions of the calibration ...")
    try:
        if not keep:
            _note(bench.transport, directory, "abandon")
        stopped = stop(bench.transport, directory)
        if stopped.clean and not keep:
            _note(bench.transport, directory, "discard")
    except KeyboardInterrupt:
        warn(f"\nInterrupted again: what is left is in {directory}; {_TIDY}")
        raise
    except HostError as error:
        warn(f"they could not be ended ({error.message}); they end by themselves, in {directory}")
        return
    if keep:
        warn(f"  what went wrong is in {directory}")
    elif not stopped.clean:
        warn(f"not all of them could be ended, and {directory} stays; {_TIDY}")


@dataclass
class _Use:
    """The most that a session was seen to hold."""

    memory_kib: int = 0
    gpu_mib: int = 0
    """on the GPU where it held most"""
    cpu_s: float = 0.0
    """CPU time so far"""
    at: float = 0.0
    """when that was, on the host's clock"""


@dataclass
class _Watch:
    """A run that is watched to its end."""

    bench: Bench
    plan: Plan
    directory: str
    uses: defaultdict[str, _Use] = field(default_factory=lambda: defaultdict(_Use))
    idle_since: float | None = None
    """on the clock's elapsed(); None: something runs, or nobody has looked"""
    told: set[str] = field(default_factory=set)

    def to_the_end(self) -> list[Trial]:
        transport, clock = self.bench.transport, Clock()
        source = Source(transport, load_run(transport, self.directory))
        history, misses, counted = History(), 0, 0
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
            self._sample(snapshot.now)
            latest = [history.of(one.name)[-1:] for one in self.plan.sessions]
            ended = sum(bool(found and found[0].end) for found in latest)
            if ended > counted:
                self.bench.progress.count(ended, len(self.plan.sessions))
                counted = ended
            if snapshot.done:
                return [_trial(*pair, self.uses) for pair in zip(latest, self.plan.sessions, strict=True)]
            if any(found and found[0].alive for found in latest):
                self.idle_since = None
            else:
                self._look_idle(source.view, history, clock.elapsed())
            clock.sleep(_LOCAL_S if transport.host == LOCAL else _FAR_S)

    def _look_idle(self, view: RunView, history: History, now: float) -> None:
        """Say what is waited for when no session has run for a while. Raises UserError when nothing will run."""
        status = classify(view, history)
        if status.dispatcher is None:
            refuse_halted(status)
            raise HostError(f"the dispatcher of {view.directory} is gone", "calibrate again")
        self.idle_since = now if self.idle_since is None else self.idle_since
        if now - self.idle_since >= first_s():
            self.tell(first_wait(view, history, status))

    def tell(self, waits: str) -> None:
        """Once for each thing that is waited for."""
        what = waits.partition(":")[0].partition(", which")[0]  # numbers and times behind it change all the while
        if what and what not in self.told:
            self.told.add(what)
            self.bench.progress.warn(f"  the first {waits}; Ctrl-C ends the calibration")

    def _sample(self, now: float) -> None:
        """Look once at what the sessions hold. One look that fails costs nothing but its numbers."""
        try:
            told = json.loads(program.run(self.bench.transport, self.directory, "sample", timeout=_SAMPLE_S).text)
            for marker, use in told["uses"].items():
                held = self.uses[marker.partition("/")[0]]
                held.memory_kib = max(held.memory_kib, use["kib"])
                held.cpu_s, held.at = max(held.cpu_s, use["ticks"] / told["hertz"]), now
                held.gpu_mib = max(held.gpu_mib, *use["gpus"].values(), 0)
        except (HostError, ValueError, KeyError, TypeError, AttributeError):
            return


def _trial(found: Sequence[Attempt], session: Session, uses: defaultdict[str, _Use]) -> Trial:
    if not found or found[0].end is None:
        return Trial(session.count, 0.0, 0.0, whole=False, how="it never began")
    attempt, end, use = found[0], found[0].end, uses[session.name]
    started = (attempt.begin.started if attempt.begin else end.started) or end.ended
    elapsed = use.at - started
    return Trial(
        episodes=session.count,
        started=started,
        ended=end.ended,
        whole=end.outcome is Outcome.SUCCEEDED,
        how=f"{end.outcome}{f', {end.failure}' if end.failure else ''}{f' ({end.note})' if end.note else ''}",
        seen=tuple(Seen(mark.time - started, mark.done) for mark in attempt.marks if mark.time < end.ended),
        memory=use.memory_kib * KIB // MIB,
        gpu_memory=use.gpu_mib,
        cores=use.cpu_s / elapsed if elapsed > 1 else None,
    )
