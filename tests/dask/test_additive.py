"""Least squares of few points over partitions: the models of one machine."""

from __future__ import annotations

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import svmarrow
from svmarrow.dask import (
    DaskLowRankRLSClassifier,
    DaskLowRankRLSRegressor,
)
from svmarrow.least_squares import (
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)

OPTIONS = [
    {},
    {"fit_intercept": True, "alpha": 1e-3},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "chi2", "gamma": 0.5},
    {"kernel": "matern52"},
    {"class_weight": "balanced"},
    {"class_weight": {"digit 3": 7.0}, "gamma": "auto"},
]


def names(y):
    return np.array([f"digit {label}" for label in y])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classifier(client, lazy, digits, options, weighted):
    X, y = digits[0], names(digits[1])
    weights = [np.random.default_rng(1).integers(0, 3, len(y)).astype(float)] if weighted else []
    far = DaskLowRankRLSClassifier(selection=X[::7], **options).fit(*lazy(110, X, y, *weights))
    near = LowRankRLSClassifier(selection=X[::7], **options).fit(X, y, *weights)
    assert far.expansion_.gamma == pytest.approx(near.expansion_.gamma, rel=1e-12)
    np.testing.assert_allclose(far.decision_function(X), near.decision_function(X), atol=1e-7)
    assert far.n_seen_ == near.n_seen_
    np.testing.assert_array_equal(far.classes_, near.classes_)
    rows, labels = lazy(110, X, y)
    assert far.score(rows, labels) == pytest.approx(near.score(X, y))
    np.testing.assert_array_equal(far.decision_function(rows).compute(), far.decision_function(X))
    assert far.decision_function(rows).chunks == ((110, 110, 110, 110, 60), (10,))


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_regressor(client, lazy, diabetes, outputs):
    X, y = diabetes
    if outputs:
        y = np.stack([y, y**2, -y], axis=1)[:, :outputs]
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    rows = lazy(90, X, y, weights)
    far = DaskLowRankRLSRegressor(selection=X[::5], fit_intercept=True).fit(*rows)
    near = LowRankRLSRegressor(selection=X[::5], fit_intercept=True).fit(X, y, weights)
    np.testing.assert_allclose(far.predict(X), near.predict(X), atol=1e-8)
    assert far.predict(rows[0]).shape == y.shape
    np.testing.assert_array_equal(far.predict(rows[0]).compute(), far.predict(X))
    assert far.score(*rows) == pytest.approx(near.score(X, y, weights))
    assert far.score(*rows[:2]) == pytest.approx(near.score(X, y))


def test_sparse_blocks_and_empty_ones(client, digits):
    X, y = digits[:2]
    rows = da.from_array(X, chunks=(100, -1)).map_blocks(sp.csr_matrix)
    labels = da.from_array(y, chunks=100)
    none = da.from_array(X, chunks=(100, -1))
    none, no_label = none[none[:, 0] > 10.0], labels[da.from_array(X, chunks=(100, -1))[:, 0] > 10.0]
    far = DaskLowRankRLSClassifier(50, random_state=0).fit(rows, labels)
    assert sp.issparse(far.expansion_.vectors)
    near = LowRankRLSClassifier(selection=X[far.indices_]).fit(X, y)
    np.testing.assert_allclose(far.decision_function(X), near.decision_function(X), atol=1e-7)
    dense = da.from_array(X, chunks=(100, -1))
    more = DaskLowRankRLSClassifier(selection=X[:50]).fit(
        da.concatenate([none, dense]), da.concatenate([no_label, labels])
    )
    near = LowRankRLSClassifier(selection=X[:50]).fit(X, y)
    np.testing.assert_allclose(more.decision_function(X), near.decision_function(X), atol=1e-7)
    with pytest.raises(ValueError, match="y has 0 class"):
        DaskLowRankRLSClassifier(5).fit(none, no_label)


@pytest.mark.quick_every(5)
@pytest.mark.parametrize("selection", ["random", "pivoted_cholesky", "greedy_trace", "leverage", "kmeans"])
def test_points_from_all_rows(client, lazy, digits, selection):
    X, y = digits[:2]
    rows = lazy(120, X, y)
    one, two = (
        DaskLowRankRLSClassifier(60, selection=selection, random_state=3).fit(*rows) for _ in range(2)
    )
    assert one.expansion_ == two.expansion_
    if selection == "kmeans":
        assert one.indices_ is None
    else:
        np.testing.assert_array_equal(X[one.indices_], one.expansion_.vectors)
        assert one.indices_.max() >= 360
    assert hasattr(one, "remaining_trace_") == (selection in ("pivoted_cholesky", "greedy_trace"))
    assert one.score(*rows) > 0.93
    with pytest.warns(UserWarning, match="n_vectors=1000 is more than the 500 samples"):
        every = DaskLowRankRLSClassifier(1000, random_state=0).fit(*rows)
    assert every.expansion_.n_vectors == 500


