"""Stability of a learner when a sample changes, and generalization bounds (Rifkin 2002, chapter 5).

Functions of numbers come first, then the quantities of a fitted model that the bounds need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from svmarrow._support.decoding import LOSSES, Code, loss_of, make_code
from svmarrow._support.parameters import check, integer, one_of, real
from svmarrow._support.rows import as_rows
from svmarrow.least_squares.estimators import RLSClassifier
from svmarrow.models.outputs import code_scores
from svmarrow.svm._base import cost
from svmarrow.svm.classification import SVC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.machine import Certificate

__all__ = [
    "ROUNDING",
    "TIKHONOV",
    "Bound",
    "BoundedMachine",
    "admissibility",
    "bagging_stability",
    "generalization",
    "multiclass_generalization",
    "multiclass_generalization_of",
    "parts_of",
    "ramp_loss",
    "stability",
]


#: Losses that the stability bounds know: those of decoders, and two of regression.
_STABLE = (*LOSSES, "absolute", "epsilon_insensitive")
TIKHONOV = (
    "each machine minimizes a sum of convex losses plus a multiple of the squared norm, without intercept"
)


@dataclass(frozen=True)
class Bound:
    """A bound and what it rests on."""

    #: The number.
    value: float
    #: Its number in Rifkin 2002, "Everything Old Is New Again".
    equation: str
    #: What must hold for it.
    assumptions: tuple[str, ...]
    #: The quantities that went in, by name.
    terms: Mapping[str, float] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.value


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
        alpha / n for regularized least squares.
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
    return Bound(slope, "(5.7), (5.19)", (TIKHONOV, "k(x, x) <= kappa^2"), terms)


def stability(loss: str, *, n: int, lam: float, kappa: float, target: float = 1.0) -> Bound:
    """beta: how far the loss at any point moves when one training sample is removed (5.8).

    sigma^2 kappa^2 / (2 lam n), with sigma from `admissibility`. Replacing a sample, as in definition
    5.1.1 of Rifkin 2002, is removing two: twice as much.

    Parameters
    ----------
    loss : str
        See `admissibility`.
    n : int
        Training samples.
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
    """Stability of an average over machines of disjoint chunks when a sample is replaced.

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
        Average loss on the training samples.
    beta : float
        Stability when a row is removed, see `stability`.
    n : int
        Training samples.
    delta : float
        Probability that the bound fails, between 0 and 1.
    largest : float
        M: the loss is between 0 and M.

    Returns
    -------
    Bound
        It is vacuous if it is above `largest`.
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
    scores : array-like of shape (n_samples, n_classes)
        Minus the total losses of the classes, as ``decision_function`` of a `CodedClassifier` gives them.
    labels : array-like of int of shape (n_samples,)
        Column of each row's class.
    gamma : float
        Width of the ramp, above 0.

    Returns
    -------
    ndarray of shape (n_samples,)
        A loss between 0 and 1 for each row.
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
        Average `ramp_loss` on the training samples.
    beta : float
        Stability of each binary machine, see `stability`.
    n : int
        Training samples.
    delta : float
        Probability that the bound fails.
    gamma : float
        Width of the ramp, chosen before the data are seen.
    difference : int
        G: the most columns in which two rows of the code differ; 2 for "ovr"
        (`Code.largest_difference`).

    Returns
    -------
    Bound
        The bound with its terms.
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


def _exp(value: float) -> float:
    return math.exp(value) if value < 700.0 else math.inf


# --- penalties and solver errors of the machines that the bounds accept: `SVC` and `RLSClassifier` ---
# The bounds are for machines without intercept that minimize convex losses and a multiple of the squared
# norm.


BoundedMachine: TypeAlias = SVC | RLSClassifier

#: Relative difference of numbers of a solution that are equal in exact arithmetic.
SOLUTION_TOLERANCE = 1e-3
#: The reason why a bound of averages over samples does not hold.
UNEQUAL_WEIGHTS = (
    "the bound is for samples of equal weight: the model was fitted with weights, or has not converged"
)


class RowColumns(NamedTuple):
    """Machines without intercepts at their training samples."""

    #: Place of each row in each machine, (n, columns): +1, -1, or 0 where the machine never saw it.
    signs: NDArray[np.int8]
    #: Outputs, (n, columns).
    outputs: NDArray[np.float64]
    #: Signed coefficient of each row in each machine, (n, columns).
    coefficients: NDArray[np.float64]
    #: Certificates of the solutions; empty if the solver has none.
    certificates: Sequence[Certificate] = ()


def norm_weight(machine: BoundedMachine, fitted: RowColumns) -> float:
    """Returns the smallest lambda of (1 / n) sum_i V(f(x_i), y_i) + lambda ||f||^2 of the fitted machines.

    Raises
    ------
    ValueError
        If rows have weights.
    """
    if isinstance(machine, SVC):
        return _norm_weight_of_svc(machine, fitted)
    missed, alphas = _penalties(fitted)
    off = np.abs(missed - alphas * fitted.coefficients).max()
    if off > SOLUTION_TOLERANCE * np.abs(missed).max():
        raise ValueError(UNEQUAL_WEIGHTS)
    return float(alphas.min()) / len(missed)


def _norm_weight_of_svc(machine: SVC, fitted: RowColumns) -> float:
    """Returns 1 / (2 C n)."""
    largest = cost(machine.C)
    sizes = np.abs(fitted.coefficients)
    missed = np.where(fitted.signs != 0, 1.0 - fitted.signs * fitted.outputs, 0.0)
    near = solution_errors(machine, fitted) + SOLUTION_TOLERANCE
    if machine.loss == "squared_hinge":
        alike = np.abs(sizes - 2.0 * largest * np.maximum(missed, 0.0)) <= 2.0 * largest * near
    else:
        alike = (sizes <= largest * (1.0 + SOLUTION_TOLERANCE)) & (
            (missed <= near) | (sizes >= largest * (1.0 - SOLUTION_TOLERANCE))
        )
    if not alike.all():
        raise ValueError(UNEQUAL_WEIGHTS)
    return 1.0 / (2.0 * largest * len(sizes))


def solution_errors(machine: BoundedMachine, fitted: RowColumns) -> NDArray[np.float64]:
    """Returns the maximum distance (columns,) of the outputs of each machine from those of the optimum.

    For an `SVC` it is the violation of the solver. Outputs of an iterative solution of least squares are off
    by K (K + alpha I)^-1 r with r = y - f - alpha c, which is at most the length of r.
    """
    if isinstance(machine, SVC):
        return np.full(fitted.outputs.shape[1], max(found.violation for found in fitted.certificates))
    if machine.solver != "cg":
        return np.zeros(fitted.outputs.shape[1])
    missed, alphas = _penalties(fitted)
    errors: NDArray[np.float64] = np.linalg.norm(missed - alphas * fitted.coefficients, axis=0)
    return errors


def _penalties(fitted: RowColumns) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the residuals y - f, and for each machine the alpha that best explains them as alpha c."""
    missed = np.where(fitted.signs != 0, fitted.signs - fitted.outputs, 0.0)
    products = (missed * fitted.coefficients).sum(axis=0)
    squares = (fitted.coefficients**2).sum(axis=0)
    alphas = np.divide(products, squares, out=np.zeros_like(products), where=squares > 0.0)
    return missed, alphas


