"""What the selections that look at the whole kernel matrix can be told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from marrow._params import boolean, check, either, none, real, refuse

__all__ = ["SelectionSettings", "selection_of"]

RULES = {
    "joint": boolean,
    "inverse_weights": boolean,
    "cost": real(above=0.0),
    "rank_tolerance": real(least=0.0),
    "gamma": either(none, real(least=0.0)),
}


@dataclass(frozen=True)
class SelectionSettings:
    """How ``compress`` chooses vectors with ``method="rank"``, ``"l0"``, ``"l1"`` or ``"lars"``.

    Parameters
    ----------
    joint : bool, default=True
        For ``"l1"`` and ``"lars"``: all outputs choose their vectors together (TR-132, equation 5); False
        lets
        each output choose for itself (equation 4), and the model has the union.
    inverse_weights : bool, default=False
        For ``"l1"``: weights one over the size of the model's coefficients instead of 1, so that vectors with
        small coefficients leave first.
    cost : float, default=1.0
        For ``"lars"``: C of the squared hinge SVM whose loss is refitted.
    rank_tolerance : float, default=1e-12
        For ``"rank"``: squared distance from the span of the chosen vectors, relative to the largest k(z,
        z), up
        to which a vector counts as inside.
    gamma : float, default=None
        For ``"l0"``: how much the model may change, 0 for not at all (TR-132, algorithms 3.4 and 3.5). None
        lets
        it fall from large to small and orders the vectors as they are first needed.
    """

    joint: bool = True
    inverse_weights: bool = False
    cost: float = 1.0
    rank_tolerance: float = 1e-12
    gamma: float | None = None

    def __post_init__(self) -> None:
        check(asdict(self), RULES)


def selection_of(settings: object) -> dict[str, Any]:
    """The settings as the extension module takes them; None stands for the defaults."""
    if settings is not None and not isinstance(settings, SelectionSettings):
        raise refuse("settings", settings, "None or a SelectionSettings")
    return asdict(settings or SelectionSettings())
