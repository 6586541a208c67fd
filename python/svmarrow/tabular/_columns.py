"""The columns of a table as numbers.

Numbers, categories, dates and gaps become numbers without gaps. Training samples get the mean targets of the
other folds, so that leave-one-out errors stay honest.
"""

from __future__ import annotations

import datetime as dt
import numbers
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from svmarrow._support.parameters import TIME_REMEDY, column_text, is_date, is_missing, warn_caller
from svmarrow._support.schemas import savable
from svmarrow.models.categories import Dates, Encode, Table, days_of, text_of
from svmarrow.preprocessing._shapes import deal_folds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.models.preparation import Step


__all__ = [
    "Columns",
    "check_labels",
    "columns_of",
    "encoder",
    "matrix_of",
    "sources_of",
]


#: Maximum number of columns that a category becomes; rare values share the last.
MAX_CATEGORIES = 30
#: Share of the values of a column of text that are numbers from which it looks like a column of numbers.
MIN_NUMBERS = 0.8
#: Maximum number of classes for which categories with more values have mean targets too.
MAX_CLASSES = 10
#: Number of folds of the mean targets of training samples.
N_FOLDS = 5
#: Cycles of dates in days: the year, the week and the day.
YEAR, WEEK, DAY = 365.2425, 7.0, 1.0
#: Text of a date as in ISO 8601, with or without a time.
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")


@savable("column-kinds/1")
@dataclass(frozen=True, eq=False)
class Columns:
    """The kinds of the columns of a table.

    Parameters
    ----------
    is_category : ndarray of bool of shape (n_features,)
        Columns of categories.
    is_text : ndarray of bool of shape (n_features,)
        Columns of categories whose values are taken as text.
    is_date : ndarray of bool of shape (n_features,)
        Columns of dates.
    """

    is_category: NDArray[np.bool_]
    is_text: NDArray[np.bool_]
    is_date: NDArray[np.bool_]

    def __post_init__(self) -> None:
        shape = (self.is_category.size,)
        if not self.is_category.shape == self.is_text.shape == self.is_date.shape == shape:
            raise ValueError("is_category, is_text and is_date must have one value for each feature")


#: What is neither a category nor a number.
_CONTAINERS = (dict, list, set, tuple, np.ndarray)
#: Types of numbers; `Decimal` is not a `numbers.Real`.
_NUMBERS = (numbers.Real, Decimal)
#: Beginnings of the names of column types that hold numbers even if all values are missing.
_NUMBER_TYPES = ("float", "int", "uint", "bool", "double", "decimal")
_DATES = (dt.date, np.datetime64)
_TIMES = (*_DATES, dt.time, dt.timedelta, np.timedelta64)


def check_labels(y: Any) -> None:
    """Raises an error for labels that are None, NaN or NA."""
    for number, value in enumerate(np.asarray(y, dtype=object).ravel()):
        if is_missing(value):
            raise ValueError(
                f"y contains {value!r} at sample {number}: a label must not be missing (NaN); leave out the "
                "samples without one"
            )


def columns_of(X: Any, matrix: NDArray[Any], given: Any) -> Columns:
    """Returns the kinds of the columns of a training table.

    ``X`` is the table as it was passed, whose types of columns count, ``matrix`` its values, and ``given``
    names or numbers of columns that are categories whatever their type, or None.
    """
    d = matrix.shape[1]
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "columns") else [""] * d
    types = [str(dtype) for dtype in dtypes]
    is_category, is_text, are_dates = np.zeros((3, d), dtype=bool)
    chosen = _chosen(X, given, d)
    for j in range(d):
        is_number = matrix.dtype.kind in "fiub" or all(
            isinstance(value, _NUMBERS) or is_missing(value) for value in matrix[:, j]
        )
        if is_number and matrix.dtype.kind == "O" and not types[j].lower().startswith(_NUMBER_TYPES):
            # A column without a value may have any at prediction, where it counts for nothing.
            is_number = not all(map(is_missing, matrix[:, j]))
        is_declared = types[j] == "category" or j in chosen
        has_dates = is_date(dtypes[j]) or (not is_number and _are_dates(matrix[:, j]))
        are_dates[j] = has_dates and not is_declared
        if are_dates[j]:
            continue
        if not is_number:
            place = column_text(X, j)
            is_text_array = matrix.dtype.kind in "US"
            _check_text(matrix[:, j], place, is_declared=is_declared, is_text_array=is_text_array)
        is_category[j] = not is_number or is_declared
        is_text[j] = not is_number
    return Columns(is_category, is_text, are_dates)


