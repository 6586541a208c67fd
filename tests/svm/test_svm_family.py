"""NuSVC, SVR, NuSVR, OneClassSVM: equal to scikit-learn's, optimal, the same under every switch."""

from __future__ import annotations

import contextlib
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.svm as peers
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from helpers import reference
from helpers.interruption import posix, stops_at_once
from svmarrow import SVC, SVR, NuSVC, NuSVR, OneClassSVM, _core, compress, io, load
from svmarrow._support import training
from svmarrow.models import ExpansionClassifier
from svmarrow.svm import _base

KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "rbf", "gamma": "auto"},
]
SINGLE = [(SVR, {"C": 2.0, "epsilon": 0.05}), (NuSVR, {"C": 2.0, "nu": 0.3}), (OneClassSVM, {"nu": 0.2})]
FAMILY = [*SINGLE, (NuSVC, {"nu": 0.1}), (SVC, {"C": 3.0})]


@pytest.fixture(scope="session")
def regression():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(300, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=300)


@contextlib.contextmanager
def quiet():
    """An indefinite kernel may end with a warning; it must end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def data_of(kind, datasets, regression):
    if issubclass(kind, (SVC, NuSVC)):
        return datasets["iris"]
    X, y = regression
    # The one-class machine of the linear kernel needs rows that do not surround the origin.
    return (X + 3.0, y) if kind is OneClassSVM else (X, y)


def values_of(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def objective(model, X, y):
    """The dual objective of SVR and the one-class machine, as scikit-learn's coefficients have it too."""
    beta = np.zeros(len(X))
    beta[model.support_] = np.asarray(model.dual_coef_)[0]
    kernel = model.kernel if isinstance(model.kernel, str) else "rbf"
    gamma = 1 / (X.shape[1] * X.var()) if model.gamma == "scale" else 1 / X.shape[1]
    K = reference.kernel((kernel, gamma, model.coef0, model.degree), X, X)
    linear = beta @ y - model.epsilon * np.abs(beta).sum() if isinstance(model, (SVR, peers.SVR)) else 0.0
    return linear - 0.5 * beta @ K @ beta


@pytest.mark.parametrize("params", KERNELS, ids=str)
@pytest.mark.parametrize(("kind", "own"), SINGLE, ids=lambda value: getattr(value, "__name__", ""))
def test_single_machines_are_scikit_learns(regression, kind, own, params):
    X, y = data_of(kind, None, regression)
    if kind is NuSVR and params["kernel"] == "linear":
        own = {**own, "C": 0.1}
    ours = kind(**own, **params, tol=1e-4).fit(X, y)
    peer = getattr(peers, kind.__name__)(**own, **params, tol=1e-5).fit(X, y)
    assert ours.certificate_.stop == "converged"
    if kind is not NuSVR:
        assert objective(ours, X, y) == pytest.approx(objective(peer, X, y), rel=1e-4)
        assert ours.certificate_.dual == pytest.approx(objective(peer, X, y), rel=1e-4)
    assert 0 <= ours.certificate_.gap <= 1e-3 * abs(ours.certificate_.primal)
    expected = values_of(peer, X)
    scale = np.abs(expected).max()
    assert values_of(ours, X) == pytest.approx(expected, abs=5e-3 * scale)
    assert abs(int(ours.n_support_[0]) - int(peer.n_support_[0])) <= max(3, 0.03 * peer.n_support_[0])
    assert ours.dual_coef_.sum() == pytest.approx(
        peer.dual_coef_.sum(), abs=1e-6 * np.abs(peer.dual_coef_).sum()
    )
    assert ours.intercept_ == pytest.approx(peer.intercept_, abs=1e-2 * scale)
    for name in ("dual_coef_", "intercept_", "support_", "shape_fit_", "n_support_"):
        theirs = np.shape(getattr(peer, name))
        assert len(np.shape(getattr(ours, name))) == len(theirs)
    if params["kernel"] == "linear":
        assert ours.coef_ == pytest.approx(peer.coef_, abs=1e-2 * np.abs(peer.coef_).max())
    assert ours.fit_status_ == 0
    assert ours.n_iter_ > 0


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_one_class_has_scikit_learns_scale(regression, nu):
    X, _ = regression
    ours, peer = (kind(nu=nu, tol=1e-6).fit(X) for kind in (OneClassSVM, peers.OneClassSVM))
    assert ours.dual_coef_.sum() == pytest.approx(nu * len(X))
    assert ours.offset_ == pytest.approx(peer.offset_, rel=1e-3)
    assert ours.offset_.shape == peer.offset_.shape
    assert ours.score_samples(X) == pytest.approx(peer.score_samples(X), rel=1e-3)
    # Rows on the boundary may fall on either side.
    inside = np.abs(peer.decision_function(X)) > 1e-3 * peer.offset_
    assert np.array_equal(ours.predict(X)[inside], peer.predict(X)[inside])
    assert np.array_equal(ours.fit_predict(X), ours.predict(X))
    assert (ours.decision_function(X) < -1e-3 * ours.offset_).mean() <= nu
    assert ours.n_support_[0] >= nu * len(X)


