"""Rows in the containers of other libraries: taken as they are meant, or refused by a clear word."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from helpers.data import KIND, TARGET
from helpers.data import STANDARD_IRIS as X
from svmarrow import SVC, SVR, RLSClassifier

MODELS = [SVC(), RLSClassifier(), SVR()]


class Tensor:
    """A CPU tensor as torch's: no array, but one by ``__array__``."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=True)


def collection(module, name, **members):
    """A type that says it comes from another package."""
    return type(name, (), {"__module__": module, **members})()


def of(model):
    return TARGET if isinstance(model, SVR) else KIND


@pytest.mark.parametrize("model", MODELS, ids=lambda of: type(of).__name__)
def test_tensors_are_their_numbers(model):
    plain = model.fit(X, of(model)).predict(X)
    np.testing.assert_array_equal(model.fit(Tensor(X), Tensor(of(model))).predict(Tensor(X)), plain)


@pytest.mark.parametrize("model", MODELS, ids=lambda of: type(of).__name__)
def test_frames_have_names_and_any_number_type(model):
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    plain = model.fit(X, of(model)).predict(X)
    for rows in (frame, frame.astype("Float64"), frame.astype("float32").astype("float64")):
        fitted = model.fit(rows, pd.Series(of(model)))
        assert list(fitted.feature_names_in_) == names
        np.testing.assert_allclose(fitted.predict(rows), plain, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])


def test_masks_without_a_masked_entry_are_arrays():
    plain = SVC().fit(X, KIND).predict(X)
    np.testing.assert_array_equal(SVC().fit(np.ma.masked_array(X), KIND).predict(X), plain)
    with pytest.raises(ValueError, match=r"X has masked entries: fill them"):
        SVC().fit(np.ma.masked_array(X, X > 2.0), KIND)


@pytest.mark.parametrize(
    ("module", "name", "method"),
    [
        ("dask.array.core", "Array", "compute"),
        ("dask_expr._collection", "DataFrame", "compute"),
        ("polars.lazyframe.frame", "LazyFrame", "collect"),
        ("pyspark.sql.dataframe", "DataFrame", "toPandas"),
    ],
)
def test_what_is_not_in_memory_is_named_with_the_way_to_bring_it_there(module, name, method):
    rows = collection(module, name, shape=X.shape, **{method: lambda _: X})
    package = module.partition(".")[0]
    with pytest.raises(TypeError, match=rf"X is {package}'s {name}.*pass X\.{method}\(\)"):
        SVC().fit(rows, KIND)
    model = SVC().fit(X, KIND)
    with pytest.raises(TypeError, match=rf"X is {package}'s {name}") as told:
        model.predict(rows)
    assert ("svmarrow.dask trains on" in str(told.value)) == package.startswith("dask")


def test_dates_and_complex_numbers_are_refused():
    dates = pd.DataFrame({"a": TARGET, "when": pd.date_range("2026-01-01", periods=len(X))})
    with pytest.raises(TypeError, match="dates or times"):
        SVC().fit(dates, KIND)
    with pytest.raises(ValueError, match="Complex data not supported"):
        SVC().fit(X + 1j, KIND)
