"""What Slurm says of a run's tasks, and whether it answers. Pure."""

from __future__ import annotations

from typing import NamedTuple

from comborun.monitor.wording import visible
from comborun.rules.facts import Fact
from comborun.rules.slurm import PENDING, is_held, plain
from comborun.text import harmless
from comborun.words import say


class SlurmTask(NamedTuple):
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
        return self.state in {"RUNNING", "CONFIGURING"}

    @property
    def held(self) -> bool:
        return self.pending and is_held(self.reason)

    @property
    def array(self) -> str:
        """The job number of the array; empty if Slurm's answer has none."""
        number = self.job.partition("_")[0]
        return number if number.isdecimal() else ""

    @property
    def why(self) -> str:
        """The reason as Slurm's documents spell it."""
        return visible(plain(self.reason))

    @property
    def fact(self) -> Fact:
        """What Slurm says of it."""
        if self.why:
            return Fact("task_held_by_slurm" if self.held else "task_waits", reason=self.why)
        return Fact("task_not_looked_at") if self.pending else Fact("task_state", state=self.state.lower())


class Scheduler(NamedTuple):
    at: float | None = None
    """time of the last answer; None: never"""
    answered: bool = True
    reason: Fact | None = None
    """why there is no answer"""
    why: str = ""
    """the same in words, of the former version"""

    @property
    def complaint(self) -> str:
        return harmless(say(self.reason)) if self.reason else self.why

    def silence(self, now: float) -> Fact:
        """Slurm does not answer: since when, and why."""
        since = {} if self.at is None else {"ago_s": now - self.at}
        return Fact("slurm_is_silent", **since, said=self.reason.as_data() if self.reason else visible(self.why))
