"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `path` | every size of a greedy compression, and the choice among them |
| `selection` | settings of the methods that look at the whole kernel matrix |
| `construction` | new vectors, moved by their gradient |
| `made_path` | the sizes of one construction |
| `compact` | single precision vectors and coefficients of one byte, with their measured cost |
| `compression` | `compress`, the door to all |
| `cost` | time a row, measured and as a line in the size |
| `score` | scores of many sizes at once |
| `estimator` | `ReducedSet`, compression inside pipelines and grid searches |
"""

from svmarrow.reduced_set.compact import Compaction, compact
from svmarrow.reduced_set.compression import compress
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.estimator import ReducedSet
from svmarrow.reduced_set.made_path import ConstructionPath
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.selection import SelectionSettings

__all__ = [
    "Compaction",
    "CompressionPath",
    "ConstructionPath",
    "GradientSettings",
    "ReducedSet",
    "SelectionSettings",
    "compact",
    "compress",
]