def _are_dates(column: NDArray[Any]) -> bool:
    """Returns whether all values are dates, or all are texts of dates, but for gaps."""
    values = [value for value in column.tolist() if not is_missing(value)]
    if all(isinstance(value, _DATES) for value in values):
        return bool(values)
    return all(isinstance(value, str) and _ISO_DATE.fullmatch(value) for value in values)


def _check_text(column: NDArray[Any], place: str, *, is_declared: bool, is_text_array: bool) -> None:
    """Raises an error for a column of objects or text that is hardly meant as a category."""
    wrong = [value for value in column if isinstance(value, _CONTAINERS)]
    if wrong:
        raise TypeError(f"X holds {wrong[0]!r}: its argument must be a string or a number")
    if is_declared:
        return
    times = [value for value in column if isinstance(value, _TIMES)]
    if times:
        raise TypeError(
            f"X holds times ({type(times[0]).__name__}), or dates beside other values, in {place}: "
            f"{TIME_REMEDY}; or name the column in categories"
        )
    # NumPy makes an array of text from rows with text and numbers.
    texts = {value for value in column.tolist() if isinstance(value, str)}
    n_numbers = sum(map(_is_number_as_text, texts))
    if not is_text_array and n_numbers > max(MAX_CATEGORIES, MIN_NUMBERS * len(texts)):
        warn_caller(
            f"X has numbers as text in {place} ({n_numbers} of {len(texts)} different values), which are "
            'taken as categories: convert them (pandas.to_numeric(column, errors="coerce")), or name the '
            "column in categories",
            UserWarning,
        )
    if is_text_array and all(map(_is_number_as_text, column)):
        raise ValueError(
            f"X is an array of text with numbers in {place}: pass a DataFrame or an array of objects, or "
            "name the column in categories"
        )


def _is_number_as_text(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _chosen(X: Any, given: Any, d: int) -> set[int]:
    if given is None:
        return set()
    names = list(X.columns) if hasattr(X, "columns") else []
    found = set()
    for item in given:
        if isinstance(item, str) and item in names:
            found.add(names.index(item))
        elif isinstance(item, numbers.Integral) and 0 <= int(item) < d:
            found.add(int(item))
        else:
            raise ValueError(f"categories={given!r} is not allowed: {item!r} is no column of X")
    return found


def matrix_of(X: Any, matrix: NDArray[Any], columns: Columns) -> NDArray[Any]:
    """Returns the values of a table with NaN for gaps: float64, or objects if a column is text."""
    d = matrix.shape[1]
    if matrix.dtype.kind in "fiub" and not columns.is_text.any():
        return np.asarray(matrix, dtype=np.float64)
    parts = []
    for j in range(d):
        if columns.is_date[j]:
            days = days_of(matrix[:, j], list(X.columns)[j] if hasattr(X, "columns") else j)
            parts.append(days if not columns.is_text.any() else days.astype(object))
            continue
        values = [np.nan if is_missing(value) else value for value in matrix[:, j]]
        if columns.is_text[j]:
            parts.append(np.array([v if v is np.nan else text_of(v) for v in values], dtype=object))
            continue
        try:
            column = np.array([float(value) for value in values])
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X has a value that is not a number in {column_text(X, j)}: {error}; correct it, or name "
                "the column in categories"
            ) from None
        if np.isinf(column).any():
            raise ValueError(f"X contains infinity in {column_text(X, j)}")
        parts.append(column if not columns.is_text.any() else column.astype(object))
    return np.stack(parts, axis=1)


