"""Policies on one scale, also where they did not all run in the same environments: a Bradley-Terry model. Pure.

Where every policy ran in every environment, its order is that of the mean rates. Elsewhere two policies that never met
are compared through those that both met.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from comborun.reporter.comparing.comparisons import ALPHA
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.statistics.proportion import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from comborun.reporter.comparing.pairing import Side
    from comborun.reporter.statistics.proportion import Interval
    from comborun.work import Combo

    Matrix = NDArray[np.float64]


MOST_STEPS = 200
"""of Newton's method, each at most 1 long; a strength of 20 and more is none that records can show"""


@dataclass(frozen=True)
class Strength:
    """The log-odds of a policy's episode going better than one of an average policy; equal ends count half."""

    policy: str
    value: float
    interval: Interval
    """with those of the other policies it covers all true strengths at 95 %"""


def strengths(sides: Mapping[Combo, Side]) -> tuple[Strength, ...]:
    """The strongest first; none where policies are not all connected, or one never lost.

    Each pair of policies plays one game in each environment that both have. It is won by the share of episodes that
    went better, where equal ends count half: (1 + difference) / 2.
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
    return tuple(sorted(ranked, key=lambda one: -one.value))


def fit(wins: Matrix) -> tuple[Matrix, Matrix] | None:
    """Log-strengths with mean 0 from `wins[i, j]` of i over j, by maximum likelihood (Newton), and the inverse of their
    information; None where the likelihood has no maximum (Ford's condition).

    R. A. Bradley and M. E. Terry, Biometrika 39 (1952) 324-345.
    L. R. Ford, The American Mathematical Monthly 64 (1957) 28-33.
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
