"""scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from public import PUBLIC
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CodedClassifier,
    KMPClassifier,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PerceptronTreeClassifier,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.least_squares import (
    BaggedKernelClassifier,
    BaggedKernelRegressor,
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.online import KernelPerceptron
from svmarrow.svm import QuantileSVR

# The checks compare a weighted fit with a fit on repeated rows to seven digits. Estimators with TIGHT pass;
# defaults cannot, and single-precision kernel rows give six. tests/contract/test_weights.py has them all.
TIGHT = {"gamma": 0.1, "tol": 1e-9}
_WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "gamma='scale' counts rows whatever they weigh, as scikit-learn's does, and seven digits are more "
        "than tol or single-precision kernel rows give"
    )
    for kind in ("dense", "sparse")
}
_NEGATIVE = {
    "check_class_weight_classifiers": "its data has negative values, which the chi2 kernel does not take"
}
_SEARCH = dict.fromkeys(_WEIGHTS, "a repeated row falls into other folds than a weighted one")
_NU = {"check_class_weight_classifiers": "extreme class weights leave no feasible nu"}
# A repeated row may be drawn, dealt out or held out, a heavy one is or is not.
_DRAWN = dict.fromkeys(_WEIGHTS, "rows are drawn, so repeated rows differ from weighted ones")
# The checks turn the kernel matrix into integers, which leaves it indefinite: a pivot is not positive.
_INDEFINITE = dict.fromkeys(
    ("check_positive_only_tag_during_fit", "check_estimators_dtypes"), "indefinite matrices are refused"
)
_NO_CONSTANT = {
    "check_class_weight_classifiers": "a function without a constant is 0 in the midst of the rows"
}
_FEW = {"check_classifiers_one_label_sample_weights": "more points than rows that count: a warning says so"}
_EVERY_ROW = {
    "check_class_weight_classifiers": "as many functions as rows fit every row, whatever its weight"
}

#: Every public estimator, in the settings that have code of their own, and the checks it fails for a reason.
CONTRACT = [
    (SVC(), _WEIGHTS),
    (SVC(**TIGHT), {}),
    (SVC(kernel="linear"), {name: why for name, why in _WEIGHTS.items() if "dense" in name}),
    (SVC(kernel="precomputed"), {}),
    (SVC(kernel="chi2", **TIGHT), _NEGATIVE),
    (SVC(multi_class="ovr"), _WEIGHTS),
    (SVC(loss="squared_hinge", **TIGHT), {}),
    (SVC(fit_intercept=False, **TIGHT), _NO_CONSTANT),
    (SVC(warm_start=True, **TIGHT), {}),
    (NuSVC(), _WEIGHTS | _NU),
    (SVR(), _WEIGHTS),
    (NuSVR(), _WEIGHTS),
    (QuantileSVR(), _WEIGHTS),
    (OneClassSVM(), _WEIGHTS),
    (SVCCV(Cs=3, gammas=3, cv=2), _SEARCH),
    (SVRCV(Cs=3, gammas=3, cv=2), _SEARCH),
    (QuantileSVRCV(Cs=3, gammas=3, cv=2), _SEARCH),
    (LowRankSVC(10), _DRAWN),
    (LowRankSVC(10, multi_class="ovr", class_weight="balanced"), _DRAWN),
    (RLSClassifier(), {}),
    (RLSClassifier(kernel="linear", fit_intercept=True), {}),
    (RLSClassifier(kernel="precomputed"), _INDEFINITE | _NO_CONSTANT),
    (RLSRegressor(), {}),
    (RLSRegressor(fit_intercept=True), {}),
    (RLSClassifier(solver="cg", tol=1e-12), {}),
    (RLSRegressor(solver="cg"), _WEIGHTS),
    (LowRankRLSClassifier(5), _DRAWN),
    (LowRankRLSClassifier(10, method="subset"), _DRAWN | _FEW),
    (LowRankRLSClassifier(5, selection="ic", fit_intercept=True), _DRAWN),
    (LowRankRLSRegressor(10, kernel="linear", alpha=0.01, fit_intercept=True), _DRAWN),
    (LinearRLSClassifier(), _NO_CONSTANT),
    (LinearRLSClassifier(fit_intercept=True), {}),
    (LinearRLSRegressor(solver="cg", fit_intercept=True, tol=1e-10), {}),
    (BaggedKernelClassifier(n_estimators=2), _DRAWN),
    (BaggedKernelRegressor(n_estimators=2), _DRAWN),
    (KMPClassifier(), _EVERY_ROW),
    (KMPClassifier(n_vectors=10), {}),
    (KMPClassifier(kernel="precomputed", n_vectors=20), {}),
    (KMPClassifier(variant="backfit", n_vectors=10, fit_intercept="candidate"), {}),
    (KMPClassifier(n_vectors=3, loss="logistic"), {}),
    (KMPRegressor(), {}),
    (KMPRegressor(gamma=[0.1, 1.0], fit_intercept=False), {}),
    (KMPRegressor(loss="huber"), {}),
    (KMPRegressor(variant="basic"), {}),
    (KernelPerceptron(), {}),
    (KernelPerceptron(prediction="averaged"), {}),
    (KernelPerceptron(prediction="voted"), {}),
    (KernelPerceptron(policy="stop", budget=100), {}),
    (KernelPerceptron(policy="tightest", budget=100), {}),
    (KernelPerceptron(policy="forgetron", budget=100), {}),
    (KernelPerceptron(policy="projectron"), {}),
    (KernelPerceptron(policy="projectron++"), {}),
    (PerceptronTreeClassifier(), {}),
    (PerceptronTreeClassifier(split="zpq", budget=5), {}),
    (PerceptronTreeClassifier(budget=5, prediction="averaged"), {}),
    (CodedClassifier(SVC(kernel="linear")), _WEIGHTS),
    (CodedClassifier(SVC(), "ovo", "votes", class_weight="balanced"), {}),
    (CodedClassifier(RLSClassifier(), "dense", "hamming", random_state=0, n_draws=20), {}),
    (CodedClassifier(LogisticRegression(), "sparse", random_state=0, n_draws=20), {}),
    (CodedClassifier(SVC(kernel="precomputed"), "sparse", shared=False, random_state=0, n_draws=20), {}),
    # The checks want the largest decision value to win: votes grant that where ties are broken so.
    (ReducedSet(SVC(break_ties=True, **TIGHT), n_vectors=5), {}),
    (ReducedSet(SVC(multi_class="ovr"), candidates="rows"), _WEIGHTS),
    (ReducedSet(SVC(kernel="linear", break_ties=True), n_vectors=3), _WEIGHTS),
    (ExactCascade(SVC()), {}),
    (ExactCascade(SVC(), 10, stages=[3]), {}),
    (CalibratedCascade(SVC(), random_state=0), _DRAWN),
    (CalibratedCascade(SVC(), [2, 5], epsilon=0.3, delta=0.3, calibration=0.4, random_state=0), _DRAWN),
]
#: Models of a finished expansion, which nothing fits.
FINISHED = {"ExpansionClassifier", "ExpansionDetector", "ExpansionRegressor"}


def contract():
    """A case for each estimator and check; array_api input is not accepted, so its check would only skip."""
    for estimator, failing in CONTRACT:
        checks = estimator_checks_generator(estimator, expected_failed_checks=failing, mark="xfail")
        for case in checks:
            of, check = getattr(case, "values", case)
            if "array_api" not in _check_name(check):
                marks = getattr(case, "marks", ())
                yield pytest.param(
                    of, check, marks=marks, id=" ".join(f"{of!r}-{_check_name(check)}".split())
                )


def _check_name(check):
    return getattr(check, "func", check).__name__


@pytest.mark.parametrize(("estimator", "check"), list(contract()))
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = {name for name in PUBLIC if hasattr(PUBLIC[name], "get_params")}
    assert public == {type(estimator).__name__ for estimator, _ in CONTRACT} | FINISHED


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


@pytest.mark.parametrize("kind", [SVC, NuSVC, LowRankSVC])
@pytest.mark.parametrize("name", ["predict_proba", "predict_log_proba"])
def test_who_asks_for_probabilities_hears_where_they_are(kind, name):
    model = kind()
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=rf"{kind.__name__} has no {name}: CalibratedClassifierCV"):
        getattr(model, name)


def test_feature_names(datasets):
    X, y = datasets["iris"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    svc = SVC().fit(frame, y)
    assert svc.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        svc.predict(frame[["b", "a", "c", "d"]])
