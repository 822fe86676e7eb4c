"""The trials of `combo calibrate` and `combo try`: a few episodes in separate runs, their resources and their files."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from comborun.answers.grids import Tried, WrittenFile
from comborun.errors import HostError, UserError
from comborun.grid.combos import names_of
from comborun.model.command import START_TIME
from comborun.monitor.beginning import timing
from comborun.monitor.trial_setup import carry_out
from comborun.planner.calibrating import (
    DoneAt,
    Trial,
    alone,
    beside,
    crowded,
    kinds,
    measured,
    refused,
    second_trial,
    step,
    stops,
)
from comborun.planner.knowledge import Step
from comborun.planner.laying import with_threads
from comborun.planner.ranges import first_episodes, trial_plan
from comborun.remote import program
from comborun.remote.host import host_facts
from comborun.remote.runs import release, remove
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.results.counts import FILE_NOT_READ, where_it_ran
from comborun.rules.results.fields import LOG, REPEATED
from comborun.rules.vocabulary import Outcome
from comborun.text import KIB, MIB, did_you_mean, several
from comborun.words.rows import why_not_counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from comborun.grid import Grid
    from comborun.model.attempt import End
    from comborun.model.plan import Plan, Session
    from comborun.monitor.snapshot import Attempt
    from comborun.monitor.status import RunStatus
    from comborun.monitor.trial_setup import TrialSetup
    from comborun.planner.knowledge import MeasuredCombo

_SAMPLE_S = 20.0


def measure_alone(setup: TrialSetup, episodes: int) -> list[tuple[Session, MeasuredCombo]]:
    """Measure combos alone; those with short sessions a second time, with more episodes."""
    if any(one.together for one in setup.plan.sessions):
        hint = "say `resources` and `limits: {parallel: N}` in the grid"
        raise UserError("`together`: a process is not measured by its combos", hint)
    sessions = kinds(setup.plan.sessions)
    whole = {(one.policy, one.environment) for one in setup.plan.sessions}
    setup.progress.say(f"alone, one after another: {several(len(sessions), 'combo')} of {len(whole)}")
    first = _run(setup, alone(setup.plan, sessions, [min(episodes, one.count) for one in sessions]))
    trials = {one.name: [trial] for one, trial in zip(sessions, first, strict=True)}
    counts = [second_trial(one, trial, timing().calibrate_s) for one, trial in zip(sessions, first, strict=True)]
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


def measure_beside(setup: TrialSetup, found: list[tuple[Session, MeasuredCombo]], most: int) -> tuple[list[Step], str]:
    """The successful steps, beginning with one session alone, and why there are no more."""
    length = round(sum(one.pace.length(one.episodes) for _, one in found), 3)
    counted = sum(one.episodes for _, one in found)
    steps, at_once = [Step(1, length, 1.0, episodes=counted, one_by_one_s=length)], 2
    most = min(most, setup.grid.limits.parallel or most)
    if not any(session.ranged for session in setup.plan.sessions):
        most = min(most, len(setup.plan.sessions))
    while at_once <= most:
        plan = beside(setup.plan, found, at_once, timing().calibrate_s)
        if reason := crowded(found, plan, at_once) or refused(plan, host_facts(setup.transport)):
            return steps, reason
        setup.progress.say(f"{at_once} side by side")
        tried = step(found, plan, _run(setup, plan))
        stopped = stops([*steps, tried])
        steps += [tried] if tried.speed else []
        if stopped:
            return steps, stopped
        at_once *= 2
    return steps, f"{most} at once is the most that was asked for"


def _run(setup: TrialSetup, plan: Plan) -> list[Trial]:
    """Run `plan` to its end, each session with as many threads as it has cores. Returns the result of each.

    A successful run is removed; another one stays for inspection.
    """
    plan = with_threads(plan, setup.grid, setup.facts)
    uses: defaultdict[str, _Use] = defaultdict(_Use)
    directory, history = carry_out(setup, plan, lambda status: _sample(setup, status, uses))
    trials = [_trial(history.of(one.name)[-1:], one, uses[one.name]) for one in plan.sessions]
    if all(trial.whole for trial in trials):
        remove(setup.transport, directory)
    else:
        release(setup.transport, directory)
        setup.progress.warn(f"  what went wrong is in {directory}")
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
    """when progress was seen to grow -> what was done then"""


def _sample(setup: TrialSetup, status: RunStatus, uses: defaultdict[str, _Use]) -> None:
    """Sample the resources of the sessions once. A failed sample is skipped."""
    for one in status.sessions:
        if one.latest.progressed:
            uses[one.name].done[one.latest.progressed] = one.latest.done
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
        seen=tuple(DoneAt(at - started, done) for at, done in use.done.items() if at < end.ended),
        memory=use.memory_kib * KIB // MIB,
        gpu_memory=use.gpu_mib,
        cores=use.cpu_s / elapsed if elapsed > 1 else None,
    )


# combo try
FOLDER = ".try"
_LOG_LINES = 12
_START_TIME = re.compile(r'"\$([A-Z_]+)"')


@dataclass(frozen=True)
class TryResult:
    session: Session
    """the session that ran, with the episodes of the try"""
    attempt: str
    """its folder on the host"""
    end: End
    files: tuple[tuple[str, int], ...]
    """files below its output folder, with their sizes"""
    log: tuple[str, ...]
    seed: str
    """the field with a seed under another name; empty without one"""
    videos: Fact | None
    """why videos are not shown beside their episodes"""
    grid: Path

    @property
    def seconds(self) -> float | None:
        return self.end.ended - self.end.started if self.end.started else None

    @property
    def looks_for_rows(self) -> bool:
        """Whether its files must hold a row for each episode or step."""
        return self.session.results.has_records and self.session.results.source != LOG

    @property
    def counts(self) -> bool:
        """Whether the results of such a session count, none is refused or dropped as a repetition, and no line for
        `results:` would make more of them count."""
        counts, complete = self.end.counts, self.end.completeness == "complete"
        lost = counts.refused or any(fact.code == FILE_NOT_READ for fact in counts.facts)
        if counts.proposes or counts.refused.get(REPEATED):
            return False
        return complete or (counts.verdicts > 0 and not lost)

    @property
    def command(self) -> str:
        """The command of the program, if it is known here."""
        first, count = self.session.own_first, self.session.count
        known = {
            "output_dir": AttemptLayout(self.attempt).output,
            "attempt": "1",
            "first_episode": str(first),
            "last_episode": str(first + count - 1),
            "end_episode": str(first + count),
            "episodes": str(count),
            "first_seed": str((self.session.seed or 0) + first),
            "episode_list": ",".join(map(str, range(first, first + count))),
        }
        values = {START_TIME[name]: shlex.quote(value) for name, value in known.items()}
        return " ".join(
            _START_TIME.sub(lambda match: values.get(match[1], match[0]), word) for word in self.session.command
        )

    @property
    def answer(self) -> Tried:
        end, counts, session = self.end, self.end.counts, self.session
        return Tried(
            policy=session.policy,
            environment=session.environment,
            episodes=session.count,
            command=self.command,
            seconds=self.seconds,
            counts=self.counts,
            seed=self.seed,
            folder=self.attempt,
            code=end.code,
            outcome=str(end.outcome),
            note=end.note,
            files=tuple(WrittenFile(path, size) for path, size in self.files),
            successes=counts.successes,
            verdicts=counts.verdicts,
            facts=(*counts.facts, *filter(None, [self.videos])),
            counted=counts.records,
            why=why_not_counted(counts.facts),
            log=self.log,
        )


def chosen(grid: Grid, words: Sequence[str]) -> Grid:
    """The grid with one of its combos: the first, or the one that `words` name.

    They are the name of its session, or its policy, its environment, or both in any order.
    """
    wanted = [word for word in words if word != "in"]
    for combo in grid.combos:
        if not wanted or wanted == [combo.session] or set(wanted) <= {combo.policy.name, combo.environment.name}:
            return grid.model_copy(update={"combos": (combo,)})
    known = [name for one in grid.combos for name in (one.session, one.environment.name, one.policy.name)]
    unknown = next((word for word in wanted if word not in known), "")
    hint = did_you_mean(unknown, dict.fromkeys(known)) or f"such as `{grid.combos[0].session}`"
    raise UserError(f"there is no combo `{' '.join(words)}` in {grid.path}", hint)


def try_one(setup: TrialSetup, episodes: int, running: Callable[[float, str], None] | None) -> TryResult:
    """Run the setup's only combo and look at its files; `running` gets its run time and its last line.

    A command that can't run so few episodes runs all of them.
    """
    session = setup.plan.sessions[0]
    if session.count and (session.counted or session.count <= episodes):
        session = first_episodes(session, episodes, "try")
    plan = replace(trial_plan(setup.plan, (session,), 1, "try"), retry=())

    def look(status: RunStatus) -> None:
        for one in status.busy:
            if running:
                running(one.seconds or 0.0, one.last_line)

    directory, history = carry_out(setup, plan, look)
    attempts = history.of(session.name)
    if not attempts or attempts[-1].end is None:
        raise HostError(f"the session of {directory} never began", "`combo doctor` looks for the cause")
    at = RunLayout(directory).attempt(session.name, attempts[-1].number).directory
    answer = program.run_packed(setup.transport, "left", at, str(_LOG_LINES), python=program.of_run(directory))
    left = program.answer(setup.transport, answer)
    files, log = tuple(map(tuple, left["files"])), tuple(left["log"].split("\n"))
    end = attempts[-1].end
    release(setup.transport, directory)
    end.counts.facts = where_it_ran(end.counts.facts, names_of(setup.grid))
    return TryResult(session, at, end, files, log, left["seed"], Fact.of(left["videos"]), setup.grid.path)
