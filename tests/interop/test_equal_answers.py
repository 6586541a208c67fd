"""A model answers the same after every conversion, in labels, scores and probabilities, or it is refused.

Machines of scikit-learn and svmarrow are crossed with wrappers (calibrations, decodings, ensembles,
pipelines) on two and on three classes of unequal size, with and without weights. A combination that is not in
`REFUSED` must convert.
"""

from __future__ import annotations

import re

import numpy as np
import onnxruntime
import pytest
from sklearn import svm as peer
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, VotingClassifier, VotingRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from helpers.programs import c_program, needs_gcc
from svmarrow import (
    SVC,
    SVCCV,
    SVR,
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
    as_expansion,
    load,
    save,
)
from svmarrow.export import to_c, to_onnx
from svmarrow.least_squares import LinearRLSRegressor, LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.models import ExpansionClassifier
from svmarrow.online import KernelPerceptron
from svmarrow.patch import svm as patched
from svmarrow.svm import QuantileSVR

#: Largest difference of scores and probabilities, relative to their spread.
CLOSE = 1e-6
WIDE = {"gamma": 0.3}
CLASSIFIERS = {
    "peer.SVC": peer.SVC(**WIDE),
    "peer.SVC balanced": peer.SVC(class_weight="balanced", **WIDE),
    "peer.SVC linear": peer.SVC(kernel="linear"),
    "peer.SVC poly": peer.SVC(kernel="poly", degree=2, coef0=1.0, **WIDE),
    "peer.SVC sigmoid": peer.SVC(kernel="sigmoid", gamma=0.05),
    "peer.SVC pairs": peer.SVC(decision_function_shape="ovo", **WIDE),
    "peer.SVC ties": peer.SVC(break_ties=True, **WIDE),
    "peer.NuSVC": peer.NuSVC(nu=0.15, **WIDE),
    "SVC": SVC(**WIDE),
    "SVC balanced": SVC(class_weight="balanced", **WIDE),
    "SVC rest": SVC(multi_class="ovr", **WIDE),
    "SVC ties": SVC(break_ties=True, **WIDE),
    "SVC matern": SVC(kernel="matern32", **WIDE),
    "SVC patched": patched.SVC(**WIDE),
    "NuSVC": NuSVC(nu=0.15, **WIDE),
    "RLSClassifier": RLSClassifier(0.1, **WIDE),
    "RLSClassifier balanced": RLSClassifier(0.1, class_weight="balanced", **WIDE),
    "LowRankSVC": LowRankSVC(n_vectors=20, random_state=0, **WIDE),
    "LowRankRLSClassifier": LowRankRLSClassifier(20, alpha=0.1, random_state=0, **WIDE),
    "KMPClassifier": KMPClassifier(n_vectors=12, **WIDE),
    "KernelPerceptron": KernelPerceptron(random_state=0, **WIDE),
    "CodedClassifier": CodedClassifier(SVC(**WIDE), code="ovo", decoder="hinge"),
    "CodedClassifier hamming": CodedClassifier(RLSClassifier(0.1, **WIDE), code="dense", decoder="hamming"),
    "SVCCV": SVCCV(Cs=[1.0], gammas=[0.3], cv=2),
    "ReducedSet": ReducedSet(SVC(**WIDE), 15),
}


def sigmoid(machine):
    return CalibratedClassifierCV(machine, ensemble=False, cv=2)


def temperature(machine):
    rules = CalibratedClassifierCV._parameter_constraints["method"]
    if not any("temperature" in str(rule) for rule in rules):
        pytest.skip("this scikit-learn has no temperatures")
    return CalibratedClassifierCV(machine, ensemble=False, cv=2, method="temperature")


def bagging(machine):
    return BaggingClassifier(machine, 3, max_samples=0.6, random_state=0)


def votes(machine, **parameters):
    return VotingClassifier([("a", clone(machine)), ("b", bagging_part(machine))], **parameters)


def bagging_part(machine):
    """The machine, frozen after a fit on other samples, so that two votes differ."""
    X, y = SAMPLES[2]
    return FrozenEstimator(clone(machine).fit(X[::2], (y[::2] == "b").astype(int)))


def search(machine):
    return GridSearchCV(machine, {}, cv=2)


