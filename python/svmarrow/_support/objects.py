"""Objects as samples: strings, series of different lengths, graphs, whatever a kernel function takes.

Samples that are not rows of numbers are stored as a column, an array of shape (n, 1) and type object. Code
that selects, splits, counts or stacks rows then works on objects too. A kernel function gets the
one-dimensional array of the objects, and the extension module, which sees their kernel values only, gets a
placeholder of the same number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow._support.parameters import check_array_types, is_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "as_objects",
    "column_of",
    "contents",
    "function_of",
    "is_objects",
    "needs_objects",
    "packed_objects",
    "unpacked_objects",
]

_NUMBERS = (bool, int, float, np.generic)


def is_objects(X: Any) -> bool:
    """Returns whether samples are a column of objects."""
    return isinstance(X, np.ndarray) and X.dtype == object


def contents(X: Any) -> Any:
    """Returns the one-dimensional array of a column of objects; rows of numbers as they are."""
    return X[:, 0] if is_objects(X) else X


def needs_objects(kernel: Any) -> bool:
    """Returns whether a kernel takes objects only: the classes of `svmarrow.kernels` do."""
    return callable(getattr(kernel, "prepare", None))


def function_of(estimator: Any, *, reset: bool) -> tuple[Any, bool]:
    """Returns the kernel function for which X may be objects, or None, and whether X must be objects.

    Other kernels, alone or in a list, read numbers; so does a machine that was fitted to rows of numbers.
    """
    owner = getattr(estimator, "expansion", None) or getattr(estimator, "estimator", estimator)
    kernel = getattr(owner, "kernel", None)
    kernels = kernel if isinstance(kernel, (list, tuple)) else [kernel]
    if not kernels or not all(callable(part) for part in kernels):
        return None, False
    expansion = None if reset else getattr(estimator, "expansion_", None)
    if expansion is None:
        return kernels[0], any(needs_objects(part) for part in kernels)
    return (kernels[0], True) if is_objects(expansion.vectors) else (None, False)


def as_objects(X: Any, name: str = "X", *, always: bool = False) -> NDArray[Any] | None:
    """Returns samples as a column of objects, or None for rows of numbers.

    Rows of numbers are sparse matrices, two-dimensional arrays and frames of numbers, and lists of lists of
    numbers of one length. Other sequences are objects, one a sample: strings, arrays of different lengths or
    of two dimensions (as are those of a three-dimensional array), and objects of any class.

    Parameters
    ----------
    X : sequence
        Samples.
    name : str
        Name of the parameter for errors.
    always : bool
        Whether each item is an object even if they could be rows of numbers.

    Raises
    ------
    TypeError
        For sparse matrices if ``always``.
    ValueError
        For missing objects, and for an empty sequence of them.
    """
    if sp.issparse(X):
        if always:
            raise TypeError(f"{name} is a sparse matrix: this kernel takes a sequence of objects")
        return None
    check_array_types(**{name: X})
    items = _items(X)
    if items is None or not (always or _are_objects(items)):
        return None
    if not len(items):
        raise ValueError(f"{name} has 0 samples: at least one is needed")
    for i, item in enumerate(items):
        if is_missing(item):
            raise ValueError(f"{name}[{i}] is {item!r}: every sample must be an object that the kernel takes")
    return column_of(items)


def column_of(items: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Returns a column of objects."""
    column = np.empty((len(items), 1), dtype=object)
    for row, item in zip(column, items, strict=True):
        row[0] = item
    return column


def _items(X: Any) -> NDArray[Any] | list[Any] | tuple[Any, ...] | None:
    """Returns the samples one by one; None for what is not a sequence of them."""
    if isinstance(X, (str, bytes, dict)) or len(getattr(X, "columns", (0,))) != 1:
        # Only a frame of one column can hold objects.
        return None
    if not isinstance(X, (list, tuple)):
        if not hasattr(X, "__array__"):
            return list(X) if hasattr(X, "__len__") else None
        X = np.asarray(X)
    if isinstance(X, np.ndarray):
        if X.ndim == 0:
            return None
        if X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in "OUS":
            X = X[:, 0]
        if X.dtype.kind in "US":
            return list(X.tolist())
    items: NDArray[Any] | list[Any] | tuple[Any, ...] = X
    return items


def _are_objects(items: NDArray[Any] | list[Any] | tuple[Any, ...]) -> bool:
    """Returns whether some of the samples are neither numbers nor rows of numbers of one length."""
    if isinstance(items, np.ndarray) and (items.dtype != object or items.ndim > 1):
        return items.dtype != object and items.ndim > 2
    shapes: set[tuple[int, ...]] = set()
    for item in items:
        if isinstance(item, _NUMBERS) or is_missing(item):
            shapes.add(())
        elif isinstance(item, np.ndarray) and item.dtype != object:
            shapes.add(item.shape)
        elif isinstance(item, (list, tuple)) and all(isinstance(number, _NUMBERS) for number in item):
            shapes.add((len(item),))
        else:
            return True
    return len(shapes) > 1 or any(len(shape) > 1 for shape in shapes)


# --- objects of a file: strings, bytes, and arrays whose items are of one type and shape ---


def packed_objects(column: NDArray[Any], name: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """Returns the kind of the objects of a column, their lengths, and all their items one after the other.

    Raises
    ------
    TypeError
        For objects of other kinds.
    """
    objects = column[:, 0]
    if all(type(item) is str for item in objects):
        return "strings", {}
    if all(type(item) is bytes for item in objects):
        kind, pieces = "bytes", [np.frombuffer(item, dtype=np.uint8) for item in objects]
    else:
        kind, pieces = "arrays", [np.asarray(item) for item in objects]
    forms = {(piece.dtype, piece.shape[1:]) if piece.ndim else None for piece in pieces}
    if len(forms) != 1 or None in forms or pieces[0].dtype.kind not in "fiub":
        raise TypeError(
            f"{name} has objects of type {type(objects[0]).__name__}, which cannot be stored in a model "
            "file: they must be strings, bytes or arrays of numbers of one type; pickle can store others"
        )
    lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
    return kind, {"lengths": lengths, "items": np.concatenate(pieces)}


def unpacked_objects(kind: str, lengths: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """Returns the column of `packed_objects`; raises ``ValueError`` for lengths that do not fit."""
    if lengths.dtype != np.int64 or lengths.ndim != 1 or lengths.min(initial=0) < 0:
        raise ValueError("the lengths of objects are not counts")
    # Sums of huge counts may overflow.
    if lengths.size and (lengths.max() > len(items) or lengths.sum() != len(items)):
        raise ValueError(f"the lengths of objects do not add up to {len(items)}")
    pieces = np.split(items, np.cumsum(lengths)[:-1])
    return column_of([piece.tobytes() for piece in pieces] if kind == "bytes" else pieces)
