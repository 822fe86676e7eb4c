"""Orders of policies: on one scale of strengths, and checkpoints by their steps. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

from comborun.model.work import Combo
from comborun.reporter.comparing.comparison import ALPHA
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Arm, Side
from comborun.reporter.json_types import FourDecimals, Rounded, TenDecimals
from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, clopper_pearson, mean_of_rates, quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


MOST_STEPS = 200
"""steps of Newton's method, each at most 1 long"""


@dataclass(frozen=True)
class Strength:
    """The log-odds that an episode of a policy goes better than one of an average policy."""

    policy: str
    strength: FourDecimals
    interval: tuple[FourDecimals, FourDecimals]
    """all intervals together cover all true strengths at 95 %"""


def strengths(sides: Mapping[Combo, Side]) -> tuple[Strength, ...]:
    """The strongest first; none if policies are not all connected, or one never lost.

    Two policies play one game in each environment that both have. The share of episodes that went better wins it.
    """
    import numpy as np

    usable = {combo: side for combo, side in sides.items() if side.counts[1]}
    names = sorted({policy for policy, _ in usable})
    wins, spread = np.zeros((2, len(names), len(names)))
    for environment in dict.fromkeys(name for _, name in usable):
        here = [side for (_, name), side in usable.items() if name == environment]
        at = [names.index(side.policy) for side in here]
        variances = np.zeros_like(wins)
        for (i, a), (j, b) in combinations(zip(at, here, strict=True), 2):
            seen = meet(environment, a, b).seen
            wins[i, j], wins[j, i] = wins[i, j] + (1 + seen.difference) / 2, wins[j, i] + (1 - seen.difference) / 2
            variances[i, j] = variances[j, i] = seen.variance
        scores = np.zeros_like(wins)  # a policy's wins here are its rate minus those of the others, halved
        scores[np.ix_(at, at)] = (len(at) * np.eye(len(at)) - 1) / 2
        spread -= scores @ variances @ scores.T / 2
    found = fit(wins)
    if found is None:
        return ()
    values, inverse = found
    errors = np.sqrt(np.diag(inverse @ spread @ inverse).clip(0))
    reach = quantile(1 - ALPHA / 2 / len(names))  # Bonferroni
    limits = [(value, reach * error) for value, error in zip(values.tolist(), errors.tolist(), strict=True)]
    ranked = [Strength(name, x, (x - half, x + half)) for name, (x, half) in zip(names, limits, strict=True)]
    return tuple(sorted(ranked, key=lambda one: -one.strength))


def fit(wins: Matrix) -> tuple[Matrix, Matrix] | None:
    """Log-strengths with mean 0 from `wins[i, j]` of i over j, by maximum likelihood (Newton), and the inverse of their
    information. None if the likelihood has no maximum (Ford).

    R. A. Bradley and M. E. Terry, Biometrika 39 (1952) 324-345. L. R. Ford, The American Mathematical Monthly 64 (1957)
    28-33.
    """
    import numpy as np
    from scipy.sparse.csgraph import connected_components
    from scipy.special import expit

    if len(wins) < 2 or connected_components(wins > 0, connection="strong")[0] > 1:
        return None
    games, values = wins + wins.T, np.zeros(len(wins))
    for _ in range(MOST_STEPS):
        chances = expit(values[:, None] - values)
        weights = games * chances * chances.T
        inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights, hermitian=True)
        step = inverse @ (wins - games * chances).sum(axis=1)
        values = values + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < 1e-9:
            return values - values.mean(), inverse
    return None


FEWEST = 3
FOLDS = 5
_STEP = re.compile(
    r"(?:steps?|ckpt|checkpoint|iter(?:ation)?|epoch|model(?=_\d\d))[-_]?(\d+)([km]?)(?![a-z0-9])", re.IGNORECASE
)
_SMALL = {"step": 1000, "iter": 100}
"""names with such a word and smaller numbers alone are no steps of a training: horizons, steps of a sampler"""
FEWEST_EACH = 20
"""episodes of each checkpoint from which the best one is measured again"""
_THOUSANDS = {"": 1, "k": 1000, "m": 1000000}


