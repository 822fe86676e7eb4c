"""How busy the machine was, under the sessions: a strip each for load, memory and every GPU, in per cent of what there
is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from comborun.reporter.figures.colours import SERIES
from comborun.reporter.figures.frame import SMALL, Frame, ticks
from comborun.reporter.figures.key import Entry
from comborun.reporter.figures.sheet import INK
from comborun.reporter.records.usage import gpu_at, gpu_indexes, track
from comborun.reporter.text import number
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from comborun.reporter.figures.sheet import Sheet
    from comborun.reporter.records.usage import Bin, Gpu, Sample

HEIGHT = 0.86
"""inches of a strip with its title"""
TITLE = 0.26
SIDE = 0.36
"""inches for the values at its left"""
BUSY = Entry("load, GPU utilization", SERIES[2], "solid")
MEMORY = Entry("memory in use", INK, "solid")
GAP = 5
"""as many times the usual distance of two points are a time of which nothing is known"""


@dataclass(frozen=True)
class Strip:
    title: str
    lines: tuple[tuple[Entry, tuple[Bin, ...]], ...]
    """shares of what there is: 1 is all of it, and load may be more"""

    @property
    def limit(self) -> float:
        return max(1.0, *(point.high for _, track in self.lines for point in track))


def strips(samples: Sequence[Sample]) -> tuple[Strip, ...]:
    """Of what is known at any moment."""
    return tuple(strip for strip in _strips(samples) if strip.lines)


def height(found: Sequence[Strip]) -> float:
    return HEIGHT * len(found)


def draw(sheet: Sheet, found: Sequence[Strip], above: Frame, started: float) -> None:
    """Below `above`, on its scale of time: seconds since `started`."""
    for row, strip in enumerate(found):
        top = above.top + row * HEIGHT + TITLE
        frame = Frame(above.left, top, above.width, HEIGHT - TITLE - 0.1, above.limits, (0.0, strip.limit))
        sheet.text((frame.left, frame.top - 0.12), strip.title, SMALL, "left")
        frame.rows(sheet, [(value, number(100 * value)) for value in ticks(strip.limit, 2)])
        for entry, points in strip.lines:
            for stretch in _stretches(points):
                _line(sheet, frame, entry, [(point.time - started, point) for point in stretch])


def _strips(samples: Sequence[Sample]) -> Iterator[Strip]:
    cpus = max((sample.cpus or 0 for sample in samples), default=0)
    memory = max((sample.memory_kib or 0 for sample in samples), default=0)
    yield Strip(f"Load, % of {several(cpus, 'CPU')}", _known((BUSY, track(samples, _load))))
    yield Strip(f"Main memory, % of {number(memory / 2**20)} GiB", _known((MEMORY, track(samples, _memory))))
    for index in gpu_indexes(samples):
        found = [gpu for sample in samples if (gpu := gpu_at(sample, index))]
        total = max((gpu.total_mib or 0 for gpu in found), default=0)
        yield Strip(
            f"GPU {index}: memory, % of {number(total / 1024)} GiB; utilization, %",
            _known(
                (MEMORY, track(samples, _of_gpu(index, _gpu_memory))),
                (BUSY, track(samples, _of_gpu(index, _gpu_utilization))),
            ),
        )


def _known(*lines: tuple[Entry, tuple[Bin, ...]]) -> tuple[tuple[Entry, tuple[Bin, ...]], ...]:
    return tuple(line for line in lines if line[1])


def _load(sample: Sample) -> float | None:
    return None if sample.load is None or not sample.cpus else sample.load / sample.cpus


def _memory(sample: Sample) -> float | None:
    return None if sample.used_kib is None or not sample.memory_kib else sample.used_kib / sample.memory_kib


def _of_gpu(index: int, value: Callable[[Gpu], float | None]) -> Callable[[Sample], float | None]:
    def found(sample: Sample) -> float | None:
        gpu = gpu_at(sample, index)
        return None if gpu is None else value(gpu)

    return found


def _gpu_memory(gpu: Gpu) -> float | None:
    return None if gpu.used_mib is None or not gpu.total_mib else gpu.used_mib / gpu.total_mib


def _gpu_utilization(gpu: Gpu) -> float | None:
    return None if gpu.utilization is None else gpu.utilization / 100


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


def _line(sheet: Sheet, frame: Frame, entry: Entry, points: Sequence[tuple[float, Bin]]) -> None:
    if len(points) == 1:
        sheet.dot(frame.at(points[0][0], points[0][1].mean), entry.colour, 2.4)
        return
    if any(point.low < point.high for _, point in points):
        low = [frame.at(time, point.low) for time, point in points]
        high = [frame.at(time, point.high) for time, point in reversed(points)]
        sheet.area([*low, *high], entry.colour, 0.16)
    sheet.line([frame.at(time, point.mean) for time, point in points], entry.colour, 1.1, entry.dashes)
