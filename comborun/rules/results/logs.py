"""Reads logs with results of episodes, as words, printed values or rates, and logs of trainings. Pure."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from comborun.rules.facts import Fact
from comborun.rules.results.caught import Caught
from comborun.rules.results.fields import NO_RECORD, TEXT_MOST, TORN, RefusedError, verdict_of
from comborun.rules.results.rates import Count, agrees, printed, total
from comborun.rules.results.readers import NOTHING, LogLines
from comborun.rules.results.stated_counts import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    from comborun.rules.results.fields import Identity
    from comborun.rules.results.readers import Entry

COMPLETED = re.compile(r"# episodes completed so far:\s*(\d{1,18})\b")
_BEGUN = re.compile(r"Starting episode \d+")
_TASK = re.compile(r"\bTask:\s*(\S.*?)\s*$")
_SUCCESS = re.compile(r"\bSuccess:\s*(\w+)")
_TOTAL = re.compile(r"\bTotal episodes:\s*(\d{1,18})\b")
_TOTAL_RATE = re.compile(r"\bTotal success rate:\s*([\d.eE+-]+|nan)")

RESULTS = re.compile(r"^\s*results:\s*(?P<tuple>\(.*)$")
VALUE_LIMIT = 1 << 20
"""characters of a printed value"""
_RATE = re.compile(r"^\s*success rate:\s+(?P<rate>[\d.]+|nan)")
_ASKED = re.compile(r"collecting (?P<episodes>\d{1,9}) episodes for (?P<env>.+?) with (?P<copies>\d{1,9}) vec envs")
_TRIES = 100
"""attempts to find the end of a value that spans lines"""

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

METRICS = re.compile(r"\[Rank (?P<rank>\d{1,5})/(?P<ranks>\d{1,5})\] Metrics: (?P<values>\{.*\})")
_RANKS_SHOWN = 100
STATISTICS = re.compile(r"^[\s=]*Average Rollout Stats\b")

STEP = re.compile(r"\[train\]\s+step=(\d{1,18})\b")
_STEPS = re.compile(r"[Tt]otal steps:\s*(\d{1,18})\b")


class EpisodeLog(LogLines):
    """Words about each episode: `Success: True`, then `# episodes completed so far: 12`.

    The program catches every error in an episode, prints it, and counts the episode as a failure of the policy. Here it
    is errored: a server that died says nothing about a policy.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._task: dict[str, str] = {}
        self._success: dict[str, str] = {}
        self._caught = Caught(identity.rules.errors)
        self._begun = False
        """whether an episode began since the last one ended"""
        self._reported: list[bool] = []
        """the program's own verdicts, to compare with its total"""

    def hear(self, text: str) -> Iterator[Entry]:
        completed = COMPLETED.search(text)
        if completed:
            yield self._complete(int(completed.group(1)))
            return
        if self._caught.hear(text):
            return
        for pattern, keep in ((_SUCCESS, self._judge), (_TASK, self._begin)):
            found = pattern.search(text)
            if found:
                keep(found.group(1))
                return
        if _BEGUN.search(text):
            yield from self._abandon()
            self._begun = True
        else:
            yield from self._compare(text)

    @property
    def pending(self) -> bool:
        return True

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        yield from self._abandon()
        for remark in self._caught.remarks():
            yield 0, NOTHING, remark, None

    def _judge(self, word: str) -> None:
        self._success = {self.identity.verdict_key: word}

    def _begin(self, task: str) -> None:
        self._task = {"task": task}

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

    def __init__(self, line: int, end: str) -> None:
        self.line = line
        self.text = ""
        """empty while the value is not complete"""
        self._end = end
        self._lines: list[str] = []
        self._size = self._tries = 0

    def extend(self, text: str) -> str:
        """Add a line if the value needs one. Returns the whole text if the value may end here."""
        self._size += len(text)
        if self._size > VALUE_LIMIT or self._tries > _TRIES:
            return ""
        self._lines.append(text)
        if not text.rstrip().endswith(self._end):
            return ""
        self._tries += 1
        return "\n".join(self._lines)


