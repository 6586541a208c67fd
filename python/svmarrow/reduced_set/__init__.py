"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `compression` | `compress`: the split of the samples, the choice among what is tried |
| `proposals` | the sizes and methods that are tried |
| `holdout` | the loss of small models on samples held out, its upper bounds, the search for a size |
| `paths` | `compression_path`: every size, by any method |
| `path` | the sizes of a selection, or of a construction |
| `construction` | vectors moved by gradient steps |
| `selection` | settings of the selections |
| `output_scale` | scales of a regressor's outputs |
| `sizes` | the base class of the paths: scores, the choice of a size, measured times |
| `score` | goals, scores and the checks of a compression |
| `threshold` | thresholds of compressed models |
| `effective_clusters` | a warning where few vectors cannot be enough |
| `quantization`, `rounding` | numbers of fewer bytes, with their measured cost |
| `memory` | an estimate of the memory that a compression takes |
| `baseline` | models trained on fewer samples, for comparison |
| `wrapper`, `estimator` | meta-estimators; `ReducedSet` |
"""

from svmarrow._support.displays import SizeAccuracyDisplay
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.holdout import subsample_baseline
from svmarrow.reduced_set.path import CompressionPath, GradientPath
from svmarrow.reduced_set.paths import estimate_memory
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
