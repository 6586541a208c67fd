"""Leave-one-out models of least squares from one factorization.

With G = K + alpha W^-1, P the inverse of G bordered by the intercept's ones (without an intercept G^-1), and
u_i the intercept for the target that is one at sample i and zero elsewhere, the model without sample i is

    f_-i(x) = f(x) - (k_x' P e_i + u_i) c_i / P_ii        (Rifkin 2002, section 3.3, for every x)

The columns of P and the u_i are the solution for unit targets, and evaluating that solution gives k_x' P + u
for any x. Cost: n^3 / 2 multiply-adds and 2 n^2 numbers of memory for P, then n^2 multiplications for each
new sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import core_rows, select_rows, threads
from svmarrow._support.training import refuse_beyond_memory
from svmarrow.least_squares.targets import (
    REMEDY,
    bordered_inverse,
    bytes_of_inverse,
    centre_of,
    translated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["LeaveOneOutModels", "class_margins", "conformal_limits", "leave_one_out_models"]

#: Numbers of a block of outputs that are computed together: 16 MB, so that Ctrl-C finds a gap soon.
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class LeaveOneOutModels:
    """All leave-one-out models and their outputs for the omitted samples."""

    #: The fitted model of the samples that take part.
    fitted: KernelExpansion
    #: The solution for unit targets: coefficients P (n, n) and intercepts u (n,).
    unit: KernelExpansion
    #: alpha / w of each sample (n,).
    ridge: NDArray[np.float64]
    #: Training samples that take part, of all that were given; None for all.
    used: NDArray[np.intp] | None
    #: y, (n, q).
    targets: NDArray[np.float64]
    #: y_i - f_-i(x_i), (n, q).
    residuals: NDArray[np.float64]

    @property
    def inverse_diagonal(self) -> NDArray[np.float64]:
        """P_ii, (n,)."""
        return self.unit.coefficients.diagonal()

    def outputs(self, X: Any, n_jobs: int | None) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yields f_-i(x) for blocks of new samples, (samples, n, q), with the place of each block."""
        n = self.ridge.size
        factors = self.fitted.coefficients / self.inverse_diagonal[:, np.newaxis]
        block = max(1, _BLOCK // (n * factors.shape[1]))
        for start in range(0, X.shape[0], block):
            part = X[start : start + block]
            full_outputs = self.fitted._evaluate(part, n_jobs)
            response = self.unit._evaluate(part, n_jobs)
            yield (
                slice(start, start + block),
                full_outputs[:, np.newaxis, :] - response[:, :, np.newaxis] * factors,
            )

    def variances(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """The posterior variance of a Gaussian process with this kernel and noise at new samples, (m,).

        k(x, x) - k_x' G^-1 k_x; with an intercept, that of a constant with an infinite prior variance, which
        is k(x, x) - k_x' P k_x - 2 u' k_x + 1 / (1' G^-1 1).
        """
        n, unit, u = self.ridge.size, self.unit, self.unit.intercepts
        constant = 0.0
        if u.any():
            if unit.kernel == "linear":
                # No translation changes the variance, but products of rows far from the origin are rounded.
                centre = centre_of(unit.vectors)
                u = unit._evaluate(centre[np.newaxis], n_jobs)[0]
                X, vectors = translated(X, centre), translated(unit.vectors, centre)
                unit = unit.replaced(vectors=vectors, intercepts=u)
            # G u is constant, 1 / (1' G^-1 1) everywhere, since u = G^-1 1 / (1' G^-1 1).
            times = unit.replaced(coefficients=u[:, np.newaxis].copy(), intercepts=np.zeros(1))
            constant = float(np.mean(times._evaluate(unit.vectors, n_jobs)[:, 0] + self.ridge * u))
        variances = np.empty(X.shape[0])
        block = max(1, _BLOCK // n)
        for start in range(0, X.shape[0], block):
            part = X[start : start + block]
            kernel = _kernel_matrix(unit, part, n_jobs)
            response = unit._evaluate(part, n_jobs) + u
            variances[start : start + block] = (
                unit._kernel_diagonal(part) - np.einsum("ij,ij->i", kernel, response) + constant
            )
        return np.maximum(variances, 0.0)


def leave_one_out_models(model: Any, ridge: NDArray[np.float64]) -> LeaveOneOutModels:
    """Solve for unit targets with the kernel, samples and penalties of a fitted model of least squares.

    Raises
    ------
    ValueError
        For the precomputed kernel, whose training matrix is not kept, and a system that is not positive
        definite.
    MemoryError
        If the n^2 numbers of the inverse do not fit in the free memory.
    """
    of = model.expansion_
    if isinstance(of.kernel, str) and of.kernel == "precomputed":
        raise refuse("kernel", "precomputed", "a kernel of samples: the training matrix is not kept")
    X, used = of.vectors, None
    if not np.isfinite(ridge).all():
        used = np.flatnonzero(np.isfinite(ridge))
        X, ridge = select_rows(X, used, precomputed=False), ridge[used]
        of = of.replaced(vectors=X, coefficients=of.coefficients[used])
    refuse_beyond_memory(
        f"the models of {type(model).__name__} without one sample", bytes_of_inverse(X), REMEDY
    )
    # Only the ratio of alpha and the weights matters.
    is_plain = bool((ridge == ridge[0]).all())
    unit = bordered_inverse(
        X,
        (of.kernel, of.gamma, of.coef0, of.degree),
        float(ridge[0]) if is_plain else 1.0,
        fit_intercept=bool(model.fit_intercept),
        n_jobs=model.n_jobs,
        weights=None if is_plain else 1.0 / ridge,
    )
    residuals = of.coefficients / unit.coefficients.diagonal()[:, np.newaxis]
    targets = of._evaluate(X, model.n_jobs) + ridge[:, np.newaxis] * of.coefficients
    return LeaveOneOutModels(of, unit, ridge, used, targets, residuals)


def conformal_limits(
    lower: NDArray[np.float64], upper: NDArray[np.float64], coverage: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The jackknife+ interval from f_-i(x) - R_i and f_-i(x) + R_i along the second axis.

    The floor((1 - coverage) (n + 1))-th smallest of the first and the ceil(coverage (n + 1))-th smallest of
    the second (Barber, Candes, Ramdas, Tibshirani 2021, section 1.3); infinite where n is too small for the
    coverage.
    """
    n = lower.shape[1]
    # The product is off by rounding where coverage is a decimal fraction: 0.9 * 10 must be 9.
    rank = int(np.ceil(coverage * (n + 1) * (1.0 - 4.0 * np.finfo(np.float64).eps)))
    if rank > n:
        shape = lower.shape[:1] + lower.shape[2:]
        return np.full(shape, -np.inf), np.full(shape, np.inf)
    low = np.partition(lower, n - rank, axis=1)[:, n - rank]
    high = np.partition(upper, rank - 1, axis=1)[:, rank - 1]
    return low, high


def class_margins(outputs: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Returns the margin of each class over the best other one, (..., n_classes), from outputs (..., q)."""
    if n_classes == 2:
        return np.concatenate([-outputs, outputs], axis=-1)
    two = np.partition(outputs, n_classes - 2, axis=-1)[..., n_classes - 2 :]
    second, best = two[..., :1], two[..., 1:]
    margins: NDArray[np.float64] = outputs - np.where(outputs == best, second, best)
    return margins


def _kernel_matrix(of: KernelExpansion, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
    if callable(of.kernel):
        values: NDArray[np.float64] = np.asarray(of.kernel(X, of.vectors), dtype=np.float64)
        return values
    return _core.gram(core_rows(X), core_rows(of.vectors), of.kernel_spec, threads(n_jobs))