class PrintedTuples(LogLines):
    """A printed tuple with a list of successes: `results:  ('env', [True, False], {...})`, then `success rate:  0.5`.

    The episodes are listed in the order in which they ended. The list may hold more than were asked for, since several
    copies of the environment can end in one step.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._found: Printed | None = None
        self._value: Any = None
        self._asked = 1

    def hear(self, text: str) -> Iterator[Entry]:
        begun, asked, rate = RESULTS.match(text), _ASKED.search(text), _RATE.match(text)
        if begun:
            yield from self._close()
            self._found = Printed(self._line, ")")
            self._extend(begun.group("tuple"))
        elif asked:
            self._asked = int(asked.group("copies"))
        elif self._found and rate:
            yield from self._close(rate.group("rate"))
        elif self._found and self._value is None:
            self._extend(text)

    @property
    def pending(self) -> bool:
        return True

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        yield from self._close()

    def _extend(self, text: str) -> None:
        whole_text = self._found.extend(text) if self._found else ""
        if whole_text:
            with suppress(ValueError):
                self._value = printed(whole_text)

    def _close(self, rate: str | None = None) -> Iterator[Entry]:
        found, value = self._found, self._value
        self._found = self._value = None
        if found is None:
            return
        line = found.line
        if value is None:
            yield line, RefusedError(TORN, "printed_results_cut_off"), None, None
        elif not isinstance(value, list) or len(value) < 2 or not isinstance(value[0], str):
            yield line, RefusedError(NO_RECORD, "no_list_of_successes"), None, None
        elif not isinstance(value[1], list) or not value[1]:
            code = "results_of_no_episodes" if value[1] == [] else "no_list_of_successes"
            yield line, RefusedError(NO_RECORD, code), None, None
        else:
            yield from self._take(line, value, rate)

    def _take(self, line: int, value: list[Any], rate: str | None) -> Iterator[Entry]:
        environment, successes = value[0], value[1]
        values = value[2] if len(value) > 2 and isinstance(value[2], dict) else {}
        known = self.identity.environment and not self.identity.asks_environment
        same = {} if known else {self.identity.environment_field.name: environment}
        columns = {name: one for name, one in values.items() if isinstance(one, list) and len(one) == len(successes)}
        for name in values.keys() - columns.keys():
            yield line, NOTHING, Fact("field_of_other_length", field=name[:TEXT_MOST]), None
        key, good = self.identity.verdict_key, 0
        for at, success in enumerate(successes):
            row = {**same, **{name: one[at] for name, one in columns.items()}, key: success}
            good += verdict_of(row, self.identity.success)[0] is True
            yield line, row, None, at
        yield from self.ended(self._asked, len(successes))
        if rate is not None and not agrees(rate, good, len(successes)):
            yield line, NOTHING, Fact("printed_rate_differs", rate=rate, successes=good, episodes=len(successes)), None


class CountedLog(LogLines):
    """A log whose counts are known only at its end."""

    @property
    def pending(self) -> bool:
        return True

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        yield from self.counts()

    def counts(self) -> Iterator[Entry]:
        """The counts of all lines together."""
        raise NotImplementedError

    def counted(self, line: int, value: object) -> Iterator[Entry]:
        """The count that a printed value states."""
        try:
            found = counted(value, self.identity.verdict_key)
        except RefusedError as refused:
            yield line, refused, None, None
        else:
            yield line, found, found.complaint, None


def pairs(text: str) -> list[tuple[str, str]]:
    """The names and numbers in a line, as printed."""
    found = [(one.group("key"), one.group("value")) for pattern in _PAIRS for one in pattern.finditer(text)]
    episodes = _EPISODES.search(text)
    return [*found, (TRAJECTORIES, episodes.group(1))] if episodes else found


class Trajectories(CountedLog):
    """A rate and a number of episodes, as numpy and torch print numbers, in one of three shapes:

    `{'eval/success_once': array(0.4375, dtype=float32), ..., 'eval/num_trajectories': 16}`, a table of
    `│success_once=0.4375 │num_trajectories=16 │`, and `resulting in 16 episodes` followed by lines of
    `eval_success_once_mean=0.875`. The last evaluation of a file counts.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._values: dict[str, str] = {}
        self._begun = 0
        self._refused: list[Entry] = []
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

    def counts(self) -> Iterator[Entry]:
        if self._values:
            yield from self._close()
        if self._last:
            line, last = self._last
            yield line, last, last.complaint, None
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


class Ranks(CountedLog):
    """Each rank of a launcher prints its own metrics: `[Rank 0/2] Metrics: {'success_rate': 0.75, 'num_episodes': 8}`.

    Every rank ran its own episodes, so the total is their sum. If one rank printed nothing, nothing counts, because a
    part of the work is unknown.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._told: dict[int, tuple[int, int, Count]] = {}
        """rank -> the line of its last metrics, the number of ranks, and its count"""

    def hear(self, text: str) -> Iterator[Entry]:
        found = METRICS.search(text)
        if found:
            try:  # only the last metrics of a rank count: earlier ones are of an earlier start
                values = printed(found.group("values"))
                if isinstance(values, dict):
                    values = {key: one for key, one in values.items() if not isinstance(one, str)}
                one = counted(values, self.identity.verdict_key)
                self._told[int(found.group("rank"))] = (self._line, int(found.group("ranks")), one)
            except RefusedError as refused:
                yield self._line, refused, None, None
            except ValueError:
                yield self.refused(NO_RECORD, "not_a_printed_value")

    def counts(self) -> Iterator[Entry]:
        if not self._told:
            return
        line, ranks, _ = max(self._told.values(), key=lambda one: one[0])
        lacking = sorted({*range(ranks)} - {*self._told})
        if lacking or not ranks:
            yield line, RefusedError(TORN, "ranks_missing", missing=lacking[:_RANKS_SHOWN], ranks=ranks), None, None
            return
        whole = total([self._told[rank][2] for rank in range(ranks)])
        yield line, whole, whole.complaint, None


class Statistics(CountedLog):
    """Robomimic's and RoboCasa's `Average Rollout Stats`, a JSON object over several lines."""

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._open: Printed | None = None
        self._value: Any = None
        self._at = 0

    def hear(self, text: str) -> Iterator[Entry]:
        if STATISTICS.search(text):
            self._open = Printed(self._line, "}")
            self._value, self._at = None, self._line
        elif self._open:
            complete = self._open.extend(text)
            if complete:
                with suppress(ValueError, RecursionError):
                    self._value, self._open = json.loads(complete), None
        return iter(())

    def counts(self) -> Iterator[Entry]:
        if self._value is None and self._at:
            yield self._at, RefusedError(TORN, "printed_statistics_cut_off"), None, None
        elif self._at:
            yield from self.counted(self._at, self._value)


class Training(CountedLog):
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

    def counts(self) -> Iterator[Entry]:
        if self._step >= 0:
            yield 0, NOTHING, Fact("training_at_step", step=self._step, steps=self._total or None), None


class Marks(LogLines):
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
