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
errors, which grows with the number of candidates of the step. All folds have one bandwidth and one penalty,
by leave-one-out errors: a factorization for each fold. All samples determine them for equal scales. For
other candidates a few samples do, the search begins at the candidate before, and a step must gain more.

Invariant: doing nothing is a candidate, so a step never increases the error on held-out samples.
Cost: for each update a factorization of an n x n matrix, and for each power k smaller ones and some six for
the few samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.special import ndtr, ndtri

from svmarrow._support.rows import one_blas_thread, product, select_rows
from svmarrow.expansion.gradients import gradient_outer_product
from svmarrow.least_squares._base import MIN_STEP_GAIN, descend
from svmarrow.least_squares.estimators import RLSRegressor
from svmarrow.least_squares.targets import solve
from svmarrow.preprocessing._shapes import some_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["Candidate", "MetricProblem", "apply_map", "threshold", "weighted_mean"]

#: The first penalty, and those of a coarse fit.
FIRST_ALPHA, COARSE_ALPHAS = 0.003, (1e-5, 10.0**-3.5, 0.01, 10.0**-0.5, 10.0)
#: Maximum number of fits of the first search for bandwidth and penalty, and of the others: the next update
#: changes the best ones.
MAX_FIRST_FITS, MAX_FITS = 16, 6
#: Share of the error that a step of a search by few samples must gain.
MIN_SEARCH_GAIN = 0.01
#: Share of the mean that every scale keeps, so that none is 0.
MIN_SHARE = 1e-9
#: Standard errors by which a single candidate must win. Chosen on 35 tables, see the decision record.
STANDARD_ERRORS = 0.5


