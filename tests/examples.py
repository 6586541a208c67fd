"""A small fitted example of every public class, several where it has several forms, and how two are compared.

Tests that hold for whatever can be fitted run over this table; ``tests/io/test_saving.py`` sees that no class
is missing.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris, make_moons

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
from svmarrow.models import ExpansionDetector, ExpansionRegressor
from svmarrow.multiclass import Code
from svmarrow.online import KernelPerceptron
from svmarrow.reduced_set import GradientSettings, SelectionSettings
from svmarrow.svm import QuantileSVR

# --- rows of many kinds ---

IRIS, KIND = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[KIND]
TWO, SIDE = make_moons(90, noise=0.2, random_state=0)
SIDES = np.array(["left", "ri\u00dfht"], dtype=object)[SIDE]
NUMBERS = np.sin(IRIS[:, 0])
PAIRS = np.column_stack([NUMBERS, IRIS[:, 1]])
SPARSE = sparse.csr_array(IRIS * (IRIS > 1.0))
SINGLE = IRIS.astype(np.float32)
FRAME = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])
WEIGHTS = np.linspace(0.0, 2.0, len(KIND))
GRAM = IRIS @ IRIS.T
CODE = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]


def _short():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SVC(max_iter=1).fit(IRIS, KIND)


def _pieces(model, X, y, classes):
    model.partial_fit(X[:60], y[:60], classes=classes)
    return model.partial_fit(X[60:], y[60:])


def ordinary():
    """A machine of ten vectors and more, for all that is made of one."""
    return SVC(C=10.0, gamma=0.5).fit(IRIS, KIND)


def _tuned():
    return compress(ordinary(), n_vectors=8, X=IRIS, y=KIND, method="backfit")


FEW = GradientSettings(steps=20)
STEPS = GradientSettings(steps=20, sizes=(2, 4))

#: A fitted example of every public class, several where it has several forms, with rows to predict.
EXAMPLES = {
    "SVC": (ordinary, IRIS),
    "SVC words, weights": (lambda: SVC(class_weight={"setosa": 2, "virginica": 0.5}).fit(IRIS, WORDS), IRIS),
    "SVC rest, sparse": (lambda: SVC(multi_class="ovr", class_weight="balanced").fit(SPARSE, KIND), SPARSE),
    "SVC single": (lambda: SVC(loss="squared_hinge").fit(SINGLE, KIND.astype(np.int8)), SINGLE),
    "SVC frame": (lambda: SVC(kernel="poly", degree=2, coef0=1).fit(FRAME, KIND), FRAME),
    "SVC bools": (lambda: SVC(kernel="linear").fit(TWO, SIDE.astype(bool), np.arange(90.0)), TWO),
    "SVC gram": (lambda: SVC(kernel="precomputed").fit(GRAM, KIND), GRAM),
    "SVC ended early": (_short, IRIS),
    "NuSVC": (lambda: NuSVC(nu=0.2).fit(TWO, SIDES), TWO),
    "SVR": (lambda: SVR().fit(FRAME, NUMBERS, WEIGHTS), FRAME),
    "NuSVR": (lambda: NuSVR(nu=np.float64(0.3), C=2).fit(SPARSE, NUMBERS), SPARSE),
    "QuantileSVR": (lambda: QuantileSVR([0.1, 0.9], C=2).fit(FRAME, NUMBERS, WEIGHTS), FRAME),
    "QuantileSVRCV": (lambda: QuantileSVRCV(0.9, Cs=2, gammas=2, cv=3).fit(SPARSE, NUMBERS), SPARSE),
    "OneClassSVM": (lambda: OneClassSVM(nu=0.2).fit(IRIS), IRIS),
    "SVCCV": (lambda: SVCCV(Cs=3, gammas=[0.1, 1.0]).fit(FRAME, WORDS, WEIGHTS), FRAME),
    "SVCCV racing": (
        lambda: SVCCV(Cs=3, gammas=3, search="racing", multi_class="ovr").fit(SPARSE, KIND),
        SPARSE,
    ),
    "SVCCV gram": (lambda: SVCCV(Cs=[1, 10.0], kernel="precomputed", cv=3).fit(GRAM, KIND), GRAM),
    "SVRCV": (lambda: SVRCV(Cs=3, gammas=2, cv=3).fit(FRAME, NUMBERS), FRAME),
    "LowRankSVC": (lambda: LowRankSVC(20, random_state=np.random.RandomState(3)).fit(IRIS, WORDS), IRIS),
    "LowRankSVC points": (lambda: LowRankSVC(selection=IRIS[::9].copy()).fit(FRAME, KIND), FRAME),
    "RLSClassifier": (lambda: RLSClassifier(0.1).fit(FRAME, WORDS, WEIGHTS), FRAME),
    "RLSClassifier chosen": (lambda: RLSClassifier(alphas=np.array([0.1, 1, 10])).fit(IRIS, KIND), IRIS),
    "RLSClassifier cg": (
        lambda: RLSClassifier(solver="cg", leave_one_out=False, fit_intercept=False).fit(SPARSE, KIND),
        SPARSE,
    ),
    "RLSRegressor": (lambda: RLSRegressor(fit_intercept=True).fit(IRIS, PAIRS), IRIS),
    "RLSRegressor chosen": (lambda: RLSRegressor(alphas=[0.1, 1.0]).fit(SINGLE, NUMBERS), SINGLE),
    "LinearRLSClassifier": (lambda: LinearRLSClassifier(leave_one_out=True).fit(IRIS, WORDS), IRIS),
    "LinearRLSRegressor": (lambda: LinearRLSRegressor(solver="cg").fit(SPARSE, PAIRS), SPARSE),
    "LowRankRLSClassifier": (lambda: LowRankRLSClassifier(20, random_state=0).fit(FRAME, WORDS), FRAME),
    "LowRankRLSClassifier pieces": (
        lambda: _pieces(LowRankRLSClassifier(9, random_state=0), SPARSE, KIND, [0, 1, 2]),
        SPARSE,
    ),
    "LowRankRLSRegressor": (
        lambda: LowRankRLSRegressor(15, method="nystrom", selection="ic").fit(IRIS, NUMBERS),
        IRIS,
    ),
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
    "KMPRegressor": (
        lambda: KMPRegressor(n_vectors=6, early_stopping=True, cv=3, random_state=0).fit(IRIS, PAIRS),
        IRIS,
    ),
    "KMPRegressor again": (
        lambda: KMPRegressor(n_vectors=4, loss="huber").fit(IRIS, NUMBERS).fit(IRIS[:99], NUMBERS[:99]),
        IRIS,
    ),
    "MatchingPath": (lambda: KMPClassifier(n_vectors=6).fit(IRIS, WORDS).path_, IRIS),
    "CodedClassifier": (lambda: CodedClassifier(SVC(), code="dense", random_state=0).fit(IRIS, WORDS), IRIS),
    "CodedClassifier matrix": (
        lambda: CodedClassifier(RLSClassifier(), code=np.array(CODE)).fit(FRAME, KIND),
        FRAME,
    ),
    "CodedClassifier complete": (
        lambda: CodedClassifier(RLSClassifier(), Code(np.sign(np.subtract(CODE, 0.5)))).fit(IRIS, KIND),
        IRIS,
    ),
    "CodedClassifier each": (
        lambda: CodedClassifier(
            LowRankSVC(9, random_state=0), code="ovo", decoder="hamming", shared=False
        ).fit(IRIS, WORDS),
        IRIS,
    ),
    "KernelPerceptron": (lambda: KernelPerceptron(gamma=0.5).fit(FRAME, WORDS), FRAME),
    "KernelPerceptron averaged": (
        lambda: KernelPerceptron(gamma=0.5, prediction="averaged").fit(SPARSE, KIND),
        SPARSE,
    ),
    "KernelPerceptron voted": (lambda: KernelPerceptron(gamma=0.5, prediction="voted").fit(TWO, SIDES), TWO),
    "KernelPerceptron random": (
        lambda: KernelPerceptron(policy="random", budget=9, gamma=0.5, random_state=3).fit(TWO, SIDE),
        TWO,
    ),
    "KernelPerceptron forgetron": (
        lambda: KernelPerceptron(policy="forgetron", budget=9).fit(SINGLE, KIND),
        SINGLE,
    ),
    "KernelPerceptron stop": (lambda: KernelPerceptron(policy="stop", budget=9).fit(IRIS, KIND), IRIS),
    "KernelPerceptron projectron": (
        lambda: KernelPerceptron(policy="projectron", gamma=0.5, eta=0.1).fit(IRIS, KIND),
        IRIS,
    ),
    "KernelPerceptron projectron++": (
        lambda: KernelPerceptron(policy="projectron++", gamma=0.5, eta=0.1).fit(SPARSE, WORDS),
        SPARSE,
    ),
    "PerceptronTreeClassifier": (
        lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, random_state=0).fit(FRAME, WORDS),
        FRAME,
    ),
    "PerceptronTreeClassifier sparse": (
        lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, split="zpq", random_state=0).fit(SPARSE, KIND),
        SPARSE,
    ),
    "PerceptronTreeClassifier of averages": (
        lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, prediction="averaged", random_state=0).fit(
            FRAME, KIND
        ),
        FRAME,
    ),
    "PerceptronTreeClassifier of pairs": (
        lambda: PerceptronTreeClassifier.from_expansion(ordinary(), IRIS, budget=9, random_state=0),
        IRIS,
    ),
    "ReducedSet": (lambda: ReducedSet(SVC(), 9).fit(FRAME, WORDS), FRAME),
    "ReducedSet gradient": (
        lambda: ReducedSet(SVC(), 4, method="gradient", settings=FEW, random_state=0).fit(IRIS, KIND),
        IRIS,
    ),
    "ReducedSet sampled": (
        lambda: ReducedSet(SVC(), 4, settings=SelectionSettings(sample=5), random_state=0).fit(SPARSE, KIND),
        SPARSE,
    ),
    "CompressionPath": (lambda: compression_path(ordinary()), IRIS),
    "CompressionPath tuned": (lambda: compression_path(ordinary(), X=IRIS, y=KIND), IRIS),
    "CompressionPath basic": (lambda: compression_path(SVR().fit(SPARSE, NUMBERS), method="basic"), SPARSE),
    "CompressionPath l1": (lambda: compression_path(OneClassSVM().fit(IRIS), method="l1"), IRIS),
    "GradientPath": (
        lambda: compression_path(ordinary(), n_vectors=4, method="gradient", X=IRIS, settings=STEPS),
        IRIS,
    ),
    "ExactCascade": (
        lambda: ExactCascade(SVC(gamma=0.01), stages=[4, (9, 5)], tol=0.0).fit(FRAME, WORDS),
        FRAME,
    ),
    "ExactCascade auto": (lambda: ExactCascade(SVC(gamma=0.1)).fit(SPARSE, KIND), SPARSE),
    "ExactCascade of a path": (
        lambda: ExactCascade.from_path(compression_path(ordinary(), tol=0.0), stages=range(2, 9, 3)),
        IRIS,
    ),
    "CalibratedCascade": (
        lambda: CalibratedCascade(
            SVC(gamma=2.0), [2, 9], epsilon=0.4, validation_fraction=0.4, random_state=0
        ).fit(IRIS, WORDS),
        IRIS,
    ),
    "CalibratedCascade no promise": (lambda: CalibratedCascade(SVC(), 4).fit(TWO, SIDES), TWO),
    "CalibratedCascade of models": (
        lambda: CalibratedCascade.from_fitted(
            ordinary(), [_tuned(), compress(ordinary(), n_vectors=4)], IRIS, epsilon=0.4
        ),
        IRIS,
    ),
    "KernelExpansion": (lambda: ordinary().expansion_, IRIS),
    "KernelExpansion constant": (lambda: KernelExpansion(np.empty((0, 4)), np.empty((0, 2)), [1, 2.5]), IRIS),
    "KernelExpansion bytes": (
        lambda: quantize(ordinary().expansion_, coefficients="uint8").model,
        IRIS,
    ),
    "ExpansionClassifier": (_tuned, IRIS),
    "ExpansionClassifier of a code": (
        lambda: CodedClassifier(SVC(), code="dense", random_state=0).fit(FRAME, WORDS).as_expansion(),
        FRAME,
    ),
    "ExpansionClassifier quantized": (lambda: quantize(_tuned(), coefficients="uint8").model, IRIS),
    "ExpansionRegressor": (lambda: ExpansionRegressor(SVR().fit(IRIS, NUMBERS).expansion_, flat=False), IRIS),
    "ExpansionDetector": (
        lambda: ExpansionDetector(OneClassSVM().fit(IRIS).expansion_, feature_names=list("abcd"), n_jobs=1),
        FRAME,
    ),
}


@functools.cache
def example(name):
    """A fitted example by name, made when it is first asked for: to be looked at, not changed."""
    return EXAMPLES[name][0]()


# --- what is compared ---


def parts(value):
    """Everything that an object has, but what is made anew."""
    if isinstance(value, KernelExpansion):
        return value.__getstate__()
    if isinstance(value, Code):
        return {"matrix": value.matrix}
    return {key: item for key, item in vars(value).items() if key not in getattr(value, "_transient", ())}


def assert_same(a, b, where=""):
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), where
    elif sparse.issparse(a):
        assert a.shape == b.shape, where
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif isinstance(a, (float, np.generic)):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), where
    elif isinstance(a, dict):
        assert list(map(str, sorted(a, key=str))) == list(map(str, sorted(b, key=str))), where
        for key, item in a.items():
            assert_same(item, b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for place, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{where}[{place}]")
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False), where)
    elif a is None or isinstance(a, (bool, int, str, range)):
        assert a == b, where
    else:
        assert_same(parts(a), parts(b), f"{where}.{type(a).__name__}")


def public(model):
    """Fitted attributes that are properties, by name; those that a model does not have are left out."""
    found = {}
    for name in dir(type(model)):
        if name.endswith("_") and not name.startswith("_"):
            try:
                found[name] = getattr(model, name)
            except AttributeError:
                continue
    return found


def answers(model, X):
    """What a model says of rows."""
    if hasattr(model, "sizes"):
        return {size: answers(model[size], X) for size in list(model.sizes)[::3]}
    methods = ("decision_function", "predict", "score_samples", "route", "apply")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def assert_same_model(a, b, X):
    assert_same(a, b)
    if isinstance(a, BaseEstimator):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
    assert_same(public(a), public(b))
    assert_same(answers(a, X), answers(b, X))
