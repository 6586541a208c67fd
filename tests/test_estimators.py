"""scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from svmarrow import (
    SVC,
    BaggedKernelClassifier,
    BaggedKernelRegressor,
    BudgetPerceptron,
    CalibratedCascade,
    CodedClassifier,
    ExactCascade,
    Forgetron,
    KernelPerceptron,
    KMPClassifier,
    KMPRegressor,
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
    LowRankSVC,
    PerceptronTreeClassifier,
    Projectron,
    ProjectronPlusPlus,
    RLSClassifier,
    RLSRegressor,
    Stoptron,
)

# The checks compare a weighted fit with a fit on repeated rows to seven digits; the tolerance of an SVM gives
# three, single-precision kernel rows six. test_svc.py checks the same at a tight tolerance. The linear and
# the precomputed kernel pass as they are.
_WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "equal to the solver's tolerance, not to seven digits"
    for kind in ("dense", "sparse")
}
_NEGATIVE = {
    "check_class_weight_classifiers": "its data has negative values, which the chi2 kernel does not take"
}


# A repeated row may be held out, a heavy one is or is not.
_HELD = dict.fromkeys(_WEIGHTS, "held-out rows are drawn, so repeated rows differ from weighted ones")


def _expected(estimator):
    if estimator.kernel in ("linear", "precomputed"):
        return {}
    return _WEIGHTS | (_NEGATIVE if estimator.kernel == "chi2" else {})


@parametrize_with_checks(
    [
        SVC(),
        SVC(kernel="linear"),
        SVC(kernel="precomputed"),
        SVC(kernel="chi2"),
        SVC(multi_class="ovr"),
    ],
    expected_failed_checks=_expected,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_in_pipelines_and_searches(datasets):
    X, y = datasets["iris"]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 10.0]}, cv=3, n_jobs=2)
    assert search.fit(X, y).best_score_ > 0.9
    pairwise = GridSearchCV(SVC(kernel="precomputed"), {"C": [1.0, 10.0]}, cv=3)
    assert pairwise.fit(X @ X.T, y).best_score_ > 0.9


def test_probabilities_by_calibration(datasets):
    X, y = datasets["iris"]
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(y)))


def test_feature_names(datasets):
    pandas = pytest.importorskip("pandas")
    X, y = datasets["iris"]
    frame = pandas.DataFrame(X, columns=list("abcd"))
    svc = SVC().fit(frame, y)
    assert svc.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        svc.predict(frame[["b", "a", "c", "d"]])


@parametrize_with_checks(
    [
        ExactCascade(SVC()),
        ExactCascade(SVC(), 10, stages=[3]),
        CalibratedCascade(SVC(), random_state=0),
        CalibratedCascade(SVC(), [2, 5], epsilon=0.3, delta=0.3, calibration=0.4, random_state=0),
    ],
    expected_failed_checks=lambda cascade: _HELD if isinstance(cascade, CalibratedCascade) else {},
)
def test_scikit_learn_contract_of_cascades(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        KernelPerceptron(),
        KernelPerceptron(prediction="averaged"),
        KernelPerceptron(prediction="voted"),
        Stoptron(),
        BudgetPerceptron(removal="tightest"),
        Forgetron(),
        Projectron(),
        ProjectronPlusPlus(),
        PerceptronTreeClassifier(),
        PerceptronTreeClassifier(split="zpq", budget=5),
    ],
)
def test_scikit_learn_contract_of_online_learners(estimator, check):
    check(estimator)


# The checks turn the kernel matrix into integers, which leaves it indefinite: a pivot is not positive.
_INDEFINITE = dict.fromkeys(
    ("check_positive_only_tag_during_fit", "check_estimators_dtypes"), "indefinite matrices are refused"
)

_UNWEIGHTED = dict.fromkeys(
    (
        *_WEIGHTS,
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_shape",
        "check_all_zero_sample_weights_error",
    ),
    "conjugate gradients take no weights and say so",
)


def _least_squares_expected(estimator):
    if getattr(estimator, "solver", None) == "cg" and isinstance(estimator, RLSRegressor):
        return _UNWEIGHTED
    return _INDEFINITE if getattr(estimator, "kernel", None) == "precomputed" else {}


@parametrize_with_checks(
    [
        RLSClassifier(),
        RLSClassifier(kernel="linear", fit_intercept=True),
        RLSClassifier(kernel="precomputed"),
        RLSRegressor(),
        RLSRegressor(fit_intercept=True),
        LowRankRLSClassifier(10),
        LowRankRLSClassifier(10, method="subset"),
        LowRankRLSClassifier(10, selection="ic", fit_intercept=True),
        LowRankRLSRegressor(10, kernel="linear", alpha=0.01, fit_intercept=True),
        RLSRegressor(solver="cg", leave_one_out=False),
        LinearRLSClassifier(),
        LinearRLSRegressor(solver="cg", fit_intercept=True),
        BaggedKernelClassifier(n_estimators=2),
        BaggedKernelRegressor(n_estimators=2),
        LowRankSVC(10),
    ],
    expected_failed_checks=_least_squares_expected,
)
def test_scikit_learn_contract_of_least_squares(estimator, check):
    check(estimator)


def _matching_expected(estimator):
    weights = "check_class_weight_classifiers"
    if isinstance(estimator, KMPClassifier) and estimator.loss == "logistic":
        reason = "the rows are separable, so that the least loss lies at infinity"
        return {weights: reason} | dict.fromkeys(_WEIGHTS, reason)
    reason = "as many functions as rows fit every row, whatever its weight"
    return {weights: reason} if type(estimator) is KMPClassifier and estimator.n_vectors == 100 else {}


@parametrize_with_checks(
    [
        KMPClassifier(),
        KMPClassifier(n_vectors=10),
        KMPClassifier(kernel="precomputed", n_vectors=20),
        KMPClassifier(variant="backfit", n_vectors=10, fit_intercept="candidate"),
        KMPRegressor(),
        KMPRegressor(gamma=[0.1, 1.0], fit_intercept=False),
        KMPClassifier(n_vectors=10, loss="logistic"),
        KMPRegressor(loss="huber"),
        KMPRegressor(variant="basic"),
    ],
    expected_failed_checks=_matching_expected,
)
def test_scikit_learn_contract_of_matching_pursuit(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        CodedClassifier(SVC(kernel="linear")),
        CodedClassifier(SVC(), "ovo", "votes", random_state=0, n_draws=20),
        CodedClassifier(RLSClassifier(), "dense", "hamming", random_state=0, n_draws=20),
        CodedClassifier(LogisticRegression(), "sparse", random_state=0, n_draws=20),
        CodedClassifier(SVC(kernel="precomputed"), "sparse", shared=False, random_state=0, n_draws=20),
    ],
)
def test_scikit_learn_contract_of_codes(estimator, check):
    check(estimator)
