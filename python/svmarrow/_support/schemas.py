"""Schemas: the names that model files have for classes and their fields, and the types of the fields.

A file names the schema of each object, a noun and a number (``svc/1``), and its fields. So a class and its
private attributes can be renamed without a change of the files: ``savable`` gives a class its schema, and a
table ``_stored_as`` gives private attributes the names of their fields. Arguments of the constructor and
public attributes are fields under their own names. `docs/file-format.md` lists all fields, and a test
compares them with the classes.

A field may be added to a schema if the files without it keep their meaning: it takes its default. Every other
change, of a default that is null for example, takes the next number and an `upgrade`, which makes the fields
of a number from those of the number before::

    @savable("svc/2")
    class SVC: ...


    @upgrade("svc/1")
    def _(fields):
        return {**fields, "penalty": fields.pop("C")}

Everything that a file may set is declared: unknown names and numbers are refused, and so are values of other
types than the class annotates.
"""

from __future__ import annotations

import collections.abc
import inspect
import sys
import typing
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib.metadata import version
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.parameters import check, fitted_attribute_names
from svmarrow._support.progress import ATTRIBUTES as CALLBACK_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["SCHEMAS", "Schema", "check_types", "find_schema", "kinds", "savable", "schema_of", "upgrade"]

Kind = TypeVar("Kind", bound=type)
#: The fields of an object by name, as a file describes them.
Fields = dict[str, Any]

#: Fields of an expansion, whose numbers are in the container.
EXPANSION_FIELDS = ("name", "indices", "kernel", "vectors")
#: Attributes of scikit-learn's metadata routing and callbacks, which are not part of a model.
NOT_STORED = ("_metadata_request", *CALLBACK_ATTRIBUTES)

#: The schemas by name; each has one number, and upgrades from the numbers below it.
SCHEMAS: dict[str, Schema] = {}
#: Functions that make the fields of a number from those of the number before, by "name/number before".
UPGRADES: dict[str, Callable[[Fields], Fields]] = {}


