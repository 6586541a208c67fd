"""Model files that svmarrow writes: its own, safetensors, and LIBSVM's text."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support import saving
from svmarrow._support.estimator import Estimator
from svmarrow._support.path import SizePath
from svmarrow._support.rows import core_rows
from svmarrow._support.saving import load
from svmarrow.exceptions import SizeWarning
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.io.info import bytes_one_vs_rest, size_note
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.regressor import ExpansionDetector

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["load", "save", "save_as", "save_libsvm_model"]

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


# --- LIBSVM's model text ---
# A file has one output for each pair of labels a < b in its own order, positive for a. So a binary model is
# written with its second class first.


def save_libsvm_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a model as LIBSVM's text, for ``svm-predict`` and everything else that reads it.

    A one-vs-rest model becomes the pairwise differences of its outputs, so that the votes have the same
    winner; its file has up to n_classes - 1 lines a vector. That a model was trained with weights is not
    part of the format.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.as_expansion` takes. Labels must be whole numbers of at most 32
        bits. A model without labels needs one output and is written as ``epsilon_svr``, an outlier detector
        as ``one_class``.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If the format cannot hold the model: another kernel, labels that are not integers, several outputs
        without labels, a preparation of the rows, labels by probabilities or with ``break_ties=True``.
    """
    converted = as_expansion(model)
    if getattr(converted, "preparation", None) is not None:
        raise ValueError(
            "a LIBSVM model has no place for what a pipeline does to a row: svmarrow.save keeps it"
        )
    expansion = converted if isinstance(converted, KernelExpansion) else converted.expansion_
    coefficients, intercepts = expansion.coefficients, expansion.intercepts
    if not isinstance(converted, ExpansionClassifier):
        if expansion.n_outputs != 1:
            raise ValueError(
                f"an expansion with {expansion.n_outputs} outputs and no labels has no place in a LIBSVM "
                "model: it must have one output"
            )
        svm_type = "one_class" if isinstance(converted, ExpansionDetector) else "epsilon_svr"
        labels = np.empty(0, dtype=np.int64)
    else:
        if converted.decoding == "code":
            raise ValueError("a LIBSVM model decodes pairs of classes only; svmarrow.save keeps any code")
        if converted.predict_by != "scores":
            raise ValueError(
                f"this model predicts by its {converted.predict_by}, and a LIBSVM model by the outputs of "
                "its machines; svmarrow.save keeps that, and model.with_predict_by('scores') gives it up"
            )
        if converted.decoding == "ovo" and converted.break_ties and len(converted.classes_) > 2:
            raise ValueError(
                "break_ties=True has no place in a LIBSVM model, which gives a tie to the first class; "
                "svmarrow.save keeps it"
            )
        svm_type, labels = "c_svc", _integer_labels(converted.classes_)
        if converted.decoding == "binary":
            labels = labels[::-1]  # a positive output votes for the first label of the file
        elif converted.decoding == "ovr":
            first, second = np.triu_indices(len(labels), 1)
            coefficients = coefficients[:, first] - coefficients[:, second]
            intercepts = intercepts[first] - intercepts[second]
    _core.write_libsvm_model(
        os.fspath(path),
        svm_type,
        (
            core_rows(expansion.vectors),
            np.ascontiguousarray(coefficients),
            np.ascontiguousarray(intercepts),
            expansion.kernel_spec,
        ),
        np.ascontiguousarray(labels),
        np.empty(0, dtype=np.int64),
        ((), ()),
    )


def _integer_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    if classes.dtype.kind in "biuf":
        integers = classes.astype(np.int64)
        if (integers == classes).all() and (np.abs(integers) < 2**31).all():
            return integers
    raise ValueError(
        f"classes {classes[:4].tolist()!r} cannot be written to a LIBSVM model: it has whole numbers of "
        "32 bits only; svmarrow.save keeps any labels"
    )
