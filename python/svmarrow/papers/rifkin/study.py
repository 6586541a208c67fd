"""Correlation of the errors of codes: overlaps of predictions, and binary errors where one-vs-rest is wrong.

An error-correcting code corrects something only where its machines err apart. Rifkin (2002) measures it
in two ways: the share of rows that two codes put into the same class (tables 4.6 and 4.7), and, on the rows
that a reference such as the code "ovr" gets wrong, the share of the machines that err among those that
distinguish the true class from the mistaken one (figures 4-2 and 4-3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.decoding import LOSSES, Code
from svmarrow._support.displays import new_axes
from svmarrow._support.parameters import check, one_of
from svmarrow._support.rows import threads
from svmarrow.papers.rifkin.stability import TIKHONOV, Bound, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.multiclass.classifier import CodedClassifier


__all__ = [
    "BinaryErrorDisplay",
    "LeaveOneOutBound",
    "OverlapDisplay",
    "binary_errors",
    "leave_one_out",
    "overlap_matrix",
    "reverse_cumulative",
    "training_error",
]


# --- bounds for errors on the training samples: leave-one-out and training error ---


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


def overlap_matrix(predictions: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Shares of rows that classifiers put into the same class.

    Parameters
    ----------
    predictions : sequence of m array-likes of shape (n_samples,)
        Predicted labels of each classifier for the same rows.

    Returns
    -------
    ndarray of shape (m, m)
        Symmetric, ones on the diagonal (Rifkin 2002, tables 4.6 and 4.7).

    Raises
    ------
    ValueError
        If there are no rows, or the lengths differ.

    Examples
    --------
    >>> from svmarrow.papers.rifkin import overlap_matrix
    >>> overlap_matrix([["a", "b", "a", "a"], ["a", "b", "b", "a"]]).tolist()
    [[1.0, 0.75], [0.75, 1.0]]
    """
    labels = [np.asarray(of) for of in predictions]
    shapes = {of.shape for of in labels}
    if len(shapes) != 1 or labels[0].ndim != 1 or labels[0].size == 0:
        raise ValueError(f"predictions have shapes {sorted(shapes)}: they must be labels of the same rows")
    together = np.unique(np.concatenate(labels), return_inverse=True)[1].reshape(len(labels), -1)
    return np.array([[float((a == b).mean()) for b in together] for a in together])


def binary_errors(model: CodedClassifier, X: Any, y: ArrayLike, reference: ArrayLike) -> NDArray[np.float64]:
    """On the rows that a reference gets wrong: the share of the machines concerned that err.

    For a row of class i that the reference put into class j, the machines concerned are those that have i and
    j on different sides. One errs if its output is on the side of j, or 0.

    Parameters
    ----------
    model : CodedClassifier
        Fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Their labels.
    reference : array-like of shape (n_samples,)
        Labels that the reference predicted, those of ``code="ovr"`` for example, as in Rifkin 2002.

    Returns
    -------
    ndarray of shape (n_errors,)
        One share for each row that the reference got wrong, in the order of the rows; NaN where no machine
        distinguishes the two classes.

    Raises
    ------
    ValueError
        For labels that are not among the model's classes, and lengths that disagree.
    """
    true, taken = _indices(model, y, "y"), _indices(model, reference, "reference")
    outputs = model.outputs(X)
    if not true.shape == taken.shape == outputs.shape[:1]:
        raise ValueError(
            f"X has {outputs.shape[0]} rows, y {true.size} labels and reference {taken.size}: they must agree"
        )
    wrong = np.flatnonzero(true != taken)
    matrix = model.code_.matrix
    own, other = matrix[true[wrong]], matrix[taken[wrong]]
    concerned = own * other < 0
    err = concerned & (outputs[wrong] * own <= 0.0)
    with np.errstate(invalid="ignore"):
        shares: NDArray[np.float64] = err.sum(axis=1) / concerned.sum(axis=1)
    return shares


def _indices(model: CodedClassifier, labels: ArrayLike, name: str) -> NDArray[np.intp]:
    given = np.asarray(labels)
    places = np.searchsorted(model.classes_, given).clip(max=model.classes_.size - 1)
    if given.ndim != 1 or not (model.classes_[places] == given).all():
        raise ValueError(f"{name} must hold labels of the model, one a row")
    return places


