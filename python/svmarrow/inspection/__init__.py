"""Explanations of fitted models: exact Shapley values, and a display of the decision boundary."""

from svmarrow._support.boundary import DecisionVectorsDisplay
from svmarrow.inspection.display import ShapleyDisplay
from svmarrow.inspection.shapley import ShapleyValues, shapley_values

__all__ = ["DecisionVectorsDisplay", "ShapleyDisplay", "ShapleyValues", "shapley_values"]
