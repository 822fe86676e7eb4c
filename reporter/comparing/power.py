"""What a plan can find: the smallest gap that its episodes show, and how many episodes a gap needs.

Simulated with the functions that decide in the report, for rates around 50 %, where gaps are hardest to see. A gap is
found if it is found 4 times in 5, at the level that it has if nothing else is decided (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Literal

from comborun.model.plan import Session
from comborun.reporter.comparing.comparison import ALPHA, p_of
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.findable import POWER
from comborun.reporter.statistics.pooled import Stratum, pooled_p
from comborun.reporter.statistics.proportion import quantile
from comborun.reporter.statistics.sequential import decide

RUNS = 200
"""two standard errors of a power of .8: .06"""
STEPS = 3
MANY = 2000
MOST = 20_000

Kind = Literal["unpaired", "paired"]
"""paired: half of the pairs go alike whatever the policies, the other half independently"""


Findable = dict[str, float | int | None]


@dataclass(frozen=True)
class Design:
    pairs: int
    environments: int
    """1 is a comparison within one environment"""
    episodes: int
    level: float
    sequential: bool = False


def designs(sessions: Sequence[Session], *, sequential: bool) -> tuple[Design, ...]:
    """One for a single environment; before it one for all, if there are several and none stops early."""
    combos: dict[tuple[str, str], int] = {}
    for one in sessions:
        if one.unit == "episode" and one.flag != "dropped":
            combos[one.policy, one.environment] = combos.get((one.policy, one.environment), 0) + one.count
    policies = {policy for policy, _ in combos}
    environments = {environment for _, environment in combos}
    pairs = len(policies) * (len(policies) - 1) // 2
    if not pairs or not min(combos.values()):
        return ()
    both = len(environments) > 1 and not sequential
    share = ALPHA / (2 if both else 1) / pairs
    within = Design(pairs, 1, min(combos.values()), share / len(environments), sequential)
    return (replace(within, environments=len(environments), level=share), within) if both else (within,)


def answers(sessions: Sequence[Session], gap: float | None, *, sequential: bool) -> dict[str, Findable]:
    """By scope (`overall`, `in one environment`) the gap that the plan finds, and the episodes of each combo that `gap`
    needs."""
    found: dict[str, Findable] = {}
    for design in designs(sessions, sequential=sequential):
        kind: Kind = "unpaired" if any(one.unpaired or one.seed is None for one in sessions) else "paired"
        answer: Findable = {"would_find": detectable(design, kind)}
        if gap:
            answer |= {"unpaired": needed(design, gap, "unpaired"), "paired": needed(design, gap, "paired")}
        found["overall" if design.environments > 1 else "in one environment"] = answer
    return found


def detectable(design: Design, kind: Kind) -> float | None:
    """The smallest gap that is found; None if not even 0 against 1 is. Beyond MANY episodes by the normal
    approximation."""
    if design.episodes > MANY and not design.sequential:
        return min(0.98, _needed_root(design, kind, design.episodes * design.environments))
    design = replace(design, episodes=min(MANY, design.episodes))
    gap = min(0.98, _needed_root(design, kind, design.episodes * design.environments))
    for _ in range(STEPS):
        gap = min(0.98, gap * _ratio(design, chance(design, gap, kind)))
    return gap if chance(design, gap, kind) >= POWER - 0.1 else None


def needed(design: Design, gap: float, kind: Kind) -> int | None:
    """Episodes of each combo for a gap; None beyond MOST."""
    episodes = (_needed_root(design, kind, 1) / gap) ** 2 / design.environments
    for _ in range(STEPS):
        if episodes > MOST:
            return None
        tried = replace(design, episodes=max(2, ceil(episodes)))
        episodes = tried.episodes * _ratio(design, chance(tried, gap, kind)) ** 2
    return max(2, ceil(episodes)) if episodes <= MOST else None


def _needed_root(design: Design, kind: Kind, episodes: int) -> float:
    """By the normal approximation, the gap that so many episodes show."""
    variance = 0.5 if kind == "unpaired" else 0.25
    return sqrt(variance / episodes) * (quantile(1 - design.level / 2) + quantile(POWER))


def _ratio(design: Design, found: float) -> float:
    """The factor by which a gap is too small, if its power is `found`."""
    seen = min(1 - 0.5 / RUNS, max(0.5 / RUNS, found))
    base = quantile(1 - design.level / 2)
    return min(2.0, max(0.5, (base + quantile(POWER)) / max(0.3, base + quantile(seen))))


def chance(design: Design, gap: float, kind: Kind) -> float:
    import numpy as np

    rng = np.random.default_rng([design.episodes, design.environments, round(gap * 1e6)])
    if design.sequential:
        steps = rng.choice([0, 1, -1, 0], size=(RUNS, design.episodes), p=_cells(gap, kind))
        return sum(decide(one.tolist(), design.episodes, design.level / 2).winner > 0 for one in steps) / RUNS
    tables = rng.multinomial(design.episodes, _cells(gap, kind), size=(RUNS, design.environments))
    pairs = ([PairCounts(*cells) for cells in table] for table in tables.tolist())
    strata = (
        [Stratum.of_pairs(one) if kind == "paired" else Stratum(one.counts_a, one.counts_b) for one in table]
        for table in pairs
    )
    return sum(_found(one, design.level) for one in strata) / RUNS


def _found(strata: Sequence[Stratum], level: float) -> bool:
    if sum(one.difference for one in strata) <= 0:
        return False
    return (p_of(strata[0]) if len(strata) == 1 else pooled_p(strata, 1)) <= level


def _cells(gap: float, kind: Kind) -> tuple[float, float, float, float]:
    """The chances that both, only a, only b and neither succeed."""
    a, b = (1 + gap) / 2, (1 - gap) / 2
    both = a * b if kind == "unpaired" else (a * b + b) / 2
    return both, a - both, b - both, 1 - a - b + both