class Calendar(TransformerMixin, BaseEstimator):
    """Days, gaps and cycles of columns of dates, given as days since 1970-01-01.

    A column has the cycle of the year if it spans one, that of the week if it spans two, and that of the day
    if it has times.
    """

    def fit(self, X: NDArray[np.float64], y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Chooses the cycles, and the days that fill gaps."""
        X = np.asarray(X, dtype=np.float64)
        columns, periods = [], []
        for j, column in enumerate(X.T):
            days = column[~np.isnan(column)]
            span = np.ptp(days)
            for period, is_there in (
                (YEAR, span >= YEAR),
                (WEEK, span >= 2 * WEEK and np.unique(np.floor(days) % WEEK).size > 1),
                (DAY, span >= 2 * DAY and np.unique(np.round(days % DAY, 6)).size > 1),
            ):
                if is_there:
                    columns.append(j)
                    periods.append(period)
        flags = np.flatnonzero(np.isnan(X).any(axis=0))
        places = np.array(columns, dtype=np.int64)
        self.step_ = Dates(np.nanmedian(X, axis=0), flags, places, np.array(periods, dtype=np.float64))
        return self

    def transform(self, X: Any) -> Any:
        """Returns days, flags of gaps, and sines and cosines."""
        return self.step_.rows(np.asarray(X, dtype=np.float64))

    def _preparation_step(self) -> Step:
        return self.step_


class MeanTargets(TransformerMixin, BaseEstimator):
    """The mean targets of categories, which say in few columns what many categories mean.

    Means of few samples shrink towards that of all, by the ratio of the variance within categories to that
    between them. Training samples get the means of the other folds: their own targets would make the columns
    look better than they are. Samples with the same number in `blocks` are in one fold.
    """

    def __init__(
        self,
        weights: NDArray[np.float64] | None = None,
        seed: int = 0,
        blocks: NDArray[np.intp] | None = None,
    ) -> None:
        self.weights = weights
        self.seed = seed
        self.blocks = blocks

    def fit(self, X: NDArray[Any], y: NDArray[np.float64]) -> Self:
        """Computes the means of all samples."""
        w = np.ones(len(y)) if self.weights is None else self.weights / self.weights.mean()
        self.tables_ = tuple(_mean_table(column, y, w) for column in X.T)
        return self

    def fit_transform(self, X: NDArray[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Computes the means of all samples, and returns for each sample those of the other folds."""
        self.fit(X, y)
        rows = np.empty((len(y), len(self.tables_) * y.shape[1]))
        for held_out in deal_folds(len(y), N_FOLDS, None, np.random.RandomState(self.seed), self.blocks):
            others = np.setdiff1d(np.arange(len(y)), held_out)
            weights = None if self.weights is None else self.weights[others]
            rows[held_out] = MeanTargets(weights).fit(X[others], y[others]).transform(X[held_out])
        return rows

    def transform(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Returns the means of the categories of each column, side by side."""
        rows: NDArray[np.float64] = Encode(self.tables_)._apply(X, range(X.shape[1]))
        return rows

    def _preparation_step(self) -> Step:
        return Encode(self.tables_)


def _mean_table(column: NDArray[Any], y: NDArray[np.float64], w: NDArray[np.float64]) -> Table:
    """Returns the mean targets of the categories of a column, for gaps and for other categories."""
    gaps = np.array([is_missing(value) for value in column], dtype=bool)
    categories, labels = np.unique(column[~gaps], return_inverse=True)
    if all(isinstance(value, numbers.Real) for value in categories.tolist()):
        categories = categories.astype(np.float64)
    k = len(categories)
    place = np.full(len(column), k)
    place[~gaps] = labels
    mean = np.average(y, axis=0, weights=w)
    sizes = np.bincount(place, w, minlength=k + 1)
    sums = np.stack([np.bincount(place, w * target, minlength=k + 1) for target in y.T], axis=1)
    means = np.divide(
        sums, sizes[:, np.newaxis], out=np.tile(mean, (k + 1, 1)), where=sizes[:, np.newaxis] > 0
    )
    # Variances within and between categories, as in an analysis of variance with random effects.
    total, n_there = sizes.sum(), np.count_nonzero(sizes)
    within = (w[:, np.newaxis] * (y - means[place]) ** 2).sum(axis=0) / max(total - n_there, 1.0)
    between = (sizes[:, np.newaxis] * (means - mean) ** 2).sum(axis=0) - (n_there - 1) * within
    between = np.maximum(between / max(total - (sizes**2).sum() / total, 1.0), 0.0)
    share = np.divide(
        sizes[:, np.newaxis] * between,
        sizes[:, np.newaxis] * between + within,
        out=np.zeros_like(means),
        where=sizes[:, np.newaxis] * between > 0.0,
    )
    return Table(categories, mean + share * (means - mean), mean)


def encoder(
    matrix: NDArray[Any],
    columns: Columns,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    seed: int,
    blocks: NDArray[np.intp] | None = None,
) -> tuple[Any, NDArray[np.float64]]:
    """Returns the fitted transformer from such a matrix to numbers without gaps, and the training rows.

    Gaps become columns. `targets` (n, q), `weights` and `blocks` are for the mean targets of categories with
    many values.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    gaps = np.array([all(is_missing(value) for value in matrix[:, j]) for j in range(matrix.shape[1])])
    plain = np.flatnonzero(~columns.is_category & ~columns.is_date & ~gaps)
    kinds = np.flatnonzero(columns.is_category & ~gaps)
    dates = np.flatnonzero(columns.is_date & ~gaps)
    if not plain.size and not kinds.size and not dates.size:
        raise ValueError("X holds nothing but gaps: at least one column must have a value")
    parts: list[Any] = []
    if plain.size:
        # Outside the training range a smooth function may go anywhere, so numbers end there.
        filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), MinMaxScaler(clip=True))
        parts.append(("numbers", filled, plain.tolist()))
    if kinds.size:
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
        )
        parts.append(("categories", one_hot, kinds.tolist()))
    if dates.size:
        parts.append(("dates", make_pipeline(Calendar(), MinMaxScaler(clip=True)), dates.tolist()))
    many = [j for j in kinds.tolist() if _n_values(matrix[:, j]) > MAX_CATEGORIES]
    if many and targets.shape[1] <= MAX_CLASSES:
        parts.append(("targets", MeanTargets(weights, seed, blocks), many))
    with np.errstate(over="ignore", invalid="ignore"):
        fitted = ColumnTransformer(parts, sparse_threshold=0.0)
        rows = fitted.fit_transform(matrix, targets)
    if plain.size:
        imputer, scaler = fitted.named_transformers_["numbers"]
        medians = np.asarray(imputer.statistics_, dtype=np.float64)
        if not (np.isfinite(medians).all() and np.isfinite(scaler.min_).all()):
            raise ValueError("X has values whose medians or ranges are beyond double precision: scale X")
    return fitted, np.ascontiguousarray(rows, dtype=np.float64)


