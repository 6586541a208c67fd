"""Versions for reports of faults."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from svmarrow import _core
from svmarrow._support.rows import threads

__all__ = ["show_versions"]

#: Packages that svmarrow uses, some of them optional.
PACKAGES = (
    *("svmarrow", "scikit-learn", "numpy", "scipy", "joblib", "pandas", "polars", "matplotlib", "rich"),
    *("onnx", "onnxruntime", "skl2onnx", "shap", "dask"),
)


def show_versions() -> None:
    """Print the versions of svmarrow, of Python and of the packages around it, for a report of a fault.

    Examples
    --------
    >>> import svmarrow
    >>> svmarrow.show_versions()  # doctest: +ELLIPSIS
    system            ...
    """
    facts = {
        "system": platform.platform(),
        "python": f"{platform.python_version()} ({sys.executable})",
        "instruction set": _core.simd_level(),
        "cores": f"{os.cpu_count()}, {threads(None)} used",
    }
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    for name, value in facts.items():
        print(f"{name:<17} {value}")
