"""What an operation is, and the data that operations are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["OPERATIONS", "Operation", "Run", "Settings", "data", "learner", "operation"]


@dataclass(frozen=True)
class Settings:
    """How an operation is run: its size, mostly the number of rows, threads, time limit, folder for files."""

    n: int
    folder: Path
    n_jobs: int | None = 1
    max_time: float | None = None

    def of(self, estimator: Any) -> Any:
        """A clone with these threads and this limit, inner estimators too."""
        model = clone(estimator)
        told = {"n_jobs": self.n_jobs, "max_time": self.max_time}
        names = {
            name: told[name.split("__")[-1]] for name in model.get_params() if name.split("__")[-1] in told
        }
        return model.set_params(**names)


@dataclass(frozen=True)
class Run:
    """An operation that is ready: what it acts on, made anew for each turn, and what is done to it."""

    work: Callable[[Any], Any]
    #: What the work acts on. Odd turns give estimators that know something already, from other columns.
    fresh: Callable[[int], Any] = lambda _: None
    #: After Ctrl-C: whether the object is as it was, else it is as it was or answers.
    untouched: bool = True
    #: Rows that the object answers afterwards where it may have changed.
    rows: Any = None


@dataclass(frozen=True)
class Operation:
    """One public operation at any size."""

    name: str
    prepare: Callable[[Settings], Run]
    #: Size at which it takes seconds.
    long: int
    #: Size at which it takes a moment.
    small: int
    #: Whether it takes ``max_time``.
    timed: bool = False
    #: What leaves it for Ctrl-C: the command exits instead.
    raises: str = "KeyboardInterrupt"
    #: Whether it writes files: these are then there before, and stay whole.
    writes: bool = False


OPERATIONS: dict[str, Operation] = {}


def operation(name: str, long: int, small: int = 0, **about: Any) -> Callable[[Any], Any]:
    """Puts a function of settings into the list."""

    def put(prepare: Callable[[Settings], Run]) -> Callable[[Settings], Run]:
        assert name not in OPERATIONS, name
        OPERATIONS[name] = Operation(name, prepare, long, small or min(long, max(100, long // 60)), **about)
        return prepare

    return put


def data(kind: str, n: int, seed: int = 0, columns: int = 8) -> tuple[Any, Any]:
    """Rows and labels or numbers, hard enough that no solver is done at once."""
    rng = np.random.default_rng(seed)
    layout, _, target = kind.partition(" ")
    if layout.startswith("sparse"):
        X: Any = sp.random_array((n, 200 * columns), density=0.02, rng=rng, format="csr")
        if layout == "sparse32":
            X = X.astype(np.float32)
        signal = np.asarray(X[:, : 20 * columns].sum(axis=1)).reshape(-1)
    else:
        X = rng.normal(size=(n, {"wide": 25, "short": 1}.get(layout, 1) * columns))
        signal = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
        if layout == "positive":
            X = np.abs(X)
        elif layout == "bytes":
            X = (40.0 * np.abs(X)).clip(0, 255).astype(np.uint8)
        elif layout == "single":
            X = X.astype(np.float32)
        elif layout == "kernel":
            distances = ((X[:, np.newaxis, :] - X) ** 2).sum(axis=2) if n < 300 else _distances(X)
            X = np.exp(-distances / columns)
    noisy = signal + 0.5 * rng.normal(size=n)
    if target == "numbers":
        return X, noisy
    if target == "targets":
        return X, np.column_stack([noisy, noisy**2, rng.normal(size=n)])
    classes = {"two": 2, "three": 3, "ten": 10, "many": 15}[target]
    edges = np.quantile(noisy, np.linspace(0.0, 1.0, classes + 1)[1:-1])
    return X, np.searchsorted(edges, noisy)


def _distances(X: Any) -> Any:
    squares = (X**2).sum(axis=1)
    distances = squares[:, np.newaxis] + squares - 2.0 * (X @ X.T)
    return distances.clip(0.0, out=distances)


def learner(
    name: str,
    estimator: Any,
    kind: str,
    long: int,
    small: int = 0,
    *,
    methods: tuple[str, ...] = ("fit",),
    untouched: bool = True,
    **about: Any,
) -> None:
    """Puts a fit of an estimator into the list, or another method that learns."""
    for method in methods:
        _learner(
            f"{name}.{method}", estimator, kind, method, untouched and method == "fit", (long, small), about
        )


def _learner(
    name: str,
    estimator: Any,
    kind: str,
    method: str,
    untouched: bool,
    sizes: tuple[int, int],
    about: dict[str, Any],
) -> None:
    given = estimator.get_params()
    # Of the solvers of least squares only iterations take a limit.
    iterates = given.get("solver", "cg") in ("cg", "auto") and given.get("leave_one_out") is not True
    timed = "max_time" in given and iterates

    def prepare(settings: Settings) -> Run:
        X, y = data(kind, settings.n)
        # The numbers of columns differ, so that a fit that is not undone whole cannot predict.
        other = data(kind, 60, 1, 8 if kind.startswith("kernel") else 5)
        classes = {"classes": np.unique(y)} if method == "partial_fit" and y.dtype.kind == "i" else {}

        def fresh(turn: int) -> Any:
            model = settings.of(estimator)
            if turn % 2 == 0:
                return model
            if method == "partial_fit":
                first = data(kind, 60, 1)
                return model.partial_fit(*first, **classes)
            return _quick(model).fit(*other)

        def work(model: Any) -> Any:
            return getattr(model, method)(X, y, **classes)

        return Run(work, fresh, untouched or method == "partial_fit", X[:5])

    operation(name, *sizes, timed=timed, **about)(prepare)


def _quick(model: Any) -> Any:
    """Without a limit: the small fit before is whole."""
    return model.set_params(max_time=None) if "max_time" in model.get_params() else model
