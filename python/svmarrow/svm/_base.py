"""Base class of the support vector machines: validation, arguments of the solver, the fitted model.

The functions before it serve estimators around machines too, such as searches and collections of Dask: labels
with their weights, feature weights, checks of certificates, methods that a class does not have.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    MAX_ITER,
    MAX_TIME,
    THREADS,
    VERBOSE,
    InterruptedFit,
    Rule,
    boolean,
    check,
    consistent,
    either,
    function,
    kernel_rules,
    none,
    one_of,
    real,
    warn_caller,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import (
    cache_bytes,
    contents,
    core_rows,
    read_only,
    select_rows,
    threads,
    validated,
    with_sparse_interface,
)
from svmarrow._support.training import (
    MIN_CHECKED_BYTES,
    MemoryEstimate,
    bytes_of_rows,
    check_every_class,
    class_weights,
    default_gamma,
    encode_classes,
    refuse_beyond_memory,
    refuse_zero_weights,
    sample_weights,
    weights_differ,
)
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.expansion.kernel_expansion import KernelExpansion, TrainingKernel, bytes_of_pairs
from svmarrow.models.machine import Certificate, KernelMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from svmarrow._support.parameters import Decoding
    from svmarrow.expansion.kernel_expansion import KernelFunction

__all__ = [
    "COST",
    "DECODING_RULES",
    "SOLVER_RULES",
    "SupportVectorMachine",
    "Training",
    "check_certificate",
    "cost",
    "decoding_of",
    "feature_weights",
    "iterations_of_machines",
    "labelled",
]


#: Rules of the classifiers' parameters.
DECODING_RULES = {
    "class_weight": CLASS_WEIGHT,
    "multi_class": one_of("ovo", "ovr"),
    "decision_function_shape": one_of("ovo", "ovr"),
    "break_ties": boolean,
}


def feature_weights(expansion: KernelExpansion) -> Any:
    """Returns the read-only feature weights (n_outputs, d) of an expansion with the linear kernel."""
    vectors: Any = expansion.vectors
    if sp.issparse(vectors):
        weights = with_sparse_interface(type(vectors)(expansion.coefficients.T) @ vectors)
    else:
        weights = _core.linear_weights(core_rows(vectors), expansion.coefficients, threads(None))
    return read_only(weights)


def labelled(
    model: Any, y: NDArray[Any], sample_weight: Any
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Returns the classes, class indices, class weights, and the combined weight of each sample.

    A class whose samples all have weight 0 is not one of the classes, and the index of its samples is
    that of some other class.
    """
    classes, labels = encode_classes(y)
    given_weights = sample_weights(1.0 if sample_weight is None else sample_weight, labels.size)
    assert given_weights is not None
    # scikit-learn's SVC balances the classes by their number of samples, ignoring weights.
    by_class, weights = class_weights(model.class_weight, given_weights, classes, labels, counted=False)
    totals = np.bincount(labels, given_weights, minlength=classes.size)
    if not totals.all():
        refuse_zero_weights(given_weights)
        present = np.flatnonzero(totals)
        if present.size < 2:
            raise ValueError(
                f"sample_weight leaves the classes {classes[present].tolist()} of y: at least 2 classes "
                "need a sample of positive weight"
            )
        counts = np.isin(labels, present)
        labels = np.minimum(np.searchsorted(present, labels), present.size - 1)
        # A dict may name a class without weight, but "balanced" must not count its samples.
        classes, by_class = classes[present], by_class[present]
        if isinstance(model.class_weight, str):
            by_class = class_weights(model.class_weight, None, classes, labels[counts], counted=False)[0]
        weights = given_weights * by_class[labels]
    assert weights is not None
    check_every_class(classes, labels, weights)
    return classes, labels, by_class, weights


def decoding_of(model: Any, n_classes: int) -> Decoding:
    """Returns the decoding of a classifier with the parameter ``multi_class``."""
    decoding: Decoding = "binary" if n_classes == 2 else model.multi_class
    return decoding


def check_certificate(model: Any) -> None:
    """Checks the parts of a model from a file: its expansion, and a certificate of as many machines."""
    if getattr(model, "_coding", "") != "code":  # The owner of a code checks its outputs.
        Estimator._after_load(model)
    machines, outputs = len(model.certificate_.machines), model.expansion_.n_outputs
    if machines != outputs:
        raise ValueError(f"the certificate has {machines} machines, the expansion {outputs} outputs")


