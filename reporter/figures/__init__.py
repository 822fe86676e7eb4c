"""The report's figures, each from numbers that the report holds.

A figure is a row of panels, a panel is a list of marks: text in a page, and files if somebody asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.reporter.counting.measures import running
from comborun.reporter.figures.episodes import cumulative_success, failure_kinds, time_to_success, trends
from comborun.reporter.figures.rates import heat_map, intervals
from comborun.reporter.figures.sessions import sessions

if TYPE_CHECKING:
    from comborun.reporter.counting.schedule import Schedule
    from comborun.reporter.figures.figure import Figure
    from comborun.reporter.summary import Report

NAMES = ("success_rates", "intervals", "trends", "cumulative_success", "time_to_success", "failure_kinds", "sessions")


def figures(report: Report, schedule: Schedule) -> tuple[Figure, ...]:
    """Every figure that the records support, in reading order; their names are among NAMES."""
    summary = report.summary
    drawn = (
        heat_map(summary),
        intervals(summary),
        trends(summary),
        cumulative_success(summary, running(report.episodes)),
        time_to_success(summary),
        failure_kinds(summary),
        sessions(schedule),
    )
    return tuple(figure for figure in drawn if figure)
