"""The report for people: what the HTML and the Markdown report share, and both made from a template. Pure but for the
templates' text."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comborun import __version__
from comborun.reporter import text
from comborun.reporter.comparing.claims import NOTHING_DECIDED
from comborun.reporter.figures import MOST_COMBOS, OF_COMBOS
from comborun.reporter.figures.figure import untitled
from comborun.reporter.pages import tables
from comborun.reporter.pages.names import shorten_names
from comborun.reporter.pages.words import methods, sentences
from comborun.text import GIB, printable, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jinja2 import Environment
    from markupsafe import Markup

    from comborun.reporter.counting.quality import Quality
    from comborun.reporter.figures.figure import Figure
    from comborun.reporter.figures.panel import Panel
    from comborun.reporter.summary import ComboSummary, Summary

TEMPLATES = Path(__file__).parents[1] / "templates"

FINDINGS_SHOWN = 200
OPEN_LENGTH = 1500
"""signs of what is not decided: more is folded"""
OPEN_COMBOS, OPEN_PANELS = 24, 6
"""tables of more combos, and figures and environments that are more, are folded"""
CLAIMS_SHOWN = 10
LOGS_SHOWN = 50
PROVENANCE_OPEN = 30
DIFFERENCES = "Differences in percentage points with their 95 % intervals; p by Holm over all of them."

_EPISODES = {
    "cumulative_success": "Cumulative success",
    "time_to_success": "Time to success",
    "failure_kinds": "Failure kinds",
}
"""figures with a section of their own"""
_MARKDOWN = re.compile(r"(\[[+−<>\d.e-]+, [+−<>\d.e-]+\](?!\())|[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])")
"""an interval is no markup, an underscore inside a word is only an underscore"""


def page(summary: Summary) -> dict[str, Any]:
    """Everything that a template needs, still as values."""
    summary, long_names = shorten_names(summary)
    found, combos = summary.comparisons, summary.combos
    tabled = combos if len(combos) <= MOST_COMBOS else ()
    sections = {
        "summary": summary,
        "long_names": long_names,
        "sentences": sentences(summary),
        # Whether what is not decided is too much to stand open in front of everything else.
        "folded": sum(map(len, summary.claims.left_open)) > OPEN_LENGTH,
        "large": len(combos) > OPEN_COMBOS,
        "tabled": tabled,
        "combos": tables.combos(summary, tabled),
        "too_many": f"{len(combos)} combos are too many for tables here; summary.csv has a row for each.",
        "means": tables.means(summary),
        "strengths": tables.strengths(summary),
        "environments": [
            (group, tables.comparisons(group.comparisons, f"Comparisons in {group.environment}"))
            for group in found.environments
        ],
        "comparisons": tables.comparisons(found.all, "Comparisons", DIFFERENCES) if found.all else None,
        "graded": tables.graded(found.graded),
        "kinds": tables.kinds_compared(summary.kinds),
        "failures": tables.failures(tabled),
        "metrics": tables.metrics(tabled),
        "logs": [combo for combo in combos if combo.ending.log],
        "tallies": tuple(_tallies(summary.quality)),
        "unshown": max(0, len(summary.quality.findings) - FINDINGS_SHOWN),
        "provenance": tuple(_provenance(summary)),
        "method": methods(summary),
    }
    order = ("combos", "comparisons", "means", "strengths", "graded", "failures", "kinds", "metrics")
    return {**sections, "tables": [sections[name] for name in order if sections[name]]}


def html(sections: Mapping[str, Any], drawn: Iterable[Figure]) -> str:
    """One page that needs nothing but itself; every text from records is escaped."""
    summary: Summary = sections["summary"]
    whole = bool(sections["tabled"])
    figures = {figure.name: figure for figure in drawn if whole or figure.name not in OF_COMBOS}
    rated = (
        name for name in summary.environments if any(_rated(one) for one in summary.combos if one.environment == name)
    )
    panels = map(untitled, figures["intervals"].panels) if "intervals" in figures else ()
    script = _own("report.js")
    return rendered(
        "report.html.j2",
        **sections,
        figures=figures,
        intervals=dict(zip(rated, panels, strict=False)),  # a figure holds only so many
        contents=tuple(_contents(sections, figures)),
        script=script,
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    )


def _rated(combo: ComboSummary) -> bool:
    return bool(combo.rate and combo.rate.interval)


def _contents(sections: Mapping[str, Any], figures: Mapping[str, Figure]) -> Iterator[tuple[str, str]]:
    """Anchor and title of every section, in reading order."""
    every = (
        ("claims", "Claims", sections["comparisons"]),
        ("means", "Means", sections["means"]),
        ("strengths", "Strengths", sections["strengths"]),
        ("environments", "Environments", sections["environments"]),
        ("trends", "Checkpoints", "trends" in figures),
        ("graded", "Metrics compared", sections["graded"]),
        ("combos", "Combos", True),
        *((name, title, name in figures) for name, title in _EPISODES.items()),
        ("kinds", "Kinds compared", sections["kinds"]),
        ("metrics", "Metrics", sections["metrics"]),
        ("contact", "Failed episodes", sections["sheet"]),
        ("logs", "Logs of failures", sections["logs"]),
        ("sessions", "Sessions", "sessions" in figures),
        ("quality", "Data quality", True),
        ("method", "Method", True),
    )
    return ((anchor, title) for anchor, title, there in every if there)


def markdown(sections: Mapping[str, Any]) -> str:
    """GitHub-flavoured, readable as plain text too."""
    return rendered("report.md.j2", **sections)


def rendered(template: str, **values: object) -> str:
    common = {
        "css": _own("report.css"),
        "nothing_decided": NOTHING_DECIDED,
        "version": __version__,
    }
    return _environment().get_template(template).render(common, **values)


def _own(name: str) -> Markup:
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text("utf-8"))  # noqa: S704 - our own file


def _svg(panel: Panel) -> Markup:
    from markupsafe import Markup

    return Markup(panel.svg())  # noqa: S704 - its text is escaped


@cache
def _environment() -> Environment:
    """Where HTML escapes names from records by itself, and numbers are written as everywhere."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: function for name, function in vars(text).items() if callable(function)})
    environment.filters.update(md=escape, printable=printable, several=several, svg=_svg)
    environment.tests.update(strong=lambda cell: isinstance(cell, tables.Strong))
    environment.tests.update(tagged=lambda cell: isinstance(cell, tables.Tagged))
    environment.globals.update(
        nothing=text.NOTHING,
        findings_shown=FINDINGS_SHOWN,
        claims_shown=CLAIMS_SHOWN,
        told_shown=2 * CLAIMS_SHOWN,
        open_panels=OPEN_PANELS,
        logs_shown=LOGS_SHOWN,
        provenance_open=PROVENANCE_OPEN,
    )
    return environment


