"""Dictionaries: kernels around points, user-defined functions, the constant.

A dictionary is a list of parts. A part knows its functions' values on any rows, and what it hands to the
extension module for a fit. Candidates are numbered through all parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.parameters import (
    KERNELS,
    MAX_ITER,
    MAX_TIME,
    RANDOM_STATE,
    THREADS,
    VERBOSE,
    Rule,
    boolean,
    either,
    function,
    integer,
    kernel_rules,
    none,
    one_of,
    real,
    refuse,
)
from svmarrow._support.rows import are_points, cache_bytes, contents, core_rows
from svmarrow._support.schemas import savable
from svmarrow.expansion.kernel_expansion import function_values, prepared

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelFunction


__all__ = [
    "FOR_CLASSES",
    "FOR_NUMBERS",
    "RULES",
    "Constant",
    "Dictionary",
    "GivenFunctions",
    "KernelPart",
    "Loss",
    "Part",
    "bytes_of",
    "chooses_by_training_loss",
    "core_loss",
    "dictionary_bytes",
    "loss_rule",
]


# --- memory estimates of a pursuit ---


def dictionary_bytes(cache_size: float | None) -> int:
    """Returns the memory limit for the values of a dictionary.

    Above the default limit each step evaluates a sample of the functions: on 43,500 rows of the shuttle data
    that takes 3 seconds where 7.6 GB of values take 50, for the same accuracy.
    """
    if cache_size is None:
        return min(cache_bytes(None), _core.DEFAULT_DICTIONARY_BYTES)
    return int(min(float(cache_size) * 2.0**20, 2.0**62))


def bytes_of(
    functions: int, rows: int, size: int, outputs: int, *, single: bool, sample: int | None, most: int
) -> int:
    """Returns the bytes of a pursuit: cached function values, the basis, residuals."""
    values = functions * rows * (4 if single else 8)
    if sample is None and values <= most:
        # Eight columns for each choice, of which some are undone.
        columns = 8 * rows * min(functions, 16 * size)
        dictionary_bytes = values + min(columns, _core.MAX_CACHED_COLUMN_BYTES)
    else:
        dictionary_bytes = 8 * rows * (sample or _core.DEFAULT_SAMPLE_SIZE)
    return (
        dictionary_bytes + 8 * rows * (min(size, functions) + 4 * outputs + 8) + 8 * functions * (outputs + 8)
    )


# --- losses: names of the extension module's losses, and user-defined objects ---


FOR_NUMBERS = ("squared_error", "huber")
FOR_CLASSES = (
    "squared_error",
    "squared_tanh",
    "logistic",
    "exponential",
    "one_minus_tanh",
    "squared_hinge",
    "soft_margin",
)

#: scikit-learn's names of losses.
SYNONYMS = {"log_loss": "logistic", "hinge": "soft_margin"}


@runtime_checkable
class Loss(Protocol):
    """Interface of a user-defined loss: three methods on vectors with one value per sample.

    `y` are targets (-1 and 1 for classes), `f` outputs; with several outputs each is asked for by itself.
    """

    def value(self, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns losses (n,)."""

    def gradient(self, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns derivatives with respect to f (n,)."""

    def hessian(self, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns second derivatives with respect to f (n,)."""


def loss_rule(names: tuple[str, ...]) -> Rule:
    """Returns the rule of a name or an object with the three methods."""
    synonyms = {synonym: name for synonym, name in SYNONYMS.items() if name in names}
    name = one_of(*names, *synonyms)
    return Rule(
        f"{name.text}, or an object with the methods value, gradient and hessian",
        lambda value: name.holds(value) or (not isinstance(value, (str, type)) and isinstance(value, Loss)),
    )


def core_loss(loss: Any, delta: float) -> tuple[str, float] | Callable[..., Any]:
    """Returns the form of the extension module."""
    if isinstance(loss, str):
        return (SYNONYMS.get(loss, loss), delta)
    methods = (("value", loss.value), ("gradient", loss.gradient), ("hessian", loss.hessian))

    def call(derivative: int, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        name, method = methods[derivative]
        values = np.ascontiguousarray(method(y, f), dtype=np.float64)
        if values.shape != y.shape:
            raise ValueError(f"{name} of the loss returned shape {values.shape}: it must be {y.shape}")
        if np.isnan(values).any():
            raise ValueError(f"{name} of the loss returned NaN")
        return values

    return call


# --- rules of the shared parameters ---


_ONE_KERNEL = either(one_of(*KERNELS), function)
_ONE_GAMMA = either(one_of("scale", "auto"), real(least=0.0))


def _several(rule: Rule, what: str) -> Rule:
    def holds(value: object) -> bool:
        return isinstance(value, (list, tuple)) and bool(value) and all(rule.holds(v) for v in value)

    return Rule(f"a list of {what}", holds)


#: Rules of the parameters that both have.
RULES: dict[str, Rule] = {
    **kernel_rules(),
    "n_vectors": integer(least=1),
    "candidates": either(
        none,
        integer(least=1),
        real(above=0.0, most=1.0),
        Rule("an array of points, (m, n_features)", are_points),
    ),
    "variant": one_of("auto", "prefit", "backfit", "basic"),
    "max_iter": MAX_ITER,
    "backfit_every": integer(least=1),
    "kernel": either(_ONE_KERNEL, _several(_ONE_KERNEL, "such kernels")),
    "gamma": either(_ONE_GAMMA, _several(_ONE_GAMMA, "such values")),
    "fit_intercept": either(boolean, one_of("candidate")),
    "functions": either(none, Rule("a function of rows", callable)),
    "tol": real(least=0.0, most=0.99),
    "early_stopping": either(boolean, one_of("gcv")),
    "validation_fraction": real(above=0.0, below=1.0),
    "cv": either(
        none,
        integer(least=2),
        Rule(
            "a splitter or pairs of rows",
            lambda v: (
                not isinstance(v, (str, int, float)) and (hasattr(v, "split") or hasattr(v, "__iter__"))
            ),
        ),
    ),
    "n_iter_no_change": either(none, integer(least=1)),
    "precision": one_of("single", "double"),
    "cache_size": either(none, real(above=0.0)),
    "sample_size": either(none, integer(least=1)),
    "max_time": MAX_TIME,
    "random_state": RANDOM_STATE,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}


def chooses_by_training_loss(model: Any, weights: NDArray[np.float64] | None, watched: Any) -> bool:
    """Returns whether generalized cross-validation chooses the size; refuses what it is not known for."""
    if model.early_stopping != "gcv":
        return False
    rules = (
        ("loss", "'squared_error'", model.loss == "squared_error"),
        ("variant", "'auto', 'prefit' or 'backfit'", model.variant != "basic"),
        ("cv", "None", model.cv is None),
        ("n_iter_no_change", "None", model.n_iter_no_change is None),
        ("scoring", "'loss'", getattr(model, "scoring", "loss") == "loss"),
    )
    for name, rule, holds in rules:
        if not holds:
            raise refuse(name, getattr(model, name), f"{rule} with early_stopping='gcv'")
    if weights is not None:
        raise ValueError("early_stopping='gcv' takes no weights of samples or classes: use cv")
    if watched is not None:
        raise ValueError("early_stopping='gcv' takes no validation samples: use early_stopping=True")
    return True


#: A kernel: (name or function, gamma, coef0, degree).
Spec = tuple[Any, float, float, int]


@savable("kernel-functions/1")
@dataclass(eq=False, repr=False)
class KernelPart:
    """k(., z) for points z."""

    spec: Spec
    #: Rows, or for the precomputed kernel column numbers (m, 1).
    points: Any
    #: What the points are called: row numbers of the training data, or places in the given points.
    labels: NDArray[np.int64]
    #: Which of the estimator's kernels it is.
    number: int = 0

    @property
    def count(self) -> int:
        """Number of functions."""
        return int(self.points.shape[0])

    def core(self, X: Any, X_val: Any) -> tuple[Any, ...]:
        """Returns the form of the extension module."""
        if callable(self.spec[0]):
            return (
                "function",
                _Columns(self.spec[0], self.points, X, X_val),
                self.count,
                X.shape[0],
                0 if X_val is None else X_val.shape[0],
            )
        watched_rows = None if X_val is None else core_rows(X_val)
        return ("kernel", self.spec, core_rows(self.points), core_rows(X), watched_rows)

    def values(self, X: Any, which: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:
        """Returns values (n_rows, n_functions)."""
        points = self.points[which]
        if callable(self.spec[0]):
            return function_values(self.spec[0], X, points)
        return _core.gram(core_rows(X), core_rows(points), self.spec, n_jobs)


@dataclass(eq=False, repr=False)
class GivenFunctions:
    """User-defined functions, the columns of one call."""

    function: Callable[[Any], Any]
    count: int

    def core(self, X: Any, X_val: Any) -> tuple[Any, ...]:
        """Returns the form of the extension module."""
        watched = np.empty((0, self.count)) if X_val is None else self._columns(X_val)
        return ("columns", self._columns(X), watched)

    def values(self, X: Any, which: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:  # noqa: ARG002
        """Returns values (n_rows, n_functions)."""
        return self._columns(X)[:, which]

    def _columns(self, X: Any) -> NDArray[np.float64]:
        values = columns_of(self.function, X)
        if values.shape[1] != self.count:
            raise ValueError(
                f"functions returned {values.shape[1]} columns, and {self.count} on the training rows"
            )
        return values


@savable("constant-function/1")
@dataclass(eq=False, repr=False)
class Constant:
    """The function that is 1 everywhere."""

    count: int = 1

    def core(self, X: Any, X_val: Any) -> tuple[Any, ...]:
        """Returns the form of the extension module."""
        watched = 0 if X_val is None else X_val.shape[0]
        return ("columns", np.ones((X.shape[0], 1)), np.ones((watched, 1)))

    def values(self, X: Any, which: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:  # noqa: ARG002
        """Returns values (n_rows, n_functions)."""
        return np.ones((X.shape[0], which.size))


Part = KernelPart | GivenFunctions | Constant


@savable("dictionary/1")
class Dictionary:
    """The dictionary with all its parts."""

    _arguments = ("parts",)

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.starts: NDArray[np.int64] = np.cumsum([0, *(part.count for part in parts)]).astype(np.int64)

    @property
    def count(self) -> int:
        """Number of candidates."""
        return int(self.starts[-1])

    def places(self, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the part of each candidate and its index in the part."""
        part = np.searchsorted(self.starts, order, side="right") - 1
        return part, order - self.starts[part]

    def values(self, X: Any, order: NDArray[np.int64], n_jobs: int) -> NDArray[np.float64]:
        """Returns values (n_rows, n_candidates)."""
        part, within = self.places(order)
        out = np.empty((int(X.shape[0]), order.size))
        for number in np.unique(part):
            mine = np.flatnonzero(part == number)
            out[:, mine] = self.parts[number].values(X, within[mine], n_jobs)
        return out

    def only(self, order: NDArray[np.int64]) -> tuple[Dictionary, NDArray[np.int64]]:
        """Returns a dictionary of only these candidates, and their indices in it."""
        part, within = self.places(order)
        parts: list[Part] = []
        numbers = np.empty_like(order)
        start = 0
        for number, whole in enumerate(self.parts):
            mine = np.flatnonzero(part == number)
            if isinstance(whole, KernelPart):
                part_rows = within[mine]
                parts.append(
                    KernelPart(whole.spec, whole.points[part_rows], whole.labels[part_rows], whole.number)
                )
                numbers[mine] = start + np.arange(mine.size)
            else:
                parts.append(whole)
                numbers[mine] = start + within[mine]
            start += parts[-1].count
        return Dictionary(parts), numbers


class _Columns:
    """Callback of the extension module for a user-defined kernel."""

    def __init__(self, function: KernelFunction, points: Any, X: Any, X_val: Any) -> None:
        self.function, self.points = function, prepared(function, points)
        self.rows = (prepared(function, X), None if X_val is None else prepared(function, X_val))

    def __call__(self, which: NDArray[np.int64], validation: bool) -> NDArray[np.float64]:
        values = function_values(self.function, self.rows[int(validation)], self.points[which])
        return np.ascontiguousarray(values.T)


def columns_of(function: Callable[[Any], Any], X: Any) -> NDArray[np.float64]:
    """``function(X)`` as a matrix of finite numbers, one row a row of X."""
    values: Any = function(contents(X))
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    values = values[:, np.newaxis] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[0] != X.shape[0]:
        raise ValueError(
            f"functions returned shape {values.shape} for {X.shape[0]} rows: it must be a row of values each"
        )
    if values.dtype.kind not in "fiub":
        raise ValueError(f"functions returned values of type {values.dtype}: they must be numbers")
    matrix: NDArray[np.float64] = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError("functions returned NaN or infinity: values must be finite")
    return matrix
