"""Steps from the samples as given to those that the kernel takes: scaling, projections, gaps, categories.

A pipeline that ends in a kernel machine is that machine behind a `Step`: numbers alone, so that it is stored
in a model file and exported like everything else of the model. `svmarrow.as_expansion` makes steps of
scikit-learn's transformers, and neighboring affine maps are folded into one unless that loses digits; where
all of them are affine, the ``preparation`` of the model is one `Affine`.

| step | rows become |
|---|---|
| `Affine` | ``((x - centre) / scale) @ matrix + offset`` |
| `Clip` | numbers between bounds |
| `Normalize` | rows of length 1 |
| `piecewise.PiecewiseLinear` | columns by piecewise linear functions |
| `categories.Impute` | rows without gaps |
| `categories.Encode` | numbers for categories, by one table a column |
| `categories.Dates` | days and positions in cycles for dates |
| `Parts` | columns of several steps side by side, each of some of the columns |
| `Chain` | one step after the other |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from svmarrow._support.parameters import check_array_types, missing_values, with_days
from svmarrow._support.rows import as_rows, product
from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray


__all__ = [
    "Affine",
    "Chain",
    "Clip",
    "Normalize",
    "Parts",
    "PiecewiseLinear",
    "Step",
    "chain",
    "check_column_numbers",
    "check_length",
    "numbers",
]

#: Largest rounding of a folded center, relative to the width of the column.
MAX_ROUNDING = 1e-9

NORMS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "l1": lambda X: np.abs(X).sum(axis=1),
    "l2": lambda X: np.sqrt((X * X).sum(axis=1)),
    "max": lambda X: np.abs(X).max(axis=1, initial=0.0),
}


class Step(ABC):
    """A map from samples to samples; immutable."""

    n_in: int
    n_out: int

    @abstractmethod
    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        """Rows (n, n_out) of a matrix (n, n_in) of numbers, or of objects where there are categories.

        Errors name a column by its element of `names`.
        """

    def _are_dates(self) -> NDArray[np.bool_]:
        """Which columns (n_in,) may hold dates."""
        return np.full(self.n_in, self.dates)

    def _names_out(self, names: Sequence[Any]) -> Sequence[Any]:
        """Names of the columns after the step, for errors of the next one."""
        return names if self.n_out == self.n_in else range(self.n_out)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_in} columns to {self.n_out}>"

    #: Whether columns may hold strings.
    mixed: bool = False
    #: Whether columns may have gaps.
    gaps: bool = False
    #: Whether columns may hold dates.
    dates: bool = False

    def with_limits_of(self, dtype: Literal["float32", "float64"]) -> Step:
        """The step with limits that depend on the precision of the samples as for samples of a precision."""
        del dtype
        return self

    def rows(
        self,
        X: ArrayLike,
        names: ArrayLike | None = None,
        *,
        needs_double: Callable[[], bool] = lambda: False,
    ) -> Any:
        """The samples that the kernel sees, as the extension module takes them.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, n_in)
            Samples as the pipeline took them.
        names : array-like of shape (n_in,), default=None
            Names of the columns in errors; None takes those of a data frame, or numbers.
        needs_double : callable, default=lambda: False
            Whether samples in single precision are prepared in double precision, so that nothing more is
            rounded. It is called only where there are such samples.

        Returns
        -------
        {ndarray, CSR matrix} of shape (n, n_out)
            float64, or float32 where X is, all columns are numbers and `needs_double()` is False.

        Raises
        ------
        ValueError
            For a wrong number of features, a category that is not known, a gap that nothing fills.
        """
        check_array_types(takes_dates=self.dates, X=X)
        matrix: Any = with_days(X, self._are_dates()) if self.dates else X
        names = getattr(X, "columns", None) if names is None else names
        if not sparse.issparse(X):
            # Numbers beside strings are an array of objects; columns that nothing reads may hold anything.
            matrix = np.asarray(matrix, dtype=object if self.mixed else None)
            if matrix.dtype.kind == "M":
                matrix = matrix.astype("M8[us]").astype(object)
            if matrix.dtype == object:
                # The missing values of nullable columns are no numbers.
                matrix = np.where(missing_values(matrix), np.nan, matrix)
        if matrix.dtype.kind in "OUS":
            if matrix.ndim != 2:
                raise ValueError(
                    f"X has shape {matrix.shape}: it must have two dimensions, (n_samples, n_features)"
                )
        else:
            matrix = check_array(
                matrix,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan" if self.gaps else True,
            )
        if matrix.shape[1] != self.n_in:
            raise ValueError(f"X has {matrix.shape[1]} columns, the model has {self.n_in}")
        places = range(self.n_in) if names is None else list(np.asarray(names, dtype=object))
        if matrix.dtype == np.float32 and needs_double():
            return as_rows(self.with_limits_of("float32")._apply(matrix.astype(np.float64), places))
        return as_rows(self._apply(matrix, places))


def numbers(X: Any, names: Sequence[Any]) -> Any:
    """A matrix of numbers, float64 unless it is single precision."""
    if X.dtype == np.float32 or X.dtype == np.float64:
        return X
    if X.dtype.kind not in "OUS":
        return X.astype(np.float64)
    values = np.empty(X.shape)
    for j, name in enumerate(names):
        try:
            values[:, j] = X[:, j]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X has a value that is not a number in column {name!r}, which the model takes as numbers: "
                f"{error}"
            ) from None
        if np.isinf(values[:, j]).any():
            raise ValueError(f"X contains infinity in column {name!r}")
    return values


def check_length(name: str, array: NDArray[Any] | None, size: int) -> None:
    """Refuse an array that is not `size` finite numbers; None is allowed."""
    if array is not None and (array.shape != (size,) or not np.isfinite(array).all()):
        raise ValueError(f"{name} has shape {array.shape}: it must be ({size},), all finite")


@savable("affine/1")
@dataclass(frozen=True, eq=False, repr=False)
class Affine(Step):
    """``((x - centre) / scale) @ matrix + offset``.

    Parameters
    ----------
    centre, scale : ndarray of float64 of shape (n_in,)
        One number a column; no scale is 0.
    matrix : ndarray of float64 of shape (n_in, n_out), default=None
        None is the unit matrix.
    offset : ndarray of float64 of shape (n_out,), default=None
        Only with a matrix; None is 0.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    matrix: NDArray[np.float64] | None = None
    offset: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        check_length("centre", self.centre, self.centre.size)
        check_length("scale", self.scale, self.centre.size)
        if not self.scale.all():
            raise ValueError("scale holds 0: a column cannot be divided by it")
        if self.matrix is None:
            if self.offset is not None:
                raise ValueError("offset without matrix: it belongs into centre")
            return
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.centre.size or not self.matrix.shape[1]:
            raise ValueError(f"matrix has shape {self.matrix.shape} for {self.centre.size} columns")
        if not np.isfinite(self.matrix).all():
            raise ValueError("matrix must be finite")
        check_length("offset", self.offset, self.matrix.shape[1])

    @property
    def n_in(self) -> int:  # type: ignore[override]  # read-only here
        """Columns before."""
        return int(self.centre.size)

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in if self.matrix is None else int(self.matrix.shape[1])

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = numbers(X, names)
        if sparse.issparse(X):
            scaled = X.astype(np.float64).multiply(1.0 / self.scale).tocsr()
            if self.matrix is None and not self.centre.any():
                return scaled.astype(X.dtype)
            if self.matrix is None:
                raise ValueError("sparse rows cannot be centered: pass a dense X")
            shift = product(-self.centre / self.scale, self.matrix)
            mapped = product(scaled, self.matrix) + shift
        else:
            mapped = (X - self.centre) / self.scale
            if self.matrix is not None:
                mapped = product(mapped, self.matrix)
        if self.offset is not None:
            mapped = mapped + self.offset
        return mapped.astype(X.dtype, copy=False)

    def then(self, after: Affine) -> Affine | None:
        """Both maps as one; None where that loses digits.

        A center far from zero cannot take up one that is small against it: standardized twice, a column of
        width 1e-6 about 1e6 would be off by 1e-4 of its width.
        """
        if self.matrix is None:
            rounding = np.finfo(float).eps * np.abs(self.centre)
            if (
                after.centre.astype(bool) & (rounding > MAX_ROUNDING * np.abs(self.scale * after.scale))
            ).any():
                return None
            centre = self.centre + self.scale * after.centre
            return Affine(centre, self.scale * after.scale, after.matrix, after.offset)
        offset = np.zeros(self.n_out) if self.offset is None else self.offset
        matrix, offset = self.matrix / after.scale, (offset - after.centre) / after.scale
        if after.matrix is not None:
            matrix, offset = product(matrix, after.matrix), product(offset, after.matrix)
        return Affine(
            self.centre, self.scale, matrix, offset if after.offset is None else offset + after.offset
        )


