"""Losses: names of the extension module's losses, and user-defined objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from svmarrow._support.parameters import Rule, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["FOR_CLASSES", "FOR_NUMBERS", "Loss", "core_loss", "loss_rule"]

FOR_NUMBERS = ("squared_error", "huber")
FOR_CLASSES = (
    "squared_error",
    "squared_tanh",
    "logistic",
    "exponential",
    "one_minus_tanh",
    "squared_hinge",
    "soft_margin",
)

#: scikit-learn's names of losses.
SYNONYMS = {"log_loss": "logistic", "hinge": "soft_margin"}


@runtime_checkable
class Loss(Protocol):
    """Interface of a user-defined loss: three methods on vectors with one value per sample.

    `y` are targets (-1 and 1 for classes), `f` outputs; with several outputs each is asked for by itself.
    """

    def value(self, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns losses (n,)."""

    def gradient(self, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns derivatives with respect to f (n,)."""

    def hessian(self, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns second derivatives with respect to f (n,)."""


def loss_rule(names: tuple[str, ...]) -> Rule:
    """Returns the rule of a name or an object with the three methods."""
    synonyms = {synonym: name for synonym, name in SYNONYMS.items() if name in names}
    name = one_of(*names, *synonyms)
    return Rule(
        f"{name.text}, or an object with the methods value, gradient and hessian",
        lambda value: name.holds(value) or (not isinstance(value, (str, type)) and isinstance(value, Loss)),
    )


def core_loss(loss: Any, delta: float) -> tuple[str, float] | Callable[..., Any]:
    """Returns the form of the extension module."""
    if isinstance(loss, str):
        return (SYNONYMS.get(loss, loss), delta)
    methods = (("value", loss.value), ("gradient", loss.gradient), ("hessian", loss.hessian))

    def call(derivative: int, y: NDArray[np.float64], f: NDArray[np.float64]) -> NDArray[np.float64]:
        name, method = methods[derivative]
        values = np.ascontiguousarray(method(y, f), dtype=np.float64)
        if values.shape != y.shape:
            raise ValueError(f"{name} of the loss returned shape {values.shape}: it must be {y.shape}")
        if np.isnan(values).any():
            raise ValueError(f"{name} of the loss returned NaN")
        return values

    return call
