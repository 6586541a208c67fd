"""Exact machines over partitions: the machine, the support vectors and the certificate of one machine."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

import svmarrow
from svmarrow import SVC, LowRankSVC, _core
from svmarrow._support.progress import Progress
from svmarrow.dask import (
    DaskLowRankRLSClassifier,
    DaskLowRankSVC,
    DaskSVC,
)
from svmarrow.dask.partition import Machines
from svmarrow.dask.svm import code_of
from svmarrow.expansion.kernel_expansion import KernelExpansion


def moons(n=900, noise=0.25):
    X, y = make_moons(n, noise=noise, random_state=3)
    return X, np.array(["left", "right"])[y]


def objectives(model, X, y, weights=None):
    """Dual and primal of a model in double precision, whatever its solver's kernel values were in."""
    labels = np.searchsorted(model.classes_, y)
    local = model.to_local() if isinstance(model, DaskSVC) else model
    matrix = code_of(local._decoding, model.classes_.size)
    cost = model.C * model.class_weight_[labels] * (1.0 if weights is None else weights)
    X = X.astype(np.float64)
    outputs = model.expansion_.decision_function(X)
    beta = np.zeros_like(outputs)
    beta[model.support_] = model.expansion_.coefficients
    dual = primal = 0.0
    for j in range(outputs.shape[1]):
        signs = matrix[labels, j].astype(float)
        missed = np.where(signs != 0, np.maximum(0.0, 1.0 - signs * outputs[:, j]), 0.0)
        quadratic = beta[:, j] @ (outputs[:, j] - model.intercept_[j])
        squared = getattr(model, "loss", "hinge") == "squared_hinge"
        used = beta[:, j] != 0
        ridge = (0.5 / cost[used] * beta[used, j] ** 2).sum() if squared else 0.0
        dual += np.abs(beta[:, j]).sum() - 0.5 * (quadratic + ridge)
        primal += 0.5 * quadratic + (cost * (missed**2 if squared else missed)).sum()
    return dual, primal


def agree(far, near, X, y, weights=None, *, tol=1e-6):
    """Two fits of one problem: certified objectives are true, and those of the other."""
    certificate = far.certificate_
    assert certificate.stop == near.certificate_.stop == "converged"
    dual, primal = objectives(far, X, y, weights)
    # The interval has room for rounding in double precision.
    assert certificate.dual == pytest.approx(dual, rel=1e-6)
    assert certificate.dual <= dual + 1e-9 * abs(dual)
    assert certificate.primal == pytest.approx(primal, rel=1e-6)
    assert certificate.primal >= primal - 1e-9 * abs(primal)
    other = objectives(near, X, y, weights)
    # A solver whose kernel values are in single precision comes no nearer than it came itself.
    off = max(tol * abs(primal), other[1] - other[0])
    assert abs(dual - other[0]) <= off
    assert abs(primal - other[1]) <= off
    assert 0.0 <= certificate.gap <= 2.0 * off
    np.testing.assert_array_equal(far.classes_, near.classes_)
    np.testing.assert_allclose(far.class_weight_, near.class_weight_)
    assert far.shape_fit_ == near.shape_fit_
    np.testing.assert_allclose(far.decision_function(X), near.decision_function(X), atol=5e-3)


def supports(far, near):
    """The same rows support both, but for some that hardly do."""
    size = np.abs(near.expansion_.coefficients).max(axis=1)
    clear = near.support_[size > 1e-3 * size.max()]
    assert np.isin(clear, far.support_).all()
    size = np.abs(far.expansion_.coefficients).max(axis=1)
    assert np.isin(far.support_[size > 1e-3 * size.max()], near.support_).all()
    assert (np.diff(far.support_[: far.n_support_[0]]) > 0).all()
    assert far.n_support_.sum() == far.support_.size


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"C": 100.0, "gamma": 2.0},
        {"loss": "squared_hinge"},
        {"fit_intercept": False},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "matern32"},
        {"kernel": "linear"},
        {"class_weight": {"left": 5.0}},
        {"class_weight": "balanced", "C": 0.01},
    ],
    ids=str,
)
def test_two_classes(client, lazy, options):
    X, y = moons()
    far = DaskSVC(tol=1e-5, **options).fit(*lazy(170, X, y))
    near = SVC(tol=1e-5, **options).fit(X, y)
    agree(far, near, X, y)
    supports(far, near)
    assert far.support_vectors_.shape == (far.support_.size, 2)
    np.testing.assert_array_equal(far.support_vectors_, X[far.support_])
    assert abs(far.dual_coef_.sum()) < 1e-6 or not far.fit_intercept


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_many_classes(client, lazy, all_digits, multi_class):
    X, y = all_digits
    names = np.array([f"digit {label}" for label in y])
    far = DaskSVC(C=10.0, multi_class=multi_class, tol=1e-5).fit(*lazy(300, X, names))
    near = SVC(C=10.0, multi_class=multi_class, tol=1e-5).fit(X, names)
    agree(far, near, X, names)
    supports(far, near)
    assert len(far.certificate_.machines) == near.expansion_.n_outputs
    assert far.dual_coef_.shape[0] == near.dual_coef_.shape[0]
    np.testing.assert_array_equal(far.predict(X), near.predict(X))