def escape(words: str) -> str:
    """Text from records as Markdown that shows it: on one line, without markup or table cells of its own.

    GitHub makes links of bare addresses all the same.
    """
    shown = _MARKDOWN.sub(lambda found: found[1] or f"\\{found[0]}", printable(words))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- words of tables --------------------------------------------------------------------------------------------------


def _tallies(quality: Quality) -> Iterator[tuple[str, int]]:
    """What was read and what became of it; of the troubles only those that there are."""
    yield "result files", quality.files
    yield "records read", quality.records
    yield "records that count", quality.accepted
    troubles = (
        ("rejected lines", quality.rejected),
        ("of them cut off", quality.torn),
        ("of them of another combo", quality.foreign),
        ("records outside the plan", quality.outside),
        ("episodes recorded twice, alike", quality.duplicated),
        ("episodes recorded twice, unlike", quality.conflicting),
        ("episodes run again in another attempt", quality.replayed),
        ("of them with another verdict", quality.replays_differ),
        ("records from a later attempt", quality.retried),
    )
    yield from (trouble for trouble in troubles if trouble[1])


def _provenance(summary: Summary) -> Iterator[tuple[str, str]]:
    timing = summary.timing
    yield "run" if summary.planned else "folder", summary.run
    if summary.grid is not None:
        yield "grid", summary.grid
    for name, moment in (("started", timing.started), ("finished", timing.finished)):
        if moment is not None:
            yield name, text.clock(moment)
    for name, span in (("first start to last end", timing.makespan), ("sum of session times", timing.sequential)):
        if span is not None:
            yield name, text.duration(span)
    for name, value in sorted(summary.provenance.items()):
        sized = name == "host.memory" and value.isdecimal()  # the JSON has the bytes
        yield name, f"{int(value) / GIB:.1f} GiB" if sized else value
