"""Success rates of so many episodes, and the logs that print them and nothing about any single episode."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters.log_text import lines, printed
from comborun.reporter.adapters.reading import Count, finite, wanted_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.reporter.adapters.reading import Context, Reading

SINGLE_PRECISION = 2.0**-23
"""relative; rates are often means of float32"""
_DECIMALS = re.compile(r"\.(\d*)(?:[eE]([+-]?\d{1,4}))?$")

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
RANK_EPISODES, RANK_RATE = "num_episodes", "success_rate"
"""the rate unless the grid names another"""


def count(rate: str, episodes: int, scale: int = 1) -> Count:
    """How many succeeded, from a printed rate. `scale` is 100 for percent. Raises ValueError for what is no rate, or
    one of no episodes."""
    if episodes <= 0:
        raise ValueError(f"a rate of {rate} over {episodes} episodes is no rate")
    try:
        value = float(rate) / scale
    except ValueError:
        raise ValueError(f"{rate!r} is no number") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{rate} is no rate between 0 and {scale}")
    successes = min(episodes, round(value * episodes))
    distance = abs(value * episodes - successes)
    return Count(successes, episodes, _complaint(rate, distance, episodes, _rounding(rate) / scale))


def agrees(rate: str, successes: int, episodes: int, scale: int = 1) -> bool:
    """Whether a printed rate says the same as counting, as far as its digits go."""
    try:
        value = float(rate) / scale
    except ValueError:
        return False
    return abs(value - successes / episodes) <= _rounding(rate) / scale + SINGLE_PRECISION if episodes else False


def _complaint(rate: str, distance: float, episodes: int, rounding: float) -> str:
    told = f"a rate of {rate} over {episodes} episodes"
    if distance > (rounding + SINGLE_PRECISION) * episodes:
        return f"{told} is no whole number of successes: the nearest one counts"
    if rounding * episodes >= 1 - distance:
        return f"{told} fits more than one number of successes: the nearest one counts"
    return ""


def _rounding(rate: str) -> float:
    """How far the number can be from what was printed: half a unit of its last digit."""
    found = _DECIMALS.search(rate.strip())
    if not found:
        return 0.0
    digits = len(found[1]) - int(found[2] or 0)
    return 0.5 * math.pow(10, -min(digits, 30)) if digits < 17 else 0.0


def trajectories(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """A rate and a number of episodes, as numpy and torch print numbers, in one of three shapes:

    `{'eval/success_once': array(0.4375, dtype=float32), ..., 'eval/num_trajectories': 16}`, a table of
    `│success_once=0.4375 │num_trajectories=16 │`, and `resulting in 16 episodes` followed by lines of
    `eval_success_once_mean=0.875`.
    """
    for line, values in _evaluations(stream):
        _take_evaluation(reading, line, values, context)
    if len({(found.successes, found.episodes) for found in reading.aggregates}) > 1:
        reading.defect(0, f"{len(reading.aggregates)} evaluations in one file, and not alike: the last one counts")
    reading.aggregates[:-1] = []


def pairs(text: str) -> list[tuple[str, str]]:
    """Names and numbers of a line, as printed."""
    found = [(match["key"], match["value"]) for pattern in _PAIRS for match in pattern.finditer(text)]
    episodes = _EPISODES.search(text)
    return [*found, (TRAJECTORIES, episodes[1])] if episodes else found


def _evaluations(stream: BinaryIO) -> Iterator[tuple[int, dict[str, str]]]:
    """The line where an evaluation begins, and its numbers; it ends where one of its numbers comes again."""
    values: dict[str, str] = {}
    begun = 0
    for number, text in lines(stream):
        found = pairs(text)
        if any(key in values for key, _ in found):
            yield begun, values
            values = {}
        if found and not values:
            begun = number
        values.update(found)
    if values:
        yield begun, values


def _take_evaluation(reading: Reading, line: int, values: Mapping[str, str], context: Context) -> None:
    rate = next((name for name in (context.verdict_key, *RATES) if name in values), "")
    try:
        counted = count(values[rate], _whole(values[TRAJECTORIES]))
    except KeyError:
        reading.reject(line, f"an evaluation without a {'number of episodes' if rate else 'success rate'}")
    except ValueError as error:
        reading.reject(line, str(error))
    else:
        numbers = {name: float(value) for name, value in values.items()}
        reading.take_count(context, line, counted, wanted_metrics(numbers, context, (rate, TRAJECTORIES)))


def _whole(number: str) -> int:
    """Tables print whole numbers as 16.0 too."""
    if not float(number).is_integer():
        raise ValueError(f"{number} is no number of episodes")
    return int(float(number))


@dataclass(frozen=True)
class _Rank:
    line: int
    ranks: int
    counted: Count
    metrics: Mapping[str, float]


def ranks(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """Each rank of a launcher tells its own metrics: `[Rank 0/2] Metrics: {'success_rate': 0.75, 'num_episodes': 8}`.

    Every rank made all of its episodes, so the total is their sum. A rank that tells nothing leaves a part of the work
    unknown: then nothing counts.
    """
    told: dict[int, _Rank] = {}
    for number, text in lines(stream):
        if match := METRICS.search(text):
            try:  # the last one of a rank: what came before was of an earlier start
                told[int(match["rank"])] = _rank(number, int(match["ranks"]), printed(match["values"]), context)
            except ValueError as error:
                reading.reject(number, str(error))
    if not told:
        return
    last = max(told.values(), key=lambda one: one.line)
    if lacking := sorted({*range(last.ranks)} - {*told}):
        shown = ", ".join(map(str, lacking))
        reading.reject(last.line, f"no metrics of rank {shown} of {last.ranks}: nothing is counted")
        return
    parts = [told[rank] for rank in range(last.ranks)]
    complaint = next((one.counted.complaint for one in parts if one.counted.complaint), "")
    successes, episodes = (sum(getattr(one.counted, name) for one in parts) for name in ("successes", "episodes"))
    reading.take_count(context, last.line, Count(successes, episodes, complaint), _means(parts, episodes))


def _rank(line: int, ranks: int, values: Any, context: Context) -> _Rank:
    given = values if isinstance(values, dict) else {}
    numbers = {key: one for key, one in given.items() if isinstance(one, int | float) and finite(one)}
    numbers = {key: one for key, one in numbers.items() if not isinstance(one, bool)}
    rate = context.verdict_key if context.verdict_key in numbers else RANK_RATE
    if rate not in numbers or not float(numbers.get(RANK_EPISODES, 0.5)).is_integer():
        raise ValueError(f"metrics without {RANK_EPISODES} and {rate}")
    counted = count(repr(numbers[rate]), int(numbers[RANK_EPISODES]))
    return _Rank(line, ranks, counted, wanted_metrics(numbers, context, (rate, RANK_EPISODES)))


def _means(parts: Sequence[_Rank], episodes: int) -> dict[str, float]:
    """Of the metrics that every rank tells, weighed by its episodes."""
    shared = set.intersection(*(set(one.metrics) for one in parts))
    return {key: sum(one.metrics[key] * one.counted.episodes for one in parts) / episodes for key in sorted(shared)}
