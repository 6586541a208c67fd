"""One row at a time gives what `predict` and `decision_function` give."""

from __future__ import annotations

import pickle
from collections import UserDict

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from svmarrow import as_expansion
from svmarrow._support.decoding import DECODERS
from svmarrow._support.parameters import ROW_KERNELS
from svmarrow.multiclass import make_code


def judge(model, X, atol=1e-12):
    fast = model.compiled()
    assert fast.n_features_in_ == X.shape[1]
    for kind in (list, tuple, np.asarray, lambda row: iter(row.tolist())):
        for row, label in zip(X, model.predict(X), strict=True):
            found = fast.predict(kind(row))
            if isinstance(label, np.ndarray) or np.asarray(label).dtype.kind == "f":
                np.testing.assert_allclose(found, label, atol=atol * (1 + np.abs(label).max()))
            else:
                assert found == label
    if fast.decision_function is not None:
        for row, scores in zip(X, model.decision_function(X), strict=True):
            found = fast.decision_function(row.tolist())
            assert np.shape(found) == np.shape(scores)
            np.testing.assert_allclose(found, scores, atol=atol * (1 + np.abs(scores).max()))
    assert hasattr(fast, "predict_proba") is hasattr(model, "predict_proba")
    if not hasattr(fast, "predict_proba"):
        with pytest.raises(AttributeError, match="calibrated"):
            fast.predict_proba(X[0])
    else:
        for row, shares in zip(X, model.predict_proba(X), strict=True):
            np.testing.assert_allclose(fast.predict_proba(row.tolist()), shares, atol=1e-12)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(datasets, multi_class, n_classes):
    X, y = datasets["iris"]
    X, y = X[y < n_classes][::2], y[y < n_classes][::2]
    judge(as_expansion(svmarrow.SVC(multi_class=multi_class).fit(X, y)).calibrated(X, y), X[::5])


def test_a_sample_may_be_a_dict(rng):
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y"], 60)})
    frame.loc[::7, "b"] = None
    label = np.where(frame["a"] > 0.0, "up", "down")
    table = svmarrow.TabularClassifier(n_samples=40).fit(frame, label)
    numbers = svmarrow.SVC().fit(frame[["a"]], label)
    for model in (table, numbers):
        fast = pickle.loads(pickle.dumps(model.compiled()))
        samples = frame[:10].astype(object).to_dict("records")
        backwards = [dict(reversed(sample.items())) for sample in samples]
        columns = frame[list(model.feature_names_in_)][:10]
        assert [fast.predict(sample) for sample in backwards] == model.predict(columns).tolist()
        scores = [fast.decision_function(sample) for sample in samples]
        np.testing.assert_allclose(scores, model.decision_function(columns), atol=1e-12)
        with pytest.raises(ValueError, match="no value for the feature 'a'"):
            fast.predict({"b": "x"})
    found = [table.compiled().predict_proba(sample) for sample in samples]
    np.testing.assert_allclose(found, table.predict_proba(frame[:10]), atol=1e-12)
    with pytest.raises(TypeError, match="has no feature names"):
        svmarrow.SVC().fit(frame[["a"]].to_numpy(), label).compiled().predict({"a": 1.0})


def test_a_sample_with_names_is_read_by_name(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    model = svmarrow.SVC().fit(frame, frame["a"] > 0.0)
    fast, expected = model.compiled(), model.decision_function(frame)
    samples = zip(frame.iterrows(), frame[["c", "a", "b"]].itertuples(index=False), strict=True)
    for ((_, series), named), value in zip(samples, expected, strict=True):
        for sample in (series, series[::-1], named, UserDict(series), series.tolist()):
            assert fast.decision_function(sample) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("kernel", ROW_KERNELS)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_every_kernel(datasets, kernel, multi_class):
    X, y = datasets["iris"]
    model = svmarrow.SVC(kernel=kernel, multi_class=multi_class, gamma=0.3).fit(
        X, np.array(["a", "b", "c"])[y]
    )
    judge(model, X[::5])


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder(datasets, rng, decoder):
    for n_classes in (2, 4):
        code = make_code("ovo", n_classes)
        expansion = svmarrow.KernelExpansion(
            rng.normal(size=(5, 3)), rng.normal(size=(5, code.n_columns)), rng.normal(size=code.n_columns)
        )
        labels = ["w", "x", "y", "z"][:n_classes]
        model = svmarrow.models.ExpansionClassifier(expansion, labels, "code", code=code, decoder=decoder)
        judge(model, rng.normal(size=(20, 3)))


def test_every_kind_of_model(datasets, diabetes):
    X, y = datasets["moons"]
    for model in (
        svmarrow.SVC(),
        svmarrow.RLSClassifier(),
        svmarrow.ReducedSet(svmarrow.SVC(), n_vectors=10),
        svmarrow.CodedClassifier(svmarrow.SVC()),
        svmarrow.online.KernelPerceptron(policy="forgetron", budget=20),
        svmarrow.OneClassSVM(),
    ):
        judge(model.fit(X, y), X[:20])
    X, y = diabetes
    for model in (svmarrow.SVR(), svmarrow.RLSRegressor()):
        judge(model.fit(X, y), X[:20], 1e-10)
    judge(svmarrow.RLSRegressor().fit(X, np.column_stack([y, -y])), X[:20], 1e-10)
    judge(svmarrow.RLSRegressor().fit(X, y[:, None]), X[:20], 1e-10)


def test_pipelines(datasets):
    X, y = datasets["cancer"]
    for steps in ([StandardScaler()], [StandardScaler(), PCA(4)]):
        model = make_pipeline(*steps, svmarrow.SVC()).fit(X, y)
        judge(svmarrow.as_expansion(model), X[:20], 1e-10)
    gaps = X.copy()
    gaps[::3, 2] = np.nan
    parts = ColumnTransformer([("a", SimpleImputer(), [2, 1]), ("b", "passthrough", [5])])
    fast = svmarrow.as_expansion(make_pipeline(parts, svmarrow.SVC()).fit(gaps, y)).compiled()
    wanted = make_pipeline(parts, svmarrow.SVC()).fit(gaps, y).predict(gaps[:10])
    assert [fast.predict(row) for row in gaps[:10]] == wanted.tolist()


def test_it_pickles_and_refuses_bad_input(datasets):
    X, y = datasets["moons"]
    model = svmarrow.SVC().fit(X, y)
    fast = pickle.loads(pickle.dumps(model.compiled()))
    assert fast.predict([0.0, 1.0]) == model.predict([[0.0, 1.0]])[0]
    for row, error, text in (
        ([1.0], ValueError, "2 columns"),
        ([1.0, float("nan")], ValueError, "column 1 of the row is NaN"),
        ([1.0, float("inf")], ValueError, "finite"),
        (3, TypeError, "a row is a list"),
        ([1.0, "a"], TypeError, "str"),
        (np.zeros((1, 2)), TypeError, "row"),
    ):
        with pytest.raises(error, match=text):
            fast.predict(row)
    with pytest.raises(TypeError, match="Python function"):
        svmarrow.SVC(kernel=lambda a, b: a @ b.T).fit(X, y).compiled()
    with pytest.raises(TypeError, match="not a kernel expansion"):
        svmarrow.online.KernelPerceptron(prediction="voted").fit(X, y).compiled()
