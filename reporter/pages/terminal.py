"""What a terminal shows of a report: a row of numbers for each combo, and what must be known of the data. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.reporter import text
from comborun.text import alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.summary import Summary

ROWS_MOST = 24
FINDINGS_MOST = 6
_METRICS = 2
"""that are shown where there is no rate"""


def rates(combos: Sequence[ComboSummary]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads and the first rows: successes of verdicts, the rate and its interval; without verdicts means."""
    judged = any(combo.rate and combo.rate.n for combo in combos)
    names = list(dict.fromkeys(one.name for combo in combos for one in combo.metrics))[: 0 if judged else _METRICS]
    heads = ("policy", "environment", *(("successes", "rate", "95 %") if judged else ("recorded", *names)))
    return heads, [_row(combo, names, judged=judged) for combo in combos[:ROWS_MOST]]


def _row(combo: ComboSummary, names: Sequence[str], *, judged: bool) -> tuple[str, ...]:
    if judged:
        numbers = [text.of(combo.rate), text.rate(combo.rate), text.interval(combo.rate)]
    else:
        recorded = combo.counts.recorded if combo.counts else 0
        means = {one.name: f"{text.number(one.mean)}{_between(one.interval)}" for one in combo.metrics}
        numbers = [f"{recorded}/{combo.planned}" if combo.planned else str(recorded)]
        numbers += [means.get(name, text.NOTHING) for name in names]
    return combo.policy, combo.environment, *numbers


def _between(interval: tuple[float, float] | None) -> str:
    return f" [{text.number(interval[0])}, {text.number(interval[1])}]" if interval else ""


def findings(summary: Summary) -> list[str]:
    """A sentence for all findings that say the same of several places; the first ones, and how many more there are."""
    sentences = alike((one.where, one.what) for one in summary.quality.findings)
    more = (
        [f"and {len(sentences) - FINDINGS_MOST} more findings in the report"] if len(sentences) > FINDINGS_MOST else []
    )
    return sentences[:FINDINGS_MOST] + more
