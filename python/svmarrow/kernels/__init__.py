"""Kernels of samples that are no rows of numbers: series of vectors, and strings.

| name | samples |
|---|---|
| `GlobalAlignment` | series of vectors, of any lengths |
| `Subsequence` | strings of characters, bytes or integers, of any lengths |
| `PreparedObjects` | samples in the form in which a kernel computes |

A kernel is a function of two blocks of samples, ``kernel(A, B)``, of shape (n_samples_A, n_samples_B).
"""

from svmarrow.kernels._sequences import PreparedObjects
from svmarrow.kernels.alignment import GlobalAlignment
from svmarrow.kernels.subsequence import Subsequence

__all__ = ["GlobalAlignment", "PreparedObjects", "Subsequence"]
