"""Warnings that point to the line of the user's code."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_caller"]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warns with the line of the first caller outside svmarrow and scikit-learn's wrapper of `fit`."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_between(module: str) -> bool:
    return module.partition(".")[0] == "svmarrow" or module == "sklearn.base"
