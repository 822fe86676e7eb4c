"""Bars, and the lines of the table about host and servers: (values, place) -> rich text, pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from comborun.monitor.snapshot import Gpu, HostUse, Server, Space
from comborun.monitor.status import SessionStatus
from comborun.monitor.wording import SERVER_SYMBOLS, STYLES, server_words, sizes, visible
from comborun.rules.words import Outcome
from comborun.text import several

GAP = "   "
_SCARCE = "yellow"
_WIDE, _HIGH, _LOW = 80, 20, 12
"""columns and lines of a terminal: two lines about the host from _WIDE and _HIGH on, none below _LOW"""
_BARS = (10, 6, 0)
_SERVER_STYLES = {"ready": "green", "loading": "cyan", "starting": "cyan", "silent": "yellow", "ended": "yellow"}


class _Fact(NamedTuple):
    text: Text
    keep: int
    """the lower, the sooner it is left out"""


def note_style(session: SessionStatus) -> str:
    """A note to a success is a warning."""
    return "yellow" if session.outcome is Outcome.SUCCEEDED else STYLES[session.outcome or session.life]


def bar(done: int, planned: int, width: int, style: str) -> Text:
    """`width` cells, in halves. The rest is a thin line, so that it reads without colour."""
    halves = 2 * max(0, width)
    filled = min(halves, halves * done // planned) if planned > 0 else 0
    whole, half = divmod(filled, 2)
    text = Text("━" * whole + "╾" * half, style)
    return text.append("─" * (halves // 2 - whole - half), "bright_black")


def packed(facts: Sequence[Text], width: int) -> list[Text]:
    """Facts side by side, on as many lines as needed; no fact is broken."""
    lines: list[Text] = []
    for fact in facts:
        if lines and lines[-1].cell_len + len(GAP) + fact.cell_len <= width:
            lines[-1].append(GAP).append_text(fact)
        else:
            lines.append(Text().append_text(fact))
    return lines


def cut(line: Text, width: int) -> Text:
    """The line itself, no wider than that."""
    line.truncate(width, overflow="ellipsis")
    return line


def host_facts(use: HostUse) -> list[str]:
    """How full the host is, one fact each, for a log."""
    return [fact.text.plain for fact in _facts(use, bars=0)]


def host_lines(use: HostUse, width: int, height: int | None) -> list[Text]:
    """One or two lines. If space is short, bars go first, then GPUs become a sum, then facts go."""
    if height is not None and height < _LOW:
        return []
    most = 2 if width >= _WIDE and (height is None or height >= _HIGH) else 1
    for bars in _BARS:
        lines = packed([fact.text for fact in _facts(use, bars)], width)
        if len(lines) <= most:
            return lines
    facts = _facts(use, bars=0, summed=True)
    while len(lines := packed([fact.text for fact in facts], width)) > most:
        facts.remove(min(facts, key=lambda fact: fact.keep))
    return [line for line in lines if line.cell_len <= width]


def _facts(use: HostUse, bars: int, *, summed: bool = False) -> list[_Fact]:
    gpus = [_sum(use.gpus)] if summed and len(use.gpus) > 1 else [_gpu(gpu, bars) for gpu in use.gpus]
    facts = [_Fact(text, 9) for text in gpus]
    if use.load is not None:
        cpus = "" if use.cpus is None else f" on {several(use.cpus, 'cpu')}"
        facts.append(_Fact(Text(f"load {use.load:.3g}{cpus}"), 3))
    for name, room, keep in (("memory", use.memory, 1), ("disk", use.disk, 2)):
        if room:
            text = Text(f"{name} {sizes(room.free, room.total)} free", _SCARCE if room.scarce else "")
            facts.append(_Fact(text, 5 if room.scarce else keep))
    return facts


def _gpu(gpu: Gpu, bars: int) -> Text:
    text = Text(f"gpu {gpu.index} ")
    if gpu.memory_used is None or not gpu.memory_total:
        return text.append("unknown", _SCARCE)
    scarce = Space(gpu.memory_total, gpu.memory_total - gpu.memory_used).scarce
    if bars:
        style = _SCARCE if scarce else "cyan"
        text.append_text(bar(gpu.memory_used, gpu.memory_total, bars, style)).append(" ")
    text.append(sizes(gpu.memory_used, gpu.memory_total), _SCARCE if scarce else "default")
    return text.append("" if gpu.utilization_percent is None else f", {gpu.utilization_percent} % busy")


def _sum(gpus: Sequence[Gpu]) -> Text:
    """All GPUs as one fact."""
    known = [(gpu.memory_used, gpu.memory_total) for gpu in gpus if gpu.memory_used is not None and gpu.memory_total]
    missing = len(gpus) - len(known)
    text = Text(f"{len(gpus)} gpus ")
    if known:
        text.append(sizes(sum(used for used, _ in known), sum(total for _, total in known)))
    busy = [gpu.utilization_percent for gpu in gpus if gpu.utilization_percent is not None]
    if busy:
        text.append(f", {round(sum(busy) / len(busy))} % busy")
    if missing:
        text.append(f", {missing} unknown" if known else "unknown", _SCARCE)
    return text


def server_line(server: Server, now: float | None, waits: str, width: int) -> Text:
    """One model server; `waits` is what it waits for."""
    name = f"{SERVER_SYMBOLS.get(server.state, '·')} {visible(server.name)}"
    line = Text.assemble(("server  ", "dim"), (name, _SERVER_STYLES.get(server.state, "dim")))
    line.append(f" {server_words(server, now)}")
    if server.port and server.state in {"ready", "silent"}:
        line.append(f" on port {server.port}", "dim")
    if server.gpus:
        line.append(f"  GPU {','.join(map(str, server.gpus))}", "dim")
    if server.attempt > 1:
        line.append(f"  start {server.attempt}", "dim")
    if waits and server.state in {"queued", "ended"}:
        line.append(f"  waits: {visible(waits)}", "dim")
    return cut(line, width)
