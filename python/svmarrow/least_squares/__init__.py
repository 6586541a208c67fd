"""Regularized least squares: the square loss does as well as the hinge and costs one linear system.

| estimator | system |
|---|---|
| `svmarrow.RLSClassifier`, `svmarrow.RLSRegressor` | (K + alpha I) c = y over all training rows, exact |
| `LinearRLSClassifier`, `LinearRLSRegressor` | the linear kernel: primal, dual or conjugate gradients |
| `LowRankRLSClassifier`, `LowRankRLSRegressor` | coefficients at a few vectors |
| `fit_targets` | the same for a matrix of targets, one factorization for all columns |
"""

from svmarrow.least_squares.estimators import LowRankRLSClassifier, LowRankRLSRegressor
from svmarrow.least_squares.linear import LinearRLSClassifier, LinearRLSRegressor
from svmarrow.least_squares.targets import TargetFit, fit_targets

__all__ = [
    "LinearRLSClassifier",
    "LinearRLSRegressor",
    "LowRankRLSClassifier",
    "LowRankRLSRegressor",
    "TargetFit",
    "fit_targets",
]
