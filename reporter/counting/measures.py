"""What the episodes of a combo measure besides their success rate. Pure."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, compress, groupby
from math import comb, fsum
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Literal

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, having, metric_columns
from comborun.model.work import Combo
from comborun.reporter.evidence.fields import Fields
from comborun.reporter.json_types import Range, Share
from comborun.reporter.statistics.proportion import (
    Incidence,
    Interval,
    Proportion,
    incidence,
    mean_interval,
    proportion,
)
from comborun.rules.results.episodes import COPY, ORDER

NO_FIELDS = Fields()
JUDGED = (Verdict.SUCCESS, Verdict.FAILURE)
LIMIT = 40
FEWEST_FOR_PERCENTILES = 20
"""with fewer values, the 5 % and 95 % percentiles are close to the extremes"""
FAILURE_FIELDS = (
    *("failure", "failure_kind", "failure_mode", "failure_reason", "termination", "termination_reason", "end_reason"),
    *("reason", "error"),
)
"""the plainest first"""
KINDS = 12
NO_KIND = frozenset(
    {"unknown", "unlabeled", "unlabelled", "unspecified", "n/a", "na", "none", "null", "nan", "tbd", "todo", "?", "-"}
)
"""words for a failure whose kind nobody told"""
ERRORED = "no verdict (errored)"
KIND_LENGTH = 80
TIME_FIELDS = {
    **dict.fromkeys(
        ("time_to_success_s", "time_to_success", "sim_time_s", "time_s", "duration_s", "episode_length_s"), "s"
    ),
    **dict.fromkeys(("steps_to_success", "steps", "num_steps", "episode_length", "episode_steps"), "steps"),
}
"""field -> unit, the clearest first; wall time is left out, since it depends on the machine"""
FEW_TIMES = 5
"""fewest successes that can show that a length is the horizon"""
POINTS = 36

Running = tuple[tuple[int, int], ...]
"""(completed, successes) of the first episodes by index, at points dense enough for a line"""


@dataclass(frozen=True)
class MetricMean:
    name: str
    mean: float
    n: int
    interval: Range | None
    """95 % interval of the mean (t); None with fewer than 5 values, or only equal ones"""
    percentiles: Range | None
    """5 % and 95 % of the episodes; None below 20 values"""
    starts: int | None = None
    """number of different starts, if some repeat: the interval counts each once"""
    only: Literal["success", "failure"] | None = None
    """the verdict of all episodes that have it, if others lack it"""
    runs: int | None = None
    """number of runs if several are joined: the interval is without the spread between them"""


_MORE_IS_BETTER = re.compile(r"(?i)returns?|rewards?|scores?|progress|accuracy|\br$")
_NOT_SO = re.compile(r"(?i)cost|err|loss|regret|penal|negative|neg_|punish|variance|std|collision|length|time|distance")


@dataclass(frozen=True)
class Measure:
    """The metric by which policies are ordered if there are no verdicts."""

    name: str
    better: Literal["higher", "lower", ""] = ""
    """which values are better; empty: nobody says it"""
    told: bool = False
    """whether the grid says it; else the name does"""

    @classmethod
    def of(cls, name: str, lower: Iterable[str], higher: Iterable[str]) -> Measure:
        """`lower` and `higher`: the metrics whose lower or higher values are better, by the grid."""
        if name in (told := {**dict.fromkeys(higher, "higher"), **dict.fromkeys(lower, "lower")}):
            return cls(name, "lower" if told[name] == "lower" else "higher", told=True)
        named = _MORE_IS_BETTER.search(name) and not _NOT_SO.search(name)
        return cls(name, "higher" if named else "")


@dataclass(frozen=True)
class FailureKinds:
    field: str | None
    """the field of the records that says it; None where no record has one"""
    kinds: Mapping[str, int]
    """kind -> failed episodes, the most frequent first"""
    other: int
    """of less frequent kinds"""
    untold: int
    """without a kind"""
    errored: int

    @property
    def total(self) -> int:
        return sum(self.kinds.values()) + self.other + self.untold + self.errored


@dataclass(frozen=True)
class TimeToSuccess:
    field: str
    """the metric with the time of each success, or with the length of the episode"""
    unit: str
    curve: Incidence
    untimed: int
    """successful episodes without the field; they count in n only"""


def metrics(
    records: Sequence[EpisodeRecord],
    wanted: tuple[str, ...],
    groups: Sequence[frozenset[int]] | None = None,
    fields: Fields = NO_FIELDS,
) -> tuple[MetricMean, ...]:
    """`groups`: the episodes of each start, if some repeat."""
    counted = having(records, Verdict.SUCCESS, Verdict.FAILURE, Verdict.MEASURED)
    values = fields.columns(counted, wanted)
    named = [*(name for name in wanted if name in values), *(name for name in values if name not in wanted)]
    start_of = {episode: start for start, group in enumerate(groups or ()) for episode in group}
    return tuple(_metric(name, values[name], counted, start_of, fields) for name in named[: len(wanted) or LIMIT])


def _metric(
    name: str, values: Sequence[float], records: Sequence[EpisodeRecord], start_of: Mapping[int, int], fields: Fields
) -> MetricMean:
    independent, starts = values, None
    some = len(values) < len(records)
    having_it = [one for one in records if fields.value(one, name) is not None] if start_of or some else ()
    if start_of:
        by_start: dict[object, list[float]] = {}
        for record, value in zip(having_it, values, strict=True):
            by_start.setdefault(start_of.get(record.episode, ("alone", record.episode)), []).append(value)
        independent = [*map(_mean, by_start.values())]
        starts = len(independent) if len(independent) < len(values) else None
    interval, ordered = mean_interval(independent), sorted(values)
    spread = (_between(ordered, 5), _between(ordered, 95)) if len(values) >= FEWEST_FOR_PERCENTILES else None
    verdicts = {one.verdict for one in having_it} if some else set()
    only: Literal["success", "failure"] | None = None
    if len(verdicts) == 1 < len({one.verdict for one in records}):
        only = "success" if verdicts == {Verdict.SUCCESS} else "failure" if verdicts == {Verdict.FAILURE} else None
    return MetricMean(name, _mean(values), len(values), interval, spread, starts, only)


def _between(ordered: Sequence[float], percent: int) -> float:
    """A percentile of sorted values, between neighbours in proportion."""
    at, beyond = divmod(percent * (len(ordered) - 1), 100)
    share = beyond / 100
    return ordered[at] * (1 - share) + ordered[at + 1] * share if share else ordered[at]


def _mean(values: Sequence[float]) -> float:
    try:
        return fsum(values) / len(values)
    except OverflowError:
        return fsum(value / len(values) for value in values)


@dataclass(frozen=True)
class EpisodeEnds:
    field: str | None
    """the field of the records that says it; None where no record has one"""
    episodes: Sequence[int]
    words: Sequence[str]
    """of each of them; empty if its record does not say so"""
    errored: Sequence[int]

    @property
    def failed(self) -> int:
        """failed episodes"""
        return len(self.words)

    def by(self, kind: str) -> frozenset[int]:
        return frozenset(self.errored if kind == ERRORED else compress(self.episodes, map(kind.__eq__, self.words)))


def ends_of(records: Sequence[EpisodeRecord]) -> EpisodeEnds:
    failed = having(records, Verdict.FAILURE)
    errored = [*map(attrgetter("episode"), having(records, Verdict.ERRORED))]
    held = {name for _, names in {*map(attrgetter("names"), failed)} for name in names}
    for field in (name for name in FAILURE_FIELDS if name in held):
        column = field_column(failed, field)
        words = [_first_line(value) if isinstance(value, str) else "" for value in column]
        if any(words):
            return EpisodeEnds(field, [*map(attrgetter("episode"), failed)], words, errored)
    return EpisodeEnds(None, (), [""] * len(failed), errored)


def failure_kinds(ends: EpisodeEnds) -> FailureKinds:
    kinds = Counter(ends.words)
    untold = kinds.pop("", 0)
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    other = sum(count for _, count in ranked[KINDS:])
    return FailureKinds(ends.field, dict(ranked[:KINDS]), other, untold, len(ends.errored))


@lru_cache(maxsize=1024)
def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return "" if line.casefold() in NO_KIND else sys.intern(line[:KIND_LENGTH])


def time_field(combos: Iterable[Sequence[EpisodeRecord]]) -> str | None:
    """The field for all curves of a report: the one of most combos, then the clearest. Steps are whole numbers.

    A length that ends at the horizon whether an episode succeeds or not says nothing of when it succeeded.
    """
    held: defaultdict[str, list[list[float]]] = defaultdict(list)
    for records in combos:
        for name, values in metric_columns(having(records, Verdict.SUCCESS), TIME_FIELDS).items():
            held[name].append([value for value in values if value >= 0])
    found = {name: len(columns) for name, columns in held.items() if _is_a_time(name, [*chain(*columns)])}
    return min(found, key=lambda name: (-found[name], tuple(TIME_FIELDS).index(name)), default=None)


def _is_a_time(name: str, values: Sequence[float]) -> bool:
    if not values or (TIME_FIELDS[name] == "steps" and not all(map(float.is_integer, values))):
        return False
    return len(values) < FEW_TIMES or 2 * values.count(max(values)) < len(values)


def time_to_success(records: Sequence[EpisodeRecord], field: str | None) -> TimeToSuccess | None:
    """Over the completed episodes; None if no successful one has the field. A negative time is none."""
    succeeded = having(records, Verdict.SUCCESS)
    times = metric_columns(succeeded, {field}).get(field, []) if field else []
    times = [time for time in times if time >= 0]
    if not field or not times:
        return None
    failed = metric_columns(having(records, Verdict.FAILURE), {field}).get(field, [])
    if max(times) in failed and not _is_a_time(field, times):  # of this policy, it is the horizon
        return None
    curve = incidence(times, len(judged(records)))
    return TimeToSuccess(field, TIME_FIELDS[field], curve, len(succeeded) - len(times))


@dataclass(frozen=True)
class Balanced:
    """The rate over the same number of episodes of each copy of an environment. Of the first K episodes that end, too
    many are short."""

    rate: Proportion
    copies: int
    each: int


def balanced_rate(records: Sequence[EpisodeRecord]) -> Balanced | None:
    """None unless every completed record names its copy of the environment and its position in it."""
    copies: dict[object, list[tuple[float, bool]]] = {}
    for record in records:
        if record.verdict not in JUDGED:
            continue
        order, copy = record.metric(ORDER), record.field(COPY)
        if order is None or not isinstance(copy, str | int | float):
            return None
        copies.setdefault(copy, []).append((order, record.verdict is Verdict.SUCCESS))
    if len(copies) < 2:
        return None
    each = min(map(len, copies.values()))
    firsts = (sorted(found, key=itemgetter(0))[:each] for found in copies.values())
    successes = sum(success for first in firsts for _, success in first)
    return Balanced(proportion(successes, each * len(copies)), len(copies), each)


def running(episodes: Sequence[EpisodeRecord]) -> Mapping[Combo, Running]:
    """For every combo with a completed episode; `episodes` are sorted by combo and index. Of a long line some points
    are left out, fewer of them at its start."""
    found = {}
    for combo, group in groupby(episodes, attrgetter("policy", "environment")):
        verdicts = [*map(attrgetter("verdict"), judged(tuple(group)))]
        if count := len(verdicts):
            step = max(1, count // POINTS)
            shown = {*range(1, min(count, POINTS // 4) + 1), *range(step, count + 1, step), count}
            successes = [*accumulate(verdict is Verdict.SUCCESS for verdict in verdicts)]
            found[combo] = tuple((n, int(successes[n - 1])) for n in sorted(shown))
    return found


def judged(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    return having(records, *JUDGED)


# -- how alike the episodes of one start go, where starts were run several times --------------------------------------

MOST = 10
"""most repeats k of which pass^k is given"""


@dataclass(frozen=True)
class Consistency:
    starts: int
    """different starts that were run at least twice"""
    each: int
    """the fewest episodes of any of them"""
    always: int
    """starts whose episodes all succeeded"""
    never: int
    """starts whose episodes all failed"""
    passes: Sequence[Share]
    """the chance that k episodes of one start all succeed, for k from 1 on (pass^k)"""
    agreement: Share
    """the chance that two episodes of one start end alike (test and retest)"""
    interval: Interval | None
    """95 % interval of it, over the starts (t); None with fewer than 5 starts, or only equal ones"""


def consistency(groups: Sequence[Collection[int]] | None, successes: Collection[int]) -> Consistency | None:
    """`groups`: the episodes of each start. None unless at least two starts were run at least twice."""
    counts = [(sum(one in successes for one in group), len(group)) for group in groups or () if len(group) > 1]
    if len(counts) < 2:
        return None
    each = min(n for _, n in counts)
    agree = [(comb(k, 2) + comb(n - k, 2)) / comb(n, 2) for k, n in counts]
    found = mean_interval(agree)
    return Consistency(
        starts=len(counts),
        each=each,
        always=sum(k == n for k, n in counts),
        never=sum(k == 0 for k, _ in counts),
        passes=tuple(fmean(comb(k, i) / comb(n, i) for k, n in counts) for i in range(1, min(each, MOST) + 1)),
        agreement=fmean(agree),
        interval=found and (max(0.0, found[0]), min(1.0, found[1])),
    )
