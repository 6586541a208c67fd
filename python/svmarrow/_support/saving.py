"""Saving: whatever can be fitted as named arrays and JSON, and back.

A class that can be stored registers itself, as a `Savable` or with `savable`; a file names it, and names
nothing else. What is stored of an object are the arguments of its constructor, under their own names, and
what it has beside them: for an estimator its parameters and what `fit` has left. Numbers, strings and lists
are JSON, arrays and kernel expansions are tensors of the safetensors container, named by where they are found
(``model_.vectors``); those of the expansion that a model is have plain names (``vectors``, ``coefficients``,
``intercepts``).

Nothing in a file is code and nothing is unpickled. A reader believes nothing: the container is checked by
the extension module, arguments go through the constructor and the class's own rules of parameters,
attributes must be of the types that the class declares, and `Savable._after_load` refuses what contradicts
itself.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.atomic import snapshot
from svmarrow._support.bases import BaseEstimator
from svmarrow._support.callbacks import ATTRIBUTES as CALLBACK_ATTRIBUTES
from svmarrow._support.declared import check_types
from svmarrow._support.parameters import Rule, check, refuse
from svmarrow._support.stored import check_room
from svmarrow.exceptions import FormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Savable", "check_name", "load", "savable", "save"]

Kind = TypeVar("Kind", bound=type)

#: What can be stored, by the names of the classes.
KINDS: dict[str, Any] = {}
#: Types of arrays by the container's names: BOOL, U8, ..., F64.
DTYPES = {"BOOL": np.dtype("?")} | {
    f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}")
    for kind in "uif"
    for size in (1, 2, 4, 8)
    if (kind, size) != ("f", 1)
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: Suffixes that the name of a model file may have.
SUFFIXES = ("", ".safetensors")
#: Most numbers of a range, which takes no room in a file.
MOST_STEPS = 10**6
#: Arrays of a CSR matrix.
CSR = ("data", "indices", "indptr")
#: scikit-learn's routing of metadata to `fit` and its callbacks: about training, no part of a model.
NOT_STORED = ("_metadata_request", *CALLBACK_ATTRIBUTES)


class Savable:
    """What can be saved as a whole, with the promises that `load` checks."""

    __slots__ = ()

    #: Rules of the parameters.
    _rules: ClassVar[Mapping[str, Rule]] = {}
    #: Attributes that are not stored, because they are made anew.
    _made_anew: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, stored: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A base has no constructor or a private name, and a file cannot name what is not svmarrow's.
        whole = stored and cls.__init__ is not object.__init__ and not cls.__name__.startswith("_")
        if whole and cls.__module__.startswith("svmarrow."):
            savable(cls)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as a safetensors file, all or nothing; `svmarrow.load` reads it.

        See `svmarrow.save` for what is raised.
        """
        check_name(path)
        save(self, path)

    def _to_save(self) -> Any:
        """What a file gets in the place of this object."""
        return self

    def _stored(self) -> dict[str, Any]:
        """The attributes, arguments of the constructor among them, that a file gets."""
        return vars(self)

    def _after_load(self) -> None:
        """Refuse what contradicts itself, and make what was not stored."""
        as_expansion = getattr(self, "as_expansion", None)
        if as_expansion is not None:
            # Labels, decoding and outputs have to agree, where there are some.
            self._check_columns_of(as_expansion())

    def _check_columns_of(self, model: Any) -> None:
        """Refuse columns that are not those of an expansion's vectors, and names that are not theirs."""
        expansion = getattr(model, "expansion_", model)
        columns = getattr(self, "n_features_in_", None)
        if columns is None or expansion.kernel == "precomputed":
            return
        if columns != expansion.vectors.shape[1]:
            raise ValueError(
                f"n_features_in_ is {columns}, the vectors have {expansion.vectors.shape[1]} columns"
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and any(not isinstance(name, str) for name in names):
            raise ValueError("feature_names_in_ holds what is no name")
        if names is not None and names.shape != (columns,):
            raise ValueError(f"feature_names_in_ has {names.size} names for {columns} columns")


def savable(kind: Kind) -> Kind:
    """Register a class under its name: a decorator for what is only saved as a part of something."""
    KINDS[kind.__name__] = kind
    return kind


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a file name that says another format."""
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise refuse(
            "path",
            os.fspath(path),
            "a name that ends in .safetensors or has no suffix, as the file is one of safetensors: "
            "svmarrow.export writes ONNX (.onnx) and C (.h), svmarrow.io.save_libsvm_model LIBSVM's text",
        )


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a registered object, see `Savable.save`."""
    if isinstance(model, BaseEstimator):
        model = snapshot(model)
        check_is_fitted(model)
    model = model._to_save()
    writer = Writer(getattr(model, "expansion_", model))
    described = json.dumps(writer.value(model, ""), allow_nan=False)
    check_room(described, writer.arrays)
    _core.write_model(os.fspath(path), writer.expansions, writer.arrays, described)


def load(path: str | os.PathLike[str]) -> Any:
    """Read what was saved.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    object
        Of the class that was saved, with the same parameters, attributes and predictions to the last bit.
        An online learner goes on where it was.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError: the file is no model, is cut off, contradicts itself or has an unknown version or class.
    """
    if Path(path).is_fifo():
        raise ValueError(f"{path!s} is a pipe: a model must be a file, whose length is known")
    expansions, arrays, described = _core.read_model(os.fspath(path))
    try:
        check_room(described, arrays)
        reader = Reader(expansions, arrays)
        made = reader.value(json.loads(described, parse_constant=_refuse_constant))
        if type(made) not in KINDS.values():
            raise ValueError("it holds no model")
        if isinstance(made, BaseEstimator):
            check_is_fitted(made)
        if reader.unread:
            raise ValueError(f"array {min(reader.unread)!r} is not part of this model")
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise FormatError(f"{os.fspath(path)}: {reason}") from error
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _arguments(kind: Any) -> list[str]:
    """The names of the constructor's arguments that are attributes too."""
    if issubclass(kind, BaseEstimator):
        return list(kind._get_param_names())
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return list(getattr(kind, "_arguments", ()))


def _part(name: str, part: object) -> str:
    return f"{name}.{part}" if name else str(part)


class Writer:
    """Takes objects apart: JSON is returned, arrays and expansions are collected."""

    def __init__(self, main: Any) -> None:
        self.expansions: dict[str, Any] = {}
        self.arrays: dict[str, tuple[str, list[int], NDArray[np.uint8]]] = {}
        self._main = main
        self._objects = 0
        #: What was written already, so that what is shared stays so; the object keeps its id its own.
        self._known: dict[int, tuple[Any, Any]] = {}

    def value(self, value: Any, name: str) -> Any:
        """The JSON of a value; `name` says where it was found."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) in (list, tuple):
            items = [self.value(item, _part(name, place)) for place, item in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if isinstance(value, Mapping):
            pairs = enumerate(value.items())
            return {"dict": [self.value(list(pair), _part(name, place)) for place, pair in pairs]}
        if isinstance(value, range):
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, np.random.RandomState):
            return {"random": self.value(value.get_state(legacy=False), name)}
        if id(value) not in self._known:
            described = self._described(value, name)
            self._known.setdefault(id(value), (described, value))
            return described
        return self._known[id(value)][0]

    def _described(self, value: Any, name: str) -> Any:
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), name)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if sp.issparse(value) and value.format == "csr":
            parts = [self.value(getattr(value, part), _part(name, part)) for part in CSR]
            return {"csr": [*parts, *map(int, value.shape)], "array": isinstance(value, sp.sparray)}
        if hasattr(type(value), "_of_parts"):
            return self._expansion(value, name)
        return self._object(value, name)

    def _array(self, array: NDArray[Any], name: str) -> Any:
        if array.dtype == object and array.ndim == 1 and all(isinstance(item, str) for item in array):
            return {"strings": [str(item) for item in array]}
        form, kept = "array", np.ascontiguousarray(array).reshape(array.shape)
        if array.dtype.kind == "U" and array.dtype.itemsize:
            # The characters' numbers: the width is then one of the sizes that the container checks.
            form, kept = "text", kept.astype(kept.dtype.newbyteorder("<"))[..., np.newaxis].view("<u4")
        dtype = kept.dtype.newbyteorder("<")
        if dtype not in NAMES or type(array) not in (np.ndarray, np.memmap):
            raise TypeError(
                f"{name} of type {array.dtype} cannot be stored in a model file: an array holds numbers, "
                "truth values or strings"
            )
        kept = kept.astype(dtype, copy=False)
        self.arrays[name] = (NAMES[dtype], list(kept.shape), kept.reshape(-1).view(np.uint8))
        return {form: name}

    def _object(self, value: Any, name: str) -> Any:
        kind = type(value)
        if KINDS.get(kind.__name__) is not kind:
            raise _refused(value, name)
        self._known[id(value)] = ({"same": self._objects}, value)
        self._objects += 1
        names = _arguments(kind)
        arguments = {argument: getattr(value, argument) for argument in names}
        check(arguments, getattr(kind, "_rules", {}))
        hidden = {*names, *NOT_STORED, *getattr(kind, "_made_anew", ())}
        attributes = value._stored() if isinstance(value, Savable) else getattr(value, "__dict__", {})
        rest = {key: item for key, item in attributes.items() if key not in hidden}
        # An expansion comes first: arrays that belong to it are then written with it.
        order = sorted(rest, key=lambda key: (not hasattr(type(rest[key]), "_of_parts"), key))
        return {
            "class": kind.__name__,
            "arguments": {key: self.value(item, _part(name, key)) for key, item in arguments.items()},
            "attributes": {key: self.value(rest[key], _part(name, key)) for key in order},
        }

    def _expansion(self, value: Any, name: str) -> Any:
        if callable(value.kernel):
            raise _refused(value.kernel, "kernel")
        name = "" if value is self._main else name
        self.expansions[name] = value.core_parts
        for part in ("vectors", "coefficients", "intercepts"):
            array = getattr(value, part)
            self._known[id(array)] = ({"array": _part(name, part)}, array)
        if sp.issparse(value.vectors):
            # The container has indices of 64 bits alone.
            return {"expansion": name, "indices": value.vectors.indices.dtype.name}
        return {"expansion": name}


def _refused(value: Any, name: str) -> TypeError:
    """The error for what has no place in a file."""
    kind = type(value).__name__
    what = f"{name}={value!r}" if name else f"a model of type {kind}"
    if callable(value):
        why = "it is a Python function, and files hold no code; pickle keeps it"
    elif isinstance(value, BaseEstimator) or not name:
        why = (
            f"{kind} is not one of svmarrow's classes; put one of them in its place, or save "
            "svmarrow.as_expansion(model), which predicts the same"
        )
    else:
        why = "a part must be made of numbers, strings, lists, dicts and arrays; pickle keeps it"
    return TypeError(f"{what} cannot be stored in a model file: {why}")


class Reader:
    """Makes objects of what a file says."""

    def __init__(self, expansions: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        self._expansions: dict[str, Any] = {}
        self._arrays = dict(arrays)
        self._made: dict[str, Any] = {}
        self._objects: list[Any] = []
        for name, raw in expansions.items():
            expansion = self._expansions[name] = KINDS["KernelExpansion"]._of_parts(raw)
            for part in ("vectors", "coefficients", "intercepts"):
                self._made[_part(name, part)] = getattr(expansion, part)
        #: Names of what has not been asked for.
        self.unread = {*arrays, *(_part(name, "vectors") for name in expansions)}

    def value(self, described: Any) -> Any:
        """The value of its JSON."""
        match described:
            case None | bool() | int() | float() | str():
                return described
            case list():
                return [self.value(item) for item in described]
            case {"tuple": list(items)}:
                return tuple(self.value(item) for item in items)
            case {"dict": list(items)}:
                return {self.value(key): self.value(item) for key, item in items}
            case {"float": "inf" | "-inf" | "nan" as number}:
                return float(number)
            case {"range": [int(start), int(stop), int(step)]}:
                steps = range(start, stop, step)
                if len(steps) > MOST_STEPS:
                    raise ValueError(f"{steps!r} is longer than any list of sizes")
                return steps
            case {"scalar": array}:
                return self.value(array)[()]
            case {"strings": list(items)}:
                if any(type(item) is not str for item in items):
                    raise ValueError("a list of strings has something else in it")
                return np.array(items, dtype=object)
            case {"array": str(name)}:
                return self._array(name)
            case {"text": str(name)}:
                codes = self._array(name)
                if codes.dtype != np.uint32 or codes.ndim < 1 or not codes.shape[-1]:
                    raise ValueError(f"array {name!r} is no text")
                if codes.max(initial=0) > 0x10FFFF:
                    raise ValueError(f"array {name!r} has numbers that are no characters")
                return self._made.setdefault(f"{name} as text", codes.view(f"=U{codes.shape[-1]}")[..., 0])
            case {"csr": [data, indices, indptr, int(rows), int(columns)], "array": bool(new)}:
                parts = tuple(self.value(part) for part in (data, indices, indptr))
                matrix = (sp.csr_array if new else sp.csr_matrix)(parts, shape=(rows, columns))
                matrix.check_format(full_check=True)
                return matrix
            case {"random": state}:
                return _random_state(self.value(state))
            case {"expansion": str(name)}:
                self.unread.discard(_part(name, "vectors"))
                expansion = self._expansions[name]
                if described.get("indices") == "int32" and sp.issparse(expansion.vectors):
                    _shorten(expansion.vectors)
                return expansion
            case {"same": int(number)}:
                made = self._objects[number]
                if made is None:
                    raise ValueError("a part of the model holds itself")
                return made
            case {"class": kind, "arguments": dict(arguments), "attributes": dict(attributes)}:
                return self._object(kind, arguments, attributes)
        raise ValueError(f"{str(described)[:80]} is nothing that a model is made of")

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._made:
            dtype, shape, raw = self._arrays[name]
            # No memory of the file's bytes is kept: it need not be aligned for larger elements.
            array = np.empty(shape, dtype=DTYPES[dtype].newbyteorder("="))
            array.reshape(-1)[:] = raw.view(DTYPES[dtype])
            self._made[name] = array
        self.unread.discard(name)
        made: NDArray[Any] = self._made[name]
        return made

    def _object(self, name: Any, arguments: dict[str, Any], attributes: dict[str, Any]) -> Any:
        kind = KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"class {name!r} is not one of {', '.join(sorted(KINDS))}")
        number = len(self._objects)
        self._objects.append(None)
        # Everything goes through the constructor's own names: a name it does not have is a TypeError.
        given = {argument: self.value(item) for argument, item in arguments.items()}
        takes = _arguments(kind)
        made = kind(**given) if takes else kind.__new__(kind)
        check({argument: getattr(made, argument) for argument in takes}, getattr(kind, "_rules", {}))
        check_types(made, takes if is_dataclass(kind) else (), KINDS)
        for attribute, item in attributes.items():
            if not _may_set(kind, attribute):
                raise ValueError(f"a {name} has no attribute {attribute!r} that a file could set")
            setattr(made, attribute, self.value(item))
        check_types(made, attributes, KINDS)
        if hasattr(kind, "_after_load") and _is_fitted(made):
            made._after_load()
        self._objects[number] = made
        return made


def _shorten(matrix: Any) -> None:
    """Indices of 32 bits, in place."""
    if max(*matrix.shape, matrix.nnz) >= 2**31:
        raise ValueError("the vectors have more entries than indices of 32 bits can count")
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)


def _random_state(state: Any) -> np.random.RandomState:
    position = state["state"]["pos"]
    if state["bit_generator"] != "MT19937" or type(position) is not int or not 0 <= position <= 624:
        raise ValueError("the state of the random numbers is out of its bounds")
    random = np.random.RandomState()
    random.set_state(state)
    return random


def _is_fitted(made: Any) -> bool:
    """Whether a part is fitted: the estimator that a meta-estimator was given is not."""
    try:
        if isinstance(made, BaseEstimator):
            check_is_fitted(made)
    except NotFittedError:
        return False
    return True


def _may_set(kind: type, attribute: str) -> bool:
    """Whether a file may set an attribute: one that class, constructor and `_after_load` leave to it."""
    if issubclass(kind, BaseEstimator) and not (attribute.endswith("_") or attribute.startswith("_")):
        return False
    own = inspect.getattr_static(kind, attribute, None)
    taken = {*_arguments(kind), *NOT_STORED, *getattr(kind, "_made_anew", ())}
    return attribute.isidentifier() and isinstance(own, (bool, NoneType)) and attribute not in taken
