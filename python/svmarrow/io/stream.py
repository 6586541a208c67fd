"""Online learners as an expansion, arrays and JSON, and back: a stream may stop, be saved, and go on.

The rows that a learner remembers are the vectors of the file's expansion. The rest of its state is arrays of
the file and plain numbers of the JSON; which ones there must be, and of which type, is what a learner that
has seen nothing has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import check
from svmarrow.io._json import labels_from_json, labels_to_json, names, typed
from svmarrow.io.machine import plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.perceptron._stream import StreamClassifier

    Arrays: TypeAlias = dict[str, NDArray[Any]]

__all__ = ["STREAMS", "build_stream", "describe_stream"]

#: Estimators that come back as what they were.
STREAMS = (
    "KernelPerceptron",
    "BudgetPerceptron",
    "Forgetron",
    "Stoptron",
    "Projectron",
    "ProjectronPlusPlus",
    "PerceptronTreeClassifier",
)


def describe_stream(model: StreamClassifier) -> tuple[dict[str, Any], Arrays, Any, NDArray[np.float64]]:
    """The JSON, the arrays, the rows and the coefficients of a learner."""
    name = type(model).__name__
    if name not in STREAMS:
        raise TypeError(f"a model of type {name} cannot be stored: it must be one of {', '.join(STREAMS)}")
    state = dict(model._state)
    rows = state.pop("rows")
    # A tree has no pool with one line of coefficients a row; its own are among the arrays.
    count = rows[3][0] if isinstance(rows, tuple) else rows.shape[0]
    coefficients = state.pop("coefficients", np.zeros((count, 1)))
    arrays: Arrays = {"mistake_rows": model.mistake_rows_}
    numbers: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[key] = value.astype(np.int64) if value.dtype.kind in "iu" else value
        else:
            numbers[key] = list(value) if isinstance(value, tuple) else value
    described = {
        "class": name,
        "parameters": {key: plain(key, value) for key, value in model.get_params(deep=False).items()},
        "classes": labels_to_json(model.classes_),
        "coding": model._decoding,
        "gamma": float(model.gamma_),
        "counters": [model.n_seen_, model.mistakes_, model.n_iter_],
        "numbers": numbers,
        "n_features": model.n_features_in_,
        "feature_names": names(model),
    }
    return described, arrays, rows, coefficients


def build_stream(
    expansion: KernelExpansion, extra: Mapping[str, Any], stored: Mapping[str, NDArray[Any]]
) -> StreamClassifier:
    """The learner of a file."""
    from svmarrow import perceptron

    kind = getattr(perceptron, extra["class"])
    # Everything goes through the constructor's own names: a name it does not have is a TypeError.
    model: Any = kind(**typed(extra, "parameters", dict))
    check(model.get_params(deep=False), model._rules)
    if model.kernel != expansion.kernel:
        raise ValueError(f"the kernel is {expansion.kernel!r}, the parameters say {model.kernel!r}")
    classes = labels_from_json(extra["classes"])
    if classes.size < 2 or np.unique(classes).size != classes.size:
        raise ValueError("classes are not at least two distinct labels")
    model.classes_ = classes
    model.gamma_ = typed(extra, "gamma", float)
    vectors, n_features = expansion.vectors, typed(extra, "n_features", int)
    if n_features != vectors.shape[1]:
        raise ValueError(f"n_features is {n_features}, the vectors have {vectors.shape[1]} columns")
    model.n_features_in_ = n_features
    if extra["feature_names"] is not None:
        if len(extra["feature_names"]) != n_features:
            raise ValueError(
                f"feature_names has {len(extra['feature_names'])} names for {n_features} columns"
            )
        model.feature_names_in_ = np.array(extra["feature_names"], dtype=object)
    counters = typed(extra, "counters", list)
    if len(counters) != 3 or any(type(count) is not int or count < 0 for count in counters):
        raise ValueError("counters are not three numbers of rows, mistakes and passes")
    model.n_seen_, model.mistakes_, model.n_iter_ = counters
    arrays = dict(stored)
    model.mistake_rows_ = _array(arrays, "mistake_rows", np.zeros(0, dtype=np.int64))
    state = _state(model._empty(vectors), expansion, typed(extra, "numbers", dict), arrays)
    model._restore(state, extra["coding"])
    built: StreamClassifier = model
    return built


def _state(
    empty: Mapping[str, Any], expansion: KernelExpansion, numbers: Mapping[str, Any], arrays: Arrays
) -> dict[str, Any]:
    """A state with the same keys and types as one that has seen nothing."""
    from svmarrow._support.rows import core_rows

    state: dict[str, Any] = {}
    for key, like in empty.items():
        if key == "rows":
            state[key] = core_rows(expansion.vectors)
        elif key == "coefficients":
            state[key] = expansion.coefficients
        elif isinstance(like, np.ndarray):
            state[key] = _array(arrays, key, like)
        elif isinstance(like, tuple):
            values = typed(numbers, key, list)
            if len(values) != len(like) or any(type(value) is not int or value < 0 for value in values):
                raise ValueError(f"{key} are not {len(like)} counts")
            state[key] = tuple(values)
        else:
            state[key] = typed(numbers, key, type(like))
    if arrays:
        raise ValueError(f"array {next(iter(arrays))!r} is not part of this model")
    return state


def _array(arrays: Arrays, key: str, like: NDArray[Any]) -> NDArray[Any]:
    array = arrays.pop(key)
    stored = np.dtype(np.float64 if like.dtype.kind == "f" else np.int64)
    if array.ndim != like.ndim or array.dtype != stored:
        raise ValueError(
            f"array {key!r} has {array.ndim} sizes of {array.dtype}, expected {like.ndim} of {stored}"
        )
    if stored.kind == "i" and array.size:
        largest = np.iinfo(like.dtype).max
        if array.min() < 0 or array.max() > largest:
            raise ValueError(f"array {key!r} has numbers outside 0 to {largest}")
    return np.ascontiguousarray(array.astype(like.dtype))
