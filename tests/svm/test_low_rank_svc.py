"""LowRankSVC: the machine of SVC for a projected kernel, with SVC's parameters, weights and shapes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from helpers import reference
from svmarrow import SVC, LowRankSVC, RLSClassifier, compress

SELECTIONS = ["random", "kmeans", "pivoted_cholesky", "leverage", "greedy_trace"]


@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}, {"class_weight": {0: 3.0}}], ids=str)
@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_with_every_row_a_point_it_is_svc(datasets, name, options):
    X, y = datasets[name]
    shared = {"C": 2.0, "gamma": 0.05, "tol": 1e-6, **options}
    low, full = LowRankSVC(len(y), **shared).fit(X, y), SVC(**shared).fit(X, y)
    assert low.decision_function(X) == pytest.approx(full.decision_function(X), abs=1e-3)
    assert low.certificate_.dual == pytest.approx(full.certificate_.dual, rel=1e-4)
    assert (low.predict(X) == full.predict(X)).mean() > 0.99
    assert low.class_weight_.tolist() == full.class_weight_.tolist()
    assert low.intercept_.shape == full.intercept_.shape
    assert low.dual_coef_.shape == (low.expansion_.n_outputs, low.expansion_.n_vectors)
    assert low.n_iter_.shape == full.n_iter_.shape


def test_low_rank_machine_solves_the_projected_dual(datasets):
    X, y = datasets["cancer"]
    model = LowRankSVC(60, C=2.0, gamma=0.02, tol=1e-6, random_state=0).fit(X, y)
    Z = X[model.indices_]
    spec = ("rbf", 0.02, 0.0, 3)
    K_lm, K_mm = reference.kernel(spec, X, Z), reference.kernel(spec, Z, Z)
    projected = K_lm @ np.linalg.solve(K_mm, K_lm.T)
    peer = SVC(C=2.0, kernel="precomputed", tol=1e-6).fit(projected, y)
    signed = np.zeros(len(y))
    signed[peer.support_] = peer.expansion_.coefficients[:, 0]
    c = np.linalg.solve(K_mm, K_lm.T @ signed)
    ours, theirs = model.decision_function(X), K_lm @ c + peer.intercept_
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert model.expansion_.n_vectors == 60


def test_codings_and_shapes_are_those_of_svc(digits):
    X, y, X_test, y_test = digits
    rest = LowRankSVC(100, C=5.0, gamma=0.02, multi_class="ovr", random_state=0).fit(X, y)
    assert rest.expansion_.n_outputs == 10
    assert (rest.predict(X_test) == rest.decision_function(X_test).argmax(axis=1)).all()
    pairs = LowRankSVC(100, C=5.0, gamma=0.02, random_state=0).fit(X, y)
    assert pairs.decision_function(X_test).shape == (len(X_test), 10)
    assert pairs.set_params(decision_function_shape="ovo").decision_function(X_test).shape[1] == 45
    ties = pairs.set_params(decision_function_shape="ovr", break_ties=True)
    assert (ties.predict(X_test) == ties.decision_function(X_test).argmax(axis=1)).all()
    for model in (rest, ties):
        assert model.score(X_test, y_test) > 0.85
        assert (model.as_expansion().predict(X_test) == model.predict(X_test)).all()
        assert (compress(model, n_vectors=60).predict(X_test) == model.predict(X_test)).mean() > 0.9


@pytest.mark.parametrize("name", ["iris", "moons"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weights_are_repetitions(datasets, rng, name, multi_class, form):
    X, y = datasets[name]
    weights = rng.integers(0, 4, size=len(y))
    options = {"selection": form(X[::7]), "multi_class": multi_class, "gamma": 0.5, "tol": 1e-6}
    weighted = LowRankSVC(**options).fit(form(X), y, sample_weight=weights)
    repeated = LowRankSVC(**options).fit(form(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    expected = repeated.decision_function(X)
    assert weighted.decision_function(X) == pytest.approx(expected, abs=1e-3 * np.abs(expected).max())
    assert np.abs(LowRankSVC(**options).fit(form(X), y).decision_function(X) - expected).max() > 1e-2


def test_class_weights_are_weights_of_rows(datasets):
    X, y = datasets["iris"]
    factors = {0: 1.0, 1: 0.2, 2: 5.0}
    options = {"selection": X[::5], "gamma": 0.5, "tol": 1e-6}
    by_class = LowRankSVC(class_weight=factors, **options).fit(X, y)
    by_row = LowRankSVC(**options).fit(X, y, sample_weight=[factors[label] for label in y])
    assert by_class.decision_function(X) == pytest.approx(by_row.decision_function(X), abs=1e-9)
    assert by_class.class_weight_.tolist() == [1.0, 0.2, 5.0]
    with pytest.raises(ValueError, match="class 2 are all zero"):
        LowRankSVC(10, class_weight={2: 0.0}).fit(X, y)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_points_are_rows_that_count_and_follow_the_seed(datasets, selection):
    X, y = datasets["iris"]
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weights > 0
    model = LowRankSVC(12, selection=selection, gamma=0.5, random_state=3)
    weighted = model.fit(X, y, sample_weight=weights)
    if weighted.indices_ is not None:
        assert kept[weighted.indices_].all()
        assert (X[weighted.indices_] == weighted.expansion_.vectors).all()
    absent = LowRankSVC(12, selection=selection, gamma=0.5, random_state=3).fit(X[kept], y[kept])
    assert weighted.expansion_ == absent.expansion_


def test_without_a_seed_the_points_are_drawn_again(datasets):
    X, y = datasets["cancer"]
    drawn = {tuple(LowRankSVC(8).fit(X, y).indices_) for _ in range(3)}
    assert len(drawn) == 3
    same = {tuple(LowRankSVC(8, random_state=1).fit(X, y).indices_) for _ in range(2)}
    assert len(same) == 1


@pytest.mark.parametrize("form", [np.float64, np.float32, sp.csr_array], ids=["double", "single", "sparse"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 500.0])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_scales_and_precisions(datasets, form, scale, C):
    X, y = datasets["iris"]
    plain = LowRankSVC(selection=X[::4], C=C, gamma=0.7, max_iter=20_000)
    scaled = LowRankSVC(selection=form(X[::4] * scale), C=C, gamma=0.7 / scale**2, max_iter=20_000)
    plain.fit(X, y)
    scaled.fit(form(X * scale), y)
    values = scaled.decision_function(form(X * scale))
    assert np.isfinite(values).all()
    # Where the points alone fix the solution; a huge C magnifies what single precision leaves of a row.
    assert (scaled.predict(form(X * scale)) == plain.predict(X)).mean() > (0.9 if C > 1.0 else 0.98)


def test_one_column_and_many_classes():
    X, y = make_blobs(600, 1, centers=np.arange(20)[:, None], cluster_std=0.05, random_state=0)
    for multi_class in ("ovo", "ovr"):
        model = LowRankSVC(60, C=100.0, gamma=4.0, multi_class=multi_class, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.95
        assert model.classes_.size == 20


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, r"C=0\.0"),
        ({"class_weight": "even"}, r"class_weight='even'"),
        ({"multi_class": "ova"}, r"multi_class='ova' .*'ovo', 'ovr'"),
        ({"multi_class": "ovr", "decision_function_shape": "ovo"}, r"decision_function_shape='ovo'"),
        ({"break_ties": 1}, r"break_ties=1"),
        ({"max_iter": 0}, r"max_iter=0 .*-1 for no limit"),
        ({"max_time": -1.0}, r"max_time=-1\.0"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(datasets, params, message):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match=message):
        LowRankSVC(10, **params).fit(X, y)


def test_a_fit_that_ends_early_warns(datasets):
    X, y = datasets["cancer"]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = LowRankSVC(30, C=1e4, tol=1e-6, max_iter=3, random_state=0).fit(X, y)
    assert model.fit_status_ == 1
    assert model.n_iter_.max() <= 3


def test_weights_agree_with_least_squares_in_what_they_mean(datasets):
    """Both families leave rows of weight 0 out altogether."""
    X, y = datasets["moons"]
    weights = (np.arange(len(y)) % 2).astype(float)
    kept = weights > 0
    for model in (LowRankSVC(selection=X[:20], gamma=1.0, tol=1e-6), RLSClassifier(gamma=1.0)):
        weighted = model.fit(X, y, sample_weight=weights).decision_function(X)
        assert weighted == pytest.approx(model.fit(X[kept], y[kept]).decision_function(X), abs=1e-6)
