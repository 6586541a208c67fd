"""Explanations of fitted models: exact Shapley values."""

from svmarrow.inspection.display import ShapleyDisplay
from svmarrow.inspection.shapley import ShapleyValues, shapley_values

__all__ = ["ShapleyDisplay", "ShapleyValues", "shapley_values"]
