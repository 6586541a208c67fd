"""Penalties and solver errors of the machines that the bounds accept: `SVC` and `RLSClassifier`.

The bounds are for machines without intercept that minimize convex losses and a multiple of the squared norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from svmarrow.least_squares.classification import RLSClassifier
from svmarrow.svm._base import cost
from svmarrow.svm.classification import SVC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate

__all__ = ["BoundedMachine", "RowColumns", "norm_weight", "solution_errors"]

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
