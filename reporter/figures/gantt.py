"""When which session ran: an attempt is a bar, a row holds what ran one after another."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures import strips
from comborun.reporter.figures.colours import ink_on
from comborun.reporter.figures.frame import SMALL, Frame, ticks
from comborun.reporter.figures.key import Entry, key
from comborun.reporter.figures.names import fit
from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.figures.sheet import INK, Sheet, measure
from comborun.reporter.text import duration, number
from comborun.rules.words import Outcome
from comborun.text import several

if TYPE_CHECKING:
    from comborun.reporter.counting.schedule import Schedule, Stay

WIDTH = 11.85
ROW = 0.27
HEAD = 0.24
FOOT = 0.5
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
USAGE = (
    " Below them the whole machine, with all that anybody ran there: the mean of moments close together as a line, the"
    " least and the most of them as a band; nothing where nobody looked."
)


def gantt(schedule: Schedule) -> Plate | None:
    """None where nothing took any time."""
    if schedule.ended <= schedule.started:
        return None
    lanes = schedule.lanes()
    outcomes = {stay.outcome for stay in schedule.stays}
    entries = [
        Entry(str(outcome or "no end record"), colour) for outcome, colour in COLOURS.items() if outcome in outcomes
    ]
    below = strips.strips(schedule.usage)
    drawn = {entry.name for strip in below for entry, _ in strip.lines}
    entries += [entry for entry in (strips.BUSY, strips.MEMORY) if entry.name in drawn]
    return Plate(
        name="sessions",
        title="Sessions over time",
        note=f"Every attempt of every session, in as few rows as hold them; a second attempt and later ones carry their"
        f" number. {_words(schedule)}{USAGE if below else ''}",
        drawings=(Drawing(WIDTH, HEAD + ROW * len(lanes) + FOOT + strips.height(below), partial(_draw, schedule)),),
        key=key(entries),
    )


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


def _draw(schedule: Schedule, sheet: Sheet, x: float, y: float) -> None:
    lanes, below = schedule.lanes(), strips.strips(schedule.usage)
    span = schedule.ended - schedule.started
    left = strips.SIDE if below else 0.1
    frame = Frame(x + left, y + HEAD, WIDTH - 0.2 - left, ROW * len(lanes), limits=(0.0, span))
    _, scale, unit = next(entry for entry in UNITS if span >= entry[0])
    frame.columns(sheet, [(value * scale, number(value)) for value in ticks(span / scale, 10)])
    sheet.text((frame.left + frame.width / 2, frame.top + frame.height + 0.32), f"{unit} since the first start", SMALL)
    if schedule.bound and schedule.bound <= span:
        place = frame.x(schedule.bound)
        sheet.line([(place, frame.top - 0.06), (place, frame.top + frame.height)], INK, 1.1, (0, (3, 2)))
        sheet.text((place - 0.05, y + 0.1), "bound", SMALL, "right")
    for row, lane in enumerate(lanes):
        for stay in lane:
            _bar(sheet, frame, row, (stay, schedule))
    strips.draw(sheet, below, replace(frame, top=frame.top + frame.height + FOOT), schedule.started)


def _bar(sheet: Sheet, frame: Frame, row: int, shown: tuple[Stay, Schedule]) -> None:
    from matplotlib.colors import to_rgba

    stay, schedule = shown
    colour = COLOURS[stay.outcome]
    end = schedule.ended if stay.ended is None else stay.ended
    left, right = frame.x(stay.started - schedule.started), frame.x(end - schedule.started)
    top = frame.top + (row + 0.08) * ROW
    width = max(right - left - 0.015, 0.015)
    sheet.box((left, top), width, 0.84 * ROW, colour)
    again = f" #{stay.attempt}" if stay.attempt > 1 else ""
    room = width - 0.08 - measure(again, SMALL)
    if room > 0.45:
        words = fit(f"{stay.environment} · {stay.policy}", room, SMALL) + again
        sheet.text((left + 0.05, top + 0.42 * ROW), words, SMALL, "left", color=ink_on(to_rgba(colour)))
    elif again and width > measure(again, SMALL):
        sheet.text((left + width / 2, top + 0.42 * ROW), again.strip(), SMALL, color=ink_on(to_rgba(colour)))
