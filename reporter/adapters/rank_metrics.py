"""A log in which each rank of a launcher tells its own metrics: `[Rank 0/2] Metrics: {'success_rate': 0.75,
'num_episodes': 8}`. Every rank made all of its episodes, so the total is their sum.

A rank that tells nothing leaves a part of the work unknown: then nothing counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import RejectKind, literals, log_text, places
from comborun.reporter.adapters.findings import Findings, named
from comborun.reporter.adapters.rates import Count, RateError, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.reporter.adapters import Context, Reading

METRICS = re.compile(r"\[Rank (?P<rank>\d{1,5})/(?P<ranks>\d{1,5})\] Metrics: (?P<values>\{.*\})")
EPISODES = "num_episodes"
RATE = "success_rate"
"""unless the grid names another"""


@dataclass(frozen=True)
class _Told:
    line: int
    ranks: int
    counted: Count
    values: Mapping[str, float]


def read(stream: BinaryIO, context: Context) -> Reading:
    findings = Findings(named(context, *places.combo(context.path)))
    told: dict[int, _Told] = {}
    for number, text in log_text.lines(stream):
        if (match := METRICS.search(text)) and (found := _told(findings, number, match)):
            told[int(match["rank"])] = found  # the last one of a rank: what came before was of an earlier start
    if told:
        _sum(findings, told)
    return findings.reading()


def _told(findings: Findings, line: int, match: re.Match[str]) -> _Told | None:
    rate = findings.context.rules.success
    try:
        numbers = dict(_numbers(literals.parse(match["values"])))
        name = rate if rate in numbers else RATE
        counted = _counted(numbers, name)
    except (literals.LiteralError, RateError) as error:
        findings.reject(line, RejectKind.NOT_A_RECORD, str(error))
        return None
    shown = {key: value for key, value in numbers.items() if key not in {name, EPISODES}}
    return _Told(line, int(match["ranks"]), counted, shown)


def _counted(numbers: Mapping[str, float], name: str) -> Count:
    if name not in numbers or not float(numbers.get(EPISODES, 0.5)).is_integer():
        raise RateError(f"metrics without {EPISODES} and {name}")
    return count(repr(numbers[name]), int(numbers[EPISODES]))


def _numbers(values: Any) -> Iterator[tuple[str, float]]:
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
            yield key, value


def _sum(findings: Findings, told: Mapping[int, _Told]) -> None:
    last = max(told.values(), key=lambda one: one.line)
    if lacking := sorted({*range(last.ranks)} - {*told}):
        message = f"no metrics of rank {', '.join(map(str, lacking))} of {last.ranks}: nothing is counted"
        findings.reject(last.line, RejectKind.NOT_A_RECORD, message)
        return
    counts = [told[rank].counted for rank in range(last.ranks)]
    episodes = sum(one.episodes for one in counts)
    complaint = next((one.complaint for one in counts if one.complaint), "")
    total = Count(sum(one.successes for one in counts), episodes, complaint)
    findings.take_count(last.line, findings.context, total, _means(findings, told, last.ranks))


def _means(findings: Findings, told: Mapping[int, _Told], ranks: int) -> dict[str, float]:
    """Of the metrics that every rank tells, weighed by its episodes."""
    wanted = findings.context.rules.metrics
    shared = set.intersection(*(set(told[rank].values) for rank in range(ranks)))
    weights = [told[rank].counted.episodes for rank in range(ranks)]
    return {
        key: sum(told[rank].values[key] * weights[rank] for rank in range(ranks)) / sum(weights)
        for key in sorted(shared)
        if not wanted or key in wanted
    }
