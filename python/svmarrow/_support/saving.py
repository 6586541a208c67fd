"""Saving of estimators as named arrays and JSON, and loading.

Only classes with a schema can be stored, see `svmarrow._support.schemas`. The fields of an object are stored:
for an estimator its parameters and fitted attributes. Numbers, strings and lists are JSON, arrays and kernel
expansions are tensors of the safetensors container, named by their path (``model_.vectors``); those of the
model's own expansion have plain names (``vectors``, ``coefficients``, ``intercepts``).

A file contains no code and nothing is unpickled. Loading checks everything: the extension module checks the
container, schemas and their fields must be known, arguments go through the constructor and the rules of the
parameters, attributes must have the declared types, and a method ``_after_load``, where a class has one,
checks that they are consistent. Further hooks of a class: ``_rules`` (of its parameters), ``_stored_as`` (the
fields of private attributes), ``_transient`` (attributes that ``_after_load`` or a method computes again),
``_stored()`` (the attributes to store), ``_to_save()`` (what is stored instead).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.bases import BaseEstimator
from svmarrow._support.parameters import refuse, snapshot
from svmarrow._support.rows import column_of, packed_objects, read_only, unpacked_objects
from svmarrow._support.schemas import SCHEMAS, find_schema, schema_of
from svmarrow.exceptions import FormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "check_columns",
    "check_description_size",
    "check_name",
    "check_state",
    "load",
    "read_about",
    "save",
    "save_method",
]


# --- checks of the content of a file ---


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


#: Array types by their names in the container: BOOL, U8, ..., F64.
DTYPES = {"BOOL": np.dtype("?")} | {
    f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}")
    for kind in "uif"
    for size in (1, 2, 4, 8)
    if (kind, size) != ("f", 1)
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: Allowed suffixes of a model file.
SUFFIXES = ("", ".safetensors")
#: Maximum length of a range, which takes no space in a file.
MAX_RANGE_LENGTH = 10**6
#: Arrays of a CSR matrix.
CSR = ("data", "indices", "indptr")


def save_method(self: Any, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Save as a safetensors file, all or nothing; `svmarrow.load` reads it.

    See `svmarrow.save` for the parameters and the exceptions.
    """
    check_name(path)
    save(self, path, metadata)


def check_columns(model: Any, expansion: Any) -> None:
    """Checks the number and the names of a model's features against the vectors of an expansion."""
    columns = getattr(model, "n_features_in_", None)
    if columns is None or expansion.kernel == "precomputed":
        return
    if columns != expansion.vectors.shape[1]:
        count = expansion.vectors.shape[1]
        raise ValueError(f"n_features_in_ is {columns}, the vectors have {count} columns")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and any(not isinstance(name, str) for name in names):
        raise ValueError("feature_names_in_ contains an element that is not a string")
    if names is not None and names.shape != (columns,):
        raise ValueError(f"feature_names_in_ has {names.size} names for {columns} columns")


def check_name(path: str | os.PathLike[str]) -> None:
    """Raises ``ValueError`` for a file name with the suffix of another format."""
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise refuse(
            "path",
            os.fspath(path),
            "a name that ends in .safetensors or has no suffix: "
            "svmarrow.export writes ONNX (.onnx) and C (.h), svmarrow.io.save_libsvm_model LIBSVM's text",
        )


