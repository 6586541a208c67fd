"""Stability of a learner when a sample changes, and generalization bounds (Rifkin 2002, chapter 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from svmarrow._support.decoding import LOSSES
from svmarrow._support.parameters import check, integer, one_of, real

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "TIKHONOV",
    "Bound",
    "admissibility",
    "bagging_stability",
    "generalization",
    "multiclass_generalization",
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
