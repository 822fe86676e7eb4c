"""A log that tells of each episode in words: `Success: True`, then `# episodes completed so far: 12`.

Its program catches whatever goes wrong in an episode, prints `Caught exception: ...` and counts the episode as a
failure of the policy. Here it is errored: a server that died says nothing about a policy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import RejectKind, log_text, places
from comborun.reporter.adapters.findings import Findings, named
from comborun.reporter.adapters.rates import agrees

if TYPE_CHECKING:
    from comborun.reporter.adapters import Context, Reading

COMPLETED = re.compile(r"# episodes completed so far:\s*(\d{1,18})\b")

_BEGUN = re.compile(r"Starting episode \d+")
_TASK = re.compile(r"\bTask:\s*(\S.*?)\s*$")
_SUCCESS = re.compile(r"\bSuccess:\s*(\w+)")
_CAUGHT = re.compile(r"Caught exception:\s*(.*?)\s*$")
_TOTAL = re.compile(r"\bTotal episodes:\s*(\d{1,18})\b")
_RATE = re.compile(r"\bTotal success rate:\s*([\d.eE+-]+|nan)")


@dataclass
class _Episode:
    """What has been said since the last episode was over."""

    success: str | None = None
    caught: list[str] = field(default_factory=list)

    @property
    def said(self) -> bool:
        return self.success is not None or bool(self.caught)


@dataclass
class _Log:
    findings: Findings
    task: str | None = None
    episode: _Episode = field(default_factory=_Episode)
    reported: list[bool] = field(default_factory=list)
    """what the program takes for a success, to compare with its own total"""

    def hear(self, line: int, text: str) -> None:
        if told := COMPLETED.search(text):
            self._complete(line, int(told[1]))
        elif told := _CAUGHT.search(text):
            self.episode.caught.append(told[1])
        elif told := _SUCCESS.search(text):
            self.episode.success = told[1]
        elif told := _TASK.search(text):
            self.task = told[1]
        elif _BEGUN.search(text):
            self.abandon(line)
        else:
            self._compare(line, text)

    def abandon(self, line: int) -> None:
        """An episode that something was said of and that was never counted."""
        if self.episode.said:
            self.findings.reject(line, RejectKind.TORN, "an episode that its program did not count: left out")
        self.episode = _Episode()

    def _complete(self, line: int, number: int) -> None:
        episode, self.episode = self.episode, _Episode()
        if number < 1:
            self.findings.reject(line, RejectKind.NOT_A_RECORD, "an episode numbered 0: they count from 1")
            return
        key = self.findings.context.rules.success
        fields: dict[str, object] = {} if episode.success is None else {key: episode.success}
        self.reported.append((episode.success or "").lower() == "true")
        if episode.caught:
            fields = {key: None, "exception": "; ".join(episode.caught)}
        if self.task is not None:
            fields["task"] = self.task
        self.findings.take_episode(line, self.findings.context.first + number - 1, fields)

    def _compare(self, line: int, text: str) -> None:
        counted = len(self.reported)
        if (told := _TOTAL.search(text)) and int(told[1]) != counted:
            self.findings.defect(line, f"its program speaks of {told[1]} episodes, and {counted} are told of above")
        if (told := _RATE.search(text)) and counted and not agrees(told[1], sum(self.reported), counted):
            self.findings.defect(
                line, f"its program's total of {told[1]} is not {sum(self.reported)} of {counted} as told of above"
            )


def read(stream: BinaryIO, context: Context) -> Reading:
    log = _Log(Findings(named(context, *places.combo(context.path))))
    last = 0
    for last, text in log_text.lines(stream):
        log.hear(last, text)
    log.abandon(last)
    caught = sum("exception" in record.extra for record in log.findings.records)
    if caught:
        log.findings.defect(0, _exceptions(caught))
    return log.findings.reading()


def _exceptions(count: int) -> str:
    if count == 1:
        return "1 episode ended in an exception, which its program counts as a failure: errored"
    return f"{count} episodes ended in exceptions, which their program counts as failures: errored"