def save(model: Any, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Writes a registered object."""
    if isinstance(model, BaseEstimator):
        model = snapshot(model)
        check_is_fitted(model)
    if hasattr(model, "_to_save"):
        model = model._to_save()
    writer = Writer(getattr(model, "expansion_", model))
    content = {**writer.value(model, ""), "about": _about(metadata)}
    described = json.dumps(content, allow_nan=False, separators=(",", ":"))
    check_description_size(described, writer.arrays)
    _core.write_model(os.fspath(path), writer.expansions, writer.arrays, described)


def _about(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the version of svmarrow, the date and the user's metadata."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    about = {"version": version("svmarrow"), "date": today}
    return about if metadata is None else {**about, "metadata": _checked_metadata(metadata)}


def _checked_metadata(metadata: Any) -> dict[str, Any]:
    """Returns metadata as JSON stores it; raises ``ValueError`` with the item for other values."""
    rule = "a dict from names to texts, finite numbers, booleans, None and lists of them"
    if not isinstance(metadata, Mapping):
        raise refuse("metadata", metadata, rule)
    stored = {}
    for name, value in metadata.items():
        try:
            stored[name] = json.loads(json.dumps(value, allow_nan=False, default=_scalar))
            # JSON turns keys of inner dicts into text.
            is_kept = isinstance(name, str) and bool(stored[name] == value)
        except (TypeError, ValueError, RecursionError):
            is_kept = False
        if not is_kept:
            raise refuse("metadata", {name: value}, rule)
    return stored


def _scalar(value: Any) -> Any:
    """Returns a number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the version, the date and the metadata of a saved model; files of other programs have none."""
    described = json.loads(_core.read_model(os.fspath(path))[2])
    about = described.get("about") if isinstance(described, dict) else None
    return about if isinstance(about, dict) else {}


def load(path: str | os.PathLike[str]) -> Any:
    """Load a saved model.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    object
        An object of the class that was saved, with the same parameters, attributes and predictions to the
        last bit. An online learner continues its stream.

    Raises
    ------
    OSError
        If the file cannot be read.
    svmarrow.exceptions.FormatError
        A ValueError: the file is not a model, is truncated or inconsistent, or has a schema or a field that
        this version of svmarrow does not know.
    """
    if Path(path).is_fifo():
        raise ValueError(f"{path!s} is a pipe: a model must be a file of known length")
    expansions, arrays, described = _core.read_model(os.fspath(path))
    try:
        check_description_size(described, arrays)
        content = json.loads(described, parse_constant=_refuse_constant)
        reader = Reader(expansions, arrays, _writer_of(content))
        if "schema" not in content:
            raise ValueError(
                f"it names no schema, as {reader.writer} wrote files before the first release: fit the model "
                "again and save it"
            )
        model = reader.value({name: item for name, item in content.items() if name != "about"})
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        if reader.unread:
            raise ValueError(f"array {min(reader.unread)!r} is not part of this model")
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise FormatError(f"{os.fspath(path)}: {reason}") from error
    return model


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _writer_of(content: Any) -> str:
    """Returns the name and the version of the program that wrote a description."""
    if not isinstance(content, dict) or not {"schema", "class", "expansion"} & content.keys():
        raise ValueError("it contains no model")
    about = content.get("about")
    written = about.get("version") if isinstance(about, dict) else None
    return f"svmarrow {written[:40]}" if isinstance(written, str) else "another program"


def _join(name: str, part: object) -> str:
    return f"{name}.{part}" if name else str(part)


class Writer:
    """Converts objects to JSON, and collects arrays and expansions."""

    def __init__(self, main: Any) -> None:
        self.expansions: dict[str, Any] = {}
        self.arrays: dict[str, tuple[str, list[int], NDArray[np.uint8]]] = {}
        self._main = main
        self._objects = 0
        #: What was written, by identity, so that shared objects stay shared; the reference keeps the identity
        #: valid.
        self._known: dict[object, tuple[Any, Any]] = {}

    def value(self, value: Any, name: str) -> Any:
        """Converts a value to JSON; `name` is its path in the model."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) in (list, tuple):
            items = [self.value(item, _join(name, place)) for place, item in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if isinstance(value, Mapping):
            pairs = enumerate(value.items())
            return {"dict": [self.value(list(pair), _join(name, place)) for place, pair in pairs]}
        if isinstance(value, range):
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, np.random.RandomState):
            return {"random": self.value(value.get_state(legacy=False), name)}
        identity = _identity(value)
        if identity not in self._known:
            described = self._described(value, name)
            self._known.setdefault(identity, (described, value))
            return described
        return self._known[identity][0]

    def _described(self, value: Any, name: str) -> Any:
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), name)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if sp.issparse(value) and value.format == "csr":
            parts = [self.value(getattr(value, part), _join(name, part)) for part in CSR]
            return {"csr": [*parts, *map(int, value.shape)], "array": isinstance(value, sp.sparray)}
        return self._object(value, name)

    def _array(self, array: NDArray[Any], name: str) -> Any:
        if array.dtype == object and array.ndim == 1 and all(isinstance(item, str) for item in array):
            return {"strings": [str(item) for item in array]}
        if array.dtype == object and array.shape[1:] == (1,):
            return {"objects": self._column(array, name)}
        form, stored = "array", np.ascontiguousarray(array).reshape(array.shape)
        if array.dtype.kind == "U" and array.dtype.itemsize:
            # Strings are stored as code points, so that their width is one of the dimensions.
            form, stored = "text", stored.astype(stored.dtype.newbyteorder("<"))[..., np.newaxis].view("<u4")
        dtype = stored.dtype.newbyteorder("<")
        if dtype not in DTYPE_NAMES or type(array) not in (np.ndarray, np.memmap):
            raise TypeError(
                f"{name} of type {array.dtype} cannot be stored in a model file: an array must contain "
                "numbers, booleans or strings"
            )
        stored = stored.astype(dtype, copy=False)
        self.arrays[name] = (DTYPE_NAMES[dtype], list(stored.shape), stored.reshape(-1).view(np.uint8))
        return {form: name}

    def _column(self, column: NDArray[Any], name: str) -> Any:
        """Converts a column of objects."""
        kind, parts = packed_objects(column, name)
        if kind == "strings":
            return self._array(column[:, 0], name)
        return {kind: [self._array(part, _join(name, key)) for key, part in parts.items()]}

    def _object(self, value: Any, name: str) -> Any:
        schema = schema_of(type(value))
        if schema is None:
            raise _refused(value, name)
        self._known[_identity(value)] = ({"same": self._objects}, value)
        self._objects += 1
        if getattr(type(value), "_of_parts", None):
            return {"schema": str(schema), **self._expansion(value, "" if value is self._main else name)}
        content = schema.content(value)
        described = {field: self.value(item, _join(name, field)) for field, item in content.items()}
        return {"schema": str(schema), **described}

    def _expansion(self, value: Any, name: str) -> dict[str, Any]:
        """Stores an expansion in the container, and returns its fields."""
        described = {"name": name} if name else {}
        if callable(value.kernel):
            return described | self._expansion_of_objects(value, name)
        self.expansions[name] = value.core_parts
        for part in ("vectors", "coefficients", "intercepts"):
            array = getattr(value, part)
            self._known[_identity(array)] = ({"array": _join(name, part)}, array)
        if sp.issparse(value.vectors):
            # The container has only indices of 64 bits.
            described["indices"] = value.vectors.indices.dtype.name
        return described

    def _expansion_of_objects(self, value: Any, name: str) -> dict[str, Any]:
        """Converts an expansion of one of svmarrow's kernels of objects.

        The container has numbers for the objects, as for a precomputed kernel; the description has the rest.
        """
        if schema_of(type(value.kernel)) is None:
            raise _refused(value.kernel, "kernel")
        numbers = np.arange(float(value.n_vectors))[:, np.newaxis]
        stored = value.replaced(vectors=numbers, kernel="precomputed")
        self.expansions[name] = stored.core_parts
        return {
            "kernel": self.value(value.kernel, _join(name, "kernel")),
            "vectors": self.value(value.vectors, _join(name, "objects")),
        }


