"""Checks of the content of a model file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_description_size", "check_state"]

#: Number of bytes that a description may take as Python objects regardless of the file size.
MIN_DESCRIPTION_BYTES = 1 << 26


def check_description_size(described: str, arrays: Mapping[str, Any]) -> None:
    """Rejects a description that would take far more memory than the file, such as many empty lists."""
    needed = (
        5 * len(described) + 70 * described.count(",") + 250 * (described.count("[") + described.count("{"))
    )
    limit = MIN_DESCRIPTION_BYTES + 16 * (len(described) + sum(part[2].nbytes for part in arrays.values()))
    if needed > limit:
        raise ValueError(
            f"its description has {len(described)} characters and would take about {needed} bytes as Python "
            f"objects: it may take at most {limit}, 16 for each byte of the file and {MIN_DESCRIPTION_BYTES}"
        )


def check_state(state: dict[str, Any], empty: dict[str, Any]) -> None:
    """Rejects the state of a stream whose keys and types differ from those of an empty stream."""
    if state.keys() != empty.keys():
        raise ValueError(f"the state has the parts {', '.join(state)}: expected {', '.join(empty)}")
    for key, like in empty.items():
        value = state[key]
        counts = value if isinstance(value, tuple) else (value,)
        if key == "rows":
            continue
        if isinstance(like, np.ndarray):
            fits = isinstance(value, np.ndarray) and (value.dtype, value.ndim) == (like.dtype, like.ndim)
            fits = fits and bool((np.isfinite(value) if like.dtype.kind == "f" else value >= 0).all())
        elif isinstance(like, float):
            fits = type(value) is float and math.isfinite(value)
        else:
            fits = type(value) is type(like) and len(counts) == (len(like) if isinstance(like, tuple) else 1)
            fits = fits and all(type(count) is int and 0 <= count < 2**64 for count in counts)
        if not fits:
            raise ValueError(f"{key} of the state is {value!r}, expected a value like {like!r}")
