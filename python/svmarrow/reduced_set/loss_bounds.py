"""Upper bounds of the loss of a compressed model: both models on each sample, with confidence.

**Classes.** Of n samples the full model alone is right on b, the small one alone on c. The loss is
(b - c) / n. Its upper bound is the largest D that the score test of paired proportions does not reject
(Tango, 1998, equation 4): with q the likeliest share of samples that the small model alone gets right if the
loss is D,

    (b - c - n D) / sqrt(n (2 q + D (1 - D))) = -z.

Unlike intervals from an estimated variance it holds where b and c are small; for b = c = 0 it is
z^2 / (n + z^2).

**Numbers.** The loss is a ratio R of sums over samples, with deviations u = lost - R share. Its bound is

    R + mean(u) / mean(share) + z deviation(u) / (mean(share) sqrt(n))

where u has one more sample, as bad as the worst of them: what n samples have not shown may still come once
in n. Without it, bounds fail too often where few samples carry the loss (kin8nm, kurtosis 1,200).

**Weights.** Samples of equal weight are a stratum with share p_s of the weight, a loss D_s and a bound U_s of
paired proportions. The loss is sum p_s D_s, and its bound is the larger of

    sum p_s D_s + sqrt(sum p_s^2 (U_s - D_s)^2)

and of the bound of numbers. Within a stratum whose weights differ by up to a factor of two, each sample
counts as its share of the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["paired_bound", "ratio_bound", "weighted_bound"]

MAX_STRATA = 32
"""Maximum number of different weights that are strata of their own."""


def paired_bound(b: float, c: float, n: float, error: float) -> float:
    """Upper bound of the loss where b rows are right by the full model alone and c by the small one."""
    z = -float(ndtri(error))

    def statistic(loss: float) -> float:
        linear = -b - c + (2 * n - b + c) * loss
        share = (np.sqrt(max(0.0, linear**2 + 8 * n * c * loss * (1 - loss))) - linear) / (4 * n)
        return float(b - c - n * loss + z * np.sqrt(max(0.0, n * (2 * share + loss * (1 - loss)))))

    low = (b - c) / n + 1e-9
    return 1.0 if b >= n else float(brentq(statistic, low, 1.0, xtol=1e-9)) if statistic(low) > 0 else low


def ratio_bound(lost: NDArray[np.float64], shares: NDArray[np.float64], error: float) -> float:
    """Upper bound of sum(lost) / sum(shares) on other rows of the same kind."""
    ratio = float(lost.sum() / shares.sum())
    apart = (lost - ratio * shares) / shares.mean()
    apart = np.append(apart, max(0.0, float(apart.max())))
    return ratio + float(apart.mean() - ndtri(error) * apart.std() / np.sqrt(apart.size))


def weighted_bound(lost: NDArray[np.float64], weights: NDArray[np.float64], error: float) -> float:
    """Upper bound of the weighted mean of losses -1, 0 and 1 on other rows of the same kind."""
    lost, weights = lost[weights > 0.0], weights[weights > 0.0]
    total = float(weights.sum())
    values, which = np.unique(weights, return_inverse=True)
    if values.size > MAX_STRATA:
        _, which = np.unique(np.floor(np.log2(weights)), return_inverse=True)
    square = 0.0
    for stratum in range(int(which.max()) + 1):
        there = which == stratum
        of, heaviest = lost[there], float(weights[there].max())
        rows = weights[there] / heaviest
        n, b, c = float(rows.sum()), float(rows[of > 0].sum()), float(rows[of < 0].sum())
        square += (n * heaviest / total * (paired_bound(b, c, n, error) - (b - c) / n)) ** 2
    upper = float(weights @ lost) / total + np.sqrt(square)
    return min(1.0, max(float(upper), ratio_bound(weights * lost, weights, error)))
