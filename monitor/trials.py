"""The trials of `combo calibrate`: combos alone, then side by side, and the resources that their sessions held."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.monitor.trial_setup import carry_out
from comborun.planner.calibrating import (
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
from comborun.planner.knowledge import Step
from comborun.planner.laying import with_threads
from comborun.remote import program
from comborun.remote.host import ask
from comborun.remote.runs import remove
from comborun.rules.words import Outcome
from comborun.text import KIB, MIB, several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.monitor.snapshot import Attempt
    from comborun.monitor.status import RunStatus
    from comborun.monitor.trial_setup import TrialSetup
    from comborun.plan import Plan, Session
    from comborun.planner.knowledge import Measured

_SAMPLE_S = 20.0


def measure_alone(setup: TrialSetup, episodes: int) -> list[tuple[Session, Measured]]:
    """Measure combos alone; those with short sessions a second time, with more episodes."""
    sessions = kinds(setup.plan.sessions)
    whole = {(one.policy, one.environment) for one in setup.plan.sessions}
    setup.progress.say(f"alone, one after another: {several(len(sessions), 'combo')} of {len(whole)}")
    first = _run(setup, alone(setup.plan, sessions, [min(episodes, one.count) for one in sessions]))
    trials = {one.name: [trial] for one, trial in zip(sessions, first, strict=True)}
    counts = [again(one, trial, _length_s()) for one, trial in zip(sessions, first, strict=True)]
    more = [(one, count) for one, count in zip(sessions, counts, strict=True) if count]
    if more:
        setup.progress.say(
            f"{several(len(more), 'combo')} ended too soon to be measured: once more, with more episodes"
        )
        longer = [one for one, _ in more]
        repeated = _run(setup, alone(setup.plan, longer, [count for _, count in more]))
        for one, trial in zip(longer, repeated, strict=True):
            trials[one.name].append(trial)
    found = [(one, measured(one, trials[one.name])) for one in sessions]
    return sorted(found, key=lambda pair: pair[1].pace.length(pair[0].count), reverse=True)


def measure_beside(setup: TrialSetup, found: list[tuple[Session, Measured]], most: int) -> tuple[list[Step], str]:
    """The successful steps, beginning with one session alone, and why there are no more."""
    length = round(sum(one.pace.length(one.episodes) for _, one in found), 3)
    counted = sum(one.episodes for _, one in found)
    steps, at_once = [Step(1, length, 1.0, episodes=counted, one_by_one_s=length)], 2
    most = min(most, setup.grid.limits.parallel or most)
    if not any(session.ranged for session in setup.plan.sessions):
        most = min(most, len(setup.plan.sessions))
    while at_once <= most:
        plan = beside(setup.plan, found, at_once, _length_s())
        if reason := crowded(found, plan, at_once) or refused(plan, ask(setup.transport)):
            return steps, reason
        setup.progress.say(f"{at_once} side by side")
        tried = step(found, plan, _run(setup, plan))
        stopped = stops([*steps, tried])
        steps += [tried] if tried.speed else []
        if stopped:
            return steps, stopped
        at_once *= 2
    return steps, f"{most} at once is the most that was asked for"


def _length_s() -> float:
    """The shortest useful run time of a session; tests have less time."""
    return float(os.environ.get("COMBORUN_CALIBRATE_S") or LENGTH_S)


def _run(setup: TrialSetup, plan: Plan) -> list[Trial]:
    """Run `plan` to its end. Returns the result of each session, with as many threads as it has cores.

    A successful run is removed; another one stays for inspection.
    """
    plan = with_threads(plan, setup.grid, setup.facts)
    uses: defaultdict[str, _Use] = defaultdict(_Use)
    done = carry_out(setup, plan, lambda status: _sample(setup, status, uses))
    trials = [_trial(done.history.of(one.name)[-1:], one, uses[one.name]) for one in plan.sessions]
    if all(trial.whole for trial in trials):
        remove(setup.transport, done.directory)
    else:
        setup.progress.warn(f"  what went wrong is in {done.directory}")
    return trials


@dataclass
class _Use:
    """The largest measured use of a session."""

    memory_kib: int = 0
    gpu_mib: int = 0
    """MiB on the GPU where it held most"""
    cpu_s: float = 0.0
    """CPU time so far"""
    at: float = 0.0
    """time of the sample, on the host's clock"""
    done: dict[float, int] = field(default_factory=dict[float, int])
    """what was done, by when more was seen to be"""


def _sample(setup: TrialSetup, status: RunStatus, uses: defaultdict[str, _Use]) -> None:
    """Sample the resources of the sessions once. A failed sample is skipped."""
    for one in status.sessions:
        if one.progressed:
            uses[one.name].done[one.progressed] = one.own
    try:
        answer = json.loads(program.run(setup.transport, status.directory, "sample", timeout=_SAMPLE_S).text)
        for marker, use in answer["uses"].items():
            held = uses[marker.partition("/")[0]]
            held.memory_kib = max(held.memory_kib, use["kib"])
            held.cpu_s = max(held.cpu_s, use["ticks"] / answer["hertz"])
            held.at = status.now or held.at
            held.gpu_mib = max(held.gpu_mib, *use["gpus"].values(), 0)
    except (HostError, ValueError, KeyError, TypeError, AttributeError):
        return


def _trial(found: Sequence[Attempt], session: Session, use: _Use) -> Trial:
    if not found or found[0].end is None:
        return Trial(session.count, 0.0, 0.0, whole=False, how="it never began")
    attempt, end = found[0], found[0].end
    started = (attempt.begin.started if attempt.begin else end.started) or end.ended
    elapsed = use.at - started
    return Trial(
        episodes=session.count,
        started=started,
        ended=end.ended,
        whole=end.outcome is Outcome.SUCCEEDED,
        how=f"{end.outcome}{f', {end.failure}' if end.failure else ''}{f' ({end.note})' if end.note else ''}",
        seen=tuple(Seen(at - started, done) for at, done in use.done.items() if at < end.ended),
        memory=use.memory_kib * KIB // MIB,
        gpu_memory=use.gpu_mib,
        cores=use.cpu_s / elapsed if elapsed > 1 else None,
    )
