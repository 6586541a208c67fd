"""Explicit features of a kernel that is known by its values only: a Python function, or a precomputed matrix.

Problem: low-rank training and the selection of vectors read samples as rows of numbers; a user's kernel has
values only. Method: with K = L L' the kernel matrix of m points, the rows of L are features of the points,
and phi(x) = L^-1 k(Z, x) of any sample. Inner products of features are kernel values, exact if one of the two
samples is a point, and projected on the points otherwise (Rifkin 2002, (3.81)). So the linear kernel on
features stands for the kernel, and coefficients of points hold for both.
Invariant: `triangle` is the factor of the kernel matrix of `points`, which are linearly independent: complete
pivoting leaves out points whose distance from the span of the others is rounding.
Cost: m^2 / 2 kernel values, each pair once, and m^3 / 3 multiplications; then m values for each sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg

from svmarrow._support.blas import one_blas_thread
from svmarrow._support.kernel_function import asymmetry, function_matrix, function_values, prepared, tolerance
from svmarrow._support.rows import core_rows
from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LINEAR",
    "FactoredPoints",
    "KernelFeatures",
    "Points",
    "bytes_of_features",
    "factor_points",
    "has_only_values",
]

#: The kernel of features, as the extension module takes it.
LINEAR = ("linear", 1.0, 0.0, 3)
#: What pivoting may leave of the kernel matrix, relative to its largest value.
_MAX_REMAINDER = 1e-6


def has_only_values(kernel: Any) -> bool:
    """Returns whether a kernel is known by its values only."""
    return callable(kernel) or kernel == "precomputed"


def bytes_of_features(points: int, samples: int) -> int:
    """Returns the approximate bytes of the features of points and of samples."""
    return 8 * (3 * points * points + 2 * points * samples)


class KernelFeatures(NamedTuple):
    """Features of samples whose inner products are kernel values."""

    #: The kernel: a function, or "precomputed".
    kernel: Any
    #: Linearly independent points (r, d): rows of numbers, objects, or indices (r, 1) for "precomputed".
    points: Any
    #: Their features (r, r), a lower triangle.
    triangle: NDArray[np.float64]

    def of(self, X: Any) -> NDArray[np.float64]:
        """Returns the features (n, r) of samples."""
        values = self._values(X)
        with one_blas_thread():
            solved = scipy.linalg.solve_triangular(self.triangle, values.T, lower=True, overwrite_b=True)
        return np.ascontiguousarray(solved.T)

    def coefficients(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the coefficients (r, q) of the points for linear functions of the features (r, q)."""
        with one_blas_thread():
            solved = scipy.linalg.solve_triangular(self.triangle, weights, lower=True, trans=1)
        return np.ascontiguousarray(solved)

    def _values(self, X: Any) -> NDArray[np.float64]:
        """Returns the kernel values (n, r) of samples and the points."""
        if callable(self.kernel):
            return function_values(self.kernel, prepared(self.kernel, X), prepared(self.kernel, self.points))
        return np.asarray(X[:, self.points[:, 0].astype(np.intp)], dtype=np.float64)


class Points(NamedTuple):
    """Points of a low-rank approximation, with features where the kernel is known by its values only."""

    #: Rows of numbers, objects, or indices (m, 1).
    vectors: Any
    #: (kernel, gamma, coef0, degree).
    spec: tuple[Any, float, float, int]
    #: Features of the points (m, m); None for a kernel of the extension module.
    triangle: NDArray[np.float64] | None

    def core(self) -> tuple[Any, tuple[Any, float, float, int]]:
        """Returns the points and the kernel as the extension module takes them."""
        return (core_rows(self.vectors), self.spec) if self.triangle is None else (self.triangle, LINEAR)

    def samples(self, X: Any) -> Any:
        """Returns samples for the points of `core`: as they are, or their features."""
        if self.triangle is None:
            return X
        return KernelFeatures(self.spec[0], self.vectors, self.triangle).of(X)

    def outputs(self, expansion: KernelExpansion, samples: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """Returns the outputs of an expansion over the points for samples of `samples`."""
        if self.triangle is not None:
            coefficients, intercepts = expansion.coefficients, expansion.intercepts
            expansion = KernelExpansion(self.triangle, coefficients, intercepts, *LINEAR)
        return expansion._evaluate(samples, n_jobs)


class FactoredPoints(NamedTuple):
    """The factor of a kernel matrix of points, by `factor_points`."""

    features: KernelFeatures
    #: Which of the given points are those of the features, in the order of the pivots (r,).
    places: NDArray[np.intp]
    #: Features of all given points (m, r).
    lines: NDArray[np.float64]


def factor_points(kernel: Any, points: Any, X: NDArray[Any] | None = None) -> FactoredPoints:
    """Factors the kernel matrix of points.

    Parameters
    ----------
    kernel : callable or "precomputed"
        The kernel.
    points : array of shape (m, d)
        Rows of numbers, objects, or for "precomputed" indices of training samples (m, 1).
    X : ndarray of shape (n_train, n_train) or None
        For "precomputed": the kernel matrix of the training samples.

    Returns
    -------
    FactoredPoints
        Features of the points.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the kernel is not positive semidefinite.
    ValueError
        If its matrix is not symmetric.
    """
    if callable(kernel):
        matrix = function_matrix(kernel, points)
    else:
        if X is None:
            raise TypeError("points of a precomputed kernel need the kernel matrix of the training samples")
        rows = points[:, 0].astype(np.intp)
        matrix = np.array(X[np.ix_(rows, rows)], dtype=np.float64)
    _check_symmetry(matrix, kernel, np.float64 if X is None else X.dtype)
    with one_blas_thread():
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1)
    factor = np.tril(factor)[:, :rank]
    places: NDArray[np.intp] = (pivots - 1).astype(np.intp)
    lines = np.empty_like(factor, order="C")
    lines[places] = factor
    _check_remainder(matrix, lines, kernel)
    features = KernelFeatures(kernel, points[places[:rank]], np.ascontiguousarray(factor[:rank]))
    return FactoredPoints(features, places[:rank], lines)


def _check_symmetry(matrix: NDArray[np.float64], kernel: Any, dtype: Any) -> None:
    relative = tolerance(np.dtype(dtype))
    position = asymmetry(matrix, relative)
    if position is not None:
        i, j = position
        raise ValueError(
            f"kernel={kernel!r} is not symmetric: its values for the vectors {i} and {j} are "
            f"{matrix[i, j]:.6g} and {matrix[j, i]:.6g}"
        )


def _check_remainder(matrix: NDArray[np.float64], lines: NDArray[np.float64], kernel: Any) -> None:
    """Raises ``LinAlgError`` if the factor does not reproduce the matrix, as for one that is indefinite."""
    limit = _MAX_REMAINDER * float(np.abs(matrix).max())
    for start in range(0, len(matrix), 256):
        block = slice(start, start + 256)
        with one_blas_thread():
            remainder = float(np.abs(lines[block] @ lines.T - matrix[block]).max())
        if remainder > limit:
            raise np.linalg.LinAlgError(
                f"kernel={kernel!r} is not positive semidefinite: {remainder:.3g} of a kernel value is left "
                "after the pivoted factorization of its matrix"
            )
