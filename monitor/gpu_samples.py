"""What each GPU held over time, as the events of a run tell it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from comborun.rules.events import Event, Kind
from comborun.rules.facts import Fact


class GpuSample(NamedTuple):
    """What a GPU held at a moment, in MiB."""

    at: float
    gpu: int
    used: float
    total: float
    sessions: Mapping[str, float] = MappingProxyType({})
    others: Mapping[tuple[str, str], float] = MappingProxyType({})
    """user and program of somebody else -> MiB"""


def samples(found: Iterable[Event]) -> Iterator[GpuSample]:
    """The samples in events, in their order. Any field may be wrong: another version may have written the file."""
    for event in found:
        cards = event.fields.get("gpus") if event.kind == Kind.GPU_USE else None
        for index, card in cards.items() if isinstance(cards, dict) else ():
            used, total = (_mib(card.get(key)) if isinstance(card, dict) else None for key in ("used", "total"))
            if used is None or not total or not index.isdecimal():
                continue
            ours, rows = card.get("sessions"), card.get("others")
            sessions = ours.items() if isinstance(ours, dict) else ()
            others = [row for row in rows if isinstance(row, list) and len(row) == 3] if isinstance(rows, list) else ()
            yield GpuSample(
                event.at, int(index), used, total,
                {str(name): mib for name, held in sessions if (mib := _mib(held)) is not None},
                {(str(user), str(what)): mib for user, what, held in others if (mib := _mib(held)) is not None},
            )  # fmt: skip


def _mib(value: object) -> float | None:
    return Fact(Kind.GPU_USE, mib=value).number("mib")