@pytest.mark.parametrize("name", ["cancer", "digits", "moons", "iris"])
@pytest.mark.parametrize("params", KERNELS[:3], ids=str)
def test_nu_classification_is_scikit_learns(datasets, name, params):
    X, y = datasets[name]
    # More errors than nu: the best margin is none at all.
    nu = 0.4 if name == "moons" else 0.1
    ours, peer = (kind(nu=nu, **params, tol=1e-5).fit(X, y) for kind in (NuSVC, peers.NuSVC))
    shape = {"decision_function_shape": "ovo"}
    mine, theirs = (m.set_params(**shape).decision_function(X) for m in (ours, peer))
    scale = np.abs(theirs).max()
    assert mine == pytest.approx(theirs, abs=2e-2 * scale)
    assert (ours.predict(X) == peer.predict(X)).mean() >= 0.995
    assert ours.dual_coef_.shape[0] == peer.dual_coef_.shape[0]
    assert abs(int(ours.n_support_.sum()) - int(peer.n_support_.sum())) <= max(
        3, 0.03 * peer.n_support_.sum()
    )
    assert np.abs(ours.dual_coef_).max() == pytest.approx(np.abs(peer.dual_coef_).max(), rel=0.05)
    assert ours.intercept_ == pytest.approx(peer.intercept_, abs=2e-2 * scale)


def test_nu_is_a_share_of_rows(datasets, regression):
    X, y = datasets["moons"]
    nu_svc = NuSVC(nu=0.4).fit(X, y)
    signs = np.where(y == nu_svc.classes_[1], 1, -1)
    assert (signs * nu_svc.decision_function(X) < 1 - 5e-3).mean() <= 0.4
    assert nu_svc.support_.size >= 0.4 * len(y)
    with pytest.raises(ValueError, match=r"nu=0.9.*at most"):
        NuSVC(nu=0.9).fit(
            X[(y == "left") | (np.arange(len(y)) < 100)], y[(y == "left") | (np.arange(len(y)) < 100)]
        )
    X, y = regression
    model = NuSVR(nu=0.3, C=5.0).fit(X, y)
    assert (np.abs(model.predict(X) - y) > model.epsilon_ + 5e-3).mean() <= 0.3
    same = SVR(epsilon=model.epsilon_, C=5.0).fit(X, y)
    assert same.predict(X) == pytest.approx(model.predict(X), abs=1e-2)


SWITCHES = [
    {"shrinking": False},
    {"cache_size": 0.001},
    {"n_jobs": 1},
    {"n_jobs": 3},
    {"data": np.float32},
    {"data": sp.csr_array},
    {"data": sp.csc_matrix},
    {"data": np.asfortranarray},
]


