"""The files of a comparison of two runs: Markdown, HTML and JSON. Pure but for the template's text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from comborun import __version__
from comborun.reporter.pages.markdown import escape
from comborun.reporter.pages.numbers import limits, significant
from comborun.reporter.render import TEMPLATES, templates
from comborun.reporter.text import claim, p_value, points, points_interval
from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.reporter.comparing.between import Between
    from comborun.reporter.comparing.comparisons import Comparison

SCHEMA = 1
NAMES = ("comparison.html", "comparison.md", "comparison.json")
METHOD = (
    "Differences are the second run's success rate minus the first's, in percentage points with 95 % intervals of each"
    " alone. Where the records show equal seeds or initial states in all common episodes, only these count, by an exact"
    " McNemar test with Bonett-Price intervals; else all episodes, taken as independent, by Barnard's test with"
    " Newcombe intervals. p is two-sided and adjusted by Holm over all comparisons of this page."
)


def render_between(between: Between) -> Mapping[str, bytes]:
    texts = zip(NAMES, (_html(between), _markdown(between), _json(between)), strict=True)
    return {name: text.encode("utf-8", "replace") for name, text in texts}


def cells(policy: str, one: Comparison) -> tuple[str, ...]:
    """A row, under these heads."""
    paired = "paired" if one.paired else "unpaired"
    numbers = (points(one.difference), points_interval(one.interval), p_value(one.p_holm).removeprefix("= "))
    return (policy, one.environment, claim(one.rate_b), claim(one.rate_a), *numbers, f"{one.test}, {paired}")


HEADS = ("policy", "environment", "before", "after", "change", "95 % interval", "p (Holm)", "test")


def _markdown(between: Between) -> str:
    return "\n".join(_lines(between)) + "\n"


def _lines(between: Between) -> Iterator[str]:
    yield f"# {escape(between.after)} against {escape(between.before)}"
    yield ""
    yield from (f"- {escape(sentence)}" for sentence in (*between.sentences, *between.notes))
    yield ""
    yield f"| {' | '.join(HEADS)} |"
    yield f"| {' | '.join(['---'] * 2 + ['---:'] * 5 + ['---'])} |"
    yield from (f"| {' | '.join(map(escape, cells(*row)))} |" for row in between.rows)
    yield from ("", METHOD, "", f"Made by comborun {__version__} from the records of both runs alone.")


def _html(between: Between) -> str:
    css = Markup((TEMPLATES / "report.css").read_text("utf-8"))  # noqa: S704 - our own file
    rows = [(tuple(map(printable, cells(policy, one))), one.decided) for policy, one in between.rows]
    return (
        templates()
        .get_template("comparison.html.j2")
        .render(between=between, rows=rows, heads=HEADS, css=css, method=METHOD, version=__version__)
    )


def _json(between: Between) -> str:
    document = {
        "schema": SCHEMA,
        "before": between.before,
        "after": between.after,
        "comparisons": [_row(policy, one) for policy, one in between.rows],
        "sentences": between.sentences,
        "notes": between.notes,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


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
