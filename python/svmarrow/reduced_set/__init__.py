"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `compression` | `compress`: six steps |
| `samples` | samples to learn from, and samples held out |
| `proposals` | the sizes and methods that are tried |
| `choice`, `size_search` | the choice among them |
| `holdout`, `loss_bounds` | what a small model loses against the full one; upper bounds |
| `paths` | `compression_path`: every size, by any method |
| `path`, `path_numbers` | the sizes of a selection, or of a construction |
| `construction` | vectors moved by gradient steps |
| `selection` | settings of the selections |
| `sizes`, `score`, `timing` | what paths share: scores, the choice of a size, measured times |
| `threshold` | thresholds of compressed models |
| `effective_clusters` | a warning where few vectors cannot be enough |
| `quantization`, `rounding` | numbers of fewer bytes, with their measured cost |
| `memory` | an estimate of the memory that a compression takes |
| `baseline` | machines trained on fewer samples, to compare with |
| `wrapper`, `estimator` | meta-estimators; `ReducedSet` |
"""

from svmarrow._support.size_accuracy import SizeAccuracyDisplay
from svmarrow.reduced_set.baseline import subsample_baseline
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.memory import estimate_memory
from svmarrow.reduced_set.path import CompressionPath, GradientPath
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
