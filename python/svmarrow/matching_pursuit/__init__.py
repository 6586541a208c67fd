"""Kernel matching pursuit: sparse models learnt greedily from a dictionary of functions.

A *dictionary* is what there is to choose from: functions of a row, mostly k(., z) around the training rows
z. Each step adds one of them to the model. The variants differ in what becomes of the coefficients of those
that are there: nothing (basic); they are all set anew after the choice (*back-fitting*); the choice itself is
of the function after which, all set anew, the least error is left (*pre-fitting*). *Early stopping* takes the
size at which rows that were not trained on are predicted best.

| file | holds |
|---|---|
| `_dictionary` | the functions: kernels around points, functions of the caller, the constant |
| `_loss`, `_rules` | losses, rules of the parameters |
| `_base` | fitting, early stopping, prediction |
| `path` | every size of one fit, and the choice among them |
| `classification`, `regression` | the estimators |
"""

from svmarrow.matching_pursuit.path import MatchingPath

__all__ = ["MatchingPath"]
