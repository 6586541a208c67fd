"""Linear machines on rows far from the origin: what a translation leaves as it is must stay as it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_regression

from svmarrow import SVC, SVR, NuSVC, NuSVR, OneClassSVM, load, save

_DIGITS, _CLASSES = (part[:120] for part in load_digits(return_X_y=True))
_TWO = (_CLASSES > 4).astype(int)
#: Multiples of a 16th, which are exact beside the offsets.
_ROWS, _TARGETS = make_regression(60, 4, n_informative=4, noise=3.0, random_state=0)
_ROWS = np.round(16.0 * _ROWS) / 16.0
_TARGETS = _TARGETS / 20.0

MACHINES = {
    "svc": (lambda **p: SVC(kernel="linear", **p), _DIGITS, _TWO),
    "ovo": (lambda **p: SVC(kernel="linear", C=0.1, **p), _DIGITS, _CLASSES),
    "ovr": (lambda **p: SVC(kernel="linear", multi_class="ovr", **p), _DIGITS, _CLASSES),
    "hinge2": (lambda **p: SVC(kernel="linear", loss="squared_hinge", **p), _DIGITS, _TWO),
    "nusvc": (lambda **p: NuSVC(kernel="linear", nu=0.1, **p), _DIGITS, _CLASSES),
    "svr": (lambda **p: SVR(kernel="linear", **p), _ROWS, _TARGETS),
    "nusvr": (lambda **p: NuSVR(kernel="linear", **p), _ROWS, _TARGETS),
}


def _outputs(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("offset", [64.0, 1e3, 1e5, 1e6, 1e8])
def test_an_offset_changes_neither_coefficients_nor_outputs(name, offset):
    make, X, y = MACHINES[name]
    near, far = make().fit(X, y), make().fit(X + offset, y)
    assert near.certificate_.stop == far.certificate_.stop == "converged"
    assert far.certificate_.dual == near.certificate_.dual
    assert far.certificate_.gap == pytest.approx(near.certificate_.gap, rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(far.dual_coef_, near.dual_coef_)
    expected = _outputs(near, X)
    np.testing.assert_allclose(_outputs(far, X + offset), expected, rtol=0, atol=1e-5)
    # The intercept is that of the rows as they were given; the weights have all their digits.
    by_weights = (X + offset) @ far.coef_.T + far.intercept_
    if by_weights.shape[1] == 1:
        np.testing.assert_allclose(by_weights.ravel(), expected, rtol=0, atol=1e-5)
    # Coefficients sum to zero but for their rounding, which the offset multiplies.
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=0, atol=1e-10 + 1e-14 * offset)


@given(
    name=st.sampled_from(sorted(MACHINES)),
    exponent=st.integers(-10, 26),
    sign=st.sampled_from([-1.0, 1.0]),
    columns=st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    dtype=st.sampled_from([np.float64, np.float32]),
)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_any_exact_offset_leaves_the_outputs(name, exponent, sign, columns, dtype):
    make, X, y = MACHINES[name]
    # An offset of its own for each column.
    shift = sign * 2.0**exponent * np.resize([2.0 ** -abs(k) * np.sign(k) for k in columns], X.shape[1])
    far = (X + shift).astype(dtype)
    if not np.array_equal(far.astype(np.float64) - shift, X):
        far = X + shift
    if not np.array_equal(far - shift, X):
        return
    near = make(tol=1e-5).fit(X, y)
    model = make(tol=1e-5).fit(far, y)
    assert model.certificate_.stop == "converged"
    assert model.certificate_.dual == pytest.approx(near.certificate_.dual, rel=1e-4)
    np.testing.assert_allclose(_outputs(model, far), _outputs(near, X), rtol=0, atol=2e-3)


def test_bytes_and_single_precision_agree_with_double():
    X = _DIGITS.astype(np.uint8) + np.uint8(230)
    models = [SVC(kernel="linear").fit(X.astype(kind), _CLASSES) for kind in (np.uint8, np.float32, float)]
    expected = models[2].decision_function(X.astype(float))
    for model, kind in zip(models, (np.uint8, np.float32, float), strict=True):
        np.testing.assert_array_equal(model.support_, models[2].support_)
        np.testing.assert_allclose(model.decision_function(X.astype(kind)), expected, rtol=0, atol=1e-9)


def test_sparse_rows_far_away_in_the_columns_that_all_have():
    X = sp.random_array((80, 12), density=0.4, rng=np.random.default_rng(1), format="csr")
    X.data = np.round(16.0 * X.data) / 16.0 + 1.0 / 16.0
    beside = np.round(16.0 * np.random.default_rng(2).standard_normal((80, 2))) / 16.0 + 1.0 / 32.0
    y = np.sign(np.asarray(X.sum(axis=1)) - X.sum() / 80 + beside[:, 0])
    near = sp.csr_array(sp.hstack([X, sp.csr_array(beside)]))
    far = sp.csr_array(sp.hstack([X, sp.csr_array(beside + 1e7)]))
    expected = SVC(kernel="linear", tol=1e-6).fit(near, y)
    model = SVC(kernel="linear", tol=1e-6).fit(far, y)
    dense = SVC(kernel="linear", tol=1e-6).fit(far.toarray(), y)
    full = far.toarray()
    for found in (model.decision_function(far), model.decision_function(full), dense.decision_function(far)):
        np.testing.assert_allclose(found, expected.decision_function(near), rtol=0, atol=1e-4)


def test_weights_warm_starts_and_files_far_away(tmp_path):
    weights = 1.0 + np.arange(120) % 3
    near = SVC(kernel="linear").fit(_DIGITS, _CLASSES, sample_weight=weights)
    far = SVC(kernel="linear", warm_start=True).fit(_DIGITS + 1e6, _CLASSES, sample_weight=weights)
    np.testing.assert_array_equal(near.dual_coef_, far.dual_coef_)
    again = far.fit(_DIGITS + 1e6, _CLASSES, sample_weight=weights)
    assert again.certificate_.stop == "converged"
    assert sum(np.ravel(again.n_iter_)) == 0
    np.testing.assert_array_equal(near.dual_coef_, again.dual_coef_)
    np.testing.assert_allclose(
        again.decision_function(_DIGITS + 1e6), near.decision_function(_DIGITS), rtol=0, atol=1e-6
    )
    save(far, tmp_path / "far.safetensors")
    loaded = load(tmp_path / "far.safetensors")
    np.testing.assert_array_equal(
        loaded.decision_function(_DIGITS + 1e6), far.decision_function(_DIGITS + 1e6)
    )


def test_leave_one_out_bounds_do_not_grow_with_the_offset():
    near, far = (SVC(kernel="linear", C=1e-4).fit(_DIGITS + c, _TWO) for c in (0.0, 1e6))
    bounds = [m.certificate_.machines[0].leave_one_out for m in (near, far)]
    assert bounds[0] == bounds[1]
    assert bounds[0].missed < bounds[0].positive


def test_machines_that_see_the_origin_are_not_moved():
    # Without an intercept the distance from the origin counts.
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0], [2.0, 1.5]])
    y = np.array([0, 0, 1, 1])
    near = SVC(kernel="linear", fit_intercept=False).fit(X, y)
    far = SVC(kernel="linear", fit_intercept=False).fit(X + 8.0, y)
    assert near.certificate_.dual != pytest.approx(far.certificate_.dual, rel=1e-3)
    assert near.intercept_ == far.intercept_ == 0.0
    inside = OneClassSVM(kernel="linear", nu=0.5).fit(X)
    assert inside.offset_ != OneClassSVM(kernel="linear", nu=0.5).fit(X + 8.0).offset_
