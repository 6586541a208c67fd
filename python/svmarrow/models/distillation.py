"""The origin of a model that imitates another predictor, and the losses of its sizes."""

from __future__ import annotations

from dataclasses import dataclass

from svmarrow._support.saving import savable

__all__ = ["Distillation"]


@savable
@dataclass(frozen=True)
class Distillation:
    """The teacher of a distilled model and the curve of the sizes that were tried, its ``distillation_``.

    Attributes
    ----------
    teacher : str
        The name of the teacher's class or function.
    source : {"numbers", "probabilities", "decision values", "labels"}
        The outputs of the teacher that were imitated.
    n_samples : int
        Number of given samples that were learned from.
    n_drawn : int
        Number of samples drawn around them.
    sizes : tuple of int
        Decreasing numbers of vectors.
    losses : tuple of float
        What each size loses of the teacher's score on the samples held out; empty without labels.
    agreements : tuple of float
        Share of the samples held out for which each size gives the teacher's answer; for numbers R^2 against
        the teacher's. Empty without samples held out.

    Examples
    --------
    >>> from svmarrow.models import Distillation
    >>> print(Distillation("MLPRegressor", "numbers", 500, 0, (64, 32), (), (0.98, 0.96)))
    MLPRegressor, 500 samples and 0 drawn: 64 vectors agree 0.9800; 32 vectors agree 0.9600
    """

    teacher: str
    source: str
    n_samples: int
    n_drawn: int
    sizes: tuple[int, ...]
    losses: tuple[float, ...] = ()
    agreements: tuple[float, ...] = ()

    def __str__(self) -> str:
        points = []
        for at, size in enumerate(self.sizes):
            text = [f"lose {self.losses[at]:.4f}"] if self.losses else []
            text += [f"agree {self.agreements[at]:.4f}"] if self.agreements else []
            points.append(f"{size} vectors {', '.join(text)}".rstrip())
        return f"{self.teacher}, {self.n_samples:,} samples and {self.n_drawn:,} drawn: {'; '.join(points)}"