@pytest.mark.parametrize("switch", SWITCHES, ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize(("kind", "own"), FAMILY, ids=lambda value: getattr(value, "__name__", ""))
def test_switches_change_the_way_not_the_result(datasets, regression, kind, own, kernel, switch):
    X, y = data_of(kind, datasets, regression)
    if kind is NuSVR and kernel == "linear":
        own = {**own, "C": 0.1}
    options = {**own, "kernel": kernel, "gamma": 0.3, "tol": 1e-5}
    plain = kind(**options).fit(X, y)
    kinds = switch.get("data", np.asarray)
    data = kinds(X)
    other = kind(**options | {k: v for k, v in switch.items() if k != "data"}).fit(data, y)
    assert other.certificate_.stop == "converged"
    assert other.certificate_.dual == pytest.approx(plain.certificate_.dual, rel=1e-5)
    scale = np.abs(values_of(plain, X)).max()
    assert values_of(other, data) == pytest.approx(values_of(plain, X), abs=2e-3 * scale)
    if sp.issparse(data):
        assert sp.issparse(other.support_vectors_)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("kind", "own"),
    [
        *FAMILY,
        (SVC, {"C": 3.0, "multi_class": "ovr"}),
        (NuSVC, {"nu": 0.1, "multi_class": "ovr"}),
        (SVC, {"C": 0.3, "loss": "squared_hinge"}),
        (SVC, {"fit_intercept": False}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_weights_are_repetitions(datasets, regression, rng, kind, own, form):
    X, y = data_of(kind, datasets, regression)
    weights = rng.integers(0, 4, size=len(y))
    options = {**own, "gamma": 0.5, "tol": 1e-6}
    weighted = kind(**options).fit(form(X), y, sample_weight=weights)
    repeated = kind(**options).fit(form(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    scale = np.abs(values_of(repeated, X)).max()
    assert values_of(weighted, X) == pytest.approx(values_of(repeated, X), abs=1e-3 * scale)
    assert not np.isin(np.flatnonzero(weights == 0), weighted.support_).any()
    with pytest.raises(ValueError, match="zero"):
        kind(**own).fit(form(X), y, sample_weight=np.zeros(len(y)))


@pytest.mark.parametrize(("kind", "own"), SINGLE, ids=lambda value: getattr(value, "__name__", ""))
def test_weights_are_scikit_learns(regression, rng, kind, own):
    X, y = regression
    weights = rng.uniform(0.5, 2.0, size=len(y))
    ours, peer = (
        module(**own, tol=1e-5).fit(X, y, sample_weight=weights)
        for module in (kind, getattr(peers, kind.__name__))
    )
    expected = values_of(peer, X)
    assert values_of(ours, X) == pytest.approx(expected, abs=5e-3 * np.abs(expected).max())


@pytest.mark.parametrize(("kind", "own"), FAMILY, ids=lambda value: getattr(value, "__name__", ""))
def test_precomputed_and_functions_are_the_built_in(datasets, regression, kind, own):
    X, y = data_of(kind, datasets, regression)
    spec = ("rbf", 0.5, 0.0, 3)

    def function(A, B):
        return reference.kernel(spec, A, B)

    options = {**own, "tol": 1e-5}
    built = kind(gamma=0.5, **options).fit(X, y)
    expected = values_of(built, X)
    given = kind(kernel="precomputed", **options).fit(function(X, X), y)
    called = kind(kernel=function, **options).fit(X, y)
    for model, rows in ((given, function(X, X)), (called, X)):
        assert values_of(model, rows) == pytest.approx(expected, abs=2e-3 * np.abs(expected).max())
        assert model.certificate_.dual == pytest.approx(built.certificate_.dual, rel=1e-5)


@pytest.mark.parametrize(("kind", "own"), FAMILY, ids=lambda value: getattr(value, "__name__", ""))
def test_warm_starts_go_on(datasets, regression, kind, own):
    X, y = data_of(kind, datasets, regression)
    options = {**own, "gamma": 0.5, "tol": 1e-6}
    cold = kind(**options).fit(X, y)
    warm = kind(**options, warm_start=True, max_iter=20)
    with pytest.warns(ConvergenceWarning, match="call fit again"):
        warm.fit(X, y)
    assert warm.fit_status_ == 1
    before = warm.certificate_.dual
    warm.set_params(max_iter=-1).fit(X, y)
    assert warm.fit_status_ == 0
    assert warm.certificate_.dual >= before - 1e-9 * abs(before)
    assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-6)
    again = warm.fit(X, y)
    assert again.certificate_.iterations <= 0.05 * cold.certificate_.iterations + 2
    scale = np.abs(values_of(cold, X)).max()
    assert values_of(again, X) == pytest.approx(values_of(cold, X), abs=1e-3 * scale)
    # Along a path: the optimum of every step is that of a cold start.
    name = "C" if "C" in own else "nu"
    for factor in (2.0, 0.5, 1.2):
        step = {name: own[name] * factor}
        there = warm.set_params(**step).fit(X, y)
        expected = kind(**{**options, **step}).fit(X, y)
        assert there.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-5)
    # Rows left out, and other rows altogether.
    weights = np.arange(len(y)) % 3 > 0
    left, expected = (m.fit(X, y, sample_weight=weights) for m in (warm, kind(**{**options, **step})))
    assert left.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-5)
    fewer, expected = (m.fit(X[::2, :3], y[::2]) for m in (warm, kind(**{**options, **step})))
    assert fewer.expansion_ == expected.expansion_


@pytest.mark.parametrize(("kind", "own"), FAMILY, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("sparse", [False, True])
def test_files_and_pickles_keep_every_bit(datasets, regression, tmp_path, kind, own, sparse):
    X, y = data_of(kind, datasets, regression)
    X = sp.csr_array(X) if sparse else X
    model = kind(**own).fit(X, y)
    model.save(tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert type(copy) is kind
        assert copy.get_params() == model.get_params()
        assert copy.expansion_ == model.expansion_
        assert copy.certificate_ == model.certificate_
        assert np.array_equal(copy.predict(X), model.predict(X))
        assert np.array_equal(copy.n_support_, model.n_support_)
        assert getattr(copy, "epsilon_", None) == getattr(model, "epsilon_", None)
        again = copy.set_params(warm_start=True).fit(X, y)
        assert again.certificate_.iterations <= 0.2 * model.certificate_.iterations


@pytest.mark.parametrize(("kind", "own"), FAMILY, ids=lambda value: getattr(value, "__name__", ""))
def test_compression_takes_the_family(datasets, regression, kind, own):
    X, y = data_of(kind, datasets, regression)
    model = kind(**own).fit(X, y)
    small = compress(model, n_vectors=30)
    if not isinstance(small, ExpansionClassifier):
        rest = small.outputs(X)[:, 0] - values_of(model, X)
        assert rest.std() < 0.5 * values_of(model, X).std()
    else:
        assert (small.predict(X) == model.predict(X)).mean() > 0.9


@pytest.mark.parametrize(("kind", "own"), SINGLE, ids=lambda value: getattr(value, "__name__", ""))
def test_libsvm_files(regression, tmp_path, kind, own):
    X, y = regression
    model = kind(**own).fit(X, y)
    io.save_libsvm_model(model, tmp_path / "model")
    back = io.load_libsvm_model(tmp_path / "model")
    assert values_of(back, X) == pytest.approx(values_of(model, X), abs=1e-6)


DEGENERATE = {
    "one row": (np.zeros((1, 2)), np.ones(1)),
    "equal rows": (np.ones((30, 3)), np.arange(30.0)),
    "equal targets": (np.random.default_rng(0).normal(size=(30, 3)), np.ones(30)),
    "duplicates": (np.repeat(np.eye(3), 10, axis=0), np.tile([0.0, 1.0], 15)),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize(
    "params", [{}, {"kernel": "linear"}, {"gamma": 1e-8}, {"kernel": "sigmoid", "gamma": 1.0}]
)
@pytest.mark.parametrize(("kind", "own"), SINGLE, ids=lambda value: getattr(value, "__name__", ""))
def test_degenerate_data_ends(kind, own, params, name):
    X, y = DEGENERATE[name]
    with quiet():
        model = kind(**own, **params).fit(X, y)
    assert np.isfinite(values_of(model, X)).all()
    assert np.isfinite(model.certificate_.dual)
    if isinstance(model, SVR) and name == "equal targets":
        assert model.support_.size == 0
        assert model.predict(X) == pytest.approx(y, abs=0.05 + 1e-3)


@pytest.mark.parametrize("c", [1e-6, 1.0, 1e6])
def test_extreme_costs(regression, c):
    X, y = regression
    with quiet():
        model = SVR(C=c, max_iter=20_000).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.certificate_.gap >= -1e-6 * abs(model.certificate_.primal)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (SVR, {"epsilon": -0.1}, r"epsilon=-0\.1"),
        (SVR, {"C": 0}, r"C=0 "),
        (NuSVR, {"nu": 0.0}, r"nu=0\.0"),
        (NuSVC, {"nu": 1.5}, r"nu=1\.5"),
        (OneClassSVM, {"nu": "half"}, r"nu='half'"),
        (OneClassSVM, {"kernel": 3}, r"kernel=3 .*function"),
        (SVR, {"warm_start": 1}, r"warm_start=1"),
        (SVC, {"loss": "log"}, r"loss='log'"),
        (SVC, {"fit_intercept": "no"}, r"fit_intercept='no'"),
    ],
)
def test_bad_parameters_are_named(datasets, kind, params, message):
    X, y = datasets["iris"]
    with pytest.raises(ValueError, match=message):
        kind(**params).fit(X, y)


def test_targets_must_be_numbers(datasets):
    X, y = datasets["moons"]
    with pytest.raises(ValueError, match="y must contain numbers"):
        SVR().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        SVR().fit(X, np.full(len(y), np.nan))
    with pytest.raises(NotFittedError):
        OneClassSVM().predict(X)
    for kind, _ in SINGLE:
        assert not hasattr(kind(), "dual_coef_")
    with pytest.raises(ValueError, match="square"):
        OneClassSVM(kernel="precomputed").fit(X)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_losses_without_intercept_are_liblinears(datasets, loss, name):
    X, y = datasets[name]
    C = 0.05
    ours = SVC(kernel="linear", C=C, loss=loss, fit_intercept=False, multi_class="ovr", tol=1e-5).fit(X, y)
    peer = peers.LinearSVC(C=C, loss=loss, fit_intercept=False, dual=True, tol=1e-6, max_iter=100_000).fit(
        X, y
    )
    assert ours.coef_ == pytest.approx(peer.coef_, abs=1e-3 * np.abs(peer.coef_).max())
    assert not ours.intercept_.any()
    assert np.array_equal(ours.predict(X), peer.predict(X))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_the_gap_is_closed_for_every_loss(datasets, kernel, fit_intercept, loss, multi_class):
    X, y = datasets["digits"]
    X = X @ X.T if kernel == "precomputed" else X
    svc = SVC(
        kernel=kernel, fit_intercept=fit_intercept, loss=loss, multi_class=multi_class, tol=1e-4, C=2.0
    ).fit(X, y)
    for machine in svc.certificate_.machines:
        assert machine.stop == "converged"
        assert machine.violation <= 1e-4
        assert -1e-5 * machine.primal <= machine.gap <= 2e-3 * machine.primal
    assert fit_intercept or not svc.intercept_.any()
    assert svc.score(X, y) > 0.98


def test_memory_is_estimated_before_the_fit(datasets, monkeypatch):
    X, y = datasets["digits"]
    whole = SVC(cache_size=10).estimate_memory(X, y)
    assert set(whole.parts) == {"packed", "cache", "blocks", "variables"}
    assert whole.total == sum(whole.parts.values())
    # Digits are whole numbers of sixteenths: a byte each where the machine multiplies bytes.
    assert X.size <= whole.parts["packed"] <= 5 * X.size
    assert 0 < whole.minimum <= whole.total
    sparse = SVC().estimate_memory(sp.random_array((5000, 100_000), density=1e-4, rng=0))
    assert sparse.parts["packed"] < 100e6
    switches = (np.random.default_rng(0).random((2000, 200)) < 0.03).astype(float)
    dense, sparse = (SVC().estimate_memory(rows) for rows in (switches, sp.csr_array(switches)))
    # Dense rows that are mostly zeros are copied to sparse rows: 16 bytes for an entry, 8 for a row.
    copied = 16 * np.count_nonzero(switches) + 8 * len(switches)
    assert abs(dense.parts["packed"] - sparse.parts["packed"] - copied) <= 0.1 * copied
    assert {**dense.parts, "packed": 0, "cache": 0} == {**sparse.parts, "packed": 0, "cache": 0}
    rows = np.random.default_rng(0).normal(size=(20_000, 100)).astype(np.float32)
    for megabytes in (1, 100, 10_000):
        estimate = OneClassSVM(cache_size=megabytes).estimate_memory(rows)
        assert estimate.parts["cache"] <= max(megabytes * 2**20, 8 * len(rows))
    assert estimate.parts["cache"] == 4 * len(rows) ** 2
    assert 4 * rows.size <= estimate.parts["packed"] <= 4.1 * rows.size
    assert NuSVR().estimate_memory(X).parts["packed"] == SVR().estimate_memory(X).parts["packed"]
    monkeypatch.setattr(_base, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(training, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(_core, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"^SVC.fit needs about .* GB in addition to the data"):
        SVC(cache_size=10).fit(X, y)


@posix
def test_ctrl_c_leaves_a_model_that_continues():
    kept = stops_at_once("""
        import warnings
        from svmarrow import SVC
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(6000, 8)), rng.integers(0, 2, size=6000)
        svc = SVC(C=1e6, gamma=0.05, tol=1e-9, warm_start=True)
        def work():
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    svc.fit(X, y)
                finally:
                    stopped.append(len(warned))
        stopped = []
        def after():
            before = svc.certificate_
            kept = [before.stop, svc.fit_status_, *stopped]
            with warnings.catch_warnings(record=True):
                svc.set_params(max_iter=10_000).fit(X, y)
            return [*kept, svc.certificate_.dual > before.dual, *svc.predict(X).shape]
        """)
    assert kept == ["interrupted", 1, 1, True, 6000]


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_an_infinite_cost_allows_no_loss(kind):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100].astype(float)
    hard = kind(C=np.inf).fit(X, y)
    np.testing.assert_array_equal(hard.predict(X), kind(C=1e12).fit(X, y).predict(X))
    assert hard.certificate_.stop == "converged"
    if kind is SVC:
        assert (hard.decision_function(X) * (2.0 * y - 1.0)).min() > 1.0 - 2e-3
    else:
        assert np.abs(hard.predict(X) - y).max() < hard.epsilon + 2e-3


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize(
    "estimator",
    [SVC(kernel="linear", tol=1e-6), SVR(kernel="linear", tol=1e-6), OneClassSVM(kernel="linear")],
)
def test_sparse_rows_give_sparse_attributes_of_their_kind(estimator, make):
    X, y = load_iris(return_X_y=True)
    dense, thin = clone(estimator).fit(X, y), clone(estimator).fit(make(X), y)
    # scikit-learn 1.9 gives everyone the one kind that its configuration names.
    named = {"spmatrix": sp.csr_matrix, "sparray": sp.csr_array}
    kind = named.get(sklearn.get_config().get("sparse_interface"), make)
    assert all(type(getattr(thin, name)) is kind for name in ("support_vectors_", "dual_coef_", "coef_"))
    np.testing.assert_array_equal(thin.support_vectors_.toarray(), X[thin.support_])
    # Coefficients need not be unique, weights are.
    weights = thin.dual_coef_.toarray() @ thin.support_vectors_.toarray()
    if weights.shape == thin.coef_.shape:
        np.testing.assert_allclose(weights, thin.coef_.toarray(), atol=1e-9)
    np.testing.assert_allclose(thin.coef_.toarray(), dense.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="read-only"):
        thin.coef_.data[0] = 1.0


def test_a_far_row_does_not_widen_the_certificate():
    """Kernel values of one row are a million times as large, but the error of the outputs is small."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=170)
    y = np.sin(2.0 * x) + x**2 + 1e4
    x[85] = 60.0
    model = SVR(kernel="poly").fit(x[:, None], y)
    machine = model.certificate_.machines[0]
    beta = np.zeros(170)
    beta[model.support_] = model.dual_coef_.ravel()
    h = (x[:, None] * x / x.var()) ** 3 @ beta
    losses = np.maximum(np.abs(y - h - model.intercept_) - 0.1, 0.0)
    slack = 4.0 * machine.rounding * np.abs(beta).sum()
    assert machine.support > 128  # otherwise, errors of all outputs are measured
    assert machine.primal == pytest.approx(0.5 * beta @ h + losses.sum(), abs=slack)
