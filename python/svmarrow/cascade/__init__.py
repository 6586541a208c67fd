"""Cascades: a small model answers where that is safe, the full model answers the other samples."""

from svmarrow.cascade.calibrated import CalibratedCascade
from svmarrow.cascade.exact import CascadeReport, ExactCascade

__all__ = ["CalibratedCascade", "CascadeReport", "ExactCascade"]
