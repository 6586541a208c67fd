"""The workloads of the guard: fixed small computations over every family, on data made here.

Each function prepares its data, runs once so that everything is loaded, and returns the computation to count.
A computation that returns an estimator with a certificate is counted by the certificate too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

import svmarrow
from svmarrow.cascade import ExactCascade
from svmarrow.export import to_c
from svmarrow.inspection import shapley_values
from svmarrow.least_squares import LinearRLSRegressor, LowRankRLSRegressor
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.models import ExpansionRegressor
from svmarrow.multiclass import make_code
from svmarrow.online import KernelPerceptron
from svmarrow.preprocessing import LearnedScaler
from svmarrow.reduced_set import GradientSettings
from svmarrow.svm import QuantileSVR

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Data = tuple[NDArray[Any], NDArray[Any]]

__all__ = ["WORKLOADS", "planted_search"]

ONE = {"n_jobs": 1}


def classes(n: int, d: int, k: int = 2, noise: float = 0.1, seed: int = 0, dtype: Any = np.float32) -> Data:
    """Returns samples around four centres for each class, with a share of random labels."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(4 * k, d))
    group = random.integers(4 * k, size=n)
    X = centres[group] + 0.6 * random.normal(size=(n, d))
    y = np.where(random.random(n) < noise, random.integers(k, size=n), group % k)
    return np.ascontiguousarray(X, dtype=dtype), y


def targets(n: int, d: int, noise: float = 0.1, seed: int = 0) -> Data:
    """Returns samples with a smooth target."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.5, 1.5, size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, -1] + noise * random.normal(size=n)


def fit(estimator: Any, data: Data) -> Callable[[], Any]:
    """Returns the fit of an estimator."""
    return lambda: estimator.fit(*data)


def predict(estimator: Any, data: Data, rows: Any = None) -> Callable[[], Any]:
    """Returns the predictions of a fitted estimator, whose vectors are packed."""
    model = estimator.fit(*data)
    rows = data[0] if rows is None else rows
    return lambda: model.predict(rows)


def searching(kind: Any, data: Data, **parameters: Any) -> Callable[[], Any]:
    """Returns a search without the final fit."""
    grid = {"Cs": np.geomspace(0.1, 1000.0, 5), "gammas": np.geomspace(0.02, 2.0, 3), "cv": 3}
    return lambda: kind(**{**grid, **parameters}, refit=False, **ONE).fit(*data)


def planted_search() -> Callable[[], Any]:
    """Returns the first search with one more pass over the kernel values: a slowdown to be found."""
    X, y = classes(400, 10, noise=0.3)
    run = searching(svmarrow.SVCCV, (X, y))

    def slower() -> Any:
        for gamma in np.geomspace(0.02, 2.0, 3):
            expansion = svmarrow.KernelExpansion(X, np.ones((len(X), 1)), [0.0], kernel="rbf", gamma=gamma)
            ExpansionRegressor(expansion, **ONE).predict(X)
        return run()

    return slower


def digits() -> Data:
    """Returns multiples of one unit, as pixels are."""
    X, y = classes(400, 64, 4, seed=3)
    return np.clip(np.round(40.0 * X + 100.0), 0, 255).astype(np.uint8), y


def texts() -> tuple[Any, NDArray[Any]]:
    """Returns sparse rows."""
    random = np.random.default_rng(5)
    y = random.integers(2, size=500)
    X = sparse.random(500, 2000, 0.02, "csr", rng=random)
    X[:, :50] = X[:, :50].multiply(1 + 2 * y[:, None]).tocsr()
    return X.tocsr(), y


def signatures() -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns columns of very different scales, and a mixture of them."""
    random = np.random.default_rng(0)
    X = random.lognormal(5.0, 2.0, (200, 10))
    return X, X @ random.dirichlet(np.ones(10)) * np.exp(0.1 * random.normal(size=200))


def compress(method: str, **parameters: Any) -> Callable[[], Any]:
    """Returns the compression of a classifier of three classes."""
    X, y = classes(600, 6, 3)
    model = svmarrow.SVC(gamma=0.3, **ONE).fit(X[:400], y[:400])
    options = {"method": method, "n_vectors": 20, "random_state": 0, **parameters, **ONE}
    return lambda: svmarrow.compress(model, X[400:], y[400:], **options)


