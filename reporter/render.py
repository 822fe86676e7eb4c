"""From a report to the bytes of its files. Pure but for the templates' text, and the same for the same records."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from comborun import __version__
from reporter.exports import episodes_csv, report_json
from reporter.figures import columns, heat_map
from reporter.markdown import markdown
from reporter.page import METHOD, Page, means, page, planned_words, shortfall
from reporter.text import clock, duration, interval, number, of, printable, rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from reporter.ending import Ending
    from reporter.summary import Report

TEMPLATES = Path(__file__).parent / "templates"

HTML = "report.html"
MARKDOWN = "report.md"
JSON = "final_benchmark_report.json"
EPISODES = "episodes.csv"


def render(report: Report) -> Mapping[str, bytes]:
    """Every file of the report, by name."""
    sections = page(report.summary)
    texts = {
        HTML: html(sections),
        MARKDOWN: markdown(sections),
        JSON: report_json(report.summary),
        EPISODES: episodes_csv(report.episodes),
    }
    # Names from records may hold halves of UTF-16 pairs, which no encoding takes.
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}


def html(sections: Page) -> str:
    """One page that needs nothing but itself; every text from records is escaped."""
    from markupsafe import Markup

    width = 2 + 7 * sections.rated + 3 * sections.summary.planned
    return (
        _templates()
        .get_template("report.html.j2")
        .render(
            # Not asdict: the template works on the values.
            {field.name: getattr(sections, field.name) for field in fields(sections)},
            css=Markup((TEMPLATES / "report.css").read_text("utf-8")),  # noqa: S704 - our own file
            heat_map=Markup(heat_map(sections.summary)),  # noqa: S704 - matplotlib escapes the text in it
            columns=columns(sections.summary),
            method=METHOD,
            version=__version__,
            width=width,
        )
    )


def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        clock=clock,
        duration=duration,
        interval=interval,
        means=means,
        number=number,
        of=of,
        planned=planned_words,
        printable=printable,
        rate=rate,
        shortfall=shortfall,
        tag=_tag,
        width=_width,
    )
    return environment


def _tag(ending: Ending) -> str:
    """The style of an outcome: one with a warning must not look like one without."""
    if ending.outcome is None:
        return ""
    return f"{ending.outcome} warned" if ending.outcome == "succeeded" and ending.warnings else str(ending.outcome)


def _width(share: float) -> str:
    return f"{100 * share:.2f}%"
