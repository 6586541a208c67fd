"""Average gradient outer products against naive sums in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from svmarrow import KernelExpansion
from svmarrow.expansion import gradients as module
from svmarrow.expansion.gradients import gradient_outer_product, gradients

N, M, D, Q = 17, 29, 5, 3


def expansion(kernel="rbf", kind=np.float64, sparse=False, **about):
    rng = np.random.default_rng(0)
    Z = (rng.normal(size=(M, D)) * (rng.random((M, D)) < 0.6)).astype(kind)
    given = {"gamma": 0.3, "coef0": 0.7, "degree": 3, **about}
    vectors = sp.csr_array(Z) if sparse else Z
    return KernelExpansion(vectors, rng.normal(size=(M, Q)), rng.normal(size=Q), kernel, **given)


def rows(kind=np.float64, sparse=False):
    X = (np.random.default_rng(1).normal(size=(N, D)) + 0.5).astype(kind)
    return sp.csr_array(X) if sparse else X


def naive(model, X):
    """Gradients (n, q, d) by one loop for each sum of the formula."""
    Z = model.vectors.toarray() if sp.issparse(model.vectors) else model.vectors
    X = X.toarray() if sp.issparse(X) else X
    Z, X = Z.astype(np.float64), X.astype(np.float64)
    B, gamma = model.coefficients, model.gamma
    out = np.zeros((len(X), B.shape[1], X.shape[1]))
    for n, x in enumerate(X):
        for z, b in zip(Z, B, strict=True):
            if model.kernel == "rbf":
                slope = -2.0 * gamma * np.exp(-gamma * np.sum((x - z) ** 2)) * (x - z)
            elif model.kernel.startswith("matern"):
                nu = {"matern32": 1.5, "matern52": 2.5}[model.kernel]
                a = np.sqrt(2.0 * nu) * gamma * np.linalg.norm(x - z)
                polynomial = 3.0 if nu == 1.5 else 5.0 / 3.0 * (1.0 + a)
                slope = -(gamma**2) * polynomial * np.exp(-a) * (x - z)
            elif model.kernel == "linear":
                slope = z
            else:
                inner = gamma * (x @ z) + model.coef0
                slope = model.degree * gamma * inner ** max(model.degree - 1, 0) * z
            out[n] += b[:, np.newaxis] * slope
    return out


FORMS = [
    pytest.param(np.float64, False, 1e-11, id="double"),
    pytest.param(np.float32, False, 1e-11, id="single"),
    pytest.param(np.float64, True, 1e-11, id="sparse"),
]
KERNELS = [
    ("rbf", {}),
    ("matern32", {}),
    ("matern52", {}),
    ("linear", {}),
    ("poly", {}),
    ("poly", {"degree": 1}),
    ("poly", {"degree": 0}),
]


@pytest.mark.parametrize(("kind", "sparse", "tolerance"), FORMS)
@pytest.mark.parametrize(("kernel", "about"), KERNELS)
def test_gradients_are_those_of_the_formula(kernel, about, kind, sparse, tolerance):
    model, X = expansion(kernel, kind, sparse, **about), rows(kind, sparse)
    expected = naive(model, X)
    scale = max(np.abs(expected).max(), 1.0)
    assert gradients(model, X) == pytest.approx(expected, abs=tolerance * scale)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "poly"])
def test_gradients_are_those_of_the_outputs(kernel):
    model, X, step = expansion(kernel), rows(), 1e-6
    moved = [
        (model.decision_function(X + step * unit) - model.decision_function(X - step * unit)) / (2 * step)
        for unit in np.eye(D)
    ]
    expected = np.stack(moved, axis=2)
    assert gradients(model, X) == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("weights", [None, np.arange(N) / 3.0])
@pytest.mark.parametrize("full", [False, True])
def test_outer_product_is_the_mean(full, weights):
    model, X = expansion(), rows()
    each = np.einsum("nqd,nqe->nde", naive(model, X), naive(model, X))
    expected = np.average(each, axis=0, weights=weights)
    found = gradient_outer_product(model, X, weights, full=full)
    assert found == pytest.approx(expected if full else np.diag(expected), rel=1e-10)


def test_blocks_change_nothing(monkeypatch):
    model, X = expansion(), rows()
    whole = gradient_outer_product(model, X, full=True)
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 4 * Q * D)
    monkeypatch.setattr(module, "_MAX_COLUMNS", 2 * Q)
    assert gradient_outer_product(model, X, full=True) == pytest.approx(whole, rel=1e-12)


def test_columns_far_from_zero_lose_no_digits():
    model, X = expansion(), rows()
    far = model.replaced(vectors=model.vectors + 1e6)
    assert gradients(far, X + 1e6) == pytest.approx(naive(model, X), abs=1e-7)


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(2)
    model = KernelExpansion(rng.normal(size=(900, 8)), rng.normal(size=(900, 3)), np.zeros(3), gamma=0.1)
    X = rng.normal(size=(2000, 8))
    one = gradient_outer_product(model, X, full=True, n_jobs=1)
    assert all(np.array_equal(one, gradient_outer_product(model, X, full=True, n_jobs=n)) for n in (2, 5))


@pytest.mark.parametrize("kernel", ["laplacian", "chi2", "sigmoid", "matern12"])
def test_other_kernels_are_refused(kernel):
    model = KernelExpansion(np.ones((2, 2)), np.ones((2, 1)), 0.0, kernel)
    with pytest.raises(
        ValueError, match=f"kernel='{kernel}' .* must be one of rbf, matern32, matern52, linear"
    ):
        gradients(model, np.ones((1, 2)))
