"""When which session ran: an attempt is a bar, a row holds what ran one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.reporter.figures.figure import PAGE, Axes, Figure, ink_on, legend, ticks
from comborun.reporter.figures.panel import SMALL, LineStyle, Panel, TextStyle, fit, measure
from comborun.reporter.text import duration, number
from comborun.rules.words import Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.counting.schedule import AttemptSpan, Schedule

ROW, HEAD, FOOT = 0.21, 0.24, 0.5
ROWS = 60
"""rows of sessions that a figure holds"""
COLOURS = {
    Outcome.SUCCEEDED: "#0072b2",
    Outcome.PARTIAL: "#e69f00",
    Outcome.FAILED: "#d55e00",
    Outcome.CANCELLED: "#888888",
    Outcome.LOST: "#cc79a7",
    Outcome.NOT_NEEDED: "#bbbbbb",
    None: "#56b4e9",
}
UNITS = ((7200.0, 3600.0, "hours"), (180.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
"""from how many seconds on, seconds per unit, its name"""


def sessions(schedule: Schedule) -> Figure | None:
    """None where nothing took any time."""
    if schedule.ended <= schedule.started:
        return None
    every = schedule.lanes()
    outcomes = {attempt.outcome for attempt in schedule.stays}
    entries: list[tuple[str, LineStyle | str]] = [
        (str(outcome or "no end record"), colour) for outcome, colour in COLOURS.items() if outcome in outcomes
    ]
    rest = f" The first {ROWS} of {len(every)} rows." if len(every) > ROWS else ""
    note = (
        "Every attempt of every session, in as few rows as hold them; a second attempt and later ones carry their"
        f" number. {_words(schedule)}{rest}"
    )
    return Figure("sessions", "Sessions over time", note, (_panel(schedule, every[:ROWS]),), legend(entries))


def _words(schedule: Schedule) -> str:
    """The makespan beside what bounds it."""
    span = schedule.ended - schedule.started
    words = f"From the first start to the last end: {duration(span)}"
    if schedule.work is None:
        return f"{words}, as far as the records go."
    words += f"; one after another: {duration(schedule.work)} ({schedule.work / span:.1f} times as long)"
    if schedule.bound is None or schedule.slots is None:
        return f"{words}."
    slots = several(schedule.slots, "slot")
    return f"{words}; no order of the same sessions in {slots} takes less than {duration(schedule.bound)}."


def _panel(schedule: Schedule, rows: Sequence[Sequence[AttemptSpan]]) -> Panel:
    started, span = schedule.started, schedule.ended - schedule.started
    left, height = 0.1, ROW * len(rows)
    panel = Panel("Sessions over time", PAGE, HEAD + height + FOOT)
    axes = Axes(left, HEAD, PAGE - 0.2 - left, height, x_limit=span)
    _, scale, unit = next(entry for entry in UNITS if span >= entry[0])
    places = [(value * scale, number(value)) for value in ticks(span / scale, 10)]
    axes.x_ticks(panel, places, f"{unit} since the first start")
    if schedule.bound and schedule.bound <= span:
        place = axes.x(schedule.bound)
        panel.lines([[(place, axes.top - 0.06), (place, axes.bottom)]], LineStyle(width=1.1, dashes=(3, 2)))
        panel.text((place - 0.05, 0.1), "bound", TextStyle(SMALL, "right"))
    for row, attempts in enumerate(rows):
        for attempt in attempts:
            end = schedule.ended if attempt.ended is None else attempt.ended
            left, right = axes.x(attempt.started - started), axes.x(end - started)
            _bar(panel, attempt, (left, axes.top + (row + 0.08) * ROW), max(right - left - 0.015, 0.015))
    return panel


def _bar(panel: Panel, attempt: AttemptSpan, corner: tuple[float, float], width: float) -> None:
    colour, (left, top) = COLOURS[attempt.outcome], corner
    middle = top + 0.34 * ROW
    panel.box(corner, (width, 0.84 * ROW), colour)
    again = f" #{attempt.attempt}" if attempt.attempt > 1 else ""
    free, ink = width - 0.08 - measure(again, SMALL), ink_on(colour)
    if free > 0.45:
        words = fit(f"{attempt.environment} · {attempt.policy}", free, SMALL) + again
        panel.text((left + 0.05, middle), words, TextStyle(SMALL, "left", colour=ink))
    elif again and width > measure(again, SMALL):
        panel.text((left + width / 2, middle), again.strip(), TextStyle(SMALL, colour=ink))
