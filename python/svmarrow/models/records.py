"""The origin of a model that imitates another predictor, and the losses of its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "Distillation",
    "LossBound",
    "Quantization",
]


@savable("distillation/1")
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


# --- bound of the loss of a compressed model compared with the full model ---


@savable("loss-bound/1")
@dataclass(frozen=True)
class LossBound:
    """Bound of the loss of a compressed model compared with the full model, its ``loss_bound_``.

    As a string it is one or two sentences, in which points are percentage points.

    Attributes
    ----------
    loss : float or None
        Score of the full model minus score of the compressed model on the held-out samples, so it is negative
        if the compressed model scores higher. None without held-out samples.
    upper : float or None
        Upper bound of the loss on other samples of the same distribution, with `confidence`. None without
        held-out samples.
    confidence : float
        Probability that such a bound holds.
    n_samples : int
        Number of held-out samples.
    measure : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error", "agreement"}
        The score, averaged over several targets as scikit-learn's ``score`` is; agreement is the fraction of
        samples that get the full model's answer, for regressors R^2 compared with its outputs.
    max_loss : float or None
        The requested maximum loss.
    agreement : float or None
        For a distilled model, if the loss is one of its score: the fraction of held-out samples that get the
        teacher's answer, or R^2 compared with the outputs of a regressor.
    min_agreement : float or None
        Lower bound of the agreement on other samples, with `confidence`.

    Examples
    --------
    >>> from svmarrow.models import LossBound
    >>> bound = LossBound(0.001, 0.0028, 0.95, 8000, "accuracy", 0.003)
    >>> bound.guaranteed
    True
    >>> for sentence in str(bound).split(". "):
    ...     print(sentence)
    Accuracy -0.10 points on 8,000 held-out samples
    The loss on other samples is at most 0.28 points with 95 % confidence.
    """

    loss: float | None
    upper: float | None
    confidence: float
    n_samples: int
    measure: str
    max_loss: float | None = None
    agreement: float | None = None
    min_agreement: float | None = None

    @property
    def guaranteed(self) -> bool | None:
        """True if the bound is at most `max_loss`; None if that is None."""
        return None if self.max_loss is None else self.upper is not None and self.upper <= self.max_loss

    def __str__(self) -> str:
        if self.loss is None or self.upper is None:
            return "No samples were held out, so there is no bound of the loss."
        name, number, sign = _FORMATS[self.measure]
        rows, level = f"{self.n_samples:,} held-out samples", f"{100 * self.confidence:g} % confidence"
        if self.measure == "agreement":
            text = (
                f"The answers agree with the full model's for {number(1.0 - self.loss)} of {rows}, and for "
                f"at least {number(max(0.0, 1.0 - self.upper))} of other samples with {level}"
            )
            goal = None if self.max_loss is None else number(1.0 - self.max_loss)
        else:
            text = (
                f"{name} {_signed(sign * self.loss, number)} on {rows}. The loss on other samples is at "
                f"most {number(self.upper)} with {level}"
            )
            goal = None if self.max_loss is None else number(self.max_loss)
        text += f"; these samples cannot guarantee {goal}." if self.guaranteed is False else "."
        if self.agreement is not None and self.min_agreement is not None:
            share = _number if self.measure in {"r2", "neg_mean_squared_error"} else _percent
            text += (
                f" Agreement with the teacher: {share(self.agreement)} on these samples, at least "
                f"{share(self.min_agreement)} on others."
            )
        return text


def _points(value: float) -> str:
    return f"{100 * value:.2f} points"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _number(value: float) -> str:
    return f"{value:.4f}"


def _signed(value: float, number: Callable[[float], str]) -> str:
    return f"{'-' if value < 0 else '+'}{number(abs(value))}"


#: Name of a measure, how its losses are written, and the sign of a loss in its values.
_FORMATS: dict[str, tuple[str, Callable[[float], str], float]] = {
    "accuracy": ("Accuracy", _points, -1.0),
    "balanced_accuracy": ("Balanced accuracy", _points, -1.0),
    "r2": ("R^2", _number, -1.0),
    "neg_mean_squared_error": ("Mean squared error", _number, 1.0),
    "agreement": ("Agreement", _percent, -1.0),
}


@savable("quantization/1")
@dataclass(frozen=True)
class Quantization:
    """What a quantized model lost against the model that it was made of, its ``quantization_``.

    Attributes
    ----------
    bytes_before, bytes_after : int
        Bytes of vectors, coefficients and intercepts as a file of `svmarrow.save` holds them.
    largest_difference : float
        Of an output, over the samples it was measured on.
    relative_difference : float
        Root mean square of the difference of the outputs, each in units of its standard deviation on the
        samples, a constant one in units of its size.
    disagreement : float or None
        Fraction of the samples that get another label; None for a model without labels.
    score_before, score_after : float or None
        Accuracy, or R^2 of numbers averaged over the outputs; None without `y`.

    Examples
    --------
    >>> from svmarrow.models import Quantization
    >>> print(Quantization(6800, 1786, 0.02, 0.01, 0.002, 0.955, 0.954))
    1,786 bytes instead of 6,800; 0.20 % of the answers differ; the score is 0.9540 instead of 0.9550.
    """

    bytes_before: int
    bytes_after: int
    largest_difference: float
    relative_difference: float
    disagreement: float | None = None
    score_before: float | None = None
    score_after: float | None = None

    def __str__(self) -> str:
        text = f"{self.bytes_after:,} bytes instead of {self.bytes_before:,}"
        if self.disagreement is None:
            text += f"; the outputs differ by {_percent(self.relative_difference)} of their deviation"
        else:
            text += f"; {_percent(self.disagreement)} of the answers differ"
        if self.score_before is not None and self.score_after is not None:
            text += f"; the score is {_number(self.score_after)} instead of {_number(self.score_before)}"
        return text + "."
