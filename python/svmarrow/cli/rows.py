"""Data of a file, and the options with which it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Data", "DataOptions", "joined", "whole", "with_columns"]


@dataclass(frozen=True)
class DataOptions:
    """Options for reading a data file.

    Attributes
    ----------
    format : {"auto", "svmlight", "csv", "npz", "parquet"}
        "auto" goes by the file's name, and takes what it does not know for svmlight.
    target : str or None
        CSV and parquet: name or index of the label column; negative indices count from the end, "none" means
        there is none. Without it, the last column, unless the file has exactly `n_features` columns.
    header : bool or None
        CSV: whether the first line holds names; None looks.
    test : bool
        npz: take the arrays whose names say test.
    n_features : int or None
        Columns that are expected; None takes what the file has.
    single_precision : bool
        Keep the numbers in float32.
    names : tuple of str or None
        CSV with a header, parquet: the columns to take, in this order; the label is the one that is none of
        them.
    text_labels : bool
        Labels of text files stay text, whatever they look like.
    zero_based : bool or None
        svmlight: whether columns count from 0; None looks for an index 0.
    """

    format: Literal["auto", "svmlight", "csv", "npz", "parquet"] = "auto"
    target: str | None = None
    header: bool | None = None
    test: bool = False
    n_features: int | None = None
    single_precision: bool = False
    names: tuple[str, ...] | None = None
    text_labels: bool = False
    zero_based: bool | None = None

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """Type of the numbers."""
        return np.float32 if self.single_precision else np.float64


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, and their labels where the file has them.

    Attributes
    ----------
    X : ndarray or sparse array of shape (n, n_features)
        Rows.
    y : ndarray of shape (n,) or None
        Labels: integers where all are whole numbers, strings where any is not a number.
    names : list of str or None
        Column names.
    """

    X: Any
    y: NDArray[Any] | None
    names: list[str] | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """The labels; a ValueError where there are none."""
        if self.y is None:
            raise ValueError("the data have no labels")
        return self.y


def joined(pieces: list[Data]) -> Data:
    """Concatenates batches of dense rows."""
    if not pieces:
        return Data(np.empty((0, 0)), None)
    first = pieces[0]
    if len(pieces) == 1:
        return first
    y = None if first.y is None else np.concatenate([piece.labels for piece in pieces])
    return Data(np.concatenate([piece.X for piece in pieces]), y, first.names)


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Converts floating-point numbers to integers if all are whole."""
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        return values
    exact = np.abs(values).max(initial=0) < 2**53 and (values == np.trunc(values)).all()
    return values.astype(np.int64) if exact else values


def with_columns(data: Data, n_features: int) -> Data:
    """The same rows with empty columns behind the last, up to `n_features`."""
    missing = n_features - data.X.shape[1]
    if missing <= 0:
        return data
    if sparse.issparse(data.X):
        X = data.X.copy()
        X.resize((X.shape[0], n_features))
        return replace(data, X=X)
    return replace(data, X=np.hstack([data.X, np.zeros((data.X.shape[0], missing), dtype=data.X.dtype)]))
