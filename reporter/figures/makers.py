"""The report's figures. A figure is a row of panels, a panel is a list of marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from comborun.reporter.counting.measures import running
from comborun.reporter.figures.episodes import cumulative_success, failure_kinds, time_to_success, training, trends
from comborun.reporter.figures.figure import Figure
from comborun.reporter.figures.ranking import differences, pairs, ranking
from comborun.reporter.figures.rates import heat_map, intervals
from comborun.reporter.figures.sessions import sessions
from comborun.reporter.standing import standing_of
from comborun.reporter.summary import Report

MOST_COMBOS = 1000
"""a page of more has no tables and no figures of single combos"""
OF_COMBOS = ("intervals", "cumulative_success", "time_to_success", "failure_kinds")
MAKERS: Mapping[str, Callable[[Report], Figure | None]] = {
    "ranking": lambda report: ranking(standing_of(report.summary)),
    "success_rates": lambda report: heat_map(report.summary),
    "pairs": lambda report: pairs(standing_of(report.summary)),
    "differences": lambda report: differences(standing_of(report.summary), report.summary.comparisons.mean_differences),
    "intervals": lambda report: intervals(report.summary),
    "trends": lambda report: trends(report.summary),
    "training": lambda report: training(report.summary),
    "cumulative_success": lambda report: cumulative_success(report.summary, running(report.episodes)),
    "time_to_success": lambda report: time_to_success(report.summary),
    "failure_kinds": lambda report: failure_kinds(report.summary),
    "sessions": lambda report: sessions(report.summary.timing),
}
"""by name, in reading order"""


def figures(report: Report, *, files: bool = False) -> tuple[Figure, ...]:
    """Every figure that the records support. Of more than MOST_COMBOS those OF_COMBOS are only drawn as files."""
    every = files or len(report.summary.combos) <= MOST_COMBOS
    drawn = (make(report) for name, make in MAKERS.items() if every or name not in OF_COMBOS)
    return tuple(figure for figure in drawn if figure)
