"""The sum of many rounds, and its table. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rounds import Played


@dataclass(frozen=True)
class Total:
    rounds: int
    planned: int
    computed: int
    """by the ledgers, each episode once"""
    repeated: int
    """how often an episode was computed that had been, and was merged"""
    reported: int
    missing: int
    lost: int
    commands: int
    """that brought the runs to their ends"""
    faults: Counter[str]
    flawed: tuple[int, ...]
    """the numbers of the rounds that have a flaw"""

    def document(self) -> dict[str, Any]:
        return {**vars(self), "faults": dict(sorted(self.faults.items())), "flawed": list(self.flawed)}


def total(played: Sequence[Played]) -> Total:
    found = [one.found for one in played if one.found]
    openings = [one.scene.opening for one in played if one.scene.opening != "plain"]
    return Total(
        rounds=len(played),
        planned=sum(len(one.planned) for one in found),
        computed=sum(len(one.computed) for one in found),
        repeated=sum(one.repeated for one in found),
        reported=sum(len(one.told) for one in found),
        missing=sum(len(one.missing) for one in found),
        lost=sum(len(one.lost) for one in found),
        commands=sum(one.tries for one in played),
        faults=Counter(kind for one in played for kind in one.hit) + Counter(openings),
        flawed=tuple(one.scene.number for one in played if one.flaws),
    )


def table(sums: Total, heading: str) -> Iterator[str]:
    yield f"{heading}\n\n| what | number |\n|---|---|"
    for what, number in (
        ("rounds", sums.rounds),
        ("faults that hit something", sums.faults.total()),
        ("episodes planned", sums.planned),
        ("episodes computed, by the programs' own ledgers", sums.computed),
        ("episodes in the reports", sums.reported),
        ("episodes missing after all, and named", sums.missing),
        ("**episodes lost**", sums.lost),
        ("episodes computed again, and merged", sums.repeated),
        ("commands to bring the runs to their ends", sums.commands),
        ("rounds with a flaw", len(sums.flawed)),
    ):
        yield f"| {what} | {number} |"
    yield "\n| fault | times |\n|---|---|"
    for kind, times in sums.faults.most_common():
        yield f"| {kind} | {times} |"
