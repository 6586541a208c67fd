"""Least squares for a matrix of targets, used by the estimators and the multiclass codes.

The solution for unit targets gives the models without one sample, all from one factorization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_non_negative

from svmarrow import _core
from svmarrow._support.parameters import THREADS, boolean, check, either, function, kernel_rules, real, refuse
from svmarrow._support.progress import progress
from svmarrow._support.rows import as_samples, core_rows, select_rows, threads
from svmarrow._support.saving import check_columns, check_state
from svmarrow._support.training import bytes_of_rows, check_kernel_matrix, default_gamma, refuse_beyond_memory
from svmarrow.expansion.kernel_expansion import KernelExpansion, TrainingKernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._core import _Problem
    from svmarrow.expansion.kernel_expansion import KernelFunction

__all__ = [
    "REMEDY",
    "LeaveOneOutModels",
    "TargetFit",
    "bordered_inverse",
    "bytes_of_inverse",
    "bytes_of_system",
    "check_sums",
    "class_margins",
    "conformal_limits",
    "fit_targets",
    "leave_one_out_models",
    "left_out",
    "refuse_system",
    "solve",
    "solved",
]


_RULES = {
    **kernel_rules(),
    "kernel": either(kernel_rules()["kernel"], function),
    "alpha": real(least=0.0),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
    "n_jobs": THREADS,
}


#: Rows from which on memory is worth a look.
_LARGE = 4000

#: Distance of a column from zero, relative to its width, from which rows are translated.
MIN_RELATIVE_OFFSET = 8.0


@dataclass(frozen=True, eq=False)
class TargetFit:
    """Solution of (K + alpha I) c = y - b for every column of a matrix of targets."""

    #: The q outputs over all training rows.
    expansion: KernelExpansion
    #: f^(-i)(x_i) in the units of the targets, (n, q); None where it was not asked for.
    loo: NDArray[np.float64] | None
    #: Diagonal of the inverse of K + alpha I, bordered by the intercept's ones, (n,); None as above.
    inverse_diagonal: NDArray[np.float64] | None
    #: Generalized cross-validation of each output, (q,); None as above.
    gcv: NDArray[np.float64] | None
    #: k(x_i, x_i), (n,).
    diagonal: NDArray[np.float64]

    @property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients c, (n, q)."""
        return self.expansion.coefficients


def fit_targets(
    X: Any,
    Y: ArrayLike,
    alpha: float = 1.0,
    *,
    kernel: str | KernelFunction = "rbf",
    gamma: str | float = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    fit_intercept: bool = False,
    leave_one_out: bool = False,
    n_jobs: int | None = None,
    verbose: bool | int = False,
) -> TargetFit:
    """Fit all columns of a matrix of targets by one factorization.

    The matrix K + alpha I has nothing to do with the targets, so further columns cost next to nothing
    (Rifkin 2002, section 4.4.2).

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, d)
        Samples; the (n, n) kernel matrix for the precomputed kernel.
    Y : array-like of shape (n, q) or (n,)
        Targets, one column an output.
    alpha : float, default=1.0
        Weight of the penalty, lambda n in Rifkin (2002).
    kernel : str or callable, default="rbf"
        As in `svmarrow.RLSClassifier`.
    gamma : {"scale", "auto"} or float, default="scale"
        As in `svmarrow.RLSClassifier`.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool, default=False
        Whether leave-one-out values are computed, what each sample would be given had it not been there;
        costs as much as the factorization.
    n_jobs : int or None, default=None
        Threads; None is all cores within the limits of joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Returns
    -------
    TargetFit
        `coef` (n, q), `loo` (n, q), `inverse_diagonal` (n,), `gcv` (q,), `expansion`.

    Raises
    ------
    ValueError
        For parameters outside their rules, shapes that do not agree, numbers that are not finite, and a
        system that is not positive definite.
    MemoryError
        If the kernel matrix does not fit in the free memory.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow.least_squares import fit_targets
    >>> fit = fit_targets([[0.0], [1.0]], [[1.0], [0.0]], alpha=1.0, kernel="linear")
    >>> fit.coef.ravel().tolist()
    [1.0, 0.0]
    """
    values = {
        "kernel": kernel,
        "gamma": gamma,
        "degree": degree,
        "coef0": coef0,
        "alpha": alpha,
        "fit_intercept": fit_intercept,
        "leave_one_out": leave_one_out,
        "n_jobs": n_jobs,
    }
    check(values, _RULES)
    X = as_samples(X, kernel)
    targets = np.asarray(Y, dtype=np.float64)
    targets = targets[:, np.newaxis] if targets.ndim == 1 else targets
    if targets.ndim != 2 or targets.shape[0] != X.shape[0] or targets.shape[1] == 0:
        raise ValueError(
            f"Y has shape {np.shape(Y)}: it must have one row for each of the {X.shape[0]} rows of X"
        )
    if isinstance(kernel, str) and kernel == "precomputed":
        check_kernel_matrix(X)
    if isinstance(kernel, str) and kernel == "chi2":
        check_non_negative(X, "fit_targets with kernel='chi2'")
    width = default_gamma(gamma, X, kernel=kernel)
    return solve(
        X,
        targets,
        float(alpha),
        (kernel, width, float(coef0), int(degree)),
        fit_intercept=bool(fit_intercept),
        leave_one_out=bool(leave_one_out),
        n_jobs=n_jobs,
        verbose=verbose,
    )


