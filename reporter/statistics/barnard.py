"""Barnard's exact test of two independent success rates: its p, and which tables it calls different. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import asin, ceil, pi, sqrt
from typing import TYPE_CHECKING, Any

from comborun.reporter.statistics.proportion import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Region = tuple[NDArray[np.intp], NDArray[np.intp]]
    """for each number of successes of a: at most so many of b, or at least so many, are in it"""

SET_ASIDE = 1e-8
"""Berger and Boos: the probability that the common rate lies outside the interval that is searched; added to p"""

BLOCK = 2_000_000
"""probabilities held at once"""

POINTS_PER_SCALE = 8
"""grid points per unit of angle and root of episodes: about eight for each feature of the p-value's curve, or more"""

STRETCH = 32
"""grid points whose probabilities are worked out together, and kept"""

KEPT = 500
"""episodes of an arm up to which they are kept: some 60 MB at most"""


def barnard(a: tuple[int, int], b: tuple[int, int], set_aside: float = SET_ASIDE) -> float:
    """Two-sided p of Barnard's exact test, tables ordered by the pooled z; each arm is (successes, n) with n > 0.

    p is the largest probability, over the common rate, of a table at least as extreme. The rate is searched inside its
    exact interval at level 1 - `set_aside`, and `set_aside` is added (0 searches everywhere): far off rates that the
    data exclude make no difference then. The search is a grid finer than the curve's features, refined around its two
    highest peaks: the usual 32 points miss a narrow peak at 500 episodes per arm by a fifth.
    G. A. Barnard, Biometrika 34 (1947) 123-138; R. L. Berger and D. D. Boos, JASA 89 (1994) 1012-1016.
    """
    return _barnard(*_standing_for(a, b), set_aside)


