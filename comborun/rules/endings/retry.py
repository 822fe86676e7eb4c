"""Whether an attempt that ended gets a retry, and when. Pure: uses only end records.

So a restarted dispatcher, and the commands that stop, control or explain a run, all get the same answer. Budgets start
again after a user's stop, and when a user asks for another attempt.
"""

from __future__ import annotations

from comborun.rules.vocabulary import Cause, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Sequence, Tuple

    Tried = Tuple[str, str]
    """cause and class of an attempt that has ended; the class is empty if it did not fail"""

LONGEST_WAIT_S = 1800.0
AGAIN = (Outcome.PARTIAL, Outcome.FAILED, Outcome.LOST)
"""outcomes that a retry may follow"""


class Budgets:
    """How many retries a session may have, and the wait after each failure."""

    def __init__(self, attempts: int, times: Mapping[str, int], waits: Mapping[str, float]) -> None:
        self.attempts = attempts
        """most starts, including the first"""
        self.times = times
        """class of failure -> most retries"""
        self.waits = waits
        """class -> seconds before the first retry"""

    @classmethod
    def of_policy(cls, policy: Mapping[str, str]) -> Budgets:
        """From dispatch/policy.json: `retry_CLASS` and `wait_CLASS_ms`. A class that it does not name is not retried,
        but for a session that was lost or preempted.
        """
        numbers = {key: int(value) for key, value in policy.items() if value.isdecimal() and len(value) < 10}
        attempts = numbers.get("attempts", 1)
        times = {key[len("retry_") :]: value for key, value in numbers.items() if key.startswith("retry_")}
        waits = {
            key[len("wait_") : -len("_ms")]: value / 1000
            for key, value in numbers.items()
            if key.startswith("wait_") and key.endswith("_ms")
        }
        return cls(attempts, {"lost": max(0, attempts - 1), "preempted": 10, **times}, waits)


class Spent:
    """Starts of a session since a user last stopped or retried it."""

    def __init__(self, made: int, failures: int, left: int) -> None:
        self.made = made
        """starts that count; a preempted one does not"""
        self.failures = failures
        """failures of the same class as the latest one"""
        self.left = left
        """starts that are left after the latest failure"""


def spent(budgets: Budgets, tried: Sequence[Tried], failure: str) -> Spent:
    """Counts the attempts, oldest first, since a user last asked for one; `failure` is the class of the latest."""
    made = failures = 0
    for cause, its in reversed(tried):
        if cause == Cause.STOPPED.value:
            break
        made += cause != Cause.PREEMPTED.value
        failures += its == failure
    left = min(budgets.attempts - made, budgets.times.get(failure, 0) + 1 - failures)
    return Spent(made, failures, max(0, left))


def wait_s(budgets: Budgets, failure: str, failures: int) -> float:
    """Seconds from the end of the latest attempt to the next start; each wait is twice the one before."""
    first = budgets.waits.get(failure, 0.0)
    return min(first * 2 ** min(failures - 1, 40), LONGEST_WAIT_S) if failures > 0 else first
