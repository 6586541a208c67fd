"""Penalties that leave-one-out errors choose in low-rank and linear least squares."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import svmarrow
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)

ALPHAS = [1e-4, 1e-2, 1.0, 100.0]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(150, 6))
Y = X[:, 0] + 0.5 * np.sin(3.0 * X[:, 1]) + 0.3 * RANDOM.normal(size=150)
KINDS = {
    "low rank, numbers": (lambda **more: LowRankRLSRegressor(30, random_state=0, gamma=0.1, **more), Y),
    "low rank, classes": (
        lambda **more: LowRankRLSClassifier(30, random_state=0, gamma=0.1, **more),
        Y > 0.3,
    ),
    "low rank, constant": (
        lambda **more: LowRankRLSRegressor(30, random_state=0, gamma=0.1, fit_intercept=True, **more),
        np.column_stack([Y, -(Y**2)]),
    ),
    "primal": (lambda **more: LinearRLSRegressor(solver="primal", fit_intercept=True, **more), Y),
    "dual": (lambda **more: LinearRLSClassifier(solver="dual", **more), np.digitize(Y, [-0.5, 0.5])),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_that_of_the_least_error(kind, weighted):
    build, y = KINDS[kind]
    weights = RANDOM.integers(0, 3, size=150) if weighted else None
    model = build(alphas=ALPHAS).fit(X, y, sample_weight=weights)
    single = [build(alpha=alpha, leave_one_out=True).fit(X, y, sample_weight=weights) for alpha in ALPHAS]
    np.testing.assert_allclose(model.loo_errors_, [one.loo_error_ for one in single], rtol=1e-9)
    best = single[int(np.argmin(model.loo_errors_))]
    assert model.alpha_ == best.alpha == best.alpha_
    assert model.loo_error_ == pytest.approx(model.loo_errors_.min())
    np.testing.assert_allclose(model.predict(X), best.predict(X), rtol=1e-9)
    assert clone(model).fit(X, y, sample_weight=weights).alpha_ == model.alpha_
    assert len(np.unique(model.loo_errors_)) > 1


def test_the_order_of_the_penalties_does_not_matter():
    for build, y in KINDS.values():
        one, other = build(alphas=ALPHAS).fit(X, y), build(alphas=ALPHAS[::-1]).fit(X, y)
        if np.unique(one.loo_errors_).size == 4:
            assert one.expansion_ == other.expansion_
        np.testing.assert_array_equal(one.loo_errors_, other.loo_errors_[::-1])


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_sparse_samples(kind, tmp_path):
    build, y = KINDS[kind]
    model = build(alphas=ALPHAS).fit(X, y)
    svmarrow.save(model, tmp_path / "model")
    loaded = svmarrow.load(tmp_path / "model")
    assert loaded.alpha_ == model.alpha_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(
        build(alphas=ALPHAS).fit(sp.csr_array(X), y).loo_errors_, model.loo_errors_, rtol=1e-6
    )
    assert build(alphas=ALPHAS).estimate_memory(X, y).total >= build().estimate_memory(X, y).total


def test_a_path_of_a_model_that_has_chosen():
    model = LowRankRLSRegressor(30, random_state=0, gamma=0.1, alphas=ALPHAS).fit(X, Y)
    for one, alpha in zip(model.path(ALPHAS), ALPHAS, strict=True):
        assert (one.alpha, one.alpha_, one.alphas) == (alpha, alpha, None)
        plain = LowRankRLSRegressor(30, alpha=alpha, random_state=0, gamma=0.1).fit(X, Y)
        np.testing.assert_allclose(one.predict(X), plain.predict(X), rtol=1e-8)


def test_what_cannot_choose_is_refused():
    for model in (
        LowRankRLSRegressor(9, alphas=ALPHAS, method="nystrom"),
        LowRankRLSRegressor(9, alphas=ALPHAS, method="subset"),
        LinearRLSRegressor(alphas=ALPHAS, solver="cg"),
        LinearRLSRegressor(alphas=[-1.0]),
        LowRankRLSRegressor(9, alphas="many"),
    ):
        with pytest.raises(ValueError, match="alphas="):
            model.fit(X, Y)
    with pytest.raises(ValueError, match="alphas="):
        LowRankRLSRegressor(9, alphas=ALPHAS).partial_fit(X, Y)
