"""How full the host is, in words and bars: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from comborun.monitor.answer.host import Gpu, HostUse, Room
from comborun.monitor.showing.style import bar
from comborun.monitor.wording import sizes
from comborun.text import several

GAP = "   "
_SCARCE = "yellow"
_WIDE = 80
_HIGH = 20
_LOW = 12
_BARS = (10, 6, 0)


@dataclass(frozen=True)
class _Fact:
    text: Text
    keep: int
    """where there is no place for all, those with the highest number stay"""


def host_facts(use: HostUse) -> list[str]:
    """One fact each, for a log."""
    return [fact.text.plain for fact in _facts(use, bars=0, apart=True)]


def host_lines(use: HostUse, width: int, height: int | None) -> list[Text]:
    """One line or two, as much as there is place for: bars go first, then GPUs become a sum, then facts go."""
    if height is not None and height < _LOW:
        return []
    most = 2 if width >= _WIDE and (height is None or height >= _HIGH) else 1
    for bars in _BARS:
        lines = packed([fact.text for fact in _facts(use, bars, apart=True)], width)
        if len(lines) <= most:
            return lines
    facts = _facts(use, bars=0, apart=False)
    while facts and len(packed([fact.text for fact in facts], width)) > most:
        facts.remove(min(facts, key=lambda fact: fact.keep))
    lines = packed([fact.text for fact in facts], width)
    return [line for line in lines if line.cell_len <= width]


def packed(facts: Sequence[Text], width: int) -> list[Text]:
    """Facts side by side, on as many lines as it takes; none is broken."""
    lines: list[Text] = []
    for fact in facts:
        if lines and lines[-1].cell_len + len(GAP) + fact.cell_len <= width:
            lines[-1].append(GAP).append_text(fact)
        else:
            lines.append(Text().append_text(fact))
    return lines


def _facts(use: HostUse, bars: int, *, apart: bool) -> list[_Fact]:
    gpus = [_gpu(gpu, bars) for gpu in use.gpus] if apart else _sum(use.gpus)
    facts = [_Fact(text, 9) for text in gpus]
    if use.load is not None:
        cpus = "" if use.cpus is None else f" on {several(use.cpus, 'cpu')}"
        facts.append(_Fact(Text(f"load {use.load:.3g}{cpus}"), 3))
    facts += [_room("memory", use.memory, 1)] if use.memory else []
    return facts + ([_room("disk", use.disk, 2)] if use.disk else [])


def _room(name: str, room: Room, keep: int) -> _Fact:
    text = Text(f"{name} {sizes(room.free, room.total)} free", _SCARCE if room.scarce else "")
    return _Fact(text, 5 if room.scarce else keep)


def _gpu(gpu: Gpu, bars: int) -> Text:
    text = Text(f"gpu {gpu.index} ")
    if gpu.used is None or not gpu.total:
        return text.append("unknown", _SCARCE)
    style = _SCARCE if Room(gpu.total, gpu.total - gpu.used).scarce else "cyan"
    if bars:
        text.append_text(bar(gpu.used, gpu.total, bars, style)).append(" ")
    text.append(sizes(gpu.used, gpu.total), "default" if style == "cyan" else style)
    return text.append("" if gpu.utilization is None else f", {gpu.utilization} % busy")


def _sum(gpus: Sequence[Gpu]) -> list[Text]:
    """All GPUs as one fact."""
    if len(gpus) < 2:
        return [_gpu(gpu, bars=0) for gpu in gpus]
    told = [(gpu.used, gpu.total) for gpu in gpus if gpu.used is not None and gpu.total]
    missing = len(gpus) - len(told)
    text = Text(f"{len(gpus)} gpus ")
    if told:
        text.append(sizes(sum(used for used, _ in told), sum(total for _, total in told)))
    busy = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
    if busy:
        text.append(f", {round(sum(busy) / len(busy))} % busy")
    if missing:
        text.append(f", {missing} unknown" if told else "unknown", _SCARCE)
    return [text]
