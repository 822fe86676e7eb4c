"""When which session ran: an attempt is a bar, a row holds what ran one after another. Below it how busy the machine
was: a track each for load, memory and every GPU, in per cent of what there is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from comborun.reporter.figures.figure import PAGE, SERIES, Axes, Figure, ink_on, legend, ticks
from comborun.reporter.figures.panel import INK, SMALL, LineStyle, Panel, TextStyle, fit, measure
from comborun.reporter.records.usage import gpu_at, gpu_indexes, track
from comborun.reporter.text import duration, number
from comborun.rules.words import Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.reporter.counting.schedule import AttemptSpan, Schedule
    from comborun.reporter.records.usage import Bin, Sample

ROW, HEAD, FOOT = 0.21, 0.24, 0.5
ROWS, TRACKS = 60, 18
"""rows of sessions, and tracks below them, that a figure holds"""
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
TRACK, TRACK_TITLE = 0.86, 0.26
"""inches of a track with its title, and of the title"""
SIDE = 0.36
"""inches for the values at its left"""
BUSY, MEMORY = LineStyle(SERIES[2], 1.1), LineStyle(INK, 1.1)
LINES = {BUSY: "load, GPU utilization", MEMORY: "memory in use"}
GAP = 5
"""nothing is known of a time that is so many times the usual distance of two points"""


def sessions(schedule: Schedule) -> Figure | None:
    """None where nothing took any time."""
    if schedule.ended <= schedule.started:
        return None
    every, below = schedule.lanes(), tracks(schedule.usage)[:TRACKS]
    outcomes = {attempt.outcome for attempt in schedule.stays}
    entries: list[tuple[str, LineStyle | str]] = [
        (str(outcome or "no end record"), colour) for outcome, colour in COLOURS.items() if outcome in outcomes
    ]
    seen = {style for track in below for style, _ in track.lines}
    entries += [(name, style) for style, name in LINES.items() if style in seen]
    usage = (
        " Below them the whole machine, with all that anybody ran there: the mean of moments close together as a line,"
        " the least and the most of them as a band; nothing where nobody looked."
    )
    rest = f" The first {ROWS} of {len(every)} rows." if len(every) > ROWS else ""
    note = (
        "Every attempt of every session, in as few rows as hold them; a second attempt and later ones carry their"
        f" number. {_words(schedule)}{usage if below else ''}{rest}"
    )
    return Figure("sessions", "Sessions over time", note, (_panel(schedule, every[:ROWS], below),), legend(entries))


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


def _panel(schedule: Schedule, rows: Sequence[Sequence[AttemptSpan]], below: Sequence[Track]) -> Panel:
    started, span = schedule.started, schedule.ended - schedule.started
    left, height = SIDE if below else 0.1, ROW * len(rows)
    panel = Panel("Sessions over time", PAGE, HEAD + height + FOOT + TRACK * len(below))
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
    for row, one in enumerate(below):
        top = axes.bottom + FOOT + row * TRACK + TRACK_TITLE
        _draw_track(panel, one, Axes(axes.left, top, axes.width, TRACK - TRACK_TITLE - 0.1, span, one.limit), started)
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


# -- how busy the machine was -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Track:
    title: str
    lines: tuple[tuple[LineStyle, tuple[Bin, ...]], ...]
    """shares of what there is: 1 is all of it, and load may be more"""

    @property
    def limit(self) -> float:
        return max(1.0, *(point.high for _, points in self.lines for point in points))


def _draw_track(panel: Panel, one: Track, axes: Axes, started: float) -> None:
    panel.text((axes.left, axes.top - 0.12), one.title, TextStyle(SMALL, "left"))
    axes.y_ticks(panel, [(value, number(100 * value)) for value in ticks(one.limit, 2)])
    for style, points in one.lines:
        for stretch in _stretches(points):
            times = [point.time - started for point in stretch]
            mean = [axes.at(time, point.mean) for time, point in zip(times, stretch, strict=True)]
            low = [axes.at(time, point.low) for time, point in zip(times, stretch, strict=True)]
            high = [axes.at(time, point.high) for time, point in zip(times, stretch, strict=True)]
            if len(stretch) == 1:
                panel.dot(mean[0], style.colour, 2.4)
                continue
            if low != high:
                panel.area([*low, *reversed(high)], style.colour)
            panel.lines([mean], style)


def tracks(samples: Sequence[Sample]) -> tuple[Track, ...]:
    """Of what is known at any moment."""
    return tuple(track for track in _tracks(samples) if track.lines)


def _tracks(samples: Sequence[Sample]) -> Iterator[Track]:
    cpus = max((sample.cpus or 0 for sample in samples), default=0)
    memory = max((sample.memory_kib or 0 for sample in samples), default=0)
    load = track(samples, lambda sample: _share(sample.load, sample.cpus))
    used = track(samples, lambda sample: _share(sample.used_kib, sample.memory_kib))
    yield Track(f"Load, % of {several(cpus, 'CPU')}", _known((BUSY, load)))
    yield Track(f"Main memory, % of {number(memory / 2**20)} GiB", _known((MEMORY, used)))
    for index in gpu_indexes(samples):
        yield _gpu_track(samples, index)


def _gpu_track(samples: Sequence[Sample], index: int) -> Track:
    def memory(sample: Sample) -> float | None:
        gpu = gpu_at(sample, index)
        return _share(gpu.used_mib, gpu.total_mib) if gpu else None

    def utilization(sample: Sample) -> float | None:
        gpu = gpu_at(sample, index)
        return _share(gpu.utilization, 100) if gpu else None

    found = (gpu_at(sample, index) for sample in samples)
    total = max((gpu.total_mib or 0 for gpu in found if gpu), default=0)
    lines = _known((MEMORY, track(samples, memory)), (BUSY, track(samples, utilization)))
    return Track(f"GPU {index}: memory, % of {number(total / 1024)} GiB; utilization, %", lines)


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _known(*lines: tuple[LineStyle, tuple[Bin, ...]]) -> tuple[tuple[LineStyle, tuple[Bin, ...]], ...]:
    return tuple(line for line in lines if line[1])


def _stretches(points: Sequence[Bin]) -> Iterator[list[Bin]]:
    """Without the times in which nobody looked."""
    distances = [right.time - left.time for left, right in pairwise(points)]
    usual = median(distances) if distances else 0.0
    stretch = [points[0]]
    for distance, point in zip(distances, points[1:], strict=True):
        if distance > GAP * usual:
            yield stretch
            stretch = []
        stretch.append(point)
    yield stretch
