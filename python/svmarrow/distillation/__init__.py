"""Distillation: any predictor as a kernel expansion.

| file | holds |
|---|---|
| `imitation` | `distil`: sizes, choice, bounds |
| `teachers` | outputs and answers of a predictor |
| `drawn_samples` | samples drawn around given ones |
| `students` | kernel expansions that imitate a teacher |
"""

from svmarrow.distillation.students import DistillationSettings

__all__ = ["DistillationSettings"]
