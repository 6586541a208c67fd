"""The registry of estimators: each public class with its settings for the tests of all estimators.

A new estimator gets one entry in `ESTIMATORS`; every test that runs over all estimators takes its part of it.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from helpers.data import (
    CODE,
    FRAME,
    GRAM,
    IRIS,
    KIND,
    NUMBERS,
    PAIRS,
    POINTS,
    SIDE,
    SIDES,
    SINGLE,
    SPARSE,
    TARGET,
    TWO,
    WEIGHTS,
    WIDE,
    WIDE_LABELS,
    WIDE_SINGLE,
    WIDE_SPARSE,
    WIDE_TARGETS,
    WORDS,
)
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CodedClassifier,
    KernelExpansion,
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
    TabularClassifier,
    TabularRegressor,
    compress,
    compression_path,
    quantize,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.exceptions import ConvergenceWarning
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.models import ExpansionDetector, ExpansionRegressor, ExpansionTree
from svmarrow.multiclass import Code
from svmarrow.online import KernelPerceptron
from svmarrow.papers.reduced_set import path
from svmarrow.preprocessing import LearnedScaler
from svmarrow.reduced_set import GradientSettings, SelectionSettings
from svmarrow.svm import QuantileSVR

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.base import BaseEstimator


@dataclass
class Entry:
    """What the tests use of a public class."""

    #: Unfitted estimators that fit iris in a moment, see `QUICK`.
    quick: list[BaseEstimator] = field(default_factory=list)
    #: Settings that have code of their own, with the scikit-learn checks that fail and why.
    contract: list[tuple[BaseEstimator, dict[str, str]]] = field(default_factory=list)
    #: Settings whose fit counts a weighted row as repeated rows, with the tolerance of the outputs.
    weights: list[tuple[BaseEstimator, float]] = field(default_factory=list)
    #: Why a fit with weights is not compared with one on repeated rows, where ``weights`` is empty.
    weights_differ: str = ""
    #: Parameters of fits that powers of 2 in the rows do not change, by name.
    scaling: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Functions that return a fitted object, with rows to predict, by name.
    examples: dict[str, tuple[Callable[[], Any], Any]] = field(default_factory=dict)
    #: Functions that return a fit that several threads share and rows to predict, by name.
    large: dict[str, Callable[[], tuple[Any, Any]]] = field(default_factory=dict)


# --- scikit-learn's checks that some estimators fail ---

# The checks compare a weighted fit with a fit on repeated rows to seven digits. Estimators with TIGHT pass;
# defaults cannot, and single-precision kernel rows give six. `Entry.weights` compares all estimators.
TIGHT = {"gamma": 0.1, "tol": 1e-9}
_REPEATED = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "gamma='scale' counts rows whatever they weigh, as scikit-learn's does, and seven digits are more "
        "than tol or single-precision kernel rows give"
    )
    for kind in ("dense", "sparse")
}
_NEGATIVE = {
    "check_class_weight_classifiers": "its data has negative values, which the chi2 kernel does not take"
}
_FOLDS = "a repeated row falls into other folds than a weighted one"
_SEARCHED = dict.fromkeys(_REPEATED, _FOLDS)
# Tables refuse sparse rows, with which that check ends.
_SEARCHED_DENSE = {"check_sample_weight_equivalence_on_dense_data": _FOLDS}
_INFEASIBLE = {"check_class_weight_classifiers": "extreme class weights leave no feasible nu"}
# A repeated row may be drawn, dealt out or held out, a heavy one is or is not.
_DRAWN = dict.fromkeys(_REPEATED, "rows are drawn, so repeated rows differ from weighted ones")
# The checks turn the kernel matrix into integers, which leaves it indefinite: a pivot is not positive.
_INDEFINITE = dict.fromkeys(
    ("check_positive_only_tag_during_fit", "check_estimators_dtypes"), "indefinite matrices are refused"
)
# One check takes random numbers for a kernel matrix.
_UNSYMMETRIC = {
    "check_classifiers_one_label_sample_weights": "unsymmetric matrices are refused, whatever the labels"
}
_NO_CONSTANT = {"check_class_weight_classifiers": "a function without a constant is 0 between the rows"}
_FEW = {"check_classifiers_one_label_sample_weights": "more points than rows that count: a warning says so"}
_EVERY_ROW = {
    "check_class_weight_classifiers": "as many functions as rows fit every row, whatever its weight"
}

# --- tolerances of weighted fits ---

#: Support vector machines: outputs move with the tolerance of the solver and single-precision kernel rows.
SVM_TOLERANCE = 1e-4
#: Systems of equations, solved up to rounding times their condition.
EXACT_TOLERANCE = 1e-7
PRECISE = {"gamma": 0.3, "tol": 1e-8}
WIDTH = {"gamma": 0.3}

# --- fitted examples ---


def early():
    """A machine whose solver has stopped at its limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SVC(max_iter=1).fit(IRIS, KIND)


def in_pieces(model, X, y, classes):
    model.partial_fit(X[:60], y[:60], classes=classes)
    return model.partial_fit(X[60:], y[60:])


