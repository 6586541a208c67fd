"""The rounding of exported outputs, measured on samples near the vectors of the model.

A sum of large terms that cancel, as in least squares with a small penalty, loses its digits in single
precision, and so does a sample far from the origin before it is centred. Bounds of the worst case would
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

from svmarrow._support.blas import one_blas_thread, product
from svmarrow._support.rows import as_rows
from svmarrow.export.common import kernel_columns
from svmarrow.models.categories import Encode, Impute, is_gap
from svmarrow.models.piecewise import PiecewiseLinear
from svmarrow.models.preparation import Affine, Chain, Parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.output_spec import OutputSpec
    from svmarrow.models.preparation import Step

__all__ = [
    "MAX_ERROR",
    "check_rounding",
    "dense",
    "kernel_rows",
    "output_spread",
    "rows_in_precision",
    "samples_of",
    "step_in_precision",
]

#: Maximum root mean square error of an output, relative to its spread. Models with moderate coefficients stay
#: below 1e-4 in single precision; bytes are for models whose loss is measured, and only noise is refused.
MAX_ERROR = {"float32": 1e-3, "float64": 1e-3, "int8": 0.5}
#: Number of samples on which an export is compared with the model.
N_SAMPLES = 128
#: Maximum number of kernel values of the comparison, with at least `MIN_SAMPLES` samples.
MAX_KERNEL_VALUES = 10**7
MIN_SAMPLES = 16
#: Outputs that vary by less than this, relative to their size, are constant.
CONSTANT = 1e-9


def samples_of(spec: OutputSpec) -> NDArray[np.float64] | None:
    """Samples as the model takes them: half of them are vectors, the others lie between two vectors.

    None if the model has no vectors, or only the indices of training samples (precomputed kernel).
    """
    expansion, m = spec.expansion, spec.expansion.n_vectors
    if m == 0 or expansion.kernel == "precomputed":
        return None
    rng = np.random.default_rng(0)
    n = int(np.clip(MAX_KERNEL_VALUES // m, MIN_SAMPLES, N_SAMPLES))
    first, second = (dense(expansion.vectors[rng.integers(m, size=n)]).astype(np.float64) for _ in range(2))
    shares = rng.random((n, 1))
    shares[::2] = 0.0
    rows: NDArray[np.float64] = first + shares * (second - first)
    if expansion.kernel == "chi2":
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
            found, start = np.zeros((len(rows), step.n_in)), 0
            for taken, part in zip(step.columns, step.steps, strict=True):
                block = rows[:, start : start + (taken.size if part is None else part.n_out)]
                found[:, taken] = block if part is None else _preimages(part, block)
                start += block.shape[1]
            return found
        case Impute():
            return rows[:, : step.n_in]
        case Encode():
            categories, start = [], 0
            for table in step.tables:
                block = rows[:, start : start + table.numbers.shape[1]]
                labels = np.append(table.categories.astype(np.float64), np.nan)
                categories.append(labels[cdist(block, table.numbers).argmin(axis=1)])
                start += block.shape[1]
            return np.stack(categories, axis=1)
    # Clipped and normalised samples are mapped to themselves.
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
        return (np.where(is_gap(rows), np.nan, rows) if rows.dtype == object else rows).astype(dtype)


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


def output_spread(spec: OutputSpec, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The size of each output's differences that matter.

    The standard deviation of predictions; the root mean square of constant predictions and of outputs whose
    sign or order is a label.
    """
    size: NDArray[np.float64] = np.sqrt((outputs**2).mean(axis=0))
    if spec.kind in ("classes", "inside"):
        return size
    deviation: NDArray[np.float64] = outputs.std(axis=0)
    return np.where(deviation > CONSTANT * size, deviation, size)


def check_rounding(
    spec: OutputSpec, outputs: NDArray[np.float64], computed: NDArray[Any], dtype: str
) -> None:
    """Refuse an export whose outputs differ too much from the model's.

    Parameters
    ----------
    spec : OutputSpec
        The model.
    outputs : ndarray of shape (n_samples, n_outputs)
        The model's, in double precision.
    computed : ndarray of shape (n_samples, n_outputs)
        The export's.
    dtype : {"float32", "float64", "int8"}
        The numbers of the export.

    Raises
    ------
    ValueError
        If the root mean square error of an output exceeds its spread times ``MAX_ERROR[dtype]``.
    """
    with np.errstate(all="ignore"):
        error = np.sqrt(((computed - outputs) ** 2).mean(axis=0))
        allowed = MAX_ERROR[dtype] * output_spread(spec, outputs)
        if (error <= allowed).all():
            return
        worst = int(np.nanargmax(np.where(error <= allowed, -1.0, error / allowed)))
        share = MAX_ERROR[dtype] * error[worst] / allowed[worst]
    raise ValueError(
        f"dtype={dtype!r}: its rounding changes output {worst} by {100.0 * share:.3g} % of its spread, where "
        f"{100.0 * MAX_ERROR[dtype]:g} % is the maximum: use dtype='float64'"
    )