@savable("clipping/1")
@dataclass(frozen=True, eq=False, repr=False)
class Clip(Step):
    """Numbers between `low` and `high`.

    Parameters
    ----------
    n_in : int
        Columns.
    low, high : float
        The bounds.
    """

    n_in: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low={self.low} is not below high={self.high}")

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        return np.clip(numbers(X, names), self.low, self.high)


@savable("normalization/1")
@dataclass(frozen=True, eq=False, repr=False)
class Normalize(Step):
    """Samples divided by their own length; dense samples that are shorter than a limit are unchanged.

    Parameters
    ----------
    n_in : int
        Columns.
    norm : {"l1", "l2", "max"}
        The norm that is the length.
    dtype : {"float32", "float64"} or None, default=None
        The precision whose roundings are the limit, ten of them, as in scikit-learn. None takes that of the
        samples. In CSR the limit is 0.
    """

    n_in: int
    norm: Literal["l1", "l2", "max"]
    dtype: Literal["float32", "float64"] | None = None

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ValueError(f"norm={self.norm!r} is not one of {', '.join(NORMS)}")
        if self.dtype not in (None, "float32", "float64"):
            raise ValueError(f"dtype={self.dtype!r} is not one of float32, float64, None")

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = numbers(X, names)
        if sparse.issparse(X):
            parts = [NORMS[self.norm](X.data[a:b][None].astype(float))[0] for a, b in _spans(X)]
            lengths = np.array(parts)
            lengths[lengths == 0] = 1.0
            return sparse.csr_array(
                (X.data / np.repeat(lengths, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape
            ).astype(X.dtype)
        lengths = NORMS[self.norm](X.astype(np.float64))
        is_short = lengths < self.shortest(X.dtype)
        return (X / np.where(is_short, 1.0, lengths)[:, None]).astype(X.dtype, copy=False)

    def with_limits_of(self, dtype: Literal["float32", "float64"]) -> Normalize:
        """The step with the limit of a precision, unless it already has one."""
        return replace(self, dtype=self.dtype or dtype)

    def shortest(self, dtype: Any) -> float:
        """The smallest length by which a dense sample of a precision is divided."""
        return 10.0 * float(np.finfo(self.dtype or dtype).eps)


def _spans(X: Any) -> Iterable[tuple[int, int]]:
    return zip(X.indptr[:-1], X.indptr[1:], strict=True)


def check_column_numbers(name: str, places: Any, size: int) -> None:
    """Refuse an array that does not hold column numbers; None is allowed."""
    if places is None:
        return
    if places.ndim != 1 or places.dtype.kind != "i" or (places < 0).any() or (places >= size).any():
        raise ValueError(f"{name} must be numbers of columns, from 0 to {size - 1}")


@savable("parts/1")
@dataclass(frozen=True, eq=False, repr=False)
class Parts(Step):
    """Columns of several steps side by side.

    Parameters
    ----------
    n_in : int
        Columns before.
    columns : tuple of ndarray of int64
        Which columns each step takes, in its order.
    steps : tuple of Step or None
        The steps; None hands its columns on.
    """

    n_in: int
    columns: tuple[NDArray[np.int64], ...]
    steps: tuple[Step | None, ...]

    def __post_init__(self) -> None:
        if not self.steps or len(self.steps) != len(self.columns):
            raise ValueError("columns and steps must have the same length, at least one")
        for taken, step in zip(self.columns, self.steps, strict=True):
            check_column_numbers("columns", taken, self.n_in)
            if step is not None and step.n_in != taken.size:
                raise ValueError(f"a step does not take the {taken.size} columns that it is given")

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        """True if some columns hold strings."""
        return any(step is not None and step.mixed for step in self.steps)

    @property
    def gaps(self) -> bool:  # type: ignore[override]
        """True if columns may have gaps."""
        return any(step is not None and step.gaps for step in self.steps)

    @property
    def dates(self) -> bool:  # type: ignore[override]
        """True if columns may hold dates."""
        return any(step is not None and step.dates for step in self.steps)

    def _are_dates(self) -> NDArray[np.bool_]:
        found = np.zeros(self.n_in, dtype=bool)
        for taken, step in zip(self.columns, self.steps, strict=True):
            if step is not None:
                found[taken] |= step._are_dates()
        return found

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        pairs = zip(self.columns, self.steps, strict=True)
        return sum(int(taken.size) if step is None else step.n_out for taken, step in pairs)

    def _names_out(self, names: Sequence[Any]) -> Sequence[Any]:
        columns: list[Any] = []
        for taken, step in zip(self.columns, self.steps, strict=True):
            places = [names[j] for j in taken]
            columns += places if step is None else step._names_out(places)
        return columns

    def with_limits_of(self, dtype: Literal["float32", "float64"]) -> Parts:
        """Each step with the limits of a precision."""
        steps = tuple(None if step is None else step.with_limits_of(dtype) for step in self.steps)
        return replace(self, steps=steps)

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        blocks = []
        for taken, step in zip(self.columns, self.steps, strict=True):
            block, places = X[:, taken], [names[j] for j in taken]
            blocks.append(numbers(block, places) if step is None else step._apply(block, places))
        if any(sparse.issparse(block) for block in blocks):
            return sparse.csr_array(
                sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
            )
        return np.hstack(blocks)


@savable("chain/1")
@dataclass(frozen=True, eq=False, repr=False)
class Chain(Step):
    """One step after the other; `chain` makes it.

    Parameters
    ----------
    steps : tuple of Step
        At least one, each taking the columns that the one before gives.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps or not all(isinstance(step, Step) for step in self.steps):
            raise ValueError("steps must be at least one step")
        for before, after in zip(self.steps, self.steps[1:], strict=False):
            if before.n_out != after.n_in:
                raise ValueError(f"a step gives {before.n_out} columns, the next takes {after.n_in}")

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        """True if some columns hold strings."""
        return self.steps[0].mixed

    @property
    def gaps(self) -> bool:  # type: ignore[override]
        """True if columns may have gaps."""
        # Scaling keeps gaps for a later step.
        return any(step.gaps for step in self.steps)

    @property
    def dates(self) -> bool:  # type: ignore[override]
        """True if columns may hold dates."""
        return self.steps[0].dates

    def _are_dates(self) -> NDArray[np.bool_]:
        return self.steps[0]._are_dates()

    @property
    def n_in(self) -> int:  # type: ignore[override]
        """Columns before."""
        return self.steps[0].n_in

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.steps[-1].n_out

    def with_limits_of(self, dtype: Literal["float32", "float64"]) -> Chain:
        """Each step with the limits of a precision."""
        return replace(self, steps=tuple(step.with_limits_of(dtype) for step in self.steps))

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        for step in self.steps:
            X, names = step._apply(X, names), step._names_out(names)
        return X

    def _names_out(self, names: Sequence[Any]) -> Sequence[Any]:
        return reduce(lambda columns, step: step._names_out(columns), self.steps, names)


def chain(steps: Iterable[Step | None]) -> Step | None:
    """Steps as one, neighboring affine maps folded unless that loses digits; None without a step."""
    found: list[Step] = []
    for step in steps:
        for one in step.steps if isinstance(step, Chain) else (step,):
            if isinstance(one, Affine) and found and isinstance(found[-1], Affine):
                folded = found[-1].then(one)
                found[-1:] = [found[-1], one] if folded is None else [folded]
            elif one is not None:
                found.append(one)
    if len(found) < 2:
        return found[0] if found else None
    return Chain(tuple(found))


# --- piecewise linear functions of columns as a step ---


@savable("piecewise-linear/1")
@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear(Step):
    """Each column by a function that is linear between its knots and constant outside of them.

    Parameters
    ----------
    knots, values : ndarray of float64 of shape (n_in, n_knots)
        Knots, which do not decrease, and the values there; at least two a column. A column with fewer knots
        repeats its last.
    """

    knots: NDArray[np.float64]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.knots.ndim != 2 or self.knots.shape[0] < 1 or self.knots.shape[1] < 2:
            raise ValueError(f"knots have shape {self.knots.shape}: each column needs at least two")
        if self.values.shape != self.knots.shape:
            raise ValueError(f"values have shape {self.values.shape}, knots {self.knots.shape}")
        check_length("knots", self.knots.ravel(), self.knots.size)
        check_length("values", self.values.ravel(), self.values.size)
        if (np.diff(self.knots) < 0.0).any():
            raise ValueError("knots must not decrease")

    @property
    def n_in(self) -> int:  # type: ignore[override]  # read-only here
        """Columns before."""
        return int(self.knots.shape[0])

    @property
    def n_out(self) -> int:  # type: ignore[override]
        """Columns after."""
        return self.n_in

    @property
    def slopes(self) -> NDArray[np.float64]:
        """Slopes between the knots, (n_in, n_knots - 1); 0 between equal knots."""
        widths = np.diff(self.knots)
        steps = np.diff(self.values)
        return np.divide(steps, widths, out=np.zeros_like(steps), where=widths > 0.0)

    def _apply(self, X: Any, names: Sequence[Any]) -> Any:
        X = numbers(X, names)
        if sparse.issparse(X):
            raise ValueError("sparse rows have no piecewise linear functions: pass a dense X")
        pairs = zip(self.knots, self.values, strict=True)
        columns = [np.interp(X[:, j], knots, values) for j, (knots, values) in enumerate(pairs)]
        return np.stack(columns, axis=1).astype(X.dtype, copy=False)
