"""Matérn kernels: scikit-learn's numbers in every layout and precision, and models of every family."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from helpers import reference
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    KernelExpansion,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RLSRegressor,
    _core,
    as_expansion,
    compress,
    load,
    save,
)
from svmarrow._support.parameters import MATERN_KERNELS
from svmarrow._support.training import default_gamma
from svmarrow.inspection import shapley_values
from svmarrow.least_squares import LowRankRLSRegressor
from svmarrow.model_selection._grid import gamma_values

NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
#: Name to rows of single precision, so that all layouts hold the same numbers.
ROWS = {
    "one column": np.float32(np.random.default_rng(0).normal(size=(60, 1))),
    "few columns": np.float32(np.random.default_rng(1).normal(size=(60, 5))),
    "many columns": np.float32(np.random.default_rng(2).normal(size=(60, 100))),
    "far away": np.float32(1000.0 + np.random.default_rng(3).normal(size=(60, 30))),
    "mostly zeros": np.float32(np.random.default_rng(4).normal(size=(60, 80)))
    * (np.random.default_rng(5).uniform(size=(60, 80)) < 0.1),
    "bytes": np.float32(np.random.default_rng(6).integers(0, 256, size=(60, 70))),
}
LAYOUTS = {
    "float64": lambda X: X.astype(np.float64),
    "float32": lambda X: X,
    "csr64": lambda X: sp.csr_array(X.astype(np.float64)),
    "csr32": sp.csr_array,
}


def with_duplicates(X):
    """The rows, the first ten of them again, and ten that differ from others in the last digits."""
    near = X[10:20].copy()
    near[:, 0] = near[:, 0] * np.float32(1.0 + 2.0**-20) + (near[:, 0] == 0.0) * np.float32(2.0**-20)
    return np.vstack([X, X[:10], near])


@pytest.mark.parametrize("kernel", MATERN_KERNELS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ROWS)
def test_values_are_those_of_the_peer(kind, layout, kernel):
    single = with_duplicates(ROWS[kind])
    X = single.astype(np.float64)
    length_scale = 0.7 * np.sqrt(X.shape[1]) * X.std()
    wanted = Matern(length_scale=length_scale, nu=NU[kernel])(X, X)
    f = KernelExpansion(
        LAYOUTS[layout](single), np.eye(len(X)), np.zeros(len(X)), kernel=kernel, gamma=1.0 / length_scale
    )
    found = f.decision_function(LAYOUTS[layout](single))
    # Single precision rounds rows about their centre, whose lengths are 2 to 8 length scales.
    is_single = layout.endswith("32")
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=3e-6 if is_single else 1e-13)
    # Rows with themselves and with their copies.
    assert (np.diag(found) == 1.0).all()
    assert (found[np.arange(10), 60 + np.arange(10)] == 1.0).all()
    if not is_single:
        gram = _core.gram(X, None, f.kernel_spec, 2)
        np.testing.assert_allclose(gram, wanted, rtol=0.0, atol=1e-13)
        assert (np.diag(gram) == 1.0).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_near_rows_keep_their_distance(layout):
    """From products, exp(-r) of rows 1e-9 apart would be off by 1e-8."""
    dtype = np.float32 if layout.endswith("32") else np.float64
    steps = np.array([0.0, *2.0 ** np.arange(-40.0, 0.0)])
    for d in (1, 5, 60):
        Z = np.full((1, d), 0.5, dtype=dtype)
        X = np.repeat(Z, len(steps), axis=0)
        X[:, 0] += steps.astype(dtype)
        distance = X[:, 0].astype(np.float64) - 0.5
        f = KernelExpansion(
            LAYOUTS[layout](Z) if "csr" in layout else Z, [1.0], 0.0, kernel="matern12", gamma=1.0
        )
        found = f.decision_function(LAYOUTS[layout](X) if "csr" in layout else X)[:, 0]
        np.testing.assert_allclose(1.0 - found, -np.expm1(-distance), atol=2e-7 if "32" in layout else 3e-16)


def test_bytes_are_numbers():
    X = with_duplicates(ROWS["bytes"]).astype(np.uint8)
    for kernel in MATERN_KERNELS:
        f = KernelExpansion(X, np.eye(len(X)), np.zeros(len(X)), kernel=kernel, gamma=1e-3)
        wanted = Matern(length_scale=1e3, nu=NU[kernel])(X.astype(float), X.astype(float))
        np.testing.assert_allclose(f.decision_function(X), wanted, atol=1e-6)
        assert (np.diag(f.decision_function(X)) == 1.0).all()


@pytest.mark.parametrize("kernel", MATERN_KERNELS)
@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-30, 1e8, 1e30, 1e140])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_extreme_widths(layout, gamma, kernel):
    single = with_duplicates(ROWS["few columns"])[:70]
    X = LAYOUTS[layout](single)
    f = KernelExpansion(X, np.eye(70), np.zeros(70), kernel=kernel, gamma=gamma)
    same = (single[:, None, :] == single[None]).all(axis=2)
    np.testing.assert_allclose(
        f.decision_function(X), np.ones((70, 70)) if gamma < 1.0 else same, rtol=0.0, atol=1e-29
    )
    if gamma < 1e10:
        SVC(kernel=kernel, gamma=gamma).fit(X, np.arange(70) % 2)


@pytest.mark.parametrize("kernel", MATERN_KERNELS)
def test_a_width_beyond_double_precision_is_refused_by_name(kernel):
    X = ROWS["few columns"]
    with pytest.raises(ValueError, match=rf"X=numbers up to.*scaled.*{kernel}.*gamma=1e300"):
        SVC(kernel=kernel, gamma=1e300).fit(X, np.arange(60) % 2)
    with pytest.raises(ValueError, match=r"gamma=-1\.0"):
        SVC(kernel=kernel, gamma=-1.0).fit(X, np.arange(60) % 2)


@pytest.mark.parametrize("kernel", MATERN_KERNELS)
def test_gamma_is_in_units_of_one_by_distance(kernel):
    X = ROWS["few columns"].astype(np.float64)
    scale = 1.0 / np.sqrt(X.shape[1] * X.var())
    assert default_gamma("scale", X, kernel=kernel) == pytest.approx(scale, rel=1e-14)
    assert default_gamma("auto", X, kernel=kernel) == pytest.approx(1.0 / np.sqrt(X.shape[1]), rel=1e-14)
    assert default_gamma(0.25, X, kernel=kernel) == 0.25
    for power in (-400, -30, 30, 400):
        scaled = default_gamma("scale", np.ldexp(X, power), kernel=kernel)
        assert scaled == np.ldexp(default_gamma("scale", X, kernel=kernel), -power)
    assert SVC(kernel=kernel).fit(X, np.arange(60) % 2).expansion_.gamma == pytest.approx(scale, rel=1e-14)
    found = gamma_values(3, X, kernel)
    np.testing.assert_allclose(found / scale, [10.0**-0.75, 1.0, 10.0**0.75], rtol=1e-12)


PAIRS = {
    "SVC": (SVC(C=3.0, tol=1e-5), peers.SVC(C=3.0, tol=1e-5)),
    "NuSVC": (NuSVC(nu=0.3, tol=1e-5), peers.NuSVC(nu=0.3, tol=1e-5)),
    "SVR": (SVR(C=3.0, tol=1e-5), peers.SVR(C=3.0, tol=1e-5)),
    "NuSVR": (NuSVR(C=3.0, nu=0.4, tol=1e-5), peers.NuSVR(C=3.0, nu=0.4, tol=1e-5)),
    "OneClassSVM": (OneClassSVM(nu=0.3, tol=1e-5), peers.OneClassSVM(nu=0.3, tol=1e-5)),
}


def answers(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


@pytest.mark.parametrize("kernel", MATERN_KERNELS)
@pytest.mark.parametrize("name", PAIRS)
def test_fits_are_those_of_the_peer(datasets, name, kernel):
    """Their nu is a fraction of the samples, and no smoothness."""
    X, y = datasets["iris"]
    y = np.sin(3.0 * X[:, 0]) + y if name.endswith("SVR") else y == 1
    ours, peer = PAIRS[name]
    K = Matern(length_scale=2.0, nu=NU[kernel])(X, X)
    weights = {} if name.startswith("Nu") else {"sample_weight": np.linspace(0.5, 2.0, len(X))}
    theirs = peer.set_params(kernel="precomputed").fit(K, y, **weights)
    for rows in (X, sp.csr_array(X), X.astype(np.float32)):
        model = ours.set_params(kernel=kernel, gamma=0.5).fit(rows, y, **weights)
        scale = 1.0 + np.abs(answers(theirs, K)).max()
        np.testing.assert_allclose(answers(model, rows) / scale, answers(theirs, K) / scale, atol=5e-4)


@pytest.mark.parametrize("kernel", MATERN_KERNELS)
def test_least_squares_is_the_gaussian_process(diabetes, kernel):
    X, y = diabetes
    process = GaussianProcessRegressor(Matern(3.0, nu=NU[kernel]), alpha=0.5, optimizer=None)
    process.fit(X[:200], y[:200])
    model = RLSRegressor(0.5, kernel=kernel, gamma=1.0 / 3.0).fit(X[:200], y[:200])
    scale = np.abs(y).max()
    np.testing.assert_allclose(model.predict(X) / scale, process.predict(X) / scale, atol=1e-9)
    converted = as_expansion(process).expansion_
    assert converted.kernel_spec[:2] == (kernel, pytest.approx(1.0 / 3.0))


def test_low_rank_models_approach_the_full_ones(diabetes):
    X, y = diabetes
    full = RLSRegressor(0.5, kernel="matern32").fit(X, y)
    few, many, all_points = (
        LowRankRLSRegressor(m, alpha=0.5, kernel="matern32", random_state=0).fit(X, y)
        for m in (20, 150, len(X))
    )
    errors = [np.abs(each.predict(X) - full.predict(X)).max() for each in (few, many, all_points)]
    assert errors[2] < 1e-3 * np.abs(y).max()
    assert errors[0] > errors[1] > errors[2]


def test_low_rank_and_searched_classifiers(datasets):
    X, y = datasets["moons"]
    for model in (
        LowRankSVC(60, kernel="matern52", random_state=0),
        SVCCV(kernel="matern32", Cs=3, gammas=3),
    ):
        assert model.fit(X, y).score(X, y) > 0.93


@pytest.mark.parametrize("method", ["backfit", "prefit", "basic", "rank", "l0", "l1", "lars"])
def test_every_reducer(datasets, method):
    X, y = datasets["moons"]
    model = SVC(kernel="matern32", C=5.0, gamma=1.0).fit(X, y)
    path = reference.path_by(method, model, n_vectors=40)
    spec = model.expansion_.kernel_spec
    wanted = model.expansion_.decision_function(X)
    errors = []
    for n in (5, min(40, len(path))):
        small = path[n].expansion_
        assert small.kernel_spec == spec
        expected = reference.decision(spec, X, small.vectors, small.coefficients, small.intercepts)
        np.testing.assert_allclose(small.decision_function(X), expected, atol=1e-8)
        errors.append(np.square(expected - wanted).mean())
    assert errors[1] < errors[0]


def test_models_are_saved_pickled_and_compressed(datasets, tmp_path):
    X, y = datasets["iris"]
    model = SVC(kernel="matern12", gamma=0.8).fit(X, y)
    save(model, tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.expansion_ == model.expansion_
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert compress(model, X, y, n_vectors=12, random_state=0).score(X, y) > 0.9


def test_values_that_are_no_product_over_columns_are_refused_by_name(datasets):
    X, y = datasets["iris"]
    model = SVC(kernel="matern52", multi_class="ovr").fit(X, y)
    with pytest.raises(ValueError, match=r"kernel='matern52' is not allowed.*products over the columns"):
        shapley_values(model, X[:3], X[:10])
