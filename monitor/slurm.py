"""The Slurm tasks of a run, as values and in words; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comborun.monitor.wording import brief, visible
from comborun.rules.slurm import PENDING, is_held, plain
from comborun.text import several

_BEGINNING = {"RUNNING", "CONFIGURING"}
_RELEASE = "scontrol release lets it go"
_REASONS: Mapping[str, str] = {
    "Resources": "no node has enough free for it now",
    "Priority": "other jobs come first",
    "JobArrayTaskLimit": "as many tasks of its array run as may run at once",
    "Dependency": "another job has to end first",
    "DependencyNeverSatisfied": "it depends on a job that failed",
    "BeginTime": "it may not start yet; Slurm lets what was requeued wait for two minutes",
    "ReqNodeNotAvail": "nodes that it could run on are down, drained or reserved",
    "NodeDown": "a node that it needs is down",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition takes no jobs now",
    "PartitionTimeLimit": "it asks for more time than the partition gives",
    "PartitionNodeLimit": "it asks for more nodes than the partition gives",
    "PartitionConfig": "it asks for what the partition does not have",
    "BadConstraints": "no node has what it asks for",
    "Licenses": "all licenses that it needs are taken",
    "Reservation": "its reservation has not begun",
    "ReservationDeleted": "its reservation is gone",
    "JobHeldUser": f"it is held, by combo pause or by hand: {_RELEASE}",
    "JobHeldAdmin": f"it is held, by combo pause as root or by an administrator: {_RELEASE}",
    "JobHoldMaxRequeue": f"it was requeued too often and is held: {_RELEASE}",
    "launch failed requeued held": f"its node could not start it, and it is held: {_RELEASE}",
    "job requeued in held state": f"it was requeued and is held: {_RELEASE}",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its quality of service is not valid",
    "Cleaning": "its last start is still being cleaned up",
}
_FAMILIES = {
    "QOS": "a limit of its quality of service is reached",
    "Assoc": "a limit of its account is reached",
    "Max": "a limit of its account is reached",
    "Reserved": "nodes that it could run on are reserved for maintenance",
}
"""part of a reason -> words"""


@dataclass(frozen=True)
class Task:
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
        """Whether its script runs, or is about to."""
        return self.state in _BEGINNING

    @property
    def held(self) -> bool:
        """Whether it waits for a release."""
        return self.pending and is_held(self.reason)

    @property
    def array(self) -> str:
        """The job number of the array; empty if Slurm's answer has none."""
        number = self.job.partition("_")[0]
        return number if number.isdecimal() else ""

    @property
    def words(self) -> str:
        """Why it does not run, Slurm's word first: `Resources: no node has enough free for it now`."""
        said = visible(plain(self.reason))
        known = _REASONS.get(said) or next((text for mark, text in _FAMILIES.items() if mark in said), "")
        if not said:
            return "Slurm has not looked at it yet" if self.pending else self.state.lower()
        return f"{said}: {known}" if known else said


@dataclass(frozen=True)
class Scheduler:
    """The state of Slurm at the probe."""

    at: float | None = None
    """time of the last answer; None: never"""
    answered: bool = True
    why: str = ""
    """its message instead of an answer"""


def latest(tasks: Sequence[Task]) -> dict[str, Task]:
    """Session -> the task of its highest attempt; earlier ones will end."""
    return {task.session: task for task in sorted(tasks, key=lambda task: task.attempt)}


def summary(scheduler: Scheduler, tasks: Sequence[Task], now: float) -> str:
    """One line: `Slurm: 3 tasks pending (2 Resources, 1 Priority), 4 running on n1, n2`."""
    if not scheduler.answered:
        since = "it has not answered yet" if scheduler.at is None else f"this is from {brief(now - scheduler.at)} ago"
        return f"! Slurm does not answer; {since}" + (f": {visible(scheduler.why)}" if scheduler.why else "")
    waiting, begun = [task for task in tasks if task.pending], [task for task in tasks if task.begun]
    parts = []
    if waiting:
        reasons = Counter(visible(task.reason.strip("()")) or "not looked at yet" for task in waiting).most_common(3)
        texts = (f"{count} {reason}" if len(waiting) > 1 else reason for reason, count in reasons)
        parts.append(f"{several(len(waiting), 'task')} pending ({', '.join(texts)})")
    if begun:
        names = sorted({visible(task.node) for task in begun if task.node})
        nodes = ", ".join(names) if 0 < len(names) <= 4 else several(len(names), "node")
        parts.append(f"{len(begun)} running on {nodes}")
    return f"Slurm: {', '.join(parts)}" if parts else "Slurm has none of its tasks"
