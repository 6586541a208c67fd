"""Cascades: certain labels are the full model's, promised rates are kept, reports add up."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn import svm as peer
from sklearn.datasets import make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score

import svmarrow
from helpers import reference
from helpers.public import PUBLIC
from svmarrow import SVC, KernelExpansion, compress, compression_path
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.cascade.calibrated import first_sequence, points, rows_needed, upper_bound
from svmarrow.cascade.exact import Work, cheapest, ladder
from svmarrow.models.expansion_models import ExpansionClassifier

KERNELS = [
    {"kernel": "rbf", "gamma": 0.02},
    {"kernel": "laplacian", "gamma": 0.02},
    {"kernel": "matern12", "gamma": 0.1},
    {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 2},
    {"kernel": "linear"},
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_bounds_hold_for_every_output_and_stage(iris, kernel, multi_class):
    X, y = iris
    svc = SVC(C=5.0, multi_class=multi_class, **kernel).fit(X[:100], y[:100])
    path = compression_path(svc, tol=0)
    sizes = sorted({1, 2, 3, len(path) // 2, len(path)} - {0})
    for stages in (sizes, [(size, (size + 1) // 2) for size in sizes]):
        cascade = ExactCascade.from_path(path, stages=stages)
        f = svc.expansion_.decision_function(X)
        for stage, size in enumerate(sizes):
            small, bounds = cascade.outputs_with_bounds(X, stage)
            assert (np.abs(f - small) <= bounds).all()
            plain = path[size].expansion_
            np.testing.assert_allclose(small, plain.decision_function(X), rtol=1e-7, atol=1e-7)
        # The bound is the formula, with little room for rounding.
        size = sizes[1]
        small, bounds = ExactCascade.from_path(path, stages=[size]).outputs_with_bounds(X)
        expected = reference.projection_bounds(svc.expansion_, path.vectors[:size], X)
        np.testing.assert_allclose(bounds, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, "csr"])
@pytest.mark.parametrize(("multi_class", "break_ties"), [("ovo", False), ("ovo", True), ("ovr", False)])
def test_labels_are_the_full_models(all_digits, dtype, multi_class, break_ties):
    X, y = all_digits
    if dtype == "csr":
        X = sp.csr_array(X)
    elif dtype == np.uint8:
        X = (16 * X).astype(np.uint8)
    else:
        X = X.astype(dtype)
    gamma = 0.02 / 256 if dtype == np.uint8 else 0.02
    svc = SVC(C=10, gamma=gamma, multi_class=multi_class, break_ties=break_ties).fit(X[:1000], y[:1000])
    path = compression_path(svc, n_vectors=400, tol=0)
    for stages in ([50, 100, 200, len(path)], [(100, 20), (300, 100)], "auto"):
        cascade = ExactCascade.from_path(path, X[:1000], stages=stages)
        assert np.array_equal(cascade.predict(X), svc.predict(X))
        if stages == [50, 100, 200, 400]:
            assert cascade.report(X).share_small > 0.2


def test_noisy_rows_near_the_boundary_never_disagree(rng):
    X, y = make_moons(600, noise=0.3, random_state=0)
    svc = SVC(C=1.0, gamma=0.5).fit(X, y)
    cascade = ExactCascade.from_path(compression_path(svc, n_vectors=60, tol=0), stages=[5, 10, 20, 30])
    # Rows that lie on the boundary to the last digits: bisection between rows of different labels.
    a, b = X[svc.predict(X) == 0][:100], X[svc.predict(X) == 1][:100]
    for _ in range(52):
        middle = (a + b) / 2
        left = svc.predict(middle) == 0
        a, b = np.where(left[:, None], middle, a), np.where(left[:, None], b, middle)
    grid = rng.uniform(-3, 4, (20_000, 2))
    for rows in (a, b, (a + b) / 2, grid, grid.astype(np.float32), a.astype(np.float32)):
        assert np.array_equal(cascade.predict(rows), svc.predict(rows))
    assert (cascade.route(a) == 4).mean() > 0.9, "rows on the boundary are the full model's"
    assert cascade.report(grid).share_small > 0.9


def test_a_badly_conditioned_path_certifies_less_and_not_wrongly(rng):
    # Vectors in pairs that are almost equal, and huge coefficients that cancel.
    Z = rng.normal(size=(30, 3))
    Z = np.vstack([Z, Z + 2e-5 * rng.normal(size=Z.shape)])
    B = np.concatenate([np.full(30, 1e6), np.full(30, -1e6)]) + rng.normal(size=60)
    full = ExpansionClassifier(KernelExpansion(Z, B, 0.1, gamma=0.3), ["a", "b"], "binary")
    path = compression_path(full, tol=0)
    X = rng.normal(size=(3000, 3)) * 2
    cascade = ExactCascade.from_path(path, stages=sorted({5, 20, len(path)}))
    assert np.array_equal(cascade.predict(X), full.predict(X))
    f = full.expansion_.decision_function(X)
    for stage in range(3):
        small, bounds = cascade.outputs_with_bounds(X, stage)
        assert (np.abs(f - small) <= bounds).all()


def test_tuned_thresholds_do_not_matter(datasets):
    X, y = datasets["cancer"]
    svc = SVC(C=100, gamma=0.001).fit(X[:400], y[:400])
    tuned = compression_path(svc, n_vectors=30, tol=0, X=X[:400], y=y[:400])
    plain = compression_path(svc, n_vectors=30, tol=0)
    stages = [10, 20, 30]
    a, b = (ExactCascade.from_path(path, stages=stages) for path in (tuned, plain))
    assert np.array_equal(a.route(X), b.route(X))
    assert np.array_equal(a.predict(X), svc.predict(X))


def test_report_counts_what_was_done(datasets):
    X, y = datasets["cancer"]
    svc = SVC(C=100, gamma=0.001).fit(X, y)
    cascade = ExactCascade.from_path(compression_path(svc, n_vectors=40, tol=0), stages=[(10, 5), 20, 40])
    report, route = cascade.report(X), cascade.route(X)
    m = svc.expansion_.n_vectors
    assert report.sizes == (10, 20, 40, 40 + m)
    assert report.answered == tuple((route == stage).sum() for stage in range(4))
    assert report.mean_kernel_values == pytest.approx(np.array(report.sizes)[route].mean())
    assert report.share_small == pytest.approx((route < 3).mean())
    assert f"of {len(X):,} samples answered small" in str(report)
    assert report.n_samples == len(X)
    assert report.full_size == m


def test_from_estimators_frozen_and_pickled(iris, tmp_path):
    X, y = iris
    cascade = ExactCascade(SVC(C=5), 60, stages=[10, 30]).fit(X, y)
    assert np.array_equal(cascade.predict(X), cascade.estimator_.predict(X))
    frozen = ExactCascade(FrozenEstimator(peer.SVC(C=5).fit(X, y)), stages=[10, 30]).fit(X, y)
    assert np.array_equal(frozen.predict(X), frozen.estimator_.predict(X))
    again = pickle.loads(pickle.dumps(cascade))
    assert np.array_equal(again.route(X), cascade.route(X))
    assert np.array_equal(again.predict(X), cascade.predict(X))
    calibrated = CalibratedCascade(
        SVC(C=5), [5, 20], epsilon=0.2, validation_fraction=0.4, random_state=0
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(calibrated))
    assert np.array_equal(again.predict(X), calibrated.predict(X))
    assert cross_val_score(ExactCascade(SVC(), stages=[10]), X, y, cv=3).mean() > 0.9


def test_exact_refuses_what_it_cannot_promise(datasets, iris):
    X, y = datasets["cancer"]
    sigmoid = compression_path(SVC(kernel="sigmoid", gamma=0.001).fit(X, y), n_vectors=10)
    with pytest.raises(ValueError, match="kernel=sigmoid is not allowed: it must be positive definite"):
        ExactCascade.from_path(sigmoid, stages=[5])
    negative = SVC(kernel="poly", degree=2, gamma=0.01, coef0=-1e-3).fit(X, y)
    with pytest.raises(ValueError, match="kernel=poly"):
        ExactCascade(FrozenEstimator(negative), stages=[5]).fit(X, y)
    path = compression_path(SVC().fit(X, y), n_vectors=20)
    for stages in ([20, 10], [(5, 6)], [0], [30], "some", [(5, 4), (10, 3)]):
        with pytest.raises(ValueError, match="stages="):
            ExactCascade.from_path(path, stages=stages)
    with pytest.raises(TypeError, match="CompressionPath"):
        ExactCascade.from_path(path[5])
    bare = compression_path(SVC().fit(X, y).expansion_, n_vectors=5)
    with pytest.raises(TypeError, match="must be a classifier"):
        ExactCascade.from_path(bare)
    with pytest.raises(ValueError, match="method='gradient'"):
        ExactCascade(SVC(), method="gradient").fit(X, y)
    cascade = ExactCascade.from_path(path, stages=[5])
    with pytest.raises(ValueError, match="features"):
        cascade.predict(X[:, :3])
    with pytest.raises(IndexError, match="stage=1"):
        cascade.outputs_with_bounds(X, 1)


def test_a_constant_model_needs_no_stage():
    X = np.zeros((20, 2))
    y = np.arange(20) % 2
    cascade = ExactCascade(SVC()).fit(X, y)
    assert cascade.report(X).n_samples == 20
    assert np.array_equal(cascade.predict(X), cascade.estimator_.predict(X))


def test_the_chain_of_stages_has_the_least_work(rng):
    sizes = [16, 32, 64, 128]
    left = np.sort(rng.random((4, 4)))[:, ::-1]
    left = np.minimum.accumulate(np.sort(left, axis=0)[::-1], axis=0)
    work = Work(features=10.0, outputs=1, full=50_000.0)
    chosen = cheapest(left, sizes, work)

    def expected(stages):
        total, share, before = 0.0, 1.0, (0, 0)
        for size in stages:
            total += share * work.step(size, before)
            share = left[sizes.index(size[0]), sizes.index(size[1])]
            before = size
        return total + share * work.full

    nodes = [(a, b) for a in sizes for b in sizes if b <= a]
    chains = [[]]
    for chain in chains:
        chains += [
            [*chain, node]
            for node in nodes
            if not chain or (node[0] > chain[-1][0] and node[1] >= chain[-1][1])
        ]
    assert expected(chosen) == pytest.approx(min(map(expected, chains)))
    assert cheapest(np.ones((4, 4)), sizes, work) == []
    assert ladder(100) == [16, 32, 48, 64, 96, 100]
    assert ladder(3) == [3]


def test_clopper_pearson_is_the_exact_binomial_bound():
    for k, n, delta in [(0, 50, 0.05), (3, 100, 0.1), (17, 60, 0.01)]:
        rate = upper_bound(k, n, delta)
        assert binom.cdf(k, n, rate) == pytest.approx(delta)
    assert upper_bound(5, 5, 0.1) == 1.0
    n = rows_needed(0.02, 0.05)
    assert upper_bound(0, n, 0.05) <= 0.02 < upper_bound(0, n - 1, 0.05)


def test_fixed_sequence_stops_at_the_first_failure():
    margins = np.linspace(0, 1, 1000)
    wrong = margins < 0.3
    threshold, bound = first_sequence(margins, wrong, np.array([2.0, 0.5, 0.3, 0.2, 0.0]), 0.01, 0.05)
    assert threshold == 0.3
    assert bound == upper_bound(0, 1000, 0.05)
    assert first_sequence(margins[:20], wrong[:20], np.array([0.5]), 0.01, 0.05)[0] == np.inf
    tried = points(margins)
    assert (np.diff(tried) < 0).all()
    assert tried[-1] == 0.0
    assert tried[0] > 1.0


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_the_promise_is_kept_as_often_as_promised(rng, multi_class):
    """Over many draws of held-out rows, the true rate exceeds epsilon in at most a share delta of them."""
    X = rng.normal(size=(300, 2))
    y = (np.arctan2(X[:, 1], X[:, 0]) // 1.3).astype(int)
    svc = SVC(C=10, gamma=0.5, multi_class=multi_class).fit(X, y)
    small = compress(svc, n_vectors=12)
    pool = rng.normal(size=(40_000, 2))
    truth = svc.predict(pool)
    epsilon, delta, broken, shares = 0.02, 0.2, 0, []
    for _ in range(60):
        held = rng.normal(size=(300, 2))
        cascade = CalibratedCascade.from_fitted(svc, small, held, epsilon=epsilon, delta=delta)
        assert cascade.risk_bound_ <= epsilon
        rate = (cascade.predict(pool) != truth).mean()
        broken += rate > epsilon
        shares.append(cascade.share_small_)
    # 60 draws at 20 %: more than 21 broken promises have a chance of one in a thousand.
    assert broken <= 21
    assert np.mean(shares) > 0.3


def test_several_sizes_share_the_confidence(all_digits):
    X, y = all_digits
    svc = SVC(C=10, gamma=0.02, multi_class="ovr").fit(X[:700], y[:700])
    path = compression_path(svc, n_vectors=200)
    smalls = [path[size] for size in (20, 60, 200)]
    cascade = CalibratedCascade.from_fitted(svc, smalls, X[700:1300], epsilon=0.02, delta=0.06)
    assert cascade.small_ in smalls
    alone = CalibratedCascade.from_fitted(svc, cascade.small_, X[700:1300], epsilon=0.02, delta=0.02)
    assert alone.threshold_ == cascade.threshold_
    report = cascade.report(X[1300:])
    size = cascade.small_.expansion_.n_vectors
    assert report.sizes == (size, size + svc.expansion_.n_vectors)
    assert (cascade.predict(X[1300:]) != svc.predict(X[1300:])).mean() <= 0.03


def test_calibrated_refuses_what_it_cannot_promise(all_digits, iris):
    X, y = all_digits
    svc = SVC(C=10, gamma=0.02, multi_class="ovr").fit(X[:500], y[:500])
    small = compress(svc, n_vectors=50)
    with pytest.raises(ValueError, match=r"X has 50 rows: epsilon=0.01 with delta=0.05 needs at least 299"):
        CalibratedCascade.from_fitted(svc, small, X[500:550])
    with pytest.raises(ValueError, match="epsilon=0"):
        CalibratedCascade.from_fitted(svc, small, X[500:], epsilon=0)
    with pytest.raises(ValueError, match="small has the classes"):
        CalibratedCascade.from_fitted(svc, compress(SVC().fit(*iris), n_vectors=5), X[500:])
    with pytest.raises(TypeError, match="small="):
        CalibratedCascade.from_fitted(svc, svc.expansion_, X[500:])
    few = CalibratedCascade(SVC(), 10).fit(X[:200], y[:200])
    assert few.threshold_ == np.inf
    assert np.array_equal(few.predict(X[200:]), few.estimator_.predict(X[200:]))
    assert few.report(X[200:]).share_small == 0.0


def test_cascades_are_public():
    assert {"ExactCascade", "CalibratedCascade"} <= set(PUBLIC)


def test_codes_are_calibrated_and_not_certified(all_digits):
    X, y = all_digits
    coded = svmarrow.CodedClassifier(SVC(C=10, gamma=0.02), random_state=0).fit(X[:500], y[:500])
    path = compression_path(coded, n_vectors=100)
    with pytest.raises(ValueError, match="coding=code"):
        ExactCascade.from_path(path, stages=[50])
    cascade = CalibratedCascade.from_fitted(coded, path[100], X[500:1200], epsilon=0.03)
    assert (cascade.predict(X[1200:]) != coded.predict(X[1200:])).mean() < 0.06
    assert cascade.report(X[1200:]).share_small > 0.2