def test_weights_count_rows_and_zero_leaves_them_out(client, lazy, iris):
    X, y = iris
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    far = DaskSVC(class_weight="balanced", tol=1e-5).fit(*lazy(40, X, y, weights))
    near = SVC(class_weight="balanced", tol=1e-5).fit(X, y, weights)
    agree(far, near, X, y, weights)
    assert (weights[far.support_] > 0).all()


@pytest.mark.parametrize(
    "model",
    [
        DaskSVC(C=10),
        DaskLowRankSVC(20, random_state=0),
        DaskLowRankRLSClassifier(20, random_state=0),
    ],
    ids=repr,
)
def test_models_know_whether_there_were_weights(client, lazy, iris, model, tmp_path):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    weights = 1.0 + (y == "b")
    inside = "3.0" in repr(model)
    fits = [
        (lazy(75, X, y), {}, inside),
        (lazy(75, X, y, weights), {}, True),
        (lazy(75, X, y), {"class_weight": {"b": 4.0}}, True),
    ]
    for parts, options, known in fits:
        fitted = clone(model).set_params(**options).fit(*parts)
        assert svmarrow.as_expansion(fitted.to_local()).weighted is known
        fitted.save(tmp_path / "model.safetensors")
        assert svmarrow.as_expansion(svmarrow.load(tmp_path / "model.safetensors")).weighted is known


@pytest.mark.parametrize("dtype", ["float32", "uint8", "csr"])
def test_kinds_of_rows(client, pixels, dtype):
    X, y = pixels[:2]
    kept = sp.csr_array(X) if dtype == "csr" else X.astype(dtype)
    chunks = (250, 250, 400)
    rows = da.from_array(X, chunks=(chunks, -1))
    rows = rows.map_blocks(sp.csr_matrix if dtype == "csr" else lambda block: block.astype(dtype))
    far = DaskSVC(gamma=1e-3, C=5.0, tol=1e-4).fit(rows, da.from_array(y, chunks=(chunks,)))
    near = SVC(gamma=1e-3, C=5.0, tol=1e-4).fit(kept, y)
    agree(far, near, kept, y, tol=1e-5)
    assert far.expansion_.vectors.dtype == near.expansion_.vectors.dtype
    assert sp.issparse(far.expansion_.vectors) == (dtype == "csr")


def test_partitions_without_rows_or_with_one_class(client):
    X, y = moons(400)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    rows, labels = da.from_array(X, chunks=(40, 2)), da.from_array(y, chunks=40)
    right = rows[:, 0] > -10.0  # all of them, but Dask cannot know
    none = rows[:40][rows[:40, 0] > 10.0]
    X_all = da.concatenate([none, rows[right]])
    y_all = da.concatenate([labels[:40][rows[:40, 0] > 10.0], labels[right]])
    assert np.isnan(X_all.chunks[0]).all()
    far = DaskSVC(tol=1e-5).fit(X_all, y_all)
    near = SVC(tol=1e-5).fit(X, y)
    agree(far, near, X, y)
    supports(far, near)


def test_one_partition_leaves_a_worker_without_rows(client, lazy):
    X, y = moons(300)
    agree(DaskSVC(tol=1e-5).fit(*lazy(300, X, y)), SVC(tol=1e-5).fit(X, y), X, y)


