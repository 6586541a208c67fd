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

from svmarrow._support.types import check_array_types, is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_objects", "contents", "function_of", "is_objects", "needs_objects"]

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
    """Returns the kernel function of an estimator or a model, None for other kernels, and whether it takes
    objects only.
    """
    owner = getattr(estimator, "expansion", None) or getattr(estimator, "estimator", estimator)
    kernel = getattr(owner, "kernel", None)
    if isinstance(kernel, (list, tuple)):
        kernel = next((part for part in kernel if callable(part)), None)
    if not callable(kernel):
        return None, False
    expansion = None if reset else getattr(estimator, "expansion_", None)
    return kernel, needs_objects(kernel) if expansion is None else is_objects(expansion.vectors)


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
    column = np.empty((len(items), 1), dtype=object)
    for i, item in enumerate(items):
        if is_missing(item):
            raise ValueError(f"{name}[{i}] is {item!r}: every sample must be an object that the kernel takes")
        column[i, 0] = item
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
