"""Regularized least squares: the square loss does as well as the hinge and costs one linear system.

| estimator | system |
|---|---|
| `RLSClassifier`, `RLSRegressor` | (K + alpha I) c = y over all training rows, exact |
| `fit_targets` | the same for a matrix of targets, one factorisation for all columns |
"""

from marrow.least_squares.classification import RLSClassifier
from marrow.least_squares.regression import RLSRegressor
from marrow.least_squares.targets import TargetFit, fit_targets

__all__ = ["RLSClassifier", "RLSRegressor", "TargetFit", "fit_targets"]