def test_frames_with_their_names(client, cancer):
    X, y = cancer[0][:, :5], cancer[1]
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(y, "good", "bad"))
    lazy = dd.from_pandas(frame, npartitions=3)
    rows = lazy[list("abcde")]
    near = SVC(tol=1e-5).fit(frame[list("abcde")], frame["kind"])
    for labels in (lazy["kind"], lazy[["kind"]], lazy[["kind"]].to_dask_array()):
        far = DaskSVC(tol=1e-5).fit(rows, labels)
        dual, primal = far.certificate_.dual, near.certificate_.primal
        assert dual == pytest.approx(primal, rel=1e-5)
        assert list(far.feature_names_in_) == list("abcde")
    for columns in ("edcb", "edcba"):
        with pytest.raises(ValueError, match="The feature names should match"):
            far.predict(lazy[list(columns)])
    found = far.predict(rows)
    assert list(found.compute().index) == list(frame.index)
    assert far.score(rows, lazy["kind"]) == pytest.approx(near.score(frame[list("abcde")], frame["kind"]))


def cosine(A, B):
    return (A @ B.T) / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)


def test_a_kernel_of_the_users(client, lazy, digits):
    X, y = digits[:2]

    # Made here, so that it goes along with the tasks.
    def kernel(A, B):
        return (A @ B.T) / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)

    far = DaskSVC(kernel=kernel, C=10.0, tol=1e-4).fit(*lazy(200, X, y))
    agree(far, SVC(kernel=cosine, C=10.0, tol=1e-4).fit(X, y), X, y, tol=1e-5)


def test_bits_depend_neither_on_workers_nor_on_the_run(client, lazy):
    X, y = moons()
    rows, labels = lazy(100, X, y)
    one = DaskSVC(C=10.0).fit(rows, labels)
    worker = min(client.scheduler_info()["workers"])
    kept = client.persist([rows, labels], workers=[worker])
    two = DaskSVC(C=10.0).fit(*kept)
    assert one.expansion_ == two.expansion_
    assert one.certificate_.machines == two.certificate_.machines


def test_only_changed_coefficients_are_evaluated(client, lazy, monkeypatch):
    X, y = moons(3000)
    rows = lazy(300, X, y)
    svc = DaskSVC(C=10.0).fit(*rows)
    first, *later = svc.rounds_
    assert later
    assert first.changed == first.support
    assert all(each.changed < 0.5 * each.support for each in later)
    assert later[-1].violators == 0
    duals = [each.dual for each in svc.rounds_]
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(duals))
    # What is added up from round to round is what a round finds that computes all anew.
    monkeypatch.setattr("svmarrow.dask.rounds._MAX_OUTPUT_UPDATES", 1)
    anew = DaskSVC(C=10.0).fit(*rows)
    assert all(each.changed == each.support for each in anew.rounds_)
    for a, b in ((anew.certificate_, svc.certificate_), (svc.certificate_, anew.certificate_)):
        assert a.dual <= b.primal
        assert 0.0 <= a.gap <= 1e-5 * a.primal


def test_rounds_begin_without_a_kernel_value(client, lazy, monkeypatch):
    X, y = moons(3000)
    starts = []
    fit = Machines.fit

    def watched(machines, rows, jobs, start=None, **solver):
        starts.append((machines, rows, start))
        return fit(machines, rows, jobs, start, **solver)

    monkeypatch.setattr(Machines, "fit", watched)
    DaskSVC(C=10.0).fit(*lazy(300, X, y))
    assert [start[2] is None for _, _, start in starts] == [True] + [False] * (len(starts) - 1)
    assert len(starts) > 1
    for machines, rows, (support, coefficients, products) in starts[1:]:
        expansion = KernelExpansion(rows.X[support], coefficients, np.zeros(1), *machines.kernel)
        np.testing.assert_allclose(products, expansion.decision_function(rows.X), atol=1e-9)


def test_a_limit_of_steps_ends_with_a_certified_model(client, lazy):
    X, y = moons(600)
    with pytest.warns(ConvergenceWarning, match=r"DaskSVC ended before .*max_iter"):
        svc = DaskSVC(C=1000.0, gamma=5.0, max_iter=20).fit(*lazy(100, X, y))
    optimum = SVC(C=1000.0, gamma=5.0).fit(X, y).certificate_
    assert svc.certificate_.stop == "max_iter"
    assert svc.certificate_.dual <= optimum.primal
    assert svc.certificate_.primal >= optimum.dual
    assert svc.fit_status_ == 1
    assert svc.score(*lazy(100, X, y)) > 0.5


