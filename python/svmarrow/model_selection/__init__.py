"""Estimators that choose C and gamma by cross-validation, as `RidgeCV` does for `Ridge`.

| estimator | parameters that it chooses |
|---|---|
| `svmarrow.SVCCV` | C and gamma of `svmarrow.SVC` |
| `svmarrow.SVRCV` | C and gamma of `svmarrow.SVR` |
| `QuantileSVRCV` | C and gamma of `svmarrow.svm.QuantileSVR` |
"""

from svmarrow._support.displays import GridScoresDisplay
from svmarrow.model_selection.estimators import QuantileSVRCV

__all__ = ["GridScoresDisplay", "QuantileSVRCV"]
