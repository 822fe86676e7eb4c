"""Logs that tell of single episodes, in words or as a printed list, and the logs of trainings."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import names
from comborun.reporter.adapters.log_text import lines, printed
from comborun.reporter.adapters.rates import agrees
from comborun.reporter.adapters.reading import RejectKind
from comborun.rules.fields import verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.adapters.reading import Context, Reading

COMPLETED = re.compile(r"# episodes completed so far:\s*(\d{1,18})\b")
_BEGUN = re.compile(r"Starting episode \d+")
_TASK = re.compile(r"\bTask:\s*(\S.*?)\s*$")
_SUCCESS = re.compile(r"\bSuccess:\s*(\w+)")
_CAUGHT = re.compile(r"Caught exception:\s*(.*?)\s*$")
_TOTAL = re.compile(r"\bTotal episodes:\s*(\d{1,18})\b")
_TOTAL_RATE = re.compile(r"\bTotal success rate:\s*([\d.eE+-]+|nan)")

RESULTS = re.compile(r"^\s*results:\s*(?P<tuple>\(.*)$")
TUPLE_LIMIT = 1 << 20
"""characters"""
_RATE = re.compile(r"^\s*success rate:\s+(?P<rate>[\d.]+|nan)")
_ASKED = re.compile(r"collecting (?P<episodes>\d{1,9}) episodes for (?P<env>.+?) with (?P<copies>\d{1,9}) vec envs")
_TRIES = 100
"""at finding the end of a tuple that spans lines"""

STEP = re.compile(r"\[train\]\s+step=(\d{1,18})\b")
_STEPS = re.compile(r"[Tt]otal steps:\s*(\d{1,18})\b")


def episode_lines(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """Words about each episode: `Success: True`, then `# episodes completed so far: 12`.

    The program catches whatever goes wrong in an episode, prints `Caught exception: ...` and counts the episode as a
    failure of the policy. Here it is errored: a server that died says nothing about a policy.
    """
    log = _EpisodeLog(reading, context)
    last = 0
    for last, text in lines(stream):
        log.hear(last, text)
    log.abandon(last)
    if caught := sum("exception" in record.extra for record in reading.records):
        ended = "1 episode ended in an exception" if caught == 1 else f"{caught} episodes ended in exceptions"
        reading.defect(0, f"{ended}, counted as failure by the program: errored")


@dataclass
class _EpisodeLog:
    reading: Reading
    context: Context
    task: dict[str, str] = field(default_factory=dict)
    success: dict[str, str] = field(default_factory=dict)
    caught: list[str] = field(default_factory=list)
    """what was said since the last episode was over"""
    reported: list[bool] = field(default_factory=list)
    """what the program takes for a success, to compare with its own total"""

    def hear(self, line: int, text: str) -> None:
        if told := COMPLETED.search(text):
            self._complete(line, int(told[1]))
        elif told := _CAUGHT.search(text):
            self.caught.append(told[1])
        elif told := _SUCCESS.search(text):
            self.success = {self.context.verdict_key: told[1]}
        elif told := _TASK.search(text):
            self.task = {"task": told[1]}
        elif _BEGUN.search(text):
            self.abandon(line)
        else:
            self._compare(line, text)

    def abandon(self, line: int) -> None:
        """An episode that something was said of and that was never counted."""
        if self.success or self.caught:
            self.reading.reject(line, "an episode that its program did not count: left out", RejectKind.TORN)
        self.success, self.caught = {}, []

    def _complete(self, line: int, number: int) -> None:
        fields: dict[str, Any] = self.success
        if self.caught:
            fields = {self.context.verdict_key: None, "exception": "; ".join(self.caught)}
        if number < 1:
            self.reading.reject(line, "an episode numbered 0: they count from 1")
        else:
            self.reported.append(verdict_of(self.success, self.context.identity.success)[0] is True)
            self.reading.take_episode(self.context, line, self.context.first + number - 1, {**fields, **self.task})
        self.success, self.caught = {}, []

    def _compare(self, line: int, text: str) -> None:
        counted, good = len(self.reported), sum(self.reported)
        if (told := _TOTAL.search(text)) and int(told[1]) != counted:
            self.reading.defect(line, f"its program speaks of {told[1]} episodes, and {counted} are told of above")
        if (told := _TOTAL_RATE.search(text)) and counted and not agrees(told[1], good, counted):
            self.reading.defect(line, f"its program's total of {told[1]} is not {good} of {counted} as told of above")


def printed_tuples(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """A printed tuple with a list of successes: `results:  ('env', [True, False], {...})`, then `success rate:  0.5`.

    The episodes are listed in the order in which they ended. The list may hold more than were asked for, since several
    copies of the environment can end in one step.
    """
    for found in _tuples(stream):
        match found.value:
            case None:
                reading.reject(found.line, "the printed results are cut off", RejectKind.TORN)
            case [str(), [], *_]:
                reading.reject(found.line, "results of no episodes")
            case [str(environment), [*successes], *rest]:
                own = context.named(names.policy(context.path, {environment}), environment)
                _take_tuple(reading, found, successes, rest, own)
            case _:
                reading.reject(found.line, "no environment with a list of successes")


@dataclass
class _Tuple:
    """What the log says of one environment."""

    line: int
    copies: int
    value: Any = None
    """None while the tuple is not whole"""
    rate: str | None = None
    _lines: list[str] = field(default_factory=list)
    _size: int = 0
    _tries: int = 0

    def extend(self, text: str) -> None:
        """A further line of the tuple, if it needs one."""
        self._size += len(text)
        if self.value is not None or self._size > TUPLE_LIMIT or self._tries > _TRIES:
            return
        self._lines.append(text)
        if text.rstrip().endswith(")"):
            self._tries += 1
            with suppress(ValueError):
                self.value = printed("\n".join(self._lines))


def _tuples(stream: BinaryIO) -> Iterator[_Tuple]:
    found: _Tuple | None = None
    copies = 1
    for number, text in lines(stream):
        if begun := RESULTS.match(text):
            if found:
                yield found
            found = _Tuple(number, copies)
            found.extend(begun["tuple"])
        elif asked := _ASKED.search(text):
            copies = int(asked["copies"])
        elif found and (rate := _RATE.match(text)):
            found.rate = rate["rate"]
            yield found
            found = None
        elif found:
            found.extend(text)
    if found:
        yield found


def _take_tuple(reading: Reading, found: _Tuple, successes: list[Any], rest: list[Any], context: Context) -> None:
    count, key, before = len(successes), context.verdict_key, len(reading.records)
    told = rest[0] if rest and isinstance(rest[0], dict) else {}
    columns = {name: values for name, values in told.items() if isinstance(values, list) and len(values) == count}
    for name in told.keys() - columns.keys():
        reading.defect(found.line, f"the field {name!r} does not hold one value per episode: left out")
    for index, success in enumerate(successes):
        fields = {name: values[index] for name, values in columns.items()}
        reading.take_episode(context, found.line, context.first + index, {**fields, key: success})
    reading.note_copies(found.copies, count)
    good = sum(record.success is True for record in reading.records[before:])
    if found.rate is not None and not agrees(found.rate, good, count):
        reading.defect(found.line, f"the printed rate of {found.rate} is not {good} of {count} as listed")


def training(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """`[train] step=4096 sps=980 avgReward(100)=0.250`: a training has steps and no episodes."""
    del context
    step, total = -1, ""
    for _, text in lines(stream):
        if announced := _STEPS.search(text):
            total = f" of {announced[1]}"
        elif told := STEP.search(text):
            step = max(step, int(told[1]))
    if step >= 0:
        reading.defect(0, f"a training, at step {step}{total}: it has no episodes to count")
