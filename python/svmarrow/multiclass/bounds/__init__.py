"""Bounds of the error of coded machines without a test set, each with its terms.

Every function gives a `Bound`: the value, the equation, what is assumed, and the quantities that went in.
Equations are those of R. Rifkin, "Everything Old Is New Again", MIT 2002; where its print is wrong the note
of the function states what is implemented instead.

| function | equation | bounds |
|---|---|---|
| `leave_one_out` | (4.60), (4.63) | the leave-one-out error of a multiclass model |
| `training_error` | (4.51), (4.53) | the training error by the losses of the machines |
| `stability` | (5.8) | how far one row moves a loss |
| `bagging_stability` | (5.27) | how far one row moves an average over disjoint chunks |
| `generalization` | (5.5) | the expected loss of a stable learner |
| `multiclass_generalization` | (5.34) | the error rate of a coded model of stable machines |
"""

from svmarrow.multiclass.bounds.errors import LeaveOneOutBound, leave_one_out, training_error
from svmarrow.multiclass.bounds.model import multiclass_generalization_of
from svmarrow.multiclass.bounds.stability import (
    Bound,
    admissibility,
    bagging_stability,
    generalization,
    multiclass_generalization,
    ramp_loss,
    stability,
)

__all__ = [
    "Bound",
    "LeaveOneOutBound",
    "admissibility",
    "bagging_stability",
    "generalization",
    "leave_one_out",
    "multiclass_generalization",
    "multiclass_generalization_of",
    "ramp_loss",
    "stability",
    "training_error",
]
