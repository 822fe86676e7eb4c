"""What a plan says about surviving: what shows that work is done, what is ended, what is started again, who hears.

None of it belongs to the digest of a session: it changes how work is watched and judged, never the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from comborun.rules.words import Failure

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
    """What shows that a session has done its work: all that is named must hold. The exit code is the last witness."""

    records: bool = True
    """as many records as planned; only where `results` names files"""
    line: str = ""
    """a regular expression that a line of the log matches; empty: none is asked for"""
    files: tuple[str, ...] = ()
    """globs below the output folder, each of which finds a file that is not empty"""

    @property
    def beside_records(self) -> str:
        """What it asks for besides records, in words; empty where that is nothing."""
        line = (f"a line of the log like '{self.line}'",) if self.line else ()
        return " and ".join((*line, *(f"a file '{glob}'" for glob in self.files)))


BY_RECORDS = EvidenceRules()


@dataclass(frozen=True)
class WatchRules:
    """What the supervisor ends by itself; whole seconds, because bash counts them."""

    stall_s: int = 0
    """without progress for so long; 0: never ended for it"""
    max_s: int = 0
    """running for longer; 0: no limit"""
    hang_s: int | None = None
    """alive for so long after its work was done; 0: never ended for it; None: as the library has it"""


NO_LIMITS = WatchRules()


@dataclass(frozen=True)
class RetryRule:
    """How often a session that failed so is started again, and how long after; each wait is twice the one before."""

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