def machine():
    """A machine of more than ten vectors, which compressions and paths start from."""
    return SVC(C=10.0, gamma=0.5).fit(IRIS, KIND)


def tuned():
    return compress(machine(), n_vectors=8, X=IRIS, y=KIND, method="backfit")


FEW = GradientSettings(steps=20)
STEPS = GradientSettings(steps=20, sizes=(2, 4))


def fit_of(name, X=WIDE, y=WIDE_LABELS, inside=None, **parameters):
    """Returns a function that fits; ``inside`` makes the inner estimator of a wrapper, in the fit."""

    def fit():
        own = parameters if inside is None else {"estimator": inside()} | parameters
        return globals()[name](**own).fit(X, y), X[::7]

    return fit


ESTIMATORS = {
    "SVC": Entry(
        quick=[SVC()],
        contract=[
            (SVC(), _REPEATED),
            (SVC(**TIGHT), {}),
            (SVC(kernel="linear"), {name: why for name, why in _REPEATED.items() if "dense" in name}),
            (SVC(kernel="precomputed"), _UNSYMMETRIC),
            (SVC(kernel="chi2", **TIGHT), _NEGATIVE),
            (SVC(multi_class="ovr"), _REPEATED),
            (SVC(loss="squared_hinge", **TIGHT), {}),
            (SVC(fit_intercept=False, **TIGHT), _NO_CONSTANT),
            (SVC(warm_start=True, **TIGHT), {}),
        ],
        weights=[
            (SVC(C=3.0, **PRECISE), SVM_TOLERANCE),
            (SVC(C=3.0, multi_class="ovr", **PRECISE), SVM_TOLERANCE),
            (SVC(loss="squared_hinge", **PRECISE), SVM_TOLERANCE),
            (SVC(fit_intercept=False, **PRECISE), SVM_TOLERANCE),
            (SVC(class_weight={0: 2.0, 1: 0.5}, **PRECISE), SVM_TOLERANCE),
        ],
        scaling={"SVC": {}},
        examples={
            "SVC": (machine, IRIS),
            "SVC words, weights": (
                lambda: SVC(class_weight={"setosa": 2, "virginica": 0.5}).fit(IRIS, WORDS),
                IRIS,
            ),
            "SVC rest, sparse": (
                lambda: SVC(multi_class="ovr", class_weight="balanced").fit(SPARSE, KIND),
                SPARSE,
            ),
            "SVC single": (lambda: SVC(loss="squared_hinge").fit(SINGLE, KIND.astype(np.int8)), SINGLE),
            "SVC frame": (lambda: SVC(kernel="poly", degree=2, coef0=1).fit(FRAME, KIND), FRAME),
            "SVC bools": (lambda: SVC(kernel="linear").fit(TWO, SIDE.astype(bool), np.arange(90.0)), TWO),
            "SVC gram": (lambda: SVC(kernel="precomputed").fit(GRAM, KIND), GRAM),
            "SVC ended early": (early, IRIS),
        },
        large={
            "SVC": fit_of("SVC"),
            "SVC cheap kernel": fit_of("SVC", np.ascontiguousarray(WIDE[:, :5]), C=100.0, kernel="laplacian"),
            "SVC sparse, ovr": fit_of("SVC", WIDE_SPARSE, multi_class="ovr", kernel="poly", coef0=1.0),
            "SVC squared hinge": fit_of("SVC", WIDE_SINGLE, loss="squared_hinge", fit_intercept=False),
        },
    ),
    "NuSVC": Entry(
        quick=[NuSVC(nu=0.2)],
        contract=[(NuSVC(), _REPEATED | _INFEASIBLE)],
        weights=[(NuSVC(nu=0.2, **PRECISE), SVM_TOLERANCE)],
        scaling={"NuSVC": {"nu": 0.2}},
        examples={"NuSVC": (lambda: NuSVC(nu=0.2).fit(TWO, SIDES), TWO)},
        large={"NuSVC": fit_of("NuSVC", WIDE_SINGLE, nu=0.2)},
    ),
    "SVR": Entry(
        quick=[SVR()],
        contract=[(SVR(), _REPEATED)],
        weights=[(SVR(epsilon=0.05, **PRECISE), SVM_TOLERANCE)],
        scaling={"SVR": {}},
        examples={"SVR": (lambda: SVR().fit(FRAME, NUMBERS, WEIGHTS), FRAME)},
        large={"SVR": fit_of("SVR", y=WIDE_TARGETS[:, 0])},
    ),
    "NuSVR": Entry(
        quick=[NuSVR()],
        contract=[(NuSVR(), _REPEATED)],
        weights=[(NuSVR(**PRECISE), SVM_TOLERANCE)],
        scaling={"NuSVR": {}},
        examples={"NuSVR": (lambda: NuSVR(nu=np.float64(0.3), C=2).fit(SPARSE, NUMBERS), SPARSE)},
        large={"NuSVR": fit_of("NuSVR", WIDE_SPARSE, WIDE_TARGETS[:, 0])},
    ),
    "QuantileSVR": Entry(
        quick=[QuantileSVR([0.1, 0.9])],
        contract=[(QuantileSVR(), _REPEATED)],
        weights=[(QuantileSVR([0.2, 0.7], **PRECISE), SVM_TOLERANCE)],
        scaling={"QuantileSVR": {}},
        examples={"QuantileSVR": (lambda: QuantileSVR([0.1, 0.9], C=2).fit(FRAME, NUMBERS, WEIGHTS), FRAME)},
        large={"QuantileSVR": fit_of("QuantileSVR", y=WIDE_TARGETS[:, 0], quantile=[0.1, 0.5, 0.9])},
    ),
    "OneClassSVM": Entry(
        quick=[OneClassSVM()],
        contract=[(OneClassSVM(), _REPEATED)],
        weights=[(OneClassSVM(nu=0.3, **PRECISE), SVM_TOLERANCE)],
        scaling={"OneClassSVM": {}},
        examples={"OneClassSVM": (lambda: OneClassSVM(nu=0.2).fit(IRIS), IRIS)},
        large={"OneClassSVM": fit_of("OneClassSVM", nu=0.2)},
    ),
    "SVCCV": Entry(
        quick=[SVCCV(Cs=3, gammas=3, cv=3)],
        contract=[(SVCCV(Cs=3, gammas=3, cv=2), _SEARCHED)],
        weights=[(SVCCV(Cs=[3.0], gammas=[0.3], cv=2, tol=1e-8), SVM_TOLERANCE)],
        examples={
            "SVCCV": (lambda: SVCCV(Cs=3, gammas=[0.1, 1.0]).fit(FRAME, WORDS, WEIGHTS), FRAME),
            "SVCCV racing": (
                lambda: SVCCV(Cs=3, gammas=3, search="racing", multi_class="ovr").fit(SPARSE, KIND),
                SPARSE,
            ),
            "SVCCV gram": (lambda: SVCCV(Cs=[1, 10.0], kernel="precomputed", cv=3).fit(GRAM, KIND), GRAM),
        },
    ),
    "SVRCV": Entry(
        quick=[SVRCV(Cs=3, gammas=3, cv=3)],
        contract=[(SVRCV(Cs=3, gammas=3, cv=2), _SEARCHED)],
        weights=[(SVRCV(Cs=[3.0], gammas=[0.3], cv=2, tol=1e-8), SVM_TOLERANCE)],
        examples={"SVRCV": (lambda: SVRCV(Cs=3, gammas=2, cv=3).fit(FRAME, NUMBERS), FRAME)},
    ),
    "QuantileSVRCV": Entry(
        quick=[QuantileSVRCV(0.9, Cs=3, gammas=3, cv=3)],
        contract=[(QuantileSVRCV(Cs=3, gammas=3, cv=2), _SEARCHED)],
        weights=[(QuantileSVRCV(0.3, Cs=[3.0], gammas=[0.3], cv=2, tol=1e-8), SVM_TOLERANCE)],
        examples={
            "QuantileSVRCV": (lambda: QuantileSVRCV(0.9, Cs=2, gammas=2, cv=3).fit(SPARSE, NUMBERS), SPARSE)
        },
    ),
    "LowRankSVC": Entry(
        quick=[LowRankSVC(20)],
        contract=[
            (LowRankSVC(10), _DRAWN),
            (LowRankSVC(10, multi_class="ovr", class_weight="balanced"), _DRAWN),
        ],
        weights=[(LowRankSVC(selection=POINTS, **PRECISE), SVM_TOLERANCE)],
        scaling={"LowRankSVC": {"n_vectors": 12, "random_state": 0}},
        examples={
            "LowRankSVC": (
                lambda: LowRankSVC(20, random_state=np.random.RandomState(3)).fit(IRIS, WORDS),
                IRIS,
            ),
            "LowRankSVC points": (lambda: LowRankSVC(selection=IRIS[::9].copy()).fit(FRAME, KIND), FRAME),
        },
        large={
            "LowRankSVC": fit_of("LowRankSVC", n_vectors=150, random_state=0),
            "LowRankSVC kmeans": fit_of(
                "LowRankSVC", WIDE_SINGLE, n_vectors=60, selection="kmeans", random_state=0
            ),
        },
    ),
    "RLSClassifier": Entry(
        quick=[RLSClassifier()],
        contract=[
            (RLSClassifier(), {}),
            (RLSClassifier(kernel="linear", fit_intercept=True), {}),
            (RLSClassifier(kernel="precomputed"), _INDEFINITE | _NO_CONSTANT | _UNSYMMETRIC),
            (RLSClassifier(solver="cg", tol=1e-12), {}),
            (RLSClassifier(gamma="loo"), {}),
        ],
        weights=[
            (RLSClassifier(0.1, **WIDTH), EXACT_TOLERANCE),
            (RLSClassifier(0.1, fit_intercept=True, class_weight="balanced", **WIDTH), EXACT_TOLERANCE),
            (RLSClassifier(0.1, solver="cg", tol=1e-12, **WIDTH), EXACT_TOLERANCE),
            (RLSClassifier(0.1), EXACT_TOLERANCE),
        ],
        scaling={"RLSClassifier": {}},
        examples={
            "RLSClassifier": (lambda: RLSClassifier(0.1).fit(FRAME, WORDS, WEIGHTS), FRAME),
            "RLSClassifier width": (lambda: RLSClassifier(0.1, gamma="loo").fit(IRIS, KIND), IRIS),
            "RLSClassifier chosen": (
                lambda: RLSClassifier(alphas=np.array([0.1, 1, 10])).fit(IRIS, KIND),
                IRIS,
            ),
            "RLSClassifier cg": (
                lambda: RLSClassifier(solver="cg", leave_one_out=False, fit_intercept=False).fit(
                    SPARSE, KIND
                ),
                SPARSE,
            ),
        },
        large={"RLSClassifier": fit_of("RLSClassifier", leave_one_out=True)},
    ),
    "RLSRegressor": Entry(
        quick=[RLSRegressor()],
        contract=[
            (RLSRegressor(), {}),
            (RLSRegressor(fit_intercept=True), {}),
            (RLSRegressor(solver="cg"), _REPEATED),
        ],
        weights=[
            (RLSRegressor(0.1, **WIDTH), EXACT_TOLERANCE),
            (RLSRegressor(0.1, solver="cg", tol=1e-12, **WIDTH), EXACT_TOLERANCE),
        ],
        scaling={"RLSRegressor": {}},
        examples={
            "RLSRegressor": (lambda: RLSRegressor(fit_intercept=True).fit(IRIS, PAIRS), IRIS),
            "RLSRegressor chosen": (lambda: RLSRegressor(alphas=[0.1, 1.0]).fit(SINGLE, NUMBERS), SINGLE),
        },
        large={
            "RLSRegressor path": fit_of("RLSRegressor", y=WIDE_TARGETS, alphas=(0.1, 1.0, 10.0)),
            "RLSRegressor cg": fit_of(
                "RLSRegressor", WIDE_SPARSE, WIDE_TARGETS, solver="cg", fit_intercept=True
            ),
        },
    ),
    "LowRankRLSClassifier": Entry(
        quick=[LowRankRLSClassifier(20)],
        contract=[
            (LowRankRLSClassifier(5), _DRAWN),
            (LowRankRLSClassifier(10, method="subset"), _DRAWN | _FEW),
            (LowRankRLSClassifier(5, selection="pivoted_cholesky", fit_intercept=True), _DRAWN),
            (LowRankRLSClassifier(5, solver="cg"), _DRAWN),
        ],
        weights=[
            (
                LowRankRLSClassifier(selection=POINTS, alpha=0.1, class_weight="balanced", **WIDTH),
                EXACT_TOLERANCE,
            )
        ],
        scaling={"LowRankRLSClassifier": {"n_vectors": 12, "random_state": 0}},
        examples={
            "LowRankRLSClassifier": (
                lambda: LowRankRLSClassifier(20, random_state=0).fit(FRAME, WORDS),
                FRAME,
            ),
            "LowRankRLSClassifier pieces": (
                lambda: in_pieces(LowRankRLSClassifier(9, random_state=0), SPARSE, KIND, [0, 1, 2]),
                SPARSE,
            ),
        },
        large={
            "LowRankRLSClassifier ic": fit_of(
                "LowRankRLSClassifier", n_vectors=60, selection="pivoted_cholesky", method="nystrom"
            )
        },
    ),
    "LowRankRLSRegressor": Entry(
        quick=[LowRankRLSRegressor(20)],
        contract=[(LowRankRLSRegressor(10, kernel="linear", alpha=0.01, fit_intercept=True), _DRAWN)],
        weights=[
            (LowRankRLSRegressor(selection=POINTS, alpha=0.1, fit_intercept=True, **WIDTH), EXACT_TOLERANCE),
            (
                LowRankRLSRegressor(
                    selection=POINTS, alpha=0.1, fit_intercept=True, solver="cg", tol=1e-11, **WIDTH
                ),
                EXACT_TOLERANCE,
            ),
        ],
        examples={
            "LowRankRLSRegressor": (
                lambda: LowRankRLSRegressor(15, method="nystrom", selection="pivoted_cholesky").fit(
                    IRIS, NUMBERS
                ),
                IRIS,
            ),
            "LowRankRLSRegressor cg": (
                lambda: LowRankRLSRegressor(15, solver="cg", random_state=0).fit(IRIS, PAIRS),
                IRIS,
            ),
        },
        large={
            "LowRankRLSRegressor": fit_of(
                "LowRankRLSRegressor", y=WIDE_TARGETS, n_vectors=150, random_state=0
            ),
            "LowRankRLSRegressor cg": fit_of(
                "LowRankRLSRegressor", y=WIDE_TARGETS, n_vectors=150, random_state=0, solver="cg"
            ),
        },
    ),
    "LinearRLSClassifier": Entry(
        quick=[LinearRLSClassifier()],
        contract=[(LinearRLSClassifier(), _NO_CONSTANT), (LinearRLSClassifier(fit_intercept=True), {})],
        weights=[
            (LinearRLSClassifier(0.1, fit_intercept=True, class_weight="balanced"), EXACT_TOLERANCE),
            (LinearRLSClassifier(0.1, solver="cg", tol=1e-12), EXACT_TOLERANCE),
        ],
        examples={
            "LinearRLSClassifier": (lambda: LinearRLSClassifier(leave_one_out=True).fit(IRIS, WORDS), IRIS)
        },
        large={"LinearRLSClassifier dual": fit_of("LinearRLSClassifier", WIDE_SPARSE, solver="dual")},
    ),
    "LinearRLSRegressor": Entry(
        quick=[LinearRLSRegressor()],
        contract=[(LinearRLSRegressor(solver="cg", fit_intercept=True, tol=1e-10), {})],
        weights=[(LinearRLSRegressor(0.1, fit_intercept=True), EXACT_TOLERANCE)],
        examples={"LinearRLSRegressor": (lambda: LinearRLSRegressor(solver="cg").fit(SPARSE, PAIRS), SPARSE)},
        large={
            "LinearRLSRegressor": fit_of("LinearRLSRegressor", y=WIDE_TARGETS, leave_one_out=True),
            "LinearRLSRegressor cg": fit_of("LinearRLSRegressor", WIDE_SPARSE, WIDE_TARGETS, solver="cg"),
        },
    ),
    "KMPClassifier": Entry(
        quick=[KMPClassifier(n_vectors=5)],
        contract=[
            (KMPClassifier(), _EVERY_ROW),
            (KMPClassifier(n_vectors=10), {}),
            (KMPClassifier(kernel="precomputed", n_vectors=20), {}),
            (KMPClassifier(variant="backfit", n_vectors=10, fit_intercept="candidate"), {}),
            (KMPClassifier(n_vectors=3, loss="logistic"), {}),
        ],
        weights=[
            (KMPClassifier(n_vectors=6, **WIDTH), EXACT_TOLERANCE),
            (KMPClassifier(n_vectors=6, variant="basic", class_weight="balanced", **WIDTH), EXACT_TOLERANCE),
            (KMPClassifier(n_vectors=6, loss="logistic", **WIDTH), 1e-5),
        ],
        scaling={"KMPClassifier": {"n_vectors": 6}},
        examples={
            "KMPClassifier": (lambda: KMPClassifier(n_vectors=6).fit(FRAME, WORDS), FRAME),
            "KMPClassifier kernels": (
                lambda: KMPClassifier(
                    n_vectors=6, kernel=["rbf", "linear"], gamma=(0.1, 1.0), loss="logistic", random_state=0
                ).fit(SPARSE, KIND),
                SPARSE,
            ),
            "KMPClassifier stopped": (
                lambda: KMPClassifier(
                    n_vectors=9, early_stopping=True, random_state=0, fit_intercept="candidate"
                ).fit(TWO, SIDES),
                TWO,
            ),
        },
        large={
            "KMPClassifier": fit_of("KMPClassifier", n_vectors=40),
            "KMPClassifier logistic": fit_of("KMPClassifier", WIDE_SPARSE, n_vectors=12, loss="logistic"),
        },
    ),
    "KMPRegressor": Entry(
        quick=[KMPRegressor(n_vectors=5)],
        contract=[
            (KMPRegressor(), {}),
            (KMPRegressor(gamma=[0.1, 1.0], fit_intercept=False), {}),
            (KMPRegressor(loss="huber"), {}),
            (KMPRegressor(variant="basic"), {}),
        ],
        weights=[
            (KMPRegressor(n_vectors=6, **WIDTH), EXACT_TOLERANCE),
            (KMPRegressor(n_vectors=6, loss="huber", **WIDTH), 1e-5),
        ],
        examples={
            "KMPRegressor": (
                lambda: KMPRegressor(n_vectors=6, early_stopping=True, cv=3, random_state=0).fit(IRIS, PAIRS),
                IRIS,
            ),
            "KMPRegressor again": (
                lambda: (
                    KMPRegressor(n_vectors=4, loss="huber").fit(IRIS, NUMBERS).fit(IRIS[:99], NUMBERS[:99])
                ),
                IRIS,
            ),
        },
        large={"KMPRegressor": fit_of("KMPRegressor", y=WIDE_TARGETS, n_vectors=40, precision="double")},
    ),
    "KernelPerceptron": Entry(
        quick=[
            KernelPerceptron(),
            KernelPerceptron(policy="stop", budget=100),
            KernelPerceptron(policy="oldest", budget=100),
            KernelPerceptron(policy="forgetron", budget=100),
            KernelPerceptron(policy="projectron"),
            KernelPerceptron(policy="projectron++"),
        ],
        contract=[
            (KernelPerceptron(), {}),
            (KernelPerceptron(prediction="averaged"), {}),
            (KernelPerceptron(prediction="voted"), {}),
            (KernelPerceptron(policy="stop", budget=100), {}),
            (KernelPerceptron(policy="tightest", budget=100), {}),
            (KernelPerceptron(policy="forgetron", budget=100), {}),
            (KernelPerceptron(policy="projectron"), {}),
            (KernelPerceptron(policy="projectron++"), {}),
        ],
        scaling={"KernelPerceptron": {}, "KernelPerceptron projectron": {"policy": "projectron"}},
        examples={
            "KernelPerceptron": (lambda: KernelPerceptron(gamma=0.5).fit(FRAME, WORDS), FRAME),
            "KernelPerceptron averaged": (
                lambda: KernelPerceptron(gamma=0.5, prediction="averaged").fit(SPARSE, KIND),
                SPARSE,
            ),
            "KernelPerceptron voted": (
                lambda: KernelPerceptron(gamma=0.5, prediction="voted").fit(TWO, SIDES),
                TWO,
            ),
            "KernelPerceptron random": (
                lambda: KernelPerceptron(policy="random", budget=9, gamma=0.5, random_state=3).fit(TWO, SIDE),
                TWO,
            ),
            "KernelPerceptron forgetron": (
                lambda: KernelPerceptron(policy="forgetron", budget=9).fit(SINGLE, KIND),
                SINGLE,
            ),
            "KernelPerceptron stop": (
                lambda: KernelPerceptron(policy="stop", budget=9).fit(IRIS, KIND),
                IRIS,
            ),
            "KernelPerceptron projectron": (
                lambda: KernelPerceptron(policy="projectron", gamma=0.5, eta=0.1).fit(IRIS, KIND),
                IRIS,
            ),
            "KernelPerceptron projectron++": (
                lambda: KernelPerceptron(policy="projectron++", gamma=0.5, eta=0.1).fit(SPARSE, WORDS),
                SPARSE,
            ),
        },
        large={
            "KernelPerceptron": fit_of("KernelPerceptron", prediction="averaged"),
            "KernelPerceptron projectron++": fit_of(
                "KernelPerceptron", WIDE_SPARSE, policy="projectron++", gamma=0.01
            ),
            "KernelPerceptron margin": fit_of("KernelPerceptron", policy="margin", budget=60, random_state=0),
        },
    ),
    "PerceptronTreeClassifier": Entry(
        quick=[PerceptronTreeClassifier()],
        contract=[
            (PerceptronTreeClassifier(), {}),
            (PerceptronTreeClassifier(split="zpq", budget=5), {}),
            (PerceptronTreeClassifier(budget=5, prediction="averaged"), {}),
        ],
        scaling={"PerceptronTreeClassifier": {"budget": 8, "random_state": 0}},
        examples={
            "PerceptronTreeClassifier": (
                lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, random_state=0).fit(FRAME, WORDS),
                FRAME,
            ),
            "PerceptronTreeClassifier sparse": (
                lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, split="zpq", random_state=0).fit(
                    SPARSE, KIND
                ),
                SPARSE,
            ),
            "PerceptronTreeClassifier of averages": (
                lambda: PerceptronTreeClassifier(
                    budget=6, gamma=2.0, prediction="averaged", random_state=0
                ).fit(FRAME, KIND),
                FRAME,
            ),
            "PerceptronTreeClassifier of pairs": (
                lambda: PerceptronTreeClassifier.from_expansion(machine(), IRIS, budget=9, random_state=0),
                IRIS,
            ),
        },
        large={
            "PerceptronTreeClassifier": fit_of(
                "PerceptronTreeClassifier", budget=40, n_epochs=3, random_state=0
            )
        },
    ),
    "CodedClassifier": Entry(
        quick=[CodedClassifier(SVC(), shared=False)],
        contract=[
            (CodedClassifier(SVC(kernel="linear")), _REPEATED),
            (CodedClassifier(SVC(), "ovo", "votes", class_weight="balanced"), {}),
            (CodedClassifier(RLSClassifier(), "dense", "hamming", random_state=0, n_draws=20), {}),
            (CodedClassifier(LogisticRegression(), "sparse", random_state=0, n_draws=20), {}),
            (
                CodedClassifier(
                    SVC(kernel="precomputed"), "sparse", shared=False, random_state=0, n_draws=20
                ),
                {},
            ),
        ],
        weights=[
            (CodedClassifier(SVC(**PRECISE)), SVM_TOLERANCE),
            (CodedClassifier(SVC(**PRECISE), "ovo", "votes", shared=False), SVM_TOLERANCE),
            (CodedClassifier(RLSClassifier(0.1), "complete", class_weight="balanced"), EXACT_TOLERANCE),
            (CodedClassifier(KMPClassifier(n_vectors=6, **WIDTH)), EXACT_TOLERANCE),
        ],
        examples={
            "CodedClassifier": (
                lambda: CodedClassifier(SVC(), code="dense", random_state=0).fit(IRIS, WORDS),
                IRIS,
            ),
            "CodedClassifier matrix": (
                lambda: CodedClassifier(RLSClassifier(), code=np.array(CODE)).fit(FRAME, KIND),
                FRAME,
            ),
            "CodedClassifier complete": (
                lambda: CodedClassifier(RLSClassifier(), Code(np.sign(np.subtract(CODE, 0.5)))).fit(
                    IRIS, KIND
                ),
                IRIS,
            ),
            "CodedClassifier each": (
                lambda: CodedClassifier(
                    LowRankSVC(9, random_state=0), code="ovo", decoder="hamming", shared=False
                ).fit(IRIS, WORDS),
                IRIS,
            ),
        },
        large={
            "CodedClassifier": fit_of(
                "CodedClassifier", inside=SVC, code="sparse", n_draws=500, random_state=0
            ),
            "CodedClassifier each": fit_of("CodedClassifier", inside=SVC, shared=False),
        },
    ),
    "ReducedSet": Entry(
        quick=[ReducedSet(SVC(), 8)],
        contract=[
            (ReducedSet(SVC(break_ties=True, **TIGHT), n_vectors=5), {}),
            (ReducedSet(SVC(multi_class="ovr"), candidates="samples"), _REPEATED),
            (ReducedSet(SVC(kernel="linear", break_ties=True), n_vectors=3), _REPEATED),
        ],
        weights=[(ReducedSet(SVC(**PRECISE), 8, tune_threshold=False), SVM_TOLERANCE)],
        examples={
            "ReducedSet": (lambda: ReducedSet(SVC(), 9).fit(FRAME, WORDS), FRAME),
            "ReducedSet gradient": (
                lambda: ReducedSet(SVC(), 4, method="gradient", settings=FEW, random_state=0).fit(IRIS, KIND),
                IRIS,
            ),
            "ReducedSet sampled": (
                lambda: ReducedSet(SVC(), 4, settings=SelectionSettings(sample=5), random_state=0).fit(
                    SPARSE, KIND
                ),
                SPARSE,
            ),
        },
    ),
    "ExactCascade": Entry(
        quick=[ExactCascade(SVC())],
        contract=[(ExactCascade(SVC()), {}), (ExactCascade(SVC(), 10, stages=[3]), {})],
        weights=[(ExactCascade(SVC(**PRECISE)), SVM_TOLERANCE)],
        examples={
            "ExactCascade": (
                lambda: ExactCascade(SVC(gamma=0.01), stages=[4, (9, 5)], tol=0.0).fit(FRAME, WORDS),
                FRAME,
            ),
            "ExactCascade auto": (lambda: ExactCascade(SVC(gamma=0.1)).fit(SPARSE, KIND), SPARSE),
            "ExactCascade of a path": (
                lambda: ExactCascade.from_path(compression_path(machine(), tol=0.0), stages=range(2, 9, 3)),
                IRIS,
            ),
        },
        large={"ExactCascade": fit_of("ExactCascade", inside=lambda: SVC(C=0.1), n_vectors=60)},
    ),
    "CalibratedCascade": Entry(
        quick=[CalibratedCascade(SVC(), random_state=0)],
        contract=[
            (CalibratedCascade(SVC(), random_state=0), _DRAWN),
            (
                CalibratedCascade(
                    SVC(), [2, 5], epsilon=0.3, delta=0.3, validation_fraction=0.4, random_state=0
                ),
                _DRAWN,
            ),
        ],
        weights_differ="the rows that it holds out are drawn, and its promise counts rows",
        examples={
            "CalibratedCascade": (
                lambda: CalibratedCascade(
                    SVC(gamma=2.0), [2, 9], epsilon=0.4, validation_fraction=0.4, random_state=0
                ).fit(IRIS, WORDS),
                IRIS,
            ),
            "CalibratedCascade no promise": (lambda: CalibratedCascade(SVC(), 4).fit(TWO, SIDES), TWO),
            "CalibratedCascade of models": (
                lambda: CalibratedCascade.from_fitted(
                    machine(), [tuned(), compress(machine(), n_vectors=4)], IRIS, epsilon=0.4
                ),
                IRIS,
            ),
        },
        large={
            "CalibratedCascade": fit_of(
                "CalibratedCascade", inside=lambda: SVC(C=0.1), n_vectors=30, epsilon=0.3, random_state=0
            )
        },
    ),
    "LearnedScaler": Entry(
        quick=[LearnedScaler(shape="standard", max_iter=1)],
        contract=[
            (LearnedScaler(max_iter=1), _SEARCHED),
            (LearnedScaler(metric="full", max_iter=1, shape="both"), {}),
        ],
        weights_differ=_FOLDS,
        examples={
            "LearnedScaler": (lambda: LearnedScaler(max_iter=2).fit(FRAME, WORDS, WEIGHTS), FRAME),
            "LearnedScaler both": (lambda: LearnedScaler(shape="both", max_iter=1).fit(IRIS, PAIRS), IRIS),
            "LearnedScaler full": (
                lambda: LearnedScaler(metric="full", n_components=2, max_iter=1).fit(SINGLE, NUMBERS),
                SINGLE,
            ),
            "LearnedScaler sparse": (lambda: LearnedScaler(max_iter=1).fit(SPARSE, KIND), SPARSE),
        },
        large={
            "LearnedScaler": fit_of("LearnedScaler", max_iter=1, n_samples=400),
            "LearnedScaler full": fit_of("LearnedScaler", metric="full", max_iter=1, n_samples=400),
        },
    ),
    "TabularClassifier": Entry(
        quick=[TabularClassifier(n_samples=50)],
        contract=[(TabularClassifier(n_samples=50), _SEARCHED_DENSE)],
        weights_differ=_FOLDS,
        examples={
            "TabularClassifier": (lambda: TabularClassifier(n_samples=50).fit(FRAME, WORDS, WEIGHTS), FRAME),
            "TabularClassifier categories": (
                lambda: TabularClassifier(n_samples=50, categories=[0]).fit(TWO, SIDES),
                TWO,
            ),
        },
        large={"TabularClassifier": fit_of("TabularClassifier", n_samples=200)},
    ),
    "TabularRegressor": Entry(
        quick=[TabularRegressor(n_samples=50)],
        contract=[(TabularRegressor(n_samples=50), _SEARCHED_DENSE)],
        weights_differ=_FOLDS,
        examples={"TabularRegressor": (lambda: TabularRegressor(n_samples=50).fit(IRIS, PAIRS), IRIS)},
    ),
    "MatchingPath": Entry(
        examples={"MatchingPath": (lambda: KMPClassifier(n_vectors=6).fit(IRIS, WORDS).path_, IRIS)},
    ),
    "CompressionPath": Entry(
        examples={
            "CompressionPath": (lambda: compression_path(machine()), IRIS),
            "CompressionPath tuned": (lambda: compression_path(machine(), X=IRIS, y=KIND), IRIS),
            "CompressionPath basic": (
                lambda: path(SVR().fit(SPARSE, NUMBERS), method="basic"),
                SPARSE,
            ),
            "CompressionPath l1": (lambda: path(OneClassSVM().fit(IRIS), method="l1"), IRIS),
        },
    ),
    "GradientPath": Entry(
        examples={
            "GradientPath": (
                lambda: compression_path(machine(), n_vectors=4, method="gradient", X=IRIS, settings=STEPS),
                IRIS,
            )
        },
    ),
    "ExpansionTree": Entry(
        examples={
            "ExpansionTree": (lambda: ExpansionTree.of(machine().expansion_, IRIS, 9, random_state=0), IRIS),
        },
    ),
    "ExpansionSum": Entry(
        examples={
            "ExpansionSum": (
                lambda: KMPRegressor(n_vectors=9, gamma=(0.1, 1.0)).fit(IRIS, NUMBERS).expansion_,
                IRIS,
            ),
        },
    ),
    "KernelExpansion": Entry(
        examples={
            "KernelExpansion": (lambda: machine().expansion_, IRIS),
            "KernelExpansion constant": (
                lambda: KernelExpansion(np.empty((0, 4)), np.empty((0, 2)), [1, 2.5]),
                IRIS,
            ),
            "KernelExpansion bytes": (
                lambda: quantize(machine().expansion_, coefficients="uint8"),
                IRIS,
            ),
        },
    ),
    "ExpansionClassifier": Entry(
        examples={
            "ExpansionClassifier": (tuned, IRIS),
            "ExpansionClassifier of a tree": (
                lambda: tuned().with_expansion(ExpansionTree.of(tuned().expansion_, IRIS, 9, random_state=0)),
                IRIS,
            ),
            "ExpansionClassifier of a sum": (
                lambda: KMPClassifier(n_vectors=9, gamma=(0.1, 1.0)).fit(FRAME, WORDS).as_expansion(),
                FRAME,
            ),
            "ExpansionClassifier of a code": (
                lambda: CodedClassifier(SVC(), code="dense", random_state=0).fit(FRAME, WORDS).as_expansion(),
                FRAME,
            ),
            "ExpansionClassifier quantized": (lambda: quantize(tuned(), coefficients="uint8"), IRIS),
        },
    ),
    "ExpansionRegressor": Entry(
        examples={
            "ExpansionRegressor": (
                lambda: ExpansionRegressor(SVR().fit(IRIS, NUMBERS).expansion_, flat=False),
                IRIS,
            )
        },
    ),
    "ExpansionDetector": Entry(
        examples={
            "ExpansionDetector": (
                lambda: ExpansionDetector(
                    OneClassSVM().fit(IRIS).expansion_, feature_names=list("abcd"), n_jobs=1
                ),
                FRAME,
            )
        },
    ),
}

# --- the parts of the registry ---


def _merged(part):
    return {name: item for entry in ESTIMATORS.values() for name, item in getattr(entry, part).items()}


QUICK = [estimator for entry in ESTIMATORS.values() for estimator in entry.quick]
CONTRACT = [case for entry in ESTIMATORS.values() for case in entry.contract]
WEIGHTED = [case for entry in ESTIMATORS.values() for case in entry.weights]
SCALING = _merged("scaling")
EXAMPLES = _merged("examples")
LARGE = _merged("large")
#: Models of a finished expansion, which have no fit.
EXPANSION_MODELS = {"ExpansionClassifier", "ExpansionDetector", "ExpansionRegressor"}


@functools.cache
def example(name):
    """Returns a fitted example by name, fitted at the first call; tests must not change it."""
    return EXAMPLES[name][0]()


def name_of(estimator):
    """The id of a test's parameter."""
    return type(estimator).__name__


def target(estimator):
    """Labels or numbers of `STANDARD_IRIS`, whichever the estimator predicts."""
    numbers = "SVR" in name_of(estimator) or "Regressor" in name_of(estimator)
    return TARGET if numbers else KIND
