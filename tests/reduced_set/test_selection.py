"""Selections over the whole kernel matrix: lossless where promised, the papers' problems, their paths."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, KernelExpansion, SelectionSettings, compress, compression_path


@pytest.fixture(scope="module")
def noisy():
    """The data of TR-132, section 4.1: two clouds in 10 dimensions that overlap much."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = 4 * rng.standard_normal((600, 10)) + np.where(y == 1, 1, -1)[:, None] * (np.arange(10) < 5)
    return X, y


@pytest.mark.parametrize(
    ("method", "settings"),
    [("rank", None), ("l0", SelectionSettings(gamma=0.0)), ("pursuit", None), ("prefit", None)],
)
def test_a_linear_machine_becomes_ten_vectors_without_loss(method, settings, noisy):
    X, y = noisy
    svc = SVC(kernel="linear", C=1.0).fit(X, y)
    assert svc.expansion_.n_vectors > 200
    path = compression_path(svc, method=method, settings=settings, tol=1e-10)
    small = path[len(path)]
    wanted = svc.decision_function(X)
    if method in ("rank", "l0"):
        assert small.expansion_.n_vectors == 10
        np.testing.assert_allclose(small.decision_function(X), wanted, atol=1e-8 * np.abs(wanted).max())
    else:
        # The pursuits know the residual by subtraction, so they end within the square root of rounding.
        assert small.expansion_.n_vectors <= 10
        np.testing.assert_allclose(small.decision_function(X), wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("method", ["rank", "l0"])
def test_lossless_for_a_polynomial_machine_with_many_outputs(method):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((80, 3))
    full = KernelExpansion(Z, rng.standard_normal((80, 4)), np.zeros(4), kernel="poly", degree=2, coef0=1.0)
    settings = SelectionSettings(gamma=0.0) if method == "l0" else None
    path = compression_path(full, method=method, settings=settings, tol=1e-10)
    # Polynomials of degree 2 in 3 variables have 10 coefficients.
    assert len(path) == 10
    X = rng.standard_normal((50, 3))
    wanted = full.decision_function(X)
    found = path[10].decision_function(X)
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("method", ["prefit", "rank", "l0", "l1", "lars"])
def test_residuals_fall_and_are_what_they_say(method, digits_ovr):
    path = compression_path(digits_ovr, 40, method=method)
    assert len(path) == 40
    assert (np.diff(path.residual_norms) <= 1e-12).all()
    full = digits_ovr.expansion_
    Z = np.asarray(full.vectors)
    K = np.exp(-0.001 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    for size in (1, 17, 40):
        rest = full.coefficients.copy()
        rest[path.order[:size]] -= path[size].expansion_.coefficients
        norm = np.sqrt(max(0.0, (rest * (K @ rest)).sum()))
        assert norm == pytest.approx(path.residual_norms[size], rel=1e-6)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("prefit", None),
        ("l0", None),
        ("l1", SelectionSettings(inverse_weights=True)),
        ("lars", SelectionSettings(joint=False)),
    ],
)
def test_a_choice_beats_chance(method, settings, digits_ovr):
    rng = np.random.default_rng(0)
    full = digits_ovr.expansion_
    path = compression_path(digits_ovr, 60, method=method, settings=settings)
    Z = np.asarray(full.vectors)
    K = np.exp(-0.001 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    wanted = K @ full.coefficients
    chance = []
    for _ in range(5):
        S = rng.choice(len(Z), 60, replace=False)
        B = np.linalg.solve(K[np.ix_(S, S)], wanted[S])
        rest = full.coefficients.copy()
        rest[S] -= B
        chance.append(np.sqrt((rest * (K @ rest)).sum()))
    assert path.residual_norms[60] < min(chance)


def naive_lasso(K, target, half_lambda, sweeps=3000):
    """Coordinate descent for ||w - sum b phi||^2 + 2 half_lambda |b|_1, straight from equation 4."""
    b = np.zeros(len(K))
    for _ in range(sweeps):
        for i in range(len(K)):
            z = target[i] - K[i] @ b + K[i, i] * b[i]
            b[i] = np.sign(z) * max(abs(z) - half_lambda, 0.0) / K[i, i]
    return b


@pytest.mark.parametrize("inverse", [False, True])
def test_the_l1_path_has_the_vectors_of_the_naive_one(inverse):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    svc = SVC(gamma=0.05).fit(X[:150], y[:150])
    alpha = svc.expansion_.coefficients[:, 0]
    Z = np.asarray(svc.expansion_.vectors)
    K = np.exp(-0.05 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    size = np.abs(alpha) if inverse else np.ones_like(alpha)
    settings = SelectionSettings(joint=False, inverse_weights=inverse)
    path = compress(svc, 10, method="l1", settings=settings)
    assert path.expansion_.n_vectors == 10
    order = compression_path(svc, 10, method="l1", settings=settings).order
    # Weights c_i are the unit of b_i: with c_i = 1 / size_i the scaled vectors size_i phi_i have weight 1.
    scaled = K * size[:, None] * size[None]
    target = size * (K @ alpha)
    for share in (0.9, 0.7, 0.5):
        inside = np.flatnonzero(naive_lasso(scaled, target, share * np.abs(target).max(), 300))
        if len(inside) <= 10:
            assert set(inside) <= set(order.tolist())


def test_lossy_l0_keeps_fewer_the_more_may_change(digits_ovr):
    sizes = [
        len(compression_path(digits_ovr, method="l0", settings=SelectionSettings(gamma=gamma)))
        for gamma in (1e-4, 1e-2, 1.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_refusals(digits_ovr):
    for options, message in [
        ({"method": "l2"}, "method='l2'"),
        ({"method": "l1", "settings": 1}, "settings=1"),
        ({"method": "l1", "candidates": "rows", "X": np.zeros((9, 64))}, "for the pursuits only"),
        ({"method": "prefit", "settings": SelectionSettings(cost=2.0)}, r"cost=2\.0 is of no use"),
    ]:
        with pytest.raises(ValueError, match=message):
            compress(digits_ovr, 5, **options)
    with pytest.raises(ValueError, match=r"gamma=1000000000\.0 is not allowed"):
        compress(digits_ovr, 5, method="l0", settings=SelectionSettings(gamma=1e9))
    for name, value in [("cost", 0.0), ("gamma", -1.0), ("joint", 2)]:
        with pytest.raises(ValueError, match=f"{name}="):
            SelectionSettings(**{name: value})
