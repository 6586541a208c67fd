"""Readings of the lossy zero norm of TR-132 (section 3.3) on Waveform: the objective of figure 3.

Algorithm 3.4 minimizes the sum of ln(epsilon + |beta_i|) by repeated rescaling. Its lossy step is printed as

    argmin ||w - sum_i lambda_i beta_i x_i||^2 + gamma sum_i lambda_i beta_i,    beta_i <- lambda_i beta_i.

As printed, the sum has no absolute values, and the minimum over b = lambda beta does not depend on beta:
every vector remains. With absolute values the sum is |b|_1 whatever beta is, which is equation 4 (l1). Two
further readings penalize lambda instead of lambda beta, so that small coefficients shrink faster than large
ones: |lambda|_1 and |lambda|_2^2; the latter is `reduced_set.path(method="l0")`. Each may keep its
coefficients or solve for them again.

Cost: m^3 for each round and each gamma, m being the number of support vectors (about 320).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from tr132_two_class import SHARES, TWO_CLASS, drawn, machine

from svmarrow import _core
from svmarrow.papers import reduced_set

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from common import Report

#: Rounds of rescaling; the report finds 10 to 20 enough.
MAX_ROUNDS = 20
#: Scales and coefficients below this share of the largest count as zero.
MIN_RELATIVE_SCALE = 1e-7
N_SPLITS, N_LEVELS = 10, 20
#: Names without bars, which separate the cells of a table.
L1, ABSOLUTE, SQUARED = "1-norm of lambda beta: l1", "1-norm of lambda", "squared 2-norm of lambda"
HEAD = ("penalty", "coefficients", "kept", "splits", "pursuit", "distance", "difference", "standard error")


class ZeroNormProblem:
    """An SVM's coefficients, the kernel matrix of its vectors, and a Cholesky factor of it."""

    def __init__(self, svc: Any) -> None:
        self.alpha = np.asarray(svc.expansion_.coefficients, dtype=np.float64).ravel()
        vectors = np.ascontiguousarray(svc.expansion_.vectors)
        self.K = _core.gram(vectors, None, ("rbf", float(svc.gamma), 0.0, 3), 1)
        self.factor = np.linalg.cholesky(self.K + 1e-10 * np.eye(len(self.alpha)))
        self.products = self.K @ self.alpha

    def distance(self, coefficients: np.ndarray) -> float:
        """Return the distance to the SVM relative to its norm."""
        change = self.alpha - coefficients
        return float(np.sqrt(change @ self.K @ change / (self.alpha @ self.products)))

    def solved_again(self, support: np.ndarray) -> np.ndarray:
        """Return the best coefficients on some of the vectors."""
        coefficients = np.zeros_like(self.alpha)
        inside = self.K[np.ix_(support, support)] + 1e-10 * np.eye(len(support))
        coefficients[support] = np.linalg.solve(inside, self.products[support])
        return coefficients

    def as_printed(self, gamma: float) -> np.ndarray:
        """Return the minimum without absolute values, which does not depend on the scales."""
        return self.alpha - 0.5 * gamma * np.linalg.solve(self.K, np.ones_like(self.alpha))

    def squared(self, gamma: float) -> np.ndarray:
        """Rescale with the penalty gamma |lambda|_2^2."""
        scales = np.ones_like(self.alpha)
        coefficients = scales
        for _ in range(2 * MAX_ROUNDS):
            remaining = scales > 1e-9 * scales.max()
            scale = scales[remaining]
            matrix = self.K[np.ix_(remaining, remaining)] * np.outer(scale, scale)
            matrix[np.diag_indices_from(matrix)] += gamma
            factors = np.zeros_like(self.alpha)
            factors[remaining] = np.linalg.solve(matrix, scale * self.products[remaining])
            coefficients = scales * factors
            scales = scales * np.abs(factors)
        return coefficients

    def absolute(self, gamma: float, rounds: int = MAX_ROUNDS) -> np.ndarray:
        """Rescale with the penalty gamma |lambda|_1; one round from scales of 1 is l1."""
        scales = np.ones_like(self.alpha)
        target = self.factor.T @ self.alpha
        before = np.zeros_like(self.alpha)
        for _ in range(rounds):
            lasso = Lasso(gamma / (2 * len(target)), fit_intercept=False, max_iter=3000, tol=1e-6)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                factors = lasso.fit(self.factor.T * scales, target).coef_
            coefficients = scales * factors
            scales = scales * np.abs(factors)
            if np.abs(coefficients - before).max() <= 1e-6 * np.abs(coefficients).max():
                break
            before = coefficients
        return coefficients


