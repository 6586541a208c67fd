"""What the bounds need of a fitted model, taken from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.codes import Code, loss_of, make_code
from svmarrow._support.decoding import code_scores
from svmarrow._support.rows import as_rows, core_rows
from svmarrow.models.columns import BoundedMachine, Columns
from svmarrow.multiclass.bounds.stability import multiclass_generalization, ramp_loss, stability
from svmarrow.multiclass.bounds.value import Bound

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ROUNDING", "multiclass_generalization_of", "parts_of"]

#: Relative error that an output of sums in single precision may have.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Parts:
    """A fitted model without intercepts and its training rows."""

    #: The binary machine that was cloned.
    machine: BoundedMachine
    code: Code
    decoder: str
    #: Loss of the machines.
    loss: str
    #: Rows of the code of the training rows.
    labels: NDArray[np.int64]
    #: Outputs at the training rows, (n, F).
    outputs: NDArray[np.float64]
    #: Signed coefficient of each row in each machine, (n, F).
    coefficients: NDArray[np.float64]
    #: k(x, x) of each row, (n,).
    diagonal: NDArray[np.float64]
    #: How far outputs may be off the optimum's, (F,).
    slack: NDArray[np.float64]

    @property
    def lam(self) -> float:
        """lambda: the weight of the squared norm against the mean of the losses."""
        return self.machine._norm_weight(self.labels.size)


def parts_of(model: Any, X: Any, y: ArrayLike) -> Parts:
    """Take a fitted model apart.

    Raises
    ------
    ValueError
        If its machines have intercepts, X are not its training rows or y not labels of its classes.
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
    outputs = expansion._evaluate(rows, None)
    precomputed = isinstance(expansion.kernel, str) and expansion.kernel == "precomputed"
    support = getattr(model, "support_", None)
    if support is not None and (
        support.max(initial=0) >= rows.shape[0]
        or not (precomputed or _same(rows[support], expansion.vectors))
    ):
        raise ValueError("X must be the rows that the model was trained on")
    fitted = Columns(expansion, support, getattr(model, "certificate_", None))
    coefficients, slack = machine._row_coefficients(fitted, code.matrix[labels], outputs)
    if precomputed:
        diagonal = np.ascontiguousarray(rows.diagonal(), dtype=np.float64)
    else:
        diagonal = _diagonal(expansion, rows)
    reach = slack + ROUNDING * (1.0 + np.abs(outputs).max(axis=0, initial=0.0))
    return Parts(machine, code, decoder, loss, labels, outputs, coefficients, diagonal, reach)


def _code_of(model: Any, loss: str) -> tuple[Code, str]:
    """Code and decoder of a coded classifier, or of what a classifier does by itself."""
    if hasattr(model, "code_"):
        return model.code_, model.decoder_
    k = len(model.classes_)
    pairs = getattr(model, "multi_class", "ovr") == "ovo" and k > 2
    return make_code("ovo" if pairs else "ovr", k), "votes" if pairs else loss


def _diagonal(expansion: Any, rows: Any) -> NDArray[np.float64]:
    """k(x, x) of each row."""
    if expansion.kernel in ("rbf", "laplacian", "chi2"):
        return np.ones(rows.shape[0])
    if callable(expansion.kernel):
        values = [expansion.kernel(rows[i : i + 1], rows[i : i + 1]) for i in range(rows.shape[0])]
    else:
        spec = expansion.kernel_spec
        values = [_core.gram(core_rows(rows[i : i + 1]), None, spec, 1) for i in range(rows.shape[0])]
    return np.array([float(np.asarray(value).reshape(-1)[0]) for value in values])


def _same(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    differs = a != b
    return not bool(differs.nnz if hasattr(differs, "nnz") else np.any(differs))


def multiclass_generalization_of(model: Any, X: Any, y: ArrayLike, *, delta: float, gamma: float) -> Bound:
    """`multiclass_generalization` of a fitted model, its terms taken from the model and its training rows.

    Parameters
    ----------
    model : CodedClassifier or classifier of svmarrow
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
    parts = parts_of(model, X, y)
    if parts.code.has_zeros:
        raise ValueError("the code has zeros: the bound is for codes without")
    if parts.decoder != parts.loss:
        raise ValueError(f"decoder {parts.decoder!r} is not the machines' loss {parts.loss!r}")
    n = parts.labels.size
    kappa = math.sqrt(float(parts.diagonal.max()))
    beta = stability(parts.loss, n=n, lam=parts.lam, kappa=kappa)
    scores = code_scores(parts.outputs, parts.code.matrix, parts.decoder)
    empirical = float(ramp_loss(scores, parts.labels, gamma=gamma).mean())
    bound = multiclass_generalization(
        empirical, beta.value, n, delta=delta, gamma=gamma, difference=parts.code.largest_difference
    )
    terms = {**beta.terms, **bound.terms, "kappa": kappa, "lam": parts.lam}
    return Bound(bound.value, bound.equation, (*bound.assumptions, *beta.assumptions), terms)
