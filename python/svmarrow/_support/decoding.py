"""From the outputs of the machines to decision values and classes.

======== ======================== ===============================================
decoding outputs q                f > 0 means
======== ======================== ===============================================
binary   1                        the second class
ovo      k (k - 1) / 2, pairs a<b class a (LIBSVM's sign)
ovr      k                        class j
code     columns of a code        the classes of +1 in the column, not those of -1
======== ======================== ===============================================

The first three exactly as scikit-learn's ``SVC`` does it, the last by a named decoder.
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
    "code_class_indices",
    "code_decision_values",
    "code_scores",
    "decision_margins",
    "decision_values",
    "label_indices",
    "numbered_classes",
    "pair_matrix",
    "pairs",
]

Decoding = Literal["binary", "ovo", "ovr", "code"]

_Floats = NDArray[np.float64]
_Matrix = NDArray[np.int8]
#: Outputs times classes below which it takes longer to ask for the number of cores than to do without them.
_SHORT = 100_000


def numbered_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes of labels to learn from, sorted, and the number of each label's class."""
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iubU"
    if not plain:
        check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    # Of integers and strings the check refuses none, and warns where every other row has a class of its own.
    if plain and 2 * classes.size > y.size:
        check_classification_targets(y)
    if classes.size < 2:
        raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
    return classes, labels.reshape(-1)


def label_indices(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Index in `classes` of each label, -1 for a label that is not among them."""
    unique, inverse = np.unique(y, return_inverse=True)
    position = {label: index for index, label in enumerate(classes.tolist())}
    known = np.array([position.get(label, -1) for label in unique.tolist()], dtype=np.int64)
    return known[inverse.reshape(-1)]


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs (a, b), a < b, in the order of the outputs."""
    return [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]


def check_shape(decoding: Decoding, decision_function_shape: str, break_ties: bool) -> None:
    """Raises ``ValueError`` for combinations that have no meaning."""
    if decision_function_shape == "ovo" and decoding == "ovr":
        rule = "'ovr' when the machines were trained one against the rest"
        raise refuse("decision_function_shape", decision_function_shape, rule)
    if break_ties and decision_function_shape == "ovo":
        raise refuse("break_ties", break_ties, "False when decision_function_shape='ovo'")


def decision_values(
    outputs: _Floats, decoding: Decoding, n_classes: int, decision_function_shape: str
) -> _Floats:
    """Outputs (n, q) to what ``decision_function`` returns: (n,), (n, k) or (n, k (k - 1) / 2)."""
    if decoding == "binary":
        return outputs[:, 0]
    if decoding == "ovo" and decision_function_shape == "ovr":
        return _votes_and_confidence(outputs, n_classes)
    return outputs


def class_indices(
    outputs: _Floats,
    decoding: Decoding,
    n_classes: int,
    *,
    decision_function_shape: str = "ovr",
    break_ties: bool = False,
) -> NDArray[np.intp]:
    """Outputs (n, q) to the index of the predicted class (n,); the lower index wins a tie."""
    if decoding == "binary":
        return (outputs[:, 0] >= 0.0).astype(np.intp)
    if decoding == "ovr" or break_ties:
        values = decision_values(outputs, decoding, n_classes, decision_function_shape)
        return _largest(values)
    return code_class_indices(outputs, pair_matrix(n_classes), "votes")


def code_scores(outputs: _Floats, matrix: _Matrix, decoder: str, n_jobs: int | None = None) -> _Floats:
    """Outputs (n, F) of the machines of a code (k, F) to scores (n, k); the largest wins."""
    jobs = _jobs(outputs, matrix, n_jobs)
    return _core.decode_scores(np.ascontiguousarray(outputs), matrix, decoder, jobs)


def code_decision_values(
    outputs: _Floats, matrix: _Matrix, decoder: str, n_jobs: int | None = None
) -> _Floats:
    """Outputs (n, F) to what ``decision_function`` returns: (n, k), for two classes (n,)."""
    if matrix.shape == (2, 1):
        return outputs[:, 0] * float(matrix[1, 0])
    scores = code_scores(outputs, matrix, decoder, n_jobs)
    return scores[:, 1] - scores[:, 0] if matrix.shape[0] == 2 else scores


def code_class_indices(
    outputs: _Floats, matrix: _Matrix, decoder: str, n_jobs: int | None = None
) -> NDArray[np.intp]:
    """Outputs (n, F) to the index of the predicted class (n,); the lower index wins a tie."""
    jobs = _jobs(outputs, matrix, n_jobs)
    winners = _core.decode_winners(np.ascontiguousarray(outputs), matrix, decoder, jobs)
    return winners.astype(np.intp, copy=False)


def _jobs(outputs: _Floats, matrix: _Matrix, n_jobs: int | None) -> int:
    return 1 if outputs.size * matrix.shape[0] < _SHORT else threads(n_jobs)


@lru_cache(maxsize=32)
def pair_matrix(n_classes: int) -> _Matrix:
    """The code of all pairs a < b: +1 for a, -1 for b."""
    first, second = np.triu_indices(n_classes, 1)
    matrix = np.zeros((n_classes, first.size), dtype=np.int8)
    matrix[first, np.arange(first.size)] = 1
    matrix[second, np.arange(first.size)] = -1
    return matrix


def decision_margins(
    outputs: _Floats, decoding: Decoding, n_classes: int, winners: NDArray[np.intp]
) -> _Floats:
    """How clearly the class `winners` (n,) wins over the one that comes nearest, (n,).

    The size of the output for two classes, the distance of the two largest for one-vs-rest, and for
    one-vs-one the smallest output of the winner's own pairs, negative where it has lost one of them.
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


def _largest(values: NDArray[Any]) -> NDArray[np.intp]:
    winners: NDArray[np.intp] = np.argmax(values, axis=1)
    return winners


def _votes_and_confidence(outputs: _Floats, n_classes: int) -> _Floats:
    """Votes plus the summed confidence squeezed into (-1/3, 1/3): it breaks ties and never turns a vote."""
    return code_scores(outputs, pair_matrix(n_classes), "confidence")
