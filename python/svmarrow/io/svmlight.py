"""svmlight data, the text format of the field: ``target index:value ...``, one row a line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import numpy as np

from svmarrow import _core
from svmarrow._support.rows import as_rows, core_rows, rows_of

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from scipy import sparse

    from svmarrow._support.progress import ProgressCallback

__all__ = ["load_svmlight", "save_svmlight"]


def save_svmlight(X: ArrayLike, y: ArrayLike, path: str | PathLike[str]) -> None:
    """Write rows and targets as svmlight text, columns counted from 1.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows. Zeros are not written.
    y : array-like of shape (n_samples,)
        Targets: numbers.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If X or y has NaN or infinities, their lengths disagree, or the targets are not numbers.
    """
    rows = as_rows(X)
    try:
        targets = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold numbers to be written as svmlight text") from None
    if targets.ndim != 1:
        raise ValueError(f"y has shape {targets.shape}: expected one number a row")
    _core.write_svmlight(os.fspath(path), core_rows(rows), targets)


def load_svmlight(
    path: str | PathLike[str],
    n_features: int | None = None,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
    progress: ProgressCallback | None = None,
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    r"""Read svmlight text, a line at a time.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, default=None
        Number of columns; None takes the largest index. A file with larger indices is refused.
    zero_based : bool or "auto", default="auto"
        Whether columns count from 0. ``"auto"``: if an index 0 occurs in the file.
    dtype : float64 or float32, default=float64
        Type of the values.
    progress : callable, default=None
        ``progress(phase, done, total, gap, steps)`` is called now and then; `done` and `total` are bytes.

    Returns
    -------
    X : scipy.sparse.csr_array of shape (n_samples, n_features)
        Samples.
    y : ndarray of float64 of shape (n_samples,)
        Targets.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line which does not follow the format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from svmarrow.io import load_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "two.svm"
    ...     _ = file.write_text("1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = load_svmlight(file)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    if np.dtype(dtype) not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype={dtype!r} is not allowed: it must be float64 or float32")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is not allowed: it must be True, False or 'auto'")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    data, indices, indptr, shape, targets = _core.read_svmlight(
        os.fspath(path),
        n_features,
        None if zero_based == "auto" else bool(zero_based),
        np.dtype(dtype) == np.float32,
        progress,
    )
    return rows_of((data, indices, indptr, shape)), targets
