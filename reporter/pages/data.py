"""The report for programs: final_benchmark_report.json, episodes.csv, summary.csv (docs/report.md). Pure.

Numbers have ten digits, since versions of scipy may differ in more.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import groupby, repeat
from math import floor, log10
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from comborun.model.attempt import Verdict, field_column, metric_columns
from comborun.reporter.comparing.comparisons import Overall
from comborun.reporter.records.collector import SCHEMA_FILE
from comborun.reporter.text import instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.model.attempt import EpisodeRecord, JsonValue
    from comborun.model.plan import Session
    from comborun.reporter.comparing.comparisons import Comparison, EnvironmentComparisons, Tested
    from comborun.reporter.comparing.graded import Graded, KindComparison
    from comborun.reporter.comparing.orders import Strength, Trend
    from comborun.reporter.counting.combo import ComboSummary, Counts, MacroMean
    from comborun.reporter.records.collector import Attempt
    from comborun.reporter.summary import Summary

SCHEMA = 1
DIGITS = 10
_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
COUNTED = ("completed", "successes", "errored", "missing")

Pair = tuple[float, float]


def significant(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def limits(interval: Pair | None) -> Pair | None:
    """Of rates and of differences between rates: ten decimals."""
    return interval and (round(interval[0], DIGITS), round(interval[1], DIGITS))


def scaled(interval: Pair | None) -> Pair | None:
    """Of numbers with any unit: ten decimals or, for small numbers, ten digits."""
    size = max(map(abs, interval)) if interval else 0
    decimals = DIGITS + max(0, -1 - floor(log10(size))) if size else DIGITS
    return interval and (round(interval[0], decimals), round(interval[1], decimals))


def rounded(value: float | None, decimals: int) -> float | None:
    return None if value is None else round(value, decimals)


def as_json(document: dict[str, Any]) -> str:
    """A line for each key, and for each item of a list."""
    lines = (f" {_encoded(key)}: {_listed(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _listed(value: object) -> str:
    if not isinstance(value, list | tuple) or not value:
        return _encoded(value)
    return "[\n  " + ",\n  ".join(map(_encoded, value)) + "\n ]"


# -- JSON -------------------------------------------------------------------------------------------------------------


def report_json(summary: Summary) -> str:
    timing, counts, quality, comparisons = summary.timing, summary.counts, summary.quality, summary.comparisons
    canary, strengths = summary.canary, summary.strengths
    document = {
        "$schema": SCHEMA_FILE,
        "schema": SCHEMA,
        "run": summary.run,
        "grid": summary.grid,
        "started": _moment(timing.started),
        "finished": _moment(timing.finished),
        "makespan_seconds": rounded(timing.makespan, 3),
        "sequential_seconds": rounded(timing.sequential, 3),
        "bound_seconds": rounded(timing.bound, 3),
        "policies": summary.policies,
        "environments": summary.environments,
        "combos": [_combo(combo, summary) for combo in summary.combos],
        "totals": {
            "combos": len(summary.combos),
            **told(counts, "planned", *COUNTED),
            **_measured(counts),
            "attempts": sum(combo.ending.attempts for combo in summary.combos),
        },
        "family": comparisons.size,
        "claims": summary.claims.decided,
        "undecided": summary.claims.left_open,
        "comparisons": [_comparison(one) for one in comparisons.all],
        "overall": [_overall(one) for one in comparisons.overall],
        **({"graded": [_graded(one) for one in comparisons.graded]} if comparisons.graded else {}),
        **({"failure_kinds": [_kind(one) for one in summary.kinds]} if summary.kinds else {}),
        **({"trends": [_trend(one) for one in summary.trends]} if summary.trends else {}),
        "detectable": [_detectable(group) for group in comparisons.environments],
        "means": [_mean(mean, comparisons.rank(mean.policy)) for mean in summary.macro_means],
        **({} if strengths is None else {"strengths": [_strength(one) for one in strengths]}),
        "attempts": [_span(*span) for span in timing.spans],
        "quality": {**quality.counts, "findings": [vars(finding) for finding in quality.findings]},
        **({"canary": {"run": canary.run, "combos": [vars(combo) for combo in canary.combos]}} if canary else {}),
        "provenance": dict(sorted(summary.provenance.items())),
    }
    return as_json(document)


def _detectable(group: EnvironmentComparisons) -> dict[str, Any]:
    gaps = {"alone": rounded(group.gap, 4), "in_family": rounded(group.gap_in_family, 4)}
    return {**told(group, "environment", "n"), **gaps}


def _strength(one: Strength) -> dict[str, Any]:
    interval = [round(limit, 4) for limit in one.interval]
    return {"policy": one.policy, "strength": round(one.value, 4), "interval": interval}


def _measured(counts: Counts | None) -> dict[str, int]:
    """Episodes with numbers alone, where there are any."""
    return {"measured": counts.measured} if counts and counts.measured else {}


def _combo(combo: ComboSummary, summary: Summary) -> dict[str, Any]:
    counts, rate, planned, ending = combo.counts, combo.rate, combo.rate_of_planned, combo.ending
    failures, time, balanced = combo.failures, combo.time_to_success, combo.balanced
    return {
        **told(combo, "policy", "environment", "unit", "planned"),
        **told(counts, *COUNTED),
        **_measured(counts),
        "missing_episodes": counts.which_missing if counts else None,
        "success_rate": rate.rate if rate else None,
        "interval": limits(rate.interval) if rate else None,
        "success_rate_of_planned": planned.rate if planned else None,
        "interval_of_planned": limits(planned.interval) if planned else None,
        "bounds": limits(combo.bounds),
        "balanced": balanced
        and {
            "success_rate": balanced.rate.rate,
            "interval": limits(balanced.rate.interval),
            **told(balanced.rate, "successes", "n"),
            **told(balanced, "copies", "each"),
        },
        "letters": summary.comparisons.letters_of(*combo.key) or None,
        "retried": combo.retried if counts else None,
        "outcome": ending.outcome,
        "cause": ending.cause or None,
        "warnings": ending.warnings,
        "attempts": ending.attempts,
        "seconds": rounded(ending.seconds, 3),
        "peak_memory_kib": _kib(ending.peak_memory),
        "metrics": {
            mean.name: {
                **told(mean, "mean", "n"),
                "interval": scaled(mean.interval),
                "percentiles": scaled(mean.percentiles),
            }
            for mean in combo.metrics
        },
        "failures": failures
        and {"field": failures.field, "kinds": dict(failures.counts), **told(failures, "other", "untold")},
        "time_to_success": time
        and {**told(time, "field", "unit"), "median": time.curve.median, "untimed": time.untimed},
        **({"not_needed": combo.not_needed} if combo.not_needed else {}),
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    test = one.sequential
    return {
        **told(one, "environment", "a", "b"),
        "successes_a": one.rate_a.successes,
        "n_a": one.rate_a.n,
        "successes_b": one.rate_b.successes,
        "n_b": one.rate_b.n,
        "difference": significant(one.difference),
        "interval": limits(one.interval),
        **told(one, "interval_method", "test"),
        **_tested(one),
        **told(one, "paired", "pairing", "so_far"),
        **({"starts_a": one.rate_a.starts} if one.rate_a.starts else {}),
        **({"starts_b": one.rate_b.starts} if one.rate_b.starts else {}),
        **({"sequential": {**told(test, "n_max"), "stopped_early": test.stopped, "alpha": test.alpha}} if test else {}),
        **({"prevented": one.prevented} if one.prevented else {}),
    }


def _overall(one: Overall) -> dict[str, Any]:
    return {
        **told(one, "a", "b", "environments"),
        "mean_a": significant(one.mean_a),
        "mean_b": significant(one.mean_b),
        "difference": significant(one.difference),
        "interval": limits(one.interval),
        **_tested(one),
        "paired_environments": one.paired,
        "range": limits(one.range),
        "heterogeneity": significant(one.heterogeneity),
    }


def _graded(one: Graded) -> dict[str, Any]:
    return {
        **told(one, "metric", "environments", "a", "b", "n", "paired", "test"),
        "interquartile_means": scaled(one.middle),
        "chance": significant(one.chance),
        "interval": limits(one.chance_interval),
        **_more(one),
    }


def _kind(one: KindComparison) -> dict[str, Any]:
    found = one.found
    place = {"environments": found.environments} if isinstance(found, Overall) else {"environment": found.environment}
    numbers = {"difference": significant(found.difference), "interval": limits(found.interval)}
    return {"kind": one.kind, **place, **told(found, "a", "b"), **numbers, **_more(found)}


def _more(one: Tested) -> dict[str, Any]:
    """With `more` instead of `better`: more of a metric or of failures is not better."""
    tested = _tested(one)
    return {**{key: value for key, value in tested.items() if key != "better"}, "more": tested["better"]}


def _trend(one: Trend) -> dict[str, Any]:
    return {
        **told(one, "environments", "episodes"),
        "checkpoints": [
            {**told(each, "policy", "step"), "rate": significant(each.rate), "interval": limits(each.interval)}
            for each in one.checkpoints
        ],
        "best": one.best.policy,
        "measured_again": rounded(one.measured_again, DIGITS),
    }


def _tested(one: Tested) -> dict[str, Any]:
    ps = {name: significant(getattr(one, name)) for name in ("p", "p_holm", "worst_p", "worst_holm")}
    return {**ps, **told(one, "better", "only_completed", "unknown")}


def _mean(mean: MacroMean, rank: tuple[int, int] | None) -> dict[str, Any]:
    return {
        **told(mean, "policy", "environments", "episodes", "mean"),
        "interval": limits(mean.interval),
        **told(mean, "missing", "partial"),
        "rank": rank,
        **({"early": mean.early} if mean.early else {}),
    }


def _span(started: float, session: Session, attempt: Attempt) -> dict[str, Any]:
    end = attempt.end
    return {
        "session": session.name,
        **told(session, "policy", "environment"),
        "attempt": attempt.number,
        "started": _moment(started),
        "ended": _moment(attempt.ended),
        "outcome": end and end.outcome,
        "gpus": attempt.begin.gpus if attempt.begin else "",
        "peak_memory_kib": _kib(end.peak_memory if end else None),
    }


def told(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) if value else None for name in names}


def _kib(memory: int | None) -> int | None:
    return None if memory is None else memory // 1024


def _moment(timestamp: float | None) -> str | None:
    moment = instant(timestamp)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- CSV --------------------------------------------------------------------------------------------------------------

COLUMNS = ("policy", "environment", "episode", "seed", "verdict", "success", "session", "attempt", "source")
_PAIRS = {
    "interval": ("low", "high"),
    "interval_of_planned": ("low_of_planned", "high_of_planned"),
    "bounds": ("worst", "best"),
}
_SUMMARY = (
    *("policy", "environment", "unit", "planned", *COUNTED, "retried", "success_rate", "interval"),
    *("success_rate_of_planned", "interval_of_planned", "bounds", "letters"),
    *("outcome", "attempts", "seconds", "peak_memory_kib"),
)
"""keys of a combo in the JSON; an interval has two columns"""
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
        yield "".join(f"{line}\n" for line in map(",".join, rows))


def _rows(
    shared: Sequence[Any], names: Names, records: Sequence[EpisodeRecord], fields: tuple[Sequence[str], frozenset[str]]
) -> Iterator[Sequence[str]]:
    """The rows of records of one file with the same fields. Column by column, since a run may have millions."""
    policy, environment, session, attempt, path = shared
    numbers = metric_columns(records)
    cells = {name: map(repr, values) for name, values in numbers.items()}
    cells |= {name: map(_cell, field_column(records, name)) for name in names[1]}
    shown, rest = fields
    left = sorted(rest.intersection(cells))
    columns: list[Iterable[str]] = [cells.get(name, repeat("")) for name in shown]
    if rest:
        others = zip(*(numbers.get(name) or field_column(records, name) for name in left), strict=True)
        columns.append((_cell(dict(zip(left, row, strict=True))) for row in others) if left else repeat(""))
    verdicts = [*map(attrgetter("verdict"), records)]
    lines = map(attrgetter("line"), records)
    before, colon, after = _text(f"{path}:").rpartition(":")  # and perhaps a quotation mark behind it
    return zip(
        *(repeat(_text(policy)), repeat(_text(environment))),
        map(str, map(attrgetter("episode"), records)),
        ("" if seed is None else str(seed) for seed in map(attrgetter("seed"), records)),
        *(verdicts, map(_SUCCESS.__getitem__, verdicts), repeat(_text(session)), repeat(str(attempt))),
        (f"{before}{colon}{line}{after}" if line else _text(path) for line in lines),
        *columns,
        strict=False,
    )


def summary_csv(summary: Summary) -> str:
    metrics = tuple(dict.fromkeys(mean.name for combo in summary.combos for mean in combo.metrics))
    header = [*SUMMARY_COLUMNS, *(f"{name}.{part}" for name in metrics for part in ("mean", "low", "high", "n"))]
    return _csv([header, *(_summarized(_combo(combo, summary), metrics) for combo in summary.combos)])


def _summarized(combo: dict[str, Any], metrics: Iterable[str]) -> Iterator[JsonValue]:
    for key in _SUMMARY:
        yield from (combo[key] or (None, None)) if key in _PAIRS else (combo[key],)
    for name in metrics:
        found = combo["metrics"].get(name)
        yield from (found["mean"], *(found["interval"] or (None, None)), found["n"]) if found else (None,) * 4


def _csv(rows: Iterable[Iterable[JsonValue]]) -> str:
    return "".join(f"{','.join(map(_cell, cells))}\n" for cells in rows)


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
