"""Kernel matching pursuit against figures 1 and 3, scikit-learn's OMP, and its own promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import OrthogonalMatchingPursuit

import reference
from marrow import KMPClassifier, KMPRegressor, compress, load
from marrow.io import load_libsvm_model, save_libsvm_model

RBF = ("rbf", 0.5, 0.0, 3)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=120)
    return X, y, np.column_stack([y, X[:, 2] ** 2, np.tanh(X[:, 0])])


@pytest.mark.parametrize("variant", ["prefit", "backfit"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_is_that_of_the_figure(problem, variant, constant, several, weighted):
    X, y, Y = problem
    targets = Y if several else y
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X)) if weighted else None
    K = reference.kernel(RBF, X, X)
    order, steps = reference.matching_pursuit(K, targets, 15, variant, constant, weights)
    model = KMPRegressor(15, variant=variant, gamma=0.5, fit_intercept=constant)
    model.fit(X, targets, sample_weight=weights)
    assert model.support_.tolist() == order.tolist()
    for size in (1, 7, 15):
        small = model.path_[size]
        expected = steps[size - 1 + constant]
        assert small.expansion_.coefficients == pytest.approx(expected[int(constant) :], abs=1e-7)
        if constant:
            assert small.intercept_ == pytest.approx(expected[0], abs=1e-7)
    assert model.predict(X).shape == targets.shape


def test_back_fitting_is_orthogonal_matching_pursuit(problem):
    X, y, _ = problem
    K = reference.kernel(RBF, X, X)
    # scikit-learn compares products alone, so its columns must have length one for the same choice.
    scaled = K / np.linalg.norm(K, axis=0)
    peer = OrthogonalMatchingPursuit(n_nonzero_coefs=20, fit_intercept=False).fit(scaled, y)
    model = KMPRegressor(20, variant="backfit", gamma=0.5, fit_intercept=False).fit(X, y)
    assert sorted(model.support_) == np.flatnonzero(peer.coef_).tolist()
    assert model.predict(X) == pytest.approx(peer.predict(scaled), abs=1e-8)


@pytest.mark.parametrize("variant", ["prefit", "backfit"])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_residuals_are_orthogonal_to_the_chosen_columns(problem, variant, precision):
    X, _, Y = problem
    model = KMPRegressor(40, variant=variant, gamma=0.5, precision=precision).fit(X, Y)
    D = np.column_stack([np.ones(len(X)), reference.kernel(RBF, X, X[model.support_])])
    residual = Y - model.predict(X)
    cosine = (D.T @ residual) / np.outer(np.linalg.norm(D, axis=0), np.linalg.norm(residual, axis=0))
    assert np.abs(cosine).max() < 1e-10
    assert (np.diff(model.path_.training_loss) < 0).all()


def test_pre_fitting_leaves_the_least_of_all_single_steps(problem):
    """Invariant of pre-fitting: no other function would have left a smaller residual at any step."""
    X, y, _ = problem
    model = KMPRegressor(6, gamma=0.5, fit_intercept=False).fit(X, y)
    K = reference.kernel(RBF, X, X)
    for step in range(6):
        chosen = model.support_[:step].tolist()
        left = [
            np.linalg.norm(y - K[:, [*chosen, p]] @ np.linalg.lstsq(K[:, [*chosen, p]], y)[0])
            for p in range(len(X))
            if p not in chosen
        ]
        assert model.path_.training_loss[step + 1] == pytest.approx(0.5 * min(left) ** 2 / len(X), rel=1e-9)


def test_classifier_joint_over_classes(datasets):
    X, y = datasets["digits"]
    model = KMPClassifier(150, gamma=0.05).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.93
    assert model.expansion_.n_outputs == 10
    T = np.where(y[:600, None] == np.arange(10), 1.0, -1.0)
    K = reference.kernel(("rbf", 0.05, 0.0, 3), X[:600], X[:600])
    order, _ = reference.matching_pursuit(K, T, 30, "prefit", constant=True)
    assert model.support_[:30].tolist() == order.tolist()


def test_path(datasets):
    X, y = datasets["moons"]
    model = KMPClassifier(40, gamma=2.0).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    path = model.path_
    assert path.sizes.tolist() == list(range(41))
    scores = path.scores(X[400:], y[400:])
    assert scores == pytest.approx(1.0 - path.validation_error)
    for size in (0, 3, 40):
        small = path[size]
        assert small.n_vectors_ == size
        assert small.score(X[400:], y[400:]) == pytest.approx(scores[size])
        targets = np.where(y[400:] == "right", 1.0, -1.0)
        loss = 0.5 * ((small.decision_function(X[400:]) - targets) ** 2).mean()
        assert path.validation_loss[size] == pytest.approx(loss)
    best = path.select(X[400:], y[400:])
    assert best.score(X[400:], y[400:]) == scores.max()
    for wrong, error in [(41, IndexError), (-1, IndexError), (2.5, TypeError)]:
        with pytest.raises(error, match="size="):
            path[wrong]


def test_goes_on_to_compression_and_files(datasets, tmp_path):
    X, y = datasets["iris"]
    model = KMPClassifier(30, gamma=2.0).fit(X, y)
    small = compress(model, 12)
    assert small.score(X, y) > 0.9
    model.save(tmp_path / "m.safetensors")
    assert (load(tmp_path / "m.safetensors").predict(X) == model.predict(X)).all()
    save_libsvm_model(model, tmp_path / "m.libsvm")
    again = load_libsvm_model(tmp_path / "m.libsvm", n_features=4)
    assert (again.predict(X) == model.predict(X)).mean() > 0.99
    regressor = KMPRegressor(10, gamma=2.0).fit(X, X[:, 0])
    save_libsvm_model(regressor, tmp_path / "r.libsvm")
    read = load_libsvm_model(tmp_path / "r.libsvm", n_features=4)
    assert read.decision_function(X)[:, 0] == pytest.approx(regressor.predict(X))


@pytest.mark.parametrize("kind", ["float32", "csr", "csr32"])
def test_layouts(problem, kind):
    X, y, _ = problem
    X = np.round(X, 2).astype(np.float32)
    plain = KMPRegressor(12, gamma=0.5).fit(X.astype(np.float64), y)
    rows = {"float32": X, "csr": sp.csr_array(X.astype(np.float64)), "csr32": sp.csr_array(X)}[kind]
    model = KMPRegressor(12, gamma=0.5).fit(rows, y)
    assert model.support_.tolist() == plain.support_.tolist()
    assert model.predict(rows) == pytest.approx(plain.predict(X.astype(np.float64)), abs=1e-4)
    assert model.expansion_.vectors.dtype == rows.dtype


def test_degenerate_dictionaries_end_cleanly():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    y = rng.normal(size=30)
    doubled = np.vstack([X, X])
    model = KMPRegressor(60, gamma=1.0, fit_intercept=False).fit(doubled, np.concatenate([y, y]))
    assert model.n_vectors_ <= 30
    assert len(set((model.support_ % 30).tolist())) == model.n_vectors_
    constant = KMPRegressor(5).fit(X, np.full(30, 3.5))
    assert constant.n_vectors_ == 0
    assert constant.predict(X[:2]) == pytest.approx([3.5, 3.5], rel=1e-14)
    zero = KMPRegressor(5, kernel="linear", fit_intercept=False).fit(np.zeros((9, 2)), np.arange(9.0))
    assert zero.n_vectors_ == 0
    assert KMPRegressor(50, candidates=4, random_state=0).fit(X, y).n_vectors_ == 4
    assert KMPRegressor(5, fit_intercept=False).fit(X, np.zeros(30)).n_vectors_ == 0