def test_bits_depend_neither_on_workers_nor_on_the_run(client, lazy, digits):
    rows = lazy(60, *digits[:2])
    models = [DaskLowRankRLSClassifier(50, random_state=0).fit(*rows)]
    worker = min(client.scheduler_info()["workers"])
    models.append(DaskLowRankRLSClassifier(50, random_state=0).fit(*client.persist(rows, workers=[worker])))
    assert models[0].expansion_ == models[1].expansion_


def test_streams_and_penalties(client, lazy, digits, tmp_path):
    X, y = digits[:2]
    rows = lazy(50, X, y)
    whole = DaskLowRankRLSClassifier(selection=X[:60], gamma=0.05).fit(*rows)
    parts = DaskLowRankRLSClassifier(selection=X[:60], gamma=0.05).partial_fit(rows[0][:200], rows[1][:200])
    parts.partial_fit(rows[0][200:400], rows[1][200:400]).partial_fit(X[400:], y[400:])
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-8)
    assert parts.n_seen_ == 500
    with pytest.raises(ValueError, match="which is not among the known classes"):
        parts.partial_fit(rows[0], rows[1] + 90)
    path = whole.path([0.1, 1.0, 10.0])
    assert [each.alpha for each in path] == [0.1, 1.0, 10.0]
    assert type(path[0]) is LowRankRLSClassifier
    assert path[1].expansion_ == whole.expansion_
    near = LowRankRLSClassifier(selection=X[:60], alpha=10.0, gamma=0.05).fit(X, y)
    np.testing.assert_allclose(path[2].decision_function(X), near.decision_function(X), atol=1e-8)
    assert whole.alpha == 1.0
    merged = whole.to_local().merge(near.set_params(alpha=1.0))
    assert merged.n_seen_ == 1000
    svmarrow.save(whole, tmp_path / "m.safetensors")
    again = svmarrow.load(tmp_path / "m.safetensors")
    assert type(again) is LowRankRLSClassifier
    again.partial_fit(X[:50], y[:50])
    assert again.n_seen_ == 550
    copied = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(copied.predict(X), whole.predict(X))


def test_a_path_needs_sums():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LowRankRLSRegressor(20, random_state=0, method="subset").fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"method='subset'.*path"):
        model.path([1.0])
    model = LowRankRLSRegressor(20, random_state=0, leave_one_out=True).fit(X, X[:, 0])
    (other,) = model.path([0.5])
    assert not hasattr(other, "loo_error_")
    again = LowRankRLSRegressor(selection=model.expansion_.vectors, alpha=0.5).fit(X, X[:, 0])
    np.testing.assert_allclose(other.predict(X), again.predict(X), atol=1e-10)
    with pytest.raises(ValueError, match="alpha"):
        model.path([-1.0])


@pytest.mark.parametrize(
    "options",
    [
        {"method": "subset"},
        {"method": "nystrom"},
        {"leave_one_out": True},
        {"alphas": [1.0]},
        {"alpha": -1.0},
    ],
    ids=str,
)
def test_what_is_refused(client, lazy, digits, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        DaskLowRankRLSClassifier(10, **options).fit(*lazy(100, *digits[:2]))


def test_frames(client, diabetes):
    X, y = diabetes
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(10)]).assign(y=y, z=-y)
    lazy = dd.from_pandas(frame, npartitions=3)
    rows = lazy[[f"c{i}" for i in range(10)]]
    model = DaskLowRankRLSRegressor(40, random_state=0).fit(rows, lazy[["y", "z"]])
    found = model.predict(rows).compute()
    assert isinstance(found, pd.DataFrame)
    assert found.shape == (442, 2)
    assert list(found.index) == list(frame.index)
    single = DaskLowRankRLSRegressor(40, random_state=0).fit(rows, lazy["y"]).predict(rows)
    assert isinstance(single.compute(), pd.Series)
    np.testing.assert_allclose(single.compute(), found[0], atol=1e-9)
