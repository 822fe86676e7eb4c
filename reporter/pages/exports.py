"""episodes.csv and summary.csv: the report for tables (docs/report.md documents both). Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from comborun.attempt import EpisodeRecord
from comborun.reporter.pages.numbers import limits, scaled
from comborun.reporter.pages.page import letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.attempt import JsonValue
    from comborun.reporter.summary import ComboSummary, MetricMean, Summary

COLUMNS = ("policy", "environment", "episode", "seed", "verdict", "success", "session", "attempt", "source")
SUMMARY_COLUMNS = (
    *("policy", "environment", "unit", "planned", "completed", "successes", "errored", "missing", "retried"),
    *("success_rate", "low", "high", "success_rate_of_planned", "low_of_planned", "high_of_planned"),
    *("worst", "best", "letters", "outcome", "attempts", "seconds", "peak_memory_kib"),
)
FIELD_LIMIT = 200
"""columns for fields of the records; beyond it they share the last column, as JSON"""

_PLAIN = frozenset((float, int, type(None)))
"""most cells of a large run: what needs no second look"""
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""what a terminal acts upon; tabs and ends of lines stay, a cell may hold them"""


def episodes_csv(episodes: Sequence[EpisodeRecord]) -> str:
    """One row per episode that counts; a field of the records per column, metrics first, each kind by name."""
    names = _field_names(episodes)
    shown, rest = names[:FIELD_LIMIT], frozenset(names[FIELD_LIMIT:])
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    header = [*COLUMNS, *(f"record.{name}" if name in {*COLUMNS, "other"} else name for name in shown)]
    writer.writerow([_cell(name) for name in header + ["other"] * bool(rest)])
    for record in episodes:
        fields = {**record.extra, **record.metrics}
        cells = [*_fixed_cells(record), *map(fields.get, shown)]
        if rest:
            cells.append({name: fields[name] for name in sorted(fields.keys() & rest)} or None)
        writer.writerow([cell if type(cell) in _PLAIN else _cell(cell) for cell in cells])
    return buffer.getvalue()


def _fixed_cells(record: EpisodeRecord) -> tuple[JsonValue, ...]:
    """In the order of COLUMNS."""
    return (
        *(record.policy, record.environment, record.episode, record.seed, record.verdict.value),
        *(record.success, record.session, record.attempt, record.source),
    )


def summary_csv(summary: Summary) -> str:
    """One row per combo; after the fixed columns four for each metric."""
    metrics = tuple(dict.fromkeys(mean.name for combo in summary.combos for mean in combo.metrics))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    parts = ("mean", "low", "high", "n")
    writer.writerow([*SUMMARY_COLUMNS, *(_cell(f"{name}.{part}") for name in metrics for part in parts)])
    for combo in summary.combos:
        found = {mean.name: mean for mean in combo.metrics}
        cells = [*_summary_cells(combo, summary), *(cell for name in metrics for cell in _metric(found.get(name)))]
        writer.writerow([_cell(cell) for cell in cells])
    return buffer.getvalue()


def _summary_cells(combo: ComboSummary, summary: Summary) -> Iterator[JsonValue]:
    """In the order of SUMMARY_COLUMNS."""
    counts, rate, planned = combo.counts, combo.rate, combo.rate_of_planned
    yield from (combo.policy, combo.environment, combo.unit, combo.planned)
    if counts:
        yield from (counts.completed, counts.successes, counts.errored, counts.missing, combo.retried)
    else:
        yield from (None,) * 5
    yield from (rate.rate if rate else None, *_limits(rate.interval if rate else None))
    yield from (planned.rate if planned else None, *_limits(planned.interval if planned else None))
    yield from (*_limits(combo.bounds), letters(combo, summary) or None)
    ending = combo.ending
    peak = None if ending.peak_memory is None else ending.peak_memory // 1024
    yield from (str(ending.outcome or "") or None, ending.attempts, ending.seconds, peak)


def _metric(mean: MetricMean | None) -> Iterator[JsonValue]:
    low, high = scaled(mean.interval) if mean and mean.interval else (None, None)
    yield from (mean.mean, low, high, mean.n) if mean else (None,) * 4


def _limits(interval: tuple[float, float] | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else limits(interval)


def _field_names(episodes: Iterable[EpisodeRecord]) -> list[str]:
    metrics, others = set[str](), set[str]()
    for record in episodes:
        metrics.update(record.metrics)
        others.update(record.extra)
    return sorted(metrics) + sorted(others - metrics)


def _cell(value: JsonValue) -> JsonValue:
    """A cell that no spreadsheet runs as a formula and no terminal obeys: the first kind of text gets an apostrophe in
    front, control characters become escapes."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return _text(json.dumps(value, ensure_ascii=False, sort_keys=True))
    return value


@lru_cache(maxsize=1024)
def _text(value: str) -> str:
    plain = value if value.isprintable() else _CONTROL.sub(_escaped, value)
    return f"'{plain}" if plain.startswith(_STARTS_A_FORMULA) else plain


def _escaped(control: re.Match[str]) -> str:
    return control[0].encode("unicode_escape").decode("ascii")
