"""What is exported: an expansion, and how its outputs are read, in words that both writers understand."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from svmarrow._support.decoding import pair_matrix
from svmarrow.interop.convert import as_expansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.regressor import ExpansionRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["Reading", "dense_vectors", "facts", "linear_weights", "reading_of"]


@dataclass(frozen=True)
class Reading:
    """An expansion and the meaning of its outputs.

    Attributes
    ----------
    expansion : KernelExpansion
        The outputs.
    kind : {"classes", "numbers", "inside", "outputs"}
        Labels; predictions; 1 inside and -1 outside; nothing is known.
    n_features : int
        Columns of a row.
    flat : bool
        For numbers: whether one target is a vector, not a column.
    classes : ndarray or None
        The labels, for classes.
    winner : str
        For classes, how the label is found: "sign" (the second class from 0 on), "largest", or a decoder of
        `matrix`.
    scores : str
        For classes, what `decision_function` gives: "outputs", "flat" (the one output as a vector), "column"
        (the same, with the sign of the code), "difference" (of two classes' scores), or a decoder.
    matrix : ndarray of int8 of shape (n_classes, n_outputs) or None
        The code of the decoders.
    """

    expansion: KernelExpansion
    kind: Literal["classes", "numbers", "inside", "outputs"]
    n_features: int
    flat: bool = False
    classes: NDArray[Any] | None = None
    winner: str = ""
    scores: str = "outputs"
    matrix: NDArray[np.int8] | None = None


def reading_of(model: Any) -> Reading:
    """How the outputs of a model are read.

    Raises
    ------
    TypeError, ValueError, NotFittedError
        As `svmarrow.as_expansion`; a ValueError for a kernel that is a Python function.
    """
    converted = as_expansion(model)
    expansion = getattr(converted, "expansion_", converted)
    if callable(expansion.kernel):
        raise ValueError(
            f"kernel={expansion.kernel!r} is a Python function and cannot be exported: use a built-in kernel"
        )
    columns = int(getattr(converted, "n_features_in_", expansion.vectors.shape[1]))
    if expansion is converted and expansion.kernel == "precomputed":
        columns = int(expansion.vectors.max(initial=-1)) + 1
    if isinstance(converted, ExpansionRegressor):
        flat = converted.flat and expansion.n_outputs == 1
        return Reading(expansion, "numbers", columns, flat=flat)
    if isinstance(converted, ExpansionDetector):
        return Reading(expansion, "inside", columns)
    if not isinstance(converted, ExpansionClassifier):
        return Reading(expansion, "outputs", columns)
    classes = converted.classes_
    matrix: NDArray[np.int8] | None = None
    if converted.decoding == "binary":
        winner, scores = "sign", "flat"
    elif converted.decoding == "ovr":
        winner, scores = "largest", "outputs"
    elif converted.decoding == "ovo":
        matrix = pair_matrix(len(classes))
        winner = "confidence" if converted.break_ties else "votes"
        scores = "confidence" if converted.decision_function_shape == "ovr" else "outputs"
    else:
        matrix, winner = converted._matrix, str(converted.decoder)
        assert matrix is not None
        scores = "column" if matrix.shape == (2, 1) else "difference" if len(classes) == 2 else winner
    return Reading(
        expansion, "classes", columns, classes=classes, winner=winner, scores=scores, matrix=matrix
    )


def dense_vectors(expansion: KernelExpansion) -> NDArray[np.float64]:
    """The vectors, dense and in double precision, (m, d)."""
    rows = expansion.vectors
    dense: NDArray[np.float64] = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    return dense


def linear_weights(expansion: KernelExpansion, n_features: int) -> NDArray[np.float64] | None:
    """Weights of the columns (d, q) that say the same as the vectors in fewer numbers, or None."""
    m, d, q = expansion.n_vectors, n_features, expansion.n_outputs
    if m == 0:
        return np.zeros((d, q))
    if expansion.kernel != "linear" or d * q > m * (d + q):
        return None
    return dense_vectors(expansion).T @ expansion.coefficients


def facts(expansion: KernelExpansion) -> dict[str, str]:
    """What an exported file says about its origin."""
    digest = hashlib.sha256()
    parts = (dense_vectors(expansion), expansion.coefficients, expansion.intercepts)
    for part in parts:
        digest.update(repr(part.shape).encode())
        digest.update(np.ascontiguousarray(part).data)
    digest.update(repr(expansion.kernel_spec).encode())
    name, gamma, coef0, degree = expansion.kernel_spec
    return {
        "producer": f"svmarrow {version('svmarrow')}",
        "kernel": f"{name}, gamma={gamma!r}, coef0={coef0!r}, degree={degree}",
        "sha256": digest.hexdigest(),
    }
