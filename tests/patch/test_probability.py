"""Probabilities of the drop-in replacements, against their definitions and scikit-learn's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import svm as peers
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

import svmarrow
from svmarrow import _core
from svmarrow.models.outputs import coupled, sigmoid
from svmarrow.patch import svm
from svmarrow.patch.svm import FOLDS, deal, out_of_fold

# scikit-learn 1.9 deprecates the parameter, older versions do not.
pytestmark = pytest.mark.filterwarnings("ignore:.*prob.*:FutureWarning")

X, Y = load_iris(return_X_y=True)


def noisy(seed, k=2, n=400):
    return make_classification(
        n, 6, n_informative=4, n_classes=k, flip_y=0.2, weights=[0.7] if k == 2 else None, random_state=seed
    )


@pytest.mark.parametrize("seed", range(5))
def test_sigmoids_are_optimal(seed):
    rng = np.random.default_rng(seed)
    first = rng.random(200) < 0.3
    outputs = 2.0 * first - 1.0 + rng.normal(size=200) * 10.0 ** (seed - 2)
    weights = rng.integers(0, 3, 200).astype(float)
    weights[:2], first[:2] = 1.0, (True, False)
    ones, zeros = weights[first].sum(), weights[~first].sum()
    targets = np.where(first, (ones + 1) / (ones + 2), 1 / (zeros + 2))

    def loss(AB):
        z = AB[0] * outputs + AB[1]
        return weights @ (np.logaddexp(0, -z) + targets * z) + 0.5 * 0.03 * weights.sum() * AB[1] ** 2

    found = sigmoid(outputs, first, weights)
    best = minimize(
        loss,
        [-1.0, 0.0],
        method="Nelder-Mead",
        bounds=[(None, 0.0), (None, None)],
        options={"xatol": 1e-10, "fatol": 1e-10},
    )
    assert loss(found) <= best.fun + 1e-7
    repeated = np.repeat(np.arange(200), weights.astype(int))
    again = sigmoid(outputs[repeated], first[repeated], np.ones(repeated.size))
    np.testing.assert_allclose(found, again, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_sigmoids_of_contradicting_outputs_are_constant(seed):
    rng = np.random.default_rng(seed)
    first = rng.random(100) < 0.3
    outputs, weights = rng.normal(size=100) - first, rng.random(100)
    A, B = sigmoid(outputs, first, weights)
    assert A == 0.0
    ones, zeros = weights[first].sum(), weights[~first].sum()
    target = ones * (ones + 1) / (ones + 2) + zeros / (zeros + 2)
    # The derivative of the loss by B, with its penalty.
    assert target - (ones + zeros) * (expit(-B) - 0.03 * B) == pytest.approx(0.0, abs=1e-4)
    slope, _ = _core.fit_sigmoid(outputs, first, weights, 0.0)
    assert slope > 0.0
    model = svmarrow.as_expansion(svmarrow.SVC().fit(X[:100], Y[:100]))
    assert model.calibrated(X[:100], 1 - Y[:100]).calibration.slopes.tolist() == [0.0]


def test_sigmoids_of_separated_and_equal_outputs():
    outputs, first = np.array([5e3, 6e3, -4e3, -9e3]), np.array([True, True, False, False])
    A, B = sigmoid(outputs, first, np.ones(4))
    assert A < 0
    p = expit(-(A * outputs + B))
    assert ((p > 0.5) == first).all()
    assert np.isfinite(sigmoid(np.zeros(4), first, np.ones(4))).all()


@pytest.mark.parametrize("k", [3, 4, 7])
def test_pairs_are_coupled_exactly(k):
    rng = np.random.default_rng(k)
    a, b = np.triu_indices(k, 1)
    p = rng.dirichlet(np.ones(k), 20)
    r = p[:, a] / (p[:, a] + p[:, b])
    np.testing.assert_allclose(coupled(r, k), p, atol=1e-5)
    outputs = rng.normal(size=(3, a.size))
    r = expit(outputs)
    for row, found in zip(r, coupled(expit(outputs), k), strict=True):

        def contradiction(p, row=row):
            return (((1 - row) * p[a] - row * p[b]) ** 2).sum()

        best = minimize(
            contradiction,
            np.full(k, 1 / k),
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            tol=1e-12,
        )
        assert contradiction(found) <= best.fun + 1e-9
        assert found.sum() == pytest.approx(1.0)


def test_every_class_is_dealt_out_evenly():
    labels = np.repeat([0, 1, 2], [52, 7, 3])
    folds = deal(labels, np.random.RandomState(0))
    assert np.ptp(np.bincount(folds, minlength=FOLDS)) <= 1
    for label in range(3):
        assert np.ptp(np.bincount(folds[labels == label], minlength=FOLDS)) <= 1


@pytest.mark.parametrize("k", [2, 3])
def test_outputs_are_those_of_machines_that_have_not_seen_the_row(k):
    X, y = noisy(0, k, 120)
    weights = np.linspace(0.5, 2.0, 120)
    full = svmarrow.SVC(gamma=0.2, tol=1e-9).fit(X, y, weights)
    folds = deal(y, np.random.RandomState(1))
    machine = svmarrow.SVC(gamma=0.2, tol=1e-9)
    found = out_of_fold(machine, full.expansion_, full.support_, X, y, folds, weights)
    for fold in range(FOLDS):
        out = folds == fold
        alone = svmarrow.SVC(gamma=0.2, tol=1e-9, decision_function_shape="ovo")
        expected = alone.fit(X[~out], y[~out], weights[~out]).decision_function(X[out])
        expected = -expected[:, None] if k == 2 else expected
        np.testing.assert_allclose(found[out], expected, atol=1e-5)


def test_a_class_in_one_fold_alone_leaves_its_rows_to_the_other_side():
    X, y = noisy(0, 2, 60)
    y[:] = 0
    y[0] = 1
    full = svmarrow.SVC().fit(X, y)
    folds = deal(y, np.random.RandomState(0))
    found = out_of_fold(svmarrow.SVC(), full.expansion_, full.support_, X, y, folds, np.ones(60))
    assert (found[folds == folds[0], 0] == 1.0).all()
    p = svm.SVC(probability=True).fit(X, y).predict_proba(X)
    assert np.isfinite(p).all()


@pytest.mark.parametrize("kind", ["SVC", "NuSVC"])
def test_probabilities_are_reproducible_and_those_of_the_fit(kind):
    make = getattr(svm, kind)
    first = make(probability=True, random_state=3).fit(X, Y)
    p = first.predict_proba(X)
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p, make(probability=True, random_state=3).fit(X, Y).predict_proba(X))
    np.testing.assert_array_equal(p, pickle.loads(pickle.dumps(first)).predict_proba(X))
    np.testing.assert_allclose(np.exp(first.predict_log_proba(X)), p)
    assert (p != make(probability=True, random_state=4).fit(X, Y).predict_proba(X)).any()
    # The machine itself is that without probabilities.
    np.testing.assert_array_equal(first.decision_function(X), make().fit(X, Y).decision_function(X))


@pytest.mark.parametrize("form", ["sparse", "precomputed", "function", "frame of strings"])
def test_probabilities_of_rows_in_every_form(form):
    labels = np.array(["setosa", "versicolor", "virginica"])[Y]
    rows, kernel = {
        "sparse": (sp.csr_matrix(X), "linear"),
        "precomputed": (X @ X.T, "precomputed"),
        "function": (X, lambda A, B: A @ B.T),
        "frame of strings": (X.tolist(), "linear"),
    }[form]
    plain = svm.SVC(kernel="linear", probability=True, random_state=0).fit(X, labels)
    other = svm.SVC(kernel=kernel, probability=True, random_state=0).fit(rows, labels.tolist())
    np.testing.assert_allclose(other.predict_proba(rows), plain.predict_proba(X), atol=1e-3)


def test_rows_without_weight_take_no_part():
    weights = np.ones(150)
    weights[::4] = 0.0
    weights[1::4] = -1.0
    some = weights > 0
    left = svm.SVC(probability=True, random_state=0, gamma=0.5).fit(X, Y, weights)
    alone = svm.SVC(probability=True, random_state=0, gamma=0.5).fit(X[some], Y[some])
    np.testing.assert_allclose(left.predict_proba(X), alone.predict_proba(X), atol=1e-6)


def test_a_nu_that_no_fold_can_meet():
    y = (np.arange(150) < 40).astype(int)
    nu = 2 * 40 / 150
    p = svm.NuSVC(nu=nu, probability=True, random_state=0).fit(X, y).predict_proba(X)
    assert ((p[:, 1] > 0.5) == y).mean() > 0.9


@pytest.mark.parametrize("k", [2, 4])
def test_as_good_as_scikit_learns_and_closer_to_predict(k):
    ours, theirs, apart = [], [], np.zeros(2)
    for seed in range(4):
        X, y = noisy(seed, k, 800)
        for kind, losses, who in ((svm.SVC, ours, 0), (peers.SVC, theirs, 1)):
            svc = kind(C=10.0, probability=True, random_state=seed).fit(X[:400], y[:400])
            p = svc.predict_proba(X[400:])
            losses.append(log_loss(y[400:], p))
            apart[who] += (p.argmax(axis=1) != svc.predict(X[400:])).sum()
    assert np.mean(ours) < np.mean(theirs) * 1.01
    assert apart[0] < apart[1]


def test_digits():
    X, y = load_digits(return_X_y=True)
    svc = svm.SVC(probability=True, random_state=0, C=10.0).fit(X[:900], y[:900])
    p = svc.predict_proba(X[900:])
    assert (p.argmax(axis=1) == y[900:]).mean() > 0.95
    assert log_loss(y[900:], p) < 0.25


def test_without_probability():
    svc = svm.SVC().fit(X, Y)
    assert not hasattr(svc, "predict_proba")
    svc.probability = True
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        svc.predict_proba(X)
    with pytest.raises(TypeError, match="probability"):
        svmarrow.SVC(probability=True)
    assert "CalibratedClassifierCV" in svmarrow.SVC.__doc__
