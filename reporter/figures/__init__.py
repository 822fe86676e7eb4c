"""The report's figures. A figure is a row of panels, a panel is a list of marks."""

from __future__ import annotations

from collections.abc import Callable

from comborun.reporter.counting.measures import running
from comborun.reporter.figures.episodes import cumulative_success, failure_kinds, time_to_success, trends
from comborun.reporter.figures.figure import Figure
from comborun.reporter.figures.rates import heat_map, intervals
from comborun.reporter.figures.sessions import sessions
from comborun.reporter.summary import Report

MOST_COMBOS = 1000
"""a page of more has no tables and no figures of single combos"""
OF_COMBOS = ("intervals", "cumulative_success", "time_to_success", "failure_kinds")
NAMES = ("success_rates", "intervals", "trends", "cumulative_success", "time_to_success", "failure_kinds", "sessions")


def figures(report: Report, *, files: bool = False) -> tuple[Figure, ...]:
    """Every figure that the records support, in reading order. Of more than MOST_COMBOS those OF_COMBOS are only drawn
    as files."""
    summary = report.summary
    makers: dict[str, Callable[[], Figure | None]] = {
        "success_rates": lambda: heat_map(summary),
        "intervals": lambda: intervals(summary),
        "trends": lambda: trends(summary),
        "cumulative_success": lambda: cumulative_success(summary, running(report.episodes)),
        "time_to_success": lambda: time_to_success(summary),
        "failure_kinds": lambda: failure_kinds(summary),
        "sessions": lambda: sessions(summary.timing),
    }
    every = files or len(summary.combos) <= MOST_COMBOS
    drawn = (make() for name, make in makers.items() if every or name not in OF_COMBOS)
    return tuple(figure for figure in drawn if figure)
