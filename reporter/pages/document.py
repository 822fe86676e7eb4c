"""final_benchmark_report.json: the report for programs; a JSON Schema beside it says what holds. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from comborun.reporter.pages.numbers import limits, rounded, scaled, significant
from comborun.reporter.pages.page import letters
from comborun.reporter.records.usage import busy
from comborun.reporter.summary import describe_missing
from comborun.reporter.text import instant

if TYPE_CHECKING:
    from comborun.reporter.comparing.canary import Canary
    from comborun.reporter.comparing.comparisons import Comparison, EnvironmentComparisons
    from comborun.reporter.counting.aggregates import MacroMean
    from comborun.reporter.counting.schedule import Schedule, Stay
    from comborun.reporter.records.usage import Busy
    from comborun.reporter.summary import ComboSummary, MetricMean, Summary

SCHEMA = 1
SCHEMA_FILE = "final_benchmark_report.schema.json"


def report_json(summary: Summary, ran: Schedule) -> str:
    timing, counts, quality = summary.timing, summary.counts, summary.quality
    document = {
        "$schema": SCHEMA_FILE,
        "schema": SCHEMA,
        "run": summary.run,
        "grid": summary.grid,
        "started": _moment(timing.started),
        "finished": _moment(timing.finished),
        "makespan_seconds": rounded(timing.makespan, 3),
        "sequential_seconds": rounded(timing.sequential, 3),
        "bound_seconds": rounded(ran.bound, 3),
        "policies": summary.policies,
        "environments": summary.environments,
        "combos": [_combo(combo, letters(combo, summary)) for combo in summary.combos],
        "totals": {
            "combos": len(summary.combos),
            "planned": counts.planned,
            "completed": counts.completed,
            "successes": counts.successes,
            "errored": counts.errored,
            "missing": counts.missing,
            "attempts": sum(combo.ending.attempts for combo in summary.combos),
        },
        "family": summary.comparisons.size,
        "claims": summary.claims.decided,
        "undecided": summary.claims.left_open,
        "comparisons": [_comparison(one) for one in summary.comparisons.all],
        "detectable": [_detectable(group) for group in summary.comparisons.environments],
        "means": [_mean(mean) for mean in summary.macro_means],
        "attempts": [_stay(stay) for stay in ran.stays],
        "usage": _usage(busy(ran.usage)),
        "quality": {
            **{name: value for name, value in vars(quality).items() if name != "findings"},
            "findings": [vars(finding) for finding in quality.findings],
        },
        **({"canary": _canary(summary.canary)} if summary.canary else {}),
        "provenance": dict(sorted(summary.provenance.items())),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _canary(canary: Canary) -> dict[str, Any]:
    return {"run": canary.run, "combos": [vars(combo) for combo in canary.combos]}


def _combo(combo: ComboSummary, letters_: str) -> dict[str, Any]:
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
        "bounds": _limits(combo.bounds),
        "balanced": _balanced(combo),
        "letters": letters_ or None,
        "retried": combo.retried if counts else None,
        "outcome": combo.ending.outcome,
        "cause": combo.ending.cause or None,
        "warnings": combo.ending.warnings,
        "attempts": combo.ending.attempts,
        "seconds": rounded(combo.ending.seconds, 3),
        "peak_memory_kib": _kib(combo.ending.peak_memory),
        "metrics": {mean.name: _metric(mean) for mean in combo.metrics},
        "failures": _failures(combo),
        "time_to_success": _time(combo),
        **({"not_needed": combo.not_needed} if combo.not_needed else {}),
    }


def _metric(mean: MetricMean) -> dict[str, Any]:
    return {
        "mean": mean.mean,
        "n": mean.n,
        "interval": mean.interval and scaled(mean.interval),
        "percentiles": mean.percentiles and scaled(mean.percentiles),
    }


def _balanced(combo: ComboSummary) -> dict[str, Any] | None:
    found = combo.balanced
    if found is None:
        return None
    return {
        "success_rate": found.rate.rate,
        "interval": _limits(found.rate.interval),
        "successes": found.rate.successes,
        "n": found.rate.n,
        "copies": found.copies,
        "each": found.each,
    }


def _failures(combo: ComboSummary) -> dict[str, Any] | None:
    found = combo.failures
    if found is None:
        return None
    return {"field": found.field, "kinds": dict(found.counts), "other": found.other, "untold": found.untold}


def _time(combo: ComboSummary) -> dict[str, Any] | None:
    found = combo.time_to_success
    if found is None:
        return None
    return {"field": found.field, "unit": found.unit, "median": found.curve.median, "untimed": found.untimed}


def _comparison(one: Comparison) -> dict[str, Any]:
    told: dict[str, Any] = {
        "environment": one.environment,
        "a": one.a,
        "b": one.b,
        "successes_a": one.rate_a.successes,
        "n_a": one.rate_a.n,
        "successes_b": one.rate_b.successes,
        "n_b": one.rate_b.n,
        "difference": significant(one.difference),
        "interval": _limits(one.interval),
        "interval_method": one.interval_method,
        "test": one.test,
        "p": significant(one.p),
        "p_holm": significant(one.p_holm),
        "better": one.better,
        "paired": one.paired,
        "pairing": one.pairing,
    }
    if planned := one.sequential:
        told["sequential"] = {"n_max": planned.n_max, "stopped_early": planned.stopped, "alpha": planned.alpha}
    if one.prevented:
        told["prevented"] = one.prevented
    return told


def _detectable(group: EnvironmentComparisons) -> dict[str, Any]:
    gap = group.detectable
    return {
        "environment": group.environment,
        "n": gap.n,
        "alone": rounded(gap.alone, 4),
        "in_family": rounded(gap.in_family, 4),
    }


def _mean(mean: MacroMean) -> dict[str, Any]:
    return {
        "policy": mean.policy,
        "environments": mean.environments,
        "episodes": mean.episodes,
        "mean": mean.mean,
        "interval": _limits(mean.interval),
        "missing": mean.missing,
        "partial": mean.partial,
        **({"early": mean.early} if mean.early else {}),
    }


def _stay(stay: Stay) -> dict[str, Any]:
    return {
        "session": stay.session,
        "policy": stay.policy,
        "environment": stay.environment,
        "attempt": stay.attempt,
        "started": _moment(stay.started),
        "ended": _moment(stay.ended),
        "outcome": stay.outcome,
        "gpus": stay.gpus,
        "peak_memory_kib": _kib(stay.peak_memory),
    }


def _usage(busy: Busy | None) -> dict[str, Any] | None:
    if busy is None:
        return None
    return {
        "samples": busy.samples,
        "cpus": busy.cpus,
        "mean_load": rounded(busy.mean_load, 2),
        "memory_kib": busy.memory_kib,
        "peak_memory_kib": busy.peak_kib,
        "gpus": [
            {
                "gpu": gpu.index,
                "memory_mib": gpu.total_mib,
                "peak_memory_mib": gpu.peak_mib,
                "mean_utilization": rounded(gpu.mean_utilization, 1),
            }
            for gpu in busy.gpus
        ],
    }


def _kib(memory: int | None) -> int | None:
    return None if memory is None else memory // 1024


def _limits(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else limits(interval)


def _moment(timestamp: float | None) -> str | None:
    moment = instant(timestamp)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
