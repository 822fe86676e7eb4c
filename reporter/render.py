"""From a report to the bytes of its files. Pure but for the templates' text, and the same for the same records."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from comborun import __version__
from comborun.reporter.comparing.claims import NOTHING_DECIDED
from comborun.reporter.figures import NAMES, plates
from comborun.reporter.figures.press import Drawing
from comborun.reporter.pages.document import SCHEMA_FILE, report_json
from comborun.reporter.pages.exports import episodes_csv, summary_csv
from comborun.reporter.pages.latex import latex
from comborun.reporter.pages.markdown import markdown
from comborun.reporter.pages.methods import methods
from comborun.reporter.pages.page import EARLY, GAPS, Page, letters, means, page, planned_words, shortfall, tallies_of
from comborun.reporter.text import (
    clock,
    duration,
    fraction,
    interval,
    number,
    of,
    p_value,
    points,
    points_interval,
    rate,
    unbroken,
)
from comborun.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jinja2 import Environment
    from markupsafe import Markup

    from comborun.reporter.counting.ending import Ending
    from comborun.reporter.counting.schedule import Schedule
    from comborun.reporter.figures.plate import Drawn, Plate
    from comborun.reporter.figures.press import Press
    from comborun.reporter.summary import Report

TEMPLATES = Path(__file__).parent / "templates"

HTML = "report.html"
MARKDOWN = "report.md"
LATEX = "report.tex"
JSON = "final_benchmark_report.json"
EPISODES = "episodes.csv"
SUMMARY = "summary.csv"
FIGURES = frozenset(f"figures/{name}.{ending}" for name in NAMES for ending in ("svg", "png", "pdf"))
"""all that a report may have"""


def render(report: Report, ran: Schedule, press: Press | None = None) -> Mapping[str, bytes]:
    """Every file of the report, by name. `press` helps to draw."""
    drawing = Drawing(plates(report, ran), press)
    sections = page(report.summary)
    files = {name: _encoded(text) for name, text in _texts(report, ran, sections)}
    drawn = drawing.finish()
    files[HTML] = _encoded(html(sections, drawn))
    files[EPISODES] = _encoded(episodes_csv(report.episodes))  # large: when what the drawing took is free again
    return files | {f"figures/{name}": content for one in drawn.values() for name, content in one.files.items()}


def _texts(report: Report, ran: Schedule, sections: Page) -> Iterator[tuple[str, str]]:
    """What is small, one by one."""
    yield MARKDOWN, markdown(sections)
    yield LATEX, latex(report.summary)
    yield JSON, report_json(report.summary, ran)
    yield SCHEMA_FILE, (TEMPLATES / SCHEMA_FILE).read_text("utf-8")
    yield SUMMARY, summary_csv(report.summary)


def _encoded(text: str) -> bytes:
    """Names from records may hold halves of UTF-16 pairs, which no encoding takes."""
    return text.encode("utf-8", "replace")


def html(sections: Page, drawn: Mapping[Plate, Drawn]) -> str:
    """One page that needs nothing but itself; every text from records is escaped."""
    from markupsafe import Markup

    width = 2 + 7 * sections.rated + 3 * sections.summary.planned + sections.lettered
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            # Not asdict: the template works on the values.
            {field.name: getattr(sections, field.name) for field in fields(sections)},
            css=Markup((TEMPLATES / "report.css").read_text("utf-8")),  # noqa: S704 - our own file
            figures={plate.name: (plate, tuple(map(_inline, one.svgs))) for plate, one in drawn.items()},
            nothing_decided=NOTHING_DECIDED,
            method=methods(sections.summary),
            version=__version__,
            early=EARLY,
            gaps=GAPS,
            width=width,
        )
    )


def _inline(svg: str) -> Markup:
    from markupsafe import Markup

    return Markup(svg)  # noqa: S704 - its text was escaped when it was written


def templates() -> Environment:
    """Where names from records are escaped, and numbers are written as everywhere."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    numbers = (clock, duration, fraction, interval, number, of, p_value, points, points_interval, rate)
    words = (letters, means, printable, shortfall, unbroken)
    environment.filters.update({function.__name__: function for function in (*numbers, *words)})
    environment.filters.update(planned=planned_words, tag=_tag, tallies=tallies_of, width=_width)
    return environment


def _tag(ending: Ending) -> str:
    """The style of an outcome: one with a warning must not look like one without."""
    if ending.outcome is None:
        return ""
    return f"{ending.outcome} warned" if ending.outcome == "succeeded" and ending.warnings else str(ending.outcome)


def _width(share: float) -> str:
    return f"{100 * share:.2f}%"
