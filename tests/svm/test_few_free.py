"""Large C with few free variables: pair steps do the rough work, a walk from face to face the rest."""

import numpy as np
import pytest
import sklearn.svm as peer
from sklearn.datasets import make_moons

from svmarrow import SVC, SVR, OneClassSVM

X, Y = make_moons(400, noise=0.3, random_state=4)
NUMBERS = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * np.random.default_rng(0).normal(size=400)
WEIGHTS = np.random.default_rng(1).uniform(0.2, 3.0, 400)


@pytest.mark.parametrize("gamma", [0.05, 0.5])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("ours", "theirs", "target"),
    [
        (SVC(C=1000.0), peer.SVC(C=1000.0), Y),
        (SVR(C=100.0), peer.SVR(C=100.0), NUMBERS),
        (SVR(C=100.0, epsilon=0.0), peer.SVR(C=100.0, epsilon=0.0), NUMBERS),
        (OneClassSVM(nu=0.05), peer.OneClassSVM(nu=0.05), None),
    ],
    ids=["classes", "numbers", "no tube", "one class"],
)
def test_it_is_the_same_solution(ours, theirs, target, gamma, weights):
    ours.set_params(gamma=gamma, tol=1e-5).fit(X, target, weights)
    theirs.set_params(gamma=gamma, tol=1e-6).fit(X, target, weights)
    told, known = (
        getattr(model, "decision_function" if hasattr(model, "decision_function") else "predict")(X)
        for model in (ours, theirs)
    )
    np.testing.assert_allclose(told, known, atol=2e-3 * max(1.0, np.abs(known).max()))


def test_without_an_intercept():
    """No sum is kept."""
    fitted = SVC(C=300.0, gamma=0.05, fit_intercept=False, tol=1e-5).fit(X, Y)
    (machine,) = fitted.certificate_.machines
    assert machine.stop == "converged"
    assert machine.gap < 1e-4 * machine.primal
    assert 0 < np.sum(np.abs(fitted.dual_coef_) < 300.0) < 48


def test_far_fewer_steps():
    ours, theirs = (machine(C=1e4, gamma=0.5).fit(X, Y) for machine in (SVC, peer.SVC))
    assert ours.n_iter_.sum() < theirs.n_iter_.sum() / 10, (ours.n_iter_, theirs.n_iter_)