def _n_values(column: NDArray[Any]) -> int:
    return len({value for value in column.tolist() if not is_missing(value)})


def sources_of(fitted: Any, columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the column of the table for each encoded column, and the number of its group.

    The columns of a category are a group, as are the sine and the cosine of a cycle; others are alone.
    """
    sources: list[int] = []
    groups: list[int] = []
    d = columns.is_category.size
    for name, part, taken in fitted.transformers_:
        if name == "numbers":
            places = [*taken, *(taken[j] for j in part[0].indicator_.features_)]
        elif name == "categories":
            names = part.get_feature_names_out([str(j) for j in range(len(taken))])
            places = [taken[int(str(text).split("_", 1)[0])] for text in names]
        elif name == "dates":
            places = [taken[j] for j in part[0].step_.sources]
        elif name == "targets":
            places = [taken[j] for j, table in enumerate(part.tables_) for _ in range(table.numbers.shape[1])]
        else:
            continue
        alone = d + len(sources) + np.arange(len(places))
        if name == "dates":
            n_cycles = part[0].step_.periods.size
            alone[len(places) - 2 * n_cycles :] = np.repeat(alone[len(places) - 2 * n_cycles :: 2], 2)
        groups += places if name == "categories" else alone.tolist()
        sources += places
    return np.array(sources, dtype=np.int64), np.array(groups, dtype=np.int64)
