"""The keys `evidence`, `failures`, `limits`, `retry` and `notify`: when a session is done, ended or retried."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

from comborun.errors import UserError
from comborun.grid.keys.amounts import parse_whole
from comborun.grid.keys.shapes import ONE_OR_MANY, OR_NONE, Keys, OrJust, key
from comborun.grid.keys.values import (
    TEXT,
    Flag,
    Glob,
    LogPattern,
    NotNegative,
    OneOf,
    Positive,
    Reads,
    Seconds,
    Text,
    WholeSeconds,
    duration,
    line_of,
    log_pattern,
    scalar_of,
)
from comborun.model.judging import DEFAULT_RETRY, IGNORE, NOTICE_KINDS, EvidenceRules, NoticeKind, RetryRule
from comborun.rules.endings.failures import Failure
from comborun.rules.endings.retry import LONGEST_WAIT_S
from comborun.rules.results.counts import PLANNED

LONGEST_SILENCE = 86400.0
"""seconds between two notices"""
SEEN_IN_A_LOG = tuple(failure for failure in Failure if failure.row.in_log)
"""classes that a line of the log can show; the others are seen by the supervisor or the dispatcher"""


class FailFast(NamedTuple):
    """The number of failed sessions that halts the run: a count, or a share of all."""

    sessions: int = 0
    percent: int = 0


NEVER = FailFast()


def _evidence(tree: object) -> str:
    """A pattern in which {episodes} is the number of the attempt's episodes."""
    text = line_of(tree)
    log_pattern(text.replace(PLANNED, "1"))
    return text


def _fail_fast(tree: object) -> FailFast:
    text = scalar_of(tree).text
    share = re.fullmatch(r"([^%]*?)\s*%", text)
    number = parse_whole(share[1] if share else text)
    if number < 1:
        raise UserError(f"`{text}` would stop every start", "at least 1; remove it to go on after any failure")
    if share and number > 100:
        raise UserError(f"`{text}` is too much", "at most 100 %")
    return FailFast(percent=number) if share else FailFast(sessions=number)


_FAIL_FAST = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^[1-9][0-9]*\s*%$"}]}
FailureWord = Annotated[Failure, OneOf("class of failures")]
SignatureWord = Annotated[str, OneOf("class of failures that a log can tell:", words=(*SEEN_IN_A_LOG, IGNORE))]
Wait = Annotated[float, duration(LONGEST_WAIT_S, "no retry waits longer than 30 min", "write 30 min, or less")]
Every = Annotated[float, duration(LONGEST_SILENCE, "no notice is held back longer than a day", "write 1 d, or less")]


class EvidenceKeys(Keys):
    records: Flag = key("whether all planned episodes must have a record", True)
    line: Annotated[str, Reads(_evidence, TEXT)] = key(
        "regular expression (Python) of a log line that shows that the work is done", ""
    )
    files: Annotated[tuple[Glob, ...], ONE_OR_MANY] = key("patterns below {output_dir}; each must find a file", ())
    steps: Flag = key("whether the number that `progress.pattern` finds must reach all steps", False)
    grace: WholeSeconds | None = key("how long a program may run after its work is done; 0: no limit")

    @property
    def rules(self) -> EvidenceRules:
        return EvidenceRules(self.records, self.line, self.files, self.steps)


class ComboLimitKeys(Keys):
    """Limits that may differ between combos."""

    stall_after: WholeSeconds = key("end a session after so long without progress; 0: never", 0)
    max_time: WholeSeconds = key("end a session that runs for longer; 0: never", 0)
    memory: Annotated[Literal["request", "enforce"], OneOf("memory limit")] = key(
        "enforce: end a session that holds more main memory than its `resources.memory`", "request"
    )


class LimitKeys(ComboLimitKeys):
    parallel: Positive | None = key("sessions that run at once, at most")
    per_gpu: Positive | None = key("sessions that share one GPU, at most")
    stagger: Seconds = key("time between two starts, at least", 0.0)
    warm_up: Seconds = key("how long sessions wait, at most, until the first one makes progress; 0: not", 0.0)
    attempts: Positive = key("starts of one session in total", 3)
    breaker: NotNegative = key("failures of one class in a row that close a GPU or the host; 0: never", 3)
    fail_fast: Annotated[FailFast, Reads(_fail_fast, _FAIL_FAST)] = key(
        "start nothing new after so many failed sessions: a count, or a share in %", NEVER
    )


class RetryKeys(Keys):
    times: NotNegative = key("how often a session is started again after this failure", 1)
    wait: Wait | None = key("time before the first retry; each wait is twice the one before")


class NotifyKeys(Keys):
    command: Text | None = key("the program that gets one JSON object on standard input")
    on: Annotated[tuple[Annotated[NoticeKind, OneOf("notice")], ...], ONE_OR_MANY] = key(
        "the events that it is told of", NOTICE_KINDS
    )
    every: Every = key("time between two notices of one kind, at least", 600.0)


Signatures = dict[SignatureWord, Annotated[tuple[LogPattern, ...], ONE_OR_MANY]]
Retries = Annotated[dict[FailureWord, Annotated[RetryKeys, OrJust("times")]] | None, OR_NONE]
NotifyOr = Annotated[NotifyKeys, OrJust("command")]


def retries(keys: dict[Failure, RetryKeys] | None) -> tuple[RetryRule, ...]:
    """The grid's retries merged into the defaults; None: no retries."""
    if keys is None:
        return tuple(replace(rule, times=0) for rule in DEFAULT_RETRY)
    said = {failure: entry.model_dump(exclude_unset=True) for failure, entry in keys.items()}
    return tuple(replace(rule, **said.get(rule.failure, {})) for rule in DEFAULT_RETRY)
