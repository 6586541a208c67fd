"""Tune the thresholds of a compressed classifier on training samples (Weston & Bakir, TR-132, footnote 4).

Compression moves the outputs a little; where a decision boundary runs along many rows, a small shift of the
intercepts wins much of the loss back. Which shift is the best for the training error depends on the decoding:
one number for two classes, all classes together for one-vs-rest, each machine of one-vs-one or of another
code on its own classes.

A model that was trained with weights keeps its thresholds: the fewest errors would be those of another loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.decoding import pair_matrix
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.regressor import ExpansionDetector

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["shifts"]


def shifts(
    model: Any,
    outputs: NDArray[np.float64],
    labels: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Changes of the intercepts that minimize the weight of errors on these samples.

    Parameters
    ----------
    model : ExpansionModel or KernelExpansion
        Says how outputs are decoded.
    outputs : ndarray of shape (n_samples, n_outputs)
        Outputs on the samples.
    labels : ndarray of int64 of shape (n_samples,), or of float64 of shape (n_samples, n_outputs)
        Index of each sample's class; 1 or -1 for a detector; the numbers that outputs should be, which their
        mean then is.
    weights : ndarray of shape (n_samples,), default=None
        What each sample counts, more than 0; None is 1 for each.

    Returns
    -------
    ndarray of shape (q,)
        The shifts; 0 where none gains anything.
    """
    if isinstance(model, ExpansionDetector):
        return np.array([_core.threshold_binary(np.ascontiguousarray(outputs[:, 0]), labels > 0, weights)])
    if not isinstance(model, ExpansionClassifier):
        missing = labels - outputs
        return np.asarray(
            missing.mean(axis=0) if weights is None else np.average(missing, axis=0, weights=weights)
        )
    if model.decoding == "ovr":
        return np.asarray(_core.threshold_joint(np.ascontiguousarray(outputs), labels, weights))
    if model.decoding == "binary":
        return np.array([_core.threshold_binary(np.ascontiguousarray(outputs[:, 0]), labels == 1, weights)])
    matrix = pair_matrix(len(model.classes_)) if model._matrix is None else model._matrix
    found, known = np.zeros(outputs.shape[1]), np.flatnonzero(labels >= 0)
    for column, entries in enumerate(matrix.T):
        signs = entries[labels[known]]
        rows, positive = known[signs != 0], signs[signs != 0] > 0
        if 0 < np.count_nonzero(positive) < rows.size:
            part = None if weights is None else weights[rows]
            found[column] = _core.threshold_binary(outputs[rows, column], positive, part)
    return found
