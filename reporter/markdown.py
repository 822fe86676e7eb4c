"""report.md: the report as GitHub-flavoured Markdown, readable as plain text too. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comborun import __version__
from reporter.page import METHOD, Page, means, planned_words
from reporter.text import NOTHING, claim, duration, interval, number, of, printable, rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reporter.summary import ComboSummary

_SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])")
"""an underscore inside a word is only an underscore"""


def escape(text: str) -> str:
    """Text from records as Markdown that shows it: on one line, without markup, links or table cells of its own."""
    shown = _SPECIAL.sub(r"\\\g<0>", printable(text))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown(page: Page) -> str:
    return "\n".join(_lines(page)) + "\n"


def _lines(page: Page) -> Iterator[str]:
    summary = page.summary
    yield f"# {escape(summary.run)}"
    yield ""
    yield from page.sentences
    if page.leaders:
        yield from (
            "",
            "Highest success rate per environment (each interval stands for its combo alone, no difference is tested):",
            "",
        )
        for leader in page.leaders:
            yield f"- {escape(leader.environment)}: **{escape(leader.names)}** {leader.words}"
    yield from ("", "## Combos", "")
    yield from _combos(page)
    if page.metrics:
        yield from ("", "## Metrics", "", "Means over completed episodes, and how many of them have the metric.", "")
        yield from _metrics(page)
    yield from ("", "## Data quality", "")
    yield from _quality(page)
    yield from ("", "## Method and provenance", "", METHOD, "")
    yield from (f"- {escape(name)}: {escape(value)}" for name, value in page.provenance)
    yield from (
        "",
        f"Made by comborun {__version__} from the run's records alone: the same records give the same file.",
    )


def _combos(page: Page) -> Iterator[str]:
    columns = ["environment", "policy"]
    columns += ["k/n", "rate", "95 % interval"] * page.rated
    columns += ["of planned"] * (page.rated and page.denominators)
    columns += ["planned"] + ["completed", "errored", "missing"] * page.rated
    columns += ["attempts", "outcome", "cause", "duration"] * page.summary.planned
    yield _row(columns)
    words = {"environment", "policy", "outcome", "cause"}
    yield _row(["---" if column in words else "---:" for column in columns])
    for _, combos in page.groups:
        for combo in combos:
            cells = _cells(combo)
            yield _row([cells[column] for column in columns])
    if not page.summary.planned:
        yield from ("", "Planned is what the records show: no plan says how many there should be.")


def _cells(combo: ComboSummary) -> dict[str, str]:
    counts, ending = combo.counts, combo.ending
    return {
        "environment": escape(combo.environment),
        "policy": escape(combo.policy),
        "k/n": of(combo.rate),
        "rate": rate(combo.rate),
        "95 % interval": interval(combo.rate),
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
            cells = [f"{number(mean.mean)} (n = {mean.n})" if mean else NOTHING for mean in means(combo, page.metrics)]
            yield _row([escape(environment), escape(combo.policy), *cells])


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
