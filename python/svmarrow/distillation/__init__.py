"""Distillation: any predictor as a kernel expansion.

| file | holds |
|---|---|
| `imitation` | `distil`: sizes, choice, bounds |
| `teachers` | outputs and answers of a predictor |
| `students` | samples drawn around given ones, and kernel expansions that imitate a teacher |
"""

from svmarrow.distillation.students import DistillationSettings

__all__ = ["DistillationSettings"]
