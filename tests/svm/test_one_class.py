"""OneClassSVM: at most a share nu of the training weight lies outside, for every nu and way to predict."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import make_blobs

from helpers import reference
from svmarrow import OneClassSVM, as_expansion, load, patch_sklearn, save, unpatch_sklearn

KINDS = ("normal", "uniform", "clusters", "duplicates", "float32", "sparse", "integers", "distant")
NUS = (1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.9)


def samples(kind, n, d, rng):
    match kind:
        case "uniform":
            return rng.uniform(size=(n, d))
        case "clusters":
            return 0.1 * rng.normal(size=(n, d)) + 3.0 * rng.integers(0, 4, size=(n, 1))
        case "duplicates":
            return rng.normal(size=(max(n // 7, 1), d))[rng.integers(0, max(n // 7, 1), size=n)]
        case "float32":
            return (10.0 * rng.normal(size=(n, d)) + 5.0).astype(np.float32)
        case "sparse":
            return sp.random_array((n, d + 8), density=0.2, random_state=rng, format="csr")
        case "integers":
            return rng.integers(0, 4, size=(n, d)).astype(np.uint8)
        case "distant":
            X = rng.normal(size=(n, d))
            X[:3] *= 1e3
            return X
    return rng.normal(size=(n, d))


def labels(model, X, path):
    """The labels of every way to predict the same samples."""
    found = {"predict": model.predict(X), "threads": model.set_params(n_jobs=2).predict(X)}
    save(model, path)
    found["loaded"] = load(path).predict(X)
    expansion = as_expansion(model)
    found["expansion"] = expansion.predict(X)
    if sp.issparse(X):
        found |= {"dense": model.predict(X.toarray()), "sparse single": model.predict(X.astype(np.float32))}
    else:
        compiled = model.compiled()
        found["compiled"] = np.array([compiled.predict(row) for row in X.tolist()])
        found["double"] = model.predict(X.astype(np.float64))
        found["single"] = model.predict(X.astype(np.float32))
        found["expansion, single"] = expansion.predict(X.astype(np.float32))
    return found


def check_share(kind, nu, seed, path):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 500)), int(rng.integers(1, 12))
    X = samples(kind, n, d, rng)
    weights = rng.uniform(0.1, 3.0, size=n) if seed % 2 else None
    total = n if weights is None else weights.sum()
    kernel = ("rbf", "rbf", "linear", "poly", "laplacian", "sigmoid")[seed % 6]
    if kind == "distant" and kernel == "poly":
        kernel = "matern32"  # Values of 1e12 exceed the digits of double precision.
    gamma = "scale" if seed % 3 else 10.0 ** rng.uniform(-2, 1.5)
    model = OneClassSVM(nu=nu, kernel=kernel, gamma=gamma, degree=2, coef0=float(kernel == "poly"))
    model.fit(X, sample_weight=weights)
    for name, found in labels(model, X, path).items():
        outside = np.average(found == -1, weights=weights)
        assert outside <= nu * (1.0 + 1e-9), f"{name}: {outside}"
    assert model.dual_coef_.sum() == pytest.approx(nu * total, rel=1e-9)
    certificate = model.certificate_
    assert certificate.stop == "converged"
    assert certificate.violation <= model.tol * min(1.0, nu * total)


@pytest.mark.quick_every(4)
@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("kind", KINDS)
def test_at_most_a_share_nu_is_outside(kind, nu, tmp_path):
    for seed in range(5):
        check_share(kind, nu, 10 * seed + NUS.index(nu), tmp_path / "model.safetensors")


@pytest.mark.parametrize("nu", [1e-12, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("gamma", [0.3, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_nu_has_the_optimum_of_the_naive_solver(nu, gamma, weighted):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 3))
    weights = rng.uniform(0.2, 2.0, size=80) if weighted else np.ones(80)
    model = OneClassSVM(nu=nu, gamma=gamma, tol=1e-7).fit(X, sample_weight=weights)
    K = reference.kernel(("rbf", gamma, 0.0, 1), X, X)
    beta, highest, lowest = reference.solve_one_class(K, weights, nu)
    total = nu * weights.sum()
    optimum = 0.5 * beta @ K @ beta
    certificate = model.certificate_
    assert certificate.stop == "converged"
    assert -certificate.dual == pytest.approx(optimum, rel=1e-5)
    assert certificate.dual <= -optimum * (1 - 1e-12)
    assert certificate.primal >= -optimum * (1 + 1e-6)
    assert model.score_samples(X) == pytest.approx(K @ beta, abs=1e-5 * total)
    # The offset lies within the interval of the optimal ones.
    interval = sorted((highest, lowest))
    assert interval[0] - 1e-5 * total <= model.offset_[0] <= interval[1] + 1e-5 * total


def test_a_machine_of_tiny_nu_is_hard():
    X = np.random.default_rng(0).uniform(size=(2000, 4))
    assert (OneClassSVM(nu=1e-6).fit(X).predict(X) == 1).all()
    models = [OneClassSVM(nu=nu, tol=1e-6).fit(X) for nu in (1e-4, 1e-6, 1e-9)]
    for model in models:
        assert (model.predict(X) == 1).all()
        certificate = model.certificate_
        assert certificate.stop == "converged"
        assert certificate.gap <= 1e-3 * abs(certificate.primal)
    # Outputs scale with nu.
    first, *others = (model.decision_function(X) / model.nu for model in models)
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-4 * np.ptp(first))


def test_coefficients_keep_their_bits_in_units_of_a_power_of_two():
    X, _ = make_blobs(300, centers=2, random_state=0)
    fits = [
        OneClassSVM(nu=0.003, gamma=0.3, tol=1e-5).fit(X, sample_weight=np.full(300, w))
        for w in (1.0, 2.0**-30)
    ]
    np.testing.assert_array_equal(fits[0].dual_coef_ * 2.0**-30, fits[1].dual_coef_)
    assert fits[0].support_.tolist() == fits[1].support_.tolist()
    assert fits[1].certificate_.gap == pytest.approx(fits[0].certificate_.gap * 2.0**-60, rel=1e-6)


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"max_iter": 30}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_bound_holds_for_fits_that_ended_early(limit):
    X = np.random.default_rng(1).normal(size=(600, 3))
    model = OneClassSVM(nu=0.1, gamma=1.0, **limit).fit(X)
    assert model.certificate_.stop == "max_iter"
    assert (model.predict(X) == -1).mean() <= 0.1


# Where the offset that keeps the bound is as large as the objective, the fit has stalled.
@pytest.mark.filterwarnings("ignore:OneClassSVM ended before")
@pytest.mark.parametrize("kernel", ["linear", "precomputed", lambda A, B: A @ B.T])
@pytest.mark.parametrize("nu", [1e-3, 0.1, 0.6])
def test_given_kernels_and_a_solution_of_zero(kernel, nu):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 3))
    # The samples surround the origin: the linear kernel separates nothing from it.
    rows = X @ X.T if kernel == "precomputed" else X
    model = OneClassSVM(nu=nu, kernel=kernel).fit(rows)
    assert (model.predict(rows) == -1).mean() <= nu
    # All outputs are equal.
    zeros = OneClassSVM(nu=nu, kernel="linear").fit(np.zeros((50, 2)))
    assert (zeros.predict(np.zeros((50, 2))) == 1).all()
    assert zeros.decision_function(np.zeros((1, 2))) == 0.0


def test_all_samples_may_be_at_their_bounds():
    X = np.random.default_rng(3).normal(size=(60, 2))
    model = OneClassSVM(nu=1.0).fit(X)
    assert model.certificate_.stop == "converged"
    assert model.n_support_[0] == 60


def test_the_patched_class_keeps_the_bound():
    X = np.random.default_rng(4).normal(size=(500, 2))
    patch_sklearn("OneClassSVM")
    try:
        for nu in (1e-6, 0.05):
            model = sklearn.svm.OneClassSVM(nu=nu).fit(X)
            assert hasattr(model, "certificate_")
            assert (model.predict(X) == -1).mean() <= nu
            assert (model.decision_function(X) < 0.0).mean() <= nu
    finally:
        unpatch_sklearn()
