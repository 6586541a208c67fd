"""A small model that answers where that is safe, and the full one behind it for the other samples."""

from svmarrow.cascade.base import CascadeReport
from svmarrow.cascade.calibrated import CalibratedCascade
from svmarrow.cascade.exact import ExactCascade

__all__ = ["CalibratedCascade", "CascadeReport", "ExactCascade"]
