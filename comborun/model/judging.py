"""How a session is judged: its records, its progress, its limits, its retries.

None of this is part of a session's digest, because it does not change the work.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Literal

from comborun.errors import UserError
from comborun.rules.endings.failures import Failure
from comborun.words.endings import beside_records

_EXAMPLE = r"such as '\[ *(\d+)/(\d+)\]', or '# episodes completed so far: (?P<done>\d+)'"


@dataclass(frozen=True)
class ProgressRules:
    """How to read progress from a session's log. Only the live view uses this."""

    pattern: str | None = None
    """regular expression of Python: group `done` (or the first), and perhaps `total` (or the second)"""
    counts_from: int | None = None
    """None: the number is how many are done. Else it names the episode that begins, and this is the first one's name"""
    silent: bool = False
    """whether the program prints nothing for long"""
    guess: bool = True
    """without a pattern: whether a counter up to the planned number counts episodes"""
    each: int = 0
    """for a bar that starts again: episodes (or steps) that its total stands for; 0: all"""


ANY_PROGRESS = ProgressRules()
NO_PROGRESS = ProgressRules(guess=False)
"""for `progress: none`: the log is not read"""


def has_total(pattern: re.Pattern[str]) -> bool:
    names = pattern.groupindex
    return "total" in names if names else pattern.groups > 1


def compile_pattern(text: str) -> re.Pattern[str]:
    """A regular expression with a group for what is done and perhaps one for the total. Raises UserError."""
    from comborun.rules.patterns import PatternError, unhurried  # slow to import

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about sets that Python may read differently one day
            pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UserError(
            f"`{text}` is not a regular expression: {error}", "the syntax is Python's; a literal [ is \\["
        ) from None
    try:
        unhurried(text)
    except PatternError as error:
        raise UserError(str(error), error.hint) from None
    names = set(pattern.groupindex)
    if names and "done" not in names:
        raise UserError(
            f"`{text}` names no group `done`", f"(?P<done>\\d+), and (?P<total>\\d+) if it has one; {_EXAMPLE}"
        )
    if not names and pattern.groups == 0:
        raise UserError(f"`{text}` has no group for the number of episodes", f"put it in parentheses, {_EXAMPLE}")
    if not names and pattern.groups > 2:
        hint = "name them, (?P<done>\\d+) and (?P<total>\\d+), or begin the others with (?:"
        raise UserError(f"`{text}` has {pattern.groups} groups; which one is the number of episodes?", hint)
    return pattern


NoticeKind = Literal["finished", "failed", "stalled", "host"]
NOTICE_KINDS: tuple[NoticeKind, ...] = ("finished", "failed", "stalled", "host")

IGNORE = "ignore"
"""takes the place of a failure class: for log lines that show no failure"""
Signature = tuple[str, str]
"""failure class or IGNORE, and the regular expression of a log line that shows it"""


@dataclass(frozen=True)
class EvidenceRules:
    """What proves that a session did its work: all of this together. If nothing is set, the exit code decides."""

    records: bool = True
    """a record for each planned episode, if `results` names files"""
    line: str = ""
    """regular expression that a log line must match; empty: none"""
    files: tuple[str, ...] = ()
    """globs below the output folder; each must match a file that is not empty"""
    steps: bool = False
    """the number of steps in a line that shows progress, as announced by the program, else as planned"""

    @property
    def beside_records(self) -> str:
        """The evidence besides records, in words; empty if none."""
        return beside_records(self.line, self.files, steps=self.steps)


BY_RECORDS = EvidenceRules()


@dataclass(frozen=True)
class WatchRules:
    """When the supervisor ends a command, in whole seconds; 0: never."""

    stall_s: int = 0
    """after so long without progress"""
    max_s: int = 0
    """after so long"""
    hang_s: int | None = None
    """so long after its work was done; None: the host program's default"""
    memory: bool = False
    """whether also for more main memory than it requested"""


NO_LIMITS = WatchRules()


@dataclass(frozen=True)
class RetryRule:
    """How often a failure of one class is retried, and after which wait; the wait doubles each time."""

    failure: Failure
    times: int
    wait: float
    """seconds"""


DEFAULT_RETRY = tuple(RetryRule(failure, failure.row.retries, failure.row.wait_s) for failure in Failure)
"""Only failures of the machine are retried: a program's own failure says something about the policy."""
