"""Kernel ridge regression with the signature and behavior of scikit-learn's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn import kernel_ridge as originals
from sklearn.base import _fit_context

from svmarrow._support.parameters import Rule, atomic_fit, consistent, integer, one_of, real
from svmarrow._support.rows import as_rows, validated
from svmarrow.interop.sklearn_models import PAIRWISE
from svmarrow.least_squares.estimators import RLSRegressor
from svmarrow.models.expansion_models import ExpansionRegressor
from svmarrow.patch.replacement import Replacement, like

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["KernelRidge"]


class KernelRidgeTrainer(RLSRegressor):
    """Trains `KernelRidge`."""

    _rules: ClassVar[Mapping[str, Rule]] = {
        "kernel": one_of(*PAIRWISE),
        "alpha": real(least=0.0),
        "degree": integer(least=0, most=2**31 - 1),
        "coef0": real(),
    }

    def _kernel(self, X: Any, weights: NDArray[np.float64] | None = None) -> tuple[Any, float, float, int]:  # noqa: ARG002
        kernel: Any = PAIRWISE[self.kernel]  # type: ignore[index]
        given: Any = self.gamma
        if kernel == "chi2" and given is None:
            raise ValueError("gamma=None is not allowed: kernel='chi2' needs a number")
        # pairwise_kernels leaves None to the kernels, which take 1 / n_features.
        gamma = 1.0 / float(X.shape[1]) if given is None else float(given)
        return kernel, gamma, float(self.coef0), int(self.degree)


class KernelRidge(Replacement, originals.KernelRidge, original=originals.KernelRidge):  # noqa: D101 - the original's
    kernel: Any
    dual_coef_: NDArray[np.float64]
    X_fit_: Any
    expansion_: KernelExpansion

    @like(originals.KernelRidge)
    @atomic_fit
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: D102
        return self._fit_or_fall_back(self._fit_here, X, y, sample_weight)

    def _fit_here(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fits with svmarrow, and keeps what scikit-learn keeps."""
        trained = KernelRidgeTrainer(
            alpha=self.alpha,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            leave_one_out=False,
        )
        trained.fit(X, y, sample_weight)
        self.expansion_ = trained.expansion_
        self._weighted = trained._weighted
        self.dual_coef_ = trained._shaped(trained.expansion_.coefficients)
        self._keep_columns(trained)
        # The expansion of a precomputed kernel has row numbers in the place of rows.
        self.X_fit_ = as_rows(X) if self.kernel == "precomputed" else trained.expansion_.vectors

    @like(originals.KernelRidge)
    @consistent
    def predict(self, X: Any) -> Any:  # noqa: D102
        if not self._is_ours():
            return super().predict(X)
        rows = validated(self, X, reset=False, precomputed=self.kernel == "precomputed")
        outputs = self.expansion_._evaluate(rows, None)
        return outputs[:, 0] if self.dual_coef_.ndim == 1 else outputs

    def _expansion_model(self) -> ExpansionRegressor:
        return ExpansionRegressor(
            self.expansion_,
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=self.n_features_in_,
            flat=self.dual_coef_.ndim == 1,
            weighted=self._weighted,
        )
