"""A warning where there are fewer vectors than a model has effective clusters."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVR, KernelExpansion, compress
from svmarrow.exceptions import SizeWarning
from svmarrow.reduced_set import GradientSettings
from svmarrow.reduced_set.construction import MAX_VECTORS, MIN_NEARNESS, effective_clusters


def checkerboard(n, fields, seed=0):
    X = np.random.default_rng(seed).uniform(0, fields, (n, 2))
    return X, X.astype(int).sum(axis=1) % 2


@pytest.fixture(scope="module")
def board():
    X, y = checkerboard(1500, 8)
    return SVC(C=10, gamma=4.0).fit(X, y)


def expansion(vectors, gamma=1.0, kernel="rbf"):
    return KernelExpansion(vectors, np.ones(vectors.shape[0]), 0.0, kernel=kernel, gamma=gamma)


def test_rank_is_the_formula_and_ends_where_vectors_do():
    X = np.random.default_rng(0).standard_normal((300, 3))
    K = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    rank, near = effective_clusters(expansion(X, 0.7))
    assert rank == pytest.approx(300**2 / (K**2).sum())
    off = K[~np.eye(300, dtype=bool)]
    assert near == pytest.approx((off**4).sum() / (off**2).sum())
    # Twenty places with fifteen vectors each, far apart; and vectors that know nothing of each other.
    places = np.repeat(np.arange(20.0)[:, None] * 100, 15, axis=0)
    assert effective_clusters(expansion(places)) == pytest.approx((20.0, 1.0))
    alone = np.arange(50.0)[:, None] * 100
    assert effective_clusters(expansion(alone)) == pytest.approx((50.0, 0.0))


def test_sample_stands_for_all():
    X = np.random.default_rng(1).uniform(0, 8, (4 * MAX_VECTORS, 2))
    rank, _ = effective_clusters(expansion(X, 4.0))
    K2 = np.exp(-8.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    assert rank == pytest.approx(len(X) ** 2 / K2.sum(), rel=0.05)


def test_same_for_sparse_and_single_precision():
    X = np.random.default_rng(2).uniform(0, 6, (400, 2))
    wanted = effective_clusters(expansion(X, 4.0))
    assert effective_clusters(expansion(sparse.csr_array(X), 4.0)) == pytest.approx(wanted, rel=1e-9)
    assert effective_clusters(expansion(X.astype(np.float32), 4.0)) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("method", ["auto", "backfit", "gradient"])
def test_a_checkerboard_gets_a_warning(board, method):
    X, y = checkerboard(600, 8, seed=1)
    given = {} if method == "auto" else {"X": X, "y": y}
    if method == "gradient":
        given["settings"] = GradientSettings(steps=10)
    with pytest.warns(SizeWarning, match=r"n_vectors=20 may be too few.*1\d\d clusters.*gamma=4"):
        small = compress(board, n_vectors=20, method=method, random_state=0, **given)
    # And the word is true.
    T, t = checkerboard(2000, 8, seed=2)
    assert small.score(T, t) < board.score(T, t) - 0.1


def test_the_warning_comes_once_and_points_to_the_caller(board):
    with pytest.warns(SizeWarning) as said:
        compress(board, n_vectors=20, method="backfit")
    assert len(said) == 1
    assert said[0].filename == __file__


def test_regression_gets_a_warning():
    X = np.random.default_rng(3).uniform(0, 8, (800, 2))
    y = np.sin(np.pi * X[:, 0]) * np.sin(np.pi * X[:, 1])
    svr = SVR(C=10, gamma=4.0, epsilon=0.05).fit(X, y)
    with pytest.warns(SizeWarning):
        compress(svr, n_vectors=15)


def test_no_warning_for_enough_vectors(board):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(board, n_vectors=70, method="backfit")
        compress(board, n_vectors=board.expansion_.n_vectors)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
def test_no_warning_for_kernels_that_are_not_local(kernel):
    X = np.random.default_rng(4).standard_normal((400, 60))
    y = (X[:, 0] + 0.5 * np.random.default_rng(5).standard_normal(400) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(SVC(kernel=kernel, gamma=0.1).fit(X, y), n_vectors=5)


def test_no_warning_for_many_columns():
    # All are as far from each other: a high rank, yet few vectors may hold the function.
    X = np.random.default_rng(6).standard_normal((900, 100))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    svc = SVC(C=10, gamma=0.02).fit(X, y)
    rank, near = effective_clusters(svc.expansion_)
    assert rank > 100
    assert near < MIN_NEARNESS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(svc, n_vectors=5)


@pytest.mark.parametrize("n_vectors", [1, 5, 20])
def test_no_warning_for_real_data(cancer, pixels, n_vectors):
    X = StandardScaler().fit_transform(cancer[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(SVC(C=10).fit(X, cancer[1]), n_vectors=n_vectors)
        compress(SVC(C=10, gamma=0.001).fit(*pixels[:2]), n_vectors=n_vectors)
