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
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

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
from svmarrow.svm import QuantileSVR

X, KIND = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)[::2]
KIND = KIND[::2]
NUMBER = X @ [1.0, -2.0, 0.5, 1.0] + np.sin(3.0 * X[:, 0])
POINTS = X[::5] + 0.01
#: Rows that count once, twice, three times and not at all.
COUNTS = np.random.default_rng(0).integers(0, 4, len(X))
ROWS = np.repeat(np.arange(len(X)), COUNTS)

#: Support vector machines: outputs move with the tolerance of the solver and single-precision kernel rows.
SVM = 1e-4
#: Systems of equations, solved up to rounding times their condition.
EXACT = 1e-7
S = {"gamma": 0.3, "tol": 1e-8}
K = {"gamma": 0.3}

#: An estimator and how far outputs may be apart, relative to the largest.
CASES = [
    (SVC(C=3.0, **S), SVM),
    (SVC(C=3.0, multi_class="ovr", **S), SVM),
    (SVC(loss="squared_hinge", **S), SVM),
    (SVC(fit_intercept=False, **S), SVM),
    (SVC(class_weight={0: 2.0, 1: 0.5}, **S), SVM),
    (NuSVC(nu=0.2, **S), SVM),
    (SVR(epsilon=0.05, **S), SVM),
    (NuSVR(**S), SVM),
    (QuantileSVR([0.2, 0.7], **S), SVM),
    (OneClassSVM(nu=0.3, **S), SVM),
    (SVCCV(Cs=[3.0], gammas=[0.3], cv=2, tol=1e-8), SVM),
    (SVRCV(Cs=[3.0], gammas=[0.3], cv=2, tol=1e-8), SVM),
    (QuantileSVRCV(0.3, Cs=[3.0], gammas=[0.3], cv=2, tol=1e-8), SVM),
    (LowRankSVC(selection=POINTS, **S), SVM),
    (RLSClassifier(0.1, **K), EXACT),
    (RLSClassifier(0.1, fit_intercept=True, class_weight="balanced", **K), EXACT),
    (RLSClassifier(0.1, solver="cg", tol=1e-12, **K), EXACT),
    (RLSClassifier(0.1), EXACT),
    (RLSRegressor(0.1, **K), EXACT),
    (RLSRegressor(0.1, solver="cg", tol=1e-12, **K), EXACT),
    (LinearRLSClassifier(0.1, fit_intercept=True, class_weight="balanced"), EXACT),
    (LinearRLSClassifier(0.1, solver="cg", tol=1e-12), EXACT),
    (LinearRLSRegressor(0.1, fit_intercept=True), EXACT),
    (LowRankRLSClassifier(selection=POINTS, alpha=0.1, class_weight="balanced", **K), EXACT),
    (LowRankRLSRegressor(selection=POINTS, alpha=0.1, fit_intercept=True, **K), EXACT),
    # Machines on all rows, so that nothing is left of the draw.
    (BaggedKernelClassifier(RLSClassifier(0.1), 2, parts="subsets", max_samples=1.0), EXACT),
    (BaggedKernelClassifier(SVC(**S), 2, parts="subsets", max_samples=1.0, class_weight="balanced"), SVM),
    (BaggedKernelRegressor(RLSRegressor(0.1), 2, parts="subsets", max_samples=1.0), EXACT),
    (KMPClassifier(n_vectors=6, **K), EXACT),
    (KMPClassifier(n_vectors=6, variant="basic", class_weight="balanced", **K), EXACT),
    (KMPClassifier(n_vectors=6, loss="logistic", **K), 1e-5),
    (KMPRegressor(n_vectors=6, **K), EXACT),
    (KMPRegressor(n_vectors=6, loss="huber", **K), 1e-5),
    (CodedClassifier(SVC(**S)), SVM),
    (CodedClassifier(SVC(**S), "ovo", "votes", shared=False), SVM),
    (CodedClassifier(RLSClassifier(0.1), "complete", class_weight="balanced"), EXACT),
    (CodedClassifier(KMPClassifier(n_vectors=6, **K)), EXACT),
    (ReducedSet(SVC(**S), 8, tune_threshold=False), SVM),
    (ExactCascade(SVC(**S)), SVM),
]
#: What cannot be compared row by row, and why.
DRAWN = {CalibratedCascade: "the rows that it holds out are drawn, and its promise counts rows"}


def data(estimator):
    return X, NUMBER if is_regressor(estimator) else KIND


def outputs(model, rows):
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return model.model_.outputs(rows) if hasattr(model, "model_") else model.predict(rows)


def assert_close(model, other, within):
    expected = outputs(other, X)
    assert outputs(model, X) == pytest.approx(expected, rel=0, abs=within * np.abs(expected).max())


@pytest.mark.parametrize(("estimator", "within"), CASES, ids=lambda case: " ".join(repr(case).split())[:80])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_weights_count_rows(estimator, within, kind):
    rows, y = data(estimator)
    weighted = clone(estimator).fit(kind(rows), y, sample_weight=COUNTS)
    repeated = clone(estimator).fit(kind(rows[ROWS]), y[ROWS])
    assert_close(weighted, repeated, within)


@pytest.mark.parametrize(("estimator", "within"), CASES, ids=lambda case: " ".join(repr(case).split())[:80])
def test_weights_have_an_effect(estimator, within):
    """Else the test above could pass on an estimator that looks at no weight."""
    rows, y = data(estimator)
    weighted = clone(estimator).fit(rows, y, sample_weight=COUNTS)
    plain = clone(estimator).fit(rows, y)
    apart = np.abs(outputs(weighted, X) - outputs(plain, X)).max()
    assert apart > 10.0 * within * np.abs(outputs(plain, X)).max()


def test_rows_of_weight_zero_are_not_held_out():
    """Of the cascade that draws: rows of weight 0 change nothing in the full model, whatever is drawn."""
    cascade = CalibratedCascade(SVC(**S), random_state=0)
    weighted = clone(cascade).fit(X, KIND, sample_weight=(np.arange(len(X)) % 3 > 0).astype(float))
    other = np.where(np.arange(len(X))[:, np.newaxis] % 3 > 0, X, X + 1.0)
    moved = clone(cascade).fit(other, KIND, sample_weight=(np.arange(len(X)) % 3 > 0).astype(float))
    assert_close(weighted.model_, moved.model_, SVM)


def test_every_estimator_that_takes_weights_is_here():
    public = {PUBLIC[name] for name in PUBLIC}
    estimators = {kind for kind in public if hasattr(kind, "get_params")}
    takes = {kind for kind in estimators if has_fit_parameter(kind, "sample_weight")}
    assert takes == {type(estimator) for estimator, _ in CASES} | set(DRAWN)
