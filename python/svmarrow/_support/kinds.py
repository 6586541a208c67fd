"""What NumPy would turn into an array without a word, though the numbers are then not those that were meant.

Collections that lie on other machines or on disk are gathered as a whole, a mask is forgotten, a date becomes
a count of days or nanoseconds, a complex number loses its imaginary part. Each is refused by name, with what
to do instead. Packages are recognised by the name of a type's module and never imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_kinds"]

#: Packages with collections that are not in memory as a whole, and the method that brings one there.
_ELSEWHERE = {"dask": "compute", "dask_expr": "compute", "pyspark": "toPandas", "polars": "collect"}
#: What takes them as they are.
_BEYOND = dict.fromkeys(
    ("dask", "dask_expr"), "; svmarrow.dask trains on Dask's collections and predicts them"
)


def check_kinds(**values: Any) -> None:
    """Refuses what cannot be taken as an array of numbers, by the name of its argument.

    Raises
    ------
    TypeError
        For collections that are not in memory, dates and times.
    ValueError
        For arrays with masked entries and complex numbers.
    """
    for name, value in values.items():
        if type(value) is np.ndarray and value.dtype.kind in "fiubOUS":
            continue
        package, kind = type(value).__module__.partition(".")[0], type(value).__name__
        bring = _ELSEWHERE.get(package)
        if bring is not None and hasattr(value, bring):
            raise TypeError(
                f"{name} is {package}'s {kind}, which is not in memory as a whole: pass {name}.{bring}(), or "
                f"a part of the rows that fits into memory{_BEYOND.get(package, '')}"
            )
        if np.ma.isMaskedArray(value) and np.ma.is_masked(value):
            raise ValueError(
                f"{name} has masked entries: fill them ({name}.filled(...)) or leave out their rows, and "
                "pass a plain array"
            )
        own = getattr(value, "dtype", None)
        for dtype in getattr(value, "dtypes", ()) if own is None else (own,):
            if _is_time(dtype):
                raise TypeError(f"{name} holds dates or times ({dtype}): turn them into numbers of one unit")
            if getattr(dtype, "kind", "") == "c":
                raise ValueError(f"{name} is {dtype}. Complex data not supported: pass real numbers")


def _is_time(dtype: Any) -> bool:
    """Whether a type of NumPy, pandas or polars is one of dates, times or their differences."""
    temporal = getattr(dtype, "is_temporal", None)
    return getattr(dtype, "kind", "") in ("m", "M") or (callable(temporal) and bool(temporal()))
