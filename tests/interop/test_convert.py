"""Any kernel machine as an expansion: its decision values are the model's own."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peer
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    OneClassSVM,
    as_expansion,
    compress,
    compression_path,
    io,
    load,
    quantize,
    save,
)
from svmarrow.models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor

EXACT = {"rtol": 1e-10, "atol": 1e-10}


# Without None for "chi2": scikit-learn's needs a number.
@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [
        *product(["rbf", "poly", "polynomial", "linear", "sigmoid", "laplacian"], [None, 0.05]),
        ("chi2", 0.05),
    ],
)
def test_kernel_ridge(diabetes, kernel, gamma):
    X, y = diabetes
    X = np.abs(X) if kernel == "chi2" else X
    alpha = 100.0 if kernel == "sigmoid" else 0.5
    model = KernelRidge(kernel=kernel, gamma=gamma, alpha=alpha, degree=2, coef0=0.7).fit(X[:200], y[:200])
    ours = as_expansion(model)
    assert isinstance(ours, ExpansionRegressor)
    np.testing.assert_allclose(ours.predict(X), model.predict(X), **EXACT)


def test_kernel_ridge_of_several_targets_sparse_rows_and_precomputed(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, y**2, -y])
    model = KernelRidge(kernel="rbf", gamma=0.02).fit(sp.csr_matrix(X[:200]), Y[:200])
    np.testing.assert_allclose(as_expansion(model).predict(X), model.predict(sp.csr_matrix(X)), **EXACT)
    column = KernelRidge(kernel="rbf").fit(X[:200], Y[:200, :1])
    assert as_expansion(column).predict(X).shape == column.predict(X).shape == (len(y), 1)
    K = X @ X[:200].T
    precomputed = KernelRidge(kernel="precomputed").fit(K[:200], y[:200])
    np.testing.assert_allclose(as_expansion(precomputed).predict(K), precomputed.predict(K), **EXACT)
    for kernel in ("cosine", lambda a, b: a @ b):
        model = KernelRidge(kernel=kernel).fit(X[:20], y[:20])
        with pytest.raises(ValueError, match="of this KernelRidge is not one that an expansion has"):
            as_expansion(model)


COVARIANCES = [
    None,
    gp.RBF(2.0),
    gp.ConstantKernel(3.0) * gp.RBF(2.0),
    gp.ConstantKernel(2.0) * gp.RBF(3.0) + gp.WhiteKernel(0.5),
    gp.RBF(2.0) * gp.RBF(3.0) + gp.ConstantKernel(0.7) + gp.WhiteKernel(0.1),
    2.0 * gp.RBF(2.0) + 0.5 * gp.RBF(2.0),
    (gp.ConstantKernel(2.0) * gp.RBF(2.0)) ** 2,
    gp.Matern(2.0, nu=np.inf),
    gp.ConstantKernel(2.0) * gp.Matern(3.0, nu=0.5) + gp.WhiteKernel(0.5),
    gp.Matern(2.0, nu=1.5) + gp.ConstantKernel(0.7),
    gp.Matern(4.0, nu=2.5),
    gp.RBF([2.0] * 10),
    gp.RBF(np.arange(1.0, 11.0)),
    gp.Matern(np.arange(1.0, 11.0), nu=2.5),
    gp.DotProduct(0.5) + gp.WhiteKernel(1.0),
    (0.1 * gp.DotProduct(0.5)) ** 3 + gp.WhiteKernel(1.0),
    gp.ConstantKernel(0.4) + gp.WhiteKernel(1.0),
]


@pytest.mark.parametrize("covariance", COVARIANCES, ids=str)
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_gaussian_processes(diabetes, covariance, normalize_y, targets):
    X, y = diabetes
    y = y if targets == 1 else np.column_stack([y, 3 + y**2])
    model = GaussianProcessRegressor(covariance, alpha=0.1, optimizer=None, normalize_y=normalize_y)
    model.fit(X[:150], y[:150])
    np.testing.assert_allclose(as_expansion(model).predict(X), model.predict(X), **EXACT)


def test_gaussian_processes_with_fitted_parameters_compress(diabetes):
    X, y = diabetes
    kernel = gp.ConstantKernel(1.0) * gp.RBF(3.0) + gp.WhiteKernel(0.5)
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[:200], y[:200])
    path = compression_path(model, n_vectors=60)
    assert isinstance(path[10], ExpansionRegressor)
    assert path.scores(X[200:], y[200:])[-1] > model.score(X[200:], y[200:]) - 0.02


@pytest.mark.parametrize(
    ("covariance", "why"),
    [
        (gp.Matern(nu=2.0), "Matern"),
        (gp.Matern(nu=1.5) * gp.Matern(nu=1.5), "this product"),
        (gp.RBF(np.arange(1.0, 11.0)) + gp.RBF(1.0), "sums different kernels"),
        (gp.RBF(1.0) + gp.RBF(2.0), "sums different kernels"),
        (gp.RBF(1.0) * gp.DotProduct(), "this product"),
        (gp.RationalQuadratic(), "RationalQuadratic"),
        (gp.DotProduct(30.0) ** 0.5, "this power"),
    ],
    ids=str,
)
def test_covariances_that_are_no_kernel_of_an_expansion_are_refused(diabetes, covariance, why):
    X, y = diabetes
    model = GaussianProcessRegressor(covariance, alpha=1.0, optimizer=None).fit(X[:40], y[:40])
    with pytest.raises(ValueError, match=f"of this Gaussian process.*{why}|kernel={why}"):
        as_expansion(model)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int32])
def test_products_of_narrow_integers_are_refused(rng, kind):
    # scikit-learn's products of truth values are logical, and those of narrow integers overflow.
    X = rng.integers(0, 2, size=(20, 5))
    model = GaussianProcessRegressor(gp.DotProduct(0.5), alpha=100.0, optimizer=None)
    model.fit(X.astype(kind), X[:, 0])
    with pytest.raises(ValueError, match=f"samples of type {np.dtype(kind)}.*float64"):
        as_expansion(model)
    as_expansion(model.fit(X.astype(float), X[:, 0]))


MACHINES = [
    peer.SVC(gamma=0.3, C=2),
    peer.NuSVC(gamma=0.3, nu=0.2),
    SVC(gamma=0.3, C=2),
    KernelRidge(kernel="rbf", gamma=0.3),
    peer.SVR(gamma=0.3),
    GaussianProcessRegressor(gp.RBF(1.5), alpha=0.3, optimizer=None),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
@pytest.mark.parametrize("classes", [2, 3])
def test_one_vs_rest(iris, machine, classes):
    X, y = iris
    keep = y != "c" if classes == 2 else np.ones(len(y), dtype=bool)
    model = OneVsRestClassifier(machine).fit(X[keep][:60], y[keep][:60])
    ours = as_expansion(model)
    assert ours.decoding == ("binary" if classes == 2 else "ovr")
    assert (ours.predict(X) == model.predict(X)).all()
    outputs = [
        part.predict(X) if not hasattr(part, "decision_function") else part.decision_function(X)
        for part in model.estimators_
    ]
    shift = 0.5 if classes == 2 and not hasattr(machine, "decision_function") else 0.0
    np.testing.assert_allclose(ours.outputs(X) + shift, np.column_stack(outputs), **EXACT)
    # A vector that several machines have is kept once.
    assert ours.expansion_.n_vectors <= 60


@pytest.mark.parametrize("machine", MACHINES[:3], ids=lambda machine: type(machine).__name__)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_one_vs_one(iris, machine, classes, sparse):
    X, y = iris
    keep = y != "c" if classes == 2 else np.ones(len(y), dtype=bool)
    form = sp.csr_array if sparse else np.asarray
    model = OneVsOneClassifier(machine).fit(form(X[keep][:60]), y[keep][:60])
    ours = as_expansion(model)
    assert (ours.predict(X) == model.predict(form(X))).all()
    expected = [part.decision_function(form(X)) for part in model.estimators_]
    np.testing.assert_allclose(-ours.outputs(X), np.column_stack(expected), **EXACT)
    np.testing.assert_allclose(ours.decision_function(X), model.decision_function(form(X)), **EXACT)
    assert isinstance(compress(model, n_vectors=10), ExpansionClassifier)


@pytest.mark.parametrize("wrapper", [OneVsOneClassifier, OneVsRestClassifier])
def test_machines_of_several_kernels_are_a_sum(wrapper, iris):
    X, y = iris
    model = wrapper(peer.SVC(gamma="scale")).fit(X, y)
    if wrapper is OneVsRestClassifier:
        # Each machine sees all samples, so that the widths would be the same.
        model.estimators_[0] = peer.SVC(gamma=0.7).fit(X, y == "a")
    ours = as_expansion(model)
    assert len(ours.expansion_.parts) > 1
    assert (ours.predict(X) == model.predict(X)).all()
    np.testing.assert_allclose(ours.decision_function(X), model.decision_function(X), **EXACT)
    small = compress(model, X, n_vectors=12)
    assert small.expansion_.n_vectors == 12
    assert small.score(X, model.predict(X)) > 0.9


def test_wrappers_that_are_not_one_expansion_are_refused(iris):
    X, y = iris
    labels = np.column_stack([y == "a", y != "c"]).astype(int)
    with pytest.raises(ValueError, match="several labels"):
        as_expansion(OneVsRestClassifier(peer.SVC()).fit(X, labels))
    with pytest.raises(TypeError, match="LinearSVC"):
        as_expansion(OneVsRestClassifier(peer.LinearSVC()).fit(X, y))
    with pytest.warns(UserWarning, match="not"):
        constant = OneVsRestClassifier(peer.SVC()).fit(X[:5], np.zeros(5))
    with pytest.raises(ValueError, match="OneVsRestClassifier was fitted to one class"):
        as_expansion(constant)
    constant = OneVsRestClassifier(peer.SVC(gamma=0.3))
    with pytest.warns(UserWarning, match="not"):
        constant.fit(X[:60], np.where(np.arange(60) < 30, 0, 1)[:, None] * np.array([[1, 0]]))
    with pytest.raises(ValueError, match="several labels"):
        as_expansion(constant)


def test_other_kinds(iris, diabetes, tmp_path):
    X, y = iris
    svc = SVC(gamma=0.3).fit(X, y)
    assert (as_expansion(FrozenEstimator(svc)).predict(X) == svc.predict(X)).all()
    save(svc, tmp_path / "model.safetensors")
    assert (as_expansion(tmp_path / "model.safetensors").predict(X) == svc.predict(X)).all()
    whole = SVC(gamma=0.3).fit(X, y == "a")
    numbers = SVC(gamma=0.3).fit(X, (y == "a").astype(int))
    io.save_libsvm_model(numbers, tmp_path / "model.txt")
    again = as_expansion(str(tmp_path / "model.txt"))
    np.testing.assert_allclose(again.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-9)
    bare = as_expansion((X[:5], np.ones((5, 2)), {"kernel": "rbf", "gamma": 0.3}))
    assert isinstance(bare, KernelExpansion)
    assert bare.n_outputs == 2
    assert as_expansion((X[:5], np.ones(5), "linear")).kernel == "linear"
    with pytest.raises(TypeError, match="2 parts"):
        as_expansion((X, y))

    class Own(RegressorMixin, BaseEstimator):
        """Somebody's estimator that ends in an expansion."""

        def fit(self, X, y):
            self.expansion_ = KernelExpansion(X, y, 0.5, kernel="linear")
            return self

    own = as_expansion(Own().fit(*diabetes))
    assert isinstance(own, ExpansionRegressor)


