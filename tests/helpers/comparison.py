"""Comparison of fitted objects, to the last bit."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from svmarrow import KernelExpansion
from svmarrow.multiclass import Code


def state_of(value):
    """Returns all attributes of an object but those that are computed again."""
    if isinstance(value, KernelExpansion):
        return value.__getstate__()
    if isinstance(value, Code):
        return {"matrix": value.matrix}
    if type(value).__module__ == "sklearn.metrics._scorer":
        return {"scorer": repr(value)}
    return {key: item for key, item in vars(value).items() if key not in getattr(value, "_transient", ())}


def assert_same(a, b, where=""):
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), where
    elif sparse.issparse(a):
        assert a.shape == b.shape, where
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif isinstance(a, (float, np.generic)):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), where
    elif isinstance(a, dict):
        assert list(map(str, sorted(a, key=str))) == list(map(str, sorted(b, key=str))), where
        for key, item in a.items():
            assert_same(item, b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for place, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{where}[{place}]")
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False), where)
    elif a is None or isinstance(a, (bool, int, str, range)):
        assert a == b, where
    else:
        assert_same(state_of(a), state_of(b), f"{where}.{type(a).__name__}")


def fitted_attributes(model):
    """Returns the fitted attributes that are properties and that the model has, by name."""
    found = {}
    for name in dir(type(model)):
        if name.endswith("_") and not name.startswith("_"):
            try:
                found[name] = getattr(model, name)
            except AttributeError:
                continue
    return found


def predictions(model, X):
    """Returns the outputs of every prediction method of a model."""
    if hasattr(model, "sizes"):
        return {size: predictions(model[size], X) for size in list(model.sizes)[::3]}
    methods = ("decision_function", "predict", "score_samples", "route", "apply", "transform")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def answers(model, X):
    """Returns the predictions of a model, or what a transformer makes of the rows, as an array."""
    if hasattr(model, "predict"):
        return model.predict(X)
    rows = model.transform(X)
    return rows.toarray() if sparse.issparse(rows) else rows


def assert_same_model(a, b, X):
    assert_same(a, b)
    if isinstance(a, BaseEstimator):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
    assert_same(fitted_attributes(a), fitted_attributes(b))
    assert_same(predictions(a, X), predictions(b, X))
