"""Groups of samples that leave together: errors, choices and mean targets are those of new groups."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from svmarrow import TabularClassifier, TabularRegressor
from svmarrow.preprocessing._shapes import deal_folds, some_blocks
from svmarrow.tabular._columns import MeanTargets


def patients(n_groups, seed, size=6):
    """Several samples of each patient: the level of a patient is in no column but in their own samples."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    level = rng.normal(size=n_groups)[groups]
    habit = rng.normal(size=(n_groups, 3))[groups] + 0.05 * rng.normal(size=(groups.size, 3))
    dose = rng.normal(size=groups.size)
    frame = pd.DataFrame(habit, columns=["a", "b", "c"]).assign(dose=dose)
    return frame, dose + level + 0.1 * rng.normal(size=groups.size), groups


def test_the_error_is_that_of_new_groups():
    X, y, groups = patients(40, 0)
    new, targets, _ = patients(400, 1)
    alone = TabularRegressor().fit(X, y)
    together = TabularRegressor().fit(X, y, groups=groups)
    errors = {name: np.mean((model.predict(new) - targets) ** 2) for name, model in
              {"alone": alone, "together": together}.items()}  # fmt: skip
    assert alone.loo_error_ < 0.2 * errors["alone"]
    assert 0.6 < together.loo_error_ / errors["together"] < 1.6
    assert errors["together"] < 0.8 * errors["alone"]


def test_probabilities_are_those_of_new_groups():
    X, y, groups = patients(60, 2)
    new, targets, _ = patients(400, 3)
    labels, expected = y > 0.0, targets > 0.0

    def loss(model):
        shares = np.clip(model.predict_proba(new)[:, 1], 1e-9, 1.0)
        return -np.mean(np.log(np.where(expected, shares, 1.0 - shares)))

    alone = TabularClassifier().fit(X, labels)
    together = TabularClassifier().fit(X, labels, groups=groups)
    assert loss(together) < 0.8 * loss(alone)
    assert together.loo_error_ > 2.0 * alone.loo_error_


def test_samples_of_weight_zero_and_labels_of_groups():
    X, y, groups = patients(20, 4)
    weights = np.ones(len(y))
    weights[groups < 5] = 0.0
    counted = weights > 0.0
    names = np.array([f"patient {group}" for group in groups])
    model = TabularRegressor(n_samples=1000).fit(X, y, weights, names)
    expected = TabularRegressor(n_samples=1000).fit(X[counted], y[counted], groups=groups[counted])
    assert model.loo_error_ == pytest.approx(expected.loo_error_)
    assert np.allclose(model.predict(X), expected.predict(X))


def test_mean_targets_of_a_block_come_from_the_others():
    column = np.array([["a", "b", "c", "d"][i % 4] for i in range(40)], dtype=object)[:, np.newaxis]
    blocks = np.arange(40) // 4
    y = blocks[:, np.newaxis].astype(float)
    rows = MeanTargets(seed=0, blocks=blocks).fit_transform(column, y)
    for held_out in deal_folds(40, 5, None, np.random.RandomState(0), blocks):
        others = np.setdiff1d(np.arange(40), held_out)
        expected = MeanTargets().fit(column[others], y[others]).transform(column[held_out])
        assert np.array_equal(rows[held_out], expected)
        assert not np.isin(blocks[others], blocks[held_out]).any()


def test_folds_of_blocks_are_of_about_the_same_size():
    sizes = np.random.default_rng(0).integers(1, 30, 50)
    blocks = np.repeat(np.arange(50), sizes)
    folds = deal_folds(blocks.size, 5, None, np.random.RandomState(0), blocks)
    assert np.array_equal(np.sort(np.concatenate(folds)), np.arange(blocks.size))
    assert np.ptp([fold.size for fold in folds]) <= 3
    assert len(deal_folds(9, 5, None, np.random.RandomState(0), np.arange(9) // 3)) == 3


def test_drawn_samples_of_one_block_are_left_out_alone():
    assert some_blocks(np.array([0, 0, 1]), np.array([0, 1])) is None
    assert some_blocks(np.array([4, 0, 4]), np.array([0, 1])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("groups", "message"), [(np.zeros(240), "one group"), ([1, 2], "shape"), ([None] * 240, "missing")]
)
def test_wrong_groups_are_refused(groups, message):
    X, y, _ = patients(40, 0)
    with pytest.raises(ValueError, match=message):
        TabularRegressor().fit(X, y, groups=groups)


@pytest.mark.parametrize("columns", [["dose"], ["a", "dose"]])
@pytest.mark.parametrize("n_groups", [2, 8])
def test_few_columns_and_few_groups(columns, n_groups):
    X, y, groups = patients(n_groups, 5, size=40)
    model = TabularRegressor().fit(X[columns], y, groups=groups)
    assert np.isfinite(model.predict(X[columns])).all()
    # The levels of the groups are unknown, and their variance is 1.
    assert model.loo_error_ > 0.05


def test_a_class_of_one_group_is_never_right():
    X, _, groups = patients(12, 6)
    labels = np.where(groups == 3, "rare", np.where(X["dose"] > 0.0, "high", "low"))
    model = TabularClassifier(class_weight="balanced").fit(X, labels, groups=groups)
    assert model.loo_error_ >= np.mean(labels == "rare")
    assert set(model.predict(X)) <= {"rare", "high", "low"}


@pytest.mark.parametrize("settings", [{}, {"max_time": 0.5}])
def test_more_samples_than_the_choice_takes(settings):
    X, y, groups = patients(400, 7, size=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TabularRegressor(**settings).fit(X, y, groups=groups)
    assert model.expansion_.n_vectors in (500, 2000, 2400)
    new, targets, _ = patients(400, 8)
    assert np.mean((model.predict(new) - targets) ** 2) < 1.4
