"""The rounding of exported outputs, measured on samples near the vectors of the model.

A sum of large terms that cancel, as in least squares with a small penalty, loses its digits in single
precision, and so does a sample far from the origin before it is centered. Bounds of the worst case would
refuse models that work, so the exported arithmetic is run on samples and compared with the model in double
precision.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from svmarrow._support.decoding import LOSSES
from svmarrow._support.parameters import MATERN_KERNELS, UNIT_DIAGONAL_KERNELS, missing_values, warn_caller
from svmarrow._support.rows import as_rows, one_blas_thread, product
from svmarrow.export.common import dense_vectors, kernel_columns, linear_weights, matern_rate
from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.outputs import code_scores
from svmarrow.models.preparation import Affine, Chain, Parts, PiecewiseLinear

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.outputs import OutputSpec
    from svmarrow.models.preparation import Step

__all__ = [
    "MAX_ERROR",
    "WARNING_ERROR",
    "LoopOutputs",
    "both_outputs",
    "check_rounding",
    "dense",
    "kernel_rows",
    "output_spread",
    "rounded_kernel_rows",
    "rows_in_precision",
    "samples_of",
    "step_in_precision",
]

#: Root mean square errors of an output, relative to its spread, above which an export warns and is refused.
#: An error of 1 % changes 0.2 to 0.5 % of a classifier's labels. Bytes are for models whose loss is measured.
WARNING_ERROR = {"float32": 1e-3, "float64": 1e-3, "int8": 0.5}
MAX_ERROR = {"float32": 0.05, "float64": 0.05, "int8": 0.5}
#: Number of samples on which an export is compared with the model.
N_SAMPLES = 128
#: Kernel values of a block of rows, which stay in the cache.
BLOCK_VALUES = 10**6
#: Maximum number of kernel values, with at least `MIN_SAMPLES` samples.
MAX_KERNEL_VALUES = 10**7
MIN_SAMPLES = 16
#: Maximum number of multiplications of all kernel values, with at least as many samples.
MAX_WORK = 10**8
#: Outputs that vary by less than this, relative to their size, are constant.
CONSTANT = 1e-9


class LoopOutputs:
    """The outputs of an expansion in single or double precision, added one after the other.

    Parameters
    ----------
    expansion : KernelExpansion
        With a built-in kernel.
    n_features : int
        Columns of the rows that the kernel takes.
    dtype : {"float32", "float64"}
        The precision.
    """

    expansion: KernelExpansion
    dtype: np.dtype[Any]
    weights: NDArray[np.float64] | None

    def __init__(self, expansion: KernelExpansion, n_features: int, dtype: str = "float32") -> None:
        self.expansion, self.dtype = expansion, np.dtype(dtype)
        self.weights = linear_weights(expansion, n_features)

    def __call__(self, X: Any) -> NDArray[Any]:
        """The outputs (n, q) of rows (n, d)."""
        n_rows = max(1, BLOCK_VALUES // max(1, self.expansion.n_vectors))
        X = np.asarray(X, dtype=self.dtype)
        with np.errstate(all="ignore"):
            return np.concatenate([self._outputs(X[i : i + n_rows]) for i in range(0, len(X), n_rows)])

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        expansion = self.expansion
        if self.weights is not None:
            values, factors = X, self.weights
        elif expansion.kernel == "precomputed":
            rows = np.asarray(expansion.vectors[:, 0]).astype(np.int64)
            values, factors = X[:, rows], expansion.coefficients
        else:
            values, factors = self._kernel_values(X), expansion.coefficients
        out: NDArray[Any] = np.zeros((len(X), expansion.n_outputs), dtype=self.dtype)
        for value, factor in zip(values.T, factors.astype(self.dtype), strict=True):
            out += value[:, np.newaxis] * factor
        out += expansion.intercepts.astype(self.dtype)
        return out

    def _kernel_values(self, X: NDArray[Any]) -> NDArray[Any]:
        expansion, kernel = self.expansion, str(self.expansion.kernel)
        Z = dense_vectors(expansion).astype(self.dtype)
        total = np.zeros((len(X), len(Z)), dtype=self.dtype)
        # Columns of zeros add nothing.
        used = np.flatnonzero(X.any(axis=0) | Z.any(axis=0))
        for x, z in zip(X.T[used, :, np.newaxis], Z.T[used], strict=True):
            if kernel not in UNIT_DIAGONAL_KERNELS:
                total += x * z
            elif kernel == "laplacian":
                total += np.abs(x - z)
            elif kernel == "chi2":
                t, both = x - z, x + z
                total += np.divide(t * t, both, out=np.zeros_like(t), where=both > 0.0)
            else:
                total += np.square(x - z)
        gamma, coef0 = np.array([expansion.gamma, expansion.coef0], dtype=self.dtype)
        if kernel in MATERN_KERNELS:
            a = np.minimum(matern_rate(kernel, expansion.gamma) * np.sqrt(total), 100.0)
            rest = {"matern12": 0.0 * a, "matern32": a, "matern52": a + a * a / 3.0}[kernel]
            return np.asarray((1.0 + rest) * np.exp(-a))
        if kernel in UNIT_DIAGONAL_KERNELS:
            return np.asarray(np.exp(-gamma * total))
        if kernel == "linear":
            return total
        inner = gamma * total + coef0
        if kernel == "poly":
            return np.asarray(reduce(np.multiply, [inner] * expansion.degree, np.ones_like(inner)))
        return np.asarray(1.0 - 2.0 / (np.exp(2.0 * inner) + 1.0))


def samples_of(spec: OutputSpec) -> NDArray[np.float64] | None:
    """Samples as the model takes them: half of them are vectors, the others lie between two vectors.

    None if the model has no vectors, or only the indices of training samples (precomputed kernel).
    """
    expansion, m = spec.expansion, spec.expansion.n_vectors
    if m == 0 or expansion.kernel == "precomputed":
        return None
    rng = np.random.default_rng(0)
    work = max(MAX_KERNEL_VALUES // m, 1), max(MAX_WORK // (m * max(kernel_columns(spec), 1)), 1)
    n = int(np.clip(min(work), MIN_SAMPLES, N_SAMPLES))
    first, second = (dense(expansion.vectors[rng.integers(m, size=n)]).astype(np.float64) for _ in range(2))
    shares = rng.random((n, 1))
    shares[::2] = 0.0
    rows: NDArray[np.float64] = first + shares * (second - first)
    if any(part.kernel == "chi2" for part in expansion.parts):
        # The preimage of 0 may be mapped to a negative number, which this kernel does not take.
        rows = np.maximum(rows, 1e-6 * rows.max())
    return rows if spec.preparation is None else _preimages(spec.preparation, rows)


def _preimages(step: Step, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Samples that a step maps near the given ones."""
    match step:
        case Chain():
            return reduce(lambda found, one: _preimages(one, found), reversed(step.steps), rows)
        case Affine():
            if step.matrix is not None:
                with one_blas_thread():
                    inverse = np.linalg.pinv(step.matrix)
                rows = product(rows if step.offset is None else rows - step.offset, inverse)
            return rows * step.scale + step.centre
        case PiecewiseLinear():
            columns = zip(rows.T, step.knots, step.values, strict=True)
            return np.stack([_knot_preimages(*column) for column in columns], axis=1)
        case Parts():
            found = np.zeros((len(rows), step.n_in))
            widths = [
                taken.size if part is None else part.n_out
                for taken, part in zip(step.columns, step.steps, strict=True)
            ]
            blocks = np.split(rows, np.cumsum(widths)[:-1], axis=1)
            # Of several parts that take a column the first decides.
            for taken, part, block in reversed(list(zip(step.columns, step.steps, blocks, strict=True))):
                found[:, taken] = block if part is None else _preimages(part, block)
            return found
        case Impute() | Dates():
            return rows[:, : step.n_in]
        case Encode():
            categories, start = [], 0
            for table in step.tables:
                block = rows[:, start : start + table.numbers.shape[1]]
                labels = np.append(table.categories.astype(np.float64), np.nan)
                categories.append(labels[cdist(block, table.numbers).argmin(axis=1)])
                start += block.shape[1]
            return np.stack(categories, axis=1)
    # Clipped and normalized samples are mapped to themselves.
    return rows


