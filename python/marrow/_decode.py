"""From the outputs of the machines to decision values and classes, exactly as scikit-learn's ``SVC`` does it.

======== ======================== ===============================================
decoding outputs q                f > 0 means
======== ======================== ===============================================
binary   1                        the second class
ovo      k (k - 1) / 2, pairs a<b class a (LIBSVM's sign)
ovr      k                        class j
======== ======================== ===============================================
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marrow._params import refuse

__all__ = ["Decoding", "check_shape", "class_indices", "decision_values", "pairs"]

Decoding = Literal["binary", "ovo", "ovr"]

_Floats = NDArray[np.float64]


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
    votes = np.zeros((outputs.shape[0], n_classes), dtype=np.intp)
    for output, (a, b) in enumerate(pairs(n_classes)):
        won = outputs[:, output] > 0.0
        votes[:, a] += won
        votes[:, b] += ~won
    return _largest(votes)


def _largest(values: NDArray[Any]) -> NDArray[np.intp]:
    winners: NDArray[np.intp] = np.argmax(values, axis=1)
    return winners


def _votes_and_confidence(outputs: _Floats, n_classes: int) -> _Floats:
    """Votes plus the summed confidence squeezed into (-1/3, 1/3): it breaks ties and never turns a vote."""
    votes = np.zeros((outputs.shape[0], n_classes))
    confidence = np.zeros_like(votes)
    for output, (a, b) in enumerate(pairs(n_classes)):
        values = outputs[:, output]
        confidence[:, a] += values
        confidence[:, b] -= values
        votes[:, a] += values >= 0.0
        votes[:, b] += values < 0.0
    return votes + confidence / (3.0 * (np.abs(confidence) + 1.0))
