"""Fits of every estimator, by every solver that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from helpers.operations.kinds import Run, Settings, data, learner, operation
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
    TabularClassifier,
    TabularRegressor,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
    fit_targets,
)
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.online import KernelPerceptron
from svmarrow.preprocessing import LearnedScaler
from svmarrow.reduced_set import estimate_memory
from svmarrow.svm import QuantileSVR


def cosine(A: Any, B: Any) -> Any:
    """A kernel of the caller."""
    return (A @ B.T) / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)


def waves(X: Any) -> Any:
    """Functions of the caller."""
    return np.concatenate([np.sin(k * X) for k in range(1, 20)], axis=1)


class Cubic:
    """A loss of the caller."""

    def value(self, y: Any, f: Any) -> Any:
        return np.abs(y - f) ** 3

    def gradient(self, y: Any, f: Any) -> Any:
        return -3.0 * np.sign(y - f) * (y - f) ** 2

    def hessian(self, y: Any, f: Any) -> Any:
        return 6.0 * np.abs(y - f) + 1e-3


def _support_vectors() -> None:
    hard = {"C": 1e4, "tol": 1e-6}
    learner("SVC", SVC(gamma=0.2, **hard), "plain two", 5000)
    learner("LearnedScaler", LearnedScaler(max_iter=2, n_samples=3000), "plain numbers", 1500)
    learner("TabularClassifier", TabularClassifier(n_samples=3000), "plain three", 1500)
    learner("TabularClassifier large", TabularClassifier(n_samples=300), "plain three", 12_000)
    learner("TabularRegressor", TabularRegressor(n_samples=3000), "plain targets", 1500)
    learner("LearnedScaler sparse", LearnedScaler(max_iter=1, n_samples=3000), "sparse two", 1500)
    learner("SVC small cache", SVC(gamma=0.2, cache_size=1, **hard), "plain two", 5000)
    learner("SVC wide", SVC(C=10.0), "wide two", 6000)
    learner("SVC bytes", SVC(C=10.0), "bytes two", 6000)
    learner("SVC single precision", SVC(C=100.0), "single two", 6000)
    learner("SVC linear", SVC(kernel="linear", C=10.0), "plain two", 20_000)
    learner("SVC linear sparse", SVC(kernel="linear", C=100.0), "sparse two", 8000)
    learner("SVC poly sparse", SVC(kernel="poly", coef0=1.0, C=1e3), "sparse two", 6000)
    learner("SVC rbf sparse", SVC(C=100.0), "sparse32 two", 6000)
    learner("SVC sigmoid", SVC(kernel="sigmoid", gamma=0.01, C=100.0), "plain two", 6000)
    learner("SVC laplacian", SVC(kernel="laplacian", C=1e3), "plain two", 6000)
    learner("SVC matern", SVC(kernel="matern32", C=1e3), "plain two", 6000)
    learner("SVC chi2", SVC(kernel="chi2", C=1e3), "positive two", 6000)
    learner("SVC function", SVC(kernel=cosine, **hard), "plain two", 4000)
    learner("SVC precomputed", SVC(kernel="precomputed", **hard), "kernel two", 3000)
    learner("SVC one-vs-one", SVC(gamma=0.2, C=1e3), "plain ten", 8000)
    learner("SVC one-vs-rest", SVC(gamma=0.2, C=100.0, multi_class="ovr"), "plain ten", 4000)
    learner(
        "SVC squared hinge",
        SVC(gamma=0.2, loss="squared_hinge", fit_intercept=False, **hard),
        "plain two",
        5000,
    )
    learner("SVC warm start", SVC(gamma=0.2, warm_start=True, **hard), "plain two", 5000, untouched=False)
    learner("NuSVC", NuSVC(nu=0.3, gamma=0.2, tol=1e-6), "plain two", 8000)
    learner(
        "NuSVC warm start",
        NuSVC(nu=0.3, gamma=0.2, tol=1e-6, warm_start=True),
        "plain two",
        8000,
        untouched=False,
    )
    learner("SVR", SVR(gamma=0.2, **hard), "plain numbers", 4000)
    learner("SVR warm start", SVR(gamma=0.2, warm_start=True, **hard), "plain numbers", 4000, untouched=False)
    learner("NuSVR", NuSVR(gamma=0.2, C=10.0, tol=1e-5), "plain numbers", 4000)
    learner(
        "NuSVR warm start",
        NuSVR(gamma=0.2, C=10.0, tol=1e-5, warm_start=True),
        "plain numbers",
        4000,
        untouched=False,
    )
    learner("SVCCV", SVCCV(Cs=[1e4], gammas=[0.2], tol=1e-6), "plain two", 5000, untouched=False)
    learner("SVCCV blocks", SVCCV(Cs=12, gammas=12, cv=2), "plain ten", 2000, untouched=False)
    learner("SVCCV small cache", SVCCV(Cs=4, gammas=4, cv=2, cache_size=1), "wide two", 2000, untouched=False)
    learner("SVRCV", SVRCV(Cs=[1e4], gammas=[0.2], tol=1e-6), "plain numbers", 3000, untouched=False)
    learner("QuantileSVR", QuantileSVR([0.1, 0.9], gamma=0.2, **hard), "plain numbers", 4000)
    learner(
        "QuantileSVRCV",
        QuantileSVRCV(0.9, Cs=[1e4], gammas=[0.2], tol=1e-6),
        "plain numbers",
        3000,
        untouched=False,
    )
    learner("OneClassSVM", OneClassSVM(nu=0.3, gamma=1.0, tol=1e-8), "plain two", 20000)
    learner("OneClassSVM linear", OneClassSVM(nu=0.3, kernel="linear"), "plain two", 20000)
    learner(
        "OneClassSVM warm start",
        OneClassSVM(gamma=1.0, tol=1e-8, warm_start=True),
        "plain two",
        20000,
        untouched=False,
    )
    for selection in ("random", "kmeans", "pivoted_cholesky", "leverage", "greedy_trace"):
        model = LowRankSVC(400, selection=selection, C=100.0, gamma=0.1, random_state=0)
        learner(f"LowRankSVC {selection}", model, "plain two", 8000, 450)
    learner("LowRankSVC ten classes", LowRankSVC(400, C=10.0, random_state=0), "plain ten", 8000, 500)


def _least_squares() -> None:
    learner("RLSClassifier", RLSClassifier(), "plain two", 6000)
    learner("RLSClassifier leave-one-out", RLSClassifier(leave_one_out=True), "plain ten", 4000)
    learner("RLSClassifier function", RLSClassifier(kernel=cosine), "plain two", 5000)
    learner("RLSClassifier precomputed", RLSClassifier(kernel="precomputed", alpha=0.1), "kernel two", 4000)
    learner("RLSClassifier cg", RLSClassifier(alpha=1e-5, solver="cg", tol=1e-9), "plain two", 8000)
    learner("RLSRegressor", RLSRegressor(fit_intercept=True), "plain targets", 6000)
    learner("RLSRegressor sparse", RLSRegressor(kernel="poly", coef0=1.0), "sparse numbers", 4000)
    learner("RLSRegressor cg", RLSRegressor(alpha=1e-5, solver="cg", tol=1e-9), "plain numbers", 8000)
    alphas = np.geomspace(1e-6, 10.0, 16).tolist()
    learner("RLSRegressor penalties", RLSRegressor(alphas=alphas), "plain numbers", 2500)
    learner("RLSRegressor spectrum", RLSRegressor(alphas=alphas), "plain numbers", 1450)
    learner("LinearRLSRegressor primal", LinearRLSRegressor(solver="primal"), "wide numbers", 100_000)
    learner("LinearRLSRegressor dual", LinearRLSRegressor(solver="dual"), "sparse numbers", 4000)
    learner(
        "LinearRLSRegressor cg",
        LinearRLSRegressor(solver="cg", alpha=1e-8, tol=1e-13),
        "sparse numbers",
        40_000,
    )
    learner("LinearRLSClassifier leave-one-out", LinearRLSClassifier(leave_one_out=True), "wide ten", 100_000)
    learner(
        "LinearRLSClassifier cg",
        LinearRLSClassifier(solver="cg", alpha=1e-8, tol=1e-13),
        "sparse ten",
        40_000,
    )
    for method in ("subset_of_regressors", "subset", "nystrom"):
        model = LowRankRLSClassifier(
            800, method=method, random_state=0, leave_one_out=method == "subset_of_regressors"
        )
        learner(f"LowRankRLSClassifier {method}", model, "plain ten", 30_000, 900)
    for selection in ("kmeans", "pivoted_cholesky", "leverage", "greedy_trace"):
        model = LowRankRLSRegressor(500, selection=selection, random_state=0)
        learner(f"LowRankRLSRegressor {selection}", model, "plain targets", 15_000, 550)
    iterated = LowRankRLSClassifier(2000, solver="cg", alpha=1e-3, random_state=0)
    learner("LowRankRLSClassifier cg", iterated, "plain ten", 60_000)
    iterated = LowRankRLSRegressor(1500, solver="cg", fit_intercept=True, random_state=0)
    learner("LowRankRLSRegressor cg", iterated, "plain targets", 60_000)
    pieces = LowRankRLSClassifier(50, random_state=0, gamma=0.1)
    learner("LowRankRLSClassifier", pieces, "plain ten", 200_000, methods=("partial_fit",))
    learner(
        "LowRankRLSRegressor",
        LowRankRLSRegressor(50, gamma=0.1, random_state=0),
        "plain numbers",
        200_000,
        methods=("partial_fit",),
    )


def _pursuits() -> None:
    for variant in ("prefit", "backfit", "basic"):
        learner(
            f"KMPRegressor {variant}",
            KMPRegressor(400, gamma=0.1, variant=variant),
            "plain targets",
            6000,
            450,
        )
    learner(
        "KMPRegressor double precision", KMPRegressor(300, precision="double"), "plain numbers", 5000, 400
    )
    learner(
        "KMPRegressor huber",
        KMPRegressor(200, gamma=0.1, loss="huber", delta=0.2),
        "plain numbers",
        6000,
        250,
    )
    learner("KMPRegressor own loss", KMPRegressor(200, gamma=0.1, loss=Cubic()), "plain numbers", 6000, 250)
    learner(
        "KMPRegressor drawn",
        KMPRegressor(400, gamma=0.1, sample_size=300, random_state=0),
        "plain numbers",
        20_000,
        300,
    )
    learner(
        "KMPRegressor no room",
        KMPRegressor(500, gamma=0.1, cache_size=1, random_state=0),
        "plain numbers",
        20_000,
        600,
    )
    learner(
        "KMPRegressor functions",
        KMPRegressor(300, functions=waves, kernel=["rbf", "poly"]),
        "plain numbers",
        4000,
        350,
    )
    learner("KMPRegressor own kernel", KMPRegressor(300, kernel=cosine), "plain numbers", 5000, 350)
    learner("KMPRegressor folds", KMPRegressor(100, early_stopping=True, cv=5), "plain numbers", 5000, 300)
    for loss in ("squared_tanh", "logistic", "exponential", "one_minus_tanh", "squared_hinge"):
        learner(f"KMPClassifier {loss}", KMPClassifier(100, gamma=0.1, loss=loss), "plain two", 5000, 150)
    learner("KMPClassifier", KMPClassifier(500, gamma=0.1), "plain ten", 5000, 550)
    learner("KMPClassifier sparse", KMPClassifier(300), "sparse two", 5000, 350)
    learner(
        "KMPClassifier class kernels",
        KMPClassifier(200, class_kernels={0: {"gamma": 2.0}}),
        "plain three",
        5000,
        250,
    )


def _perceptrons() -> None:
    both = {"methods": ("fit", "partial_fit"), "untouched": False}
    for prediction in ("last", "averaged", "voted"):
        learner(
            f"KernelPerceptron {prediction}",
            KernelPerceptron(prediction=prediction),
            "plain two",
            30_000,
            **both,
        )
    learner("KernelPerceptron ten classes", KernelPerceptron(), "plain ten", 12_000, **both)
    learner("KernelPerceptron sparse", KernelPerceptron(kernel="poly"), "sparse two", 15_000, **both)
    learner(
        "KernelPerceptron stop", KernelPerceptron(policy="stop", budget=4000), "plain two", 60_000, **both
    )
    for removal in ("oldest", "margin", "random", "tightest"):
        model = KernelPerceptron(policy=removal, budget=1500, random_state=0)
        learner(
            f"KernelPerceptron {removal}",
            model,
            "plain two",
            12_000 if removal == "tightest" else 60_000,
            **both,
        )
    learner(
        "KernelPerceptron forgetron",
        KernelPerceptron(policy="forgetron", budget=4000),
        "plain two",
        40_000,
        **both,
    )
    learner(
        "KernelPerceptron projectron",
        KernelPerceptron(policy="projectron", eta=0.3),
        "plain two",
        30_000,
        **both,
    )
    learner(
        "KernelPerceptron projectron++",
        KernelPerceptron(policy="projectron++", eta=0.3),
        "plain two",
        30_000,
        **both,
    )
    for split in ("wpq", "zpq", "bal-opts", "rndw-opts", "ent-inds"):
        model = PerceptronTreeClassifier(split=split, budget=50, random_state=0)
        learner(f"PerceptronTreeClassifier {split}", model, "plain two", 40_000, 1000, **both)
    large = PerceptronTreeClassifier(budget=4000, random_state=0)
    learner("PerceptronTreeClassifier one leaf", large, "plain two", 30_000, **both)


def _wrappers() -> None:
    learner(
        "CodedClassifier svc",
        CodedClassifier(SVC(C=1e3, gamma=0.2), "dense", random_state=0),
        "plain ten",
        2500,
    )
    learner(
        "CodedClassifier sparse code",
        CodedClassifier(SVC(C=1e3), "sparse", "mean_loss", random_state=0),
        "plain ten",
        4000,
    )
    learner(
        "CodedClassifier apart",
        CodedClassifier(SVC(C=1e3), "bch", "hamming", shared=False),
        "plain ten",
        1500,
        100,
    )
    learner(
        "CodedClassifier rls",
        CodedClassifier(RLSClassifier(leave_one_out=True), "complete"),
        "plain ten",
        3500,
    )
    learner(
        "CodedClassifier low rank",
        CodedClassifier(LowRankRLSClassifier(200, random_state=0), "ovo", "dag"),
        "plain ten",
        20_000,
        300,
    )
    learner(
        "CodedClassifier others", CodedClassifier(LogisticRegression(max_iter=50), "bch"), "plain ten", 10_000
    )
    learner("ReducedSet", ReducedSet(SVC(C=100.0, gamma=0.2), 500), "plain ten", 6000, 2000)
    learner(
        "ExactCascade", ExactCascade(SVC(C=100.0, gamma=0.2, multi_class="ovr"), 300), "plain ten", 4000, 1000
    )
    learner(
        "CalibratedCascade",
        CalibratedCascade(SVC(C=100.0, gamma=0.2), [20, 200], epsilon=0.2, random_state=0),
        "plain three",
        6000,
        1000,
    )


_support_vectors()
_least_squares()
_pursuits()
_perceptrons()
_wrappers()


@operation("LowRankRLSClassifier.merge", 30_000, 900)
def merge(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    half = settings.n // 2
    base = LowRankRLSClassifier(500, random_state=0)
    first = settings.of(base).fit(X[:half], y[:half])
    points = first.expansion_.vectors
    second = settings.of(base.set_params(selection=points, gamma=first.expansion_.gamma)).fit(
        X[half:], y[half:]
    )
    state = first.__getstate__()

    def fresh(turn: int) -> Any:
        model = settings.of(base)
        model.__setstate__(state)
        return model

    return Run(lambda model: model.merge(second), fresh)


@operation("fit_targets", 5000)
def targets(settings: Settings) -> Run:
    X, y = data("plain targets", settings.n)
    return Run(lambda _: fit_targets(X, y, 0.1, leave_one_out=True, n_jobs=settings.n_jobs))


@operation("SVC.estimate_memory", 1_000_000)
def estimate(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    return Run(lambda _: settings.of(SVC()).estimate_memory(X, y))


@operation("estimate_memory", 1_000_000)
def estimates(settings: Settings) -> Run:
    """Of all who have one of their own."""
    X, y = data("plain ten", settings.n)
    small = SVC().fit(X[:60], y[:60])
    learners = (
        LowRankSVC(),
        KMPClassifier(),
        KernelPerceptron(),
        PerceptronTreeClassifier(),
        ExactCascade(SVC()),
        CodedClassifier(SVC()),
    )

    def all_of_them(_: Any) -> list[Any]:
        return [estimate_memory(small, 20), *(learner.estimate_memory(X, y) for learner in learners)]

    return Run(all_of_them)
