"""Kernel matching pursuit: sparse models learnt greedily from a dictionary of functions.

| file | holds |
|---|---|
| `_dictionary` | the functions: kernels around points, functions of the caller, the constant |
| `_loss`, `_rules` | losses, rules of the parameters |
| `_base` | fitting, early stopping, prediction |
| `path` | every size of one fit, and the choice among them |
| `classification`, `regression` | the estimators |
"""

from svmarrow.matching_pursuit.classification import KMPClassifier
from svmarrow.matching_pursuit.path import MatchingPath
from svmarrow.matching_pursuit.regression import KMPRegressor

__all__ = ["KMPClassifier", "KMPRegressor", "MatchingPath"]
