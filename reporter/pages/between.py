"""The files of a comparison of two runs: Markdown, HTML and JSON. Pure but for the template's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comborun.reporter.pages.data import as_json, limits, significant
from comborun.reporter.pages.page import rendered
from comborun.reporter.pages.tables import Strong, Table
from comborun.reporter.text import claim, p_value, points, points_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.reporter.comparing.between import Between
    from comborun.reporter.comparing.comparisons import Comparison

SCHEMA = 1
NAMES = ("comparison.html", "comparison.md", "comparison.json")
METHOD = (
    "Differences are the second run's success rate minus the first's, in percentage points with 95 % intervals of each"
    " alone. Where the records show equal seeds or initial states in all common episodes, only these count, by an exact"
    " McNemar test with Zou-Donner intervals; else all episodes, taken as independent, by Barnard's test with"
    " Newcombe intervals. p is two-sided and adjusted by Holm over all comparisons of this page."
)
HEADS = ("policy", "environment", "before", "after", "change", "95 % interval", "p (Holm)", "test")
WORDS = {"policy", "environment", "test"}


def render_between(between: Between) -> Mapping[str, bytes]:
    columns = [(head, "left" if head in WORDS else "right") for head in HEADS]
    table = Table("Combos", columns, [cells(policy, one) for policy, one in between.rows])
    pages = (
        rendered(f"{name}.j2", between=between, table=table, method=METHOD)
        for name in NAMES
        if not name.endswith(".json")
    )
    return {name: text.encode("utf-8", "replace") for name, text in zip(NAMES, (*pages, _json(between)), strict=True)}


def cells(policy: str, one: Comparison) -> tuple[str, ...]:
    """A row, under HEADS."""
    change = points(one.difference)
    numbers = (
        Strong(change) if one.decided else change,
        points_interval(one.interval),
        p_value(one.p_holm).removeprefix("= "),
    )
    test = f"{one.test}, {one.paired_word}"
    return (policy, one.environment, claim(one.rate_b), claim(one.rate_a), *numbers, test)


def _json(between: Between) -> str:
    return as_json(
        {
            "schema": SCHEMA,
            "before": between.before,
            "after": between.after,
            "comparisons": [_row(policy, one) for policy, one in between.rows],
            "sentences": between.sentences,
            "notes": between.notes,
        }
    )


def _row(policy: str, one: Comparison) -> dict[str, Any]:
    return {
        "policy": policy,
        "environment": one.environment,
        "before": {"successes": one.rate_b.successes, "n": one.rate_b.n},
        "after": {"successes": one.rate_a.successes, "n": one.rate_a.n},
        "difference": significant(one.difference),
        "interval": limits(one.interval),
        "p": significant(one.p),
        "p_holm": significant(one.p_holm),
        "decided": one.decided,
        "paired": one.paired,
        "pairing": one.pairing,
        "test": one.test,
    }
