"""Checks of what a model file says, beside the rules of parameters and the types of attributes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_alike", "check_room"]

#: Bytes that a description may take as Python objects whatever the size of its file.
DESCRIPTION_ROOM = 1 << 26


def check_room(described: str, arrays: Mapping[str, Any]) -> None:
    """Refuse a description that would take far more memory than the file: many empty lists do."""
    room = (
        5 * len(described) + 70 * described.count(",") + 250 * (described.count("[") + described.count("{"))
    )
    most = DESCRIPTION_ROOM + 16 * (len(described) + sum(part[2].nbytes for part in arrays.values()))
    if room > most:
        raise ValueError(
            f"its description has {len(described)} characters and would take some {room} bytes as Python "
            f"objects: at most {most} are taken, 16 for each byte of the file and {DESCRIPTION_ROOM}"
        )


def check_alike(state: dict[str, Any], empty: dict[str, Any]) -> None:
    """Refuse the state of a stream whose keys and types are not those of one that has seen nothing."""
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
            raise ValueError(f"{key} of the state is {value!r}, expected the like of {like!r}")
