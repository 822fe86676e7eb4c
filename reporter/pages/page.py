"""The report for people: what the HTML and the Markdown report share, and both made from a template. Pure but for the
templates' text."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from functools import cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comborun import __version__
from comborun.reporter import text
from comborun.reporter.comparing.claims import NOTHING_DECIDED
from comborun.reporter.pages.words import methods, sentences
from comborun.reporter.summary import describe_missing
from comborun.text import GIB, printable, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jinja2 import Environment
    from markupsafe import Markup

    from comborun.reporter.counting.ending import Ending
    from comborun.reporter.counting.quality import Quality
    from comborun.reporter.figures.figure import Figure
    from comborun.reporter.figures.panel import Panel
    from comborun.reporter.summary import ComboSummary, MetricMean, Summary

TEMPLATES = Path(__file__).parents[1] / "templates"

FINDINGS_SHOWN = 200
KINDS_SHOWN = 8
EARLY = "† Some of its environments stopped early, where the number of episodes depends on how they went."
GAPS = ("environments missing", "not complete")
"""heads of what a mean lacks: environments without a completed episode, and those where not all are completed"""
OPEN_LENGTH = 1500
"""signs of what is not decided: more is folded"""
OPEN_COMBOS, OPEN_DRAWINGS = 24, 6
"""tables of more combos, and figures and environments that are more, are folded"""
CLAIMS_SHOWN = 10
LOGS_SHOWN = 50
COMPARISONS_SHOWN = 40
"""of an environment, the smallest p first"""

_EPISODES = ("cumulative_success", "time_to_success", "failure_kinds")
"""figures with a section of their own"""
_MARKDOWN = re.compile(r"[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])")
"""an underscore inside a word is only an underscore"""


def page(summary: Summary) -> dict[str, Any]:
    """Everything that a template needs, still as values."""
    combos = summary.combos
    kinds = Counter[str]()
    for combo in combos:
        kinds.update(dict(combo.failures.counts) if combo.failures else {})
    rated = any(combo.counts for combo in combos)
    lettered = any(group.letters for group in summary.comparisons.environments)
    return {
        "summary": summary,
        "sentences": sentences(summary),
        # Whether what is not decided is too much to stand open in front of everything else.
        "folded": sum(map(len, summary.claims.left_open)) > OPEN_LENGTH,
        "large": len(combos) > OPEN_COMBOS,
        "lettered": lettered,
        "rated": rated,
        # Whether completed and planned differ anywhere, so that both must be shown.
        "denominators": any(combo.counts.completed != combo.counts.planned for combo in combos if combo.counts),
        "columns": 3 + 7 * rated + 3 * summary.planned + lettered,
        "comparisons": [
            (group, sorted(group.comparisons, key=attrgetter("p_holm"))[:COMPARISONS_SHOWN])
            for group in summary.comparisons.environments
        ],
        "graded": sorted(summary.comparisons.graded, key=attrgetter("p_holm"))[:COMPARISONS_SHOWN],
        "kinds_compared": summary.kinds[:COMPARISONS_SHOWN],
        "metrics": tuple(dict.fromkeys(mean.name for combo in combos for mean in combo.metrics)),
        "kinds": tuple(kind for kind, _ in kinds.most_common(KINDS_SHOWN)),
        "logs": [combo for combo in combos if combo.ending.log],
        "failed": [combo for combo in combos if combo.failures and combo.failures.field],
        "tallies": tuple(_tallies(summary.quality)),
        "unshown": max(0, len(summary.quality.findings) - FINDINGS_SHOWN),
        "provenance": tuple(_provenance(summary)),
        "method": methods(summary),
    }


def html(sections: Mapping[str, Any], drawn: Iterable[Figure]) -> str:
    """One page that needs nothing but itself; every text from records is escaped."""
    figures = {figure.name: figure for figure in drawn}
    summary: Summary = sections["summary"]
    rated = (
        name for name in summary.environments if any(_rated(one) for one in summary.combos if one.environment == name)
    )
    panels = figures["intervals"].panels if "intervals" in figures else ()
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
        ("means", "Means", sections["summary"].macro_means),
        ("environments", "Environments", sections["comparisons"]),
        ("trends", "Checkpoints", "trends" in figures),
        ("graded", "Compared by metrics", sections["graded"]),
        ("combos", "Combos", True),
        *((name, figures[name].title, True) for name in _EPISODES if name in figures),
        ("kinds", "Failure kinds compared", sections["kinds_compared"]),
        ("metrics", "Metrics", sections["metrics"]),
        ("contact", "Failed episodes", sections["sheet"]),
        ("logs", "Logs of failures", sections["logs"]),
        ("sessions", "Sessions over time", "sessions" in figures),
        ("quality", "Data quality", True),
        ("method", "Method and provenance", True),
    )
    return ((anchor, title) for anchor, title, there in every if there)


def markdown(sections: Mapping[str, Any]) -> str:
    """GitHub-flavoured, readable as plain text too."""
    return rendered("report.md.j2", **sections)


def rendered(template: str, **values: object) -> str:
    common = {
        "css": _own("report.css"),
        "early": EARLY,
        "gaps": GAPS,
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
    environment.filters.update(means=means, planned=_planned, shortfall=shortfall, tag=_tag, tallies=tallies_of)
    environment.filters.update(md=escape, printable=printable, width="{:.2%}".format)
    environment.filters.update(several=several, svg=_svg)
    environment.globals.update(
        nothing=text.NOTHING,
        findings_shown=FINDINGS_SHOWN,
        claims_shown=CLAIMS_SHOWN,
        told_shown=2 * CLAIMS_SHOWN,
        open_drawings=OPEN_DRAWINGS,
        logs_shown=LOGS_SHOWN,
    )
    return environment


def escape(words: str) -> str:
    """Text from records as Markdown that shows it: on one line, without markup or table cells of its own.

    GitHub makes links of bare addresses all the same.
    """
    shown = _MARKDOWN.sub(r"\\\g<0>", printable(words))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- words of tables --------------------------------------------------------------------------------------------------


def means(combo: ComboSummary, names: tuple[str, ...]) -> tuple[MetricMean | None, ...]:
    """The combo's means in the order of `names`."""
    found = {mean.name: mean for mean in combo.metrics}
    return tuple(found.get(name) for name in names)