def iterations_of_machines(self: Any) -> NDArray[np.int64]:
    """Number of SMO steps of each machine (n_outputs,)."""
    self._check_fitted()
    return np.array([machine.iterations for machine in self.certificate_.machines], dtype=np.int64)


#: Rule of `C` if it may be infinite.
COST = either(
    real(above=0.0), Rule("inf", lambda value: isinstance(value, (float, np.floating)) and value == math.inf)
)
#: Stands for an infinite C, since larger coefficients lose the digits that distinguish samples.
_INFINITE_C = 1e15

#: Rules of the shared parameters.
SOLVER_RULES = {
    **kernel_rules(),
    "kernel": either(kernel_rules()["kernel"], function),
    "shrinking": boolean,
    "tol": real(above=0.0),
    "cache_size": either(none, real(above=0.0)),
    "warm_start": boolean,
    "max_iter": MAX_ITER,
    "max_time": MAX_TIME,
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}
#: Maximum number of multiplications for all kernel values of a fit that uses only the calling thread.
_MAX_SERIAL_MULTIPLICATIONS = 2_000_000
#: Cache budget in bytes of such a fit, which allocates only what it uses.
_SERIAL_CACHE_BYTES = 2**28


def cost(C: float) -> float:
    """Returns C for the solver."""
    return _INFINITE_C if math.isinf(C) else float(C)


