"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `convert` | any fitted model as a kernel expansion |
| `path` | every size of a greedy compression, and the choice among them |
| `selection` | settings of the methods that look at the whole kernel matrix |
| `construction` | new vectors, moved by their gradient |
| `made_path` | the sizes of one construction |
| `compact` | single precision vectors and coefficients of one byte, with their measured cost |
| `compression` | `compress`, the door to all |
| `cascade` | the small model answers where its label is certainly the full model's |
| `calibrated` | the small model answers where its margin is large enough, by a statistical bound |
| `cost` | time a row, measured and as a line in the size |
| `score` | scores of many sizes at once |
| `estimator` | `ReducedSet`, compression inside pipelines and grid searches |
"""

from svmarrow.classifier import ExpansionClassifier
from svmarrow.reduced_set._cascade import CascadeReport
from svmarrow.reduced_set.calibrated import CalibratedCascade
from svmarrow.reduced_set.cascade import ExactCascade
from svmarrow.reduced_set.compact import Compaction, compact
from svmarrow.reduced_set.compression import compress
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.convert import as_expansion
from svmarrow.reduced_set.estimator import ReducedSet
from svmarrow.reduced_set.made_path import ConstructionPath
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.selection import SelectionSettings

__all__ = [
    "CalibratedCascade",
    "CascadeReport",
    "Compaction",
    "CompressionPath",
    "ConstructionPath",
    "ExactCascade",
    "ExpansionClassifier",
    "GradientSettings",
    "ReducedSet",
    "SelectionSettings",
    "as_expansion",
    "compact",
    "compress",
]
