"""Kernel matching pursuit: sparse models learned greedily from a dictionary of functions.

A *dictionary* is a set of functions, mostly k(., z) for the training samples z. Each step adds one of them to
the model. The variants differ in the coefficients of the previous functions: they are unchanged (basic), all
coefficients are refitted after the choice (*back-fitting*), or the choice minimizes the error after all
coefficients are refitted (*pre-fitting*). *Early stopping* chooses the size with the smallest loss on
validation samples.

| file | holds |
|---|---|
| `_dictionary` | kernels around points, user-defined functions, the constant; losses, rules of parameters |
| `_base` | fitting, early stopping, prediction |
| `path` | every size of one fit, and the choice among them |
| `estimators` | the estimators |
"""

from svmarrow.matching_pursuit.path import MatchingPath

__all__ = ["MatchingPath"]
