"""Kernels that are Python functions: called on blocks, the same optimum, errors unchanged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as peers

from svmarrow import SVC, SVR, KernelExpansion, OneClassSVM, compress
from svmarrow.expansion import kernel_expansion


def linear(A, B):
    return A @ B.T


def test_scikit_learn_takes_the_same_function(datasets):
    for name in ("digits", "moons"):
        X, y = datasets[name]
        ours, peer = (kind(kernel=linear, C=0.5, tol=1e-4).fit(X, y) for kind in (SVC, peers.SVC))
        assert np.array_equal(ours.predict(X), peer.predict(X))
        assert ours.intercept_ == pytest.approx(peer.intercept_, abs=5e-3)
        assert ours.support_vectors_.shape == (len(ours.support_), X.shape[1])


@pytest.mark.parametrize(
    "options", [{"n_jobs": 1}, {"n_jobs": 3}, {"cache_size": 0.001}, {"shrinking": False}], ids=str
)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_blocks_not_pairs_and_never_the_whole_matrix(rng, options, multi_class):
    """More rows than one block holds: kernel rows are cached, and every call is a block."""
    n = 4000
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 1)
    calls = []

    def rbf(A, B):
        calls.append((len(A), len(B)))
        return np.exp(-0.5 * ((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T))

    svc = SVC(kernel=rbf, multi_class=multi_class, **options).fit(X, y)
    assert svc.certificate_.stop == "converged"
    built = SVC(gamma=0.5, multi_class=multi_class).fit(X, y)
    assert svc.certificate_.dual == pytest.approx(built.certificate_.dual, rel=1e-4)
    sizes = np.array([a * b for a, b in calls])
    assert sizes.max() <= 2**22 < n * n
    values = svc.certificate_.kernel_values
    if "cache_size" not in options:
        assert len(calls) < values / 4000
    assert (svc.predict(X) == built.predict(X)).mean() > 0.999


def test_prediction_in_blocks(datasets, monkeypatch):
    X, y = datasets["digits"]
    svc = SVC(kernel=linear).fit(X, y)
    whole = svc.decision_function(X)
    monkeypatch.setattr(kernel_expansion, "MAX_BLOCK_VALUES", 1000)
    assert svc.decision_function(X) == pytest.approx(whole)


def test_sparse_rows_reach_the_function_as_they_are(datasets):
    X, y = datasets["iris"]

    def product(A, B):
        assert sp.issparse(A)
        assert sp.issparse(B)
        return A @ B.T

    sparse = SVC(kernel=product).fit(sp.csr_array(X), y)
    assert sparse.decision_function(sp.csr_array(X)) == pytest.approx(
        SVC(kernel="linear").fit(X, y).decision_function(X), abs=2e-3
    )


class BoomError(Exception):
    pass


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_errors_come_out_unchanged(datasets, kind, at):
    X, y = datasets["iris"]
    calls = []
    boom = BoomError("as it was raised")

    def kernel(A, B):
        calls.append(1)
        if len(calls) >= at:
            raise boom
        return A @ B.T

    model = kind(kernel=kernel)
    with pytest.raises(BoomError) as caught:
        model.fit(X, y)
    assert caught.value is boom
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.ones((len(A), len(B) + 1)), r"returned shape .* it must return"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinity"),
        (lambda A, B: np.full((len(A), len(B)), "x"), "must be numbers"),
        (lambda A, B: np.full((len(A), len(B)), 1e300), "single precision"),
        (lambda *_: None, "returned shape"),
    ],
)
def test_bad_values_are_named(datasets, function, message):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match=message):
        SVC(kernel=function).fit(X, y)


def test_weights_and_left_out_rows(datasets):
    X, y = datasets["iris"]
    weights = np.arange(len(y)) % 3 > 0
    ours = SVC(kernel=linear, tol=1e-5).fit(X, y, sample_weight=weights)
    built = SVC(kernel="linear", tol=1e-5).fit(X, y, sample_weight=weights)
    assert ours.decision_function(X) == pytest.approx(built.decision_function(X), abs=1e-3)


def test_what_a_function_cannot_do(datasets, tmp_path):
    X, y = datasets["iris"]
    svc = SVC(kernel=linear).fit(X, y)
    with pytest.raises(TypeError, match="Python function"):
        svc.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(ValueError, match=r"method='gradient' is not allowed: .* selects vectors for kernel"):
        compress(svc, n_vectors=3, method="gradient")
    with pytest.raises(AttributeError, match="coef_"):
        _ = svc.coef_
    copy = pickle.loads(pickle.dumps(svc))
    assert copy.expansion_ == svc.expansion_
    assert "linear" in repr(svc.expansion_)
    assert KernelExpansion([[1.0]], [2.0], 0.5, kernel=linear).decision_function([[3.0]]) == 6.5
