"""What `combo calibrate` runs, and what it learns from that. Pure.

First some combos run alone, one after another. Then 2, 4, 8 ... sessions run side by side, each with its share of the
cores, as long as the host gets more done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import UserError
from comborun.model.work import combo_of, first_of_each
from comborun.planner.knowledge import MeasuredCombo, Step, pace_key
from comborun.planner.packing import fits, stage
from comborun.planner.ranges import distinct, first_episodes, trial_plan
from comborun.planner.scheduling import filled
from comborun.rules.room.waits import WaitFor
from comborun.text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.model.plan import Plan, Session
    from comborun.model.resources import HostFacts

PURPOSE = "calibrate"
ALL_OF = 12
"""up to so many combos are all measured; of more, one policy everywhere and every policy in one environment"""
KNEE = 1.10
"""the least gain for which twice as many sessions are worth it"""
LENGTH_S = 10.0
"""seconds; a session that takes less is repeated with more episodes"""
OVERBOOKED = 1.5
"""sessions may use so many times the cores: they sometimes wait for a GPU or a disk"""
TOO_FAST = 1.15
"""a speed-up above this times the number of sessions shows that sessions alone were disturbed"""
_SHORT_OF: dict[str, str] = {
    WaitFor.HOST_MEMORY: "main memory and its reserve",
    WaitFor.GPU_MEMORY: "the GPUs' memory and its reserve",
    WaitFor.SLOT: "slots",
}
_START_UPS = 3.0
"""sessions side by side take at least so many times their start-up"""


class DoneAt(NamedTuple):
    """The number of episodes done at a time, in seconds since the start."""

    after: float
    done: int


@dataclass(frozen=True)
class Trial:
    episodes: int
    started: float
    """seconds since 1970 on the host's clock"""
    ended: float
    whole: bool
    how: str = ""
    """how it ended, if it did not succeed"""
    seen: tuple[DoneAt, ...] = ()
    memory: int = 0
    """most MiB in the samples; 0: no sample"""
    gpu_memory: int = 0
    cores: float | None = None
    """cores in use, on average; None: not measured"""

    @property
    def seconds(self) -> float:
        return max(0.001, self.ended - self.started)


def kinds(sessions: Sequence[Session]) -> tuple[Session, ...]:
    """The combos to measure, one session each; longest work first if that is known."""
    combos = first_of_each(sessions)
    if len(combos) <= ALL_OF:
        return combos
    policy, environment = combos[0].policy, combos[0].environment
    return tuple(one for one in combos if one.policy == policy or one.environment == environment)


def alone(plan: Plan, sessions: Sequence[Session], episodes: Sequence[int]) -> Plan:
    """A plan with one session at a time. Raises UserError if a command can't run so few episodes."""
    chosen = (first_episodes(one, count, PURPOSE) for one, count in zip(sessions, episodes, strict=True))
    return trial_plan(plan, distinct(chosen), 1, PURPOSE)


def beside(
    plan: Plan, found: Sequence[tuple[Session, MeasuredCombo]], at_once: int, length_s: float = LENGTH_S
) -> Plan:
    """A plan with `at_once` sessions, of the combos in turn, of similar length, each with its share of the cores."""
    target = max(length_s, _START_UPS * max(one.start_up_s for _, one in found))
    share = plan.cpus // at_once
    chosen: list[Session] = []
    for number in range(at_once):
        session, measured = found[number % len(found)]
        filling = math.ceil((target - measured.start_up_s) / max(measured.episode_s, 1e-6))
        few = first_episodes(session, max(1, min(session.count, filling)), PURPOSE)
        name = f"{few.name}_{number + 1}"
        chosen.append(replace(filled(few, measured.pace, share), name=shortened(name)))
    return trial_plan(plan, distinct(chosen), at_once, PURPOSE)


def refused(plan: Plan, host: HostFacts) -> str:
    """Why the sessions of `plan` can't all run at once on the host as it is now; empty if they can."""
    requests = [session.resources for session in plan.sessions]
    count, lack = fits(requests, stage(plan, host))
    if lack is None or count >= len(requests):
        return ""
    return f"only {count} at once fit: {_SHORT_OF.get(lack.waits_for) or lack} allow no more"


