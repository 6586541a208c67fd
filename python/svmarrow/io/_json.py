"""Parts of a model's JSON: labels, indices, names, typed values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["indices", "labels_from_json", "labels_to_json", "names", "typed"]


def indices(extra: Mapping[str, Any], key: str) -> NDArray[np.int32]:
    values = extra[key]
    if not isinstance(values, list) or any(type(v) is not int or not 0 <= v < 2**31 for v in values):
        raise ValueError(f"{key} is not a list of indices")
    return np.array(values, dtype=np.int32)


def names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def typed(extra: Mapping[str, Any], key: str, kind: type) -> Any:
    value = extra[key]
    if type(value) is not kind:
        raise ValueError(f"{key} is {value!r}, expected a value of type {kind.__name__}")
    return value


def labels_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Labels as plain values, with the dtype that restores them."""
    values = classes.tolist()
    kind = classes.dtype.kind
    if kind == "O" and all(isinstance(value, str) for value in values):
        return {"dtype": "object", "values": values}
    if kind == "U":
        return {"dtype": "str", "values": values}
    if kind in "biuf" and classes.dtype.itemsize <= 8 and np.isfinite(classes).all():
        return {"dtype": classes.dtype.name, "values": values}
    raise TypeError(
        f"classes of type {classes.dtype} cannot be stored in a model file: they must be strings, integers, "
        "booleans or finite floating-point numbers"
    )


def labels_from_json(described: Any) -> NDArray[Any]:
    dtype, values = described["dtype"], described["values"]
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "object": (str,), "bool": (bool,)}
    kinds |= {f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)}
    kinds |= {f"float{bits}": (int, float) for bits in (16, 32, 64)}
    if dtype not in kinds:
        raise ValueError(f"labels of dtype {dtype!r} are unknown")
    if not isinstance(values, list) or any(type(value) not in kinds[dtype] for value in values):
        raise ValueError(f"labels are not a list of {dtype}")
    try:
        return np.array(values, dtype=dtype)
    except OverflowError as error:
        raise ValueError(f"labels are not a list of {dtype}: {error}") from None
