"""Reductions: every method and setting, paths, thresholds, cascades, trees out of models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from helpers.operations.kinds import Run, Settings, data, operation
from helpers.reference import path_by
from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    KMPClassifier,
    OneClassSVM,
    PerceptronTreeClassifier,
    RLSRegressor,
    compress,
    compression_path,
    distil,
    quantize,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.distillation import DistillationSettings
from svmarrow.models import ExpansionClassifier, ExpansionTree
from svmarrow.papers.reduced_set import PaperSettings
from svmarrow.reduced_set import GradientSettings, SelectionSettings, subsample_baseline


def machine(
    settings: Settings, kind: str = "plain two", decoding: str = "ovr", gamma: float = 1.0
) -> tuple[Any, Any, Any]:
    """A classifier with n rows as vectors, which took no training, and these rows with their labels."""
    X, y = data(kind, settings.n)
    classes = np.unique(y)
    if classes.size == 2:
        decoding = "binary"
    if decoding == "ovo":
        pairs = [(a, b) for a in classes for b in classes[a + 1 :]]
        signs = np.column_stack([(y == a) * 1.0 - (y == b) for a, b in pairs])
    else:
        signs = np.where(y[:, np.newaxis] == classes, 1.0, -1.0)[:, classes.size == 2 :]
    coefficients = signs * np.random.default_rng(1).uniform(0.1, 1.0, size=signs.shape)
    expansion = KernelExpansion(X, coefficients, np.zeros(signs.shape[1]), gamma=gamma)
    return ExpansionClassifier(expansion, classes, decoding, n_jobs=settings.n_jobs), X, y


def _compression(
    name: str,
    long: int,
    kind: str = "plain two",
    *,
    share: float = 0.3,
    rows: bool = False,
    labels: bool = False,
    small: int = 0,
    **about: Any,
) -> None:
    """compress with these settings, down to a share of the vectors."""

    def prepare(settings: Settings) -> Run:
        model, X, y = machine(settings, kind)
        given = {"X": X if rows or labels else None, "y": y if labels else None, "method": "backfit", **about}
        wanted = int(share * model.expansion_.n_vectors) if share < 1 else int(share)
        if given["method"] == "gradient":
            given["settings"] = replace(given["settings"], sizes=(wanted,))

        def work(whole: Any) -> Any:
            path = path_by(
                given["method"],
                whole,
                n_vectors=wanted,
                random_state=0,
                max_time=settings.max_time,
                n_jobs=settings.n_jobs,
                **{name: value for name, value in given.items() if name != "method"},
            )
            return path[path.sizes[-1]]

        return Run(work, lambda _: model)

    operation(f"compress {name.replace('backfit', 'pursuit')}", long, small, timed=True)(prepare)


def _choices() -> None:
    for method in ("backfit", "prefit", "basic"):
        _compression(method, 6000, method=method)
        _compression(f"{method} ten classes", 4000, "plain ten", method=method)
        _compression(
            f"{method} by predictions",
            3000,
            method=method,
            rows=True,
            settings=PaperSettings(criterion="predictions"),
        )
        _compression(f"{method} drawn", 8000, method=method, settings=PaperSettings(sample=59))
    _compression("pursuit sparse", 4000, "sparse two", method="backfit")
    _compression("pursuit each output", 2000, "plain ten", settings=SelectionSettings(joint=False))
    _compression("pursuit among rows", 4000, candidates="samples", rows=True)
    _compression("pursuit chunks", 8000, share=0.05, settings=SelectionSettings(chunk=1000), small=1500)
    _compression("pursuit and thresholds", 4000, "plain ten", labels=True)
    _compression("rank", 4000, method="rank")
    for method, size in (("l0", 1500), ("l1", 2500), ("lars", 1200)):
        _compression(method, size, method=method)
        _compression(
            f"{method} ten classes",
            size // 2,
            "plain ten",
            method=method,
            settings=PaperSettings(joint=True),
        )
        _compression(
            f"{method} each output",
            size // 3,
            "plain ten",
            method=method,
            settings=PaperSettings(joint=False),
        )
    _compression("l0 lossy", 2500, method="l0", settings=PaperSettings(max_change=0.01))
    _compression("l1 weighted", 2500, method="l1", settings=PaperSettings(inverse_weights=True))
    _compression("l1 at a price", 2500, method="l1", settings=PaperSettings(penalty=1e-3))
    _compression("lars at a price", 1500, method="lars", settings=PaperSettings(penalty=1e-3))
    _compression("lars chunks", 5000, method="lars", share=0.05, small=600)
    _compression(
        "gradient", 3000, method="gradient", share=50, small=200, settings=GradientSettings(batch=100)
    )
    _compression(
        "gradient hinge",
        3000,
        "plain ten",
        method="gradient",
        labels=True,
        share=50,
        small=200,
        settings=GradientSettings(loss="hinge", steps=20_000),
    )
    _compression(
        "gradient matching",
        3000,
        "sparse ten",
        method="gradient",
        share=40,
        small=100,
        settings=GradientSettings(loss="matching", steps=1000),
    )
    for start in ("backfit", "prefit", "rank"):
        _compression(
            f"gradient from {start}",
            4000,
            method="gradient",
            share=40,
            small=200,
            settings=GradientSettings(start=start, steps=5000),
        )


_choices()


@operation("compress pursuit with a target", 3000)
def by_loss(settings: Settings) -> Run:
    model, _, _ = machine(settings, "plain ten")
    given = {"max_loss": 0.5, "validation": data("plain ten", 1000, 2), "n_jobs": settings.n_jobs}
    return Run(lambda whole: compress(whole, method="backfit", **given), lambda _: model)


@operation("compress a regressor", 4000)
def regressor(settings: Settings) -> Run:
    X, y = data("plain targets", settings.n)
    model = RLSRegressor(n_jobs=settings.n_jobs).fit(X, y)
    given = {"n_vectors": settings.n // 4, "n_jobs": settings.n_jobs}
    return Run(lambda whole: compress(whole, **given), lambda _: model)


@operation("compress a detector", 6000)
def detector(settings: Settings) -> Run:
    X, _ = data("plain two", settings.n)
    model = OneClassSVM(nu=0.8, gamma=1.0, n_jobs=settings.n_jobs).fit(X)
    given = {"n_vectors": settings.n // 4, "n_jobs": settings.n_jobs}
    return Run(lambda whole: compress(whole, **given), lambda _: model)


@operation("distil a function", 20_000, 2000)
def distilled(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    given = {"n_vectors": 100, "n_jobs": settings.n_jobs, "random_state": 0}

    def imitate(function: Any) -> Any:
        return distil(function, X, y, settings=DistillationSettings(steps=2000), **given)

    return Run(imitate, lambda _: sines)


def sines(X: Any) -> Any:
    """Probabilities of ten classes."""
    values = np.exp(np.sin(np.arange(1.0, 11.0) * X[:, :1]))
    return values / values.sum(axis=1, keepdims=True)


@operation("compression_path", 4000, timed=True)
def path(settings: Settings) -> Run:
    model, X, y = machine(settings, "plain ten")
    given = {"max_time": settings.max_time, "n_jobs": settings.n_jobs}
    return Run(lambda whole: compression_path(whole, X, y, **given), lambda _: model)


@operation("compression_path gradient", 2000, 200, timed=True)
def made(settings: Settings) -> Run:
    model, X, y = machine(settings, "plain ten")
    given = {"max_time": settings.max_time, "n_jobs": settings.n_jobs, "random_state": 0}
    few = GradientSettings(steps=4000)
    return Run(
        lambda whole: compression_path(whole, X, y, n_vectors=64, method="gradient", settings=few, **given),
        lambda _: model,
    )


def _of_path(name: str, long: int, work: Any, *, decoding: str = "ovr", method: str = "backfit") -> None:
    def prepare(settings: Settings) -> Run:
        model, X, y = machine(settings, "plain ten", decoding)
        about = {"settings": GradientSettings(steps=200), "random_state": 0} if method == "gradient" else {}
        many = compression_path(
            model, X, y, n_vectors=settings.n // 4, method=method, n_jobs=settings.n_jobs, **about
        )
        rows = data("plain ten", 10 * settings.n, 3)
        return Run(lambda whole: work(whole, *rows), lambda _: many)

    operation(name, long, small=200)(prepare)


_of_path("CompressionPath.scores", 3000, lambda path, X, y: path.scores(X, y))
_of_path("CompressionPath.full_score", 6000, lambda path, X, y: path.full_score(X, y))
_of_path("CompressionPath.agreement", 3000, lambda path, X, y: path.agreement(X))
_of_path("CompressionPath.select", 2500, lambda path, X, y: path.select(X, y, 0.5))
_of_path(
    "CompressionPath.select by limits",
    2500,
    lambda path, X, y: path.select(X, y, max_bytes=10**9),
)
_of_path("CompressionPath one size, one-vs-rest", 4000, lambda path, X, y: path[len(path) // 2])
_of_path(
    "CompressionPath one size, one-vs-one", 4000, lambda path, X, y: path[len(path) // 2], decoding="ovo"
)
_of_path("CompressionPath all sizes", 2000, lambda path, X, y: list(path))
_of_path("CompressionPath.nbytes", 2000, lambda path, X, y: [path.nbytes(size) for size in path.sizes])
_of_path("CompressionPath.microseconds", 6000, lambda path, X, y: path.microseconds(X, path.sizes[-1]))
_of_path("CompressionPath.plot", 2500, lambda path, X, y: path.plot(X, y))
_of_path("GradientPath.scores", 2000, lambda path, X, y: path.scores(X, y), method="gradient")
_of_path("GradientPath.select", 2000, lambda path, X, y: path.select(X, y, 0.5), method="gradient")


@operation("quantize", 6000)
def fewer_bytes(settings: Settings) -> Run:
    model, _, _ = machine(settings, "wide ten")
    X, y = data("wide ten", 4 * settings.n, 3)
    return Run(lambda whole: quantize(whole, X=X, y=y, n_jobs=settings.n_jobs), lambda _: model)


@operation("subsample_baseline", 4000)
def baseline(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    model = settings.of(SVC(C=100.0, gamma=0.2)).fit(X, y)
    sizes = [settings.n // k for k in (8, 4, 2, 1)]
    return Run(
        lambda whole: subsample_baseline(whole, X, y, X, y, sizes=sizes, random_state=0), lambda _: model
    )


@operation("ExactCascade.from_path", 4000, 500)
def stages(settings: Settings) -> Run:
    model, X, _ = machine(settings, gamma=0.05)
    path = compression_path(model, n_vectors=settings.n // 4, n_jobs=settings.n_jobs)
    return Run(lambda whole: ExactCascade.from_path(whole, X, n_jobs=settings.n_jobs), lambda _: path)


@operation("CalibratedCascade.from_fitted", 6000, 500)
def calibrated(settings: Settings) -> Run:
    model, _, _ = machine(settings, "plain ten")
    small = compress(model, n_vectors=50, n_jobs=settings.n_jobs)
    X = data("plain ten", 30 * settings.n, 4)[0]

    def work(whole: Any) -> Any:
        return CalibratedCascade.from_fitted(whole, small, X, epsilon=0.1, n_jobs=settings.n_jobs)

    return Run(work, lambda _: model)


def _cascade(settings: Settings, kind: str) -> tuple[Any, Any]:
    model, X, y = machine(settings, gamma=0.05)
    if kind == "exact":
        cascade = ExactCascade.from_path(
            compression_path(model, n_vectors=settings.n // 4, n_jobs=settings.n_jobs),
            stages=[settings.n // 8],
            n_jobs=settings.n_jobs,
        )
    else:
        small = compress(model, n_vectors=50, n_jobs=settings.n_jobs)
        cascade = CalibratedCascade.from_fitted(
            model, small, X, epsilon=0.3, delta=0.3, n_jobs=settings.n_jobs
        )
    return cascade, data("plain two", 30 * settings.n, 5)[0]


def _of_cascade(kind: str, method: str) -> None:
    def prepare(settings: Settings) -> Run:
        cascade, rows = _cascade(settings, kind)
        return Run(lambda whole: getattr(whole, method)(rows), lambda _: cascade)

    name = {"exact": "ExactCascade", "calibrated": "CalibratedCascade"}[kind]
    operation(f"{name}.{method}", 3000, 400)(prepare)


for _method in ("predict", "route", "report", "outputs_with_bounds"):
    _of_cascade("exact", _method)
for _method in ("predict", "route", "report"):
    _of_cascade("calibrated", _method)


def _tree_of(split: str, budget: int, long: int) -> None:
    def prepare(settings: Settings) -> Run:
        model, X, _ = machine(settings, "plain ten")

        def work(whole: Any) -> Any:
            return PerceptronTreeClassifier.from_expansion(
                whole, X, budget=budget, split=split, random_state=0, n_jobs=settings.n_jobs
            )

        return Run(work, lambda _: model)

    operation(f"PerceptronTreeClassifier.from_expansion {split} {budget}", long, 300)(prepare)


_tree_of("pls-opts", 50, 8000)
_tree_of("wpq", 50, 4000)
_tree_of("zpq", 50, 3000)
_tree_of("bal-opts", 100, 4000)
_tree_of("wpq", 1500, 5000)


@operation("compress to kernel values", 6000, 400)
def local(settings: Settings) -> Run:
    model, X, y = machine(settings, "plain ten")

    def work(whole: Any) -> Any:
        found = compress(whole, X, y, max_evaluations=20, random_state=0, n_jobs=settings.n_jobs)
        return found.predict(X)

    return Run(work, lambda _: model)


@operation("ExpansionTree", 8000, 400)
def tree(settings: Settings) -> Run:
    model, X, _ = machine(settings, "plain ten")

    def work(expansion: Any) -> Any:
        found = ExpansionTree.of(expansion, X, 20, random_state=0, n_jobs=settings.n_jobs)
        return found, found.apply(X), found.decision_function(X)

    return Run(work, lambda _: model.expansion_)


@operation("compress several widths", 6000)
def several_widths(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    model = KMPClassifier(settings.n // 4, gamma=[0.3, 1.0], n_jobs=settings.n_jobs).fit(X, y)
    return Run(
        lambda whole: compress(whole, X, n_vectors=settings.n // 8, n_jobs=settings.n_jobs), lambda _: model
    )


@operation("compress an SVR", 4000)
def numbers(settings: Settings) -> Run:
    X, y = data("plain numbers", settings.n)
    model = SVR(epsilon=0.01, max_iter=3 * settings.n, n_jobs=settings.n_jobs).fit(X, y)
    return Run(
        lambda whole: compress(whole, n_vectors=settings.n // 4, n_jobs=settings.n_jobs), lambda _: model
    )
