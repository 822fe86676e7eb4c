"""The report's figures: each from numbers that the report holds, as text in a page and, if asked for, as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.reporter.counting.measures import running
from comborun.reporter.figures.episodes import cumulative_success, failure_kinds, time_to_success, trends
from comborun.reporter.figures.rates import forest, heat_map
from comborun.reporter.figures.sessions import sessions

if TYPE_CHECKING:
    from comborun.reporter.counting.schedule import Schedule
    from comborun.reporter.figures.plate import Plate
    from comborun.reporter.summary import Report

NAMES = ("success_rates", "intervals", "trends", "cumulative_success", "time_to_success", "failure_kinds", "sessions")


def plates(report: Report, schedule: Schedule) -> tuple[Plate, ...]:
    """Every figure that the records support, in reading order; their names are among NAMES."""
    summary = report.summary
    drawn = (
        heat_map(summary),
        forest(summary),
        trends(summary),
        cumulative_success(summary, running(report.episodes)),
        time_to_success(summary),
        failure_kinds(summary),
        sessions(schedule),
    )
    return tuple(plate for plate in drawn if plate)