def saved() -> Callable[[], Any]:
    """Returns saving and loading."""
    model = svmarrow.as_expansion(svmarrow.SVC(gamma=0.3, **ONE).fit(*classes(600, 20, 3)))
    path = Path(tempfile.mkdtemp()) / "model"

    def run() -> Any:
        svmarrow.save(model, path)
        return svmarrow.load(path)

    return run


def exported() -> Callable[[], Any]:
    """Returns an export to C, with its check of rounding."""
    model = svmarrow.as_expansion(svmarrow.SVC(gamma=0.3, **ONE).fit(*classes(300, 8, 3)))
    path = Path(tempfile.mkdtemp()) / "model.h"
    return lambda: to_c(model, path)


def explained() -> Callable[[], Any]:
    """Returns Shapley values of some samples."""
    X, y = targets(200, 5)
    model = svmarrow.SVR(gamma=0.5, **ONE).fit(X, y)
    return lambda: shapley_values(model, X[:20], background=X[:30], **ONE)


def streamed() -> Callable[[], Any]:
    """Returns an online learner on a budget over a stream."""
    X, y = classes(1500, 6)
    return lambda: KernelPerceptron(gamma=0.3, budget=60, policy="forgetron", **ONE).fit(X, y)


def machine_for_a_tree() -> tuple[Any, NDArray[Any]]:
    """Returns a machine of five classes and its samples."""
    X, y = classes(600, 8, 5)
    return svmarrow.SVC(C=10.0, gamma=0.2, **ONE).fit(X, y), X


def made_a_tree() -> Callable[[], Any]:
    """Returns the conversion of a machine to a tree."""
    machine, X = machine_for_a_tree()
    make = svmarrow.PerceptronTreeClassifier.from_expansion
    return lambda: make(machine, X, budget=30, random_state=0, **ONE)


def predicted_by_a_tree() -> Callable[[], Any]:
    """Returns the predictions of a tree of a machine."""
    tree, (_, X) = made_a_tree()(), machine_for_a_tree()
    rows = np.tile(X, (5, 1))
    return lambda: tree.predict(rows)