def _standing_for(a: tuple[int, int], b: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The order of the arms, and which outcome is called a success, change no p: one table stands for these four."""
    (x, n), (y, m) = a, b
    return min((a, b), (b, a), ((n - x, n), (m - y, m)), ((m - y, m), (n - x, n)))


@lru_cache(maxsize=65536)
def _barnard(a: tuple[int, int], b: tuple[int, int], set_aside: float) -> float:
    square = _squared_z(a, b)
    if square == 0:
        return 1.0
    sizes, total = (a[1], b[1]), a[1] + b[1]
    low, high = (0.0, 1.0) if set_aside == 0 else clopper_pearson(a[0] + b[0], total, 1 - set_aside) or (0.0, 1.0)
    return min(1.0, _size(sizes, _region(sizes, square), (low, high)) + set_aside)


@lru_cache(maxsize=1024)
def critical(sizes: tuple[int, int], alpha: float) -> Region | None:
    """The tables that the test at `alpha` calls different, with nothing set aside; None where it never does."""
    import numpy as np

    x, y = (np.arange(size + 1) for size in sizes)
    squares = np.unique(np.round(_squared_z((x[:, None], sizes[0]), (y[None, :], sizes[1])), 9))
    low, high = 0, len(squares)
    while low < high:
        middle = (low + high) // 2
        found = squares[middle] > 0 and _size(sizes, _region(sizes, squares[middle] - 1e-9), (0.0, 1.0)) <= alpha
        low, high = (low, middle) if found else (middle + 1, high)
    return _region(sizes, squares[low] - 1e-9) if low < len(squares) else None


def power(sizes: tuple[int, int], rates: tuple[float, float], region: Region) -> float:
    """The probability that a's rate is found to be the higher one."""
    import numpy as np
    from scipy.special import bdtr

    first = _binomial(sizes[0], np.array([rates[0]]))[0]
    fewer = region[0]
    below = np.where(fewer >= 0, bdtr(np.maximum(fewer, 0), sizes[1], rates[1]), 0.0)
    return float(first @ below)


def _squared_z(a: tuple[Any, int], b: tuple[Any, int]) -> Any:
    """Of the difference, pooled; 0 where all failed or all succeeded. Takes numbers of successes, or arrays of them."""
    import numpy as np

    (x, n), (y, m) = a, b
    both, total = np.asarray(x + y, dtype=float), n + m
    spread = n * m * both * (total - both)
    return (np.asarray(x * m - y * n, dtype=float) ** 2 * total) / np.where(spread > 0, spread, np.inf)


def _size(sizes: tuple[int, int], region: Region, rates: tuple[float, float]) -> float:
    """The largest probability of the region over a range of the common rate."""
    import numpy as np

    def tail(at: Floats) -> Floats:
        return _tail_at(sizes, region, at)

    low, high = asin(sqrt(rates[0])), asin(sqrt(rates[1]))
    points = _points(sum(sizes))
    grid = _angles(points)
    inside = range(int(np.searchsorted(grid, low, "right")), int(np.searchsorted(grid, high, "left")))
    ends = np.array([low, high])
    at, values = np.insert(ends, 1, grid[inside.start : inside.stop]), tail(ends)
    return _supremum(tail, at, np.insert(values, 1, _on_grid(sizes, region, points, inside)))


def _points(episodes: int) -> int:
    """Of the grid; those of the next power of two, so that arms of about as many episodes share theirs."""
    return 17 + ceil(pi / 2 * sqrt(1 << (episodes - 1).bit_length()) * POINTS_PER_SCALE)


@lru_cache(maxsize=64)
def _angles(points: int) -> Floats:
    """A grid of common rates, as the angles whose squared sine they are."""
    import numpy as np

    return np.linspace(0.0, pi / 2, points)


def _on_grid(sizes: tuple[int, int], region: Region, points: int, inside: range) -> Floats:
    """The probability of the region at these points of the grid."""
    import numpy as np

    if not inside:
        return np.empty(0)
    if max(sizes) > KEPT:
        return _tail_at(sizes, region, _angles(points)[inside.start : inside.stop])
    stretches = range(inside.start // STRETCH, (inside.stop - 1) // STRETCH + 1)
    found = [_tail(_kept(sizes[0], points, one), _kept(sizes[1], points, one), region) for one in stretches]
    start = stretches.start * STRETCH
    return np.concatenate(found)[inside.start - start : inside.stop - start]


def _region(sizes: tuple[int, int], square: float) -> Region:
    """The tables whose squared z is at least `square` > 0.

    |z| grows with the distance of j from i m / n on both sides, so the limits are the roots of a quadratic in j.
    """
    import numpy as np

    n, m = sizes
    total = n + m
    i = np.arange(n + 1, dtype=float)
    lead = n * n * total + square * n * m
    half = n * m * (i * total + square * (total - 2 * i) / 2)
    rest = i * i * m * m * total - square * n * m * i * (total - i)
    root = np.sqrt(np.maximum(half * half - lead * rest, 0.0))
    at_most = np.floor((half - root) / lead + 1e-7).astype(np.intp)
    at_least = np.ceil((half + root) / lead - 1e-7).astype(np.intp)
    # All failed, or all succeeded: no difference, though the quadratic is 0 there.
    at_most[0], at_least[-1] = -1, m + 1
    return np.clip(at_most, -1, m), np.clip(at_least, 0, m + 1)


@dataclass(frozen=True)
class _Rows:
    """Of one arm, a row per rate."""

    exactly: Floats
    """probabilities of 0..n successes"""
    fewer: Floats
    """of less than 0..n + 1"""
    at_least: Floats
    """of 0..n + 1 or more; summed by itself, as one minus the other would be no small number's probability"""


def _tail_at(sizes: tuple[int, int], region: Region, angles: Floats) -> Floats:
    """The probability of the region at each of these common rates, with rows that nobody else needs."""
    import numpy as np

    def part(at: Floats) -> Floats:
        first = _rows(sizes[0], at)
        return _tail(first, first if sizes[0] == sizes[1] else _rows(sizes[1], at), region)

    parts = ceil(len(angles) * (max(sizes) + 1) / BLOCK)
    return np.concatenate([part(at) for at in np.array_split(angles, parts)])


def _tail(a: _Rows, b: _Rows, region: Region) -> Floats:
    """The probability of the region at each common rate."""
    import numpy as np

    outside = b.fewer[:, region[0] + 1] + b.at_least[:, region[1]]
    probability: Floats = np.einsum("ri,ri->r", a.exactly, outside)
    return probability


@lru_cache(maxsize=160)
def _kept(n: int, points: int, stretch: int) -> _Rows:
    """Of a stretch of the grid: the same for all comparisons with an arm of this size."""
    return _rows(n, _angles(points)[stretch * STRETCH : (stretch + 1) * STRETCH])


def _rows(n: int, angles: Floats) -> _Rows:
    import numpy as np

    exactly = _binomial(n, np.clip(np.sin(angles) ** 2, 1e-300, 1 - 2**-53))
    fewer, at_least = np.zeros((2, len(angles), n + 2))
    np.cumsum(exactly, axis=1, out=fewer[:, 1:])
    np.cumsum(exactly[:, ::-1], axis=1, out=at_least[:, n::-1])
    return _Rows(exactly, fewer, at_least)


def _binomial(n: int, rates: Floats) -> Floats:
    """Probabilities of 0..n successes, a row per rate."""
    import numpy as np

    k, ways = _ways(n)
    probabilities: Floats = np.exp(ways + np.outer(np.log(rates), k) + np.outer(np.log1p(-rates), n - k))
    return probabilities


@lru_cache(maxsize=64)
def _ways(n: int) -> tuple[NDArray[np.intp], Floats]:
    """0..n, and the logarithm of how many ways there are to choose so many of n."""
    import numpy as np
    from scipy.special import gammaln

    k = np.arange(n + 1)
    return k, gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _supremum(tail: Callable[[Floats], Floats], grid: Floats, values: Floats, peaks: int = 2, rounds: int = 3) -> float:
    """The largest value, refined around the highest peaks of a grid that is fine enough for those alone that come near.

    All peaks are refined together, each between its neighbours; what is left is a parabola.
    """
    import numpy as np

    best = float(values.max())
    padded = np.concatenate([[-1.0], values, [-1.0]])
    tops = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]) & (values >= 0.95 * best))
    tops = tops[np.argsort(-values[tops], kind="stable")][:peaks]
    finer, found = _between(tail, grid[np.maximum(tops - 1, 0)], grid[np.minimum(tops + 1, len(grid) - 1)])
    for _ in range(rounds - 1):
        at, row = found.argmax(axis=1), np.arange(len(finer))
        finer, found = _between(tail, finer[row, np.maximum(at - 1, 0)], finer[row, np.minimum(at + 1, 10)])
    return max(best, *map(_vertex, found))


def _between(tail: Callable[[Floats], Floats], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Eleven points from each `low` to its `high`, and the values there."""
    import numpy as np

    finer = np.linspace(low, high, 11, axis=1)
    return finer, tail(finer.ravel()).reshape(finer.shape)


def _vertex(values: Floats) -> float:
    """The height of the parabola through the largest of evenly spaced values and those on either side of it."""
    top = int(values.argmax())
    highest = float(values[top])
    if not 0 < top < len(values) - 1:
        return highest
    before, after = float(values[top - 1]), float(values[top + 1])
    bend = 2 * highest - before - after
    return highest + (after - before) ** 2 / (8 * bend) if bend > 0 else highest
