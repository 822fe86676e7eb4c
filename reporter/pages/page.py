"""The report for people: HTML and Markdown, both made from templates."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comborun import __version__
from comborun.reporter import text
from comborun.reporter.comparing.claims import NOTHING_DECIDED
from comborun.reporter.counting.quality import COUNTED
from comborun.reporter.figures.figure import Figure, untitled
from comborun.reporter.figures.labels import shortened
from comborun.reporter.figures.makers import MOST_COMBOS, OF_COMBOS
from comborun.reporter.pages import combo_tables, comparison_tables, policy_tables, training_tables
from comborun.reporter.pages.text_table import Plot, Strong, Tagged
from comborun.reporter.pages.words import methods, sentences
from comborun.reporter.shown_names import with_texts
from comborun.reporter.standing import standing_of
from comborun.reporter.summary import Summary
from comborun.text import GIB, printable, several

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


TEMPLATES = Path(__file__).parents[1] / "templates"

ALWAYS = {"files", "records", "accepted"}
DIFFERENCES = "Differences in percentage points with their 95 % intervals; p by Holm over all of them."

_MARKDOWN = re.compile(r"(\[[+−<>\d.e-]+, [+−<>\d.e-]+\](?!\())|[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])")
"""intervals, and underscores inside words, are not markup"""
_IN_ORDER = (
    "trainings",
    "evaluations",
    "checkpoints",
    "combos",
    "comparisons",
    "means",
    "strengths",
    "graded",
    "mean_differences",
    "losses",
    "factors",
    "consistency",
    "failures",
    "kinds",
    "metrics",
    "videos",
)
"""the tables of the page"""


def page(summary: Summary) -> dict[str, Any]:
    summary, long_names = shorten_names(summary)
    found, combos = summary.comparisons, summary.combos
    tabled = combos if len(combos) <= MOST_COMBOS else ()
    sections = {
        "summary": summary,
        "long_names": long_names,
        "sentences": sentences(summary),
        "tabled": tabled,
        "combos": combo_tables.combos(summary, tabled),
        "too_many": f"{len(combos)} combos are too many for tables here; summary.csv has a row for each.",
        "ranking": policy_tables.ranking(standing_of(summary)),
        "matrix": policy_tables.matrix(standing_of(summary)),
        "means": policy_tables.means(summary),
        "strengths": policy_tables.strengths(summary),
        "environments": [
            (group, comparison_tables.comparisons(group.comparisons, f"Comparisons in {group.environment}"))
            for group in found.environments
        ],
        "comparisons": comparison_tables.comparisons(found.all, "Comparisons", DIFFERENCES) if found.all else None,
        "graded": comparison_tables.graded(found.graded),
        "losses": comparison_tables.losses(summary.losses),
        "factors": comparison_tables.factors(summary.factors),
        "mean_differences": comparison_tables.mean_differences(found.mean_differences),
        "kinds": comparison_tables.kinds_compared(summary.kinds),
        "failures": combo_tables.failures(tabled),
        "metrics": combo_tables.metrics(tabled),
        "consistency": combo_tables.consistency(tabled),
        "videos": combo_tables.videos(summary.videos),
        "trainings": training_tables.trainings(summary.trainings),
        "evaluations": training_tables.evaluations(summary.trainings),
        "checkpoints": training_tables.checkpoints(summary.trainings),
        "logs": [combo for combo in combos if combo.ending.log],
        "tallies": [(COUNTED[key], count) for key, count in summary.quality.counts.items() if count or key in ALWAYS],
        "provenance": tuple(_provenance(summary)),
        "method": methods(summary),
    }
    return {**sections, "tables": [sections[name] for name in _IN_ORDER if sections[name]]}


def html(sections: Mapping[str, Any], drawn: Iterable[Figure]) -> str:
    """One page that needs nothing but itself; every text from records is escaped."""
    summary: Summary = sections["summary"]
    whole = bool(sections["tabled"])
    figures = {figure.name: figure for figure in drawn if whole or figure.name not in OF_COMBOS}
    known = {combo.environment for combo in summary.combos if combo.rate and combo.rate.interval}
    rated = (name for name in summary.environments if name in known)
    panels = map(untitled, figures["intervals"].panels) if "intervals" in figures else ()
    script = _own("report.js")
    return rendered(
        "report.html.j2",
        **sections,
        figures=figures,
        intervals=dict(zip(rated, panels, strict=False)),  # a figure holds only so many
        script=script,
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    )


def rendered(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)


def _own(name: str) -> Markup:
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text("utf-8"))  # noqa: S704 - our own file


@cache
def _environment() -> Environment:
    """Jinja's environment, which escapes names in HTML and has our filters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
    from markupsafe import Markup

    from comborun.reporter.pages.compiled import CompiledTemplates

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        bytecode_cache=CompiledTemplates(TEMPLATES),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: function for name, function in vars(text).items() if callable(function)})
    environment.filters.update(md=escape, printable=printable, several=several)
    environment.filters["svg"] = lambda panel: Markup(panel.svg())  # noqa: S704 - its text is escaped
    environment.tests.update(strong=lambda cell: isinstance(cell, Strong))
    environment.tests.update(plot=lambda cell: isinstance(cell, Plot))
    environment.tests.update(tagged=lambda cell: isinstance(cell, Tagged))
    environment.globals.update(css=_own("report.css"), nothing_decided=NOTHING_DECIDED, version=__version__)
    return environment


def escape(words: str) -> str:
    """Text from records as Markdown that shows it: on one line, without markup or table cells of its own."""
    shown = _MARKDOWN.sub(lambda found: found[1] or f"\\{found[0]}", printable(words))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- words of tables --------------------------------------------------------------------------------------------------


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
    for name, value in summary.provenance.items():
        sized = name == "host.memory" and value.isdecimal()  # the JSON has the bytes
        yield name, f"{int(value) / GIB:.1f} GiB" if sized else value


LONGEST, KEPT = 120, 60
PRINTED = 400


def shorten_names(summary: Summary) -> tuple[Summary, Mapping[str, str]]:
    metrics = (mean.name for combo in summary.combos for mean in combo.metrics)
    kinds = (kind for combo in summary.combos if combo.failures for kind in combo.failures.kinds)
    names = {*summary.policies, *summary.environments, *metrics, *kinds, summary.run, summary.grid or ""}
    long = sorted(name for name in names if len(name) > LONGEST)
    if not long:
        return summary, {}
    short = {name: f"{shortened(name, KEPT)} (name {number})" for number, name in enumerate(long, 1)}
    pattern = re.compile("|".join(map(re.escape, sorted(long, key=len, reverse=True))))

    def rewritten(text: str) -> str:
        return pattern.sub(lambda match: short[match[0]], text) if len(text) > LONGEST else text

    full = {name: shortened(name, PRINTED) if len(name) > PRINTED else name for name in long}
    return with_texts(summary, rewritten), {short[name]: full[name] for name in long}
