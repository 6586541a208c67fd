"""The judge judged: the common objective against each machine's own, and against spoiled solutions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from objective import Dual, dual_objective, machines
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

C, GAMMA = 2.0, 0.3


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Iris in a shuffled order, so that classes are not in blocks."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def judge(X: np.ndarray, y: np.ndarray, model: SVC) -> Dual:
    """The objective of a fitted model."""
    return dual_objective(X, y, model.support_, model.dual_coef_, C=C, gamma=GAMMA)


def test_sum_over_pairs_of_binary_fits(rows: tuple[np.ndarray, np.ndarray]) -> None:
    """One-vs-one is its pairs, each fitted alone and judged by the formula written out."""
    X, y = rows
    expected = 0.0
    for a, b in combinations(range(3), 2):
        pair = np.isin(y, (a, b))
        model = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X[pair], y[pair])
        c = model.dual_coef_[0]
        expected += np.abs(c).sum() - 0.5 * c @ rbf_kernel(model.support_vectors_, gamma=GAMMA) @ c
    found = judge(X, y, SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X, y))
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert found.infeasibility < 1e-12


def test_sparse_rows_and_small_blocks_change_nothing(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout and the block size are not part of the value."""
    X, y = rows
    model = SVC(C=C, gamma=GAMMA).fit(X, y)
    whole = judge(X, y, model)
    monkeypatch.setattr("objective.BLOCK_VALUES", 200)
    found = dual_objective(sp.csr_matrix(X), y, model.support_, model.dual_coef_, C=C, gamma=GAMMA)
    assert found.value == pytest.approx(whole.value, rel=1e-12)


def test_decision_values_from_unfolded_coefficients(rows: tuple[np.ndarray, np.ndarray]) -> None:
    """The columns of `machines` are the pairs in scikit-learn's order and sign."""
    X, y = rows
    model = SVC(C=C, gamma=GAMMA, decision_function_shape="ovo").fit(X, y)
    K = rbf_kernel(X, model.support_vectors_, gamma=GAMMA)
    decision = K @ machines(model.dual_coef_, y[model.support_], 3) + model.intercept_
    np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("spoil", ["above C", "negative", "unbalanced"])
def test_infeasible_solutions_are_seen(rows: tuple[np.ndarray, np.ndarray], spoil: str) -> None:
    """A dual value can be raised by leaving the feasible set: each way out is measured."""
    X, y = rows
    keep = y != 0
    X, y = X[keep], y[keep] - 1
    model = SVC(C=C, gamma=GAMMA).fit(X, y)
    c = model.dual_coef_.copy()
    of_first, of_second = (np.flatnonzero(y[model.support_] == k) for k in (0, 1))
    if spoil == "above C":
        c[0, of_first[0]] -= C
        c[0, of_second[0]] += C
    elif spoil == "negative":
        c[0, of_first[0]] = 0.1 * C
    else:
        c[0, of_first] *= 0.9
    found = dual_objective(X, y, model.support_, c, C=C, gamma=GAMMA)
    assert judge(X, y, model).infeasibility < 1e-12
    assert found.infeasibility > 1e-2