def tallies_of(combo: ComboSummary, names: tuple[str, ...]) -> tuple[int, ...]:
    """Failed episodes of each kind in `names`, then of other kinds, untold and errored ones."""
    assert combo.failures
    counts = dict(combo.failures.counts)
    other = combo.failures.other + sum(count for kind, count in counts.items() if kind not in names)
    return (*(counts.get(name, 0) for name in names), other, combo.failures.untold, combo.failures.errored)


def _planned(combo: ComboSummary) -> str:
    spare = f" ({combo.not_needed} not needed)" if combo.not_needed else ""
    return (f"{combo.planned:,} steps" if combo.unit == "step" else str(combo.planned)) + spare


def shortfall(combo: ComboSummary) -> str:
    """The other denominator, and which episodes are missing; empty where every planned episode has a verdict."""
    counts = combo.counts
    if counts is None or counts.completed == counts.planned:
        return ""
    parts = []
    if combo.rate_of_planned is not None:
        parts.append(f"of all {counts.planned} planned: {text.claim(combo.rate_of_planned)}")
    if counts.missing:
        parts.append(f"missing: {describe_missing(counts)}")
    if combo.bounds is not None:
        low, high = map(text.fraction, combo.bounds)
        parts.append(f"between {low} and {high} per cent, however the others would have gone")
    return "; ".join(parts)


def _tag(ending: Ending) -> str:
    """The style of an outcome: one with a warning must not look like one without."""
    if ending.outcome is None:
        return ""
    return f"{ending.outcome} warned" if ending.outcome == "succeeded" and ending.warnings else str(ending.outcome)


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
