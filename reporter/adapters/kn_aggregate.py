"""A success rate and a number of episodes in a log, and nothing about any single episode.

Three shapes, with numpy and torch printing their numbers as they like: `{'eval/success_once': array(0.4375,
dtype=float32), ..., 'eval/num_trajectories': 16}`, a table of `│success_once=0.4375 │num_trajectories=16 │`, and
`resulting in 16 episodes` followed by lines of `eval_success_once_mean=0.875`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import RejectKind, log_text, places
from comborun.reporter.adapters.findings import Findings, named
from comborun.reporter.adapters.rates import RateError, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.reporter.adapters import Context, Reading

EPISODES = "num_trajectories"
RATES = ("success_once", "success_at_end")
"""the first is taken unless the grid names the other one"""

_NUMBER = r"(?P<value>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))"
_PAIRS = (
    re.compile(rf"'eval/(?P<key>\w+)':\s*(?:[\w.]+\()?{_NUMBER}"),
    re.compile(rf"[│|]\s*(?P<key>\w+)={_NUMBER}"),
    re.compile(rf"^\s*eval_(?P<key>\w+)_mean={_NUMBER}"),
)
_EPISODES = re.compile(r"resulting in (\d{1,18}) episodes")


@dataclass(frozen=True)
class _Evaluation:
    line: int
    values: Mapping[str, str]
    """as printed: the digits say how exact they are"""


def read(stream: BinaryIO, context: Context) -> Reading:
    findings = Findings(named(context, *places.combo(context.path)))
    for evaluation in _evaluations(stream):
        _take(findings, evaluation)
    distinct = {(found.successes, found.episodes) for found in findings.aggregates}
    if len(distinct) > 1:
        findings.defect(0, f"{len(distinct)} different evaluations in one file: the last one counts")
    findings.aggregates[:-1] = []
    return findings.reading()


def pairs(text: str) -> list[tuple[str, str]]:
    """Names and numbers of a line, as printed."""
    found = [(match["key"], match["value"]) for pattern in _PAIRS for match in pattern.finditer(text)]
    if episodes := _EPISODES.search(text):
        found.append((EPISODES, episodes[1]))
    return found


def _evaluations(stream: BinaryIO) -> Iterator[_Evaluation]:
    """An evaluation ends where one of its numbers comes again."""
    values: dict[str, str] = {}
    begun = 0
    for number, text in log_text.lines(stream):
        found = pairs(text)
        if any(key in values for key, _ in found):
            yield _Evaluation(begun, values)
            values = {}
        if found and not values:
            begun = number
        values.update(found)
    if values:
        yield _Evaluation(begun, values)


def _take(findings: Findings, evaluation: _Evaluation) -> None:
    context, values, line = findings.context, evaluation.values, evaluation.line
    wanted = (context.rules.success, *RATES)
    name = next((name for name in wanted if name in values), None)
    if name is None or EPISODES not in values:
        lacking = "number of episodes" if name else "success rate"
        findings.reject(line, RejectKind.NOT_A_RECORD, f"an evaluation without a {lacking}")
        return
    try:
        episodes = _whole(values[EPISODES])
        counted = count(values[name], episodes)
    except RateError as error:
        findings.reject(line, RejectKind.NOT_A_RECORD, str(error))
        return
    findings.take_count(line, context, counted, _metrics(values, name, context))


def _whole(number: str) -> int:
    """Tables print whole numbers as 16.0 too."""
    value = float(number)
    if not value.is_integer():
        raise RateError(f"{number} is no number of episodes")
    return int(value)


def _metrics(values: Mapping[str, str], rate: str, context: Context) -> dict[str, float]:
    wanted = context.rules.metrics
    numbers = {key: float(value) for key, value in values.items() if key not in {rate, EPISODES}}
    return {key: value for key, value in numbers.items() if math.isfinite(value) and (not wanted or key in wanted)}
