"""Settings of the selections of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from svmarrow._support.parameters import Rule, boolean, either, none, real
from svmarrow.reduced_set.selection import PURSUITS, SelectionSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PaperSettings"]


@dataclass(frozen=True)
class PaperSettings(SelectionSettings):
    """Settings of the selections of `svmarrow.papers.reduced_set.path`.

    A method refuses a setting that it does not read, unless it has its default.

    Parameters
    ----------
    joint : bool, default=True
        As in `svmarrow.reduced_set.SelectionSettings`. For ``"l1"`` and ``"lars"``, True is equation 5 of
        TR-132 and False is equation 4; for ``"l0"`` algorithms 3.5 and 3.4. With False and ``"basic"`` an
        output keeps its own vectors: its coefficients on the vectors of other outputs are 0.
    rank_tolerance, criterion, sample
        As in `svmarrow.reduced_set.SelectionSettings`; `criterion` and `sample` for ``"basic"`` too.
    chunk : int, default=None
        As in `svmarrow.reduced_set.SelectionSettings`. Where None has to take chunks, they have 2048 vectors
        for ``"lars"`` and 1024 for ``"l0"``.
    max_memory : float, default=2000
        As in `svmarrow.reduced_set.SelectionSettings`. ``"l0"``, ``"l1"`` and ``"lars"`` hold the kernel
        matrix too.
    inverse_weights : bool, default=False
        For ``"l1"``: weights one over the size of the model's coefficients instead of 1, so that vectors with
        small coefficients leave first.
    cost : float, default=None
        For ``"lars"``: what the squared losses cost against the squared norm of w (compressed SVM, equation
        1). None is 2 C, C being the largest coefficient of the model: an SVM minimizes half the squared norm
        and C times the losses, and is the same for every C from its largest coefficient on.
    refit : bool, default=True
        For ``"l1"`` and ``"lars"``: solve for the coefficients of every size again, so that it is the best
        approximation by its vectors. False keeps those of the penalized problem itself, which the penalty
        has shrunk: at each size those of the smallest lambda before the next vector enters, or with
        `penalty` those of its first vectors. Not for models that are taken in chunks.
    max_change : float, default=None
        For ``"l0"``: how much the model may change, 0 for not at all (TR-132, algorithms 3.4 and 3.5). None
        lets it fall from large to small and orders the vectors as they are first needed.
    penalty : float, default=None
        For ``"l1"`` and ``"lars"``: lambda of equation 4 or 5, the price of the coefficients. The path
        then has the vectors of that solution and no others, the largest first. None follows the whole path
        over lambda; ``CompressionPath.penalties`` holds the lambda at which each vector enters. The path of
        a model with one output, or of outputs by themselves, is exact; that of several outputs together is
        followed in steps of 7 %.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC
    >>> from svmarrow.papers.reduced_set import PaperSettings, path
    >>> svc = SVC(gamma=0.001, multi_class="ovr").fit(*load_digits(return_X_y=True))
    >>> lossless = path(svc, method="l0", settings=PaperSettings(max_change=0.0), tol=0)
    >>> len(lossless) <= svc.expansion_.n_vectors
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        **SelectionSettings._rules,
        "inverse_weights": boolean,
        "cost": either(none, real(above=0.0)),
        "refit": boolean,
        "max_change": either(none, real(least=0.0)),
        "penalty": either(none, real(least=0.0)),
    }
    _readers: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **SelectionSettings._readers,
        "joint": (*PURSUITS, "l0", "l1", "lars"),
        "criterion": PURSUITS,
        "sample": PURSUITS,
        "inverse_weights": ("l1",),
        "cost": ("lars",),
        "refit": ("l1", "lars"),
        "max_change": ("l0",),
        "penalty": ("l1", "lars"),
    }

    inverse_weights: bool = False
    cost: float | None = None
    refit: bool = True
    max_change: float | None = None
    penalty: float | None = None