#: Relative error that an output of sums in single precision may have.
ROUNDING = 1e-6


class Parts(NamedTuple):
    """A fitted model without intercepts and its training samples."""

    #: The binary machine that was cloned.
    machine: BoundedMachine
    code: Code
    decoder: str
    #: Loss of the machines.
    loss: str
    #: Rows of the code of the training rows.
    labels: NDArray[np.int64]
    #: The machines of the columns at these rows.
    fitted: RowColumns
    #: k(x, x) of each row, (n,).
    diagonal: NDArray[np.float64]
    #: How far outputs may be off the optimum's, (F,).
    slack: NDArray[np.float64]

    @property
    def lam(self) -> float:
        """Minimum weight of the squared norm in the objectives of the machines, relative to the mean loss."""
        return norm_weight(self.machine, self.fitted)


def parts_of(model: Any, X: Any, y: ArrayLike) -> Parts:
    """Take a fitted model apart.

    Raises
    ------
    ValueError
        If its machines have intercepts, X are not its training samples or y not labels of its classes.
    TypeError
        If it is not made of ``SVC`` or ``RLSClassifier``.
    """
    machine = getattr(model, "estimator", model)
    if not isinstance(machine, BoundedMachine):
        raise TypeError(f"{type(machine).__name__} has no bound: it must be SVC or RLSClassifier of svmarrow")
    if machine.fit_intercept:
        raise ValueError("the machines have intercepts: the bound is for fit_intercept=False")
    loss = str(loss_of(machine))
    code, decoder = _code_of(model, loss)
    expansion = model.expansion_
    rows = as_rows(X)
    classes, given = model.classes_, np.asarray(y)
    labels = np.searchsorted(classes, given).clip(max=classes.size - 1).astype(np.int64)
    if labels.shape != (rows.shape[0],) or not (classes[labels] == given).all():
        raise ValueError("y must hold a label of the model for each row of X")
    precomputed = isinstance(expansion.kernel, str) and expansion.kernel == "precomputed"
    outputs = expansion._evaluate(rows, None)
    fitted = RowColumns(code.matrix[labels], outputs, *_solution(model, rows, code, labels, precomputed))
    if precomputed:
        diagonal = np.ascontiguousarray(rows.diagonal(), dtype=np.float64)
    else:
        diagonal = expansion._kernel_diagonal(rows)
    slack = solution_errors(machine, fitted) + ROUNDING * (1.0 + np.abs(outputs).max(axis=0, initial=0.0))
    return Parts(machine, code, decoder, loss, labels, fitted, diagonal, slack)