@dataclass(frozen=True, eq=False)
class Schema:
    """The fields of the objects of a class in a file."""

    name: str
    number: int
    kind: Any

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"

    @cached_property
    def arguments(self) -> list[str]:
        """The arguments of the constructor, which are fields and attributes under the same names."""
        if issubclass(self.kind, BaseEstimator):
            return list(self.kind._get_param_names())
        if is_dataclass(self.kind):
            return [field.name for field in fields(self.kind)]
        return list(getattr(self.kind, "_arguments", ()))

    @cached_property
    def attributes(self) -> dict[str, str]:
        """The attributes by field, without the arguments of the constructor."""
        names: dict[str, str] = {}
        for base in reversed(self.kind.__mro__):
            names |= vars(base).get("_stored_as", {})
        if issubclass(self.kind, BaseEstimator):
            public = {name for name in fitted_attribute_names(self.kind) if not name.startswith("_")}
            names |= {name: name for name in sorted(public) if self._is_settable(name)}
        return {field: attribute for attribute, field in names.items() if attribute not in self._transient}

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of all fields."""
        if getattr(self.kind, "_of_parts", None):
            return frozenset(EXPANSION_FIELDS)
        return frozenset([*self.arguments, *self.attributes])

    @cached_property
    def _null_by_default(self) -> set[str]:
        """The arguments whose default is None."""
        parameters = inspect.signature(self.kind).parameters
        return {name for name in self.arguments if parameters[name].default is None}

    @property
    def _transient(self) -> tuple[str, ...]:
        return tuple(getattr(self.kind, "_transient", ()))

    def _is_settable(self, attribute: str) -> bool:
        """Returns whether an attribute is no property or method, of a subclass for example."""
        return isinstance(inspect.getattr_static(self.kind, attribute, None), (bool, NoneType))

    def content(self, item: Any) -> Fields:
        """Returns the values of the fields that an object has, without arguments that are None by default.

        Raises
        ------
        ValueError
            If an argument is outside its rule.
        TypeError
            If an estimator has an attribute that is not a field.
        """
        arguments = {name: getattr(item, name) for name in self.arguments}
        check(arguments, getattr(self.kind, "_rules", {}))
        present = item._stored() if hasattr(item, "_stored") else getattr(item, "__dict__", {})
        if isinstance(item, BaseEstimator):
            extra = present.keys() - {*arguments, *self.attributes.values(), *self._transient, *NOT_STORED}
            if extra:
                raise TypeError(
                    f"{self.kind.__name__} has an attribute {min(extra)!r}, for which a model file has no "
                    "field: remove it, or pass it to save as metadata"
                )
        written = {
            name: value
            for name, value in arguments.items()
            if value is not None or name not in self._null_by_default
        }
        fitted = {field: present[name] for field, name in self.attributes.items() if name in present}
        # Expansions come first, so that their arrays are written with them.
        order = sorted(fitted, key=lambda field: (not getattr(type(fitted[field]), "_of_parts", None), field))
        return written | {field: fitted[field] for field in order}

    def create(self, values: Fields) -> Any:
        """Returns an object with these values of its fields; whether they are consistent is not checked."""
        names = self.arguments
        arguments = {name: value for name, value in values.items() if name in names}
        # A missing argument raises TypeError.
        item = self.kind(**arguments) if names else self.kind.__new__(self.kind)
        check({name: getattr(item, name) for name in names}, getattr(self.kind, "_rules", {}))
        attributes = {self.attributes[field]: value for field, value in values.items() if field not in names}
        for attribute, value in attributes.items():
            setattr(item, attribute, value)
        check_types(item, [*(names if is_dataclass(self.kind) else ()), *attributes], kinds())
        return item


def savable(schema: str) -> Callable[[Kind], Kind]:
    """Gives a class its schema, ``name/number``; without one it cannot be saved."""
    name, number = _parsed(schema)

    def register(kind: Kind) -> Kind:
        before = SCHEMAS.get(name)
        if before is not None and before.kind.__qualname__ != kind.__qualname__:
            raise TypeError(f"{before.kind.__name__} and {kind.__name__} have the same schema {name}")
        SCHEMAS[name] = Schema(name, number, kind)
        return kind

    return register


def upgrade(schema: str) -> Callable[[Callable[[Fields], Fields]], Callable[[Fields], Fields]]:
    """Registers a function that makes the fields of the next number from those of this schema."""
    name, number = _parsed(schema)

    def register(function: Callable[[Fields], Fields]) -> Callable[[Fields], Fields]:
        UPGRADES[f"{name}/{number}"] = function
        return function

    return register


def kinds() -> list[type]:
    """Returns the classes that can be saved."""
    return [schema.kind for schema in SCHEMAS.values()]


def schema_of(kind: type) -> Schema | None:
    """Returns the schema of a class; subclasses have their own or none."""
    return next((schema for schema in SCHEMAS.values() if schema.kind is kind), None)


def find_schema(described: Fields, writer: str) -> tuple[Schema, Fields]:
    """Returns the schema of an object in a file, and the fields of its present number.

    Parameters
    ----------
    described : dict
        The fields of the object, and its schema under "schema".
    writer : str
        The program that wrote the file, for messages.

    Raises
    ------
    ValueError
        For an unknown schema, number or field.
    """
    text = described["schema"]
    name, number = _parsed(text)
    described = {field: item for field, item in described.items() if field != "schema"}
    reader = f"svmarrow {version('svmarrow')}"
    schema = SCHEMAS.get(name)
    if schema is None:
        raise ValueError(
            f"schema {text!r} is unknown to {reader} (the file was written by {writer}): it must be one of "
            f"{', '.join(sorted(map(str, SCHEMAS.values())))}; upgrade svmarrow if the file is newer"
        )
    if number > schema.number:
        raise ValueError(
            f"schema {text!r} is newer than {str(schema)!r} of {reader}: the file was written by {writer}; "
            "upgrade svmarrow to read it"
        )
    for older in range(number, schema.number):
        described = UPGRADES[f"{name}/{older}"](described)
    unknown = described.keys() - schema.fields
    if unknown:
        raise ValueError(
            f"field {min(unknown)!r} of schema {text!r} is unknown to {reader} (the file was written by "
            f"{writer}); upgrade svmarrow if the file is newer"
        )
    return schema, described


def _parsed(schema: Any) -> tuple[str, int]:
    name, _, number = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    is_number = number.isdecimal() and len(number) < 10 and str(int(number)) == number != "0"
    if not name or not is_number:
        raise ValueError(f"schema {schema!r} must be a name and a number such as 'svc/1'")
    return name, int(number)


# --- checks of the attributes that a model file sets against the types that classes declare ---


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


def check_types(target: Any, names: Iterable[str], kinds: Iterable[type]) -> None:
    """Raise a ValueError if an attribute is not of the type that its class declares.

    Parameters
    ----------
    target : object
        The object.
    names : iterable of str
        Attributes to check; those without a declaration may have any type.
    kinds : iterable of type
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


def _hint(base: type, name: str, text: Any, kinds: Iterable[type]) -> Any:
    known = {each.__name__: each for kind in kinds for each in kind.__mro__} | TYPE_NAMES
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
        (dtype,) = inner if origin is NDArray else get_args(inner[1])
        return isinstance(value, np.ndarray) and (dtype is Any or np.issubdtype(value.dtype, dtype))
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
