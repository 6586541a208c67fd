"""What the exact estimators share: the fit, and what leaving rows out tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marrow._params import THREADS, boolean, either, function, integer, kernel_rules, real
from marrow.least_squares._base import LeastSquares
from marrow.least_squares.targets import solve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from marrow.least_squares.targets import TargetFit

__all__ = ["EXACT_RULES", "ExactLeastSquares"]

EXACT_RULES = {
    **kernel_rules(),
    "kernel": either(kernel_rules()["kernel"], function),
    "alpha": real(least=0.0),
    "fit_intercept": boolean,
    "leave_one_out": boolean,
    "n_jobs": THREADS,
    "verbose": either(boolean, integer(least=0)),
}


class ExactLeastSquares(LeastSquares):
    """Base of `RLSClassifier` and `RLSRegressor`."""

    alpha: float
    fit_intercept: bool
    leave_one_out: bool

    alpha_: float
    gcv_: NDArray[np.float64]

    def _solve(self, X: Any, targets: NDArray[np.float64]) -> TargetFit:
        fit = solve(
            X,
            targets,
            float(self.alpha),
            self._kernel(X),
            fit_intercept=bool(self.fit_intercept),
            leave_one_out=bool(self.leave_one_out),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.expansion_ = fit.expansion
        self.alpha_ = float(self.alpha)
        if fit.gcv is not None:
            self.gcv_ = fit.gcv
        return fit