class Candidate(NamedTuple):
    """A metric with the fits on all samples and on the training part of each fold."""

    #: Maps (p,) or (p, r): that of all samples, then those of the folds.
    maps: tuple[NDArray[np.float64], ...]
    #: The fits on the training parts of the folds.
    fits: tuple[KernelExpansion, ...]
    gamma: float
    alpha: float
    #: Mean leave-one-out error of the samples that determine bandwidth and penalty.
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
    #: Numbers of the samples that determine bandwidth and penalty.
    searched: NDArray[np.intp]
    #: Columns with the same number share a scale.
    groups: NDArray[np.int64]
    #: Samples with the same number leave together in leave-one-out errors; None if each leaves alone.
    blocks: NDArray[np.intp] | None
    full: bool
    rank: int | None
    n_jobs: int | None

    @property
    def equal_maps(self) -> tuple[NDArray[np.float64], ...]:
        """Equal scales for all samples and for each fold."""
        return (np.ones(int(self.rows.shape[1])),) * (1 + len(self.folds))

    def start(self) -> Candidate:
        """Returns the candidate with equal scales, whose bandwidth and penalty all samples determine."""
        problem = replace(self, searched=np.arange(len(self.targets)))
        maps = self.equal_maps
        best = problem._search(
            maps[0], self._start_width, FIRST_ALPHA, MAX_FIRST_FITS, min_gain=MIN_STEP_GAIN
        )
        return self.hold_out(best, maps)

    def in_this_shape(self, current: Candidate, maps: tuple[NDArray[np.float64], ...]) -> Candidate:
        """Returns the candidate of maps of this shape; the search begins at a candidate of another shape."""
        # Distances grow with the number of columns.
        width = current.gamma * current.maps[0].shape[0] / maps[0].shape[0]
        return self.candidate(maps, width, current.alpha)

    @property
    def _start_width(self) -> float:
        return 0.5 / int(self.rows.shape[1])

    def scales(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns scales (p,) with mean square 1; their squares are proportional to group means of sizes."""
        shared = self._shared(sizes)
        return normalised(np.sqrt(shared / shared.mean() + MIN_SHARE))

    def coarse_fit(self, scales: NDArray[np.float64]) -> RLSRegressor:
        """Returns least squares with one bandwidth and the best of few penalties."""
        return self._path(self._searched_rows(scales), self._start_width, COARSE_ALPHAS)

    def fine_fit(self, coarse: RLSRegressor, scales: NDArray[np.float64]) -> RLSRegressor:
        """Returns least squares with the best bandwidth and penalty, from those of a coarse fit."""
        assert coarse.alpha_ is not None
        return self._search(scales, float(coarse.gamma), coarse.alpha_, best=coarse)

    def searched_error(self, candidate: Candidate) -> float:
        """Returns the leave-one-out error of a candidate for the few samples."""
        rows = self._searched_rows(candidate.maps[0])
        return float(self._path(rows, candidate.gamma, [candidate.alpha]).loo_error_)

    def updates(self, current: Candidate, powers: Sequence[float]) -> list[Candidate]:
        """Returns the candidates whose metrics are powers of the average gradient outer product."""
        every = np.arange(len(self.targets))
        fit = self._solve(apply_map(self.rows, current.maps[0]), every, current.gamma, current.alpha)
        outers = [self._outer_product(current.maps[0], fit, self.weights)]
        for fold, fit in enumerate(current.fits):
            weights = None if self.weights is None else self.weights[self.fold_rows(fold)]
            outers.append(self._outer_product(current.maps[1 + fold], fit, weights))
        candidates = []
        for power in powers:
            maps = [
                self._new_map(linear, outer, power)
                for linear, outer in zip(current.maps, outers, strict=True)
            ]
            candidates.append(self.candidate(tuple(maps), current.gamma, current.alpha))
        return candidates

    def _shared(self, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the mean of the sizes of each group, for each column."""
        means: NDArray[np.float64] = np.bincount(self.groups, sizes) / np.bincount(self.groups)
        return means[self.groups]

    def fold_rows(self, fold: int) -> NDArray[np.intp]:
        """Returns the samples that a fold trains on."""
        return np.setdiff1d(np.arange(len(self.targets)), self.folds[fold])

    def _outer_product(
        self, linear: NDArray[np.float64], fit: KernelExpansion, weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Returns the average gradient outer product of a fit for the shaped rows: its diagonal, or all."""
        # The rows of the fit are U L, so the gradient with respect to U is L times that with respect to U L.
        outer = gradient_outer_product(fit, fit.vectors, weights, full=self.full, n_jobs=self.n_jobs)
        if not self.full:
            return self._shared(outer * linear**2)
        if linear.ndim == 1:
            return outer * linear[:, np.newaxis] * linear
        return product(product(linear, outer), linear.T)

    def _new_map(
        self, linear: NDArray[np.float64], outer: NDArray[np.float64], power: float
    ) -> NDArray[np.float64]:
        """Returns the map of a power of an outer product; the former map if all gradients are 0."""
        if not outer.any():
            return linear
        if self.full:
            return root(outer, power, self.rank)
        return normalised((outer / outer.mean() + MIN_SHARE) ** (0.5 * power))

    def candidate(self, maps: tuple[NDArray[np.float64], ...], gamma: float, alpha: float) -> Candidate:
        """Returns the candidate of maps; `gamma` and `alpha` are where the search begins."""
        return self.hold_out(self._search(maps[0], gamma, alpha), maps)

    def hold_out(self, best: RLSRegressor, maps: tuple[NDArray[np.float64], ...]) -> Candidate:
        """Returns the candidate of the maps of all samples and of each fold, with the settings of a fit."""
        assert best.alpha_ is not None
        width, penalty = float(best.gamma), best.alpha_
        fits, losses = [], np.zeros(len(self.targets))
        for fold, held_out in enumerate(self.folds):
            rows = apply_map(self.rows, maps[1 + fold])
            fit = self._solve(rows, self.fold_rows(fold), width, penalty)
            fits.append(fit)
            outputs = fit._evaluate(select_rows(rows, held_out, precomputed=False), self.n_jobs)
            losses[held_out] = ((outputs - self.targets[held_out]) ** 2).mean(axis=1)
        return Candidate(maps, tuple(fits), width, penalty, best.loo_error_, losses)

    def _search(
        self,
        linear: NDArray[np.float64],
        gamma: float,
        alpha: float,
        max_fits: int = MAX_FITS,
        best: RLSRegressor | None = None,
        min_gain: float = MIN_SEARCH_GAIN,
    ) -> RLSRegressor:
        """Returns least squares with the bandwidth and penalty of the least leave-one-out error."""
        rows = self._searched_rows(linear)

        def fit(width: float, penalty: float) -> RLSRegressor:
            return self._path(rows, width, [penalty])

        found = descend(fit, lambda model: model.loo_error_, gamma, alpha, best, max_fits, min_gain)
        assert found is not None
        return found

    def _searched_rows(self, linear: NDArray[np.float64]) -> Any:
        return apply_map(select_rows(self.rows, self.searched, precomputed=False), linear)

    def _path(self, rows: Any, gamma: float, alphas: Sequence[float]) -> RLSRegressor:
        """Returns least squares with the penalty of the least leave-one-out error."""
        model = RLSRegressor(alphas=list(alphas), gamma=gamma, fit_intercept=True, n_jobs=self.n_jobs)
        weights = None if self.weights is None else self.weights[self.searched]
        blocks = some_blocks(self.blocks, self.searched)
        return model.fit(rows, self.targets[self.searched], weights, blocks)

    def _solve(self, rows: Any, taken: NDArray[np.intp], gamma: float, alpha: float) -> KernelExpansion:
        """Returns least squares on some of the mapped rows."""
        return solve(
            select_rows(rows, taken, precomputed=False),
            self.targets[taken],
            alpha,
            ("rbf", gamma, 0.0, 3),
            fit_intercept=True,
            leave_one_out=False,
            n_jobs=self.n_jobs,
            verbose=False,
            weights=None if self.weights is None else self.weights[taken],
        ).expansion


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


def threshold(n_candidates: int) -> float:
    """Returns the number of standard errors for the best of several candidates.

    If no candidate has an effect, the best exceeds it with the probability that a single one exceeds
    `STANDARD_ERRORS` (Bonferroni's correction).
    """
    return float(-ndtri(ndtr(-STANDARD_ERRORS) / n_candidates))
