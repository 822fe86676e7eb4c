"""How busy the machine was while a run lasted, from the lines of dispatch/usage.tsv. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import fsum
from typing import TYPE_CHECKING

from comborun.reporter.records.reading import Defect
from comborun.rules.names import RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PATH = RUN.usage
BINS = 300
"""points of a track at most: some three pixels each"""

_LINE = re.compile(
    r"(?P<time>\d{1,11}(?:\.\d{1,9})?)\t(?P<load>\d{1,6}(?:\.\d{1,3})?|)\t(?P<cpus>\d{1,6}|)"
    r"\t(?P<memory>\d{1,15}|)\t(?P<available>\d{1,15}|)(?P<gpus>(?:\t\d{1,4}:\d{0,9}:\d{0,9}:\d{0,9})*)",
    re.ASCII,
)


@dataclass(frozen=True)
class Gpu:
    """One of the run's GPUs at a moment; None is unknown."""

    index: int
    used_mib: int | None
    total_mib: int | None
    utilization: int | None
    """per cent"""


@dataclass(frozen=True)
class Sample:
    """The machine at a moment, with all that anybody runs there; None is unknown."""

    time: float
    """seconds since 1970 on the host's clock"""
    load: float | None
    cpus: int | None
    memory_kib: int | None
    available_kib: int | None
    gpus: tuple[Gpu, ...] = ()

    @property
    def used_kib(self) -> int | None:
        if self.memory_kib is None or self.available_kib is None or self.available_kib > self.memory_kib:
            return None
        return self.memory_kib - self.available_kib


@dataclass(frozen=True)
class Bin:
    """What was seen between two moments close together."""

    time: float
    """the mean of the samples' times"""
    low: float
    mean: float
    high: float


@dataclass(frozen=True)
class BusyGpu:
    """Over the whole run; None where it was never known."""

    index: int
    total_mib: int | None
    peak_mib: int | None
    mean_utilization: float | None


@dataclass(frozen=True)
class Busy:
    """Over the whole run; None where it was never known."""

    samples: int
    cpus: int | None
    mean_load: float | None
    memory_kib: int | None
    peak_kib: int | None
    """of main memory in use, by whomever"""
    gpus: tuple[BusyGpu, ...]


def parse_usage(text: str) -> tuple[tuple[Sample, ...], list[Defect]]:
    """By time, and what is no such line. A last line without its end is being written, or was cut off by a fetch:
    nothing to tell."""
    found = [(number, _LINE.fullmatch(line)) for number, line in enumerate(text.split("\n")[:-1], 1)]
    samples = sorted((_sample(match) for _, match in found if match), key=lambda sample: sample.time)
    complaint = "no line of how busy the machine was: left out"
    return tuple(samples), [Defect(PATH, number, complaint) for number, match in found if not match]


def track(samples: Sequence[Sample], value: Callable[[Sample], float | None], count: int = BINS) -> tuple[Bin, ...]:
    """A value over time in at most `count` bins of the same length; where it is not known there is none."""
    points = [(sample.time, number) for sample in samples if (number := value(sample)) is not None]
    if len(points) <= count:
        return tuple(Bin(time, number, number, number) for time, number in points)
    start, length = points[0][0], (points[-1][0] - points[0][0]) / count or 1.0
    groups = groupby(points, key=lambda entry: min(int((entry[0] - start) / length), count - 1))
    return tuple(_bin(list(group)) for _, group in groups)


def busy(samples: Sequence[Sample]) -> Busy | None:
    """None where nobody looked."""
    if not samples:
        return None
    return Busy(
        samples=len(samples),
        cpus=_most(sample.cpus for sample in samples),
        mean_load=_mean([(sample.time, sample.load) for sample in samples if sample.load is not None]),
        memory_kib=_most(sample.memory_kib for sample in samples),
        peak_kib=_most(sample.used_kib for sample in samples),
        gpus=tuple(_busy_gpu(samples, index) for index in gpu_indexes(samples)),
    )


def _busy_gpu(samples: Sequence[Sample], index: int) -> BusyGpu:
    found = [(sample.time, gpu) for sample in samples if (gpu := gpu_at(sample, index))]
    return BusyGpu(
        index,
        total_mib=_most(gpu.total_mib for _, gpu in found),
        peak_mib=_most(gpu.used_mib for _, gpu in found),
        mean_utilization=_mean([(time, gpu.utilization) for time, gpu in found if gpu.utilization is not None]),
    )


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _mean(points: Sequence[tuple[float, float]]) -> float | None:
    """Over time, from one moment straight to the next: samples become fewer as a run grows long."""
    span = points[-1][0] - points[0][0] if points else 0.0
    if span <= 0:
        return points[0][1] if points else None
    return fsum((right[0] - left[0]) * (left[1] + right[1]) / 2 for left, right in pairwise(points)) / span


def gpu_indexes(samples: Iterable[Sample]) -> tuple[int, ...]:
    return tuple(sorted({gpu.index for sample in samples for gpu in sample.gpus}))


def gpu_at(sample: Sample, index: int) -> Gpu | None:
    return next((gpu for gpu in sample.gpus if gpu.index == index), None)


def _bin(entries: Sequence[tuple[float, float]]) -> Bin:
    times, values = zip(*entries, strict=True)
    return Bin(sum(times) / len(times), min(values), sum(values) / len(values), max(values))


def _sample(found: re.Match[str]) -> Sample:
    cpus, memory, available = (_integer(found[name]) for name in ("cpus", "memory", "available"))
    load = float(found["load"]) if found["load"] else None
    gpus = (words.split(":") for words in found["gpus"].split("\t")[1:])
    cards = tuple(Gpu(int(index), *map(_integer, rest)) for index, *rest in gpus)
    return Sample(float(found["time"]), load, cpus or None, memory, available, cards)


def _integer(digits: str) -> int | None:
    return int(digits) if digits else None
