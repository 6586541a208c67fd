"""Decodes the outputs of the machines to decision values and classes.

======== ======================== ===============================================
decoding outputs q                f > 0 means
======== ======================== ===============================================
binary   1                        the second class
ovo      k (k - 1) / 2, pairs a<b class a (LIBSVM's sign)
ovr      k                        class j
code     columns of a code        the classes of +1 in the column, not those of -1
======== ======================== ===============================================

The first three are decoded exactly as in scikit-learn's ``SVC``, the last by a named decoder.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from svmarrow import _core
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import threads

__all__ = [
    "Decoding",
    "check_shape",
    "class_indices",
    "class_targets",
    "code_class_indices",
    "code_decision_values",
    "code_scores",
    "decision_margins",
    "decision_values",
    "encode_classes",
    "known_labels",
    "label_indices",
    "pair_matrix",
    "pairs",
]

Decoding = Literal["binary", "ovo", "ovr", "code"]

_Floats = NDArray[np.float64]
_Matrix = NDArray[np.int8]
#: Minimum product of outputs and classes for which the number of cores is looked up.
_MIN_PARALLEL_OUTPUTS = 100_000


def encode_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Returns the sorted classes of the training labels and the class index of each label."""
    is_plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU"
    if not is_plain:
        check_classification_targets(y)
    # The inverse of np.unique needs the order of all labels: ten times as long as a search among few classes.
    classes = np.unique(y)
    labels = np.searchsorted(classes, np.ravel(y))
    # For integers and strings the check only warns of more classes than half the samples.
    if is_plain and 2 * classes.size > y.size:
        check_classification_targets(y)
    if classes.size < 2:
        raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
    return classes, labels


