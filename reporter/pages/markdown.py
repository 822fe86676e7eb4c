"""report.md: the report as GitHub-flavoured Markdown, readable as plain text too. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comborun import __version__
from comborun.reporter.pages.methods import methods
from comborun.reporter.pages.page import EARLY, GAPS, Page, letters, means, planned_words, tallies_of
from comborun.reporter.text import (
    NOTHING,
    claim,
    duration,
    fraction,
    interval,
    number,
    of,
    p_value,
    points,
    points_interval,
    rate,
)
from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.reporter.summary import ComboSummary, MetricMean

_SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])")
"""an underscore inside a word is only an underscore"""


def escape(text: str) -> str:
    """Text from records as Markdown that shows it: on one line, without markup or table cells of its own.

    GitHub makes links of bare addresses all the same.
    """
    shown = _SPECIAL.sub(r"\\\g<0>", printable(text))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown(page: Page) -> str:
    return "\n".join(_lines(page)) + "\n"


def _lines(page: Page) -> Iterator[str]:
    summary = page.summary
    yield f"# {escape(summary.run)}"
    yield ""
    yield from page.sentences
    if page.compared:
        yield from ("", "## Claims", "")
        yield from (f"- {escape(sentence)}" for sentence in summary.claims.told)
    yield from ("", "## Combos", "")
    yield from _combos(page)
    if page.compared:
        yield from ("", "## Comparisons", "", "Differences in percentage points; p by Holm over all of them.", "")
        yield from _comparisons(page)
    if summary.macro_means:
        yield from ("", "## Means over environments", "", "In per cent, every environment with the same weight.", "")
        yield from _means(page)
    if page.failed:
        yield from ("", "## Failure kinds", "", "Episodes, in the words of their records.", "")
        yield from _failures(page)
    if page.metrics:
        yield from (
            "",
            "## Metrics",
            "",
            "Means over completed episodes with their 95 % intervals, and how many episodes have the metric.",
            "",
        )
        yield from _metrics(page)
    yield from ("", "## Data quality", "")
    yield from _quality(page)
    yield from ("", "## Method and provenance", "", escape(methods(summary)), "")
    yield from (f"- {escape(name)}: {escape(value)}" for name, value in page.provenance)
    yield from (
        "",
        f"Made by comborun {__version__} from the run's records alone: the same records give the same file.",
    )


def _combos(page: Page) -> Iterator[str]:
    columns = ["environment", "policy"]
    columns += ["k/n", "rate", "95 % interval"] * page.rated
    columns += ["letters"] * page.lettered
    columns += ["of planned"] * (page.rated and page.denominators)
    columns += ["planned"] + ["completed", "errored", "missing"] * page.rated
    columns += ["attempts", "outcome", "cause", "duration"] * page.summary.planned
    yield _row(columns)
    words = {"environment", "policy", "letters", "outcome", "cause"}
    yield _row(["---" if column in words else "---:" for column in columns])
    for _, combos in page.groups:
        for combo in combos:
            cells = _cells(combo, letters(combo, page.summary))
            yield _row([cells[column] for column in columns])
    if not page.summary.planned:
        yield from ("", "Planned is what the records show: no plan says how many there should be.")


def _cells(combo: ComboSummary, letters_: str) -> dict[str, str]:
    counts, ending = combo.counts, combo.ending
    return {
        "environment": escape(combo.environment),
        "policy": escape(combo.policy),
        "k/n": of(combo.rate),
        "rate": rate(combo.rate),
        "95 % interval": interval(combo.rate),
        "letters": letters_ or NOTHING,
        "of planned": _of_planned(combo),
        "planned": planned_words(combo),
        "completed": str(counts.completed) if counts else NOTHING,
        "errored": str(counts.errored) if counts else NOTHING,
        "missing": str(counts.missing) if counts else NOTHING,
        "attempts": str(ending.attempts),
        "outcome": ending.words,
        "cause": escape(ending.cause),
        "duration": duration(ending.seconds),
    }


def _of_planned(combo: ComboSummary) -> str:
    """The other denominator, where it is another one."""
    if combo.counts is None or combo.rate_of_planned is None:
        return NOTHING
    return "the same" if combo.counts.completed == combo.counts.planned else claim(combo.rate_of_planned)


def _metrics(page: Page) -> Iterator[str]:
    yield _row(["environment", "policy", *map(escape, page.metrics)])
    yield _row(["---", "---", *("---:" for _ in page.metrics)])
    for environment, combos in page.measured:
        for combo in combos:
            cells = [_metric(mean) for mean in means(combo, page.metrics)]
            yield _row([escape(environment), escape(combo.policy), *cells])


def _metric(mean: MetricMean | None) -> str:
    if mean is None:
        return NOTHING
    limits = f" [{number(mean.interval[0])}, {number(mean.interval[1])}]" if mean.interval else ""
    return f"{number(mean.mean)}{limits} (n = {mean.n})"


def _comparisons(page: Page) -> Iterator[str]:
    yield _row(["environment", "a", "b", "a - b", "95 % interval", "p (Holm)", "n", "test"])
    yield _row(["---", "---", "---", "---:", "---:", "---:", "---:", "---"])
    for group in page.compared:
        for one in group.comparisons:
            n = str(one.rate_a.n) if one.rate_a.n == one.rate_b.n else f"{one.rate_a.n}, {one.rate_b.n}"
            p = p_value(one.p_holm, bound=one.bounded).removeprefix("= ")
            words = [points(one.difference), points_interval(one.interval), p, n]
            names = map(escape, (one.environment, one.a, one.b))
            yield _row([*names, *map(escape, words), f"{one.test_words}, {'paired' if one.paired else 'unpaired'}"])


def _means(page: Page) -> Iterator[str]:
    yield _row(["policy", "mean", "95 % interval", "environments", "episodes", *GAPS])
    yield _row(["---", "---:", "---:", "---:", "---:", "---", "---"])
    for mean in page.summary.macro_means:
        shown = f"{fraction(mean.mean)}{'†' if mean.early else ''}" if mean.mean is not None else NOTHING
        limits = ", ".join(map(fraction, mean.interval)) if mean.interval else NOTHING
        gaps = [escape(", ".join(names)) or NOTHING for names in (mean.missing, mean.partial)]
        yield _row([escape(mean.policy), shown, limits, str(mean.environments), str(mean.episodes), *gaps])
    if any(mean.early for mean in page.summary.macro_means):
        yield from ("", EARLY)


def _failures(page: Page) -> Iterator[str]:
    yield _row(["environment", "policy", *map(escape, page.kinds), "other kinds", "not told", "errored"])
    yield _row(["---", "---", *("---:" for _ in range(len(page.kinds) + 3))])
    for combo in page.failed:
        yield _row([escape(combo.environment), escape(combo.policy), *map(str, tallies_of(combo, page.kinds))])


def _quality(page: Page) -> Iterator[str]:
    yield ", ".join(f"{words}: {count}" for words, count in page.tallies) + "."
    if not page.findings:
        yield from ("", "Nothing was rejected, missing, doubled or contradicted.")
        return
    yield ""
    yield from (f"- {escape(finding.where)}: {escape(finding.what)}" for finding in page.findings)
    if page.unshown:
        yield f"- and {page.unshown} more; final_benchmark_report.json holds them all"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
