"""`predict_proba` and `predict_log_proba`: both or none, and an error that names what gives probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV

from helpers.data import KIND
from helpers.data import STANDARD_IRIS as X
from helpers.estimators import QUICK, name_of, target
from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    PerceptronTreeClassifier,
    ReducedSet,
    RLSClassifier,
    TabularClassifier,
    as_expansion,
    compress,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.models import ExpansionClassifier

CLASSIFIERS = [estimator for estimator in QUICK if is_classifier(estimator)]
METHODS = ("predict_proba", "predict_log_proba")


def check_logarithms(model):
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(probabilities))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_classifiers_have_both_methods_or_name_the_remedy(estimator):
    model = clone(estimator).fit(X, KIND)
    if hasattr(model, "predict_proba"):
        check_logarithms(model)
        return
    for method in METHODS:
        assert not hasattr(model, method)
        with pytest.raises(AttributeError) as refused:
            getattr(model, method)
        text = str(refused.value.__cause__ or refused.value)
        assert "Calibrated" in text or "calibrated(" in text


@pytest.mark.parametrize("estimator", [SVC(), RLSClassifier(gamma=0.2)], ids=name_of)
def test_the_remedies_give_probabilities(estimator):
    model = clone(estimator).fit(X[::2], KIND[::2])
    check_logarithms(as_expansion(model).calibrated(X[1::2], KIND[1::2]))
    calibrated = CalibratedClassifierCV(clone(estimator), ensemble=False, cv=3)
    reduced = ReducedSet(calibrated, 8)
    assert all(hasattr(reduced, method) for method in METHODS)
    check_logarithms(reduced.fit(X, KIND))
    np.testing.assert_array_equal(reduced.predict_proba(X), reduced.model_.predict_proba(X))


def test_a_tree_is_calibrated_by_scikit_learn():
    with pytest.raises(
        AttributeError, match=r"use CalibratedClassifierCV\(PerceptronTreeClassifier\(...\)"
    ) as refused:
        PerceptronTreeClassifier().predict_proba  # noqa: B018 - the access fails
    assert "as_expansion" not in str(refused.value)
    tree = PerceptronTreeClassifier(random_state=0)
    probabilities = CalibratedClassifierCV(tree, ensemble=False).fit(X, KIND).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("cascade", [CalibratedCascade(SVC()), ExactCascade(SVC())], ids=name_of)
def test_cascades_say_why_they_have_no_probabilities(cascade):
    cascade = clone(cascade).fit(X, KIND)
    for method in METHODS:
        with pytest.raises(AttributeError, match="not calibrated on the samples that each of them answers"):
            getattr(cascade, method)
    check_logarithms(cascade.model_.calibrated(X, KIND))
    check_logarithms(compress(cascade.model_, n_vectors=5).calibrated(X, KIND))


def test_regressors_have_no_probabilities():
    for model in (SVR(), ReducedSet(SVR(), 5)):
        model.fit(X, target(model if name_of(model) == "SVR" else model.estimator))
        assert not any(hasattr(model, method) for method in METHODS)


def test_tables_have_logarithms():
    check_logarithms(TabularClassifier(n_samples=50).fit(X, KIND))


def test_a_probability_of_zero_has_no_finite_logarithm():
    line = KernelExpansion([[1.0]], [[1e4]], [0.0], kernel="linear")
    model = ExpansionClassifier(line, [0, 1], "binary").calibrated(
        [[-1.0], [1.0], [-1.0], [1.0]] * 40, [0, 1, 0, 1] * 40
    )
    logarithms = model.predict_log_proba([[-1e300]])
    assert logarithms[0, 1] == -np.inf
    assert logarithms[0, 0] == 0.0