def solve(
    X: Any,
    targets: NDArray[np.float64],
    alpha: float,
    kernel: tuple[Any, float, float, int],
    *,
    fit_intercept: bool,
    leave_one_out: bool,
    n_jobs: int | None,
    verbose: bool | int,
    weights: NDArray[np.float64] | None = None,
    groups: NDArray[np.intp] | None = None,
) -> TargetFit:
    """Does the same as `fit_targets` for validated rows and parameters; weights must be positive.

    Leave-one-out values leave out the samples with the same number in `groups` (n,) together.
    """
    if leave_one_out:
        check_leaves_samples(X, fit_intercept=fit_intercept)
    refuse_system(X, leave_one_out=leave_one_out)
    function: Any = TrainingKernel(kernel[0], X) if callable(kernel[0]) else kernel
    with progress(verbose) as reporter:
        solution = _core.least_squares(
            problem(core_rows(X), targets, function, weights, fit_intercept=fit_intercept, groups=groups),
            alpha,
            leave_one_out,
            reporter.callback,
            threads(n_jobs),
        )
    return solved(X, kernel, solution)


def bordered_inverse(
    X: Any,
    kernel: tuple[Any, float, float, int],
    alpha: float,
    *,
    fit_intercept: bool,
    n_jobs: int | None,
    weights: NDArray[np.float64] | None = None,
) -> KernelExpansion:
    """Return the solution for unit targets: the inverse (n, n) and intercepts (n,)."""
    n = int(X.shape[0])
    function: Any = TrainingKernel(kernel[0], X) if callable(kernel[0]) else kernel
    solution = _core.least_squares_inverse(
        problem(core_rows(X), np.zeros((n, 1)), function, weights, fit_intercept=fit_intercept),
        alpha,
        None,
        threads(n_jobs),
    )
    return KernelExpansion(X, solution["inverse"], solution["intercepts"], *kernel)


def problem(
    rows: Any,
    targets: NDArray[np.float64],
    kernel: Any,
    weights: Any,
    *,
    fit_intercept: bool,
    groups: NDArray[np.intp] | None = None,
) -> _Problem:
    """Returns the problem in the form of the extension module."""
    return {
        "x": rows,
        "targets": np.ascontiguousarray(targets),
        "kernel": kernel,
        "weights": weights,
        "groups": None if groups is None else groups.tolist(),
        "fit_intercept": fit_intercept,
    }


def solved(X: Any, kernel: tuple[Any, float, float, int], solution: Any) -> TargetFit:
    """Converts the result of the extension module."""
    precomputed = isinstance(kernel[0], str) and kernel[0] == "precomputed"
    vectors = np.arange(X.shape[0], dtype=np.float64)[:, np.newaxis] if precomputed else X
    expansion = KernelExpansion(vectors, solution["coefficients"], solution["intercepts"], *kernel)
    estimate = solution["leave_one_out"]
    if estimate is None:
        return TargetFit(expansion, None, None, None, solution["diagonal"])
    return TargetFit(
        expansion,
        estimate["values"],
        estimate["inverse_diagonal"],
        estimate["gcv"],
        solution["diagonal"],
    )


def centre_of(X: Any) -> NDArray[np.float64]:
    """Returns the mean of rows (d,) in columns that are far from zero compared with their width, 0 in others.

    Sparse rows have a mean only in columns that all of them have, and stay sparse.
    """
    mean = np.ravel(np.asarray(X.mean(axis=0, dtype=np.float64)))
    low, high = (_columns(one).astype(np.float64) for one in (X.min(axis=0), X.max(axis=0)))
    far = np.abs(mean) >= MIN_RELATIVE_OFFSET * (high - low)
    if sp.issparse(X):
        far &= np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    return np.where(far, mean, 0.0)


def _columns(line: Any) -> NDArray[Any]:
    return np.ravel(line.toarray() if sp.issparse(line) else line)


