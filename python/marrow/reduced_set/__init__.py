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
| `estimator` | `ReducedSet`, compression inside pipelines and grid searches |
"""

from marrow.classifier import ExpansionClassifier
from marrow.reduced_set.compact import Compaction, compact
from marrow.reduced_set.compression import compress
from marrow.reduced_set.construction import GradientSettings
from marrow.reduced_set.convert import as_expansion
from marrow.reduced_set.estimator import ReducedSet
from marrow.reduced_set.made_path import ConstructionPath
from marrow.reduced_set.path import CompressionPath
from marrow.reduced_set.selection import SelectionSettings

__all__ = [
    "Compaction",
    "CompressionPath",
    "ConstructionPath",
    "ExpansionClassifier",
    "GradientSettings",
    "ReducedSet",
    "SelectionSettings",
    "as_expansion",
    "compact",
    "compress",
]