def _knot_preimages(
    values: NDArray[np.float64], knots: NDArray[np.float64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Numbers that a piecewise linear function, with values `at` its knots, maps to the given ones."""
    low, high = np.minimum(at[:-1], at[1:]), np.maximum(at[:-1], at[1:])
    within = (low <= values[:, np.newaxis]) & (values[:, np.newaxis] <= high)
    k = within.argmax(axis=1)
    rise = at[k + 1] - at[k]
    share = np.divide(values - at[k], rise, out=np.zeros_like(values), where=rise != 0.0)
    found: NDArray[np.float64] = knots[k] + np.clip(share, 0.0, 1.0) * (knots[k + 1] - knots[k])
    return found


def rows_in_precision(X: ArrayLike, dtype: str) -> NDArray[Any]:
    """Samples as a program in a precision takes them, with NaN for gaps."""
    rows = dense(X)
    with np.errstate(over="ignore"):
        return (np.where(missing_values(rows), np.nan, rows) if rows.dtype == object else rows).astype(dtype)


def step_in_precision(part: Any, dtype: str) -> Any:
    """A step, or a part of one, with its numbers in a precision."""
    if isinstance(part, tuple):
        return tuple(step_in_precision(one, dtype) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        values = {field.name: step_in_precision(getattr(part, field.name), dtype) for field in fields(part)}
        return replace(part, **values)
    return part.astype(dtype) if getattr(part, "dtype", None) == np.float64 else part


def kernel_rows(X: ArrayLike, spec: OutputSpec) -> NDArray[Any]:
    """Rows as the kernel sees them, dense.

    Raises
    ------
    ValueError
        For a wrong number of features and values that the preparation does not take.
    """
    rows = as_rows(X) if spec.preparation is None else spec.preparation.rows(X)
    if rows.shape[1] != kernel_columns(spec):
        raise ValueError(f"X has {rows.shape[1]} columns, the model has {kernel_columns(spec)}")
    return dense(rows).astype(np.float64)


def dense(rows: Any) -> NDArray[Any]:
    """Rows as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def rounded_kernel_rows(X: ArrayLike, spec: OutputSpec, dtype: str) -> NDArray[Any]:
    """Rows as the kernel sees them in a program in a precision."""
    rounded = spec._replace(preparation=step_in_precision(spec.preparation, dtype))
    return kernel_rows(rows_in_precision(X, dtype), rounded)


def both_outputs(
    spec: OutputSpec,
    computed: Callable[[NDArray[np.float64]], NDArray[Any]],
    samples: ArrayLike,
    dtype: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The outputs of the model, and those that are computed of samples and prepared rows in a precision."""
    outputs = spec.expansion.decision_function(kernel_rows(samples, spec))
    return outputs, computed(rounded_kernel_rows(samples, spec, dtype)).astype(np.float64)


def output_spread(spec: OutputSpec, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The size of each output's differences that matter.

    The standard deviation of predictions; the root mean square of constant predictions, of outputs whose sign
    is a label, and of the distances from the mean of all outputs where the largest one decides: with small
    samples or a large penalty all outputs are close to equal intercepts. Where the largest sum of losses
    decides, these are as close, and their distances are the size if that is smaller. Sigmoids are steep where
    outputs hardly differ: then the size is that of the distances from where the probabilities are equal.
    Where the samples are those of `samples_of`, pass the outputs of every second one: those of vectors, since
    outputs may be of another size between them.
    """
    size: NDArray[np.float64] = np.sqrt((outputs**2).mean(axis=0))
    if spec.winner == "largest":
        size = np.maximum(CONSTANT * size, _apart(outputs))
    elif spec.winner.removeprefix("mean_") in LOSSES and spec.matrix is not None:
        losses = code_scores(outputs, spec.matrix, spec.winner, 1)
        size = np.maximum(CONSTANT * size, np.minimum(size, _apart(losses)))
    if spec.calibration is not None and spec.calibration.link != "softmax":
        size = np.maximum(CONSTANT * size, np.minimum(size, _from_thresholds(spec, outputs)))
    if spec.kind in ("classes", "inside"):
        return size
    deviation: NDArray[np.float64] = outputs.std(axis=0)
    return np.where(deviation > CONSTANT * size, deviation, size)


def _from_thresholds(spec: OutputSpec, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root mean square distances from the values at which sigmoids are 1/2, for each output."""
    calibration = spec.calibration
    assert calibration is not None
    is_steep = calibration.slopes != 0.0
    if not is_steep.any():
        return np.full(outputs.shape[1], np.inf)
    thresholds = -calibration.offsets[is_steep] / calibration.slopes[is_steep]
    values = spec._calibrated_values(outputs)
    distances = np.sqrt(((values[:, is_steep] - thresholds) ** 2).mean(axis=0))
    if values.shape[1] != outputs.shape[1] or not is_steep.all():
        # Scores mix outputs.
        return np.full(outputs.shape[1], distances.min())
    return np.asarray(distances)


def _apart(scores: NDArray[np.float64]) -> float:
    """The size of the distances of scores from their mean, the largest of all classes."""
    return float(np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).mean(axis=0)).max())


def check_rounding(
    outputs: NDArray[np.float64], computed: NDArray[Any], spread: NDArray[np.float64], dtype: str
) -> None:
    """Refuse an export whose outputs differ too much from the model's, and warn of smaller differences.

    Parameters
    ----------
    outputs : ndarray of shape (n_samples, n_outputs)
        The model's, in double precision.
    computed : ndarray of shape (n_samples, n_outputs)
        The export's.
    spread : ndarray of shape (n_outputs,)
        The size of each output's differences that matter.
    dtype : {"float32", "float64", "int8"}
        The numbers of the export.

    Raises
    ------
    ValueError
        If the root mean square error of an output exceeds its spread times ``MAX_ERROR[dtype]``.

    Warns
    -----
    UserWarning
        If it exceeds the spread times ``WARNING_ERROR[dtype]``.
    """
    with np.errstate(all="ignore"):
        error = np.sqrt(((computed - outputs) ** 2).mean(axis=0))
        shares = np.where(error > 0.0, error / spread, 0.0)
    # NaN, of a sum that overflows, counts as infinite.
    shares = np.nan_to_num(np.where(np.isnan(error), np.inf, shares), nan=np.inf, posinf=np.inf)
    worst = int(shares.argmax())
    if shares[worst] <= WARNING_ERROR[dtype]:
        return
    message = (
        f"dtype={dtype!r}: its rounding changes output {worst} by {100.0 * shares[worst]:.3g} % of its "
        f"spread, where {100.0 * MAX_ERROR[dtype]:g} % is the maximum: use dtype='float64'"
    )
    if shares[worst] > MAX_ERROR[dtype]:
        raise ValueError(message)
    warn_caller(message, UserWarning)