def test_refused_by_name(iris, diabetes):
    X, y = iris
    for model in (Ridge().fit(*diabetes), GaussianProcessClassifier().fit(X[:30], y[:30]), 3):
        with pytest.raises(TypeError, match=f"{type(model).__name__} is not a kernel expansion"):
            as_expansion(model)
    small = compression_path(SVC().fit(X, y), n_vectors=5)
    with pytest.raises(TypeError, match="contains a model: pass one of its sizes"):
        as_expansion(small)
    assert as_expansion(quantize(small[5])).expansion_.n_vectors == 5
    for model in (KernelRidge(), GaussianProcessRegressor(), OneVsRestClassifier(peer.SVC())):
        with pytest.raises(NotFittedError, match=type(model).__name__):
            as_expansion(model)


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("kind", [SVR, peer.SVR, peer.NuSVR])
def test_compressed_regressors(diabetes, kind, tmp_path):
    X, y = diabetes
    model = kind(C=5, gamma=0.02).fit(X[:300], y[:300])
    small = compress(model, n_vectors=40)
    assert isinstance(small, ExpansionRegressor)
    assert small.score(X[300:], y[300:]) == pytest.approx(model.score(X[300:], y[300:]), abs=0.05)
    small.save(tmp_path / "small")
    again = load(tmp_path / "small")
    assert isinstance(again, ExpansionRegressor)
    assert np.array_equal(again.predict(X), small.predict(X))
    io.save_libsvm_model(small, tmp_path / "text")
    text = io.load_libsvm_model(tmp_path / "text")
    assert isinstance(text, ExpansionRegressor)
    np.testing.assert_allclose(text.predict(X), small.predict(X), rtol=1e-9)
    assert "svm_type epsilon_svr" in (tmp_path / "text").read_text()
    made = compress(model, n_vectors=15, method="gradient", random_state=0)
    assert isinstance(made, ExpansionRegressor)