@dataclass(frozen=True)
class Checkpoint:
    policy: str
    step: float
    rate: Rounded
    """the mean over the environments"""
    interval: Interval
    """all intervals together cover all true rates at 95 %"""


@dataclass(frozen=True)
class Trend:
    checkpoints: tuple[Checkpoint, ...]
    environments: tuple[str, ...]
    """those in which each has completed episodes"""
    episodes: int
    measured_again: TenDecimals | None
    """the rate of the best one, chosen by four fifths of the episodes and measured on the rest; None if that can't be
    done"""
    written_over: tuple[str, ...] = ()
    """those whose step the training wrote again, so that their rates are of a former content"""

    @property
    def best(self) -> Checkpoint:
        return max(self.checkpoints, key=lambda one: one.rate)


def steps_of(
    policies: Sequence[str], attributes: Mapping[str, float], *, one_training: bool = False
) -> list[dict[str, float]]:
    """Policies that are checkpoints of one training, with their steps: by the attribute `step`, or the number in their
    names. `one_training`: whether all are of the same one, whatever their names."""
    series: defaultdict[str, dict[str, float]] = defaultdict(dict)
    least: dict[str, int] = {}
    for policy in policies:
        match = _STEP.search(policy)
        step = float(match[1]) * _THOUSANDS[match[2].lower()] if match else None
        step = attributes.get(policy, step)
        if step is not None:
            name = policy[: match.start(1)] + policy[match.end() :] if match and not one_training else ""
            series[name][policy] = step
            if match and policy not in attributes:
                least[name] = _SMALL.get(match[0][:4].lower(), 0)
    return [
        dict(sorted(one.items(), key=lambda item: item[1]))
        for name, one in series.items()
        if len({*one.values()}) >= FEWEST and max(one.values()) >= least.get(name, 0)
    ]


def trend_of(steps: Mapping[str, float], sides: Mapping[Combo, Side]) -> Trend | None:
    environments = tuple(
        name
        for name in dict.fromkeys(environment for _, environment in sides)
        if all((side := sides.get((policy, name))) and side.counts[1] for policy in steps)
    )
    if not environments:
        return None
    confidence = 1 - (1 - CONFIDENCE) / len(steps)
    rows = {policy: [sides[policy, name] for name in environments] for policy in steps}
    return Trend(
        tuple(
            Checkpoint(policy, step, _rate(row), _band(row, confidence))
            for policy, step in steps.items()
            if (row := [side.by_start for side in rows[policy]])
        ),
        environments,
        sum(side.counts[1] for row in rows.values() for side in row),
        _measured_again([[side for side in row if isinstance(side, Arm)] for row in rows.values()], len(environments)),
    )


def _rate(counts: Sequence[tuple[float, int]]) -> float:
    return fmean(k / n for k, n in counts)


def _band(counts: Sequence[tuple[float, int]], confidence: float) -> Interval:
    """Bonferroni, since checkpoints may depend on each other."""
    if len(counts) == 1:
        return clopper_pearson(*counts[0], confidence) or (0.0, 1.0)
    return mean_of_rates(counts, confidence)


def _measured_again(rows: Sequence[Sequence[Arm]], environments: int) -> float | None:
    arms = [arm for row in rows for arm in row]
    if any(len(arm.completed) < FEWEST_EACH for arm in arms):
        return None
    if len(arms) < len(rows) * environments or any(arm.starts.groups(arm.completed) for arm in arms):
        return None
    found = []
    for fold in range(FOLDS):
        inside = [[_split(arm, fold, inside=True) for arm in row] for row in rows]
        outside = [[_split(arm, fold, inside=False) for arm in row] for row in rows]
        if not all(n for row in (*inside, *outside) for _, n in row):
            return None
        chosen = max(range(len(rows)), key=lambda one: _rate(outside[one]))
        found.append(_rate(inside[chosen]))
    return fmean(found)


def _split(arm: Arm, fold: int, *, inside: bool) -> tuple[int, int]:
    episodes = frozenset(one for one in arm.completed if (one % FOLDS == fold) is inside)
    return len(episodes & arm.successes), len(episodes)