@pytest.mark.parametrize("warm", [False, True])
def test_no_time_at_all_leaves_a_certified_model(client, lazy, warm):
    X, y = moons(600)
    rows = lazy(100, X, y)
    svc = DaskSVC(C=1000.0, gamma=5.0, max_time=0.0, warm_start=warm)
    for _ in range(1 + warm):
        with pytest.warns(ConvergenceWarning, match="max_time"):
            svc.fit(*rows)
    certificate, optimum = svc.certificate_, SVC(C=1000.0, gamma=5.0).fit(X, y).certificate_
    assert certificate.stop == "max_time"
    assert certificate.dual <= optimum.primal
    assert certificate.primal >= optimum.dual
    assert svc.predict(X).shape == y.shape


def test_warm_start_continues(client, lazy):
    X, y = moons(900)
    rows = lazy(150, X, y)
    svc = DaskSVC(C=10.0, warm_start=True, tol=1e-5).fit(*rows)
    again = clone(svc).set_params(warm_start=False).fit(*rows)
    steps = svc.certificate_.iterations
    svc.fit(*rows)
    assert svc.certificate_.iterations < 0.1 * steps
    agree(svc, again, X, y)
    svc.set_params(C=20.0).fit(*rows)
    agree(svc, SVC(C=20.0, tol=1e-5).fit(X, y), X, y)


def test_ctrl_c_keeps_the_last_round_with_warm_start(client, lazy, monkeypatch):
    X, y = moons(900)
    rows = lazy(100, X, y)
    asked = []

    def stop(rounds):
        asked.append(len(rounds.log))
        if len(asked) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("svmarrow.dask.rounds.Rounds._report_round", stop)
    svc = DaskSVC(C=10.0)
    with pytest.raises(KeyboardInterrupt):
        svc.fit(*rows)
    assert not hasattr(svc, "expansion_")
    asked.clear()
    svc.set_params(warm_start=True)
    with pytest.warns(ConvergenceWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        svc.fit(*rows)
    assert svc.certificate_.stop == "interrupted"
    asked.extend([0, 0, 0])
    svc.fit(*rows)
    agree(svc.set_params(tol=1e-3), SVC(C=10.0).fit(X, y), X, y, tol=1e-3)


class Asks(Progress):
    """Asks for an end after every round, as a callback may."""

    @property
    def callback(self):
        return lambda phase, *_: phase == "rounds"


def test_a_callback_ends_a_fit_after_a_round(client, lazy, monkeypatch):
    X, y = moons(900)
    monkeypatch.setattr("svmarrow.dask.svm.progress", lambda _: Asks())
    svc = DaskSVC(C=10.0).fit(*lazy(100, X, y))
    certificate, optimum = svc.certificate_, SVC(C=10.0).fit(X, y).certificate_
    assert certificate.stop == "interrupted"
    assert len(svc.rounds_) == 1
    assert svc.rounds_[0].violators > 0
    assert certificate.dual <= optimum.primal
    assert certificate.primal >= optimum.dual


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    "options", [{"C": 10.0}, {"class_weight": "balanced", "loss": "squared_hinge"}], ids=str
)
def test_what_a_fit_will_need(client, lazy, options):
    X, y = moons(8000)
    rows = lazy(1000, X.astype(np.float32), y)
    svc = DaskSVC(gamma=2.0, **options)
    told = svc.estimate(*rows, sample=1600)
    assert not hasattr(svc, "n_features_in_")
    assert told.n_samples == len(X)
    assert told.advice is None
    svc.fit(*rows)
    rounds = svc.rounds_
    assert 0.6 < told.support / svc.support_.size < 1.6
    assert 0.3 < told.rounds / len(rounds) < 3.0
    assert 0.5 < told.sent_bytes / sum(each.sent for each in rounds) < 2.0
    assert 0.5 < told.worker_values / (len(X) * sum(each.changed for each in rounds)) < 2.0
    assert told.received_bytes > sum(each.received for each in rounds)
    # All rows instead of a sample.
    assert abs(svc.estimate(*rows, sample=8000).support - svc.support_.size) < 20


