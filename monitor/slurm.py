"""The Slurm tasks of a run, as values and in words; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from comborun.monitor.wording import visible
from comborun.rules.facts import Fact
from comborun.rules.slurm import PENDING, is_held, plain
from comborun.words import say

_BEGINNING = {"RUNNING", "CONFIGURING"}


class Task(NamedTuple):
    """A task of a Slurm array. Times are seconds since 1970 on the host's clock."""

    session: str
    attempt: int
    """the attempt that it makes or will make"""
    job: str
    """`12_7`: array and index"""
    id: str = ""
    """its own job number, for steps; empty before it has one"""
    state: str = PENDING
    node: str = ""
    start: float | None = None
    """expected start, if Slurm gives one"""
    reason: str = ""
    """Slurm's reason why it does not run; empty while Slurm has not looked at it"""

    @property
    def pending(self) -> bool:
        return not self.begun and self.state != "COMPLETING"

    @property
    def begun(self) -> bool:
        return self.state in _BEGINNING

    @property
    def held(self) -> bool:
        return self.pending and is_held(self.reason)

    @property
    def array(self) -> str:
        """The job number of the array; empty if Slurm's answer has none."""
        number = self.job.partition("_")[0]
        return number if number.isdecimal() else ""

    @property
    def fact(self) -> Fact:
        """What Slurm says of it."""
        if reason := visible(plain(self.reason)):
            return Fact("task_held_by_slurm" if self.held else "task_waits", reason=reason)
        return Fact("task_not_looked_at") if self.pending else Fact("task_state", state=self.state.lower())


class Scheduler(NamedTuple):
    at: float | None = None
    """time of the last answer; None: never"""
    answered: bool = True
    why: str = ""
    """its message instead of an answer"""


def latest(tasks: Sequence[Task]) -> dict[str, Task]:
    """Session -> the task of its highest attempt; earlier ones will end."""
    return {task.session: task for task in sorted(tasks, key=lambda task: task.attempt)}


def silence(scheduler: Scheduler, now: float) -> Fact:
    """Slurm does not answer: since when, and its words."""
    since = {} if scheduler.at is None else {"ago_s": now - scheduler.at}
    return Fact("slurm_is_silent", **since, said=visible(scheduler.why))


def summary(scheduler: Scheduler, tasks: Sequence[Task], now: float) -> Fact:
    """How many tasks wait and run, the most frequent reasons, and the nodes; or that Slurm does not answer."""
    if not scheduler.answered:
        return silence(scheduler, now)
    waiting, begun = [task for task in tasks if task.pending], [task for task in tasks if task.begun]
    reasons = Counter(visible(task.reason.strip("()")) or "not looked at yet" for task in waiting).most_common(3)
    nodes = sorted({visible(task.node) for task in begun if task.node})
    return Fact("slurm_summary", pending=len(waiting), reasons=dict(reasons), running=len(begun), nodes=nodes)


def summary_line(scheduler: Scheduler, tasks: Sequence[Task], now: float) -> str:
    """The summary for the table."""
    return ("" if scheduler.answered else "! ") + say(summary(scheduler, tasks, now))
