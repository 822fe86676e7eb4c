"""Reads logs of known programs: words about episodes, printed values, rates, and steps of trainings. Pure."""

from __future__ import annotations

import os
import re

from comborun.rules.facts import Fact
from comborun.rules.results.caught import Caught
from comborun.rules.results.fields import NO_RECORD, TEXT_MOST, TORN, RefusedError
from comborun.rules.results.one_row import verdict_of
from comborun.rules.results.rates import Count, agrees, printed, total
from comborun.rules.results.readers import NOTHING, LogLines, stating
from comborun.rules.results.stated_counts import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Callable, Iterator, Sequence

    from comborun.rules.results.fields import Identity
    from comborun.rules.results.readers import Entry

_BEGUN = re.compile(r"Starting episode \d+")
_TASK = re.compile(r"\bTask:\s*(\S.*?)\s*$")
_SUCCESS = re.compile(r"\bSuccess:\s*(\w+)")
_TOTAL = re.compile(r"\bTotal episodes:\s*(\d{1,18})\b")
_TOTAL_RATE = re.compile(r"\bTotal success rate:\s*([\d.eE+-]+|nan)")

REACH = 1 << 20
"""bytes at the beginning and at the end of a log that are searched: some programs report only at the end"""
VALUE_LIMIT = 1 << 20
"""characters of a printed value"""
_TRIES = 100
"""attempts to find the end of a value that spans lines"""
_RATE = re.compile(r"^\s*success rate:\s+([\d.]+|nan)")
_COPIES = re.compile(r"collecting \d{1,9} episodes for .+? with (\d{1,9}) vec envs")
_RANKS_SHOWN = 100

TRAJECTORIES = "num_trajectories"
RATES = ("success_once", "success_at_end")
"""the first is taken unless the grid names the other one"""
_NUMBER = r"(?P<value>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))"
_PAIRS = (
    re.compile(rf"'eval/(?P<key>\w+)':\s*(?:[\w.]+\()?{_NUMBER}"),
    re.compile(rf"[│|]\s*(?P<key>\w+)={_NUMBER}"),
    re.compile(rf"^\s*eval_(?P<key>\w+)_mean={_NUMBER}"),
)
_EPISODES = re.compile(r"resulting in (\d{1,18}) episodes")

STEP = re.compile(r"\[train\]\s+step=(\d{1,18})\b")
_STEPS = re.compile(r"[Tt]otal steps:\s*(\d{1,18})\b")


class ToldAtEnd(LogLines):
    """A log that may say more at its end."""

    @property
    def pending(self) -> bool:
        return True

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        yield from self.told()

    def told(self) -> Iterator[Entry]:
        """The entries of all lines together."""
        raise NotImplementedError


class EpisodeLog(ToldAtEnd):
    """Words about each episode: `Success: True`, then `# episodes completed so far: 12`.

    The program catches every error in an episode, prints it, and counts the episode as a failure of the policy. Here it
    is errored: a server that died says nothing about a policy.
    """

    def __init__(self, identity: Identity, path: str, mark: str) -> None:
        super().__init__(identity, path)
        self._completed = re.compile(mark)
        self._task: dict[str, str] = {}
        self._success: dict[str, str] = {}
        self._caught = Caught(identity.rules.errors)
        self._begun = False
        """whether an episode began since the last one ended"""
        self._reported: list[bool] = []
        """the program's own verdicts, to compare with its total"""

    def hear(self, text: str) -> Iterator[Entry]:
        if completed := self._completed.search(text):
            yield self._complete(int(completed.group(1)))
        elif self._caught.hear(text):
            pass
        elif success := _SUCCESS.search(text):
            self._success = {self.identity.verdict_key: success.group(1)}
        elif task := _TASK.search(text):
            self._task = {"task": task.group(1)}
        elif _BEGUN.search(text):
            yield from self._abandon()
            self._begun = True
        else:
            yield from self._compare(text)

    def told(self) -> Iterator[Entry]:
        yield from self._abandon()
        yield from ((0, NOTHING, remark, None) for remark in self._caught.remarks())

    def _abandon(self) -> Iterator[Entry]:
        """The entry of an episode that was begun and never counted."""
        if self._success or (self._begun and self._caught.texts):
            yield self.refused(TORN, "episode_not_counted")
        self._success, self._begun = {}, False
        self._caught.forget()

    def _complete(self, completed: int) -> Entry:
        fields: dict[str, Any] = dict(self._success)
        if error := self._caught.verdict():
            fields = {self.identity.verdict_key: None, "exception": error}
        success, self._success, self._begun = self._success, {}, False
        if completed < 1:
            return self.refused(NO_RECORD, "episode_numbered_0")
        self._reported.append(verdict_of(success, self.identity.success)[0] is True)
        return self.row({**fields, **self._task}, None, completed - 1)

    def _compare(self, text: str) -> Iterator[Entry]:
        counted, good = len(self._reported), sum(self._reported)
        total, rate = _TOTAL.search(text), _TOTAL_RATE.search(text)
        if total and int(total.group(1)) != counted:
            yield self.row(NOTHING, Fact("total_differs", total=int(total.group(1)), episodes=counted))
        if rate and counted and not agrees(rate.group(1), good, counted):
            yield self.row(NOTHING, Fact("total_rate_differs", rate=rate.group(1), successes=good, episodes=counted))