class Training(NamedTuple):
    """The training rows: those of positive weight."""

    #: All rows.
    X: Any
    #: Increasing indices of the training rows; None for all.
    used: NDArray[np.intp] | None
    #: The training rows.
    rows: Any
    #: Their weights.
    weights: NDArray[np.float64]
    #: (kernel, gamma, coef0, degree).
    kernel: tuple[Any, float, float, int]

    def of_used(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns the values of the training rows as a contiguous array."""
        return np.ascontiguousarray(values if self.used is None else values[self.used])


class SupportVectorMachine(KernelMachine):
    """Base class of the support vector machines.

    A subclass stores its parameters, calls `_training` and `_solve` in `fit`, and interprets the outputs.
    """

    kernel: str | KernelFunction
    degree: int
    gamma: str | float
    coef0: float
    shrinking: bool
    tol: float
    cache_size: float | None
    warm_start: bool
    max_iter: int
    max_time: float | None
    verbose: bool | int

    #: gamma="scale" ignores sample weights, as in scikit-learn.
    _weighs_gamma: ClassVar[bool] = False
    #: Tuning of the solver for timing experiments, set on an instance: any of the sizes "block",
    #: "max_block", "nested_block", "cheap_kernel" and "min_subsampled" (see `Tuning` of the core), and
    #: whether to take Newton steps ("newton_steps"), to run the active-set method ("active_set") and to
    #: use the fast Gauss transform ("fast_sums"). The solution is the same.
    _tuning: ClassVar[Mapping[str, int] | None] = None

    support_: NDArray[np.int32]
    n_support_: NDArray[np.int32]
    shape_fit_: tuple[int, int]
    expansion_: KernelExpansion
    certificate_: Certificate

    def _validated(self, X: Any, y: Any = None, *, with_y: bool) -> Any:
        """Checks parameters and data; returns the validated X, with y if requested."""
        check({name: getattr(self, name) for name in self._rules}, self._rules)
        data = validated(self, X, y, reset=True, precomputed=self._is_precomputed(), with_y=with_y)
        self._check_training_rows(data[0] if with_y else data)
        return data

    @staticmethod
    def _weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
        """Returns one weight per row, not all zero."""
        weights = sample_weights(sample_weight, n)
        if weights is None:
            return np.ones(n)
        refuse_zero_weights(weights)
        return weights

    def _training(self, X: Any, weights: NDArray[np.float64]) -> Training:
        """Returns the rows of positive weight."""
        self._weighted = weights_differ(weights)
        precomputed = self._is_precomputed()
        used = np.flatnonzero(weights)
        is_full = used.size == weights.size
        kernel = self._trained_kernel()
        gamma = default_gamma(self.gamma, X, kernel=kernel)
        return Training(
            X,
            None if is_full else used,
            X if is_full else select_rows(X, used, precomputed=precomputed),
            np.ascontiguousarray(weights if is_full else weights[used], dtype=np.float64),
            (kernel, gamma, float(self.coef0), int(self.degree)),
        )

    def _trained_kernel(self) -> Any:
        """Returns the kernel of the rows that the solver gets."""
        return self.kernel

    def _solve(
        self,
        training: Training,
        machines: Sequence[int],
        fit: Callable[..., Any],
        *,
        start: tuple[NDArray[np.int64], NDArray[np.float64], None] | None,
    ) -> Any:
        """Runs ``fit(rows, kernel, solver)``, a function of the extension module."""
        n, d = map(int, training.rows.shape)
        # Looking up the free memory and the number of cores takes longer than a small fit.
        is_small = n * n * max(d, 8) <= _MAX_SERIAL_MULTIPLICATIONS
        if is_small:
            budget = (
                _SERIAL_CACHE_BYTES
                if self.cache_size is None
                else int(min(float(self.cache_size) * 2.0**20, _SERIAL_CACHE_BYTES))
            )
        else:
            budget = cache_bytes(self.cache_size)
        jobs = 1 if is_small and self.n_jobs is None else threads(self.n_jobs)
        kernel: Any = training.kernel
        if callable(kernel[0]):
            kernel = TrainingKernel(kernel[0], training.rows, asks_again=True)
        rows = core_rows(training.rows)
        if bytes_of_rows(training.rows) >= MIN_CHECKED_BYTES:
            least = _core.estimate_svm_memory(rows, n, kernel, list(machines), 0, jobs)["least"]
            refuse_beyond_memory(f"{type(self).__name__}.fit", least, "train on fewer samples")
        with progress(self.verbose) as reporter:
            reporter.stops_in, reporter.tolerance = ("fit", 0), float(self.tol)
            solver = {
                "tol": float(self.tol),
                "cache_bytes": budget,
                "shrinking": bool(self.shrinking),
                "max_iter": None if self.max_iter == -1 else int(self.max_iter),
                "max_time": None if self.max_time is None else float(self.max_time),
                "progress": reporter.callback,
                "n_jobs": jobs,
                "start": start,
                "tuning": self._tuning,
                "keep_interrupted": bool(self.warm_start),
            }
            fitted = fit(rows, kernel, solver)
        if isinstance(kernel, TrainingKernel):
            fitted["effort"]["kernel_values"] = kernel.computed
        return fitted

    def _start(
        self, training: Training, outputs: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], None] | None:
        """Returns the previous solution with ``warm_start`` if its shape is the same."""
        if not self.warm_start or not hasattr(self, "expansion_"):
            return None
        expansion = self.expansion_
        if self.shape_fit_ != training.X.shape or expansion.n_outputs != outputs:
            return None
        support = self.support_.astype(np.int64)
        coefficients = expansion.coefficients
        if training.used is not None:
            place = np.searchsorted(training.used, support)
            is_used = np.isin(support, training.used)
            support, coefficients = place[is_used].astype(np.int64), coefficients[is_used]
        return support, np.ascontiguousarray(coefficients), None

    def _fit_machines(self, training: Training, machines: Sequence[int], fit: Callable[..., Any]) -> Self:
        """Fits machines of the given numbers of variables whose outputs are not class scores."""
        fitted = self._solve(training, machines, fit, start=self._start(training, len(machines)))
        self._store(training, fitted, np.array([fitted["support"].size]))
        return self

    def _store(self, training: Training, fitted: Mapping[str, Any], counts: NDArray[Any]) -> None:
        """Stores the fitted model; warns if the fit ended early, and raises after Ctrl-C."""
        X = training.X
        support = fitted["support"] if training.used is None else training.used[fitted["support"]]
        vectors = support[:, np.newaxis].astype(np.float64) if self._is_precomputed() else X[support]
        self.expansion_ = KernelExpansion(
            vectors, fitted["coefficients"], fitted["intercepts"], *training.kernel
        )
        self.certificate_ = Certificate.of(fitted)
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.asarray(counts, dtype=np.int32)
        self.shape_fit_ = (int(X.shape[0]), int(X.shape[1]))
        certificate = self.certificate_
        # No warning if a callback has stopped the fit.
        if certificate.stop != "converged" and (fitted["interrupted"] or certificate.stop != "interrupted"):
            warn_caller(self._convergence_message(certificate), ConvergenceWarning)
        if fitted["interrupted"]:
            raise InterruptedFit(self)

    def _convergence_message(self, certificate: Certificate) -> str:
        """Returns the warning of a fit that did not converge."""
        more = "call fit again to continue" if self.warm_start else "continue with warm_start=True"
        remedy = f"{more}, raise max_iter or max_time, or scale the data"
        rounding = max((m.rounding for m in certificate.machines if m.stop == "stalled"), default=0.0)
        cause = ""
        if rounding > self.tol:
            cause = f", and rounding may have moved an output by {rounding:.3g}"
            remedy = "scale the data, lower C, or raise tol"
        return (
            f"{type(self).__name__} ended before the tolerance was reached ({certificate.stop}): the "
            f"violation is {certificate.violation:.3g} for tol={self.tol:g}, the duality gap "
            f"{certificate.gap:.3g} of {certificate.primal:.6g}{cause}. The model is usable; {remedy}"
        )

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        n = int(rows.shape[0])
        return self._memory_of(rows, n, self._machine_sizes(y, n))

    def _memory_of(self, rows: Any, n: int, machines: Sequence[int]) -> MemoryEstimate:
        """Estimates the memory of a fit to n such rows of machines with the given numbers of variables."""
        kernel = self.kernel if callable(self.kernel) else (self.kernel, 1.0, 0.0, 1)
        budget, jobs = cache_bytes(self.cache_size), threads(self.n_jobs)
        given = _core.estimate_svm_memory(core_rows(rows), n, kernel, list(machines), budget, jobs)
        least = given.pop("least")
        if pairs := bytes_of_pairs(rows):
            given["pairs"] = pairs
        return MemoryEstimate(sum(given.values()), least, given)

    def _machine_sizes(self, y: Any, n: int) -> list[int]:  # noqa: ARG002 - used by classifiers
        return [n]

    @property
    @consistent
    def coef_(self) -> Any:
        """Weights of the features (n_outputs, d), sparse after a sparse fit; only for the linear kernel.

        Read-only.
        """
        self._check_fitted()
        expansion = self.expansion_
        if callable(expansion.kernel) or expansion.kernel != "linear":
            raise AttributeError(f"coef_ exists for kernel='linear' only, this is {expansion.kernel!r}")
        return feature_weights(expansion)

    def _in_kind(self, matrix: NDArray[np.float64]) -> Any:
        """Returns the matrix, sparse if the vectors are."""
        vectors = self.expansion_.vectors
        return with_sparse_interface(type(vectors)(matrix)) if sp.issparse(vectors) else matrix

    @property
    def n_iter_(self) -> Any:
        """Number of SMO steps."""
        self._check_fitted()
        return self.certificate_.iterations

    @property
    def fit_status_(self) -> int:
        """0 if every machine reached the tolerance, else 1."""
        self._check_fitted()
        return int(self.certificate_.stop != "converged")

    @property
    @consistent
    def dual_coef_(self) -> Any:
        """Coefficients (n_outputs, n_vectors); sparse after a sparse fit."""
        return self._in_kind(super().dual_coef_)

    def _after_load(self) -> None:
        check_certificate(self)
        m, counts = self.expansion_.n_vectors, self.n_support_
        groups = len(getattr(self, "classes_", ("all",)))
        if (self.support_.shape, counts.shape) != ((m,), (groups,)) or (
            counts.sum() != m or min(counts.min(), self.support_.min(initial=0)) < 0
        ):
            raise ValueError(f"support_ and n_support_ do not describe {m} vectors")

    @property
    @consistent
    def support_vectors_(self) -> Any:
        """Support vectors (n_SV, d) as in the training data, (n_SV,) for objects; empty for the precomputed
        kernel.
        """
        self._check_fitted()
        if self._is_fitted_precomputed():
            return np.empty((0, 0))
        return with_sparse_interface(contents(self.expansion_.vectors))
