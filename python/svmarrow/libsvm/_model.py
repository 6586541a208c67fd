"""Models in LIBSVM's form, and their files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.rows import as_rows, core_rows, threads
from svmarrow._support.training import pairs
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.libsvm._options import SVM_TYPES

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["svm_load_model", "svm_model", "svm_save_model"]


class svm_model:  # noqa: N801 - LIBSVM's name
    """A trained model, as `svm_train` and `svm_load_model` return it.

    `svmarrow.io.load_libsvm_model` reads the file of such a model for compression and export.
    """

    def __init__(
        self,
        svm_type: int,
        expansion: KernelExpansion,
        labels: list[int],
        counts: list[int],
        prob_a: list[float],
        prob_b: list[float],
        indices: list[int] | None = None,
    ) -> None:
        self._svm_type, self._expansion = svm_type, expansion
        self._labels, self._counts = labels, counts
        self._prob_a, self._prob_b = prob_a, prob_b
        self._indices = [0] * expansion.n_vectors if indices is None else indices

    def __repr__(self) -> str:
        return f"<svm_model: {SVM_TYPES[self._svm_type]}, {self._expansion.n_vectors} support vectors>"

    def get_svm_type(self) -> int:
        """Returns the number of the type, as ``-s`` takes it."""
        return self._svm_type

    def get_nr_class(self) -> int:
        """Returns the number of classes; 2 for regression and one-class SVM."""
        return len(self._labels) or 2

    def get_labels(self) -> list[int]:
        """Returns the labels in the order of the model; empty for regression and one-class SVM."""
        return list(self._labels)

    def get_nr_sv(self) -> int:
        """Returns the number of support vectors."""
        return self._expansion.n_vectors

    def get_sv_indices(self) -> list[int]:
        """Returns the training samples, counted from 1, that are support vectors; 0 for a loaded model."""
        return list(self._indices)

    def get_sv_coef(self) -> list[tuple[float, ...]]:
        """Returns the coefficients of each support vector, one for each other class."""
        coefficients = self._expansion.coefficients
        k = len(self._labels)
        if k <= 2:
            return [tuple(row) for row in coefficients.tolist()]
        vector_classes = np.repeat(np.arange(k), self._counts)
        packed = np.zeros((vector_classes.size, k - 1))
        for output, (a, b) in enumerate(pairs(k)):
            packed[vector_classes == a, b - 1] = coefficients[vector_classes == a, output]
            packed[vector_classes == b, a] = coefficients[vector_classes == b, output]
        return [tuple(row) for row in packed.tolist()]

    def get_SV(self) -> list[dict[int, float]]:  # noqa: N802 - LIBSVM's name
        """Returns the support vectors as dicts of indices and values."""
        vectors: Any = self._expansion.vectors
        if self._expansion.kernel == "precomputed":
            return [{0: serial + 1.0} for serial in np.asarray(vectors)[:, 0].tolist()]
        rows = sp.csr_array(vectors)
        return [
            {j + 1: v for j, v in zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True)}
            for a, b in zip(rows.indptr, rows.indptr[1:], strict=False)
        ]

    def is_probability_model(self) -> bool:
        """Returns whether the model was trained with ``-b 1``."""
        return bool(self._prob_a) and (bool(self._prob_b) or not self._labels)

    def get_svr_probability(self) -> float:
        """Returns the scale of the Laplace distribution of the errors of a regression."""
        if self._svm_type not in (3, 4) or not self._prob_a:
            raise ValueError("Model doesn't contain information for SVR probability inference")
        return self._prob_a[0]

    @property
    def _is_precomputed(self) -> bool:
        """True if the kernel is precomputed."""
        return bool(self._expansion.kernel == "precomputed")

    def _decision_values(self, X: Any) -> NDArray[np.float64]:
        """Computes the outputs (n_samples, n_outputs) of rows, positive for the first class of each pair."""
        expansion, n_samples = self._expansion, X.shape[0]
        if n_samples == 0:
            return np.empty((0, expansion.n_outputs))
        if expansion.n_vectors == 0:
            return np.tile(expansion.intercepts, (n_samples, 1))
        if self._is_precomputed:
            return _core.libsvm_kernel_outputs(expansion.core_parts, core_rows(as_rows(X)), threads(None))
        width = max(X.shape[1], expansion.vectors.shape[1], 1)
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(n_samples, width))
        if width != expansion.vectors.shape[1]:
            rows = sp.csr_array(expansion.vectors)
            vectors = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))
            expansion = expansion.replaced(vectors=vectors)
        return expansion.decision_function(X)

    def _answers(
        self, outputs: NDArray[np.float64], probability: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, str | None]:
        """Returns the predictions for some outputs, the probabilities of a classifier if they are asked for,
        and the lines that are printed about them.
        """
        head = (self._svm_type, self._labels, self._prob_a, self._prob_b)
        n_jobs = threads(None) if probability else 1  # labels alone take less time than counting the cores
        return _core.libsvm_answers(np.ascontiguousarray(outputs), head, probability, n_jobs)


def svm_save_model(model_file_name: str | PathLike[str], model: svm_model) -> None:
    r"""Writes a model file, which ``svm-predict`` reads.

    Parameters
    ----------
    model_file_name : str or path-like
        The file. An existing one is replaced when the new one is complete.
    model : svm_model
        The model.

    Raises
    ------
    OSError
        If the system cannot write the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from svmarrow.libsvm import (
    ...     evaluations,
    ...     svm_load_model,
    ...     svm_predict,
    ...     svm_read_problem,
    ...     svm_save_model,
    ...     svm_train,
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     data, file = Path(folder, "data"), Path(folder, "model")
    ...     _ = data.write_text("1 1:1\n-1 1:-1\n1 1:2\n")
    ...     y, x = svm_read_problem(data)
    ...     svm_save_model(file, svm_train(y, x, "-t 0 -q"))
    ...     labels, _, _ = svm_predict(y, x, svm_load_model(file), "-q")
    >>> evaluations(y, labels)[0]
    100.0
    """
    if not isinstance(model, svm_model):
        raise TypeError(f"model={model!r} is not allowed: it must be a model of svm_train or svm_load_model")
    _core.write_libsvm_model(
        os.fspath(model_file_name),
        SVM_TYPES[model._svm_type],
        model._expansion.core_parts,
        np.array(model._labels, dtype=np.int64),
        np.array(model._counts, dtype=np.int64),
        (model._prob_a, model._prob_b),
    )


def svm_load_model(model_file_name: str | PathLike[str]) -> svm_model:
    """Reads a model file of LIBSVM or `svm_save_model`, with its probability parameters.

    Parameters
    ----------
    model_file_name : str or path-like
        The file.

    Returns
    -------
    svm_model
        The model.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line that does not follow the format.
    """
    raw = _core.read_libsvm_model(os.fspath(model_file_name), None, False)
    expansion = KernelExpansion._of_parts(raw)
    labels = np.asarray(raw["labels"]).tolist()
    counts = np.asarray(raw["class_counts"]).tolist()
    prob_a, prob_b = (np.asarray(raw[key]).tolist() for key in ("prob_a", "prob_b"))
    return svm_model(SVM_TYPES.index(raw["svm_type"]), expansion, labels, counts, prob_a, prob_b)
