"""What a queued session waits for besides its turn, in words: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from comborun.attempt import FAILURES
from comborun.monitor.answer.holds import Waiting
from comborun.monitor.answer.snapshot import Attempt
from comborun.monitor.lastline import visible
from comborun.monitor.wording import brief
from comborun.plan import Plan
from comborun.rules.retry import Budgets, Tried, spent
from comborun.rules.words import Failure

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
    What Slurm preempts is no start, though a failure of its class.
    """
    times = {rule.failure.value: rule.times for rule in plan.retry}
    times.setdefault(Failure.LOST.value, plan.limits.attempts - 1)
    ends = [one.end for one in attempts if one.end]
    tried = [Tried(end.cause.value, end.failure.value if end.failure else "") for end in ends]
    used = spent(Budgets(plan.limits.attempts, times, {}), tried, failure.value)
    return Budget(used.made, used.left)


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
    return f"{said[0]}: {FAILURES[end.failure]}, attempt {number + 1}{of}"


def _when(waiting: Waiting, now: float) -> str:
    if waiting.until is not None and waiting.until > now:
        return f"in {brief(waiting.until - now)}"
    return _CONDITIONS.get(waiting.reason, "as soon as a slot is free")
