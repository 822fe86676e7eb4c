"""How a session is judged: its records, its progress, what ends it, what is retried.

None of this is part of a session's digest, because it changes how work is watched and judged, not the work itself.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Literal

from comborun.errors import UserError
from comborun.rules.fields import TRAINING
from comborun.rules.words import Failure

Source = Literal["output", "log"]
"""of records: files below the output folder, or the log"""


@dataclass(frozen=True)
class ResultRules:
    """Where a session's records are, and what their fields mean."""

    files: tuple[str, ...] = ("**/*.jsonl",)
    """globs below the output folder; empty when the program leaves no records and its exit code has to do"""
    success: str = "success"
    """the field of the verdict; here and below a word, or a JSON object with a test (comborun/rules/fields.py)"""
    episode: str = "episode"
    metrics: tuple[str, ...] = ()
    """the fields to report, in this order; empty: every numeric field"""
    compare: tuple[str, ...] = ()
    """of them those by which policies are compared, as by their success rates"""
    format: str = ""
    """one of FORMATS (comborun/rules/episodes.py); empty: what each file looks like"""
    source: Source = "output"
    videos: tuple[str, ...] = ()
    """globs below the output folder of what shows its episodes; no part of the work"""
    pattern: str = ""
    """of the lines of the log that are its records; its groups are their fields"""
    policy: str = ""
    environment: str = ""
    seed: str = ""
    """fields with the combo's names and the seed; empty: those that are called so"""
    base: int = 0
    """the episode that rows and the command call 0: each of `seeds` has a range of its own in the combo"""

    @property
    def has_records(self) -> bool:
        return bool(self.files) or self.source == "log"

    @property
    def counted(self) -> bool:
        """Whether they are episodes; a training has none."""
        return self.has_records and self.format != TRAINING


_EXAMPLE = r"such as '\[ *(\d+)/(\d+)\]', or '# episodes completed so far: (?P<done>\d+)'"


@dataclass(frozen=True)
class ProgressRules:
    """How to read progress from a session's log before its records show it. Only the live view uses this."""

    pattern: str | None = None
    """a regular expression of Python: group `done` (else the first) and, if there is one, `total` (else the second)"""
    counts_from: int | None = None
    """None: the number is how many are done. Else it names the one that has just begun, with this for the first"""
    silent: bool = False
    """prints nothing for long stretches: silence says nothing"""
    guess: bool = True
    """without a pattern, a counter up to the planned number is taken for one of episodes"""
    each: int = 0
    """what the pattern's total stands for, in episodes (or steps), before the bar starts again; 0: for all of them"""


ANY_PROGRESS = ProgressRules()
NO_PROGRESS = ProgressRules(guess=False)
"""`progress: none`: the log tells nothing"""


def has_total(pattern: re.Pattern[str]) -> bool:
    """Whether it finds the number beside what is done that all of it would be."""
    return "total" in pattern.groupindex or (not pattern.groupindex and pattern.groups > 1)


def compile_pattern(text: str) -> re.Pattern[str]:
    """A regular expression with a group for what is done and, perhaps, one for the total. Raises UserError."""
    from comborun.rules.patterns import PatternError, unhurried  # slow to import

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of sets that may be read differently one day
            pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UserError(
            f"`{text}` is no regular expression: {error}", "the syntax is Python's; a literal [ is \\["
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
        raise UserError(f"`{text}` has {pattern.groups} groups, and which is the number of episodes is not clear", hint)
    return pattern


NoticeKind = Literal["finished", "failed", "stalled", "host"]
NOTICE_KINDS: tuple[NoticeKind, ...] = ("finished", "failed", "stalled", "host")

PLANNED = "{episodes}"
"""in a line that is evidence: how many the attempt had to make"""
IGNORE = "ignore"
"""in the place of a failure class: log lines that mean nothing"""
Signature = tuple[str, str]
"""failure class, or IGNORE, and the regular expression (Python) of a log line that shows it"""


@dataclass(frozen=True)
class EvidenceRules:
    """What proves that a session did its work: all named evidence must hold. Without any, the exit code decides."""

    records: bool = True
    """as many records as planned; only where `results` names files"""
    line: str = ""
    """a regular expression that a line of the log must match; empty: none"""
    files: tuple[str, ...] = ()
    """globs below the output folder; each must match a file that is not empty"""

    @property
    def beside_records(self) -> str:
        """The evidence that it needs besides records, in words; empty if none."""
        line = (f"a line of the log like '{self.line}'",) if self.line else ()
        return " and ".join((*line, *(f"a file '{glob}'" for glob in self.files)))


BY_RECORDS = EvidenceRules()


@dataclass(frozen=True)
class WatchRules:
    """When the supervisor ends a command, in whole seconds."""

    stall_s: int = 0
    """without progress for so long; 0: never ended for it"""
    max_s: int = 0
    """running for longer; 0: no limit"""
    hang_s: int | None = None
    """alive for so long after its work was done; 0: never ended for it; None: as the library has it"""
    memory: bool = False
    """holding more main memory than it asks for"""


NO_LIMITS = WatchRules()


@dataclass(frozen=True)
class RetryRule:
    """How often a failure of one class is retried, and after what wait; each wait is twice the one before."""

    failure: Failure
    times: int
    wait: float
    """seconds"""


DEFAULT_RETRY = (
    RetryRule(Failure.GPU_MEMORY, 2, 60.0),
    RetryRule(Failure.GPU_FAULT, 1, 60.0),
    RetryRule(Failure.HOST_MEMORY, 1, 60.0),
    RetryRule(Failure.DISK_FULL, 0, 60.0),
    RetryRule(Failure.STALLED, 1, 10.0),
    RetryRule(Failure.TIMED_OUT, 0, 10.0),
    RetryRule(Failure.KILLED, 1, 10.0),
    RetryRule(Failure.CRASHED, 1, 10.0),
    RetryRule(Failure.LAUNCH_FAILED, 0, 10.0),
    RetryRule(Failure.ERROR, 0, 10.0),
    RetryRule(Failure.NO_RESULT, 0, 10.0),
    RetryRule(Failure.LOST, 2, 0.0),
    RetryRule(Failure.SERVER_LOST, 2, 30.0),
    RetryRule(Failure.PREEMPTED, 10, 0.0),
)
"""causes of the machine only: a program that fails says something about the policy, and trying again hides it"""