def test_an_estimate_advises_where_memory_is_short(client, lazy, monkeypatch):
    X, y = moons(600)
    monkeypatch.setattr("svmarrow.dask.partition._core", FakeCore)
    told = DaskSVC().estimate(*lazy(100, X, y), sample=200)
    assert told.driver_bytes > told.driver_free == 1024
    assert "train DaskLowRankRLSClassifier" in told.advice
    assert f"{told.support} expected support vectors" in told.advice
    with pytest.raises(ValueError, match="sample=1 is not allowed"):
        DaskSVC().estimate(*lazy(100, X, y), sample=1)
    with pytest.raises(ValueError, match="kernel='precomputed'"):
        DaskSVC(kernel="precomputed").estimate(*lazy(100, X, y))


def test_memory_is_asked_for_before_rows_are_sent(client, lazy, monkeypatch):
    X, y = moons(600)
    monkeypatch.setattr("svmarrow._support.training.MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr("svmarrow._support.training._core", FakeCore)
    with pytest.raises(
        MemoryError, match=r"DaskSVC.fit found \d+ support vectors .*DaskLowRankRLSClassifier"
    ):
        DaskSVC().fit(*lazy(100, X, y))


class FakeCore:
    """A machine with a kilobyte of memory."""

    estimate_svm_memory = staticmethod(_core.estimate_svm_memory)
    fit_svc = staticmethod(_core.fit_svc)

    @staticmethod
    def available_memory():
        return 1024


def test_to_local_pickles_and_files(client, lazy, tmp_path):
    X, y = moons(500)
    rows = lazy(100, X, y)
    svc = DaskSVC(C=3.0)
    svc.client = client
    svc.fit(*rows)
    local = svc.to_local()
    assert type(local) is SVC
    assert local.get_params() == svc.get_params()
    np.testing.assert_array_equal(local.predict(X), svc.predict(X))
    again = pickle.loads(pickle.dumps(svc))
    assert "_client" not in vars(again)
    assert again.client is client  # the current one
    np.testing.assert_array_equal(again.predict(rows[0]).compute(), svc.predict(X))
    svmarrow.save(svc, tmp_path / "m.safetensors")
    svc.save(tmp_path / "n.safetensors")
    loaded = svmarrow.load(tmp_path / "m.safetensors")
    assert type(loaded) is SVC
    assert (tmp_path / "m.safetensors").read_bytes() == (tmp_path / "n.safetensors").read_bytes()
    np.testing.assert_array_equal(loaded.decision_function(X), svc.decision_function(X))
    assert svmarrow.compress(svc, n_vectors=20).expansion_.n_vectors == 20
    for bound in ("loo_error_bound_", "xi_alpha_error_"):
        with pytest.raises(AttributeError, match="no bounds of the leave-one-out error"):
            getattr(svc, bound)


def test_two_concurrent_fits(client, lazy):
    X, y = moons(600)
    rows = lazy(100, X, y)
    costs = [0.5, 5.0]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda C: _with(DaskSVC(C=C, tol=1e-5), client).fit(*rows), costs))
    for C, far in zip(costs, both, strict=True):
        agree(far, SVC(C=C, tol=1e-5).fit(X, y), X, y)


def _with(estimator, client):
    estimator.client = client
    return estimator


