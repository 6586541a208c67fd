"""What the tags of an estimator say is what it does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.utils import get_tags

from helpers.comparison import answers
from helpers.data import KIND
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import QUICK, name_of, target
from svmarrow import SVC, OneClassSVM, RLSRegressor


@pytest.fixture(params=QUICK, ids=name_of)
def estimator(request):
    return clone(request.param)


def fits(estimator, rows, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answers(estimator.fit(rows, y), rows)
        except (TypeError, ValueError):
            return False
    return True


def test_kinds(estimator):
    kinds = {
        "classifier": is_classifier(estimator),
        "regressor": is_regressor(estimator),
        "outlier_detector": is_outlier_detector(estimator),
    }
    assert {kind for kind, holds in kinds.items() if holds} == {get_tags(estimator).estimator_type} - {None}


def test_sparse_rows_are_accepted_as_the_tag_states(estimator):
    assert fits(estimator, sp.csr_array(X), target(estimator)) == get_tags(estimator).input_tags.sparse


@pytest.mark.parametrize("learner", [of for of in QUICK if not is_outlier_detector(of)], ids=str)
def test_several_targets_are_accepted_as_the_tag_states(learner):
    y = target(learner)
    taken = fits(clone(learner), X, np.column_stack([y, y[::-1]]))
    assert taken == get_tags(learner).target_tags.multi_output


@pytest.mark.parametrize("classifier", [of for of in QUICK if is_classifier(of)], ids=str)
def test_several_classes_are_accepted_as_the_tag_states(classifier):
    assert fits(clone(classifier), X, KIND) == get_tags(classifier).classifier_tags.multi_class


def test_targets_are_required_as_the_tag_states(estimator):
    assert fits(estimator, X, None) != get_tags(estimator).target_tags.required


def test_missing_values_are_refused_as_the_tag_states(estimator):
    holed = X.copy()
    holed[3, 1] = np.nan
    if get_tags(estimator).input_tags.allow_nan:
        assert len(answers(estimator.fit(holed, target(estimator)), holed)) == len(X)
        return
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(holed, target(estimator))


def test_two_fits_are_equal_unless_the_tag_states_otherwise(estimator):
    y = target(estimator)
    if get_tags(estimator).non_deterministic:
        assert "random_state" in estimator.get_params()
        estimator.set_params(random_state=0)
    elif estimator.get_params().get("random_state", 0) is None:
        estimator.set_params(random_state=0)
    first, second = (answers(clone(estimator).fit(X, y), X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", [SVC, OneClassSVM, RLSRegressor])
def test_pairwise_and_positive_rows_follow_the_kernel(kind):
    tags = {kernel: get_tags(kind(kernel=kernel)).input_tags for kernel in ("rbf", "precomputed", "chi2")}
    assert [of.pairwise for of in tags.values()] == [False, True, False]
    assert [of.positive_only for of in tags.values()] == [False, False, True]
