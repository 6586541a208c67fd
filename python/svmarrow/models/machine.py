"""Base class of the estimators with a kernel: checks, tags, the fitted expansion, its model, certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_non_negative

from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import consistent
from svmarrow._support.rows import product, validated
from svmarrow._support.schemas import savable
from svmarrow._support.training import check_kernel_matrix
from svmarrow.expansion.gradients import HAS_GRADIENT, importances
from svmarrow.models.base import compiled as compiled_method
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from svmarrow._support.training import MemoryEstimate
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import CompiledModel, ExpansionModel

__all__ = [
    "Certificate",
    "ColumnMixer",
    "ColumnTrainer",
    "Columns",
    "KernelMachine",
    "LeaveOneOut",
    "MachineCertificate",
    "model_of",
]


# --- protocols of the families whose binary machines are trained together for several classes ---
# A code is a matrix with a row for each class and a column for each binary machine: +1 for the classes on
# the machine's positive side, -1 for those on its negative side, 0 for those that it never sees. Machines
# of one family have work in common (kernel rows, a factorization), so that all columns cost far less than
# one by one. `svmarrow.multiclass` uses a family by these protocols alone.


class Columns(NamedTuple):
    """The machines of all columns of a code."""

    #: Their outputs, one for each column.
    expansion: KernelExpansion
    #: Training rows that are vectors of the expansion; None where that is not known.
    support: NDArray[np.int64] | None = None
    #: Certificate of the solution; None if the solver has none.
    certificate: Certificate | None = None
    #: Outputs at each training row of machines trained without it, (n, columns); None where not known.
    left_out: NDArray[np.float64] | None = None

    def mixed(self, weights: NDArray[np.float64]) -> Self:
        """Machines whose outputs are these times a matrix (columns, new columns)."""
        of, left = self.expansion, self.left_out
        outputs = of.replaced(
            coefficients=product(of.coefficients, weights), intercepts=product(of.intercepts, weights)
        )
        kept = None if left is None else product(left, weights)
        return type(self)(outputs, self.support, self.certificate, kept)

    def spread(self, which: NDArray[np.intp], signs: NDArray[np.float64]) -> Self:
        """Machines that are these, or their opposites: column j is number ``which[j]`` times ``signs[j]``."""
        of, left = self.expansion, self.left_out
        if np.array_equal(which, np.arange(of.n_outputs)) and (signs > 0).all():
            return self
        outputs = of.replaced(
            coefficients=of.coefficients[:, which] * signs, intercepts=of.intercepts[which] * signs
        )
        left = None if left is None else left[:, which] * signs
        return type(self)(outputs, self.support, self.certificate, left)


@runtime_checkable
class ColumnTrainer(Protocol):
    """A classifier that trains the machines of many columns together."""

    def _fit_columns(
        self, X: Any, y: NDArray[Any], matrix: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Columns | None:
        """The machines of a code (n_classes, columns), rows in the order of the sorted labels; None, and
        nothing done, for a code whose columns have nothing in common.
        """

    def _column_memory(
        self, X: Any, matrix: NDArray[np.int8], counts: NDArray[np.int64]
    ) -> MemoryEstimate | None:
        """Memory of `_fit_columns` for classes of `counts` samples."""


@runtime_checkable
class ColumnMixer(Protocol):
    """A classifier with solutions linear in the targets: one-vs-rest gives every column without zeros."""

    def _columns(self, matrix: NDArray[np.int8]) -> Columns:
        """The machines of a code without zeros, without training."""


def model_of(machine: Any) -> ExpansionModel:
    """The model that a fitted machine predicts with; a TypeError with the reason for one that has none."""
    try:
        expansion: KernelExpansion = machine.expansion_
    except AttributeError as error:
        name = type(machine).__name__
        if not hasattr(type(machine), "expansion_"):
            raise TypeError(
                f"{name} is not a kernel expansion: svmarrow.distil(model, X, y) trains one that imitates it"
            ) from None
        raise TypeError(f"a {name} is not one kernel expansion: {error}") from None
    about: dict[str, Any] = {
        "feature_names": getattr(machine, "feature_names_in_", None),
        "n_features": machine.n_features_in_,
        "weighted": machine._weighted,
        "n_jobs": machine.n_jobs,
    }
    if isinstance(machine, ClassifierOutputMixin):
        return ExpansionClassifier(
            expansion,
            machine.classes_,
            machine._decoding,
            decision_function_shape=machine.decision_function_shape,
            break_ties=machine.break_ties,
            **about,
        )
    if isinstance(machine, RegressorOutputMixin):
        return ExpansionRegressor(expansion, flat=machine._single, **about)
    return ExpansionDetector(expansion, **about)


class KernelMachine(Estimator):
    """An estimator with a kernel (a name, a function or a list) whose fit gives a kernel expansion."""

    kernel: Any
    n_jobs: int | None
    n_features_in_: int
    expansion_: KernelExpansion
    _stored_as: ClassVar[dict[str, str]] = {"_weighted": "weighted_"}
    #: Whether a precomputed kernel must be symmetric.
    _needs_symmetry: ClassVar[bool] = True

    def _kernel_names(self) -> list[str]:
        kernels = self.kernel if isinstance(self.kernel, (list, tuple)) else [self.kernel]
        return [name for name in kernels if isinstance(name, str)]

    def _is_precomputed(self) -> bool:
        return "precomputed" in self._kernel_names()

    def _check_training_rows(self, X: Any) -> None:
        """Refuses rows that the kernel is not defined for."""
        if self._is_precomputed():
            check_kernel_matrix(X, symmetric=self._needs_symmetry)
        self._check_domain(X)

    def _check_domain(self, X: Any) -> None:
        if "chi2" in self._kernel_names():
            check_non_negative(X, f"{type(self).__name__} with kernel='chi2'")

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        self._check_fitted()
        precomputed = self._is_fitted_precomputed()
        return self.expansion_._evaluate(
            validated(self, X, reset=False, precomputed=precomputed), self.n_jobs
        )

    def _is_fitted_precomputed(self) -> bool:
        kernel = self.expansion_.kernel
        return isinstance(kernel, str) and kernel == "precomputed"

    @consistent
    def as_expansion(self) -> Any:
        """The fitted model without the training: a classifier, regressor or detector made of an expansion."""
        check_is_fitted(self)
        return model_of(self)

    compiled: ClassVar[Callable[..., CompiledModel]] = compiled_method

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients (n_outputs, n_vectors), for one output too.

        The shape that scikit-learn's ``SVC`` and ``SVR`` have, so that one rule holds for classifiers and
        regressors; ``KernelRidge`` has the transpose.
        """
        self._check_fitted()
        return self.expansion_.coefficients.T

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts (n_outputs,); zeros without one."""
        self._check_fitted()
        return self.expansion_.intercepts

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Shares of the features in the squared derivatives of the outputs, (n_features_in_,).

        The mean square over the vectors of the model (at most 1,000 of them) of the derivative of all outputs
        with respect to a feature, times the variance of the feature there, so that units do not matter. The
        shares add up to 1. The kernels "rbf", "matern32", "matern52", "poly" and "linear" have it, for
        `SelectFromModel` and `RFE`.
        """
        self._check_fitted()
        expansion = self.expansion_
        for part in expansion.parts:
            if not isinstance(part.kernel, str) or part.kernel not in HAS_GRADIENT:
                names = ", ".join(HAS_GRADIENT)
                raise AttributeError(
                    f"feature_importances_ exists for the kernels {names} only, this is {part.kernel!r}"
                )
        return importances(expansion, self.n_jobs)

    def _check_fitted(self) -> None:
        """Raises `NotFittedError` before `fit`. scikit-learn's own check takes longer, it builds tags."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.positive_only = "chi2" in self._kernel_names()
        return tags


# --- certificates of fits: objectives, duality gap, violation of the optimality conditions, counts, cost ---


@savable("leave-one-out/1")
@dataclass(frozen=True)
class LeaveOneOut:
    """Upper bounds for the leave-one-out errors of a binary machine."""

    #: Number of samples of the positive class.
    positive: int
    #: Number of samples of the negative class.
    negative: int
    #: Jaakkola and Haussler's bound for the errors; None for machines with an intercept.
    bound: int | None
    #: Joachims' xi-alpha bound for the errors on positive samples.
    missed: int
    #: Joachims' xi-alpha bound for the errors on negative samples.
    false_alarms: int
    #: Whether a support vector lies below C; otherwise xi-alpha counts all samples if there is an intercept.
    stable: bool


@savable("machine-certificate/1")
@dataclass(frozen=True)
class MachineCertificate:
    """Certificate of one binary machine, computed from its gradients at the end of the fit.

    Objectives are those of the maximization form, so that dual <= optimum <= primal. The dual objective is
    lowered, and the primal one raised, by the possible rounding error of kernel values and sums. The effect
    of kernel values in single precision is measured on a sample of the outputs; if it may reach an eighth of
    ``tol``, the fit continues in double precision, whose effect is bounded by its worst case.
    """

    #: sum alpha - 1/2 alpha'Q alpha, minus the possible rounding error.
    dual: float
    #: 1/2 ||w||^2 + sum C_i max(0, 1 - y_i f(x_i)), plus the possible rounding error. If the gap
    #: is a large share because C is huge, it is a smaller upper bound of the optimum: the objective of the
    #: multiple of f without violations, or with a smaller C of the same solution.
    primal: float
    #: primal - dual: the distance of both from the optimum is at most this.
    gap: float
    #: Largest violation of the optimality conditions, in units of f; at most ``tol`` after convergence, for
    #: `OneClassSVM` times the sum of the coefficients if that is below 1.
    violation: float
    #: Number of SMO steps.
    iterations: int
    #: Number of blocks of variables that were solved.
    rounds: int
    #: Number of support vectors of this machine.
    support: int
    #: Number of support vectors at their upper bound.
    bounded: int
    #: "converged", "max_iter", "max_time", "interrupted" or "stalled". A machine has converged if the
    #: violation is within the tolerance and the gap at most a tenth of the primal objective, unless it is 0.
    stop: str
    #: Bounds for the leave-one-out errors of `SVC`; else None.
    leave_one_out: LeaveOneOut | None = None
    #: Length of the interval in which the intercept may lie at the optimum, in units of f; 0 where a support
    #: vector lies below its bound, and without intercept.
    intercept_range: float = 0.0
    #: Possible rounding error of an output, in units of f; the objectives account for it.
    rounding: float = 0.0


@savable("certificate/1")
@dataclass(frozen=True)
class Certificate:
    """Certificate of a fit, summed over its machines (``violation`` is the largest), and its cost.

    As a string it is five lines.
    """

    #: Certificate of each binary machine, in the order of the outputs.
    machines: tuple[MachineCertificate, ...]
    #: Number of kernel values computed.
    kernel_values: int
    #: Number of kernel rows found in the cache.
    cache_hits: int
    #: Number of kernel rows computed.
    cache_misses: int
    #: Wall-clock seconds.
    seconds: float

    @property
    def dual(self) -> float:
        """Sum of the dual objectives."""
        return sum(machine.dual for machine in self.machines)

    @property
    def primal(self) -> float:
        """Sum of the primal objectives."""
        return sum(machine.primal for machine in self.machines)

    @property
    def gap(self) -> float:
        """Sum of the duality gaps."""
        return sum(machine.gap for machine in self.machines)

    @property
    def violation(self) -> float:
        """Largest violation of the optimality conditions of any machine."""
        return max(machine.violation for machine in self.machines)

    @property
    def iterations(self) -> int:
        """Number of SMO steps of all machines."""
        return sum(machine.iterations for machine in self.machines)

    @property
    def rounds(self) -> int:
        """Number of blocks solved by all machines."""
        return sum(machine.rounds for machine in self.machines)

    @property
    def stop(self) -> str:
        """Why the first machine that did not converge stopped, or "converged"."""
        return next((m.stop for m in self.machines if m.stop != "converged"), "converged")

    @property
    def cache_hit_rate(self) -> float:
        """Share of the kernel rows that were found in the cache; 0 if none was needed."""
        asked = self.cache_hits + self.cache_misses
        return self.cache_hits / asked if asked else 0.0

    def __str__(self) -> str:
        n_machines, share = len(self.machines), abs(self.gap / self.primal) if self.primal else 0.0
        ended = "converged" if self.stop == "converged" else f"ended early ({self.stop})"
        machines = "" if n_machines == 1 else f", {n_machines} binary machines"
        return "\n".join(
            [
                f"{ended} after {self.iterations:,} steps in {self.seconds:.3g} s{machines}",
                f"dual objective     {self.dual:.10g}",
                f"primal objective   {self.primal:.10g}",
                f"duality gap        {self.gap:.3g} ({100.0 * share:.2g} % of the primal objective)",
                f"largest violation  {self.violation:.3g}",
            ]
        )

    @classmethod
    def of(cls, fitted: Mapping[str, Any]) -> Certificate:
        """Creates the certificate from the result of the extension module."""
        certificates = fitted["certificates"]
        estimates = fitted.get("leave_one_out") or [None] * len(certificates)
        machines = tuple(
            MachineCertificate(**machine, leave_one_out=None if rows is None else LeaveOneOut(**rows))
            for machine, rows in zip(certificates, estimates, strict=True)
        )
        return cls(machines=machines, **fitted["effort"])