def test_a_fit_inside_a_task(client):
    def task():
        X, y = make_moons(400, noise=0.2, random_state=0)
        rows, labels = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
        return DaskSVC(tol=1e-5).fit(rows, labels).to_local()

    found = client.submit(task, pure=False).result()
    X, y = make_moons(400, noise=0.2, random_state=0)
    agree(found, SVC(tol=1e-5).fit(X, y), X, y)


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced", "multi_class": "ovr"}], ids=str)
def test_low_rank(client, lazy, all_digits, options):
    X, y = all_digits
    points = X[::9]
    far = DaskLowRankSVC(selection=points, C=5.0, tol=1e-5, **options).fit(*lazy(400, X, y))
    near = LowRankSVC(selection=points, C=5.0, tol=1e-5, **options).fit(X, y)
    a, b = far.certificate_, near.certificate_
    assert a.stop == b.stop == "converged"
    assert abs(a.dual - b.dual) <= 1e-6 * b.dual
    assert abs(a.primal - b.primal) <= max(1e-6 * b.primal, b.gap)
    np.testing.assert_array_equal(far.predict(X), near.predict(X))
    assert type(far.to_local()) is LowRankSVC
    # What is sent in a round is one vector for each machine.
    assert all(
        each.sent <= 1.2 * 8 * far.expansion_.n_outputs * (len(points) + far.expansion_.n_outputs)
        for each in far.rounds_
    )


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("selection", ["random", "pivoted_cholesky", "greedy_trace", "leverage", "kmeans"])
def test_low_rank_points_are_chosen_among_all_rows(client, lazy, digits, selection):
    X, y = digits[:2]
    rows = lazy(130, X, y)
    one, two = (DaskLowRankSVC(60, selection=selection, random_state=0).fit(*rows) for _ in range(2))
    assert one.expansion_ == two.expansion_
    assert one.expansion_.n_vectors == 60
    if selection != "kmeans":
        np.testing.assert_array_equal(X[one.indices_], one.expansion_.vectors)
        assert one.indices_.max() > 370
    assert one.score(*rows) > 0.9


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda X, y: (X.compute(), y), TypeError, r"X is a ndarray: it must be a Dask array or frame"),
        (
            lambda X, y: (X, y.compute()),
            TypeError,
            r"y is a ndarray and X a Dask collection.*chunks=\(X.chunks",
        ),
        (
            lambda X, y: (X.rechunk((100, 1)), y),
            ValueError,
            r"X has 2 chunks of columns.*X\.rechunk\(\{1: -1\}\)",
        ),
        (
            lambda X, y: (X, y.rechunk(60)),
            ValueError,
            r"y has 5 chunks.*pass y\.rechunk\(\{0: X\.chunks\[0\]\}\)",
        ),
        (
            lambda X, y: (X, y.rechunk(((50, 150, 100),))),
            ValueError,
            r"y has 3 chunks of 50, 150, 100 rows",
        ),
        (lambda X, y: (X * np.inf, y), ValueError, r"partition \d: X contains NaN"),
        (lambda X, y: (X[:, 0], y), ValueError, "1 dimensions"),
        (lambda X, y: (X, da.stack([y, y], axis=1).rechunk((100, 2))), ValueError, "y has 2 columns"),
        (lambda X, y: (X, da.zeros_like(y, dtype=int)), ValueError, "y has 1 class"),
        (lambda X, _: (X, X[:, 0]), ValueError, r"partition \d: Unknown label type"),
        (lambda X, _: (X, None), ValueError, "requires y"),
        (lambda X, y: (X[:0], y[:0]), ValueError, "no rows"),
    ],
)
def test_what_is_refused(client, lazy, change, error, text):
    X, y = moons(300)
    with pytest.raises(error, match=text):
        DaskSVC().fit(*change(*lazy(100, X, y)))


def test_rules_of_parameters(client, lazy):
    X, y = moons(300)
    rows = lazy(100, X, y)
    for options in ({"C": -1.0}, {"kernel": "precomputed"}, {"tol": 0.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            DaskSVC(**options).fit(*rows)
    with pytest.raises(ValueError, match="Negative values"):
        DaskSVC(kernel="chi2").fit(*rows)
    with pytest.raises(ValueError, match="weights of class left are all zero"):
        DaskSVC(class_weight={"left": 0.0}).fit(*rows)
    with pytest.raises(TypeError, match=r"svmarrow\.dask trains on"):
        SVC().fit(*rows)


def test_without_a_client_there_is_a_word():
    rows = da.ones((4, 2), chunks=(2, 2))
    with pytest.raises(ValueError, match="no Dask client is active"):
        DaskSVC().fit(rows, da.ones(4, chunks=2))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_interval_holds_where_kernel_values_hardly_differ(client, loss):
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    rows, labels = da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=40)
    model = DaskSVC(C=1e5, gamma=1e-7, loss=loss, tol=1e-2).fit(rows, labels)
    near = SVC(C=1e5, gamma=1e-7, loss=loss, tol=1e-2).fit(X, y).certificate_
    (machine,) = model.certificate_.machines
    assert machine.stop == "converged"
    assert 0.0 < machine.rounding < 1e-2
    K = np.exp(-1e-7 * np.square(X[:, np.newaxis].astype(np.longdouble) - X).sum(axis=2))
    beta = np.zeros(len(y), dtype=np.longdouble)
    beta[model.support_] = model.expansion_.coefficients[:, 0]
    ridge = 0.5 / 1e5 * beta @ beta if loss == "squared_hinge" else 0.0
    assert machine.dual <= np.abs(beta).sum() - (beta @ K @ beta + ridge) / 2 <= machine.primal
    assert max(machine.dual, near.dual) <= min(machine.primal, near.primal)
