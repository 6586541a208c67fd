"""A large machine starts from a sample of its rows: another way to the same solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

from svmarrow import SVC, SVR

ROWS = 8000


def _moons():
    X, y = make_moons(ROWS, noise=0.6, random_state=3)
    return X.astype(np.float32), y


def _fitted(model, X, y, sampled, **given):
    model._tuning = {"min_subsampled": sampled}
    return model.fit(X, y, **given)


def _classifier(**more):
    return SVC(**{"C": 2.0, "gamma": 0.2, "tol": 1e-4, **more})


def _outputs(model, X):
    return model.predict(X) if isinstance(model, SVR) else model.decision_function(X)


def _three(X, y):
    return X, np.where(X[:, 0] > 1.2, 2, y).astype(str)


CASES = {
    "two classes": (_classifier(), {}),
    "C times 500": (_classifier(C=1000.0, gamma=0.02), {}),
    "without intercept": (_classifier(fit_intercept=False), {}),
    "weights": (_classifier(), {"sample_weight": np.random.default_rng(0).uniform(0.1, 3, ROWS)}),
    "weights of classes": (_classifier(class_weight={0: 0.1, 1: 4.0}), {}),
    "one against one": (_classifier(), {}),
    "one against the rest": (_classifier(multi_class="ovr"), {}),
    "linear": (_classifier(kernel="linear", C=0.01), {}),
    "laplacian": (_classifier(kernel="laplacian"), {}),
    "regression with weights": (
        SVR(C=2.0, gamma=0.2, epsilon=0.1, tol=1e-4),
        {"sample_weight": np.random.default_rng(1).uniform(0.1, 3, ROWS)},
    ),
    "regression": (SVR(C=2.0, gamma=0.2, epsilon=0.1, tol=1e-4), {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["float32", "float64", "sparse"])
def test_the_solution_is_that_of_a_fit_from_nothing(name, kind):
    model, given = CASES[name]
    X, y = _moons()
    if "one against" in name:
        X, y = _three(X, y)
    if kind == "sparse":
        X = sparse.csr_array(X)
    X = X.astype(np.float64) if kind == "float64" else X
    from_nothing = _fitted(model, X, y, ROWS + 1, **given)
    expected = _outputs(from_nothing, X)
    before, steps = model.certificate_, np.sum(model.n_iter_)
    _fitted(model, X, y, 5000, **given)
    assert model.certificate_.stop == "converged"
    # Objectives are lowered by what rounding may have done to them, a few millionths.
    assert model.certificate_.dual == pytest.approx(before.dual, rel=5e-6)
    for one, other in zip(before.machines, model.certificate_.machines, strict=True):
        assert max(one.dual, other.dual) <= min(one.primal, other.primal)
    assert np.sum(model.n_iter_) != steps
    # Sums of coefficients of 1,000 are single precision in predictions.
    assert np.abs(_outputs(model, X) - expected).max() < 2e-2 * np.abs(expected).max()


def test_many_unbounded_vectors_are_detected_in_the_smallest_sample():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 12)).astype(np.float32)
    y = X[:, 0] * X[:, 1] > 0
    plain = _fitted(_classifier(C=100.0, gamma=0.2), X, y, 10**9)
    assert (np.abs(plain.dual_coef_) < 100).mean() > 0.9
    tried = _fitted(_classifier(C=100.0, gamma=0.2), X, y, 500)
    # Not a bit of the solution is another: only the steps of the smallest sample have been added.
    np.testing.assert_array_equal(tried.dual_coef_, plain.dual_coef_)
    assert plain.n_iter_[0] < tried.n_iter_[0] < 1.2 * plain.n_iter_[0]


def test_a_limit_of_steps_is_a_limit_of_steps_of_the_machine():
    X, y = _moons()
    with pytest.warns(match="max_iter"):
        model = _fitted(_classifier(max_iter=50), X, y, 5000)
    assert model.n_iter_[0] <= 50


def test_a_class_that_the_sample_misses_is_learned_all_the_same():
    X, y = _moons()
    X[0], y[:] = (5, 5), np.arange(ROWS) == 0
    model = _fitted(_classifier(gamma=2.0), X, y, 5000)
    assert (model.predict(X) == y).all()


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_no_bit_depends_on_the_threads(n_jobs):
    X, y = _moons()
    one = _fitted(_classifier(n_jobs=1), X, y, 5000)
    more = _fitted(_classifier(n_jobs=n_jobs), X, y, 5000)
    assert one.certificate_.machines == more.certificate_.machines
    np.testing.assert_array_equal(one.dual_coef_, more.dual_coef_)