def label_indices(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Returns the index in `classes` of each label, -1 for unknown labels."""
    unique, inverse = np.unique(y, return_inverse=True)
    position = {label: index for index, label in enumerate(classes.tolist())}
    known = np.array([position.get(label, -1) for label in unique.tolist()], dtype=np.int64)
    return known[inverse.reshape(-1)]


def known_labels(y: Any, classes: NDArray[Any], n_samples: int) -> NDArray[np.int64]:
    """Returns the index in `classes` of the label of each sample; unknown labels raise ``ValueError``."""
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"X and y disagree: X has {n_samples} rows, y has shape {labels.shape}")
    indices = label_indices(labels, classes)
    if (indices < 0).any():
        unknown = np.unique(labels[indices < 0])[:3].tolist()
        raise ValueError(f"y holds labels that the model does not know, such as {unknown}")
    return indices


def class_targets(labels: NDArray[Any], n_classes: int) -> _Floats:
    """Returns targets 1 and -1 of class indices, (n, 1) for two classes, else (n, n_classes)."""
    if n_classes == 2:
        return np.where(labels == 1, 1.0, -1.0)[:, np.newaxis]
    return np.where(labels[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """Returns the pairs (a, b), a < b, in the order of the outputs."""
    return [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]


def check_shape(decoding: Decoding, decision_function_shape: str, break_ties: bool) -> None:
    """Raises ``ValueError`` for combinations that are not supported."""
    if decision_function_shape == "ovo" and decoding == "ovr":
        rule = "'ovr' when the machines were trained one against the rest"
        raise refuse("decision_function_shape", decision_function_shape, rule)
    if break_ties and decision_function_shape == "ovo":
        raise refuse("break_ties", break_ties, "False when decision_function_shape='ovo'")


def decision_values(
    outputs: _Floats, decoding: Decoding, n_classes: int, decision_function_shape: str
) -> _Floats:
    """Converts outputs (n, q) to decision values of shape (n,), (n, k) or (n, k (k - 1) / 2)."""
    if decoding == "binary":
        return outputs[:, 0]
    if decoding == "ovo" and decision_function_shape == "ovr":
        scores = _votes_and_confidence(outputs, n_classes)
        return scores[:, 1] if n_classes == 2 else scores
    return outputs


def class_indices(
    outputs: _Floats,
    decoding: Decoding,
    n_classes: int,
    *,
    decision_function_shape: str = "ovr",
    break_ties: bool = False,
) -> NDArray[np.intp]:
    """Converts outputs (n, q) to the index of the predicted class (n,); the lower index wins a tie."""
    if decoding == "binary":
        return (outputs[:, 0] >= 0.0).astype(np.intp)
    if decoding == "ovr" or (break_ties and n_classes > 2):
        values = decision_values(outputs, decoding, n_classes, decision_function_shape)
        winners: NDArray[np.intp] = np.argmax(values, axis=1)
        return winners
    return code_class_indices(outputs, pair_matrix(n_classes), "votes")


def code_scores(outputs: _Floats, matrix: _Matrix, decoder: str, n_jobs: int | None = None) -> _Floats:
    """Converts outputs (n, F) of the machines of a code (k, F) to scores (n, k); the largest wins."""
    return _core.decode_scores(
        np.ascontiguousarray(outputs), matrix, decoder, _n_threads(outputs, matrix, n_jobs)
    )


def code_decision_values(
    outputs: _Floats, matrix: _Matrix, decoder: str, n_jobs: int | None = None
) -> _Floats:
    """Converts outputs (n, F) to decision values of shape (n, k), for two classes (n,)."""
    if matrix.shape == (2, 1):
        return outputs[:, 0] * float(matrix[1, 0])
    scores = code_scores(outputs, matrix, decoder, n_jobs)
    return scores[:, 1] - scores[:, 0] if matrix.shape[0] == 2 else scores


def code_class_indices(
    outputs: _Floats, matrix: _Matrix, decoder: str, n_jobs: int | None = None
) -> NDArray[np.intp]:
    """Converts outputs (n, F) to the index of the predicted class (n,); the lower index wins a tie."""
    n_threads = _n_threads(outputs, matrix, n_jobs)
    winners = _core.decode_winners(np.ascontiguousarray(outputs), matrix, decoder, n_threads)
    return winners.astype(np.intp, copy=False)


def _n_threads(outputs: _Floats, matrix: _Matrix, n_jobs: int | None) -> int:
    return 1 if outputs.size * matrix.shape[0] < _MIN_PARALLEL_OUTPUTS else threads(n_jobs)


@lru_cache(maxsize=32)
def pair_matrix(n_classes: int) -> _Matrix:
    """Returns the code of all pairs a < b: +1 for a, -1 for b."""
    first, second = np.triu_indices(n_classes, 1)
    matrix = np.zeros((n_classes, first.size), dtype=np.int8)
    matrix[first, np.arange(first.size)] = 1
    matrix[second, np.arange(first.size)] = -1
    return matrix


def decision_margins(
    outputs: _Floats, decoding: Decoding, n_classes: int, winners: NDArray[np.intp]
) -> _Floats:
    """Returns the margins (n,) by which the classes `winners` (n,) win over the runners-up.

    The absolute output for two classes, the difference of the two largest outputs for one-vs-rest, and for
    one-vs-one the smallest output of the winner's pairs, negative if it has lost one of them.
    """
    rows = np.arange(outputs.shape[0])
    if decoding == "binary":
        return np.abs(outputs[:, 0])
    if decoding == "ovr":
        others = outputs.copy()
        others[rows, winners] = -np.inf
        margins: _Floats = outputs[rows, winners] - others.max(axis=1)
        return margins
    margins = np.full(outputs.shape[0], np.inf)
    for output, (a, b) in enumerate(pairs(n_classes)):
        values = outputs[:, output]
        duel = np.where(winners == a, values, np.where(winners == b, -values, np.inf))
        np.minimum(margins, duel, out=margins)
    return margins


def _votes_and_confidence(outputs: _Floats, n_classes: int) -> _Floats:
    """Returns votes plus the summed confidence scaled to (-1/3, 1/3), which only breaks ties."""
    return code_scores(outputs, pair_matrix(n_classes), "confidence")
