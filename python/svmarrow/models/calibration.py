"""Probabilities of classes from the outputs of a classifier: sigmoids, and how they become one distribution.

A sigmoid is fitted by the stable method of Lin, Lin and Weng (2007) with Platt's targets, on outputs for rows
that the machine has not seen, with a slope that is not negative. Those of pairs of classes are coupled by the
second method of Wu, Lin and Weng (2004): with r_ij the probability of i among i and j,

    min over p, sum p = 1,  of  sum_{i, j != i} (r_ji p_i - r_ij p_j)^2  =  2 p' Q p,

where Q_ii = sum_s r_si^2 and Q_ij = -r_ij r_ji. The optimum is p = x / sum x of (Q + 1 1') x = 1: a system
that is positive definite even where the pairs agree and Q is singular, so that elimination needs no pivots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit, softmax

from svmarrow import _core
from svmarrow._support.parameters import refuse
from svmarrow._support.schemas import savable
from svmarrow._support.training import pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MAX_LOGIT",
    "MIN_LOGIT",
    "MIN_PROBABILITY",
    "TIE_LOGIT",
    "Calibration",
    "coupled",
    "sigmoid",
]

#: Minimum probability of a class in a pair, as in LIBSVM.
MIN_PROBABILITY = _core.MIN_PAIR_PROBABILITY
#: Sigmoids of double precision are 0 below the first of these and 1 above the second.
MIN_LOGIT, MAX_LOGIT = -745.2, 36.7368005696771
#: Up to this logit a sigmoid of double precision is at most 1/2, and two classes tie.
TIE_LOGIT = 2.0**-52
#: Weight of B^2 / 2 for each sample. B moves the threshold of a pair away from that of `predict`, by an
#: amount that the outputs hardly determine: with the penalty the log loss is the same within a percent, and
#: the most probable class differs from `predict` for a fifth to nine tenths fewer samples.
OFFSET_PENALTY = 0.03
#: Maximum number of entries of the linear systems that are solved together: 32 MB.
MAX_SYSTEM_ENTRIES = 2**22


@savable("calibration/1")
@dataclass(frozen=True, eq=False)
class Calibration:
    """Sigmoids or a softmax that make probabilities of outputs.

    Parameters
    ----------
    link : {"classes", "pairs", "softmax"}
        ``"classes"``: a sigmoid for each class on its score, divided by their sum. ``"pairs"``: a sigmoid for
        each pair of classes on the output of its machine, coupled. ``"softmax"``: of the scores times the one
        slope. For two classes all are one sigmoid, of the second class.
    slopes, offsets : ndarray of shape (n_sigmoids,)
        The sigmoids are 1 / (1 + exp(-(slope f + offset))).

    Raises
    ------
    ValueError
        If `link` is unknown, or slopes and offsets are not equally many finite numbers.

    Examples
    --------
    >>> from svmarrow.models import Calibration
    >>> Calibration("classes", [2.0], [0.0]).probabilities([[0.0], [10.0]], 2).round(2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    link: Literal["classes", "pairs", "softmax"]
    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.link not in ("classes", "pairs", "softmax"):
            raise refuse("link", self.link, "'classes', 'pairs' or 'softmax'")
        for name in ("slopes", "offsets"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise refuse(name, getattr(self, name), "a vector of finite numbers")
            object.__setattr__(self, name, values)
        if self.slopes.shape != self.offsets.shape:
            raise ValueError(f"there are {self.slopes.size} slopes and {self.offsets.size} offsets")

    def check(self, n_classes: int) -> None:
        """Refuse a number of sigmoids that does not fit the number of classes."""
        n_slopes = {"classes": n_classes, "pairs": n_classes * (n_classes - 1) // 2, "softmax": 1}[self.link]
        n_slopes = 1 if n_classes == 2 else n_slopes
        if self.slopes.size != n_slopes:
            raise ValueError(
                f"calibration has {self.slopes.size} sigmoids: link={self.link!r} of {n_classes} classes "
                f"needs {n_slopes}"
            )

    def probabilities(self, values: Any, n_classes: int) -> NDArray[np.float64]:
        """Probabilities (n, n_classes).

        Parameters
        ----------
        values : array-like of shape (n_samples, n_sigmoids) or (n_samples, n_classes)
            What the link takes: outputs of pairs, positive for the first class, or scores; for two classes
            one column, positive for the second.
        n_classes : int
            Number of classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        z = np.asarray(values, dtype=np.float64) * self.slopes + self.offsets
        if self.link == "pairs":
            return coupled(expit(-z if n_classes == 2 else z), n_classes)
        if n_classes == 2:
            return np.column_stack([expit(-z[:, 0]), expit(z[:, 0])])
        if self.link == "softmax":
            return np.asarray(softmax(z, axis=1))
        p = expit(z)
        total = p.sum(axis=1, keepdims=True)
        # Where every sigmoid is 0 all classes are equally probable, as in scikit-learn.
        shares: NDArray[np.float64] = np.full_like(p, 1.0 / n_classes)
        np.divide(p, total, out=shares, where=total > 0.0)
        return shares

    def winners(self, values: Any, n_classes: int) -> NDArray[np.intp]:
        """The index of the most probable class (n,), the first of equals, as scikit-learn finds it.

        Parameters
        ----------
        values : array-like of shape (n_samples, n_sigmoids) or (n_samples, n_classes)
            See `probabilities`.
        n_classes : int
            Number of classes.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Indices of the classes.
        """
        probabilities = self.probabilities(values, n_classes)
        if n_classes == 2:
            # Rounded as 1 - p, the other class ties at 1/2.
            return (probabilities[:, 1] > 0.5).astype(np.intp)
        winners: NDArray[np.intp] = np.argmax(probabilities, axis=1)
        return winners

    @classmethod
    def fitted(
        cls,
        link: Literal["classes", "pairs"],
        values: NDArray[np.float64],
        labels: NDArray[np.intp],
        n_classes: int,
        weights: NDArray[np.float64],
    ) -> Calibration:
        """Fit sigmoids to values of samples with known classes.

        Parameters
        ----------
        link : {"classes", "pairs"}
            What to fit.
        values : ndarray of shape (n_samples, n_sigmoids)
            Values, see `probabilities`.
        labels : ndarray of int of shape (n_samples,)
            The number of each sample's class.
        n_classes : int
            Number of classes.
        weights : ndarray of shape (n_samples,)
            Weights of the samples.

        Returns
        -------
        Calibration
            Without a negative slope. A slope of 0 says that the values do not distinguish the classes.
        """
        found = []
        if n_classes == 2:
            found = [sigmoid(values[:, 0], labels == 1, weights)]
        elif link == "classes":
            found = [sigmoid(values[:, c], labels == c, weights) for c in range(n_classes)]
        else:
            for pair, (a, b) in enumerate(pairs(n_classes)):
                rows = np.flatnonzero((labels == a) | (labels == b))
                found.append(sigmoid(values[rows, pair], labels[rows] == a, weights[rows]))
        slopes, offsets = 0.0 - np.array(found).T
        return cls(link, slopes, offsets)


def sigmoid(
    outputs: NDArray[np.float64], first: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """A and B of p(first class) = 1 / (1 + exp(A f + B)), by Newton's method with backtracking.

    The objective is the log loss with Platt's targets and a weak penalty on B, and A is never positive: a
    larger output makes the first class no less probable. If the optimum has another sign, which outputs of
    cross-validation without a signal often give, A is 0 and B the best for it, since the loss is convex.
    """
    outputs, weights = (np.ascontiguousarray(values, dtype=np.float64) for values in (outputs, weights))
    first = np.ascontiguousarray(first, dtype=np.bool_)
    slope, offset = _core.fit_sigmoid(outputs, first, weights, OFFSET_PENALTY)
    if slope > 0.0:
        slope, offset = _core.fit_sigmoid(np.zeros_like(outputs), first, weights, OFFSET_PENALTY)
    return slope, offset


def coupled(pairwise: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Probabilities (n, k) from those of the first class of each pair, (n, pairs)."""
    pairwise = np.clip(pairwise, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    if k == 2:
        return np.column_stack([pairwise, 1.0 - pairwise])
    probabilities = np.empty((len(pairwise), k))
    step = max(1, MAX_SYSTEM_ENTRIES // (k + 1) ** 2)
    for start in range(0, len(pairwise), step):
        block = slice(start, start + step)
        probabilities[block] = _coupled(pairwise[block], k)
    return probabilities


def _coupled(pairwise: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    r = np.zeros((len(pairwise), k, k))
    a, b = np.array(pairs(k)).T
    r[:, a, b], r[:, b, a] = pairwise, 1.0 - pairwise
    system = 1.0 - r * r.transpose(0, 2, 1)
    every = np.arange(k)
    system[:, every, every] += (r**2).sum(axis=1)
    x = np.maximum(np.linalg.solve(system, np.ones((len(pairwise), k, 1)))[..., 0], 0.0)
    shares: NDArray[np.float64] = x / x.sum(axis=1, keepdims=True)
    return shares
