"""Drawings of the page, with the report's panels: the memory of GPUs over time, and slots with predicted ends. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from comborun.monitor.gpu_samples import GpuSample
from comborun.monitor.view.gpus import GpuHistory
from comborun.monitor.wording import MARKS
from comborun.reporter.figures.figure import GREY, PAGE, SMALL, Axes, LineStyle, Panel, TextStyle, ink_on
from comborun.reporter.figures.labels import fit, measure
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import GIB, MIB
from comborun.words.times import clock

if TYPE_CHECKING:
    from comborun.model.plan import Session
    from comborun.monitor.observe import History
    from comborun.monitor.status import RunStatus, SessionStatus
    from comborun.rules.results.counts import Verdicts
    from comborun.rules.room.capacity import Card

MOST_SHOWN = 2000
"""episodes of a strip"""
_GAP_S = 120.0
"""seconds between two samples beyond which a chart shows a gap"""
_POINTS = 200
"""columns of a chart; of several samples in one it shows the last"""
_ROW, _HEAD, _FOOT, _HEIGHT, _WIDTH = 0.2, 0.06, 0.2, 1.05, 5.0
_ROWS = 40
_LEAST_NAME = 12
"""characters of a shortened name that still say which one it is"""
COLOURS: Mapping[str, str] = {
    Outcome.SUCCEEDED: "#007a57", Outcome.PARTIAL: "#e69f00", Outcome.FAILED: "#b84a00", Outcome.CANCELLED: "#888888",
    Outcome.LOST: "#a8386f", Outcome.NOT_NEEDED: "#bbbbbb", Life.STALLED: "#e69f00",
}  # fmt: skip
_RUNNING = "#0072b2"


class Episode(NamedTuple):
    number: int
    """its index"""
    state: str
    """success, failure, errored or open"""


def strip(session: Session, verdicts: Verdicts) -> tuple[Episode, ...]:
    """The planned episodes of a session, in their order."""
    most = min(session.count or max(verdicts, default=-1) + 1 - session.first, MOST_SHOWN)
    words = {True: "success", False: "failure", None: "errored"}
    episodes = range(session.first, session.first + most)
    return tuple(Episode(index, words[verdicts[index]] if index in verdicts else "open") for index in episodes)


# The memory of GPUs


def gpu_chart(history: GpuHistory, card: Card, since: float, now: float) -> Panel:
    """Stacked: sessions of this run from the bottom, then others; the frame is the GPU's memory."""
    samples = history.of(card.index)
    total = card.total or max((sample.total for sample in samples), default=1) or 1
    panel = Panel(f"Memory of GPU {card.index} over time", _WIDTH, _HEAD + _HEIGHT + _FOOT)
    axes = Axes(0.5, _HEAD, _WIDTH - 0.6, _HEIGHT, max(now, since + 60), float(total), since)
    panel.box((axes.left, axes.top), (axes.width, axes.height), GREY, 0.1)
    gib = total * MIB / GIB
    axes.y_ticks(panel, [(0.0, "0"), (total / 2, f"{gib / 2:.0f}"), (float(total), f"{gib:.0f} GiB")])
    for left, right, sample in _columns(samples, since, now):
        up = 0.0
        for mib, colour in history.parts(sample):
            if mib > 0:
                low, high = axes.at(left, up), axes.at(right, min(up + mib, total))
                panel.box((low[0], high[1]), (max(high[0] - low[0], 0.004), low[1] - high[1]), colour)
                up += mib
    axes.x_ticks(panel, times(since, max(now, since + 60), 5))
    return panel


def _columns(samples: Sequence[GpuSample], since: float, now: float) -> Iterator[tuple[float, float, GpuSample]]:
    """From when to when each sample is shown; equal ones in a row are one."""
    width = max((now - since) / _POINTS, 1e-6)
    shown = [*{int((one.at - since) / width): one for one in samples if since <= one.at <= now}.values()]
    while shown:
        first = shown.pop(0)
        until = _until(first, shown, width, now)
        while shown and until == shown[0].at and shown[0]._replace(at=0.0) == first._replace(at=0.0):
            until = _until(shown.pop(0), shown, width, now)
        yield first.at, until, first


def _until(sample: GpuSample, following: Sequence[GpuSample], width: float, now: float) -> float:
    return min(following[0].at if following else now, sample.at + max(_GAP_S, width))