def _identity(value: Any) -> object:
    """The id of an object; what an array views, since an expansion has views of the arrays it was made of."""
    if not isinstance(value, np.ndarray):
        return id(value)
    return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype


def _refused(value: Any, name: str) -> TypeError:
    """Returns the error for an object that cannot be stored."""
    kind = type(value).__name__
    what = f"{name}={value!r}" if name else f"a model of type {kind}"
    if callable(value):
        why = "it is a Python function, and files contain no code; pickle can store it"
    elif isinstance(value, BaseEstimator) or not name:
        why = (
            f"{kind} is not one of svmarrow's classes; use one of them instead, or save "
            "svmarrow.as_expansion(model), which predicts the same"
        )
    else:
        why = "a part must be made of numbers, strings, lists, dicts and arrays; pickle can store it"
    return TypeError(f"{what} cannot be stored in a model file: {why}")


class Reader:
    """Creates the objects that a file describes."""

    def __init__(self, expansions: Mapping[str, Any], arrays: Mapping[str, Any], writer: str) -> None:
        #: The program that wrote the file.
        self.writer = writer
        self._expansions: dict[str, Any] = {}
        self._arrays = dict(arrays)
        self._loaded: dict[str, Any] = {}
        self._objects: list[Any] = []
        for name, raw in expansions.items():
            expansion = self._expansions[name] = SCHEMAS["expansion"].kind._of_parts(raw)
            for part in ("vectors", "coefficients", "intercepts"):
                self._loaded[_join(name, part)] = getattr(expansion, part)
        #: Names of the arrays that have not been used.
        self.unread = {*arrays, *(_join(name, "vectors") for name in expansions)}

    def value(self, described: Any) -> Any:
        """Converts JSON to a value."""
        match described:
            case None | bool() | int() | float() | str():
                return described
            case {"schema": _}:
                return self._object(described)
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
                if len(steps) > MAX_RANGE_LENGTH:
                    raise ValueError(f"{steps!r} has more than {MAX_RANGE_LENGTH} elements")
                return steps
            case {"scalar": array}:
                return self.value(array)[()]
            case {"strings": list(items)}:
                if any(type(item) is not str for item in items):
                    raise ValueError("a list of strings has an element that is not a string")
                return np.array(items, dtype=object)
            case {"objects": column}:
                return self._column(column)
            case {"array": str(name)}:
                return self._array(name)
            case {"text": str(name)}:
                codes = self._array(name)
                if codes.dtype != np.uint32 or codes.ndim < 1 or not codes.shape[-1]:
                    raise ValueError(f"array {name!r} is not text")
                if codes.max(initial=0) > 0x10FFFF:
                    raise ValueError(f"array {name!r} has numbers that are not code points")
                return self._loaded.setdefault(f"{name} as text", codes.view(f"=U{codes.shape[-1]}")[..., 0])
            case {"csr": [data, indices, indptr, int(rows), int(columns)], "array": bool(new)}:
                parts = tuple(self.value(part) for part in (data, indices, indptr))
                matrix = (sp.csr_array if new else sp.csr_matrix)(parts, shape=(rows, columns))
                matrix.check_format(full_check=True)
                return matrix
            case {"random": state}:
                return _random_state(self.value(state))
            case {"same": int(number)}:
                shared = self._objects[number]
                if shared is None:
                    raise ValueError("a part of the model contains itself")
                return shared
        raise ValueError(f"{str(described)[:80]} is not a part of a model")

    def _column(self, described: Any) -> NDArray[Any]:
        """Returns a column of objects."""
        match described:
            case {"strings": list()}:
                return column_of(self.value(described))
            case {"bytes": [lengths, items]} | {"arrays": [lengths, items]}:
                (kind,) = described
                return unpacked_objects(kind, self.value(lengths), self.value(items))
        raise ValueError(f"{str(described)[:80]} is no list of objects")

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._loaded:
            dtype, shape, raw = self._arrays[name]
            # A copy, since the bytes of the file may be unaligned for larger elements.
            array = np.empty(shape, dtype=DTYPES[dtype].newbyteorder("="))
            array.reshape(-1)[:] = raw.view(DTYPES[dtype])
            self._loaded[name] = array
        self.unread.discard(name)
        loaded: NDArray[Any] = self._loaded[name]
        return loaded

    def _object(self, described: dict[str, Any]) -> Any:
        schema, described = find_schema(described, self.writer)
        number = len(self._objects)
        self._objects.append(None)
        values = {field: self.value(item) for field, item in described.items()}
        if getattr(schema.kind, "_of_parts", None):
            item = self._expansion(**values)
        else:
            item = schema.create(values)
            if hasattr(item, "_after_load") and _is_fitted(item):
                item._after_load()
        self._objects[number] = item
        return item

    def _expansion(self, name: Any = "", indices: Any = None, kernel: Any = None, vectors: Any = None) -> Any:
        """Returns an expansion of the container; `kernel` and `vectors` are those of one of objects."""
        self.unread.discard(_join(name, "vectors"))
        expansion = self._expansions[name]
        if kernel is not None or vectors is not None:
            if not callable(kernel) or getattr(vectors, "dtype", None) != np.dtype(object):
                raise ValueError("an expansion of objects has a kernel that does not take them")
            return expansion.replaced(vectors=vectors, kernel=kernel)
        if indices == "int32" and sp.issparse(expansion.vectors):
            _use_int32_indices(expansion.vectors)
        return expansion


def _use_int32_indices(matrix: Any) -> None:
    """Converts the indices to 32 bits in place."""
    if max(*matrix.shape, matrix.nnz) >= 2**31:
        raise ValueError("the vectors have too many elements for indices of 32 bits")
    for name in ("indices", "indptr"):
        setattr(matrix, name, read_only(getattr(matrix, name).astype(np.int32)))


def _random_state(state: Any) -> np.random.RandomState:
    position = state["state"]["pos"]
    if state["bit_generator"] != "MT19937" or type(position) is not int or not 0 <= position <= 624:
        raise ValueError("the state of the random numbers is invalid")
    random = np.random.RandomState()
    random.set_state(state)
    return random


def _is_fitted(part: Any) -> bool:
    """Returns whether a part is fitted, unlike the estimator parameter of a meta-estimator."""
    try:
        if isinstance(part, BaseEstimator):
            check_is_fitted(part)
    except NotFittedError:
        return False
    return True


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