def _solution(
    model: Any, rows: Any, code: Code, labels: NDArray[np.int64], precomputed: bool
) -> tuple[NDArray[np.float64], list[Certificate]]:
    """Signed coefficient of each row in each machine (n, F), and the certificates."""
    chosen, which, signs = code.distinct_columns()
    together = getattr(model, "_machines", model)
    if not getattr(together, "estimators", None):
        coefficients, certificates = _at_rows(together, rows, np.arange(labels.size), precomputed)
        return coefficients, certificates
    # A machine for each distinct column, which saw the rows of its classes.
    seen = [np.flatnonzero(code.matrix[labels, column]) for column in chosen]
    parts = [
        _at_rows(machine, rows, own, precomputed)
        for machine, own in zip(together.estimators, seen, strict=True)
    ]
    columns = np.column_stack([values[:, 0] for values, _ in parts])
    return np.ascontiguousarray(columns[:, which] * signs), [
        found for _, certificates in parts for found in certificates
    ]


def _at_rows(
    machine: Any, rows: Any, seen: NDArray[np.intp], precomputed: bool
) -> tuple[NDArray[np.float64], list[Certificate]]:
    """`_solution` of machines that were trained together on the samples `seen`."""

    def get(name: str) -> Any:
        return getattr(machine, name + "_", getattr(machine, name, None))

    expansion, support, certificate = get("expansion"), get("support"), get("certificate")
    used = seen if support is None else seen[support[support < seen.size]]
    if used.size != expansion.n_vectors or not (precomputed or _same(rows[used], expansion.vectors)):
        raise ValueError("X must be the rows that the model was trained on")
    coefficients = np.zeros((rows.shape[0], expansion.n_outputs))
    coefficients[used] = expansion.coefficients
    return coefficients, [] if certificate is None else [certificate]


def _code_of(model: Any, loss: str) -> tuple[Code, str]:
    """Code and decoder of a coded classifier, or of what a classifier does by itself."""
    if hasattr(model, "code_"):
        return model.code_, model.decoder_
    k = len(model.classes_)
    pairs = getattr(model, "multi_class", "ovr") == "ovo" and k > 2
    return make_code("ovo" if pairs else "ovr", k), "votes" if pairs else loss


def _same(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    differs = a != b
    return not bool(differs.nnz if hasattr(differs, "nnz") else np.any(differs))


def multiclass_generalization_of(model: Any, X: Any, y: ArrayLike, *, delta: float, gamma: float) -> Bound:
    """`multiclass_generalization` of a fitted model, its terms taken from the model and its training samples.

    Parameters
    ----------
    model : CodedClassifier or classifier of svmarrow
        Fitted, without intercept, of a code without zeros decoded by the machines' own loss: over ``SVC(
        fit_intercept=False)`` or `RLSClassifier`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples.
    y : array-like of shape (n_samples,)
        Their labels.
    delta : float
        Probability that the bound fails.
    gamma : float
        Width of the ramp.

    Returns
    -------
    Bound
        kappa is taken from the training samples: 1 for "rbf", for unbounded kernels an assumption about all
        rows to come.

    Raises
    ------
    ValueError
        If the model has intercepts, its code zeros, or its decoder is not the machines' loss.
    """
    parts = parts_of(model, X, y)
    if parts.code.has_zeros:
        raise ValueError("the code has zeros: the bound is for codes without")
    if parts.decoder != parts.loss:
        raise ValueError(f"decoder {parts.decoder!r} is not the machines' loss {parts.loss!r}")
    n = parts.labels.size
    kappa = math.sqrt(float(parts.diagonal.max()))
    beta = stability(parts.loss, n=n, lam=parts.lam, kappa=kappa)
    scores = code_scores(parts.fitted.outputs, parts.code.matrix, parts.decoder)
    empirical = float(ramp_loss(scores, parts.labels, gamma=gamma).mean())
    bound = multiclass_generalization(
        empirical, beta.value, n, delta=delta, gamma=gamma, difference=parts.code.largest_difference
    )
    terms = {**beta.terms, **bound.terms, "kappa": kappa, "lam": parts.lam}
    return Bound(bound.value, bound.equation, (*bound.assumptions, *beta.assumptions), terms)
