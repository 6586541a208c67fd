"""Answers of models of every kind, codes and decoders, bounds, drawings."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import sklearn.svm as peers

from helpers.operations.kinds import Run, Settings, data, operation
from helpers.operations.learners import cosine, waves
from helpers.operations.reductions import machine
from svmarrow import (
    SVC,
    SVR,
    CodedClassifier,
    KernelExpansion,
    KMPClassifier,
    KMPRegressor,
    OneClassSVM,
    PerceptronTreeClassifier,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
    TabularClassifier,
    as_expansion,
)
from svmarrow.inspection import DecisionVectorsDisplay, diagnose, shapley_values, suspicious_samples
from svmarrow.kernels import GlobalAlignment, Subsequence
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LowRankRLSClassifier,
)
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.models import ExpansionClassifier, ExpansionDetector
from svmarrow.multiclass import Code, make_code
from svmarrow.online import KernelPerceptron
from svmarrow.papers import rifkin
from svmarrow.papers.rifkin import BinaryErrorDisplay, OverlapDisplay, binary_errors, overlap_matrix
from svmarrow.svm import QuantileSVR

mpl.use("Agg")


def _expansion(settings: Settings, kind: str, outputs: int = 1, **about: Any) -> KernelExpansion:
    X = data(f"{kind} two", settings.n)[0]
    rng = np.random.default_rng(1)
    given = {"kernel": "rbf", "gamma": 0.05, "coef0": 1.0, **about}
    return KernelExpansion(X, rng.normal(size=(settings.n, outputs)), np.zeros(outputs), **given)


def _values(name: str, kind: str, rows: int, outputs: int = 1, long: int = 10_000, **about: Any) -> None:
    """Outputs of a bare expansion for so many times n rows."""

    def prepare(settings: Settings) -> Run:
        expansion = _expansion(settings, kind, outputs, **about)
        X = data(f"{kind} two", rows * settings.n, 2)[0]
        return Run(lambda whole: whole.decision_function(X, n_jobs=settings.n_jobs), lambda _: expansion)

    operation(f"KernelExpansion.decision_function {name}", long, 300)(prepare)


_values("rbf", "plain", 10)
_values("many outputs", "plain", 4, outputs=45)
_values("single precision", "single", 10)
_values("bytes", "bytes", 10)
_values("wide", "wide", 4)
_values("sparse", "sparse", 2, long=6000)
_values("poly", "plain", 10, kernel="poly")
_values("linear sparse", "sparse32", 2, long=6000, kernel="linear")
_values("laplacian", "plain", 8, kernel="laplacian")
_values("chi2", "positive", 6, kernel="chi2")
_values("matern", "plain", 8, kernel="matern52")
_values("matern sparse", "sparse", 2, long=6000, kernel="matern12")
_values("function", "plain", 6, kernel=cosine)


def _predictions(
    name: str, long: int, make: Any, kind: str, method: str = "predict", times: int = 20
) -> None:
    """A method of a model for so many times n rows."""

    def prepare(settings: Settings) -> Run:
        model = make(settings)
        X = data(kind, times * settings.n, 2)[0]
        return Run(lambda whole: getattr(whole, method)(X), lambda _: model)

    operation(f"{name}.{method}", long, 300)(prepare)


def _fitted(estimator: Any, kind: str, rows: int = 1) -> Any:
    return lambda settings: settings.of(estimator).fit(*data(kind, rows * settings.n))


def _coded(settings: Settings) -> Any:
    model = machine(settings, "plain ten")[0]
    code = make_code("bch", 10, random_state=0)
    mixed = model.expansion_.replaced(
        coefficients=model.expansion_.coefficients @ code.matrix, intercepts=np.zeros(code.n_columns)
    )
    return ExpansionClassifier(
        mixed, model.classes_, "code", code=code, decoder="logistic", n_jobs=settings.n_jobs
    )


def _detector(settings: Settings) -> Any:
    return ExpansionDetector(_expansion(settings, "plain"), n_jobs=settings.n_jobs)


@operation("ReducedSet.score", 4000, 300)
def score(settings: Settings) -> Run:
    X, y = data("plain targets", settings.n)
    model = settings.of(ReducedSet(SVR(max_iter=20_000), 300)).fit(X, y[:, 0])
    return Run(lambda whole: whole.score(X, y[:, 0]), lambda _: model)


def _scores(name: str, long: int, estimator: Any) -> None:
    """The score of a regressor on the samples of its fit."""

    def prepare(settings: Settings) -> Run:
        X, y = data("plain numbers", settings.n)
        model = settings.of(estimator).fit(X, y)
        return Run(lambda whole: whole.score(X, y), lambda _: model)

    operation(f"{name}.score", long, 300)(prepare)


_scores("QuantileSVR", 4000, QuantileSVR([0.2, 0.8], max_iter=20_000))
_scores("QuantileSVRCV", 4000, QuantileSVRCV(Cs=[1.0], gammas=[1.0], cv=2, max_iter=20_000))


def _left_out(name: str, estimator: Any, kind: str, work: Any) -> None:
    """What follows from the models without one sample, which are solved for each time."""

    def prepare(settings: Settings) -> Run:
        X, y = data(kind, settings.n)
        model = settings.of(estimator).fit(X, y)
        return Run(lambda fresh: work(fresh, X), lambda _: pickle.loads(pickle.dumps(model)))

    operation(name, 3000, 150)(prepare)


_left_out(
    "RLSRegressor.predict_interval", RLSRegressor(), "plain numbers", lambda m, X: m.predict_interval(X)
)
_left_out("RLSRegressor.predict std", RLSRegressor(), "plain numbers", lambda m, X: m.predict(X, True))
_left_out("RLSClassifier.predict_set", RLSClassifier(), "plain three", lambda m, X: m.predict_set(X))


@operation("diagnose", 6000, 300)
def diagnosed(settings: Settings) -> Run:
    model = _fitted(SVC(gamma=1.0), "plain ten")(settings)
    X, y = data("plain ten", 20 * settings.n, 2)
    return Run(lambda whole: diagnose(whole, X, y), lambda _: model)


_left_out("suspicious_samples", RLSClassifier(), "plain three", lambda m, _: suspicious_samples(m))

_predictions("SVC", 6000, _fitted(SVC(gamma=1.0), "plain ten"), "plain ten")
_predictions("SVC", 6000, _fitted(SVC(gamma=1.0), "plain three"), "plain ten", "decision_function")
_predictions(
    "TabularClassifier",
    6000,
    _fitted(TabularClassifier(n_samples=500), "plain three"),
    "plain ten",
    "predict_log_proba",
)
_predictions("OneClassSVM", 8000, _fitted(OneClassSVM(nu=0.8), "plain two"), "plain two")
_predictions("OneClassSVM", 8000, _fitted(OneClassSVM(nu=0.8), "plain two"), "plain two", "decision_function")
_predictions("OneClassSVM", 8000, _fitted(OneClassSVM(nu=0.8), "plain two"), "plain two", "score_samples")
_predictions("SVR", 5000, _fitted(SVR(epsilon=0.01, max_iter=20_000), "plain numbers"), "plain numbers")
_predictions("ReducedSet", 4000, _fitted(ReducedSet(SVC(gamma=1.0), 300), "plain ten"), "plain ten")
_predictions("RLSRegressor", 4000, _fitted(RLSRegressor(), "plain targets"), "plain two", times=40)
_predictions(
    "LinearRLSClassifier", 20_000, _fitted(LinearRLSClassifier(), "wide ten"), "wide two", "decision_function"
)
_predictions(
    "CodedClassifier",
    4000,
    _fitted(CodedClassifier(RLSClassifier(), "dense", random_state=0), "plain ten"),
    "plain ten",
    times=40,
)
_predictions(
    "CodedClassifier",
    4000,
    _fitted(CodedClassifier(RLSClassifier(), "dense", random_state=0), "plain ten"),
    "plain ten",
    "outputs",
    40,
)
_predictions("ExpansionClassifier", 4000, _coded, "plain ten")
_predictions("ExpansionClassifier", 4000, _coded, "plain ten", "decision_function")
_predictions("ExpansionDetector", 6000, _detector, "plain two")
_predictions(
    "ExpansionRegressor",
    4000,
    lambda s: as_expansion(peers.SVR(epsilon=0.01, max_iter=20_000).fit(*data("plain numbers", s.n))),
    "plain two",
)
_predictions("KMPClassifier", 20_000, _fitted(KMPClassifier(200), "plain ten"), "plain ten")
_predictions(
    "KMPRegressor", 4000, _fitted(KMPRegressor(200, functions=waves), "plain numbers"), "plain ten", times=100
)
_predictions(
    "KernelPerceptron", 20_000, _fitted(KernelPerceptron(), "plain ten"), "plain ten", "decision_function", 4
)
_predictions(
    "KernelPerceptron voted",
    12_000,
    _fitted(KernelPerceptron(prediction="voted"), "plain two"),
    "plain two",
    "decision_function",
    4,
)
_predictions(
    "KernelPerceptron oldest",
    20_000,
    _fitted(KernelPerceptron(policy="oldest", budget=2000), "plain two"),
    "plain two",
)
for _method in ("predict", "decision_function", "apply", "decision_depth", "kernel_values"):
    _tree = PerceptronTreeClassifier(budget=200, random_state=0)
    _predictions("PerceptronTreeClassifier", 30_000, _fitted(_tree, "plain ten"), "plain ten", _method, 30)


@operation("PerceptronTreeClassifier.leaf_expansion", 30_000, 1000)
def leaves(settings: Settings) -> Run:
    tree = settings.of(PerceptronTreeClassifier(budget=20, random_state=0)).fit(
        *data("plain ten", settings.n)
    )
    places = np.unique(tree.apply(data("plain ten", settings.n)[0])).tolist()
    return Run(lambda model: [model.leaf_expansion(leaf) for leaf in places], lambda _: tree)


@operation("as_expansion of a peer", 6000, 300)
def foreign(settings: Settings) -> Run:
    X, y = data("sparse ten", settings.n)
    model = peers.SVC(max_iter=200).fit(X, y)
    return Run(lambda whole: as_expansion(whole), lambda _: model)


@operation("LowRankRLSClassifier.path", 20_000, 600)
def penalties(settings: Settings) -> Run:
    model = settings.of(LowRankRLSClassifier(500, random_state=0)).fit(*data("plain ten", settings.n))
    return Run(lambda whole: whole.path(np.logspace(-3, 3, 20)), lambda _: model)


def _of_pursuit(name: str, work: Any, long: int = 10_000) -> None:
    def prepare(settings: Settings) -> Run:
        path = settings.of(KMPClassifier(300, gamma=0.1)).fit(*data("plain ten", settings.n)).path_
        X, y = data("plain ten", 10 * settings.n, 3)
        return Run(lambda whole: work(whole, X, y), lambda _: path)

    operation(f"MatchingPath.{name}", long, 400)(prepare)


_of_pursuit("outputs", lambda path, X, y: path.outputs(X[: len(X) // 10]))
_of_pursuit("scores", lambda path, X, y: path.scores(X, y), 4000)
_of_pursuit("select", lambda path, X, y: path.select(X, y), 4000)
_of_pursuit("plot", lambda path, X, y: path.plot(X, y), 4000)
_of_pursuit("coefficients", lambda path, X, y: [path.coefficients(path.step_of(size)) for size in path.sizes])


def _drawn(code: str, long: int, classes: int) -> None:
    def prepare(settings: Settings) -> Run:
        def work(_: Any) -> Any:
            return make_code(code, classes, random_state=0, n_draws=settings.n, n_jobs=settings.n_jobs)

        return Run(work)

    operation(f"make_code {code}", long, 100)(prepare)


_drawn("dense", 200_000, 40)
_drawn("sparse", 100_000, 40)
_drawn("complete", 15, 12)
_drawn("bch", 200_000, 100)


@operation("Code", 20_000, 500)
def distances(settings: Settings) -> Run:
    columns = 2 * np.random.default_rng(0).integers(0, 2, size=(40, settings.n)) - 1
    return Run(lambda _: Code(columns))


@operation("CodedClassifier.from_ovr", 6000, 300)
def from_ovr(settings: Settings) -> Run:
    model = settings.of(RLSClassifier()).fit(*data("plain many", settings.n))
    return Run(
        lambda plain: CodedClassifier.from_ovr(plain, "complete", n_jobs=settings.n_jobs), lambda _: model
    )


def _decoder(decoder: str, code: str = "dense", long: int = 1_000_000) -> None:
    def prepare(settings: Settings) -> Run:
        made = make_code(code, 40, random_state=0, n_draws=100)
        rng = np.random.default_rng(0)
        few = KernelExpansion(np.zeros((1, 1)), np.zeros((1, made.n_columns)), np.zeros(made.n_columns))
        model = ExpansionClassifier(
            few, np.arange(40), "code", code=made, decoder=decoder, n_jobs=settings.n_jobs
        )
        outputs = rng.normal(size=(settings.n // 20, made.n_columns))
        return Run(lambda whole: (whole.scores_of(outputs), whole.decode(outputs)), lambda _: model)

    operation(f"ExpansionClassifier.decode {decoder}", long, 2000)(prepare)


for _name in ("hamming", "votes", "logistic", "exponential", "mean_hinge"):
    _decoder(_name)
_decoder("dag", "ovo", 200_000)


@operation("ExpansionClassifier.margins_of", 1_000_000, 2000)
def margins(settings: Settings) -> Run:
    few = KernelExpansion(np.zeros((1, 1)), np.zeros((1, 45)), np.zeros(45))
    model = ExpansionClassifier(few, np.arange(10), "ovo", n_jobs=settings.n_jobs)
    outputs = np.random.default_rng(0).normal(size=(settings.n // 4, 45))
    return Run(lambda whole: whole.margins_of(outputs, whole.decode(outputs)), lambda _: model)


@operation("ExpansionClassifier.calibrated", 4000, 300)
def calibrated(settings: Settings) -> Run:
    X, y = data("plain ten", 5 * settings.n)
    pairs = as_expansion(machine(settings, "plain ten")[0])
    return Run(lambda whole: whole.calibrated(X, y).without_names().predict_proba(X), lambda _: pairs)


@operation("ExpansionClassifier.with_predict_by", 4000, 300)
def by_probabilities(settings: Settings) -> Run:
    X, y = data("plain ten", 5 * settings.n)
    pairs = as_expansion(machine(settings, "plain ten")[0]).calibrated(X, y)
    return Run(lambda whole: whole.with_predict_by("probabilities").predict(X), lambda _: pairs)


@operation("KernelExpansion.needs_double", 2_000_000, 4000)
def needs_double(settings: Settings) -> Run:
    return Run(lambda whole: whole.needs_double(), lambda _: _expansion(settings, "plain"))


def _bounded(name: str, work: Any, long: int = 4000) -> None:
    def prepare(settings: Settings) -> Run:
        X, y = data("plain ten", settings.n)
        estimator = CodedClassifier(RLSClassifier(), "dense", random_state=0, n_draws=100)
        model = settings.of(estimator).fit(X, y)
        return Run(lambda whole: work(whole, X, y), lambda _: model)

    operation(name, long, 300)(prepare)


def _more(X: Any, y: Any) -> tuple[Any, Any]:
    return np.tile(X, (10, 1)), np.tile(y, 10)


_bounded("rifkin.leave_one_out", rifkin.leave_one_out)
_bounded(
    "rifkin.multiclass_generalization_of",
    lambda model, X, y: rifkin.multiclass_generalization_of(model, X, y, delta=0.1, gamma=0.5),
)
_bounded(
    "rifkin.training_error",
    lambda model, X, y: rifkin.training_error(model.code_, model.outputs(X), y, loss="square"),
)
_bounded("rifkin.ramp_loss", lambda model, X, y: rifkin.ramp_loss(model.decision_function(X), y, gamma=0.5))
_bounded("binary_errors", lambda model, X, y: binary_errors(model, *_more(X, y), np.roll(_more(X, y)[1], 1)))
_bounded(
    "BinaryErrorDisplay",
    lambda model, X, y: BinaryErrorDisplay.from_models({"dense": model}, X, y, np.roll(y, 1)),
)


@operation("OverlapDisplay", 1_000_000, 1000)
def overlap(settings: Settings) -> Run:
    labels = np.random.default_rng(0).integers(0, 10, size=(12, settings.n))
    names = {str(k): of for k, of in enumerate(labels)}
    return Run(lambda _: (overlap_matrix(list(labels)), OverlapDisplay.from_predictions(names)))


@operation("DecisionVectorsDisplay", 15_000, 100)
def drawing(settings: Settings) -> Run:
    X, y = data("short two", settings.n, columns=2)
    model = settings.of(SVC(max_iter=20_000)).fit(X, y)
    return Run(
        lambda whole: DecisionVectorsDisplay.from_estimator(whole, X, y, grid_resolution=600),
        lambda _: model,
    )


@operation("shapley_values", 3000, 100)
def _shapley_values(settings: Settings) -> Run:
    expansion = _expansion(settings, "plain", outputs=2)
    X = data("plain two", 60 * 8, 2)[0]

    def work(whole: KernelExpansion) -> None:
        found = shapley_values(whole, X, X[:64], n_jobs=settings.n_jobs)
        assert found.importances.shape == found.values.shape[1:]
        found.plot("bar")

    return Run(work, lambda _: expansion)


def _sequences(name: str, kernel: Any, long: int, small: int, n_symbols: int | None = None) -> None:
    """Kernel values of twenty series or strings of n steps or symbols each."""

    def prepare(settings: Settings) -> Run:
        rng = np.random.default_rng(0)
        if n_symbols is None:
            samples: Any = rng.normal(size=(20, settings.n))
        else:
            samples = rng.integers(0, n_symbols, size=(20, settings.n))
        function = replace(kernel, n_jobs=settings.n_jobs)

        def work(_: Any) -> None:
            block = function.prepare(samples)
            assert function(block, block[:3]).shape == (20, 3)
            assert (function.diagonal(block) == 1.0).all()

        return Run(work)

    operation(name, long, small)(prepare)


_sequences("GlobalAlignment", GlobalAlignment(9.0), 8000, 50)
_sequences("GlobalAlignment band", GlobalAlignment(9.0, band=1000), 30_000, 50)
_sequences("Subsequence", Subsequence(), 8000, 50, 9)
