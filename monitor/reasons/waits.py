"""What a queued session waits for besides its turn, in words: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from comborun.attempt import End
from comborun.plan import Plan
from comborun.reasons import FAILURES, MADE_ROOM
from comborun.state import Cause, Failure
from monitor.answer.holds import Waiting
from monitor.answer.snapshot import Attempt
from monitor.lastline import visible
from monitor.wording import brief

RETRY, MEMORY, ALONE, GPU, SMOKE, STAGGER = "retry", "memory", "alone", "gpu", "smoke", "stagger"
WARM_UP, SERVER = "warm_up", "server"
AGAIN = (RETRY, MEMORY, ALONE)
"""waits of sessions that have failed and will be started again"""
ROOM = {
    GPU: "a GPU",
    "gpu_memory": "GPU memory",
    "cpus": "cores",
    "host_memory": "memory",
    "token": "what only one may have",
    "cap": "fewer of its kind",
    "unknown": "an answer about memory",
    "lease": "the folder of leases",
}
"""waits for a part of the host"""
MOST_GIVES = 10
"""attempts that made room for others and cost nothing: `retry_gives` of scripts/lib/attempt/retry.sh"""
_CONDITIONS = {
    MEMORY: "as soon as more memory is free than when it failed",
    ALONE: "as soon as nothing else of the run is running",
}


class Budget(NamedTuple):
    """Automatic starts of a session."""

    used: int
    left: int
    """that its latest failure may still cause; 0 when they are used up, or a person asked for the latest one"""


def budget(plan: Plan, attempts: Sequence[Attempt], failure: Failure) -> Budget:
    """Starts used and left after `failure`, the class of the latest attempt's failure; counted from the last stop on.

    A person who asks for another start renews both, but no probe tells of that: then more may be used than there are.
    What Slurm preempts is no start, though a failure of its class; what made room for others is neither, as often as
    the host forgives it.
    """
    ends = [one.end for one in attempts if one.end]
    stops = [place for place, end in enumerate(ends) if end.cause is Cause.STOPPED]
    since = _charged(ends[stops[-1] + 1 :] if stops else ends)
    used = sum(end.cause is not Cause.PREEMPTED for end in since)
    failures = sum(end.failure is failure for end in since)
    left = min(plan.limits.attempts - used, _retries(plan, failure) + 1 - failures)
    return Budget(used, max(0, left))


def _charged(ends: Sequence[End]) -> list[End]:
    """Without the latest ones that made room for others, which scripts/lib/attempt/retry.sh forgives."""
    free = [place for place, end in enumerate(ends) if end.gave_way][-MOST_GIVES:]
    return [end for place, end in enumerate(ends) if place not in free]


def _retries(plan: Plan, failure: Failure) -> int:
    """How often a session is started again after such a failure."""
    for rule in plan.retry:
        if rule.failure is failure:
            return rule.times
    return plan.limits.attempts - 1 if failure is Failure.LOST else 0


def room(waiting: Waiting) -> str:
    """`waits for GPU memory`."""
    return f"waits for {ROOM[waiting.reason]}"


def again(waiting: Waiting, plan: Plan, attempts: Sequence[Attempt], now: float) -> str:
    """`again in 40 s: out of GPU memory, attempt 2 of 3`."""
    end = attempts[-1].end if attempts else None
    said = [f"again {_when(waiting, now)}"]
    if end is None or end.failure is None:
        return f"{said[0]}: {visible(waiting.detail)}" if waiting.detail else said[0]
    spent = budget(plan, attempts, end.failure)
    number = attempts[-1].number
    of = f" of {number + spent.left}" if spent.left else ""
    why = MADE_ROOM if end.made_room else FAILURES[end.failure]
    return f"{said[0]}: {why}, attempt {number + 1}{of}"


def _when(waiting: Waiting, now: float) -> str:
    if waiting.until is not None and waiting.until > now:
        return f"in {brief(waiting.until - now)}"
    return _CONDITIONS.get(waiting.reason, "as soon as a slot is free")