WRAPPERS = {
    "plain": lambda machine: machine,
    "frozen": lambda machine: make_pipeline(StandardScaler(), search(machine)),
    "scaled": lambda machine: make_pipeline(StandardScaler(), machine),
    "steps": lambda machine: make_pipeline(RobustScaler(), PCA(3), Normalizer(), machine),
    "columns": lambda machine: make_pipeline(
        make_column_transformer((MinMaxScaler(clip=True), [2, 0]), (StandardScaler(), [1])), machine
    ),
    "selection": lambda machine: make_pipeline(SelectKBest(k=3), machine),
    "search": search,
    "rest": OneVsRestClassifier,
    "pairs": OneVsOneClassifier,
    "sigmoid": sigmoid,
    "temperature": temperature,
    "sigmoid of rest": lambda machine: sigmoid(OneVsRestClassifier(machine)),
    "temperature of rest": lambda machine: temperature(OneVsRestClassifier(machine)),
    "sigmoid of pairs": lambda machine: sigmoid(OneVsOneClassifier(machine)),
    "sigmoid of scaled": lambda machine: sigmoid(make_pipeline(StandardScaler(), machine)),
    "scaled sigmoid": lambda machine: make_pipeline(StandardScaler(), sigmoid(machine)),
    "sigmoid of search": lambda machine: sigmoid(search(machine)),
    "search of sigmoid": lambda machine: search(sigmoid(machine)),
    "bagging": bagging,
    "votes": votes,
    "sigmoid of bagging": lambda machine: sigmoid(bagging(machine)),
    "rest of pairs": lambda machine: OneVsRestClassifier(OneVsOneClassifier(machine)),
    "pairs of pairs": lambda machine: OneVsOneClassifier(OneVsOneClassifier(machine)),
    "pairs of rest": lambda machine: OneVsOneClassifier(OneVsRestClassifier(machine)),
    "bagging of pairs": lambda machine: bagging(OneVsOneClassifier(machine)),
    "rest of bagging of pairs": lambda machine: OneVsRestClassifier(bagging(OneVsOneClassifier(machine))),
    "rest of bagging": lambda machine: OneVsRestClassifier(bagging(machine)),
    # What is never one expansion.
    "isotonic": lambda machine: CalibratedClassifierCV(machine, ensemble=False, cv=2, method="isotonic"),
    "several sigmoids": lambda machine: CalibratedClassifierCV(machine, cv=2),
    "sigmoid of sigmoid": lambda machine: sigmoid(sigmoid(machine)),
    "rest of sigmoid": lambda machine: OneVsRestClassifier(sigmoid(machine)),
    "votes of sigmoid": lambda machine: votes(sigmoid(machine)),
    "soft votes": lambda machine: votes(sigmoid(machine), voting="soft"),
    "bagging of sigmoid": lambda machine: bagging(sigmoid(machine)),
}


def samples(n_classes):
    shares = {2: [0.75], 3: [0.6, 0.25]}[n_classes]
    X, y = make_classification(
        150, 4, n_informative=4, n_redundant=0, n_classes=n_classes, weights=shares, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.8, random_state=1,
    )  # fmt: skip
    return X.round(3), np.array(["a", "b", "c"])[y]


SAMPLES = {n_classes: samples(n_classes) for n_classes in (2, 3)}
#: Other samples, and some far away, where sigmoids are 0 and 1.
NEW = np.concatenate([SAMPLES[2][0] + 0.1, SAMPLES[3][0][::3], 3.0 * SAMPLES[3][0][::5]])
#: Machine, wrapper and number of classes as one text, and the reason why that is refused.
REFUSED = {
    # scikit-learn makes sigmoids of three of the outputs of pairs, whatever the number of classes.
    "peer.SVC pairs, (sigmoid|temperature|sigmoid of scaled|scaled sigmoid|sigmoid of search"
    "|search of sigmoid), 3": "gives one for each pair",
    ".*, (bagging|votes|sigmoid of bagging), 3": "counts the votes of machines for 3 classes",
    "CodedClassifier.*, (bagging|votes|sigmoid of bagging), 2": "no single output whose sign is its vote",
    ".*, (rest of pairs|pairs of pairs|rest of bagging of pairs), .": "its score counts a vote",
    ".*, bagging of pairs, 2": "no single output whose sign is its vote",
    ".*, bagging of pairs, 3": "counts the votes of machines for 3 classes",
    ".*, isotonic, .": "is no sigmoid",
    ".*, several sigmoids, .": "a mean of 2 machines",
    ".*, sigmoid of sigmoid, .": "calibrates its probabilities again",
    ".*, rest of sigmoid, .": "it has no decision_function",
    ".*, votes of sigmoid, 2": "no single output whose sign is its vote",
    ".*, votes of sigmoid, 3": "counts the votes of machines for 3 classes",
    ".*, (soft votes|bagging of sigmoid), .": "averages probabilities",
}


def refusal(machine, wrapper, n_classes):
    """The reason why a combination is refused; None if it must convert."""
    case = f"{machine}, {wrapper}, {n_classes}"
    return next((why for pattern, why in REFUSED.items() if re.fullmatch(pattern, case)), None)


def assert_close(actual, expected):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    spread = np.std(expected) or np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=CLOSE, atol=CLOSE * spread)