class Printed:
    """A printed value that may span lines."""

    def __init__(self, line: int, groups: dict[str, str], copies: int) -> None:
        self.line, self.groups = line, groups
        """`groups`: those of the mark before it"""
        self.copies = copies
        """of the environment, as the log said before"""
        self.rate = ""
        """that the log says after it"""
        self.value: Any = None
        """None while it is not complete"""
        self._lines: list[str] = []
        self._size = self._tries = 0

    def extend(self, text: str, end: str) -> None:
        """Add a line if the value needs one."""
        self._size += len(text)
        if self.value is not None or self.rate or self._size > VALUE_LIMIT or self._tries > _TRIES:
            return
        self._lines.append(text)
        if text.rstrip().endswith(end):
            self._tries += 1
            try:
                self.value = printed("\n".join(self._lines))
            except ValueError:
                return
            self._lines = []


class PrintedLog(ToldAtEnd):
    """Values that a program prints behind a `mark`, and that `end` with a bracket. `read` says what they mean."""

    def __init__(
        self, identity: Identity, path: str, mark: str, end: str, read: Callable[[PrintedLog], Iterator[Entry]]
    ) -> None:
        super().__init__(identity, path)
        self.values: list[Printed] = []
        self._mark, self._end, self._read = re.compile(mark), end, read
        self._copies = 1

    def hear(self, text: str) -> Iterator[Entry]:
        found, last = self._mark.search(text), self.values[-1] if self.values else None
        if found:
            self.values.append(Printed(self._line, found.groupdict(), self._copies))
            self.values[-1].extend(found.groupdict().get("value", ""), self._end)
        elif copies := _COPIES.search(text):
            self._copies = int(copies.group(1))
        elif last and (rate := _RATE.match(text)):
            last.rate = last.rate or rate.group(1)
        elif last:
            last.extend(text, self._end)
        return iter(())

    def told(self) -> Iterator[Entry]:
        return self._read(self)


def tuples(log: PrintedLog) -> Iterator[Entry]:
    """A tuple with a list of successes: `results:  ('env', [True, False], {...})`, then `success rate:  0.5`.

    The episodes are listed in the order in which they ended. The list may hold more than were asked for, since several
    copies of the environment can end in one step.
    """
    for one in log.values:
        value = one.value
        listed = isinstance(value, list) and [*map(type, value[:2])] == [str, list]
        if value is None:
            yield one.line, RefusedError(TORN, "printed_results_cut_off"), None, None
        elif listed and value[1]:
            yield from _of_tuple(log, one)
        else:
            code = "results_of_no_episodes" if listed else "no_list_of_successes"
            yield one.line, RefusedError(NO_RECORD, code), None, None


def _of_tuple(log: PrintedLog, told: Printed) -> Iterator[Entry]:
    line, identity = told.line, log.identity
    environment, successes = told.value[:2]
    values = told.value[2] if len(told.value) > 2 and isinstance(told.value[2], dict) else {}
    known = identity.environment and not identity.asks_environment
    same = {} if known else {identity.environment_field.name: environment}
    columns = {name: one for name, one in values.items() if isinstance(one, list) and len(one) == len(successes)}
    for name in values.keys() - columns.keys():
        yield line, NOTHING, Fact("field_of_other_length", field=name[:TEXT_MOST]), None
    good = 0
    for at, success in enumerate(successes):
        row = {**same, **{name: one[at] for name, one in columns.items()}, identity.verdict_key: success}
        good += verdict_of(row, identity.success)[0] is True
        yield line, row, None, at
    yield from log.ended(told.copies, len(successes))
    if told.rate and not agrees(told.rate, good, len(successes)):
        about = {"rate": told.rate, "successes": good, "episodes": len(successes)}
        yield line, NOTHING, Fact("printed_rate_differs", **about), None


def ranks(log: PrintedLog) -> Iterator[Entry]:
    """Each rank of a launcher prints its own metrics: `[Rank 0/2] Metrics: {'success_rate': 0.75, 'num_episodes': 8}`.

    Every rank ran its own episodes, so the total is their sum. If one rank printed nothing, nothing counts, because a
    part of the work is unknown. Only the last metrics of a rank count: earlier ones are of an earlier start.
    """
    told: dict[int, Count] = {}
    line = several = 0
    for one in log.values:
        if one.value is None:
            yield one.line, RefusedError(NO_RECORD, "not_a_printed_value"), None, None
            continue
        values = one.value
        if isinstance(values, dict):
            values = {key: value for key, value in values.items() if not isinstance(value, str)}
        try:
            told[int(one.groups["rank"])] = counted(values, log.identity.verdict_key)
        except RefusedError as refused:
            yield one.line, refused, None, None
        else:
            line, several = one.line, int(one.groups["ranks"])
    lacking = sorted({*range(several)} - {*told})
    if told and (lacking or not several):
        yield line, RefusedError(TORN, "ranks_missing", missing=lacking[:_RANKS_SHOWN], ranks=several), None, None
    elif told:
        yield from stating(total([told[rank] for rank in range(several)]), line)


