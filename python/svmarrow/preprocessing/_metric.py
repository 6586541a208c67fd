"""Learning of a metric by average gradient outer products, with a guard by cross-validation.

Problem: for shaped rows U (n, p) and targets Y (n, q), find a linear map L, diagonal or (p, r), such that
least squares with the RBF kernel of U L predicts better.

Algorithm (recursive feature machines; Radhakrishnan, Beaglehole, Pandit and Belkin, Science 2024): fit least
squares, compute the average gradient outer product M of the outputs with respect to U, and take a power of M
as L L'. The power 1 is theirs; smaller powers damp the map towards equal scales. Bandwidth and penalty are
chosen again after every update, by exact leave-one-out errors.

Guard: M depends on all targets, so the leave-one-out errors of a learned metric are too small: each fit
without a sample uses a metric that has seen it. Therefore every update is also made on the training parts of
k folds, each with the metrics of that part alone, and the losses are those of held-out samples. An update
replaces the current metric if the mean of the paired differences of these losses exceeds a number of standard
errors, which grows with the number of candidates of the step. The bandwidth and the penalty of the folds are
those of the fit on all samples: one factorization for each fold.

Invariant: doing nothing is a candidate, so a step never increases the error on held-out samples.
Cost: about 10 leave-one-out paths for each update, each a few factorizations of n x n matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.special import ndtr, ndtri

from svmarrow._support.blas import one_blas_thread, product
from svmarrow._support.rows import select_rows
from svmarrow.expansion.gradients import gradient_outer_product
from svmarrow.least_squares._base import descend
from svmarrow.least_squares.exact import RLSRegressor
from svmarrow.least_squares.targets import solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["Candidate", "MetricProblem", "apply_map", "gain", "threshold", "weighted_mean"]

#: Penalties of the first fit, and every how many-th of them a coarse fit tries.
FIRST_ALPHAS = tuple(10.0 ** (exponent / 2.0) for exponent in range(-10, 5))
COARSE_STRIDE = 3
#: Maximum number of fits of a search for bandwidth and penalty: the next update changes the best ones.
MAX_FITS = 6
#: Share of the mean that every scale keeps, so that none is 0.
MIN_SHARE = 1e-9
#: Standard errors by which a single candidate must win. Chosen on 35 tables, see the decision record.
STANDARD_ERRORS = 0.5


class Candidate(NamedTuple):
    """A metric with the fits on all samples and on the training part of each fold."""

    #: Maps (p,) or (p, r): that of all samples, then those of the folds.
    maps: tuple[NDArray[np.float64], ...]
    #: The fits in the same order.
    fits: tuple[KernelExpansion, ...]
    gamma: float
    alpha: float
    #: Mean leave-one-out error of the fit on all samples.
    loo_error: float
    #: Losses of the samples, each by the fit of the fold that holds it out, (n,).
    losses: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MetricProblem:
    """Shaped training rows, standardized targets and folds."""

    rows: Any
    targets: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    #: Numbers of the samples that each fold holds out.
    folds: tuple[NDArray[np.intp], ...]
    #: Columns with the same number share a scale.
    groups: NDArray[np.int64]
    full: bool
    rank: int | None
    n_jobs: int | None

    def start(self, gamma: float | None = None, alpha: float | None = None) -> Candidate:
        """Returns the candidate with equal scales; `gamma` and `alpha` are where the search begins."""
        equal = np.ones(int(self.rows.shape[1]))
        width = self._start_width if gamma is None else gamma
        return self._candidate((equal,) * (1 + len(self.folds)), width, alpha)

    @property
    def _start_width(self) -> float:
        return 0.5 / int(self.rows.shape[1])

    def scales(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns scales (p,) with mean square 1; their squares are proportional to group means of sizes."""
        shared = self._shared(sizes)
        return normalised(np.sqrt(shared / shared.mean() + MIN_SHARE))

    def coarse_fit(self, scales: NDArray[np.float64]) -> Any:
        """Returns least squares on all samples with one bandwidth and the best of few penalties."""
        rows = apply_map(self.rows, scales)
        return self._path(rows, self._start_width, FIRST_ALPHAS[::COARSE_STRIDE])

    def fine_fit(self, coarse: Any, scales: NDArray[np.float64]) -> Any:
        """Returns least squares with the best bandwidth and penalty, from those of a coarse fit."""
        return self._search(apply_map(self.rows, scales), float(coarse.gamma), coarse.alpha_, coarse)

    def update(self, current: Candidate, power: float) -> Candidate:
        """Returns the candidate whose metric is a power of the average gradient outer product."""
        maps = []
        for number, (linear, fit) in enumerate(zip(current.maps, current.fits, strict=True)):
            taken = None if number == 0 else self.fold_rows(number - 1)
            weights = self.weights if taken is None or self.weights is None else self.weights[taken]
            maps.append(self._new_map(linear, fit, weights, power))
        return self._candidate(tuple(maps), current.gamma, current.alpha)

    def _shared(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the mean of the sizes of each group, for each column."""
        means: NDArray[np.float64] = np.bincount(self.groups, sizes) / np.bincount(self.groups)
        return means[self.groups]

    def fold_rows(self, fold: int) -> NDArray[np.intp]:
        """Returns the samples that a fold trains on."""
        return np.setdiff1d(np.arange(len(self.targets)), self.folds[fold])

    def _new_map(
        self,
        linear: NDArray[np.float64],
        fit: KernelExpansion,
        weights: NDArray[np.float64] | None,
        power: float,
    ) -> NDArray[np.float64]:
        # The rows of the fit are U L, so the gradient with respect to U is L times that with respect to U L.
        outer = gradient_outer_product(fit, fit.vectors, weights, full=self.full, n_jobs=self.n_jobs)
        if not self.full:
            sizes = outer * linear**2
            sizes = self._shared(sizes)
            if not sizes.any():
                return linear
            return normalised((sizes / sizes.mean() + MIN_SHARE) ** (0.5 * power))
        if linear.ndim == 1:
            outer = outer * linear[:, np.newaxis] * linear
        else:
            outer = product(product(linear, outer), linear.T)
        if not outer.any():
            return linear
        return root(outer, power, self.rank)

    def _candidate(
        self, maps: tuple[NDArray[np.float64], ...], gamma: float, alpha: float | None
    ) -> Candidate:
        mapped, best = apply_map(self.rows, maps[0]), None
        if alpha is None:
            best = self._path(mapped, gamma, FIRST_ALPHAS)
            alpha = float(best.alpha_)
        return self.hold_out(self._search(mapped, gamma, alpha, best), maps)

    def _search(self, mapped: Any, gamma: float, alpha: float, best: Any = None) -> Any:
        """Returns least squares with the bandwidth and penalty of the least leave-one-out error."""

        def fit(width: float, penalty: float) -> Any:
            return self._path(mapped, width, [penalty])

        return descend(fit, lambda model: model.loo_error_, gamma, alpha, best, MAX_FITS)

    def hold_out(self, best: Any, maps: tuple[NDArray[np.float64], ...]) -> Candidate:
        """Returns the candidate of a fit on all samples and of the maps of all samples and of each fold."""
        width, penalty = float(best.gamma), best.alpha_
        fits, losses = [best.expansion_], np.zeros(len(self.targets))
        for fold, held_out in enumerate(self.folds):
            rows = apply_map(self.rows, maps[1 + fold])
            training_rows = self.fold_rows(fold)
            fit = solve(
                select_rows(rows, training_rows, precomputed=False),
                self.targets[training_rows],
                penalty,
                ("rbf", width, 0.0, 3),
                fit_intercept=True,
                leave_one_out=False,
                n_jobs=self.n_jobs,
                verbose=False,
                weights=None if self.weights is None else self.weights[training_rows],
            ).expansion
            fits.append(fit)
            outputs = fit._evaluate(select_rows(rows, held_out, precomputed=False), self.n_jobs)
            losses[held_out] = ((outputs - self.targets[held_out]) ** 2).mean(axis=1)
        return Candidate(maps, tuple(fits), width, penalty, best.loo_error_, losses)

    def _path(self, rows: Any, gamma: float, alphas: Sequence[float]) -> Any:
        """Returns least squares with the penalty of the least leave-one-out error."""
        model = RLSRegressor(alphas=list(alphas), gamma=gamma, fit_intercept=True, n_jobs=self.n_jobs)
        return model.fit(rows, self.targets, self.weights)


def apply_map(rows: Any, linear: NDArray[np.float64]) -> Any:
    """Returns the rows times a map: scales (p,) or a matrix (p, r)."""
    if linear.ndim == 2:
        return product(rows, linear).astype(rows.dtype, copy=False)
    if sp.issparse(rows):
        return sp.csr_array(rows.multiply(linear)).astype(rows.dtype)
    return (rows * linear).astype(rows.dtype, copy=False)


def normalised(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns scales whose mean square is 1."""
    unit: NDArray[np.float64] = scales / np.sqrt(np.mean(scales**2))
    return unit


def root(outer: NDArray[np.float64], power: float, rank: int | None) -> NDArray[np.float64]:
    """Returns L (p, r) with L L' proportional to a power of the matrix; the mean square row length is 1."""
    p = len(outer)
    scaled = outer * (p / np.trace(outer))
    with one_blas_thread():
        values, vectors = eigh(scaled + MIN_SHARE * np.eye(p), driver="evd", check_finite=False)
    roots = np.maximum(values, MIN_SHARE) ** (0.5 * power)
    if rank is None:
        linear = product(vectors * roots, vectors.T)
    else:
        # The sign of a direction is free: its largest element is positive.
        top, roots = vectors[:, ::-1][:, :rank], roots[::-1][:rank]
        signs = np.sign(top[np.abs(top).argmax(axis=0), np.arange(top.shape[1])])
        linear = top * roots * signs
    return np.ascontiguousarray(linear * np.sqrt(p / np.sum(linear**2)))


def weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    """Returns the weighted mean."""
    return float(np.average(values, weights=weights))


def gain(
    before: NDArray[np.float64], after: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[float, float]:
    """Returns the mean of paired differences of losses and its standard error."""
    differences = before - after
    w = np.full(len(before), 1.0 / len(before)) if weights is None else weights / weights.sum()
    mean = float(w @ differences)
    return mean, float(np.sqrt(np.sum((w * (differences - mean)) ** 2)))


def threshold(n_candidates: int) -> float:
    """Returns the number of standard errors for the best of several candidates.

    If no candidate has an effect, the best exceeds it with the probability that a single one exceeds
    `STANDARD_ERRORS` (Bonferroni's correction).
    """
    return float(-ndtri(ndtr(-STANDARD_ERRORS) / n_candidates))
