"""Bounds of the error of coded machines, and the correlation of the errors of codes.

Every bound is a `Bound`: the value, the equation, the assumptions, and the quantities it was computed from.
Where the print of an equation is wrong, the notes of the function state what is implemented instead.

| function | equation | bounds |
|---|---|---|
| `leave_one_out` | (4.60), (4.63) | the leave-one-out error of a multiclass model |
| `training_error` | (4.51), (4.53) | the training error by the losses of the machines |
| `stability` | (5.8) | the change of a loss when one sample is removed |
| `bagging_stability` | (5.27) | the same for an average over disjoint chunks |
| `generalization` | (5.5) | the expected loss of a stable learner |
| `multiclass_generalization` | (5.34) | the error rate of a coded model of stable machines |

`overlap_matrix`, `binary_errors` and `reverse_cumulative` measure how far codes make the same errors (section
4.5); `OverlapDisplay` and `BinaryErrorDisplay` draw it.

Source: R. Rifkin, "Everything Old Is New Again", MIT 2002, chapters 4 and 5.
"""

from svmarrow.papers.rifkin.stability import (
    Bound,
    admissibility,
    bagging_stability,
    generalization,
    multiclass_generalization,
    multiclass_generalization_of,
    ramp_loss,
    stability,
)
from svmarrow.papers.rifkin.study import (
    BinaryErrorDisplay,
    LeaveOneOutBound,
    OverlapDisplay,
    binary_errors,
    leave_one_out,
    overlap_matrix,
    reverse_cumulative,
    training_error,
)

__all__ = [
    "BinaryErrorDisplay",
    "Bound",
    "LeaveOneOutBound",
    "OverlapDisplay",
    "admissibility",
    "bagging_stability",
    "binary_errors",
    "generalization",
    "leave_one_out",
    "multiclass_generalization",
    "multiclass_generalization_of",
    "overlap_matrix",
    "ramp_loss",
    "reverse_cumulative",
    "stability",
    "training_error",
]
