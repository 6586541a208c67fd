"""Several classes from binary machines: codes, decoders, and bounds of their error.

| name | what |
|---|---|
| `svmarrow.CodedClassifier` | any binary classifier under any code, decoded in any way |
| `Code`, `make_code` | codes, their distances, and how they are made |
| `svmarrow.multiclass.bounds` | leave-one-out and stability bounds, each with its assumptions and equation |
| `overlap_matrix`, `binary_errors`, `reverse_cumulative` | how alike codes err |
| `OverlapDisplay`, `BinaryErrorDisplay` | their drawings |

Source: R. Rifkin, "Everything Old Is New Again", MIT 2002, chapter 4 and sections 5.1, 5.2 and 5.4.
"""

from svmarrow._support.codes import Code, make_code
from svmarrow.multiclass import bounds
from svmarrow.multiclass.study import (
    BinaryErrorDisplay,
    OverlapDisplay,
    binary_errors,
    overlap_matrix,
    reverse_cumulative,
)

__all__ = [
    "BinaryErrorDisplay",
    "Code",
    "OverlapDisplay",
    "binary_errors",
    "bounds",
    "make_code",
    "overlap_matrix",
    "reverse_cumulative",
]
