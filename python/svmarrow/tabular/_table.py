"""The columns of a table: numbers, categories and gaps, and their encoding as numbers."""

from __future__ import annotations

import datetime as dt
import numbers
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.array_types import TIME_REMEDY, column_text, is_missing
from svmarrow._support.saving import savable
from svmarrow.models.categories import text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Columns", "check_labels", "columns_of", "encoder", "matrix_of", "sources_of"]

#: Maximum number of columns that a category becomes; rare values share the last.
MAX_CATEGORIES = 30


@savable
@dataclass(frozen=True, eq=False)
class Columns:
    """The kinds of the columns of a table.

    Parameters
    ----------
    is_category : ndarray of bool of shape (n_features,)
        Columns of categories.
    is_text : ndarray of bool of shape (n_features,)
        Columns of categories whose values are taken as text.
    """

    is_category: NDArray[np.bool_]
    is_text: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.is_category.ndim != 1 or self.is_text.shape != self.is_category.shape:
            raise ValueError("is_category and is_text must have one value for each feature")


#: What is neither a category nor a number.
_CONTAINERS = (dict, list, set, tuple, np.ndarray)
#: Types of numbers; `Decimal` is not a `numbers.Real`.
_NUMBERS = (numbers.Real, Decimal)
#: Beginnings of the names of column types that hold numbers even if all values are missing.
_NUMBER_TYPES = ("float", "int", "uint", "bool", "double", "decimal")
_TIMES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)


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
    types = [str(dtype) for dtype in X.dtypes] if hasattr(X, "dtypes") and hasattr(X, "columns") else [""] * d
    is_category, is_text = np.zeros(d, dtype=bool), np.zeros(d, dtype=bool)
    chosen = _chosen(X, given, d)
    for j in range(d):
        is_number = matrix.dtype.kind in "fiub" or all(
            isinstance(value, _NUMBERS) or is_missing(value) for value in matrix[:, j]
        )
        if is_number and matrix.dtype.kind == "O" and not types[j].lower().startswith(_NUMBER_TYPES):
            # A column without a value may have any at prediction, where it counts for nothing.
            is_number = not all(map(is_missing, matrix[:, j]))
        is_declared = types[j] == "category" or j in chosen
        if not is_number:
            place = column_text(X, j)
            is_text_array = matrix.dtype.kind in "US"
            _check_text(matrix[:, j], place, is_declared=is_declared, is_text_array=is_text_array)
        is_category[j] = not is_number or is_declared
        is_text[j] = not is_number
    return Columns(is_category, is_text)


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
            f"X holds dates or times ({type(times[0]).__name__}) in {place}: {TIME_REMEDY}; or name the "
            "column in categories"
        )
    # NumPy makes an array of text from rows with text and numbers.
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


def encoder(matrix: NDArray[Any], columns: Columns) -> Any:
    """Returns the fitted transformer from such a matrix to numbers without gaps; gaps become columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    gaps = np.array([all(is_missing(value) for value in matrix[:, j]) for j in range(matrix.shape[1])])
    plain = np.flatnonzero(~columns.is_category & ~gaps)
    kinds = np.flatnonzero(columns.is_category & ~gaps)
    if not plain.size and not kinds.size:
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
    with np.errstate(over="ignore", invalid="ignore"):
        fitted = ColumnTransformer(parts, sparse_threshold=0.0).fit(matrix)
    if plain.size:
        imputer, scaler = fitted.named_transformers_["numbers"]
        medians = np.asarray(imputer.statistics_, dtype=np.float64)
        if not (np.isfinite(medians).all() and np.isfinite(scaler.min_).all()):
            raise ValueError("X has values whose medians or ranges are beyond double precision: scale X")
    return fitted


def sources_of(fitted: Any) -> NDArray[np.int64]:
    """Returns the column of the table for each encoded column."""
    sources: list[int] = []
    for name, part, taken in fitted.transformers_:
        if name == "numbers":
            sources += list(taken)
            sources += [taken[j] for j in part[0].indicator_.features_]
        elif name == "categories":
            names = part.get_feature_names_out([str(j) for j in range(len(taken))])
            counts = np.array([int(str(text).split("_", 1)[0]) for text in names])
            sources += [taken[j] for j in counts]
    return np.array(sources, dtype=np.int64)
