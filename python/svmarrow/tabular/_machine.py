"""Least squares behind the learned scales: the kernel, its bandwidth and the penalty by leave-one-out errors.

The choice uses at most `MAX_CHOSEN` samples. The final model is exact up to `MAX_EXACT` samples and low-rank
above.
"""

from __future__ import annotations

import datetime as dt
import numbers
import time
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.parameters import TIME_REMEDY, column_text, is_missing
from svmarrow._support.progress import UNTIMED, Steps
from svmarrow._support.rows import class_weights
from svmarrow._support.schemas import savable
from svmarrow.least_squares._base import is_clear_gain
from svmarrow.least_squares.exact import RLSClassifier, RLSRegressor
from svmarrow.least_squares.low_rank import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.models.categories import text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = [
    "Choice",
    "Columns",
    "check_labels",
    "choose",
    "columns_of",
    "encoder",
    "final_machine",
    "matrix_of",
    "sources_of",
]


# --- the columns of a table: numbers, categories and gaps, and their encoding as numbers ---


#: Maximum number of columns that a category becomes; rare values share the last.
MAX_CATEGORIES = 30


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


#: Maximum number of samples of the choice, of an exact machine, and of vectors of one of low rank.
MAX_CHOSEN, MAX_EXACT, N_VECTORS = 2000, 20_000, 2000
#: Kernels that are tried, the first is the default.
KERNELS = ("rbf", "matern52", "matern32", "matern12")
#: Name of this phase in progress reports.
PHASE = "kernels"
#: Penalties relative to the last one.
ALPHA_FACTORS = (0.25, 1.0, 4.0)
#: Maximum number of steps of the search for the bandwidth, each by a factor of 2.
MAX_BANDWIDTH_STEPS = 8
#: Standard errors of paired leave-one-out losses by which another kernel must win.
STANDARD_ERRORS = 0.5


class Choice(NamedTuple):
    """A fitted machine, its leave-one-out losses (n,), and the seconds of the fit."""

    machine: Any
    losses: NDArray[np.float64]
    seconds: float


def _fit(kind: Any, X: Any, y: Any, weights: Any, about: dict[str, Any], alpha: float) -> Choice:
    alphas = [alpha * factor for factor in ALPHA_FACTORS]
    begin = time.monotonic()
    machine = kind(alphas=alphas, fit_intercept=True, **about).fit(X, y, weights)
    seconds = time.monotonic() - begin
    if kind is RLSRegressor:
        losses = ((machine.loo_prediction_ - y) ** 2).reshape(len(y), -1).mean(axis=1)
    else:
        labels = np.searchsorted(machine.classes_, y)
        k = machine.classes_.size
        codes = np.where(labels[:, np.newaxis] == (np.arange(k) if k > 2 else [1]), 1.0, -1.0)
        losses = ((machine.loo_decision_.reshape(len(y), -1) - codes) ** 2).mean(axis=1)
    return Choice(machine, losses, seconds)


def _error(choice: Choice, weights: Any) -> float:
    return float(np.average(choice.losses, weights=weights))


def choose(
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    *,
    classify: bool,
    gamma: float,
    alpha: float,
    about: dict[str, Any],
    steps: Steps = UNTIMED,
) -> Choice:
    """Returns least squares with the kernel, bandwidth and penalty of the least leave-one-out error.

    If the time of `steps` is over, that is the least error so far. The first fit is always made.
    """
    kind: Any = RLSClassifier if classify else RLSRegressor
    counted = weights
    if classify and about.get("class_weight") is not None:
        classes, labels = np.unique(y, return_inverse=True)
        counted = class_weights(about["class_weight"], weights, classes, labels)[1]
    best: Choice | None = None
    for number, kernel in enumerate(KERNELS):
        if best is not None and not steps.may_begin(PHASE, number, len(KERNELS)):
            break
        # The exponent is 1 at the same distance.
        width = gamma if kernel == "rbf" else float(np.sqrt(gamma))
        first = partial(_fit, kind, X, y, weights, {**about, "kernel": kernel, "gamma": width}, alpha)
        start = first() if best is None else steps.attempt(first)
        if start is None:
            break
        candidate = _search(kind, X, y, weights, {**about, "kernel": kernel}, start, counted, steps)
        if best is None or _wins(best, candidate, counted):
            best = candidate
    assert best is not None
    return best


def _search(
    kind: Any,
    X: Any,
    y: Any,
    weights: Any,
    about: dict[str, Any],
    best: Choice,
    counted: Any,
    steps: Steps,
) -> Choice:
    """Returns the fit with the bandwidth of the least error, starting from a fit."""
    number = KERNELS.index(about["kernel"])
    for factor in (2.0, 0.5):
        start = best
        for _ in range(MAX_BANDWIDTH_STEPS):
            if not steps.may_begin(PHASE, number, len(KERNELS)):
                return best
            width = float(best.machine.gamma) * factor
            settings = {**about, "gamma": width}
            other = steps.attempt(partial(_fit, kind, X, y, weights, settings, best.machine.alpha_))
            if other is None:
                return best
            if _error(other, counted) >= _error(best, counted):
                break
            best = other
        if best is not start:
            break
    return best


def _wins(before: Choice, after: Choice, weights: NDArray[np.float64] | None) -> bool:
    return is_clear_gain(before.losses - after.losses, weights, STANDARD_ERRORS)


def final_machine(
    chosen: Choice, X: Any, y: Any, weights: Any, random_state: Any, steps: Steps = UNTIMED
) -> Any | None:
    """Returns a machine with the chosen settings on all samples; None if the time of `steps` is over first.

    If the remaining time is too short for an exact machine, it is of low rank.
    """
    choice, remaining = chosen.machine, steps.remaining
    # A path of penalties takes the time of about as many fits, which grows with the cube of the samples.
    seconds = chosen.seconds / len(ALPHA_FACTORS) * (X.shape[0] / chosen.losses.size) ** 3
    is_too_long = remaining is not None and seconds > remaining
    names = ("kernel", "gamma", "n_jobs")
    about = {name: getattr(choice, name) for name in names} | {"fit_intercept": True, "alpha": choice.alpha_}
    classify = isinstance(choice, RLSClassifier)
    if classify:
        about["class_weight"] = choice.class_weight
    machine: Any
    if X.shape[0] <= MAX_EXACT and is_too_long:
        steps.was_shortened = True
    if X.shape[0] <= MAX_EXACT and not is_too_long:
        machine = (RLSClassifier if classify else RLSRegressor)(**about)
    else:
        kind: Any = LowRankRLSClassifier if classify else LowRankRLSRegressor
        machine = kind(N_VECTORS, random_state=random_state, **about)
    return steps.attempt(lambda: machine.fit(X, y, weights), reports=True)