def translated(X: Any, centre: NDArray[np.float64]) -> Any:
    """Returns rows less a center (d,), in their precision.

    Products of rows far from the origin hide their differences.
    """
    if not centre.any():
        return X
    kind = X.dtype if X.dtype.kind == "f" else np.float64
    if not sp.issparse(X):
        return (X - centre).astype(kind, copy=False)
    ones = sp.csr_matrix(np.ones((X.shape[0], 1)))
    rows = sp.csr_matrix(X - ones @ sp.csr_matrix(centre[np.newaxis])).astype(kind, copy=False)
    rows.sort_indices()
    return rows


#: What may be done where an exact system is too large.
REMEDY = "use solver='cg' with leave_one_out=False, or LowRankRLSClassifier or LowRankRLSRegressor"


def bytes_of_system(X: Any, outputs: int, *, leave_one_out: bool, precomputed: bool = False) -> int:
    """Returns the approximate memory of `solve` in addition to the rows."""
    n = int(X.shape[0])
    system = _core.least_squares_bytes(n, X.dtype != np.float64, leave_one_out)
    packed = 0 if precomputed else 2 * bytes_of_rows(X)
    # Right-hand sides, and panels of the factorization.
    return int(system) + packed + 8 * n * (8 * outputs + 4) + 8 * n * 512


def bytes_of_inverse(X: Any) -> int:
    """Return the bytes that `bordered_inverse` takes in addition to the rows, roughly."""
    return int(_core.least_squares_inverse_bytes(int(X.shape[0]))) + 2 * bytes_of_rows(X)


def refuse_system(X: Any, *, leave_one_out: bool, matrices: int = 1) -> None:
    """Raise a MemoryError if the matrices of an exact fit exceed the free memory."""
    n = int(X.shape[0])
    if n >= _LARGE:
        needed = matrices * _core.least_squares_bytes(n, X.dtype != np.float64, leave_one_out)
        refuse_beyond_memory(f"the exact system of {n} samples", needed, REMEDY)


def check_leaves_samples(X: Any, *, fit_intercept: bool) -> None:
    """Raises ``ValueError`` if a model without one of the rows has no row to determine its intercept."""
    if fit_intercept and int(X.shape[0]) < 2:
        raise ValueError(
            "one sample is in the model, and leave-one-out values of a model with an intercept need at least "
            "2: set fit_intercept=False or leave_one_out=False"
        )


def left_out(
    targets: NDArray[np.float64],
    fitted: NDArray[np.float64],
    hat: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Returns leave-one-out outputs (n, q); `hat` (n,) are the leverages of rows of weight 1."""
    weighted_hat = hat if weights is None else hat * weights
    left: NDArray[np.float64] = targets - (targets - fitted) / (1.0 - weighted_hat)[:, np.newaxis]
    return left


def check_sums(model: Any, vectors: Any, spec: Any, sums: Any, *, is_model: bool) -> None:
    """Checks that the sums of a low-rank estimator are those of its points (m, d) and outputs.

    With `is_model` the points are the vectors of the model.
    """
    made = model.expansion_
    m, q = vectors.shape[0], made.coefficients.shape[1]
    table, line = np.zeros((0, 0)), np.zeros(0)
    points = KernelExpansion(vectors, np.zeros((m, 1)), np.zeros(1), *spec)
    check_columns(model, points)
    if is_model and made.vectors.shape != points.vectors.shape:
        raise ValueError("expansion_ is not one of the points")
    empty = {"gram": table, "products": table, "columns": line, "targets": line}
    check_state(sums, {**empty, "rows": 0, "weight": 0.0})
    shapes = {"gram": (m, m), "products": (m, q), "columns": (m,), "targets": (q,)}
    for key, shape in shapes.items():
        if sums[key].shape != shape:
            raise ValueError(f"{key} of the sums has shape {sums[key].shape}, expected {shape}")
    if sums["rows"] != model.n_seen_:
        raise ValueError("the sums are of another number of rows")


# --- leave-one-out models: the solution for unit targets ---
# With G = K + alpha W^-1, P the inverse of G bordered by the intercept's ones (without an intercept G^-1),
# and u_i the intercept for the target that is one at sample i and zero elsewhere, the model without sample i
# is
#
#     f_-i(x) = f(x) - (k_x' P e_i + u_i) c_i / P_ii        (Rifkin 2002, section 3.3, for every x)
#
# The columns of P and the u_i are the solution for unit targets, and evaluating that solution gives
# k_x' P + u for any x. Cost: n^3 / 2 multiply-adds and 2 n^2 numbers of memory for P, then n^2
# multiplications for each new sample.

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
