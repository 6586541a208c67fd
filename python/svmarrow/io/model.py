"""svmarrow's own model files: safetensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from svmarrow._support import saving
from svmarrow._support.estimator import Estimator
from svmarrow._support.path import SizePath
from svmarrow._support.saving import load
from svmarrow.exceptions import SizeWarning
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.io.info import bytes_one_vs_rest, size_note

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["load", "save", "save_as"]

#: Minimum ratio of the bytes of a file to those of one-vs-rest machines for a warning, and their difference.
MIN_SIZE_RATIO = 2
MIN_EXTRA_BYTES = 1 << 16


def save(model: Any, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Write a model as a safetensors file, all or nothing; `load` reads it.

    Parameters
    ----------
    model : object
        Anything of svmarrow that is fitted: an estimator, a path of sizes, a cascade, a tree, an expansion.
        It comes back as what it was, to the last bit, and an online learner continues its stream. What
        else `svmarrow.as_expansion` takes, a machine of scikit-learn for example, comes back as what it is to
        svmarrow: an `ExpansionClassifier`, an `ExpansionRegressor`, an `ExpansionDetector` or a
        `KernelExpansion`. So does a pipeline that ends in one: what it does to a row is kept as numbers.
    path : str or path-like
        The file; its name ends in ``.safetensors`` or has no suffix. An existing one is replaced when the new
        one is complete, and stays as it is on any error.
    metadata : dict or None, default=None
        Facts of your own about the model, such as the training data and a score: names with texts, numbers,
        booleans, None, and lists and dicts of them. `svmarrow.io.info` returns them, together with the date
        and the version of svmarrow, which every file has.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If the name has another suffix, or the metadata hold other values.
    TypeError
        If the model, its labels or a parameter cannot be stored as plain data: a kernel that is a Python
        function, an estimator of another package inside one of svmarrow's.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Warns
    -----
    svmarrow.exceptions.SizeWarning
        If compressed machines for pairs of classes take more than twice the bytes that one-vs-rest machines
        on as many vectors would, and 64 kB more.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import svmarrow
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = svmarrow.SVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "iris.safetensors"
    ...     svmarrow.save(svc, file)
    ...     again = svmarrow.load(file)
    >>> bool((again.predict(X) == svc.predict(X)).all())
    True
    """
    saving.check_name(path)
    save_as(model, path, metadata)


def save_as(model: Any, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """`save` under any name."""
    model = model if isinstance(model, (Estimator, KernelExpansion, SizePath)) else as_expansion(model)
    saving.save(model, path, metadata)
    _warn_of_size(model)


def _warn_of_size(model: Any) -> None:
    """Warn where the machines for pairs of classes of a shared pool of vectors are most of a file."""
    found = bytes_one_vs_rest(model)
    if found is not None and found[0] >= max(MIN_SIZE_RATIO * found[1], found[1] + MIN_EXTRA_BYTES):
        warnings.warn(f"{size_note(model)}: train with multi_class='ovr'", SizeWarning, stacklevel=4)