def statistics(log: PrintedLog) -> Iterator[Entry]:
    """Robomimic's and RoboCasa's statistics, a JSON object over several lines; of several the last."""
    for one in log.values[-1:]:
        if one.value is None:
            yield one.line, RefusedError(TORN, "printed_statistics_cut_off"), None, None
        else:
            try:
                yield from stating(counted(one.value, log.identity.verdict_key), one.line)
            except RefusedError as refused:
                yield one.line, refused, None, None


def pairs(text: str) -> list[tuple[str, str]]:
    """The names and numbers in a line, as printed."""
    found = [(one.group("key"), one.group("value")) for pattern in _PAIRS for one in pattern.finditer(text)]
    episodes = _EPISODES.search(text)
    return [*found, (TRAJECTORIES, episodes.group(1))] if episodes else found


class Trajectories(ToldAtEnd):
    """A rate and a number of episodes, as numpy and torch print numbers, in one of three shapes:

    `{'eval/success_once': array(0.4375, dtype=float32), ..., 'eval/num_trajectories': 16}`, a table of
    `│success_once=0.4375 │num_trajectories=16 │`, and `resulting in 16 episodes` followed by lines of
    `eval_success_once_mean=0.875`. The last evaluation of a file counts.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._values: dict[str, str] = {}
        self._begun = 0
        self._last: tuple[int, Count] | None = None
        self._evaluations = 0
        self._differ = False

    def hear(self, text: str) -> Iterator[Entry]:
        found = pairs(text)
        if any(key in self._values for key, _ in found):  # a number that comes again begins another evaluation
            yield from self._close()
        if found and not self._values:
            self._begun = self._line
        self._values.update(found)

    def told(self) -> Iterator[Entry]:
        if self._values:
            yield from self._close()
        if self._last:
            yield from stating(self._last[1], self._last[0])
        if self._differ:
            yield 0, NOTHING, Fact("evaluations_differ", evaluations=self._evaluations), None

    def _close(self) -> Iterator[Entry]:
        values, self._values = self._values, {}
        try:
            one = counted(values, next((name for name in (self.identity.verdict_key, *RATES) if name in values), ""))
        except RefusedError as refused:
            yield self._begun, refused, None, None
            return
        before = self._last[1] if self._last else one
        self._differ = self._differ or (before.successes, before.episodes) != (one.successes, one.episodes)
        self._evaluations += 1
        self._last = (self._begun, one)


class Training(ToldAtEnd):
    """`[train] step=4096 sps=980 avgReward(100)=0.250`: a training has steps and no episodes."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._step, self._total = -1, 0

    def hear(self, text: str) -> Iterator[Entry]:
        announced, reached = _STEPS.search(text), STEP.search(text)
        if announced:
            self._total = int(announced.group(1))
        elif reached:
            self._step = max(self._step, int(reached.group(1)))
        return iter(())

    def told(self) -> Iterator[Entry]:
        if self._step >= 0:
            yield 0, NOTHING, Fact("training_at_step", step=self._step, steps=self._total or None), None


class _Marks(LogLines):
    """Recognizes the format of a log by the first line that only one format has, else by all its lines."""

    def __init__(self, identity: Identity, marks: Sequence[tuple[re.Pattern[str], str]]) -> None:
        super().__init__(identity)
        self.found = ""
        """the format whose mark was found first"""
        self.has_steps = False
        self._marks = marks
        self._seen: set[str] = set()

    def hear(self, text: str) -> Iterator[Entry]:
        if not self.found:
            self.found = next((name for mark, name in self._marks if mark.search(text)), "")
            self.has_steps = self.has_steps or STEP.search(text) is not None
            self._seen.update(key for key, _ in pairs(text))
        return iter(())

    @property
    def has_rate(self) -> bool:
        return TRAJECTORIES in self._seen and bool({self.identity.verdict_key, *RATES} & self._seen)


def log_format(stream: BinaryIO, identity: Identity, formats: Sequence[Any]) -> str | None:
    """Which of the formats a log has, from its beginning and its end; None: none, or none yet."""
    stream.seek(0)
    head = stream.read(REACH)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(len(head), size - REACH))
    marks = _Marks(identity, [(re.compile(one.mark), one.name) for one in formats if one.mark])
    list(marks.feed(head + b"\n" + stream.read(REACH)))
    list(marks.finish())
    return marks.found or next((one.name for one in formats if one.at_end and getattr(marks, one.at_end)), None)
