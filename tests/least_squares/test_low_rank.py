"""Least squares with coefficients at a few points."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier

from helpers.reference import kernel as kernel_matrix
from helpers.reference import least_squares, subset_of_regressors
from svmarrow import RLSRegressor, compress
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor

SPEC = ("rbf", 0.3, 0.0, 3)


def _problem(rng, n=300, d=4, q=2):
    return rng.normal(size=(n, d)), rng.normal(size=(n, q))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_subset_of_regressors_and_its_leave_one_out_equal_the_oracle(rng, intercept, layout):
    X, Y = _problem(rng)
    rows = sp.csr_array(X) if layout == "csr" else X
    model = LowRankRLSRegressor(
        30, alpha=0.7, gamma=0.3, fit_intercept=intercept, leave_one_out=True, random_state=0
    ).fit(rows, Y)
    Z = X[model.indices_]
    K_lm, K_mm = kernel_matrix(SPEC, X, Z), kernel_matrix(SPEC, Z, Z)
    c, b, H = subset_of_regressors(K_lm, K_mm, Y, 0.7, intercept=intercept)
    np.testing.assert_allclose(model.dual_coef_, c.T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-9)
    left = Y - (Y - H @ Y) / (1 - np.diag(H))[:, None]
    np.testing.assert_allclose(model.loo_prediction_, left, atol=1e-8)
    for i in (0, 7, 299):
        rest = np.delete(np.arange(300), i)
        c, b, _ = subset_of_regressors(K_lm[rest], K_mm, Y[rest], 0.7, intercept=intercept)
        np.testing.assert_allclose(model.loo_prediction_[i], K_lm[i] @ c + b, atol=1e-8)


def test_all_rows_as_points_are_the_exact_solution(rng):
    X, Y = _problem(rng, n=60)
    exact = RLSRegressor(alpha=0.5, gamma=0.3, leave_one_out=True).fit(X, Y)
    T = rng.normal(size=(20, 4))
    for method in ("subset_of_regressors", "subset", "nystrom"):
        model = LowRankRLSRegressor(60, alpha=0.5, gamma=0.3, method=method, leave_one_out=method == "subset")
        np.testing.assert_allclose(model.fit(X, Y).predict(T), exact.predict(T), atol=1e-7)
        if method == "subset":
            np.testing.assert_allclose(model.loo_prediction_, exact.loo_prediction_, atol=1e-8)


def test_nystrom_solves_the_projected_system(rng):
    X, Y = _problem(rng)
    model = LowRankRLSRegressor(25, alpha=0.7, gamma=0.3, method="nystrom", random_state=0).fit(X, Y)
    Z = X[model.indices_]
    K_lm, K_mm = kernel_matrix(SPEC, X, Z), kernel_matrix(SPEC, Z, Z)
    u, _ = least_squares(K_lm @ np.linalg.solve(K_mm, K_lm.T), Y, 0.7)
    np.testing.assert_allclose(model.expansion_.coefficients, u, atol=1e-8)


def test_pieces_and_merged_models_equal_all_at_once(rng):
    X, y = rng.normal(size=(900, 3)), rng.integers(0, 3, size=900)
    points = X[:40]
    how = {"selection": points, "gamma": 0.3, "alpha": 0.1}
    once = LowRankRLSClassifier(**how).fit(X, y)
    pieces = LowRankRLSClassifier(**how)
    for part in np.array_split(np.arange(900), 7):
        pieces.partial_fit(X[part], y[part], classes=[0, 1, 2])
        pieces = pickle.loads(pickle.dumps(pieces))
    a = LowRankRLSClassifier(**how).fit(X[:500], y[:500])
    b = LowRankRLSClassifier(**how).fit(X[500:], y[500:])
    for model in (pieces, a.merge(b)):
        assert model.n_seen_ == 900
        np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="same points"):
        a.merge(LowRankRLSClassifier(selection=X[1:41], gamma=0.3).fit(X, y))
    with pytest.raises(ValueError, match="classes=None"):
        LowRankRLSClassifier(**how).partial_fit(X, y)
    assert not hasattr(LowRankRLSClassifier(method="subset"), "partial_fit")


@pytest.mark.parametrize("selection", ["random", "kmeans", "pivoted_cholesky", "leverage", "greedy_trace"])
def test_every_selection_classifies_and_is_reproducible(datasets, selection):
    X, y = datasets["digits"]

    def fit(n_jobs):
        model = LowRankRLSClassifier(150, alpha=0.01, gamma=0.05, selection=selection, random_state=3)
        return model.set_params(n_jobs=n_jobs).fit(X[:700], y[:700])

    one, two = fit(1), fit(2)
    assert one.score(X[700:], y[700:]) > 0.9
    assert one.expansion_ == two.expansion_
    if selection in ("pivoted_cholesky", "greedy_trace"):
        K = kernel_matrix(("rbf", 0.05, 0.0, 3), X[:700], X[:700])
        chosen = one.indices_[:50]
        part = K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen])
        assert one.remaining_trace_[50] == pytest.approx(np.trace(K - part), abs=1e-6)
        assert (np.diff(one.remaining_trace_) <= 0).all()


def test_as_good_as_nystroem_and_ridge_on_the_same_points(datasets):
    X, y = datasets["digits"]
    model = LowRankRLSClassifier(200, alpha=0.1, gamma=0.05, fit_intercept=True, random_state=0)
    model.fit(X[:700], y[:700])
    features = Nystroem(gamma=0.05, n_components=200, random_state=0).fit(X[:700])
    features.components_ = X[model.indices_]
    values, vectors = np.linalg.eigh(
        kernel_matrix(("rbf", 0.05, 0.0, 3), features.components_, X[model.indices_])
    )
    features.normalization_ = (vectors / np.sqrt(values)).T
    peer = RidgeClassifier(alpha=0.1, solver="cholesky").fit(features.transform(X[:700]), y[:700])
    ours, theirs = model.decision_function(X[700:]), peer.decision_function(features.transform(X[700:]))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_more_points_than_rows_and_duplicates():
    X, y = np.repeat(np.eye(3), 4, axis=0), np.arange(12) % 3
    with pytest.warns(UserWarning, match="n_vectors=50"):
        model = LowRankRLSRegressor(50, gamma=1.0).fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    exact = RLSRegressor(gamma=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-6)
    with pytest.raises(ValueError, match="pivot"):
        LowRankRLSRegressor(12, gamma=1.0, alpha=0.0).fit(X, y)
    assert LowRankRLSRegressor(12, gamma=1.0, selection="pivoted_cholesky").fit(X, y).indices_.size == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_vectors": 0}, "n_vectors=0"),
        ({"method": "nystrom", "alpha": 0.0}, "alpha=0.0"),
        ({"method": "nystrom", "leave_one_out": True}, "leave_one_out=True"),
        ({"method": "subset", "selection": "kmeans"}, "selection='kmeans'"),
        ({"selection": "best"}, "selection='best'"),
        ({"kernel": "precomputed"}, "a precomputed kernel matrix must be square"),
    ],
)
def test_combinations_without_a_meaning_are_refused(rng, parameters, message):
    X, Y = _problem(rng, n=20)
    with pytest.raises(ValueError, match=message):
        LowRankRLSRegressor(**{"n_vectors": 5} | parameters).fit(X, Y)


def test_single_precision_rows_and_compression(datasets):
    X, y = datasets["digits"]
    model = LowRankRLSClassifier(200, alpha=0.1, gamma=0.05, random_state=0).fit(X.astype(np.float32), y)
    assert model.expansion_.vectors.dtype == np.float32
    small = compress(model, n_vectors=100)
    assert small.score(X, y) > 0.9