def assert_equal_answers(model, converted, X):
    """Labels of both are equal, and scores and probabilities that both have."""
    if isinstance(converted, ExpansionClassifier):
        assert (converted.predict(X) == model.predict(X)).all()
    else:
        assert_close(converted.predict(X), model.predict(X))
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name) and hasattr(converted, name):
            assert_close(getattr(converted, name)(X), getattr(model, name)(X))


def assert_equal_exports(converted, X):
    """`compiled` and ONNX give the answers of the model that they are made of."""
    labels = converted.predict(X)
    compiled = converted.compiled()
    numbers = not hasattr(converted, "decision_function")
    for row, label in zip(X[:8], labels[:8], strict=True):
        if numbers:
            assert_close(np.array(compiled.predict(row)), label)
        else:
            assert compiled.predict(row) == label
            assert_close(np.array(compiled.decision_function(row)), converted.decision_function(row[None])[0])
    session = onnxruntime.InferenceSession(
        to_onnx(converted, dtype="float64").SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = dict(zip((o.name for o in session.get_outputs()), session.run(None, {"X": X}), strict=True))
    if numbers:
        assert_close(found["prediction"], labels)
        return
    assert (found["label"] == labels).all()
    assert_close(found["scores"], converted.decision_function(X))
    assert ("probabilities" in found) == hasattr(converted, "predict_proba")
    if "probabilities" in found:
        assert_close(found["probabilities"], converted.predict_proba(X))


def assert_converts(model, X, folder):
    """The expansion of a model, after the checks of all conversions."""
    converted = as_expansion(model)
    assert_equal_answers(model, converted, X)
    save(model, folder / "model")
    again = as_expansion(load(folder / "model"))
    assert_equal_answers(converted, again, X)
    assert_equal_exports(again, X)
    return converted


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_classifiers(machine, wrapper, n_classes, tmp_path):
    X, y = SAMPLES[n_classes]
    if (machine, wrapper) == ("KernelPerceptron", "bagging of sigmoid"):
        pytest.skip("scikit-learn warns that weights are not passed on")
    model = WRAPPERS[wrapper](clone(CLASSIFIERS[machine])).fit(X, y)
    why = refusal(machine, wrapper, n_classes)
    if why is None:
        assert_converts(model, NEW, tmp_path)
        return
    for convert in (as_expansion, to_onnx, to_c, lambda one: save(one, tmp_path / "model")):
        with pytest.raises((TypeError, ValueError), match=why):
            convert(model)


@pytest.mark.parametrize("wrapper", ["plain", "sigmoid", "temperature", "sigmoid of rest"])
@pytest.mark.parametrize(
    "machine", ["peer.SVC", "peer.NuSVC", "SVC", "SVC rest", "RLSClassifier", "LowRankSVC"]
)
def test_classifiers_with_weights(machine, wrapper, tmp_path):
    X, y = SAMPLES[3]
    weights = np.where(y == "a", 0.3, 2.0)
    model = WRAPPERS[wrapper](clone(CLASSIFIERS[machine]))
    if wrapper == "sigmoid of rest":
        model.estimator = OneVsRestClassifier(clone(CLASSIFIERS[machine]).set_params(class_weight="balanced"))
        model.fit(X, y)
    else:
        model.fit(X, y, sample_weight=weights)
    assert_converts(model, NEW, tmp_path)


@needs_gcc
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("machine", "wrapper"),
    [
        ("peer.SVC balanced", "sigmoid"),
        ("SVC rest", "scaled sigmoid"),
        ("RLSClassifier balanced", "temperature"),
        ("peer.SVC", "sigmoid of pairs"),
        ("CodedClassifier", "sigmoid"),
        ("peer.SVC ties", "plain"),
        ("SVC", "bagging"),
        ("SVC", "sigmoid of bagging"),
    ],
)
def test_c_headers(machine, wrapper, n_classes, tmp_path):
    if refusal(machine, wrapper, n_classes) is not None:
        pytest.skip("is refused")
    X, y = SAMPLES[n_classes]
    model = WRAPPERS[wrapper](clone(CLASSIFIERS[machine])).fit(X, y)
    assert_c_answers(as_expansion(model), model.predict(NEW), tmp_path)


def assert_c_answers(converted, labels, folder):
    """The program that includes the header prints these labels, and the probabilities of the model."""
    to_c(converted, folder / "model.h", prefix="model", dtype="float64")
    has = hasattr(converted, "predict_proba")
    shown = 'model_probabilities(x, p); for (j = 0; j < MODEL_CLASSES; ++j) printf(" %.17g", p[j]);'
    answers = c_program(
        folder,
        f"""#include <stdio.h>
#include "model.h"
int main(void) {{
    double x[MODEL_FEATURES], p[MODEL_CLASSES];
    int j;
    if (!model_self_test()) {{ return 1; }}
    for (;;) {{
        for (j = 0; j < MODEL_FEATURES; ++j) {{ if (scanf("%lf", x + j) != 1) {{ return 0; }} }}
        p[0] = 0.0;
        printf("%s", model_label(model_predict(x)));
        {shown if has else "(void)p;"}
        printf("\\n");
    }}
}}
""",
        "\n".join(" ".join(f"{value:.17g}" for value in row) for row in NEW),
    )
    found = [line.split() for line in answers.splitlines()]
    assert [line[0] for line in found] == labels.tolist()
    if has:
        assert_close(np.array([line[1:] for line in found], dtype=float), converted.predict_proba(NEW))


