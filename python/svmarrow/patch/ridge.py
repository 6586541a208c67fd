"""Kernel ridge regression with the signature and manners of scikit-learn's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn import kernel_ridge as originals
from sklearn.base import _fit_context

from svmarrow._support.atomic import atomic_fit, consistent
from svmarrow._support.parameters import Rule, integer, one_of, real
from svmarrow.least_squares import RLSRegressor
from svmarrow.patch.drop_in import DropIn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KernelRidge"]

#: Of scikit-learn's pairwise kernels, those that an expansion has, by svmarrow's names.
KERNELS = {name: name for name in ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed")}
KERNELS["polynomial"] = "poly"


class KernelRidge(DropIn, RLSRegressor, originals.KernelRidge, original=originals.KernelRidge):  # noqa: D101
    # svmarrow's parameters that scikit-learn does not have.
    alphas: Any = None
    fit_intercept: Any = False
    leave_one_out: Any = False
    solver: Any = "cholesky"
    max_time: Any = None
    n_jobs: Any = None
    verbose: Any = False

    kernel: Any
    gamma: Any

    _rules: ClassVar[Mapping[str, Rule]] = {
        "kernel": one_of(*KERNELS),
        "alpha": real(least=0.0),
        "degree": integer(least=0, most=2**31 - 1),
        "coef0": real(),
    }

    @atomic_fit
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, as scikit-learn's class does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or (n_samples, n_samples) values of a precomputed kernel.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Target values.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Individual weights for each sample.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._fit_or_hand_over(super().fit, X, y, sample_weight)

    def _kernel(self, X: Any, weights: NDArray[np.float64] | None = None) -> tuple[Any, float, float, int]:  # noqa: ARG002
        kernel: Any = KERNELS[self.kernel]
        if kernel == "chi2" and self.gamma is None:
            raise ValueError("gamma=None is not allowed: kernel='chi2' needs a number")
        # pairwise_kernels leaves None to the kernels, which take 1 / n_features.
        gamma = 1.0 / float(X.shape[1]) if self.gamma is None else float(self.gamma)
        return kernel, gamma, float(self.coef0), int(self.degree)

    # Bases of both put scikit-learn's own before that of svmarrow.
    predict = RLSRegressor.predict

    @property
    @consistent
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients, (n_samples,) or (n_samples, n_targets) as the targets were."""
        return self._shaped(self.expansion_.coefficients)

    @property
    def X_fit_(self) -> Any:  # noqa: N802 - scikit-learn's name
        """Training data; for a precomputed kernel its row numbers, which are all that is kept."""
        return self.expansion_.vectors
