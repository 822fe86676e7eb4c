"""When which session ran: an attempt is a bar, a row holds what ran one after another. Under them how busy the machine
was: a strip each for load, memory and every GPU, in per cent of what there is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from comborun.reporter.figures.canvas import INK, SERIES, SMALL, WHOLE, Canvas, Frame, fit, ink_on, measure, ticks
from comborun.reporter.figures.plate import Drawing, Entry, Plate, key
from comborun.reporter.records.usage import gpu_at, gpu_indexes, track
from comborun.reporter.text import duration, number
from comborun.rules.words import Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.reporter.counting.schedule import AttemptSpan, Schedule
    from comborun.reporter.records.usage import Bin, Sample

ROW = 0.21
LANES, STRIPS = 60, 18
"""rows of sessions, and strips below them, that a figure holds"""
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

STRIP = 0.86
"""inches of a strip with its title"""
STRIP_TITLE = 0.26
SIDE = 0.36
"""inches for the values at its left"""
BUSY = Entry("load, GPU utilization", SERIES[2], ())
MEMORY = Entry("memory in use", INK, ())
GAP = 5
"""nothing is known of a time that is so many times the usual distance of two points"""


def sessions(schedule: Schedule) -> Plate | None:
    """None where nothing took any time."""
    if schedule.ended <= schedule.started:
        return None
    every, below = schedule.lanes(), strips(schedule.usage)[:STRIPS]
    lanes = every[:LANES]
    outcomes = {stay.outcome for stay in schedule.stays}
    entries = [
        *(Entry(str(outcome or "no end record"), colour) for outcome, colour in COLOURS.items() if outcome in outcomes),
        *(entry for entry in (BUSY, MEMORY) if any(entry is shown for strip in below for shown, _ in strip.lines)),
    ]
    usage = (
        " Below them the whole machine, with all that anybody ran there: the mean of moments close together as a line,"
        " the least and the most of them as a band; nothing where nobody looked."
    )
    rest = f" The first {LANES} of {len(every)} rows." if len(every) > LANES else ""
    height = HEAD + ROW * len(lanes) + FOOT + STRIP * len(below)
    return Plate(
        name="sessions",
        title="Sessions over time",
        note="Every attempt of every session, in as few rows as hold them; a second attempt and later ones carry their"
        f" number. {_words(schedule)}{usage if below else ''}{rest}",
        drawings=(Drawing("Sessions over time", WHOLE, height, _Sessions(schedule, lanes, below).draw),),
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


@dataclass(frozen=True)
class _Sessions:
    schedule: Schedule
    lanes: Sequence[Sequence[AttemptSpan]]
    below: Sequence[Strip]

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        started, bound = self.schedule.started, self.schedule.bound
        span = self.schedule.ended - started
        left = SIDE if self.below else 0.1
        frame = Frame(x + left, y + HEAD, WHOLE - 0.2 - left, ROW * len(self.lanes), limits=(0.0, span))
        _, scale, unit = next(entry for entry in UNITS if span >= entry[0])
        foot = frame.top + frame.height
        frame.columns(canvas, [(value * scale, number(value)) for value in ticks(span / scale, 10)])
        canvas.text((frame.left + frame.width / 2, foot + 0.32), f"{unit} since the first start", SMALL)
        if bound and bound <= span:
            place = frame.x(bound)
            canvas.line([(place, frame.top - 0.06), (place, foot)], INK, 1.1, (3, 2))
            canvas.text((place - 0.05, y + 0.1), "bound", SMALL, "right")
        for row, lane in enumerate(self.lanes):
            for stay in lane:
                end = self.schedule.ended if stay.ended is None else stay.ended
                _bar(canvas, frame, row, (stay, stay.started - started, end - started))
        for row, strip in enumerate(self.below):
            strip.draw(canvas, frame, foot + FOOT + row * STRIP + STRIP_TITLE, started)


def _bar(canvas: Canvas, frame: Frame, row: int, shown: tuple[AttemptSpan, float, float]) -> None:
    """An attempt, and the seconds of its start and end."""
    stay, start, end = shown
    colour = COLOURS[stay.outcome]
    left, top = frame.x(start), frame.top + (row + 0.08) * ROW
    width = max(frame.x(end) - left - 0.015, 0.015)
    canvas.box((left, top), width, 0.84 * ROW, colour)
    again = f" #{stay.attempt}" if stay.attempt > 1 else ""
    room = width - 0.08 - measure(again, SMALL)
    if room > 0.45:
        words = fit(f"{stay.environment} · {stay.policy}", room, SMALL) + again
        canvas.text((left + 0.05, top + 0.42 * ROW), words, SMALL, "left", colour=ink_on(colour))
    elif again and width > measure(again, SMALL):
        canvas.text((left + width / 2, top + 0.42 * ROW), again.strip(), SMALL, colour=ink_on(colour))


@dataclass(frozen=True)
class Strip:
    title: str
    lines: tuple[tuple[Entry, tuple[Bin, ...]], ...]
    """shares of what there is: 1 is all of it, and load may be more"""

    def draw(self, canvas: Canvas, above: Frame, top: float, started: float) -> None:
        """On the scale of time of `above`: seconds since `started`."""
        limit = max(1.0, *(point.high for _, points in self.lines for point in points))
        frame = Frame(above.left, top, above.width, STRIP - STRIP_TITLE - 0.1, above.limits, (0.0, limit))
        canvas.text((frame.left, frame.top - 0.12), self.title, SMALL, "left")
        frame.rows(canvas, [(value, number(100 * value)) for value in ticks(limit, 2)])
        for entry, points in self.lines:
            for stretch in _stretches(points):
                _line(canvas, frame, entry, [(point.time - started, point) for point in stretch])


def strips(samples: Sequence[Sample]) -> tuple[Strip, ...]:
    """Of what is known at any moment."""
    return tuple(strip for strip in _strips(samples) if strip.lines)


def _strips(samples: Sequence[Sample]) -> Iterator[Strip]:
    cpus = max((sample.cpus or 0 for sample in samples), default=0)
    memory = max((sample.memory_kib or 0 for sample in samples), default=0)
    load = track(samples, lambda sample: _share(sample.load, sample.cpus))
    used = track(samples, lambda sample: _share(sample.used_kib, sample.memory_kib))
    yield Strip(f"Load, % of {several(cpus, 'CPU')}", _known((BUSY, load)))
    yield Strip(f"Main memory, % of {number(memory / 2**20)} GiB", _known((MEMORY, used)))
    for index in gpu_indexes(samples):
        yield _gpu_strip(samples, index)


def _gpu_strip(samples: Sequence[Sample], index: int) -> Strip:
    def memory(sample: Sample) -> float | None:
        gpu = gpu_at(sample, index)
        return _share(gpu.used_mib, gpu.total_mib) if gpu else None

    def utilization(sample: Sample) -> float | None:
        gpu = gpu_at(sample, index)
        return _share(gpu.utilization, 100) if gpu else None

    found = (gpu_at(sample, index) for sample in samples)
    total = max((gpu.total_mib or 0 for gpu in found if gpu), default=0)
    lines = _known((MEMORY, track(samples, memory)), (BUSY, track(samples, utilization)))
    return Strip(f"GPU {index}: memory, % of {number(total / 1024)} GiB; utilization, %", lines)


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _known(*lines: tuple[Entry, tuple[Bin, ...]]) -> tuple[tuple[Entry, tuple[Bin, ...]], ...]:
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


def _line(canvas: Canvas, frame: Frame, entry: Entry, points: Sequence[tuple[float, Bin]]) -> None:
    if len(points) == 1:
        canvas.dot(frame.at(points[0][0], points[0][1].mean), entry.colour, 2.4)
        return
    if any(point.low < point.high for _, point in points):
        low = [frame.at(time, point.low) for time, point in points]
        high = [frame.at(time, point.high) for time, point in reversed(points)]
        canvas.area([*low, *high], entry.colour)
    canvas.line([frame.at(time, point.mean) for time, point in points], entry.colour, 1.1, entry.dashes or ())