def numbers():
    """Samples with targets of two units, for machines of numbers."""
    X, _ = SAMPLES[2]
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], 100.0 * X[:, 2] + X[:, 3] ** 2])
    return X, Y


LENGTHS = [0.5, 1.0, 2.0, 4.0]
REGRESSORS = {
    "peer.SVR": peer.SVR(**WIDE),
    "peer.NuSVR": peer.NuSVR(**WIDE),
    "peer.OneClassSVM": peer.OneClassSVM(nu=0.2, **WIDE),
    "KernelRidge": KernelRidge(kernel="rbf", **WIDE),
    "KernelRidge laplacian": KernelRidge(kernel="laplacian", **WIDE),
    "KernelRidge poly": KernelRidge(kernel="poly", degree=3, coef0=2, **WIDE),
    "KernelRidge whole float": KernelRidge(kernel="polynomial", degree=2.0, alpha=0.5),
    "GaussianProcess": GaussianProcessRegressor(gp.RBF(), alpha=0.1, optimizer=None),
    "GaussianProcess lengths": GaussianProcessRegressor(
        2.0 * gp.RBF(LENGTHS) + gp.WhiteKernel(0.1), alpha=0.1, optimizer=None, normalize_y=True
    ),
    "GaussianProcess Matern lengths": GaussianProcessRegressor(
        gp.Matern(LENGTHS, nu=1.5) + gp.ConstantKernel(2.0), alpha=0.1, optimizer=None
    ),
    "GaussianProcess products": GaussianProcessRegressor(
        (gp.RBF(LENGTHS) * gp.RBF(1.5)) ** 2, alpha=0.1, optimizer=None
    ),
    "SVR": SVR(**WIDE),
    "NuSVR": NuSVR(**WIDE),
    "OneClassSVM": OneClassSVM(nu=0.2, **WIDE),
    "QuantileSVR": QuantileSVR([0.2, 0.8], **WIDE),
    "RLSRegressor": RLSRegressor(0.1, **WIDE),
    "LowRankRLSRegressor": LowRankRLSRegressor(20, alpha=0.1, random_state=0, **WIDE),
    "LinearRLSRegressor": LinearRLSRegressor(0.1),
    "KMPRegressor": KMPRegressor(n_vectors=12, **WIDE),
    "ReducedSet": ReducedSet(RLSRegressor(0.1, **WIDE), 20),
    "patched.SVR": patched.SVR(**WIDE),
    "patched.OneClassSVM": patched.OneClassSVM(nu=0.2, **WIDE),
}
SEVERAL_TARGETS = ("KernelRidge", "GaussianProcess lengths", "RLSRegressor", "KMPRegressor")
NUMBER_WRAPPERS = {
    "plain": lambda machine: machine,
    "scaled": lambda machine: make_pipeline(StandardScaler(), machine),
    "frozen": FrozenEstimator,
    "bagging": lambda machine: BaggingRegressor(machine, 3, max_samples=0.6, random_state=0),
    "mean": lambda machine: VotingRegressor([("a", machine), ("b", clone(machine))], weights=[1, 3]),
}


@pytest.mark.parametrize("wrapper", NUMBER_WRAPPERS)
@pytest.mark.parametrize("machine", REGRESSORS)
def test_regressors_and_detectors(machine, wrapper, tmp_path):
    X, Y = numbers()
    model = clone(REGRESSORS[machine])
    if wrapper in ("bagging", "mean") and ("OneClass" in machine or machine == "QuantileSVR"):
        pytest.skip("scikit-learn has no average of these")
    if wrapper == "frozen":
        model.fit(X, Y[:, 1])
    model = NUMBER_WRAPPERS[wrapper](model).fit(X, Y[:, 1])
    if wrapper in ("bagging", "mean") and ("lengths" in machine or "products" in machine):
        with pytest.raises(ValueError, match="cannot be one machine of several"):
            as_expansion(model)
        return
    assert_converts(model, NEW, tmp_path)


@pytest.mark.parametrize("machine", SEVERAL_TARGETS)
def test_several_targets(machine, tmp_path):
    X, Y = numbers()
    assert_converts(clone(REGRESSORS[machine]).fit(X, Y), NEW, tmp_path)
