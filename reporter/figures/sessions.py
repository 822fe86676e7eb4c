"""When which session ran: an attempt is a bar, and a row holds attempts that ran one after another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures.figure import GREY, PAGE, SERIES, Figure, Panel, fit
from comborun.reporter.text import duration
from comborun.rules.words import Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from comborun.reporter.counting.ending import Span, Timing
    from comborun.reporter.records.collector import Attempt

ROW, ROWS = 0.21, 60
COLOURS = {
    Outcome.SUCCEEDED: SERIES[0],
    Outcome.PARTIAL: SERIES[4],
    Outcome.FAILED: SERIES[1],
    Outcome.CANCELLED: GREY,
    Outcome.LOST: SERIES[3],
    Outcome.NOT_NEEDED: SERIES[5],
    None: SERIES[6],
}
UNITS = ((7200.0, 3600.0, "hours"), (180.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
"""from how many seconds on, seconds per unit, its name"""


def sessions(timing: Timing) -> Figure | None:
    if timing.seen <= 0:
        return None
    lanes = timing.lanes()
    outcomes = {_outcome(attempt) for _, _, attempt in timing.spans}
    legend = {
        str(outcome or "no end record"): {"color": colour, "linewidth": 6}
        for outcome, colour in COLOURS.items()
        if outcome in outcomes
    }
    rest = f" The first {ROWS} of {len(lanes)} rows." if len(lanes) > ROWS else ""
    note = (
        "Every attempt of every session, in as few rows as hold them; a second attempt and later ones carry their"
        f" number. {_words(timing)}{rest}"
    )
    panel = Panel(
        "",
        ROW * len(lanes[:ROWS]),
        partial(_draw, timing=timing, lanes=lanes[:ROWS]),
        below=0.36,
        above=0.16,
        width=PAGE,
        labels=(),
    )
    return Figure("sessions", "Sessions over time", note, (panel,), legend)


def _outcome(attempt: Attempt) -> Outcome | None:
    return attempt.end.outcome if attempt.end else None


def _words(timing: Timing) -> str:
    words = f"From the first start to the last end: {duration(timing.seen)}"
    if timing.work is None:
        return f"{words}, as far as the records go."
    words += f"; one after another: {duration(timing.work)} ({timing.work / timing.seen:.1f} times as long)"
    if timing.bound is None or timing.slots is None:
        return f"{words}."
    slots = several(timing.slots, "slot")
    return f"{words}; no order of the same sessions in {slots} takes less than {duration(timing.bound)}."


def _draw(axes: Axes, timing: Timing, lanes: Sequence[Sequence[Span]]) -> None:
    first, (_, scale, unit) = timing.spans[0][0], next(entry for entry in UNITS if timing.seen >= entry[0])
    for row, lane in enumerate(lanes):
        spans = []
        for start, session, attempt in lane:
            left = (start - first) / scale
            width = ((first + timing.seen if attempt.ended is None else attempt.ended) - start) / scale
            spans.append((left, width))
            again = f" #{attempt.number}" if attempt.number > 1 else ""
            room = int(width * scale / timing.seen * 95) - len(again)  # characters of this size
            if room > 4:
                again = fit(f"{session.environment} · {session.policy}", room) + again
            if room >= 0:
                axes.text(left + width / 2, row, again.strip(), color="white", size=6.5, ha="center", va="center")
        axes.broken_barh(spans, (row - 0.42, 0.84), facecolors=[COLOURS[_outcome(attempt)] for _, _, attempt in lane])
    axes.set_xlim(0, timing.seen / scale)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_yticks(())
    axes.set_xlabel(f"{unit} since the first start")
    if timing.bound and timing.bound <= timing.seen:
        axes.axvline(timing.bound / scale, color="black", linestyle="--", linewidth=1)
        place = axes.get_xaxis_transform()
        axes.text(timing.bound / scale, 1, "bound", size=7, ha="right", va="bottom", transform=place)
