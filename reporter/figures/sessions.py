"""When which session ran: an attempt is a bar, and a row holds attempts that ran one after another."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.model.plan import Session
from comborun.reporter.counting.ending import RunTiming, TimedAttempt
from comborun.reporter.figures.figure import (
    PAGE,
    SMALL,
    Axes,
    Figure,
    LineStyle,
    Panel,
    TextStyle,
    ink_on,
    legend,
    ticks,
)
from comborun.reporter.figures.labels import fit, measure
from comborun.reporter.records.collected import AttemptRecord
from comborun.reporter.text import duration, number
from comborun.rules.vocabulary import Outcome
from comborun.text import several
from comborun.words.endings import outcome_words

ROW, HEAD, FOOT = 0.21, 0.24, 0.5
ROWS = 60
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


def sessions(timing: RunTiming) -> Figure | None:
    if timing.seen <= 0:
        return None
    every = timing.lanes()
    outcomes = {attempt.outcome for _, _, attempt in timing.spans}
    shown = [(outcome, colour) for outcome, colour in COLOURS.items() if outcome in outcomes]
    entries = [(outcome_words(outcome) or "no end record", colour) for outcome, colour in shown]
    rest = f" The first {ROWS} of {len(every)} rows." if len(every) > ROWS else ""
    note = (
        "Every attempt of every session, in as few rows as hold them; a second attempt and later ones carry their"
        f" number. {_words(timing)}{rest}"
    )
    return Figure("sessions", "Sessions over time", note, (_panel(timing, every[:ROWS]),), legend(entries))


def _words(timing: RunTiming) -> str:
    words = f"From the first start to the last end: {duration(timing.seen)}"
    if timing.work is None:
        return f"{words}, as far as the records go."
    words += f"; one after another: {duration(timing.work)} ({timing.work / timing.seen:.1f} times as long)"
    if timing.bound is None or timing.slots is None:
        return f"{words}."
    slots = several(timing.slots, "slot")
    return f"{words}; no order of the same sessions in {slots} takes less than {duration(timing.bound)}."


def _panel(timing: RunTiming, rows: Sequence[Sequence[TimedAttempt]]) -> Panel:
    span, first = timing.seen, timing.spans[0][0]
    left, height = 0.1, ROW * len(rows)
    panel = Panel("Sessions over time", PAGE, HEAD + height + FOOT)
    axes = Axes(left, HEAD, PAGE - 0.2 - left, height, x_limit=span)
    _, scale, unit = next(entry for entry in UNITS if span >= entry[0])
    shown = [(value * scale, number(value)) for value in ticks(span / scale, 10)]
    axes.x_ticks(panel, shown, f"{unit} since the first start")
    if timing.bound and timing.bound <= span:
        bound = axes.x(timing.bound)
        panel.lines([[(bound, axes.top - 0.06), (bound, axes.bottom)]], LineStyle(width=1.1, dashes=(3, 2)))
        panel.text((bound - 0.05, 0.1), "bound", TextStyle(SMALL, "right"))
    for row, spans in enumerate(rows):
        for start, session, attempt in spans:
            left, right = axes.x(start - first), axes.x(span if attempt.ended is None else attempt.ended - first)
            corner = (left, axes.top + (row + 0.08) * ROW)
            _bar(panel, session, attempt, corner, max(right - left - 0.015, 0.015))
    return panel


def _bar(panel: Panel, session: Session, attempt: AttemptRecord, corner: tuple[float, float], width: float) -> None:
    colour, (left, top) = COLOURS[attempt.outcome], corner
    middle = top + 0.34 * ROW
    panel.box(corner, (width, 0.84 * ROW), colour)
    again = f" #{attempt.number}" if attempt.number > 1 else ""
    free, ink = width - 0.08 - measure(again, SMALL), ink_on(colour)
    if free > 0.45:
        words = fit(f"{session.environment} · {session.policy}", free, SMALL) + again
        panel.text((left + 0.05, middle), words, TextStyle(SMALL, "left", colour=ink))
    elif again and width > measure(again, SMALL):
        panel.text((left + width / 2, middle), again.strip(), TextStyle(SMALL, colour=ink))
