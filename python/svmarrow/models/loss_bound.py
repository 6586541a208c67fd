"""The bound of the loss of a compressed model against the full one."""

from __future__ import annotations

from dataclasses import dataclass

from svmarrow._support.saving import savable

__all__ = ["LossBound"]


@savable
@dataclass(frozen=True)
class LossBound:
    """A bound of the loss of a compressed model against the full one, its ``loss_bound_``.

    Attributes
    ----------
    loss : float or None
        How much lower the score is than the full model's on the samples held out; negative where it is
        higher. None where there are none.
    upper : float or None
        Upper bound of the loss on other samples of the same kind, with `confidence`. None without samples.
    confidence : float
        Probability that such a bound holds.
    rows : int
        Number of samples held out.
    measure : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error", "agreement"}
        What the loss is a loss of; agreement is that with the full model's answers.
    asked : float or None
        The largest loss that was asked for.
    agreement : float or None
        For a model that imitates a predictor that is no kernel machine, where the loss is one of its score:
        the share of the samples held out that get the predictor's answer, for numbers R^2 against its own.
    min_agreement : float or None
        Lower bound of the agreement on other samples, with `confidence`.

    Examples
    --------
    >>> from svmarrow.models import LossBound
    >>> print(LossBound(0.001, 0.0028, 0.95, 8000, "accuracy", 0.003))
    loses 0.0010 of accuracy on 8,000 samples, at most 0.0028 with confidence 0.95
    """

    loss: float | None
    upper: float | None
    confidence: float
    rows: int
    measure: str
    asked: float | None = None
    agreement: float | None = None
    min_agreement: float | None = None

    @property
    def kept(self) -> bool | None:
        """True if the bound is at most `asked`; None if that is None."""
        return None if self.asked is None else self.upper is not None and self.upper <= self.asked

    def __str__(self) -> str:
        if self.loss is None or self.upper is None:
            return "no bound: no samples were held out"
        measure = self.measure.replace("neg_", "negative ").replace("_", " ")
        text = (
            f"loses {self.loss:.4f} of {measure} on {self.rows:,} samples, at most {self.upper:.4f} with "
            f"confidence {self.confidence:g}"
        )
        if self.agreement is not None and self.min_agreement is not None:
            text += f"; agrees {self.agreement:.4f} with its teacher, at least {self.min_agreement:.4f}"
        return text + (
            f"; {self.asked:g} is less than these samples can certify" if self.kept is False else ""
        )
