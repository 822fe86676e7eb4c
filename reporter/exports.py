"""The report for programs: final_benchmark_report.json and episodes.csv (docs/report.md documents both). Pure."""

from __future__ import annotations

import csv
import io
import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from comborun.episode import EpisodeRecord
from reporter.summary import describe_missing
from reporter.text import instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comborun.episode import JsonValue
    from reporter.summary import ComboSummary, Summary

SCHEMA = 1

COLUMNS = ("policy", "environment", "episode", "seed", "verdict", "success", "session", "attempt", "source")
FIELD_LIMIT = 200
"""columns for fields of the records; beyond it they share the last column, as JSON"""

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def report_json(summary: Summary) -> str:
    timing, counts, quality = summary.timing, summary.counts, summary.quality
    document = {
        "schema": SCHEMA,
        "run": summary.run,
        "grid": summary.grid,
        "started": _moment(timing.started),
        "finished": _moment(timing.finished),
        "makespan_seconds": _rounded(timing.makespan, 3),
        "sequential_seconds": _rounded(timing.sequential, 3),
        "policies": summary.policies,
        "environments": summary.environments,
        "combos": [_combo(combo) for combo in summary.combos],
        "totals": {
            "combos": len(summary.combos),
            "planned": counts.planned,
            "completed": counts.completed,
            "successes": counts.successes,
            "errored": counts.errored,
            "missing": counts.missing,
            "attempts": sum(combo.ending.attempts for combo in summary.combos),
        },
        "quality": {
            **{name: value for name, value in vars(quality).items() if name != "findings"},
            "findings": [vars(finding) for finding in quality.findings],
        },
        "provenance": dict(sorted(summary.provenance.items())),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def episodes_csv(episodes: Sequence[EpisodeRecord]) -> str:
    """One row per episode that counts; a field of the records per column, metrics first, each kind by name."""
    names = _field_names(episodes)
    shown, rest = names[:FIELD_LIMIT], frozenset(names[FIELD_LIMIT:])
    key = attrgetter(*COLUMNS)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    header = [*COLUMNS, *(f"record.{name}" if name in {*COLUMNS, "other"} else name for name in shown)]
    writer.writerow([_cell(name) for name in header + ["other"] * bool(rest)])
    for record in episodes:
        fields = {**record.extra, **record.metrics}
        other = {name: fields[name] for name in sorted(fields.keys() & rest)}
        cells = [*key(record), *(fields.get(name) for name in shown)]
        writer.writerow([_cell(cell) for cell in cells + [other or None] * bool(rest)])
    return buffer.getvalue()


def _combo(combo: ComboSummary) -> dict[str, Any]:
    counts, rate, planned = combo.counts, combo.rate, combo.rate_of_planned
    return {
        "policy": combo.policy,
        "environment": combo.environment,
        "unit": combo.unit,
        "planned": combo.planned,
        "completed": counts.completed if counts else None,
        "successes": counts.successes if counts else None,
        "errored": counts.errored if counts else None,
        "missing": counts.missing if counts else None,
        "missing_episodes": describe_missing(counts) if counts else None,
        "success_rate": rate.rate if rate else None,
        "interval": _limits(rate.interval if rate else None),
        "success_rate_of_planned": planned.rate if planned else None,
        "interval_of_planned": _limits(planned.interval if planned else None),
        "outcome": combo.ending.outcome,
        "cause": combo.ending.cause or None,
        "warnings": combo.ending.warnings,
        "attempts": combo.ending.attempts,
        "seconds": _rounded(combo.ending.seconds, 3),
        "metrics": {mean.name: {"mean": mean.mean, "n": mean.n} for mean in combo.metrics},
    }


def _limits(interval: tuple[float, float] | None) -> list[float] | None:
    """Ten decimals: more than anybody needs, and fewer than versions of scipy may differ in."""
    return None if interval is None else [round(limit, 10) for limit in interval]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _moment(timestamp: float | None) -> str | None:
    moment = instant(timestamp)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _field_names(episodes: Iterable[EpisodeRecord]) -> list[str]:
    metrics = {name: None for record in episodes for name in record.metrics}
    others = {name: None for record in episodes for name in record.extra}
    return sorted(metrics) + sorted(others.keys() - metrics.keys())


def _cell(value: JsonValue) -> JsonValue:
    """A cell that no spreadsheet runs as a formula: text that could start one gets an apostrophe in front."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_STARTS_A_FORMULA) else value
    return value