#: Functions that return the computation to count, by name.
WORKLOADS: dict[str, Callable[[], Callable[[], Any]]] = {
    "fit: rbf": lambda: fit(svmarrow.SVC(gamma=0.1, **ONE), classes(1000, 20)),
    "fit: large C": lambda: fit(svmarrow.SVC(C=1000.0, gamma=0.3, **ONE), classes(400, 5, noise=0.2)),
    "fit: double rows": lambda: fit(svmarrow.SVC(gamma=0.1, **ONE), classes(600, 20, dtype=np.float64)),
    "fit: bytes": lambda: fit(svmarrow.SVC(gamma=1e-5, **ONE), digits()),
    "fit: sparse": lambda: fit(svmarrow.SVC(gamma=1.0, **ONE), texts()),
    "fit: two columns": lambda: fit(svmarrow.SVC(gamma=2.0, **ONE), classes(1200, 2)),
    "fit: ten classes": lambda: fit(svmarrow.SVC(gamma=0.1, **ONE), classes(800, 12, 10)),
    "fit: one-vs-rest": lambda: fit(svmarrow.SVC(gamma=0.1, multi_class="ovr", **ONE), classes(600, 12, 4)),
    "fit: linear": lambda: fit(svmarrow.SVC(kernel="linear", **ONE), classes(600, 20)),
    "fit: raw columns": lambda: fit(svmarrow.NuSVR(kernel="linear", **ONE), signatures()),
    "fit: poly": lambda: fit(svmarrow.SVC(kernel="poly", gamma=0.1, coef0=1.0, **ONE), classes(600, 10)),
    "fit: laplacian": lambda: fit(svmarrow.SVC(kernel="laplacian", gamma=0.1, **ONE), classes(500, 10)),
    "fit: squared hinge": lambda: fit(svmarrow.SVC(gamma=0.2, loss="squared_hinge", **ONE), classes(400, 10)),
    "fit: nu-SVC": lambda: fit(svmarrow.NuSVC(nu=0.3, gamma=0.2, **ONE), classes(500, 10)),
    "fit: SVR": lambda: fit(svmarrow.SVR(C=10.0, gamma=0.5, **ONE), targets(600, 5)),
    "fit: nu-SVR": lambda: fit(svmarrow.NuSVR(gamma=0.5, **ONE), targets(400, 5)),
    "fit: quantiles": lambda: fit(QuantileSVR(quantile=[0.1, 0.5, 0.9], gamma=0.5, **ONE), targets(300, 4)),
    "fit: one-class": lambda: fit(svmarrow.OneClassSVM(nu=0.1, gamma=0.2, **ONE), classes(800, 8)),
    "fit: low-rank SVC": lambda: fit(
        svmarrow.LowRankSVC(60, gamma=0.2, random_state=0, **ONE), classes(700, 8)
    ),
    "fit: code": lambda: fit(
        svmarrow.CodedClassifier(svmarrow.SVC(gamma=0.1, **ONE), code=make_code("bch", 6, random_state=0)),
        classes(250, 8, 6),
    ),
    "search: noise": lambda: searching(svmarrow.SVCCV, classes(400, 10, noise=0.3)),
    "search: large machines": lambda: searching(
        svmarrow.SVCCV, classes(2300, 4, noise=0.3), gammas=[0.1], Cs=[1.0, 30.0]
    ),
    "search: racing": lambda: searching(svmarrow.SVCCV, classes(500, 10, noise=0.3), search="racing"),
    "search: four classes": lambda: searching(svmarrow.SVCCV, classes(500, 10, 4)),
    "search: regression": lambda: searching(svmarrow.SVRCV, targets(150, 5)),
    "search: quantiles": lambda: searching(QuantileSVRCV, targets(90, 4), quantile=0.8),
    "predict: single precision": lambda: predict(svmarrow.SVC(gamma=0.1, **ONE), classes(1000, 20)),
    "predict: double precision": lambda: predict(
        svmarrow.SVC(gamma=0.1, **ONE), classes(700, 20, dtype=np.float64)
    ),
    "predict: bytes": lambda: predict(svmarrow.SVC(gamma=1e-5, **ONE), digits()),
    "predict: ten classes": lambda: predict(svmarrow.SVC(gamma=0.1, **ONE), classes(800, 12, 10)),
    "predict: first time": lambda: (
        lambda model, X: lambda: svmarrow.as_expansion(model).with_weighted(None).predict(X)
    )(svmarrow.SVC(gamma=0.1, **ONE).fit(*classes(600, 20)), classes(600, 20)[0]),
    "least squares": lambda: fit(svmarrow.RLSRegressor(0.1, gamma=0.3, **ONE), targets(500, 6)),
    "least squares: leave-one-out": lambda: fit(
        svmarrow.RLSClassifier(0.1, gamma=0.1, leave_one_out=True, **ONE), classes(350, 6, 4)
    ),
    "least squares: low rank": lambda: fit(
        LowRankRLSRegressor(100, gamma=0.3, random_state=0, **ONE), targets(2000, 6)
    ),
    "least squares: low rank, iterated": lambda: fit(
        LowRankRLSRegressor(100, gamma=0.3, solver="cg", random_state=0, **ONE), targets(1000, 6)
    ),
    "least squares: linear": lambda: fit(LinearRLSRegressor(**ONE), targets(2000, 30)),
    "matching pursuit": lambda: fit(svmarrow.KMPRegressor(n_vectors=40, gamma=0.5, **ONE), targets(500, 5)),
    "matching pursuit: classes": lambda: fit(
        svmarrow.KMPClassifier(n_vectors=30, gamma=0.2, **ONE), classes(500, 8, 3)
    ),
    "perceptron on a budget": streamed,
    "perceptron tree": lambda: fit(
        svmarrow.PerceptronTreeClassifier(gamma=0.2, random_state=0, **ONE), classes(600, 6)
    ),
    "tree of a machine": made_a_tree,
    "predict: tree": predicted_by_a_tree,
    "compress: backfit": lambda: compress("backfit"),
    "compress: gradient": lambda: compress("gradient", settings=GradientSettings(steps=30)),
    "cascade": lambda: fit(ExactCascade(svmarrow.SVC(gamma=0.3, **ONE)), classes(400, 6)),
    "learned scales": lambda: fit(LearnedScaler(**ONE), targets(40, 3)),
    "table": lambda: fit(svmarrow.TabularRegressor(**ONE), targets(40, 3)),
    "shapley values": explained,
    "save and load": saved,
    "export: C": exported,
}
