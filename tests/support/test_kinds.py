"""What looks like an array and is not one: refused by name instead of taken for other numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from helpers.data import IRIS, KIND
from helpers.public import PUBLIC
from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    compress,
)
from svmarrow._support.parameters import check_array_types

MASKED = np.ma.masked_array(IRIS, mask=IRIS > 4.0)
ORDINARY = {
    "CalibratedCascade": {"estimator": SVC(), "n_vectors": 4, "epsilon": 0.4, "validation_fraction": 0.4},
    "CodedClassifier": {"estimator": SVC()},
    "ExactCascade": {"estimator": SVC()},
    "ReducedSet": {"estimator": SVC(), "n_vectors": 4},
}
LEARNERS = [name for name in PUBLIC if hasattr(PUBLIC[name], "fit") and not name.startswith("Expansion")]


def collection(package, method, values):
    """A type as a package of collections that are gathered without a word has it."""
    kind = type(
        "Array",
        (),
        {
            "__module__": f"{package}.array.core",
            method: lambda _: values,
            "__array__": lambda *_, **__: values,
        },
    )
    made = kind()
    made.shape, made.dtype, made.ndim = values.shape, values.dtype, values.ndim
    return made


def learner(name):
    return PUBLIC[name](**ORDINARY.get(name, {}))


def has_targets(name):
    return name != "OneClassSVM"


@pytest.mark.parametrize("name", LEARNERS)
def test_collections_elsewhere_are_not_gathered(name):
    away = collection("dask", "compute", IRIS)
    with pytest.raises(TypeError, match=r"X is dask's Array, which is not in memory.*X\.compute\(\)"):
        learner(name).fit(away, KIND)
    if has_targets(name):
        with pytest.raises(TypeError, match=r"y is dask's Array.*y\.compute\(\)"):
            learner(name).fit(IRIS, collection("dask", "compute", KIND))


@pytest.mark.parametrize("name", LEARNERS)
def test_masked_arrays_are_refused(name):
    with pytest.raises(ValueError, match=r"X has masked entries: fill them \(X\.filled"):
        learner(name).fit(MASKED, KIND)
    if has_targets(name):
        with pytest.raises(ValueError, match="y has masked entries"):
            learner(name).fit(IRIS, np.ma.masked_array(KIND, mask=KIND == 1))


@pytest.mark.parametrize(
    ("package", "method"),
    [("dask", "compute"), ("dask_expr", "compute"), ("pyspark", "toPandas"), ("polars", "collect")],
)
def test_each_package_has_its_own_word(package, method):
    with pytest.raises(TypeError, match=rf"rows is {package}'s Array.*rows\.{method}\(\)"):
        check_array_types(rows=collection(package, method, IRIS))
    # A type of such a package that is in memory has no such method.
    check_array_types(rows=collection(package, "something_else", IRIS))


def test_prediction_reduction_and_weights_look_too():
    away, model = collection("dask", "compute", IRIS), SVC().fit(IRIS, KIND)
    for ask in (model.predict, model.decision_function, model.expansion_.decision_function):
        with pytest.raises(TypeError, match="X is dask's"):
            ask(away)
        with pytest.raises(ValueError, match="X has masked"):
            ask(MASKED)
    with pytest.raises(TypeError, match="X is dask's"):
        compress(model, away, KIND, n_vectors=3, method="backfit")
    with pytest.raises(TypeError, match="y is dask's"):
        compress(model, IRIS, collection("dask", "compute", KIND), n_vectors=3, method="backfit")
    with pytest.raises(TypeError, match="vectors is dask's"):
        KernelExpansion(away, np.zeros((150, 1)), [0.0])
    with pytest.raises(TypeError, match="sample_weight is dask's"):
        SVC().fit(IRIS, KIND, collection("dask", "compute", np.ones(150)))
    with pytest.raises(ValueError, match="sample_weight has masked"):
        SVC().fit(IRIS, KIND, np.ma.masked_array(np.ones(150), mask=KIND == 0))
    with pytest.raises(ValueError, match="sample_weight is complex128"):
        SVC().fit(IRIS, KIND, np.ones(150) * 1j)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[ns]"])
def test_dates_are_not_counts(kind):
    for rows in (IRIS.astype(kind), pd.DataFrame(IRIS.astype(kind))):
        with pytest.raises(TypeError, match=r"X holds dates or times \((datetime|timedelta)64"):
            SVC().fit(rows, KIND)
    with pytest.raises(TypeError, match="y holds dates or times"):
        SVR().fit(IRIS, pd.Series(KIND.astype(kind)))


def test_arrays_without_a_masked_entry_are_arrays():
    model = SVC().fit(np.ma.masked_array(IRIS), np.ma.masked_array(KIND))
    assert np.array_equal(model.predict(IRIS), SVC().fit(IRIS, KIND).predict(IRIS))
