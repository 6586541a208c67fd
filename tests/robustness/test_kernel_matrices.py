"""Precomputed kernel matrices that are not symmetric: a solver reads either triangle, so they are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm as peers
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from helpers.data import KIND, STANDARD_IRIS
from helpers.estimators import QUICK, name_of, target
from svmarrow import SVC, CodedClassifier, OneClassSVM, RLSRegressor
from svmarrow._support.training import asymmetry
from svmarrow.exceptions import FallbackWarning
from svmarrow.least_squares import fit_targets
from svmarrow.patch import replacement, ridge, svm


def takes_matrices(estimator):
    rule = getattr(estimator, "_rules", {}).get("kernel")
    return rule is not None and rule.holds("precomputed")


WITH_MATRICES = [of for of in QUICK if takes_matrices(of)]
#: Classes whose kernel may be any function of two samples.
DICTIONARIES = {"KMPClassifier", "KMPRegressor"}
KERNEL = STANDARD_IRIS @ STANDARD_IRIS.T + 3.0 * np.eye(len(STANDARD_IRIS))


def unsymmetric(amount=0.5):
    K = KERNEL.copy()
    K[140, 7] += amount
    return K


@pytest.mark.parametrize("estimator", WITH_MATRICES, ids=name_of)
def test_every_estimator_refuses_an_unsymmetric_matrix(estimator):
    machine = clone(estimator).set_params(kernel="precomputed").fit(KERNEL, target(estimator))
    for K in (unsymmetric(), unsymmetric().astype(np.float32)):
        if type(estimator).__name__ in DICTIONARIES:
            machine.fit(K, target(estimator))
            continue
        with pytest.raises(ValueError, match=r"X\[140, 7\] = .* must be symmetric .* \(X \+ X\.T\) / 2"):
            machine.fit(K, target(estimator))
        with pytest.raises(ValueError, match="symmetric"):
            machine.fit(K.T, target(estimator))


def test_functions_of_matrices_refuse_too():
    with pytest.raises(ValueError, match="symmetric"):
        fit_targets(unsymmetric(), KIND.astype(float), kernel="precomputed")
    with pytest.raises(ValueError, match="symmetric"):
        CodedClassifier(SVC(kernel="precomputed")).fit(unsymmetric(), KIND)


def test_rounding_is_symmetric():
    single = KERNEL.astype(np.float32)
    text = np.array([[float(f"{value:.6g}") for value in row] for row in KERNEL])
    noise = np.random.default_rng(0).uniform(-1.0, 1.0, KERNEL.shape)
    largest = np.abs(KERNEL).max()
    for K in (
        single,
        text + 4e-6 * largest * noise,
        single + np.float32(4e-4 * largest) * noise.astype("f4"),
    ):
        SVC(kernel="precomputed").fit(K, KIND)
    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel="precomputed").fit(KERNEL + 1e-4 * largest * noise, KIND)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 300])
def test_every_position_is_compared(n):
    random = np.random.default_rng(n)
    A = random.normal(size=(n, n))
    K = A + A.T
    assert asymmetry(K, 0.0) is None
    for i, j in {(n - 1, 0), (n - 1, max(0, n - 2)), (n // 2, n // 3)}:
        if i == j:
            continue
        for place in ((i, j), (j, i)):
            other = K.copy()
            other[place] += 1.0
            assert asymmetry(other, 1e-5) in ((i, j), (j, i))
    huge = np.sign(K) * 1.7e308
    assert asymmetry(huge, 1e-5) is None
    if n > 1:
        huge[0, 1] = -huge[0, 1]
        assert asymmetry(huge, 1e-5) is not None


@pytest.mark.parametrize(
    ("ours", "peer"), [(svm.SVC, peers.SVC), (svm.SVR, peers.SVR), (ridge.KernelRidge, KernelRidge)]
)
def test_replacements_fall_back_with_a_warning(ours, peer, monkeypatch):
    # Each reason is reported once in a process.
    monkeypatch.setattr(replacement, "_REPORTED", set())
    y = KIND if peer is peers.SVC else KIND.astype(float)
    with pytest.warns(FallbackWarning, match="symmetric"):
        fitted = ours(kernel="precomputed").fit(unsymmetric(), y)
    assert np.array_equal(
        fitted.predict(KERNEL), peer(kernel="precomputed").fit(unsymmetric(), y).predict(KERNEL)
    )


def lopsided(A, B):
    return A @ B.T + 0.1 * A[:, :1] + 3.0 * (A[:, None] == B[None]).all(axis=2)


@pytest.mark.parametrize("machine", [SVC(), OneClassSVM(), RLSRegressor()], ids=str)
def test_a_kernel_function_is_checked_where_it_is_called_for_both_orders(machine):
    machine = clone(machine).set_params(kernel=lopsided)
    with pytest.raises(ValueError, match=r"kernel function returned .* symmetric"):
        machine.fit(STANDARD_IRIS, KIND)


@pytest.mark.parametrize("seed", range(3))
def test_a_symmetric_function_is_taken_in_any_order_of_the_samples(seed):
    """The solver sorts samples by class, which may leave the first and the last one at their places."""
    order = np.concatenate([[0], np.random.default_rng(seed).permutation(np.arange(1, 149))[:60], [149]])
    X, y = STANDARD_IRIS[order], KIND[order]
    function, linear = SVC(kernel=lambda A, B: A @ B.T).fit(X, y), SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(
        function.decision_function(X), linear.decision_function(X), atol=0.01, rtol=0.01
    )
