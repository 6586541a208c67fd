"""Compression: from a kernel machine with many vectors to one with few.

| file | holds |
|---|---|
| `convert` | any fitted model as a kernel expansion |
| `path` | every size of a greedy compression, and the choice among them |
| `compression` | `compress`, the door to both |
| `estimator` | `ReducedSet`, compression inside pipelines and grid searches |
"""

from marrow.classifier import ExpansionClassifier
from marrow.reduced_set.compression import compress
from marrow.reduced_set.convert import as_expansion
from marrow.reduced_set.estimator import ReducedSet
from marrow.reduced_set.path import CompressionPath

__all__ = ["CompressionPath", "ExpansionClassifier", "ReducedSet", "as_expansion", "compress"]
