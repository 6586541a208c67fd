"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `sizes` | what paths share: scores, the choice of a size |
| `path` | every size of a greedy compression |
| `selection` | settings of the methods that look at the whole kernel matrix |
| `construction` | new vectors, moved by their gradient |
| `gradient_path` | the sizes of one construction |
| `quantization` | single precision vectors and coefficients of one byte, with their measured cost |
| `compression` | `compress` and `compression_path`, the doors to all |
| `task` | what they are asked for, and the path that answers it |
| `automatic` | ``method="auto"``: several ways, judged on rows held out |
| `judge` | what a small model loses against the full one, with confidence |
| `memory` | what a compression takes of the memory |
| `cost` | time a row, measured and as a line in the size |
| `score` | scores of many sizes at once |
| `baseline` | machines trained on fewer rows, to compare with |
| `wrapper` | what meta-estimators around a classifier share |
| `estimator` | `ReducedSet`, compression inside pipelines and grid searches |
"""

from svmarrow._support.size_accuracy import SizeAccuracyDisplay
from svmarrow.reduced_set.baseline import subsample_baseline
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.gradient_path import GradientPath
from svmarrow.reduced_set.memory import estimate_memory
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.quantization import Quantization
from svmarrow.reduced_set.selection import SelectionSettings

__all__ = [
    "CompressionPath",
    "GradientPath",
    "GradientSettings",
    "Quantization",
    "SelectionSettings",
    "SizeAccuracyDisplay",
    "estimate_memory",
    "subsample_baseline",
]
