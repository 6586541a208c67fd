"""Choosing C and gamma: a grid over folds as one job, as `RidgeCV` is to `Ridge`.

| estimator | chooses |
|---|---|
| `SVCCV` | C and gamma of `svmarrow.SVC` |
| `SVRCV` | C and gamma of `svmarrow.SVR` |
"""

from svmarrow.model_selection.classification import SVCCV
from svmarrow.model_selection.regression import SVRCV

__all__ = ["SVCCV", "SVRCV"]
