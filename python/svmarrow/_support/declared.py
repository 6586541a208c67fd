"""Checks of the attributes that a model file sets against the types that classes declare."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import typing
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["check_types"]

#: Names that modules import only for type checkers.
TYPE_NAMES: dict[str, Any] = {
    "Any": Any,
    "Callable": collections.abc.Callable,
    "Decoding": Literal["binary", "ovr", "ovo", "code"],
    "Literal": Literal,
    "Mapping": collections.abc.Mapping,
    "NDArray": NDArray,
    "Sequence": collections.abc.Sequence,
    "np": np,
}


def check_types(target: Any, names: Iterable[str], kinds: Mapping[str, type]) -> None:
    """Raise a ValueError if an attribute is not of the type that its class declares.

    Parameters
    ----------
    target : object
        The object.
    names : iterable of str
        Attributes to check; those without a declaration may have any type.
    kinds : mapping of str to type
        Classes that declarations may refer to, with their bases.

    Raises
    ------
    TypeError
        If a declaration is a type that cannot be checked.
    """
    for name in names:
        base = next((base for base in type(target).__mro__ if name in inspect.get_annotations(base)), None)
        if base is None:
            continue
        value, text = getattr(target, name), inspect.get_annotations(base)[name]
        if str(text).startswith("ClassVar"):
            raise ValueError(f"{name} belongs to the class {base.__name__}: a file must not set it")
        if not _is_of(value, _hint(base, name, text, kinds)):
            raise ValueError(f"{name} is {value!r}, expected {text}")


def _hint(base: type, name: str, text: Any, kinds: Mapping[str, type]) -> Any:
    known = {each.__name__: each for kind in kinds.values() for each in kind.__mro__} | TYPE_NAMES
    declaration: Any = SimpleNamespace(__annotations__={name: text})
    try:
        return get_type_hints(declaration, vars(sys.modules[base.__module__]), known)[name]
    except NameError as error:
        raise TypeError(f"{base.__name__}.{name} is declared as {text}, which cannot be checked") from error


def _is_of(value: Any, hint: Any) -> bool:
    """Returns whether a value is of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (UnionType, typing.Union):
        return any(_is_of(value, each) for each in inner)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if origin is np.ndarray or origin is NDArray:
        # From NumPy 2.5 on NDArray[T] keeps its name; before, it is ndarray[Any, dtype[T]].
        (wanted,) = inner if origin is NDArray else get_args(inner[1])
        return isinstance(value, np.ndarray) and (wanted is Any or np.issubdtype(value.dtype, wanted))
    if origin is collections.abc.Callable:
        return callable(value)
    if isinstance(origin or hint, type):
        return _is_instance(value, origin or hint)
    raise TypeError(f"{hint} is a type that cannot be checked")


def _is_instance(value: Any, kind: type) -> bool:
    if kind is bool or kind is NoneType:
        return isinstance(value, kind)
    if kind is float:
        return isinstance(value, (float, int)) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
