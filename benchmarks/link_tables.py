"""The tables of benchmarks/link.py."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from link_bed import Cost

DELAYS = (0, 50, 200)
"""round trips in milliseconds"""
HEAD = ("sessions", "way", *(f"{delay} ms: s" for delay in DELAYS), "round trips", "requests", "connections")
HEAD = (*HEAD, "KB up", "KB down", "host CPU s")


@dataclass
class Row:
    """A way to do something, at each delay."""

    way: str
    sessions: int
    costs: dict[int, Cost] = field(default_factory=dict)
    requests: int | None = None
    guessed: bool = False

    def cells(self) -> Iterator[str]:
        about = "~" if self.guessed else ""
        yield from (str(self.sessions or "-"), self.way)
        for delay in DELAYS:
            yield about + three(self.costs[delay].seconds)
        yield about + three((self.costs[200].seconds - self.costs[0].seconds) / 0.2)
        yield "-" if self.requests is None else str(self.requests)
        one = self.costs[200]
        yield from (about + three(value) for value in (one.connections, one.up / 1000, one.down / 1000))
        yield about + three(statistics.median(cost.cpu for cost in self.costs.values()))


def three(value: float) -> str:
    """Three digits."""
    return f"{value:.{0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.1 else 3}f}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)
