"""The keys of a grid file for surviving a run: what shows that work is done, what is ended, tried again and told."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from comborun.grid.keys.progress_values import Flag
from comborun.grid.keys.shapes import Keys, OneOrMany, OrJust, OrNone
from comborun.grid.keys.survival_values import (
    Every,
    EvidencePattern,
    FailFastLimit,
    FailureWord,
    LogPattern,
    NoticeWord,
    SignatureWord,
    Wait,
    WholeSeconds,
)
from comborun.grid.keys.values import Glob, NotNegative, Positive, Seconds, Text
from comborun.judging import NOTICE_KINDS

DEFAULT_EVERY = 600.0
DEFAULT_ATTEMPTS = 3
DEFAULT_BREAKER = 3


class EvidenceKeys(Keys):
    records: Flag = Field(default=True, description="whether as many records as planned have to be there")
    line: EvidencePattern | None = Field(
        default=None, description="regular expression (Python) of a line that the log has when the work is done"
    )
    files: Annotated[tuple[Glob, ...], OneOrMany()] = Field(
        default=(), description="patterns below {output_dir}, each of which has to find a file"
    )
    grace: WholeSeconds | None = Field(
        default=None, description="how long a program may live on after its work is done; 0: as long as it likes"
    )


class ComboLimitKeys(Keys):
    """Limits that may differ from combo to combo."""

    stall_after: WholeSeconds = Field(default=0, description="end a session without progress for so long; 0: never")
    max_time: WholeSeconds = Field(default=0, description="end a session that runs for longer; 0: never")


class LimitKeys(ComboLimitKeys):
    parallel: Positive | None = Field(default=None, description="sessions that run at once, at most")
    per_gpu: Positive | None = Field(default=None, description="sessions that share one GPU, at most")
    stagger: Seconds = Field(default=0.0, description="time between two starts, at least")
    warm_up: Seconds = Field(
        default=0.0, description="how long, at most, others of its kind wait until the first one makes progress; 0: not"
    )
    attempts: Positive = Field(default=DEFAULT_ATTEMPTS, description="starts of one session in all, the first included")
    breaker: NotNegative = Field(
        default=DEFAULT_BREAKER, description="failures of one class in a row that close a GPU or the host; 0: never"
    )
    fail_fast: FailFastLimit | None = Field(
        default=None, description="start nothing more once so many sessions failed for good: a count, or a share in %"
    )


class RetryKeys(Keys):
    times: NotNegative = Field(default=1, description="how often a session that failed so is started again")
    wait: Wait | None = Field(default=None, description="how long after; each wait is twice the one before")


class NotifyKeys(Keys):
    command: Text | None = Field(default=None, description="the program that gets one JSON object on standard input")
    on: Annotated[tuple[NoticeWord, ...], OneOrMany()] = Field(default=NOTICE_KINDS, description="what it is told of")
    every: Every = Field(default=DEFAULT_EVERY, description="time between two notices of one kind, at least")


Signatures = dict[SignatureWord, Annotated[tuple[LogPattern, ...], OneOrMany()]]
Retries = Annotated[
    dict[FailureWord, Annotated[RetryKeys, OrJust("times", {"type": "integer", "minimum": 0})]] | None, OrNone()
]
NotifyOr = Annotated[NotifyKeys, OrJust("command", {"type": "string"})]
