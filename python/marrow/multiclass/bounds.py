"""What can be said about the error of coded machines without a test set: each bound with its terms.

Every function gives a `Bound`: the value, the equation, what is assumed, and the quantities that went in.
Equations are those of R. Rifkin, "Everything Old Is New Again", MIT 2002; where its print is wrong the note
of the function says what is built instead.

| function | equation | bounds |
|---|---|---|
| `leave_one_out` | (4.60), (4.63) | the leave-one-out error of a multiclass model |
| `training_error` | (4.51), (4.53) | the training error by the losses of the machines |
| `stability` | (5.8) | how far one row moves a loss |
| `bagging_stability` | (5.27) | how far one row moves an average over disjoint chunks |
| `generalization` | (5.5) | the expected loss of a stable learner |
| `multiclass_generalization` | (5.34) | the error rate of a coded model of stable machines |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from marrow import _core
from marrow._decode import code_scores
from marrow._params import check, integer, one_of, real
from marrow._validation import as_rows, core_rows, threads
from marrow.multiclass.codes import LOSSES, Code, make_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from marrow.expansion import KernelExpansion

__all__ = [
    "Bound",
    "LeaveOneOutBound",
    "admissibility",
    "bagging_stability",
    "generalization",
    "leave_one_out",
    "multiclass_generalization",
    "multiclass_generalization_of",
    "ramp_loss",
    "stability",
    "training_error",
]

#: Losses that the stability bounds know: those of decoders, and two of regression.
_STABLE = (*LOSSES, "absolute", "epsilon_insensitive")
#: Relative error of an output that sums in single precision may have.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Bound:
    """A bound and what it rests on."""

    #: The number.
    value: float
    #: Where it stands in the thesis.
    equation: str
    #: What must hold for it.
    assumptions: tuple[str, ...]
    #: The quantities that went in, by name.
    terms: Mapping[str, float] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class LeaveOneOutBound(Bound):
    """A bound for the leave-one-out error, row by row."""

    #: Rows that could be errors when they are left out, (n,).
    suspects: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    #: Smallest difference of the total losses that leaving the row out can give, (n,); below 0 another
    #: class could win.
    margins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


_TIKHONOV = (
    "each machine minimises a sum of convex losses plus a multiple of the squared norm, without intercept"
)


def leave_one_out(model: Any, X: Any, y: ArrayLike) -> LeaveOneOutBound:
    """Share of training rows that could be classified wrongly if each were left out of all machines.

    For a machine without intercept the output at a row that it was trained without lies between f and f - c K
    (4.56), f the output with the row, c the row's signed coefficient, K = k(x, x). A row is a suspect if some
    choice of outputs within these intervals gives another class a smaller total loss (4.60). Each rival class
    is looked at by itself, and machines that never saw the row keep their output, which they do exactly.

    Parameters
    ----------
    model : CodedClassifier or classifier of marrow
        Fitted, without intercept: `CodedClassifier` over ``SVC(fit_intercept=False)`` or `RLSClassifier`, or
        one of these by itself.
    X : {array-like, sparse matrix} of shape (n, d)
        The training rows, in the order of `fit`; kernel values for a precomputed kernel.
    y : array-like of shape (n,)
        Their labels.

    Returns
    -------
    LeaveOneOutBound
        ``value`` is the share of suspects, never below the true leave-one-out error.

    Raises
    ------
    ValueError
        If the machines have intercepts, X are not the training rows, or the decoder is "dag".
    TypeError
        If the model is of another kind, or its machines are not known by training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marrow import SVC, CodedClassifier
    >>> from marrow.multiclass import bounds
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CodedClassifier(SVC(fit_intercept=False)).fit(X, y)
    >>> bound = bounds.leave_one_out(model, X, y)
    >>> 0.0 < bound.value < 0.2, bound.equation
    (True, '(4.60)')
    """
    parts = _parts(model)
    expansion = parts.expansion
    if expansion.intercepts.any() or getattr(_machine_of(model), "fit_intercept", False):
        raise ValueError(
            "the machines have intercepts: the bound is for machines without (fit_intercept=False)"
        )
    rows = as_rows(X)
    labels = np.searchsorted(parts.classes, np.asarray(y)).clip(max=parts.classes.size - 1).astype(np.int64)
    if labels.shape != (rows.shape[0],) or not (parts.classes[labels] == np.asarray(y)).all():
        raise ValueError("y must hold a label of the model for each row of X")
    coefficients = np.zeros((rows.shape[0], expansion.n_outputs))
    if parts.support.size and parts.support.max() >= rows.shape[0]:
        raise ValueError("X must be the rows that the model was trained on")
    coefficients[parts.support] = expansion.coefficients
    precomputed = isinstance(expansion.kernel, str) and expansion.kernel == "precomputed"
    if not precomputed and not _same(rows[parts.support], expansion.vectors):
        raise ValueError("X must be the rows that the model was trained on")
    outputs = expansion._evaluate(rows, None)
    slack = parts.slack + _ROUNDING * (1.0 + np.abs(outputs).max(axis=0, initial=0.0))
    margins, suspects = _core.leave_one_out_rows(
        outputs,
        coefficients,
        np.ascontiguousarray(rows.diagonal(), dtype=np.float64)
        if precomputed
        else _diagonal(expansion, rows),
        labels,
        slack,
        parts.code.matrix,
        parts.decoder,
        threads(None),
    )
    assumptions = (
        _TIKHONOV,
        "the kernel is positive semidefinite",
        "C, alpha, weights and kernel stay as they are when a row leaves",
        "outputs are within the solver's violation of the optimum's",
    )
    value = float(suspects.mean())
    return LeaveOneOutBound(value, "(4.60)", assumptions, {"rows": float(labels.size)}, suspects, margins)


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
    outputs : array-like of shape (n, n_columns)
        Outputs of the machines.
    labels : array-like of int of shape (n,)
        Row of the code of each row's class.
    loss : str
        The loss L: "hinge", "squared_hinge", "square", "logistic" or "exponential".
    decoder : {"loss", "hamming"}, default="loss"
        How classes are decoded.

    Returns
    -------
    Bound
        Of the share of training rows that are decoded wrongly.
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


def admissibility(loss: str, *, lam: float, kappa: float, target: float = 1.0) -> Bound:
    """The constant sigma for which a loss is sigma-admissible on the outputs that a machine can give.

    Outputs are at most kappa sqrt(B / lam) in size, B the loss of predicting 0 (5.17), (5.19). The hinge,
    logistic, perceptron, absolute and epsilon-insensitive losses have slope 1 at most; the others have their
    slope at the largest output: 2 (kappa sqrt(B / lam) + target) for the square loss, where the print of
    (5.20) has a square.

    Parameters
    ----------
    loss : str
        "hinge", "squared_hinge", "square", "logistic", "exponential", "perceptron", "absolute" or
        "epsilon_insensitive".
    lam : float
        Weight of the squared norm in (1 / n) sum_i V(f(x_i), y_i) + lam ||f||^2: 1 / (2 C n) for an SVM,
        alpha / n for regularised least squares.
    kappa : float
        Bound of sqrt(k(x, x)).
    target : float, default=1.0
        Bound of the targets' size.

    Returns
    -------
    Bound
        ``terms`` also hold "largest_output" and "largest_loss", the M of (5.5).
    """
    check(
        {"loss": loss, "lam": lam, "kappa": kappa, "target": target},
        {
            "loss": one_of(*_STABLE),
            "lam": real(above=0.0),
            "kappa": real(above=0.0),
            "target": real(above=0.0),
        },
    )
    at_zero = {
        "square": target**2,
        "absolute": target,
        "epsilon_insensitive": target,
        "logistic": math.log(2.0),
        "perceptron": 0.0,
    }.get(loss, 1.0)
    largest = kappa * math.sqrt(at_zero / lam)
    slope = {
        "square": 2.0 * (largest + target),
        "squared_hinge": 2.0 * (largest + 1.0),
        "exponential": _exp(largest),
    }.get(loss, 1.0)
    most = {
        "hinge": 1.0 + largest,
        "squared_hinge": (1.0 + largest) ** 2,
        "square": (largest + target) ** 2,
        "logistic": largest + math.log1p(math.exp(-largest)),
        "exponential": _exp(largest),
        "perceptron": largest,
    }.get(loss, largest + target)
    terms = {"largest_output": largest, "largest_loss": most, "loss_at_zero": at_zero}
    return Bound(slope, "(5.7), (5.19)", (_TIKHONOV, "k(x, x) <= kappa^2"), terms)


def stability(loss: str, *, n: int, lam: float, kappa: float, target: float = 1.0) -> Bound:
    """beta: how far the loss at any point moves when one training row is removed (5.8).

    sigma^2 kappa^2 / (2 lam n), with sigma from `admissibility`. Replacing a row, as in the thesis's
    definition 5.1.1, is removing two: twice as much.

    Parameters
    ----------
    loss : str
        See `admissibility`.
    n : int
        Training rows.
    lam, kappa, target : float
        See `admissibility`.

    Returns
    -------
    Bound
    """
    check({"n": n}, {"n": integer(least=1)})
    sigma = admissibility(loss, lam=lam, kappa=kappa, target=target)
    value = sigma.value**2 * kappa**2 / (2.0 * lam * n)
    return Bound(value, "(5.8)", sigma.assumptions, {**sigma.terms, "sigma": sigma.value})


def bagging_stability(chunk_stability: float, *, chunk: int, n: int) -> Bound:
    """How far the output of an average over machines of disjoint chunks moves when a row is replaced.

    Parameters
    ----------
    chunk_stability : float
        alpha of the machine on one chunk.
    chunk : int
        Rows of a chunk.
    n : int
        Rows in all, a multiple of `chunk`.

    Returns
    -------
    Bound
        (chunk / n) times `chunk_stability` (5.27).
    """
    check(
        {"chunk_stability": chunk_stability, "chunk": chunk, "n": n},
        {"chunk_stability": real(least=0.0), "chunk": integer(least=1), "n": integer(least=1)},
    )
    if n % chunk:
        raise ValueError(f"n={n!r} is not allowed: it must be a multiple of chunk={chunk}")
    assumptions = ("every row is in exactly one chunk", "the average is over all chunks, of equal size")
    return Bound(chunk_stability * chunk / n, "(5.27)", assumptions, {"chunks": float(n // chunk)})


def generalization(empirical: float, beta: float, n: int, *, delta: float, largest: float) -> Bound:
    """Bound for the expected loss of a beta-stable learner, with probability 1 - delta (5.5).

    empirical + 2 beta + (4 n beta + M) sqrt(ln(1 / delta) / (2 n)).

    Parameters
    ----------
    empirical : float
        Average loss on the training rows.
    beta : float
        Stability when a row is removed, see `stability`.
    n : int
        Training rows.
    delta : float
        Probability that the bound fails, between 0 and 1.
    largest : float
        M: the loss is between 0 and M.

    Returns
    -------
    Bound
        It says nothing where it is above `largest`.
    """
    check(
        {"empirical": empirical, "beta": beta, "n": n, "delta": delta, "largest": largest},
        {
            "empirical": real(least=0.0),
            "beta": real(least=0.0),
            "n": integer(least=1),
            "delta": real(above=0.0, most=1.0),
            "largest": real(above=0.0),
        },
    )
    spread = (4.0 * n * beta + largest) * math.sqrt(math.log(1.0 / delta) / (2.0 * n))
    assumptions = (
        "the rows are independent draws of one distribution",
        "the learner has uniform stability beta, and its loss is between 0 and M on any rows",
    )
    terms = {"empirical": empirical, "beta": beta, "spread": spread, "delta": delta}
    return Bound(empirical + 2.0 * beta + spread, "(5.5)", assumptions, terms)


def ramp_loss(scores: ArrayLike, labels: ArrayLike, *, gamma: float) -> NDArray[np.float64]:
    """V_gamma of each row: 1 where another class has no larger total loss, 0 where all are gamma larger.

    With D the smallest total loss of another class less that of the row's own: 1 for D <= 0, 1 - D / gamma up
    to gamma, then 0. As printed, (5.32) rises only after the row is wrong, and is then not above the 0-1
    loss, which the bound needs; this is the same ramp moved by gamma.

    Parameters
    ----------
    scores : array-like of shape (n, n_classes)
        Minus the total losses of the classes, as ``decision_function`` of a `CodedClassifier` gives them.
    labels : array-like of int of shape (n,)
        Column of each row's class.
    gamma : float
        Width of the ramp, above 0.

    Returns
    -------
    ndarray of shape (n,)
    """
    check({"gamma": gamma}, {"gamma": real(above=0.0)})
    values = np.array(scores, dtype=np.float64)
    at = (np.arange(values.shape[0]), np.asarray(labels))
    own = values[at].copy()
    values[at] = -np.inf
    ramp: NDArray[np.float64] = np.clip(1.0 - (own - values.max(axis=1)) / gamma, 0.0, 1.0)
    return ramp


def multiclass_generalization(
    empirical: float, beta: float, n: int, *, delta: float, gamma: float, difference: int
) -> Bound:
    """Bound for the error rate of a coded model, with probability 1 - delta (5.34).

    empirical + 2 b + (4 n b + 1) sqrt(ln(1 / delta) / (2 n)), where b = 2 G beta / gamma.

    Parameters
    ----------
    empirical : float
        Average `ramp_loss` on the training rows.
    beta : float
        Stability of each binary machine, see `stability`.
    n : int
        Training rows.
    delta : float
        Probability that the bound fails.
    gamma : float
        Width of the ramp, chosen before the data are seen.
    difference : int
        G: the most columns in which two rows of the code differ; 2 for one-vs-all
        (`Code.largest_difference`).

    Returns
    -------
    Bound
    """
    rules = {"beta": real(least=0.0), "gamma": real(above=0.0), "difference": integer(least=1)}
    check({"beta": beta, "gamma": gamma, "difference": difference}, rules)
    system = 2.0 * difference * beta / gamma
    bound = generalization(empirical, system, n, delta=delta, largest=1.0)
    assumptions = (
        *bound.assumptions[:1],
        "each binary machine has uniform stability beta",
        "the code has no zeros, and classes are decoded by the machines' own loss",
        "gamma is chosen before the data are seen",
    )
    terms = {**bound.terms, "machine_beta": beta, "difference": float(difference), "gamma": gamma}
    return Bound(bound.value, "(5.34)", assumptions, terms)


def multiclass_generalization_of(model: Any, X: Any, y: ArrayLike, *, delta: float, gamma: float) -> Bound:
    """`multiclass_generalization` of a fitted model, its terms taken from the model and its training rows.

    Parameters
    ----------
    model : CodedClassifier or classifier of marrow
        Fitted, without intercept, of a code without zeros decoded by the machines' own loss: over ``SVC(
        fit_intercept=False)`` or `RLSClassifier`.
    X : {array-like, sparse matrix} of shape (n, d)
        The training rows.
    y : array-like of shape (n,)
        Their labels.
    delta : float
        Probability that the bound fails.
    gamma : float
        Width of the ramp.

    Returns
    -------
    Bound
        kappa is taken from the training rows: 1 for "rbf", for unbounded kernels an assumption about all
        rows to come.

    Raises
    ------
    ValueError
        If the model has intercepts, its code zeros, or its decoder is not the machines' loss.
    """
    parts = _parts(model)
    machine = _machine_of(model)
    if parts.expansion.intercepts.any() or getattr(machine, "fit_intercept", False):
        raise ValueError("the machines have intercepts, which are not stable: fit_intercept must be False")
    if parts.code.has_zeros:
        raise ValueError("the code has zeros: the bound is for codes without")
    loss = parts.loss
    if parts.decoder != loss:
        raise ValueError(f"decoder {parts.decoder!r} is not the machines' loss {loss!r}")
    rows = as_rows(X)
    n = int(rows.shape[0])
    precomputed = isinstance(parts.expansion.kernel, str) and parts.expansion.kernel == "precomputed"
    diagonal = rows.diagonal() if precomputed else _diagonal(parts.expansion, rows)
    lam = machine.alpha / n if hasattr(machine, "alpha") else 1.0 / (2.0 * machine.C * n)
    kappa = math.sqrt(float(np.max(diagonal)))
    beta = stability(loss, n=n, lam=lam, kappa=kappa)
    scores = code_scores(parts.expansion._evaluate(rows, None), parts.code.matrix, parts.decoder)
    labels = np.searchsorted(parts.classes, np.asarray(y))
    empirical = float(ramp_loss(scores, labels, gamma=gamma).mean())
    bound = multiclass_generalization(
        empirical, beta.value, n, delta=delta, gamma=gamma, difference=parts.code.largest_difference
    )
    terms = {**beta.terms, **bound.terms, "kappa": kappa, "lam": lam}
    return Bound(bound.value, bound.equation, (*bound.assumptions, *beta.assumptions), terms)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700.0 else math.inf


@dataclass(frozen=True)
class _Parts:
    expansion: KernelExpansion
    #: Training rows of the vectors.
    support: NDArray[np.intp]
    code: Code
    decoder: str
    #: Loss of the machines.
    loss: str
    classes: NDArray[Any]
    #: How far each output may be off.
    slack: NDArray[np.float64]


def _machine_of(model: Any) -> Any:
    return getattr(model, "estimator", model)


def _parts(model: Any) -> _Parts:
    """What the bounds need of a fitted model."""
    from marrow.multiclass.classifier import CodedClassifier
    from marrow.multiclass.codes import loss_of
    from marrow.svm.classification import SVC

    machine = _machine_of(model)
    loss = loss_of(machine)
    if isinstance(machine, SVC) or loss == "square":
        if isinstance(model, CodedClassifier):
            code, decoder = model.code_, model.decoder_
        else:
            k = len(model.classes_)
            pairs = getattr(model, "multi_class", "ovr") == "ovo" and k > 2
            code = make_code("all-pairs" if pairs else "one-vs-all", k)
            decoder = "votes" if pairs else str(loss)
        expansion = model.expansion_
        support = getattr(model, "support_", None)
        if support is None:
            support = np.arange(expansion.n_vectors)
        certificate = getattr(model, "certificate_", None)
        slack = np.zeros(expansion.n_outputs)
        if isinstance(machine, SVC) and certificate is not None:
            slack += certificate.violation
        return _Parts(expansion, support, code, decoder, str(loss), model.classes_, slack)
    raise TypeError(f"{type(machine).__name__} has no bound: it must be SVC or RLSClassifier of marrow")


def _diagonal(expansion: KernelExpansion, rows: Any) -> NDArray[np.float64]:
    """k(x, x) of each row."""
    if expansion.kernel in ("rbf", "laplacian", "chi2"):
        return np.ones(rows.shape[0])
    values = [
        _core.gram(core_rows(rows[i : i + 1]), None, expansion.kernel_spec, 1) for i in range(rows.shape[0])
    ]
    return np.concatenate(values).reshape(-1)


def _same(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    difference = a - b if a.dtype != np.uint8 else a != b
    return not bool(difference.nnz if hasattr(difference, "nnz") else np.any(difference))