def curve(
    problem: ZeroNormProblem, method: Callable[[float], np.ndarray], gammas: np.ndarray
) -> list[tuple[int, float, float]]:
    """Return numbers of vectors, and distances with the coefficients of the method and with new ones."""
    points = {}
    for gamma in gammas:
        coefficients = method(gamma)
        sizes = np.abs(coefficients)
        if sizes.max() == 0.0:
            continue
        support = np.flatnonzero(sizes > MIN_RELATIVE_SCALE * sizes.max())
        again = problem.distance(problem.solved_again(support))
        points[len(support)] = (len(support), problem.distance(coefficients), again)
    return sorted(points.values())


def at_shares(points: list[tuple[int, float, float]], column: int, m: int) -> np.ndarray:
    """Interpolate distances linearly in the number of vectors, as the report; NaN outside of the curve."""
    sizes, values = [point[0] for point in points], [point[column] for point in points]
    wanted_sizes = [max(1, round(share * m)) for share in SHARES]
    return np.interp(wanted_sizes, sizes, values, left=np.nan, right=np.nan)


def zero_norm(report: Report, options: argparse.Namespace) -> None:
    """Compare the pursuit's distance with that of every reading, by paired errors over the splits."""
    n_splits, n_levels = (2, 4) if options.quick else (N_SPLITS, N_LEVELS)
    pursuit: list[np.ndarray] = []
    distances: dict[tuple[str, str], list[np.ndarray]] = {}
    remaining = []
    for split in drawn(TWO_CLASS["Waveform"], n_splits):
        svc = machine(TWO_CLASS["Waveform"], split)
        problem = ZeroNormProblem(svc)
        m = len(problem.alpha)
        path = reduced_set.path(svc, n_vectors=m, method="backfit", tol=0)
        sizes = [max(1, round(share * m)) for share in SHARES]
        pursuit.append(path.residual_norms[sizes] / path.residual_norms[0])
        square = 0.25 * float(problem.alpha @ problem.products)
        largest = 2 * float(np.abs(problem.products).max())
        levels = np.linspace(0.0, 1.0, n_levels)
        methods: dict[str, tuple[Callable[[float], np.ndarray], np.ndarray]] = {
            L1: (lambda gamma, of=problem: of.absolute(gamma, 1), largest * 0.98 * 10 ** (-3 * levels)),
            ABSOLUTE: (problem.absolute, largest * 10 ** (-2.5 * levels)),
            SQUARED: (problem.squared, square * 10 ** (-1.0 - 2.5 * levels)),
        }
        for label, (method, gammas) in methods.items():
            points = curve(problem, method, gammas)
            for column, coefficients in ((1, "its own"), (2, "solved again")):
                distances.setdefault((label, coefficients), []).append(at_shares(points, column, m))
        coefficients = np.abs(problem.as_printed(0.1 * largest))
        remaining.append(float((coefficients > MIN_RELATIVE_SCALE * coefficients.max()).mean()))
    lines = []
    for (label, coefficients), values in distances.items():
        for at, share in enumerate(SHARES):
            pairs = np.array([(a[at], b[at]) for a, b in zip(pursuit, values, strict=True)])
            pairs = pairs[np.isfinite(pairs).all(axis=1)]
            if len(pairs) < 2:
                continue
            differences = pairs[:, 0] - pairs[:, 1]
            error = differences.std(ddof=1) / np.sqrt(len(differences))
            means = [f"{value:.4f}" for value in pairs.mean(axis=0)]
            means += [f"{differences.mean():+.4f}", f"{error:.4f}"]
            lines.append((label, coefficients, share, len(pairs), *means))
    report.table("Figure 3: readings of the lossy zero norm, Waveform", HEAD, lines)
    report.say(
        f"Without absolute values, as printed, {100 * min(remaining):.0f} % of the vectors remain, at a "
        "tenth of the penalty at which l1 has no vector. *Distance* is that to the SVM relative to its "
        "norm, and the difference is that of the pursuit less the reading."
    )
    report.numbers["zero-norm"] = lines
