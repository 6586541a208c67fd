"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `compression` | `compress`: the sizes and methods that are tried, the choice among them |
| `holdout` | samples held out, the loss of small models on them, its bounds, the search for a size |
| `paths` | `compression_path`: every size, by any method; the memory that a compression takes |
| `path` | the sizes of a selection, or of a construction; their scores and measured times |
| `construction` | vectors moved by gradient steps |
| `selection` | settings of the selections, features for kernels that the core does not select with |
| `score` | goals, scores, checks and thresholds |
| `quantization` | numbers of fewer bytes, with their measured cost |
| `estimator` | meta-estimators; `ReducedSet` |
"""

from svmarrow._support.displays import SizeAccuracyDisplay
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.holdout import subsample_baseline
from svmarrow.reduced_set.path import CompressionPath, GradientPath
from svmarrow.reduced_set.paths import estimate_memory
from svmarrow.reduced_set.selection import SelectionSettings

__all__ = [
    "CompressionPath",
    "GradientPath",
    "GradientSettings",
    "SelectionSettings",
    "SizeAccuracyDisplay",
    "estimate_memory",
    "subsample_baseline",
]
