"""Base class of both estimators: the dictionary, the fit, early stopping, prediction."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import check, consistent, refuse, seed_of, warn_caller
from svmarrow._support.progress import progress, without_callbacks
from svmarrow._support.rows import as_points, product, threads, validated
from svmarrow._support.saving import check_columns
from svmarrow._support.training import (
    MemoryEstimate,
    default_gamma,
    refuse_beyond_memory,
    refuse_zero_weights,
    weights_differ,
)
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.expansion.composites import sum_of
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.matching_pursuit._dictionary import (
    Constant,
    Dictionary,
    GivenFunctions,
    KernelPart,
    bytes_of,
    chooses_by_training_loss,
    columns_of,
    core_loss,
    dictionary_bytes,
)
from svmarrow.matching_pursuit.path import MatchingPath
from svmarrow.models.machine import KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow.matching_pursuit._dictionary import Part, Spec

    #: Validation rows, their targets (n, q), and what each counts (n,) or None for 1.
    Watched: TypeAlias = tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]

__all__ = ["Data", "MatchingPursuit"]


class Data(NamedTuple):
    """Rows of positive weight with their targets and weights."""

    #: Rows as the extension module takes them.
    X: Any
    #: Their numbers in what was given to `fit`.
    rows: NDArray[np.int64]
    #: Targets (n, q).
    targets: NDArray[np.float64]
    #: Classes of the rows as numbers; None for regression.
    labels: NDArray[np.int64] | None
    weights: NDArray[np.float64] | None

    def part(self, which: NDArray[np.intp]) -> Data:
        """Returns some of the rows."""
        return Data(
            self.X[which],
            self.rows[which],
            np.ascontiguousarray(self.targets[which]),
            None if self.labels is None else self.labels[which],
            None if self.weights is None else np.ascontiguousarray(self.weights[which]),
        )

    def watched(self, which: NDArray[np.intp]) -> Watched:
        """Returns some of the rows as validation rows with their weights of a fit."""
        part = self.part(which)
        return part.X, part.targets, part.weights


class MatchingPursuit(KernelMachine):
    """Base class of `KMPClassifier` and `KMPRegressor`."""

    n_vectors: int
    variant: str
    loss: Any
    max_iter: int
    backfit_every: int
    kernel: Any
    gamma: Any
    coef0: float
    degree: int
    fit_intercept: bool | str
    candidates: Any
    functions: Any
    tol: float
    early_stopping: bool | Literal["gcv"]
    validation_fraction: float
    cv: Any
    n_iter_no_change: int | None
    precision: str
    cache_size: float | None
    sample_size: int | None
    max_time: float | None
    random_state: Any
    n_jobs: int | None
    verbose: bool | int

    #: A dictionary is known by its values on the samples alone.
    _needs_symmetry: ClassVar[bool] = False

    path_: MatchingPath
    expansions_: tuple[KernelExpansion, ...]
    function_coef_: NDArray[np.float64]
    support_: NDArray[np.int64]
    support_kernels_: NDArray[np.int64]
    n_vectors_: int
    n_iter_: int
    n_features_in_: int

    # What a subclass says of its targets

    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """Returns predictions (..., n) or (..., n, q) for outputs (..., n, q)."""
        raise NotImplementedError

    def _scores(self, predictions: NDArray[Any], y: Any) -> NDArray[np.float64]:
        """Returns the scores of several predictions."""
        raise NotImplementedError

    # Fit

    def _validated(self, X: Any, y: Any, *, multi_output: bool = False) -> tuple[Any, Any]:
        check(self.get_params(deep=False), self._rules)
        precomputed = self._is_precomputed()
        if precomputed and isinstance(self.kernel, (list, tuple)):
            raise refuse("kernel", self.kernel, "'precomputed' alone, not in a list")
        X, y = validated(
            self, X, y, reset=True, precomputed=precomputed, with_y=True, multi_output=multi_output
        )
        self._check_training_rows(X)
        return X, y

    def _watched(self, X_val: Any, y_val: Any) -> Any:
        """Returns validated validation rows, or None."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both or neither")
        if X_val is None:
            return None
        rows = validated(self, X_val, reset=False, precomputed=self._is_precomputed())
        if np.shape(y_val)[:1] != (rows.shape[0],):
            raise ValueError(
                f"X_val and y_val disagree: X_val has {rows.shape[0]} rows, y_val has shape {np.shape(y_val)}"
            )
        return rows

    def _data(
        self,
        X: Any,
        targets: NDArray[np.float64],
        labels: NDArray[np.int64] | None,
        weights: NDArray[np.float64] | None,
    ) -> Data:
        self._weighted = weights_differ(weights)
        data = Data(X, np.arange(X.shape[0]), targets, labels, weights)
        if weights is None or weights.all():
            return data
        refuse_zero_weights(weights)
        return data.part(np.flatnonzero(weights))

    def _fit(self, data: Data, watched: Watched | None) -> None:
        """Fits the model; `watched` are the given validation rows, targets and weights."""
        random = check_random_state(self.random_state)
        size = self.n_vectors
        cross: NDArray[np.float64] | None = None
        by_training = chooses_by_training_loss(self, data.weights, watched)
        if self.early_stopping and watched is None and not by_training:
            if self.cv is not None:
                cross = self._cross_validated(data, random)
                size = max(1, int(np.argmin(cross)))
            else:
                parts = train_test_split(
                    np.arange(data.rows.size),
                    test_size=self.validation_fraction,
                    random_state=random,
                    stratify=data.labels,
                )
                train, test = map(np.sort, parts)
                watched, data = data.watched(test), data.part(train)
        path = self._pursue(data, watched, size, random)
        path.cv_curve = cross
        is_chosen = by_training or (self.early_stopping and watched is not None)
        step = int(np.argmin(self._measure(path, data))) if is_chosen else len(path.step_sizes) - 1
        self._take(path, step)
        # max_iter=-1 is no limit; what stands for it for "basic" is no limit that can be raised.
        if path.stop == "max_time" or (path.stop == "max_iter" and self.max_iter != -1):
            warn_caller(
                f"{type(self).__name__} ended early ({path.stop}) with {path.sizes[-1]} functions of "
                f"{self.n_vectors}. The model is usable; raise {path.stop}",
                ConvergenceWarning,
            )

    def _measure(self, path: MatchingPath, data: Data) -> NDArray[np.float64]:
        """Returns the curve whose minimum is the chosen step."""
        if self.early_stopping == "gcv":
            return path._generalized_errors(data.rows.size)
        by_accuracy = getattr(self, "scoring", "loss") == "accuracy" and path.validation_error.size
        return path.validation_error if by_accuracy else path.validation_loss

    def _cross_validated(self, data: Data, random: np.random.RandomState) -> NDArray[np.float64]:
        """Returns the mean validation curve of the folds, for the sizes that all folds have."""
        curves = []
        for train, test in self._folds(data):
            watched = data.watched(test)
            path = self._pursue(data.part(train), watched, self.n_vectors, random)
            measure = self._measure(path, data)
            curves.append(measure[[path.step_of(size) for size in path.sizes]])
        shortest = min(curve.size for curve in curves)
        mean: NDArray[np.float64] = np.mean([curve[:shortest] for curve in curves], axis=0)
        return mean

    def _folds(self, data: Data) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Returns pairs of training and test rows of positive weight."""
        y = data.targets if data.labels is None else data.labels
        splitter = check_cv(self.cv, y, classifier=data.labels is not None)
        if self.cv is None or isinstance(self.cv, int) or hasattr(self.cv, "split"):
            return list(splitter.split(y, y))
        # Pairs that were given are numbers of the rows as they were given.
        return [
            (np.flatnonzero(np.isin(data.rows, train)), np.flatnonzero(np.isin(data.rows, test)))
            for train, test in splitter.split()
        ]

    def _pursue(
        self,
        data: Data,
        watched: Watched | None,
        size: int,
        random: np.random.RandomState,
    ) -> MatchingPath:
        X_val = None if watched is None else watched[0]
        dictionary = self._dictionary(data, random)
        constant = not isinstance(self.fit_intercept, str) and bool(self.fit_intercept)
        task = {
            "parts": [part.core(data.X, X_val) for part in dictionary.parts],
            "targets": data.targets,
            "weights": data.weights,
            "constant": constant,
            "validation": None if watched is None else (watched[1], data.labels is not None, watched[2]),
            "loss": core_loss(self.loss, float(getattr(self, "delta", 1.0))),
        }
        most = dictionary_bytes(self.cache_size)
        n, q = data.targets.shape
        remedy = "lower cache_size, or compare a sample of the functions in each step (sample_size=59)"
        needed = self._bytes(dictionary.count, n, size, q)
        refuse_beyond_memory(f"{type(self).__name__}.fit", needed, remedy)
        unlimited = size if self.variant == "basic" else None
        settings = {
            "variant": self._variant_of(),
            "max_iter": unlimited if self.max_iter == -1 else int(self.max_iter),
            "backfit_every": int(self.backfit_every),
            "n_functions": int(size),
            "tol": float(self.tol),
            "patience": self.n_iter_no_change,
            "stop_on_error": getattr(self, "scoring", "loss") == "accuracy",
            "single_precision": self.precision == "single",
            "cache_bytes": most,
            "sample": self.sample_size,
            "seed": seed_of(random),
            "max_time": self.max_time,
        }
        with progress(self.verbose) as reporter:
            reporter.stops_in = ("pursuit", 1)
            fitted = _core.matching_pursuit(task, settings, reporter.callback, threads(self.n_jobs))
        if fitted["sizes"].size == 0:
            raise ValueError(
                f"max_time={self.max_time:g} was over before the first vector was chosen: raise it"
            )
        return MatchingPath(without_callbacks(copy.copy(self)), dictionary, fitted, constant)

    def _variant_of(self) -> str:
        squared = isinstance(self.loss, str) and self.loss == "squared_error"
        if self.variant == "auto":
            return "prefit" if squared else "backfit"
        if self.variant == "prefit" and not squared:
            raise refuse("variant", self.variant, f"'backfit' or 'basic' with loss={self.loss!r}")
        return self.variant

    def _bytes(self, functions: int, rows: int, size: int, outputs: int) -> int:
        most, single = dictionary_bytes(self.cache_size), self.precision == "single"
        sample = None if self.sample_size is None else int(self.sample_size)
        return bytes_of(functions, rows, int(size), outputs, single=single, sample=sample, most=most)

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        n, chosen = int(rows.shape[0]), self.candidates
        if chosen is None or isinstance(chosen, (int, float, np.integer, np.floating)):
            share = isinstance(chosen, (float, np.floating))
            points = n if chosen is None else round(chosen * n) if share else min(n, int(chosen))
        else:
            points = int(chosen.shape[0])
        kernels = [len(p) if isinstance(p, (list, tuple)) else 1 for p in (self.kernel, self.gamma)]
        outputs = 1 if y is None else self._outputs_of(y)
        # User-defined functions are not counted.
        functions = points * kernels[0] * kernels[1]
        return MemoryEstimate.of(self._bytes(functions, n, int(self.n_vectors), outputs))

    def _outputs_of(self, y: Any) -> int:
        return 1 if np.ndim(y) == 1 else int(np.shape(y)[1])

    # Dictionary

    def _specs(self, data: Data) -> list[Spec]:
        """Returns all kernels: each of `kernel` with each of `gamma`."""
        names = list(self.kernel) if isinstance(self.kernel, (list, tuple)) else [self.kernel]
        gammas = list(self.gamma) if isinstance(self.gamma, (list, tuple)) else [self.gamma]
        specs: list[Spec] = []
        for name in names:
            # A kernel without gamma is one kernel whatever the widths.
            has = not callable(name) and name not in ("linear", "precomputed")
            for gamma in gammas if has else gammas[:1]:
                value = default_gamma(gamma, data.X, kernel=name, weights=data.weights)
                specs.append((name, value if has else 1.0, float(self.coef0), int(self.degree)))
        return specs

    def _points(self, data: Data, random: np.random.RandomState) -> tuple[Any, NDArray[np.int64]]:
        """Returns the points of the kernel functions and their names."""
        n = int(data.X.shape[0])
        chosen = self.candidates
        precomputed = self._is_precomputed()
        if chosen is None or isinstance(chosen, (int, float, np.integer, np.floating)):
            training_rows = np.arange(n)
            if chosen is not None:
                if isinstance(chosen, (int, np.integer)) and not isinstance(chosen, bool):
                    count = int(chosen)
                else:
                    count = round(float(chosen) * n) if 0 < chosen <= 1 else 0
                if count < 1:
                    rule = "None, a number of rows of at least 1, a share above 0 and up to 1, or rows"
                    raise refuse("candidates", chosen, rule)
                if count < n:
                    training_rows = np.sort(random.permutation(n)[:count])
            labels = data.rows[training_rows]
            if precomputed:
                return labels[:, np.newaxis].astype(np.float64), labels
            # The path reads its points later, whatever the caller writes to the samples.
            return (data.X.copy() if training_rows.size == n else data.X[training_rows]), labels
        if precomputed:
            rule = "None, a number or a share of rows with kernel='precomputed'"
            raise refuse("candidates", chosen, rule)
        points = as_points(chosen, "candidates", data.X).copy()
        self._check_domain(points)
        return points, np.arange(points.shape[0])

    def _kernel_parts(self, data: Data, random: np.random.RandomState) -> list[Part]:
        points, labels = self._points(data, random)
        return [KernelPart(spec, points, labels, i) for i, spec in enumerate(self._specs(data))]

    def _dictionary(self, data: Data, random: np.random.RandomState) -> Dictionary:
        parts = self._kernel_parts(data, random)
        if self.functions is not None:
            count = columns_of(self.functions, data.X).shape[1]
            if count:
                parts.append(GivenFunctions(self.functions, count))
        if isinstance(self.fit_intercept, str):
            parts.append(Constant())
        return Dictionary(parts)

    # The fitted model

    def _take(self, path: MatchingPath, step: int) -> None:
        """Returns the model after a step of a path."""
        dictionary, order = path._dictionary, path._kept[: int(path.step_sizes[step])]
        coefficients = path.coefficients(step)
        q = coefficients.shape[1]
        intercept = np.zeros(q)
        if path._constant:
            intercept += coefficients[0]
            coefficients = coefficients[1:]
        part, within = dictionary.places(order)
        expansions, support, numbers = [], [], []
        functions = np.zeros((0, q))
        for i, whole in enumerate(dictionary.parts):
            mine = np.flatnonzero(part == i)
            if isinstance(whole, KernelPart):
                expansions.append((whole, within[mine], coefficients[mine]))
                support.append(np.column_stack([mine, whole.labels[within[mine]]]))
                numbers.append(np.full(mine.size, whole.number))
            elif isinstance(whole, GivenFunctions):
                functions = np.zeros((whole.count, q))
                functions[within[mine]] = coefficients[mine]
            else:
                intercept += coefficients[mine].sum(axis=0)
        # In the order of the choice, across kernels.
        places = np.concatenate(support)
        rank = np.argsort(places[:, 0], kind="stable")
        self.path_ = path
        self.n_vectors_ = int(path.step_sizes[step])
        self.n_iter_ = step
        self.function_coef_ = functions
        self.support_ = places[rank, 1]
        self.support_kernels_ = np.concatenate(numbers)[rank]
        self.expansions_ = tuple(
            KernelExpansion(
                whole.points[which],
                values,
                intercept if i == 0 else np.zeros(q),
                *whole.spec,
            )
            for i, (whole, which, values) in enumerate(expansions)
        )

    def _at_step(self, path: MatchingPath, step: int) -> Any:
        model = without_callbacks(copy.copy(self))
        model._take(path, step)
        return model

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts (n_outputs,); zeros without one."""
        self._check_fitted()
        return self.expansions_[0].intercepts

    @property
    @consistent
    def expansion_(self) -> KernelExpansion:  # type: ignore[override]  # read-only here
        """The kernels of the model as an expansion; those of several kernels are an `ExpansionSum`."""
        try:
            expansions = self.expansions_
        except AttributeError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None
        if self.function_coef_.any():
            raise AttributeError("this model has functions that are no kernels: see function_coef_")
        used = [expansion for expansion in expansions if expansion.n_vectors]
        if len(used) > 1 and any(callable(expansion.kernel) for expansion in used):
            raise AttributeError(
                f"this model has {len(used)} kernels, of which one is a Python function: see expansions_"
            )
        if len(used) > 1:
            return sum_of(expansions)
        if used and used[0] is not expansions[0]:
            return used[0].replaced(intercepts=self.intercept_)
        # The object itself, which files store as the expansion of the model.
        return expansions[0]

    def _rows(self, X: Any) -> Any:
        """Converts rows to the form of the extension module."""
        check_is_fitted(self, "n_features_in_")
        rows = validated(self, X, reset=False, precomputed=self._is_precomputed())
        self._check_domain(rows)
        return rows

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "path_")
        rows = self._rows(X)
        first, *others = self.expansions_
        others = [expansion for expansion in others if expansion.n_vectors]
        if others:
            # Sums of several kernels cancel, and each knows its own rounding alone.
            rows = rows.astype(np.float64, copy=False)
        total = first._evaluate(rows, self.n_jobs)
        for expansion in others:
            total = total + expansion._evaluate(rows, self.n_jobs)
        if self.function_coef_.any():
            total = total + product(columns_of(self.functions, rows), self.function_coef_)
        return total

    def _after_load(self) -> None:
        q = self.expansions_[0].n_outputs
        for expansion in self.expansions_:
            check_columns(self, expansion)
        if any(f.n_outputs != q for f in self.expansions_):
            raise ValueError(f"the kernels have not {q} outputs each")
        if self.function_coef_.size:
            raise ValueError("a file holds no functions of the caller")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "path_")