def reverse_cumulative(values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The reverse cumulative distribution: the share of values that are at least so large.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Numbers; NaN is left out.

    Returns
    -------
    points : ndarray of shape (n_points,)
        The distinct values, rising.
    shares : ndarray of shape (n_points,)
        Share of the values that are at least as large as each; the first is 1.

    Raises
    ------
    ValueError
        If there are no numbers.

    Examples
    --------
    >>> from svmarrow.papers.rifkin import reverse_cumulative
    >>> points, shares = reverse_cumulative([0.5, 1.0, 1.0, 1.0])
    >>> points.tolist(), shares.tolist()
    ([0.5, 1.0], [1.0, 0.75])
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = np.sort(numbers[~np.isnan(numbers)])
    if numbers.size == 0:
        raise ValueError("values hold no numbers: a distribution needs at least one")
    points, first = np.unique(numbers, return_index=True)
    return points, 1.0 - first / numbers.size


class OverlapDisplay:
    """A drawing of an overlap matrix.

    Parameters
    ----------
    matrix : array-like of shape (m, m)
        From `overlap_matrix`.
    names : sequence of m str
        Names of the classifiers.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from svmarrow.papers.rifkin import OverlapDisplay
    >>> display = OverlapDisplay.from_predictions({"OVA": [0, 1, 2], "AVA": [0, 1, 1]}).plot()
    >>> len(display.ax_.texts)
    4
    """

    ax_: Any
    figure_: Any
    matrix: NDArray[np.float64]
    names: list[str]

    def __init__(self, matrix: ArrayLike, names: Sequence[str]) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        self.names = list(names)
        if self.matrix.shape != (len(self.names), len(self.names)):
            raise ValueError(f"matrix has shape {self.matrix.shape} for {len(self.names)} names")

    @classmethod
    def from_predictions(cls, predictions: Mapping[str, ArrayLike]) -> OverlapDisplay:
        """From the predicted labels of each classifier, by name."""
        return cls(overlap_matrix(list(predictions.values())), list(predictions))

    def plot(self, *, ax: Any = None, cmap: str = "Blues") -> OverlapDisplay:
        """Draw it on the axes given, else on new ones; itself."""
        ax = new_axes(ax)
        off = self.matrix[~np.eye(len(self.names), dtype=bool)]
        low = float(off.min()) if off.size else 0.0
        ax.imshow(self.matrix, cmap=cmap, vmin=low - 0.25 * (1.0 - low) - 1e-3, vmax=1.0)
        places = range(len(self.names))
        ax.set_xticks(places, self.names)
        ax.set_yticks(places, self.names)
        for i in places:
            for j in places:
                dark = self.matrix[i, j] > 0.5 * (1.0 + low)
                text = f"{self.matrix[i, j]:.3f}"
                ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black")
        ax.set_title("share of rows in the same class")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class BinaryErrorDisplay:
    """Reverse cumulative curves of binary errors where a reference errs, one curve for each code.

    Parameters
    ----------
    shares : mapping from str to array-like
        From `binary_errors`, by the name of the code.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.
    lines_ : list of matplotlib.lines.Line2D
        The curves.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from svmarrow.papers.rifkin import BinaryErrorDisplay
    >>> display = BinaryErrorDisplay({"dense": [0.4, 0.8, 1.0], "sparse": [1.0, 1.0, 0.7]}).plot()
    >>> len(display.lines_)
    2
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    shares: dict[str, NDArray[np.float64]]

    def __init__(self, shares: Mapping[str, ArrayLike]) -> None:
        self.shares = {name: np.asarray(of, dtype=np.float64) for name, of in shares.items()}

    @classmethod
    def from_models(
        cls, models: Mapping[str, CodedClassifier], X: Any, y: ArrayLike, reference: ArrayLike
    ) -> BinaryErrorDisplay:
        """From fitted models by name, rows with labels, and the reference's predictions for them."""
        return cls({name: binary_errors(model, X, y, reference) for name, model in models.items()})

    def plot(self, *, ax: Any = None) -> BinaryErrorDisplay:
        """Draw it on the axes given, else on new ones; itself."""
        ax = new_axes(ax)
        self.lines_ = []
        for name, shares in self.shares.items():
            points, above = reverse_cumulative(shares)
            x = np.concatenate([[0.0], points, [1.0]])
            y = np.concatenate([[1.0], above, above[-1:] if points[-1] >= 1.0 else [0.0]])
            self.lines_ += ax.step(100.0 * x, 100.0 * y, where="pre", label=name)
        ax.set_xlabel("minimum share of the machines concerned that err (%)")
        ax.set_ylabel("rows that the reference gets wrong (%)")
        ax.set_xlim(0.0, 100.0)
        ax.set_ylim(0.0, 103.0)
        ax.legend(loc="lower left")
        self.ax_, self.figure_ = ax, ax.figure
        return self
