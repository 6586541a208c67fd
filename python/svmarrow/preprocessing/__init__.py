"""Transformers that prepare samples for kernel machines: learned scales and shapes of features."""

from svmarrow.preprocessing._search import ScaleStep
from svmarrow.preprocessing.scaler import LearnedScaler

__all__ = ["LearnedScaler", "ScaleStep"]