@pytest.mark.parametrize("kind", [OneClassSVM, peer.OneClassSVM])
def test_compressed_detectors(diabetes, kind, tmp_path):
    X, _ = diabetes
    model = kind(nu=0.2, gamma=0.05).fit(X)
    path = compression_path(model, n_vectors=80)
    small = path[len(path)]
    assert isinstance(small, ExpansionDetector)
    np.testing.assert_allclose(small.score_samples(X), small.decision_function(X) + small.offset_)
    assert (small.predict(X) == np.where(small.decision_function(X) > 0, 1, -1)).all()
    assert path.agreement(X)[-1] == (small.predict(X) == model.predict(X)).mean() > 0.95
    assert path.full_score(X, model.predict(X)) == 1.0
    assert path.select(X, min_agreement=0.9).expansion_.n_vectors < len(path)
    small.save(tmp_path / "small")
    again = load(tmp_path / "small")
    assert np.array_equal(again.decision_function(X), small.decision_function(X))
    io.save_libsvm_model(small, tmp_path / "text")
    text = io.load_libsvm_model(tmp_path / "text")
    assert isinstance(text, ExpansionDetector)
    assert (text.predict(X) == small.predict(X)).all()
    assert "svm_type one_class" in (tmp_path / "text").read_text()
    assert set(small.fit_predict.__self__.predict(X)) <= {-1, 1}


def test_several_targets_compress_together(diabetes, tmp_path):
    X, y = diabetes
    Y = np.column_stack([y, np.abs(y)])
    model = KernelRidge(kernel="rbf", gamma=0.02).fit(X, Y)
    path = compression_path(model, n_vectors=100)
    assert path[20].predict(X).shape == (len(y), 2)
    assert path.scores(X, Y)[-1] == pytest.approx(model.score(X, Y), abs=0.1)
    path[20].save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(X), path[20].predict(X))
    with pytest.raises(ValueError, match="2 outputs"):
        io.save_libsvm_model(path[20], tmp_path / "text")
