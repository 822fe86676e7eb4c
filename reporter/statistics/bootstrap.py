"""Bootstrap intervals. Pure: the random numbers follow from the data alone, so the same records give the same limits.

scipy's `bootstrap` is not used: it copies every resample of every column, and n² values for its jackknife.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

from comborun.reporter.statistics.proportion import CONFIDENCE, Interval, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 2000
MANY = 20_000
"""values: for more, the normal interval is the same to three digits"""
BLOCK = 2_000_000
"""drawn numbers held at once"""


def bca_means(columns: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> tuple[Interval | None, ...]:
    """The bias-corrected and accelerated interval of the mean of each column, all of one length; None for a column
    without two different values. Of more than MANY values the normal interval stands for it.

    All columns of a length are resampled alike, which costs one matrix product.
    B. Efron, Journal of the American Statistical Association 82 (1987) 171-185.
    """
    import numpy as np

    values = np.array(columns, dtype=float).T
    scale = np.abs(values).max(axis=0)
    scaled = values / np.where(scale > 0, scale, 1.0)
    if len(values) > MANY:
        return tuple(_normal(scaled[:, column], confidence, float(scale[column])) for column in range(len(columns)))
    varied = np.ptp(scaled, axis=0) > 0 if len(values) > 1 else np.zeros(len(columns), dtype=bool)
    # numpy sums a product with one column in another order than one with several. So there are always several.
    n, several = len(values), scaled if scaled.shape[1] > 1 else np.repeat(scaled, 2, axis=1)
    means = np.vstack([_weights(n, start) @ several for start in range(0, RESAMPLES, max(1, BLOCK // n))]) / n
    return tuple(
        _bca(scaled[:, column], means[:, column], confidence, float(scale[column])) if varied[column] else None
        for column in range(len(columns))
    )


def _bca(values: Floats, means: Floats, confidence: float, scale: float) -> Interval | None:
    import numpy as np
    from scipy.special import ndtr, ndtri

    mean = values.mean()
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means <= mean)) / (2 * len(means))
    if not 0 < below < 1:
        return None
    # The jackknife's acceleration, which for a mean is a matter of the values' skewness alone.
    away = values - mean
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    bias = ndtri(below)
    tail = (1 - confidence) / 2
    normal = bias + ndtri(np.array([tail, 1 - tail]))
    levels = ndtr(bias + normal / (1 - acceleration * normal))
    low, high = (float(f"{limit:.13g}") for limit in np.quantile(means, levels) * scale)
    return low, high  # without the last digits, which depend on what else the matrix product was made of


def _normal(values: Floats, confidence: float, scale: float) -> Interval | None:
    mean, spread = float(values.mean()), float(values.std())
    half = quantile(1 - (1 - confidence) / 2) * spread / sqrt(len(values))
    return ((mean - half) * scale, (mean + half) * scale) if spread > 0 else None


@lru_cache(maxsize=4)
def _weights(n: int, start: int) -> Floats:
    """How often each of n values is drawn, in as many resamples from `start` on as are held at once."""
    import numpy as np

    rows = min(max(1, BLOCK // n), RESAMPLES - start)
    drawn = np.random.default_rng([n, start]).integers(0, n, (rows, n))
    drawn += np.arange(rows)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(float)


def mean_of_rates(counts: Sequence[tuple[int, int]], confidence: float = CONFIDENCE) -> Interval:
    """Of the unweighted mean of success rates, each (successes, n) with n > 0: resampled within each stratum.

    A stratum is resampled at (k + 1) / (n + 2): at k / n a stratum without failures would never vary. n episodes drawn
    from n vary less than the n do, which the factor corrects. The interval lies around the observed mean, in [0, 1].
    """
    import numpy as np

    k, n = np.array(counts, dtype=float).T
    rates = (k + 1) / (n + 2)
    rng = np.random.default_rng([number for pair in counts for number in pair])
    drawn = rng.binomial(n.astype(int), rates, size=(2 * RESAMPLES, len(counts))) / n
    away = ((drawn - rates) * np.sqrt(1 + 1 / n)).mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(away, (tail, 1 - tail)) + (k / n).mean()
    return max(0.0, float(low)), min(1.0, float(high))
