"""A weight counts a row: 2 is the row twice, 0 is no row, in everything that takes weights.

What is counted by rows differs, and is given as a number here: the width ``gamma="scale"`` and
``class_weight="balanced"`` of support vector machines, which scikit-learn counts so; points and parts that
are drawn, and chosen rows that carry the loss alone (``method="subset"``); penalties chosen by leave-one-out
values, for a row that is left out takes all its weight with it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.utils.validation import has_fit_parameter

from helpers.data import KIND as LABELS
from helpers.data import STANDARD_IRIS
from helpers.estimators import ESTIMATORS, PRECISE, SVM_TOLERANCE, WEIGHTED
from helpers.public import PUBLIC
from svmarrow import SVC
from svmarrow.cascade import CalibratedCascade

X, KIND = STANDARD_IRIS[::2], LABELS[::2]
NUMBER = X @ [1.0, -2.0, 0.5, 1.0] + np.sin(3.0 * X[:, 0])
#: Rows that count once, twice, three times and not at all.
COUNTS = np.random.default_rng(0).integers(0, 4, len(X))
ROWS = np.repeat(np.arange(len(X)), COUNTS)


def data(estimator):
    return X, NUMBER if is_regressor(estimator) else KIND


def outputs(model, rows):
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return model.model_.outputs(rows) if hasattr(model, "model_") else model.predict(rows)


def assert_close(model, other, within):
    expected = outputs(other, X)
    assert outputs(model, X) == pytest.approx(expected, rel=0, abs=within * np.abs(expected).max())


@pytest.mark.parametrize(
    ("estimator", "within"), WEIGHTED, ids=lambda case: " ".join(repr(case).split())[:80]
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_weights_count_rows(estimator, within, kind):
    rows, y = data(estimator)
    weighted = clone(estimator).fit(kind(rows), y, sample_weight=COUNTS)
    repeated = clone(estimator).fit(kind(rows[ROWS]), y[ROWS])
    assert_close(weighted, repeated, within)


@pytest.mark.parametrize(
    ("estimator", "within"), WEIGHTED, ids=lambda case: " ".join(repr(case).split())[:80]
)
def test_weights_have_an_effect(estimator, within):
    """Else the test above could pass on an estimator that looks at no weight."""
    rows, y = data(estimator)
    weighted = clone(estimator).fit(rows, y, sample_weight=COUNTS)
    plain = clone(estimator).fit(rows, y)
    apart = np.abs(outputs(weighted, X) - outputs(plain, X)).max()
    assert apart > 10.0 * within * np.abs(outputs(plain, X)).max()


def test_rows_of_weight_zero_are_not_held_out():
    """Of the cascade that draws: rows of weight 0 change nothing in the full model, whatever is drawn."""
    cascade = CalibratedCascade(SVC(**PRECISE), random_state=0)
    weighted = clone(cascade).fit(X, KIND, sample_weight=(np.arange(len(X)) % 3 > 0).astype(float))
    other = np.where(np.arange(len(X))[:, np.newaxis] % 3 > 0, X, X + 1.0)
    moved = clone(cascade).fit(other, KIND, sample_weight=(np.arange(len(X)) % 3 > 0).astype(float))
    assert_close(weighted.model_, moved.model_, SVM_TOLERANCE)


def test_every_estimator_that_takes_weights_is_here():
    public = {PUBLIC[name] for name in PUBLIC}
    estimators = {kind for kind in public if hasattr(kind, "get_params")}
    takes = {kind for kind in estimators if has_fit_parameter(kind, "sample_weight")}
    differ = {PUBLIC[name] for name, entry in ESTIMATORS.items() if entry.weights_differ}
    assert takes == {type(estimator) for estimator, _ in WEIGHTED} | differ
