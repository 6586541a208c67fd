"""Lazy prediction of Dask collections by what svmarrow fits."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV

from svmarrow import (
    SVC,
    SVR,
    CodedClassifier,
    KMPRegressor,
    NuSVR,
    OneClassSVM,
    PerceptronTreeClassifier,
    RLSClassifier,
    TabularClassifier,
    compress,
)
from svmarrow.cascade import CalibratedCascade
from svmarrow.dask import DaskSVC, decision_function, predict, predict_proba
from svmarrow.dask.estimator import all_threads, prediction_model
from svmarrow.least_squares import LowRankRLSClassifier
from svmarrow.online import KernelPerceptron
from svmarrow.svm import QuantileSVR

MODELS = [
    SVC(C=5.0),
    SVC(multi_class="ovr"),
    RLSClassifier(),
    LowRankRLSClassifier(40, random_state=0),
    CodedClassifier(RLSClassifier(), "dense", random_state=0),
    KernelPerceptron(),
    PerceptronTreeClassifier(random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("where", ["cluster", "threads"])
def test_classifiers(request, model, digits, where):
    X, y, X_test, _ = digits
    if where == "cluster":
        request.getfixturevalue("client")
    model.fit(X, np.array([f"d{label}" for label in y]))
    rows = da.from_array(X_test, chunks=(250, -1))
    scores, labels = decision_function(model, rows), predict(model, rows)
    assert isinstance(labels, da.Array)
    assert labels.chunks == ((250, 250, 100),)
    assert labels.dtype == model.predict(X_test).dtype
    np.testing.assert_array_equal(labels.compute(), model.predict(X_test))
    np.testing.assert_array_equal(scores.compute(), model.decision_function(X_test))
    assert scores.shape == model.decision_function(X_test).shape


@pytest.mark.parametrize("where", ["cluster", "threads"])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_probabilities(request, kind, digits, where):
    X, y, X_test, _ = digits
    if where == "cluster":
        request.getfixturevalue("client")
    y = y > 4 if kind == "binary" else y
    for model in (CalibratedClassifierCV(SVC(), ensemble=False, cv=3), TabularClassifier()):
        model.fit(X[:200], y[:200])
        rows = da.from_array(X_test, chunks=(250, -1))
        probabilities = predict_proba(model, rows)
        assert probabilities.chunks == ((250, 250, 100), (2 if kind == "binary" else 10,))
        np.testing.assert_allclose(probabilities.compute(), model.predict_proba(X_test), atol=1e-12)
    with pytest.raises(TypeError, match="a SVC has no predict_proba: call as_expansion"):
        predict_proba(SVC().fit(X[:200], y[:200]), rows)


@pytest.mark.parametrize(
    "model", [SVR(), NuSVR(), QuantileSVR(0.2), KMPRegressor(10), OneClassSVM()], ids=str
)
def test_numbers_and_detectors(client, model, diabetes):
    X, y = diabetes
    model.fit(X) if isinstance(model, OneClassSVM) else model.fit(X, y)
    rows = da.from_array(X, chunks=(100, -1))
    found = predict(model, rows)
    np.testing.assert_array_equal(found.compute(), model.predict(X))
    assert found.dtype == model.predict(X).dtype


def test_cascades_and_compressed_models(client, digits):
    X, y, X_test, _ = digits
    svc = SVC(C=5.0).fit(X, y)
    rows = da.from_array(X_test, chunks=(200, -1))
    cascade = CalibratedCascade(svc).fit(X, y)
    for model in (cascade, compress(svc, n_vectors=50)):
        np.testing.assert_array_equal(predict(model, rows).compute(), model.predict(X_test))
    outputs = decision_function(svc.expansion_, rows)
    np.testing.assert_array_equal(outputs.compute(), svc.expansion_.decision_function(X_test))
    assert outputs.chunks == ((200, 200, 200), (45,))


def test_the_expansion_is_sent_not_the_estimator(digits):
    X, y = digits[:2]
    model = LowRankRLSClassifier(50, random_state=0).fit(X, y)
    assert not hasattr(prediction_model(model), "_sums")
    assert prediction_model(model).expansion is model.expansion_


def test_unknown_empty_and_sparse_chunks(client, digits):
    X, y, X_test, _ = digits
    model = SVC(C=5.0).fit(X, y)
    rows = da.from_array(X_test, chunks=(150, -1))
    chosen = rows[da.arange(len(X_test), chunks=150) < 200]
    assert np.isnan(chosen.chunks[0]).all()
    np.testing.assert_array_equal(predict(model, chosen).compute(), model.predict(X_test[:200]))
    sparse = rows.map_blocks(sp.csr_matrix)
    np.testing.assert_array_equal(predict(model, sparse).compute(), model.predict(sp.csr_matrix(X_test)))
    np.testing.assert_array_equal(
        decision_function(model, chosen).compute(), model.decision_function(X_test[:200])
    )


def test_frames_keep_their_index(client, cancer):
    X, y = cancer[0][:, :4], cancer[1]
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(len(X))])
    model = SVC().fit(frame, y)
    lazy = dd.from_pandas(frame, npartitions=4, sort=False)
    for rows in (lazy, lazy[lazy["a"] > 0.5]):
        local = rows.compute()
        found = predict(model, rows)
        assert found.dtype == np.int64
        found = found.compute()
        np.testing.assert_array_equal(found, model.predict(local))
        assert list(found.index) == list(local.index)
        np.testing.assert_array_equal(
            decision_function(model, rows).compute(), model.decision_function(local)
        )
    assert predict(model, lazy[lazy["a"] > 1e9]).compute().empty


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda X: X.compute(), TypeError, "X is a ndarray"),
        (lambda X: X.rechunk((50, 10)), ValueError, r"X\.rechunk\(\{1: -1\}\)"),
        (lambda X: X[:, :5], ValueError, "5 features"),
    ],
)
def test_what_is_refused(digits, change, error, text):
    X, y = digits[:2]
    model = SVC().fit(X, y)
    with pytest.raises(error, match=text):
        predict(model, change(da.from_array(X, chunks=(100, -1))))
    with pytest.raises(TypeError, match="has no decision_function"):
        decision_function(SVR().fit(X, y), da.from_array(X, chunks=(100, -1)))


def test_a_client_may_be_set_later(client, lazy, digits):
    X, y = digits[:2]
    svc = DaskSVC()
    svc.client = client
    assert svc.client is client
    rows = lazy(250, X, y)
    labels = svc.fit(*rows).predict(rows[0])
    np.testing.assert_array_equal(labels.compute(), svc.predict(X))
    svc.client = None
    assert svc.client is client


def test_threads_of_a_task_are_those_of_its_worker(client):
    def task():
        with all_threads() as jobs:
            return jobs

    assert client.submit(task, pure=False).result() == 1