def times(since: float, until: float, most: int = 8) -> list[tuple[float, str]]:
    """Times of day for an axis, at round distances."""
    steps = (15, 60, 300, 600, 1800, 3600, 7200, 6 * 3600, 12 * 3600, 86400)
    step = next((one for one in steps if (until - since) / one <= most), (until - since) / most)
    first = since - since % step + step
    count = int((until - first) // step) + 1 if until > first else 0
    short = step >= 60
    return [(at, clock(at, near=until) if short else clock(at)) for at in (first + step * n for n in range(count))]


# The slots


def slots(status: RunStatus, history: History, since: float, now: float) -> Panel | None:
    """What ran in which slot, what runs with its predicted end, and what is to come. None before the first start."""
    bars = sorted(_bars(status, history, since, now))
    if not bars:
        return None
    lanes: list[list[_Bar]] = []
    for bar in bars:
        lane = next((lane for lane in lanes if lane[-1].until <= bar.start + 0.5), None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(bar)
    shown = lanes[:_ROWS]
    ahead = since + 1 if status.finished else now + 0.05 * (now - since)
    latest = max(ahead, *(bar.until for lane in shown for bar in lane))
    panel = Panel(
        f"Slots over time{'' if status.finished else ', with predicted ends'}", PAGE, _HEAD + _ROW * len(shown) + _FOOT
    )
    axes = Axes(0.28, _HEAD, PAGE - 0.38, _ROW * len(shown), latest, 1.0, since)
    axes.x_ticks(panel, times(since, latest))
    for row, lane in enumerate(shown):
        panel.text((0.18, axes.top + (row + 0.5) * _ROW), str(row + 1), TextStyle(SMALL, "right"))
        for bar in lane:
            _draw(panel, axes, bar, axes.top + (row + 0.1) * _ROW)
    if status.finished:
        return panel
    x = axes.x(now)
    panel.lines([[(x, axes.top - 0.04), (x, axes.bottom + 0.03)]], LineStyle(width=1.4))
    return panel


class _Bar(NamedTuple):
    start: float
    until: float
    name: str
    colour: str
    sure: float
    """until when it is a fact; the rest is predicted"""
    symbol: str = ""


def _bars(status: RunStatus, history: History, since: float, now: float) -> Iterator[_Bar]:
    for one in status.sessions:
        for attempt in history.of(one.name):
            end = attempt.end
            if attempt.started is None or (end and end.ended < since):
                continue
            start = max(since, attempt.started)
            if end:
                colour = COLOURS.get(end.outcome, GREY)
                yield _Bar(start, max(start, end.ended), one.name, colour, end.ended, MARKS[end.outcome].symbol)
            elif attempt.alive:
                colour, symbol = COLOURS.get(one.life, _RUNNING), MARKS[one.life].symbol
                yield _Bar(start, _likely(one, now), one.name, colour, now, symbol)
    yield from _coming(status, now)


def _coming(status: RunStatus, now: float) -> Iterator[_Bar]:
    """Queued sessions with an estimate; each begins when the slot before it is free."""
    queued = [one for one in status.sessions if one.life is Life.QUEUED and one.expected]
    free = sorted(_likely(one, now) for one in status.sessions if one.alive) or [now]
    free += [now] * max(0, (status.slots or len(free)) - len(free))
    for one in queued:
        assert one.expected
        free.sort()
        start, free[0] = free[0], max(free[0], one.expected.likeliest)
        yield _Bar(max(now, start), max(now, free[0]), one.name, GREY, 0.0)


def _likely(one: SessionStatus, now: float) -> float:
    return max(now, one.expected.likeliest) if one.expected else now


def _draw(panel: Panel, axes: Axes, bar: _Bar, top: float) -> None:
    left, sure, right = axes.x(bar.start), axes.x(min(bar.sure, bar.until)), axes.x(bar.until)
    height, gap = 0.8 * _ROW, 0.012
    if sure > left:
        panel.box((left, top), (max(sure - left - gap, 0.012), height), bar.colour, 1.0)
    begin = max(left, sure)
    if right > begin + gap:
        panel.box((begin, top), (right - begin - gap, height), bar.colour, 0.22)
    solid = sure - left > (right - left) / 2
    start, width = (left, sure - left - 0.16) if solid else (begin, right - begin - 0.16)
    if width > measure("abc", SMALL):
        name = fit(bar.name, width - measure(f"{bar.symbol} ", SMALL), SMALL)
        told = name == bar.name or len(name) > _LEAST_NAME
        words = f"{bar.symbol} {name}".strip() if told else bar.symbol
        style = TextStyle(SMALL, "left", colour=ink_on(bar.colour)) if solid else TextStyle(SMALL, "left")
        panel.text((start + 0.05, top + height / 2), words, style)
