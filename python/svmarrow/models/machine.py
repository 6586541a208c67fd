"""Base class of the estimators with a kernel: checks, tags, the fitted expansion and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_non_negative

from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import consistent
from svmarrow._support.rows import product, validated
from svmarrow._support.training import check_kernel_matrix
from svmarrow.expansion.gradients import HAS_GRADIENT, importances
from svmarrow.models.base import compiled as compiled_method
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.outputs import ClassifierOutputMixin, RegressorOutputMixin

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow._support.training import MemoryEstimate
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import CompiledModel, ExpansionModel


__all__ = [
    "ColumnMixer",
    "ColumnTrainer",
    "Columns",
    "KernelMachine",
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
