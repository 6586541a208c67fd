"""KernelExpansion: the oracle's numbers for every kernel, layout and precision; pickling, refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from helpers import reference
from svmarrow import KernelExpansion, RLSRegressor, _core
from svmarrow.models import ExpansionSum

KERNELS = ["linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52"]


def make(rng, kernel="rbf", m=37, d=5, q=3, dtype=np.float64):
    vectors = rng.random((m, d)).astype(dtype)
    vectors[vectors < 0.3] = 0
    return KernelExpansion(
        vectors, rng.normal(size=(m, q)), rng.normal(size=q), kernel=kernel, gamma=0.4, coef0=0.3, degree=2
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse_vectors", [False, True])
@pytest.mark.parametrize("sparse_rows", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equals_the_formula(rng, kernel, sparse_vectors, sparse_rows, dtype):
    f = make(rng, kernel, dtype=dtype)
    X = rng.random((111, 5)).astype(dtype)
    X[X < 0.3] = 0
    expected = reference.decision(f.kernel_spec, X, f.vectors, f.coefficients, f.intercepts)
    if sparse_vectors:
        f = KernelExpansion(sp.csr_array(f.vectors), f.coefficients, f.intercepts, *f.kernel_spec)
    values = f.decision_function(sp.csr_array(X) if sparse_rows else X)
    assert values.shape == (111, 3)
    assert values.dtype == np.float64
    assert values == pytest.approx(expected, abs=1e-11 if dtype == np.float64 else 2e-5)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 200),
    m=st.integers(1, 80),
    d=st.integers(1, 40),
    q=st.integers(1, 12),
    n_jobs=st.sampled_from([None, 1, 3]),
)
def test_any_size(seed, n, m, d, q, n_jobs):
    rng = np.random.default_rng(seed)
    f = make(rng, m=m, d=d, q=q)
    X = rng.random((n, d))
    expected = reference.decision(f.kernel_spec, X, f.vectors, f.coefficients, f.intercepts)
    assert f.decision_function(X, n_jobs=n_jobs) == pytest.approx(expected, abs=1e-10)


def test_blocks_of_a_long_prediction_are_one_result(rng, monkeypatch):
    f = make(rng)
    X = rng.random((5000, 5))
    whole = f.decision_function(X, n_jobs=2)
    monkeypatch.setattr("svmarrow.expansion.kernel_expansion._BLOCK_COST", 1.0)
    assert np.array_equal(f.decision_function(X, n_jobs=2), whole)
    assert f.decision_function(sp.csr_array(X), n_jobs=2) == pytest.approx(whole, abs=1e-12)


def test_bytes(rng):
    vectors, X = (rng.integers(0, 256, size=(size, 7), dtype=np.uint8) for size in (20, 50))
    B = rng.normal(size=(20, 2))
    f = KernelExpansion(vectors, B, [0.0, 1.0], gamma=1e-4)
    assert f.vectors.dtype == np.uint8
    expected = reference.decision(("rbf", 1e-4, 0, 3), X, vectors, B, [0.0, 1.0])
    assert f.decision_function(X) == pytest.approx(expected, abs=1e-4)


def test_far_from_the_origin(rng):
    X = rng.random((30, 4)) + 1e6
    f = KernelExpansion(X, rng.normal(size=30), 0.0, gamma=2.0)
    expected = reference.decision(("rbf", 2.0, 0, 3), X, X, f.coefficients, f.intercepts)
    assert f.decision_function(X) == pytest.approx(expected, abs=1e-6)


def test_precomputed_reads_columns(rng):
    K = rng.random((4, 10))
    f = KernelExpansion([[7.0], [2.0]], [[1.0], [-2.0]], 0.5, kernel="precomputed")
    assert f.decision_function(K)[:, 0] == pytest.approx(K[:, 7] - 2 * K[:, 2] + 0.5)
    with pytest.raises(ValueError, match="precomputed"):
        f.decision_function(K[:, :5])


def test_no_vectors_is_a_constant():
    f = KernelExpansion(np.empty((0, 3)), np.empty((0, 2)), [1.0, 2.0])
    assert f.decision_function(np.zeros((2, 3))).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_equality_pickling_and_copies(rng):
    f = make(rng)
    f.decision_function(f.vectors)
    assert "_handle" not in f.__getstate__()
    for other in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        assert other == f
        assert np.array_equal(other.decision_function(f.vectors), f.decision_function(f.vectors))
    assert f != make(np.random.default_rng(1))
    assert f != KernelExpansion(f.vectors, f.coefficients, f.intercepts, gamma=0.5)
    assert f != KernelExpansion(sp.csr_array(f.vectors), f.coefficients, f.intercepts, gamma=0.4)
    linear = [
        KernelExpansion(f.vectors, f.coefficients, f.intercepts, "linear", gamma) for gamma in (1.0, 2.0)
    ]
    assert linear[0] == linear[1]
    assert f != "f"
    with pytest.raises(TypeError):
        hash(f)


def test_does_not_change(rng):
    f = make(rng)
    with pytest.raises(AttributeError, match="does not change"):
        f.gamma = 2.0
    with pytest.raises(AttributeError):
        f.anything = 2.0


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_arrays_are_read_only(rng, layout):
    """Predictions would not follow what is written, and files would: the same model with two answers."""
    f = make(rng)
    vectors, coefficients = layout(f.vectors.copy()), f.coefficients.copy()
    f = KernelExpansion(vectors, coefficients, f.intercepts, gamma=0.4)
    total = ExpansionSum([f, f.replaced(gamma=0.1)])
    for made in (f, *total.parts, total, pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        stored = made.vectors.data if sp.issparse(made.vectors) else made.vectors
        for array in (stored, made.coefficients, made.intercepts):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0.0
    assert vectors.data.flags.writeable if sp.issparse(vectors) else vectors.flags.writeable
    assert coefficients.flags.writeable


def test_sizes_and_repr(rng):
    f = make(rng)
    assert (f.n_vectors, f.n_outputs) == (37, 3)
    assert f.expansion_ is f
    assert f.nbytes == 37 * 5 * 8 + 37 * 3 * 8 + 3 * 8
    assert repr(f) == "<KernelExpansion: 37 vectors, 5 columns, 3 outputs, kernel='rbf', gamma=0.4>"


def test_vectors_are_not_copied(rng):
    wide = rng.random((10, 8))
    for vectors in (wide, wide[::2], wide[:, :5]):
        f = KernelExpansion(vectors, np.ones(len(vectors)), 0.0)
        assert np.shares_memory(f.vectors, wide)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": np.ones((3, 1))}, "coefficients have shape"),
        ({"coefficients": np.ones((2, 2))}, "coefficients have shape"),
        ({"coefficients": [[1.0], [np.nan]]}, "finite"),
        ({"intercepts": [np.inf]}, "finite"),
        ({"intercepts": []}, "intercepts have shape"),
        ({"intercepts": np.zeros((1, 1))}, "intercepts have shape"),
        ({"vectors": [[0.0], [np.inf]]}, "infinity"),
        ({"vectors": np.array([[0.0], [np.nan]])}, "NaN"),
        ({"kernel": "cosine"}, "kernel='cosine'"),
        ({"gamma": -1.0}, r"gamma=-1\.0"),
        ({"degree": -2}, "degree=-2"),
        ({"kernel": "precomputed", "vectors": np.ones((2, 2))}, "one column"),
        ({"kernel": "chi2", "vectors": [[-1.0], [1.0]]}, "negative"),
    ],
    ids=str,
)
def test_refusals(change, message):
    arguments = {"vectors": [[0.0], [1.0]], "coefficients": [[1.0], [2.0]], "intercepts": [0.0]} | change
    with pytest.raises(ValueError, match=message):
        KernelExpansion(**arguments).decision_function([[1.0]])


def test_wrong_rows_are_refused(rng):
    f = make(rng)
    for X, message in [
        (np.zeros((2, 4)), "columns"),
        (np.full((2, 5), np.nan), "NaN"),
        (np.zeros(5), "2D"),
        (sp.csr_array((2, 9)), "columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            f.decision_function(X)


def test_gram(rng):
    X, Z = rng.random((70, 6)), rng.random((40, 6))
    for kernel in KERNELS:
        spec = (kernel, 0.4, 0.3, 2)
        assert _core.gram(X, Z, spec, 2) == pytest.approx(reference.kernel(spec, X, Z), abs=1e-12)
        K = _core.gram(X, None, spec, 1)
        assert np.array_equal(K, K.T)
        assert pytest.approx(reference.kernel(spec, X, X), abs=1e-12) == K


@pytest.mark.parametrize("degree", [3, 5])
def test_large_values_of_polynomials_are_added_in_double_precision(degree):
    X, y = load_iris(return_X_y=True)
    model = RLSRegressor(1.0, kernel="poly", gamma=1.0, coef0=1.0, degree=degree).fit(X, y)
    rows = X.astype(np.float32)
    # The rows themselves are rounded.
    expected = model.predict(rows.astype(np.float64))
    np.testing.assert_allclose(model.predict(rows), expected, atol=1e-6)
