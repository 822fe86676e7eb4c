"""The report's tables for programs: episodes.csv and summary.csv (docs/report.md). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any

from comborun.model.attempt import EpisodeRecord, JsonValue, Verdict, field_column, metric_columns
from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.pages.document import shape_of
from comborun.reporter.summary import Summary

COLUMNS = ("policy", "environment", "episode", "seed", "verdict", "success", "session", "attempt", "source")
_PAIRS = {
    "interval": ("low", "high"),
    "interval_of_planned": ("low_of_planned", "high_of_planned"),
    "bounds": ("worst", "best"),
}
_SUMMARY = (
    *("policy", "environment", "unit", "planned", "completed", "successes", "errored", "missing", "retried"),
    *("success_rate", "interval", "success_rate_of_planned", "interval_of_planned", "bounds", "letters"),
    *("outcome", "attempts", "seconds", "peak_memory_kib", "leans", "at_least", "not_paired", "limits"),
)
"""keys of a combo in final_benchmark_report.json; an interval has two columns"""
SUMMARY_COLUMNS = tuple(column for key in _SUMMARY for column in _PAIRS.get(key, (key,)))
FIELD_LIMIT = 200
"""most columns for fields of the records; the rest share the last column, as JSON"""

PART = 4096
_SUCCESS = {Verdict.SUCCESS: "true", Verdict.FAILURE: "false", Verdict.ERRORED: "", Verdict.MEASURED: ""}

_SHARED = ("policy", "environment", "session", "attempt", "path")
"""the same for the records of one file"""
Names = tuple[tuple[str, ...], tuple[str, ...]]
"""of the metrics of a record, and of its other fields"""
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""what a terminal acts upon, without tabs and ends of lines"""


def episodes_csv(episodes: Sequence[EpisodeRecord]) -> Iterator[str]:
    """One row per episode that counts, one column per field of the records. In parts, to save memory."""
    metrics, others = set[str](), set[str]()
    for own, rest_of_them in {record.names for record in episodes}:
        metrics.update(own)
        others.update(rest_of_them)
    names = sorted(metrics) + sorted(others - metrics)
    shown, rest = fields = names[:FIELD_LIMIT], frozenset(names[FIELD_LIMIT:])
    header = [*COLUMNS, *(f"record.{name}" if name in {*COLUMNS, "other"} else name for name in shown)]
    yield _csv([[*header, "other"] if rest else header])
    for start in range(0, len(episodes), PART):
        alike = groupby(episodes[start : start + PART], attrgetter(*_SHARED, "names"))
        rows = (row for (*shared, names), group in alike for row in _rows(shared, names, [*group], fields))
        yield "\n".join(chain(map(",".join, rows), [""]))


def _rows(
    shared: Sequence[Any], names: Names, records: Sequence[EpisodeRecord], fields: tuple[Sequence[str], frozenset[str]]
) -> Iterator[Sequence[str]]:
    """The rows of records of one file with the same fields. Column by column, since a run may have millions."""
    policy, environment, session, attempt, path = shared
    numbers = metric_columns(records)
    cells: dict[str, Iterable[str]] = {name: map(repr, values) for name, values in numbers.items()}
    cells |= {name: _cells(field_column(records, name)) for name in names[1]}
    shown, rest = fields
    left = sorted(rest.intersection(cells))
    columns: list[Iterable[str]] = [cells.get(name, repeat("")) for name in shown]
    if rest:
        others = zip(*(numbers.get(name) or field_column(records, name) for name in left), strict=True)
        columns.append((_cell(dict(zip(left, row, strict=True))) for row in others) if left else repeat(""))
    verdicts = [*map(attrgetter("verdict"), records)]
    lines = map(attrgetter("line"), records)
    before, colon, after = _text(f"{path}:").rpartition(":")  # and a quotation mark after it, if the path has one
    return zip(
        *(repeat(_text(policy)), repeat(_text(environment))),
        map(str, map(attrgetter("episode"), records)),
        _cells([*map(attrgetter("seed"), records)]),
        *(verdicts, map(_SUCCESS.__getitem__, verdicts), repeat(_text(session)), repeat(str(attempt))),
        (f"{before}{colon}{line}{after}" if line else _text(path) for line in lines),
        *columns,
        strict=False,
    )


def summary_csv(summary: Summary) -> str:
    metrics = tuple(dict.fromkeys(mean.name for combo in summary.combos for mean in combo.metrics))
    header = [*SUMMARY_COLUMNS, *(f"{name}.{part}" for name in metrics for part in ("mean", "low", "high", "n"))]
    return _csv([header, *(_summarized(shape_of(ComboSummary).write(combo), metrics) for combo in summary.combos)])


def _summarized(combo: dict[str, Any], metrics: Iterable[str]) -> Iterator[JsonValue]:
    for key in _SUMMARY:
        yield from (combo[key] or (None, None)) if key in _PAIRS else (combo.get(key),)
    for name in metrics:
        found = combo["metrics"].get(name)
        yield from (found["mean"], *(found["interval"] or (None, None)), found["n"]) if found else (None,) * 4


def _csv(rows: Iterable[Iterable[JsonValue]]) -> str:
    return "".join(f"{','.join(map(_cell, cells))}\n" for cells in rows)


def _cells(values: Sequence[JsonValue]) -> Iterable[str]:
    kinds = {*map(type, values)}
    return map(str if kinds == {int} else _text if kinds == {str} else _cell, values)  # type: ignore[arg-type]


def _cell(value: JsonValue) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return _text(json.dumps(value, ensure_ascii=False, sort_keys=True))
    return str(value)


@lru_cache(maxsize=1024)
def _text(value: str) -> str:
    """A cell that no spreadsheet runs as a formula (an apostrophe before it) and no terminal obeys (escapes)."""
    plain = (
        value
        if value.isprintable()
        else _CONTROL.sub(lambda one: one[0].encode("unicode_escape").decode("ascii"), value)
    )
    plain = f"'{plain}" if plain.startswith(_STARTS_A_FORMULA) else plain
    quoted = plain.replace('"', '""')
    return f'"{quoted}"' if quoted != plain or "," in plain or "\n" in plain else plain
