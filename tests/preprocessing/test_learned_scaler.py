"""Learned scales: what they find, what the guard keeps out, and what they must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from svmarrow import RLSRegressor
from svmarrow.expansion.gradients import gradient_outer_product
from svmarrow.least_squares._base import MIN_STEP_GAIN
from svmarrow.preprocessing import LearnedScaler, _search
from svmarrow.preprocessing import scaler as scaler_module
from svmarrow.preprocessing._metric import threshold
from svmarrow.preprocessing._shapes import deal_folds, draw

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 6))
WAVE = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.05 * RNG.normal(size=150)
SIDE = np.where(X[:, 0] * X[:, 1] > 0.0, "yes", "no")
FAST = {"shape": "standard", "max_iter": 2}


@pytest.fixture(autouse=True, params=[500, 60], ids=["all samples search", "few samples search"])
def max_searched(request, monkeypatch):
    monkeypatch.setattr(scaler_module, "MAX_SEARCHED", request.param)


@pytest.mark.parametrize("y", [WAVE, SIDE, np.column_stack([X[:, 0] ** 2, np.sin(2.0 * X[:, 1])])])
@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_relevant_columns_are_found(y, metric):
    scaler = LearnedScaler(metric=metric, **FAST).fit(X, y)
    assert set(np.argsort(scaler.feature_importances_)[-2:]) == {0, 1}
    assert scaler.feature_importances_[:2].sum() > 0.9
    assert scaler.feature_importances_.sum() == pytest.approx(1.0)


def test_it_helps_the_estimator_behind_it():
    rows, y = make_friedman1(400, noise=0.1, random_state=0)
    scaler = LearnedScaler(**FAST).fit(rows[:200], y[:200])
    errors = []
    for scaled in (scaler.transform(rows), (rows - rows.mean(axis=0)) / rows.std(axis=0)):
        model = RLSRegressor(alphas=[0.001, 0.01, 0.1, 1.0], fit_intercept=True).fit(scaled[:200], y[:200])
        errors.append(np.mean((model.predict(scaled[200:]) - y[200:]) ** 2))
    assert errors[0] < 0.7 * errors[1]


def test_one_update_is_the_gradient_outer_product(monkeypatch):
    """The naive way: one fit with the chosen bandwidth and penalty, and the mean of its squared gradients."""
    monkeypatch.setattr(_search, "_from_trees", lambda _, rival, name, *_rest: (rival, name))
    scaler = LearnedScaler(shape="standard", max_iter=1).fit(X, WAVE)
    start, *tried = scaler.history_
    (kept,) = (step for step in tried if step.kept)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (WAVE - WAVE.mean()) / WAVE.std()
    model = RLSRegressor(start.alpha, gamma=start.gamma, fit_intercept=True).fit(rows, y)
    sizes = np.zeros(6)
    for x in rows:
        weight = model.dual_coef_[0] * np.exp(-start.gamma * ((x - rows) ** 2).sum(axis=1))
        sizes += (2.0 * start.gamma * (weight[:, np.newaxis] * (rows - x)).sum(axis=0)) ** 2
    sizes /= len(rows)
    assert gradient_outer_product(model.expansion_, rows) == pytest.approx(sizes, rel=1e-9)
    scales = sizes ** (0.5 * kept.power)
    assert scaler.scales_ == pytest.approx(scales / np.sqrt(np.mean(scales**2)), rel=1e-6)
    assert scaler.transform(X) == pytest.approx(rows * scaler.scales_)


def test_noise_is_mostly_left_alone():
    """An update without an effect wins by one standard error in about one case of six."""
    changed = 0
    for y in np.random.default_rng(1).normal(size=(10, 150)):
        scaler = LearnedScaler(**FAST).fit(X, y)
        kept = any(step.kept for step in scaler.history_ if step.iteration)
        assert kept != np.array_equal(scaler.scales_, np.ones(6))
        changed += kept
    assert changed <= 4


def test_kept_updates_win_by_the_threshold():
    scaler = LearnedScaler().fit(X, WAVE)
    assert scaler.n_iter_ == max(step.iteration for step in scaler.history_)
    for step in scaler.history_:
        if step.kept and step.iteration:
            assert step.gain >= threshold(2) * step.standard_error > 0.0
    last = [step for step in scaler.history_ if step.kept][-1]
    assert (scaler.gamma_, scaler.alpha_, scaler.shape_) == (last.gamma, last.alpha, last.shape)


def test_the_threshold_corrects_for_the_number_of_candidates():
    assert threshold(1) == pytest.approx(0.5)
    assert 1.0 < threshold(2) < threshold(3)


def test_without_updates_columns_are_standardised():
    scaler = LearnedScaler(shape="standard", max_iter=0).fit(X, WAVE)
    assert scaler.transform(X) == pytest.approx((X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize(
    ("rows", "y"),
    [(X[:12], WAVE[:12]), (X, np.zeros(150)), (np.ones((150, 2)), WAVE)],
    ids=["few samples", "one target", "equal samples"],
)
def test_nothing_is_learned_from_nothing(rows, y):
    scaler = LearnedScaler(task="regression").fit(rows, y)
    assert (scaler.n_iter_, scaler.gamma_, scaler.history_) == (0, None, ())
    assert np.array_equal(scaler.scales_, np.ones(rows.shape[1]))
    assert np.isfinite(scaler.transform(rows)).all()


def test_the_same_bits_for_any_number_of_threads():
    one = LearnedScaler(max_iter=1, n_jobs=1).fit(X, WAVE)
    for n_jobs in (2, 3):
        other = LearnedScaler(max_iter=1, n_jobs=n_jobs).fit(X, WAVE)
        assert np.array_equal(one.scales_, other.scales_)
        assert one.history_ == other.history_


def test_a_permutation_of_the_columns_permutes_the_scales():
    order = np.array([3, 0, 5, 1, 4, 2])
    plain, permuted = (LearnedScaler(**FAST).fit(rows, WAVE) for rows in (X, X[:, order]))
    assert permuted.scales_ == pytest.approx(plain.scales_[order], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("shape", ["standard", "both"])
def test_units_of_the_columns_do_not_matter(shape):
    units, shifts = np.array([1e-3, 7.0, 1e4, 0.3, 1.0, 50.0]), np.arange(6.0)
    plain = LearnedScaler(shape=shape, max_iter=1).fit(X, WAVE)
    other = LearnedScaler(shape=shape, max_iter=1).fit(X * units + shifts, 40.0 * WAVE - 3.0)
    assert other.transform(X * units + shifts) == pytest.approx(plain.transform(X), rel=1e-5, abs=1e-6)


def test_sparse_columns_have_the_scales_of_dense_ones():
    dense = LearnedScaler(**FAST).fit(X, WAVE)
    rows = sp.csr_array(X)
    sparse = LearnedScaler(max_iter=2).fit(rows, WAVE)
    assert sparse.scales_ == pytest.approx(dense.scales_, rel=1e-6, abs=1e-9)
    moved = sparse.transform(rows)
    assert sp.issparse(moved)
    assert moved.toarray() == pytest.approx(X / X.std(axis=0) * sparse.scales_)
    with pytest.raises(ValueError, match="X is sparse"):
        dense.transform(rows)
    for refused in ({"metric": "full"}, {"shape": "both"}):
        with pytest.raises(ValueError, match=f"{next(iter(refused))}=.* for sparse|sparse X"):
            LearnedScaler(**refused).fit(rows, WAVE)


def test_quantile_shapes_are_normal_scores():
    rows = np.column_stack([np.exp(3.0 * X[:, 0]), (X[:, 1] > 0.0).astype(float), np.round(X[:, 2])])
    scaler = LearnedScaler(shape="both", max_iter=0).fit(rows, WAVE)
    # The column of two values has one shape.
    assert scaler.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x0_quantile", "x2_quantile"]
    shaped = scaler.transform(rows)
    assert shaped.mean(axis=0) == pytest.approx(np.zeros(5), abs=0.01)
    assert shaped.std(axis=0) == pytest.approx(np.ones(5), abs=0.01)
    ranks = (np.argsort(np.argsort(rows[:, 0])) + 0.5) / len(rows)
    scores = ndtri(ranks)
    assert shaped[:, 3] == pytest.approx(scores / scores.std(), abs=0.15)
    # Equal values have the middle of their ranks, and values outside the training range the ends.
    value, share = np.unique(rows[:, 2], return_counts=True)
    middle = ndtri((np.cumsum(share) - 0.5 * share) / len(rows))
    assert np.corrcoef(shaped[:, 4], middle[np.searchsorted(value, rows[:, 2])])[0, 1] == pytest.approx(1.0)
    assert scaler.transform(rows[:1] + 1e9)[0, 3] == shaped[:, 3].max()


def test_extreme_values_choose_the_quantile_shape():
    rows = X.copy()
    rows[:, 0] = np.sign(X[:, 0]) * np.exp(4.0 * np.abs(X[:, 0]))
    assert LearnedScaler(max_iter=0).fit(rows, WAVE).shape_ in ("quantile", "both")


@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_single_precision_stays(metric):
    scaler = LearnedScaler(metric=metric, **FAST).fit(X.astype(np.float32), WAVE)
    assert scaler.transform(X.astype(np.float32)).dtype == np.float32
    assert scaler.transform(X).dtype == np.float64
    double = LearnedScaler(metric=metric, **FAST).fit(X, WAVE)
    assert scaler.feature_importances_ == pytest.approx(double.feature_importances_, abs=0.02)


def test_samples_of_weight_zero_take_no_part():
    weights = (np.arange(150) % 3 > 0).astype(float)
    moved = np.where(weights[:, np.newaxis] > 0.0, X, 100.0 * X)
    plain, other = (LearnedScaler(**FAST).fit(rows, WAVE, weights) for rows in (X, moved))
    assert np.array_equal(plain.scales_, other.scales_)
    with pytest.raises(ValueError, match="all zero"):
        LearnedScaler().fit(X, WAVE, np.zeros(150))


def test_weights_choose_the_columns():
    """Half of the samples depend on one column, the others on another."""
    y = np.where(np.arange(150) % 2 == 0, np.sin(2.0 * X[:, 2]), np.sin(2.0 * X[:, 4]))
    for part, column in ((0, 2), (1, 4)):
        weights = np.where(np.arange(150) % 2 == part, 1.0, 1e-3)
        scaler = LearnedScaler(**FAST).fit(X, y, weights)
        assert np.argmax(scaler.feature_importances_) == column


def test_class_weights_are_those_of_the_samples():
    weights = np.where(SIDE == "yes", 3.0, 1.0)
    by_class = LearnedScaler(class_weight={"yes": 3.0}, **FAST).fit(X, SIDE)
    by_sample = LearnedScaler(**FAST).fit(X, SIDE, weights)
    assert np.array_equal(by_class.scales_, by_sample.scales_)
    assert not np.array_equal(by_class.scales_, LearnedScaler(**FAST).fit(X, SIDE).scales_)
    with pytest.raises(ValueError, match="class_weight='balanced' is not allowed"):
        LearnedScaler(class_weight="balanced").fit(X, WAVE)


def test_columns_of_a_group_share_a_scale():
    groups = [0, 7, 7, 2, 7, 3]
    scaler = LearnedScaler(groups=groups, shape="both", max_iter=2).fit(X, WAVE)
    shared = scaler.scales_[[1, 2, 4]]
    assert np.ptp(shared) == 0.0
    assert scaler.get_feature_names_out().tolist()[6:] == ["x0_quantile", "x3_quantile", "x5_quantile"]
    for wrong in ([0, 1], [0.5] * 6, "abcdef", [[0] * 6]):
        with pytest.raises(ValueError, match="groups="):
            LearnedScaler(groups=wrong).fit(X, WAVE)


@pytest.mark.parametrize("rank", [1, 3])
def test_a_map_of_low_rank(rank):
    y = np.sin(X @ [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    scaler = LearnedScaler(metric="full", n_components=rank, **FAST).fit(X, y)
    assert scaler.transform(X).shape == (150, rank)
    direction = scaler.components_[:, 0] / np.linalg.norm(scaler.components_[:, 0])
    assert np.abs(direction[:2]).sum() > 1.3
    assert len(scaler.get_feature_names_out()) == rank


def test_what_is_a_class():
    whole = np.round(3.0 * WAVE)
    by_class, by_number = (
        LearnedScaler(task=task, **FAST).fit(X, whole) for task in ("classification", "regression")
    )
    auto = LearnedScaler(**FAST).fit(X, whole)
    assert np.array_equal(auto.scales_, by_class.scales_)
    assert not np.array_equal(auto.scales_, by_number.scales_)
    with pytest.raises(ValueError, match="one column"):
        LearnedScaler(task="classification").fit(X, np.column_stack([SIDE, SIDE]))


def test_draws_and_folds_have_all_classes():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    random = np.random.RandomState(0)
    taken = draw(1000, 100, labels, random)
    assert np.abs(np.bincount(labels[taken]) - [60, 30, 10]).max() <= 1
    folds = deal_folds(1000, 5, labels, random)
    assert sorted(np.concatenate(folds)) == list(range(1000))
    assert all(np.array_equal(np.bincount(labels[fold]), [120, 60, 20]) for fold in folds)


def test_a_seed_decides_on_the_drawn_samples():
    first, again, other = (
        LearnedScaler(n_samples=80, random_state=seed, **FAST).fit(X, WAVE).scales_ for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "cosine"},
        {"shape": 3},
        {"task": "both"},
        {"n_samples": 3},
        {"max_iter": -1},
        {"n_components": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        clone(LearnedScaler(**wrong)).fit(X, WAVE)


def test_few_samples_choose_the_bandwidth_and_the_penalty_of_candidates(monkeypatch):
    drawn = []

    def recorded(*arguments):
        drawn.append(draw(*arguments))
        return drawn[-1]

    monkeypatch.setattr(scaler_module, "MAX_SEARCHED", 60)
    monkeypatch.setattr(scaler_module, "draw", recorded)
    scaler = LearnedScaler(max_iter=0).fit(X, WAVE)
    every, searched = drawn
    assert (every.size, searched.size) == (150, 60)
    y = (WAVE - WAVE.mean()) / WAVE.std()

    def loo_error(rows, taken, gamma, alpha):
        model = RLSRegressor(alpha, gamma=gamma, fit_intercept=True, leave_one_out=True)
        return model.fit(rows[taken], y[taken]).loo_error_

    start, quantile, _ = scaler.history_
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    least = loo_error(standard, every, start.gamma, start.alpha)
    assert start.loo_error == pytest.approx(least, rel=1e-9)
    for gamma, alpha in ((2.0, 1.0), (0.5, 1.0), (1.0, 4.0), (1.0, 0.25)):
        error = loo_error(standard, every, start.gamma * gamma, start.alpha * alpha)
        assert error > (1.0 - MIN_STEP_GAIN) * least
    rows = LearnedScaler(shape="quantile", max_iter=0).fit(X, WAVE).transform(X)
    assert (start.shape, quantile.shape) == ("standard", "quantile")
    found = loo_error(rows, searched, quantile.gamma, quantile.alpha)
    assert quantile.loo_error == pytest.approx(found, rel=1e-9)
    assert found <= loo_error(rows, searched, start.gamma, start.alpha)
