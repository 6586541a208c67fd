"""Base class of the estimators with a kernel: checks, tags, the fitted expansion and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted, check_non_negative

from svmarrow._support.atomic import consistent
from svmarrow._support.estimator import Estimator
from svmarrow._support.rows import validated
from svmarrow._support.symmetry import check_kernel_matrix
from svmarrow.expansion.gradients import HAS_GRADIENT, importances
from svmarrow.models import compiled as compilation
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.output_mixins import ClassifierOutputMixin, RegressorOutputMixin
from svmarrow.models.regressor import ExpansionRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import ExpansionModel
    from svmarrow.models.compiled import CompiledModel

__all__ = ["KernelMachine", "model_of"]


def model_of(machine: Any) -> ExpansionModel:
    """The model that a fitted machine predicts with; a TypeError with the reason for one that has none."""
    try:
        expansion: KernelExpansion = machine.expansion_
    except AttributeError as error:
        name = type(machine).__name__
        if not hasattr(type(machine), "expansion_"):
            raise TypeError(f"a {name} is not a kernel expansion") from None
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

    compiled: ClassVar[Callable[..., CompiledModel]] = compilation.compiled

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
        kernel = self.expansion_.kernel
        if not isinstance(kernel, str) or kernel not in HAS_GRADIENT:
            names = ", ".join(HAS_GRADIENT)
            raise AttributeError(
                f"feature_importances_ exists for the kernels {names} only, this is {kernel!r}"
            )
        return importances(self.expansion_, self.n_jobs)

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