def crowded(found: Sequence[tuple[Session, MeasuredCombo]], plan: Plan, at_once: int) -> str:
    """Says if so many sessions need more cores than there are; empty if not. An unmeasured session counts as one core.

    With more processes than cores a run would get more done only by taking cores from other users.
    """
    busy = [one.cores for _, one in found if one.cores is not None]
    wanted = at_once * (sum(busy) / len(busy) if busy else 1.0)
    if wanted <= max(1, plan.cpus) * OVERBOOKED:
        return ""
    if busy:
        return f"{at_once} at once would keep {wanted:.1f} cores busy, but there are {plan.cpus}"
    return f"{at_once} at once may need more than {plan.cpus} cores: the cores that a session uses were not measured"


def measured(session: Session, trials: Sequence[Trial]) -> MeasuredCombo:
    """The result of one or two trials of a combo alone. Raises UserError if none did its work."""
    good = sorted((trial for trial in trials if trial.whole), key=lambda trial: trial.episodes)
    if not good:
        raise UserError(
            f"`{session.label}` failed in its trial: {trials[-1].how}",
            "`combo logs` shows its output; calibrate again once it works",
        )
    longest = good[-1]
    episode = _episode(good)
    return MeasuredCombo(
        policy=session.policy,
        environment=session.environment,
        work=pace_key(session),
        episodes=sum(trial.episodes for trial in good),
        start_up_s=round(max(0.0, longest.seconds - longest.episodes * episode), 3),
        episode_s=round(episode, 6),
        memory_mib=max(trial.memory for trial in good),
        gpu_memory_mib=max(trial.gpu_memory for trial in good),
        cores=max((round(trial.cores, 2) for trial in good if trial.cores is not None), default=None),
    )


def _episode(good: Sequence[Trial]) -> float:
    """Seconds of an episode, by the difference of two sessions, by the times of records, or by the whole session."""
    shortest, longest = good[0], good[-1]
    if longest.episodes > shortest.episodes and longest.seconds > shortest.seconds:
        return (longest.seconds - shortest.seconds) / (longest.episodes - shortest.episodes)
    if len(longest.seen) > 1:
        first, last = longest.seen[0], longest.seen[-1]
        return (last.after - first.after) / (last.done - first.done)
    return longest.seconds / longest.episodes


def second_trial(session: Session, trial: Trial, length_s: float = LENGTH_S) -> int:
    """Episodes of a second trial; 0 if the first was long enough."""
    if not trial.whole or trial.seconds >= length_s or session.count <= trial.episodes:
        return 0
    return min(session.count, max(4 * trial.episodes, math.ceil(trial.episodes * length_s / trial.seconds)))


def step(found: Sequence[tuple[Session, MeasuredCombo]], plan: Plan, trials: Sequence[Trial]) -> Step:
    """The result of `plan`, with sessions side by side. Speed 0 if one failed, or if they did not all overlap."""
    at_once = len(plan.sessions)
    seconds = round(max(trial.ended for trial in trials) - min(trial.started for trial in trials), 3)
    if failed := [trial for trial in trials if not trial.whole]:
        return Step(at_once, seconds, 0.0, f"{len(failed)} of {at_once} failed: {failed[0].how}")
    if max(trial.started for trial in trials) >= min(trial.ended for trial in trials):
        return Step(at_once, seconds, 0.0, "the host let fewer run at once")
    by_combo = {combo_of(session): one for session, one in found}
    work = sum(by_combo[combo_of(one)].pace.length(one.count) for one in plan.sessions)
    episodes = sum(one.count for one in plan.sessions)
    return Step(at_once, seconds, round(work / max(seconds, 0.001), 3), episodes=episodes, one_by_one_s=round(work, 3))


def stops(steps: Sequence[Step]) -> str:
    """Why no further step follows; empty if one may be worth it."""
    last, before = steps[-1], steps[-2]
    if not last.speed:
        return last.note
    if last.speed < before.speed * KNEE:
        gain = 100 * (last.speed / before.speed - 1)
        more = f"{gain:.0f} % more" if gain >= 0 else f"{-gain:.0f} % less"
        return f"{last.at_once} at once get {more} done than {before.at_once}"
    return ""


def disturbed(steps: Sequence[Step]) -> bool:
    """Whether sessions were slower alone than beside others: then other users were busy."""
    return any(one.speed > one.at_once * TOO_FAST for one in steps)


def best(steps: Sequence[Step]) -> int:
    good = [one for one in steps if one.speed]
    if len(good) > 1 and good[-1].speed < good[-2].speed * KNEE:
        good.pop()
    return good[-1].at_once
