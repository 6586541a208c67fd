"""Bounds for errors on the training samples: leave-one-out and training error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.codes import LOSSES, Code
from svmarrow._support.parameters import check, one_of
from svmarrow._support.rows import threads
from svmarrow.papers.rifkin.model import parts_of
from svmarrow.papers.rifkin.stability import TIKHONOV, Bound

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LeaveOneOutBound", "leave_one_out", "training_error"]


@dataclass(frozen=True, eq=False)
class LeaveOneOutBound(Bound):
    """A bound for the leave-one-out error, row by row."""

    #: Rows that could be errors when they are left out, (n,).
    suspects: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    #: Smallest difference of the total losses that leaving the row out can give, (n,); below 0 another
    #: class could win.
    margins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def leave_one_out(model: Any, X: Any, y: ArrayLike) -> LeaveOneOutBound:
    """Share of training samples that could be classified wrongly if each were left out of all machines.

    For a machine without intercept the output at a row that it was trained without lies between f and f - c K
    (4.56), f the output with the row, c the row's signed coefficient, K = k(x, x). A row is a suspect if some
    choice of outputs within these intervals gives another class a smaller total loss (4.60). Each rival class
    is looked at by itself, and machines that never saw the row keep their output, which they do exactly.

    Parameters
    ----------
    model : CodedClassifier or classifier of svmarrow
        Fitted, without intercept: `CodedClassifier` over ``SVC(fit_intercept=False)`` or `RLSClassifier`, or
        one of these by itself.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples, in the order of `fit`; kernel values for a precomputed kernel.
    y : array-like of shape (n_samples,)
        Their labels.

    Returns
    -------
    LeaveOneOutBound
        ``value`` is the share of suspects, never below the true leave-one-out error.

    Raises
    ------
    ValueError
        If the machines have intercepts, X are not the training samples, or the decoder is "dag" or a mean
        loss.
    TypeError
        If the model is of another kind, or its machines are not known by training samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC, CodedClassifier
    >>> from svmarrow.papers import rifkin
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CodedClassifier(SVC(fit_intercept=False)).fit(X, y)
    >>> bound = rifkin.leave_one_out(model, X, y)
    >>> 0.0 < bound.value < 0.5, bound.equation
    (True, '(4.60)')
    """
    parts = parts_of(model, X, y)
    margins, suspects = _core.leave_one_out_rows(
        {
            "outputs": parts.fitted.outputs,
            "coefficients": parts.fitted.coefficients,
            "diagonal": parts.diagonal,
            "labels": parts.labels,
            "slack": parts.slack,
        },
        parts.code.matrix,
        parts.decoder,
        threads(None),
    )
    assumptions = (
        TIKHONOV,
        "the kernel is positive semidefinite",
        "C, alpha, weights and kernel stay as they are when a row leaves",
        "outputs are within the solver's violation of the optimum's",
    )
    value = float(suspects.mean())
    return LeaveOneOutBound(
        value, "(4.60)", assumptions, {"rows": float(parts.labels.size)}, suspects, margins
    )


def training_error(
    code: Code | ArrayLike, outputs: ArrayLike, labels: ArrayLike, *, loss: str, decoder: str = "loss"
) -> Bound:
    """Bound for the training error rate by the average loss of the machines.

    N eps / (rho L(0)) for loss-based decoding (4.51), twice that for Hamming decoding (4.53), with eps the
    average loss over rows and machines, a zero of the code counting L(0). It uses F for the N of the print's
    numerator: the errors are at most n F eps / (rho L(0)), as in the source of the theorem.

    Parameters
    ----------
    code : Code or array-like of shape (n_classes, n_columns)
        The code.
    outputs : array-like of shape (n_samples, n_columns)
        Outputs of the machines.
    labels : array-like of int of shape (n_samples,)
        Row of the code of each row's class.
    loss : str
        The loss L: "hinge", "squared_hinge", "square", "logistic" or "exponential".
    decoder : {"loss", "hamming"}, default="loss"
        How classes are decoded.

    Returns
    -------
    Bound
        Of the share of training samples that are decoded wrongly.
    """
    check(
        {"loss": loss, "decoder": decoder},
        {"loss": one_of(*LOSSES[:-1]), "decoder": one_of("loss", "hamming")},
    )
    made = code if isinstance(code, Code) else Code(code)
    values = np.asarray(outputs, dtype=np.float64)
    signs = made.matrix[np.asarray(labels)]
    margins = np.ascontiguousarray(values * signs).ravel()
    average = float(_core.margin_loss(margins, loss).mean())
    zero = float(_core.margin_loss(np.zeros(1), loss)[0])
    factor = 1.0 if decoder == "loss" else 2.0
    value = factor * made.n_columns * average / (made.row_distance * zero)
    assumptions = ("(L(z) + L(-z)) / 2 >= L(0) > 0" if decoder == "loss" else "L(z) >= L(0) > 0 for z < 0",)
    terms = {"average_loss": average, "row_distance": made.row_distance, "loss_at_zero": zero}
    return Bound(value, "(4.51)" if decoder == "loss" else "(4.53)", assumptions, terms)
