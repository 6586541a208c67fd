"""Gradient support vectors: few vectors that are made, not chosen (Burges & Schoelkopf, 1997; Xu, Gardner,
Tyree & Weinberger, "Compressed support vector machines", 2015, equation 10).

Vectors Z and coefficients B move together so that K(x, Z) B + b does on given rows what the large model
does. The rows are the training rows where they are given, else the model's own vectors.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from marrow import _core
from marrow._params import check, integer, one_of, real, refuse
from marrow._validation import core_rows, threads
from marrow.expansion import KernelExpansion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from marrow._progress import ProgressCallback
    from marrow.classifier import ExpansionClassifier

__all__ = ["GradientSettings", "construct"]

RULES = {
    "loss": one_of("agreement", "matching", "hinge", "squared_hinge"),
    "sharpness": real(above=0.0),
    "label_weight": real(least=0.0, most=1.0),
    "steps": integer(least=0),
    "batch": integer(least=1),
    "vector_rate": real(least=0.0),
    "coefficient_rate": real(least=0.0),
    "noise": real(least=0.0),
    "places": integer(least=0),
}


@dataclass(frozen=True)
class GradientSettings:
    """How the vectors of ``compress(method="gradient")`` are moved.

    The defaults were chosen on held-out training rows of several data sets; more steps are what helps most.

    Parameters
    ----------
    loss : {"agreement", "matching", "hinge", "squared_hinge"}, default="agreement"
        ``"matching"`` is the squared difference of the outputs, equation 10 of the paper. ``"agreement"``
        is the cross-entropy between the class probabilities of both models, softmax or sigmoid of the
        outputs: it spends the vectors where they change decisions. The hinge losses ask for the labels and
        forget the model. A bare expansion, which has no classes, is always matched.
    sharpness : float, default=1.0
        Factor of the outputs before they become probabilities.
    label_weight : float, default=0.0
        Share of the labels in the targets of ``"agreement"``: 0 imitates the model, 1 trains on the labels
        alone.
    steps : int, default=20000
        Number of steps.
    batch : int, default=144
        Rows of a step.
    vector_rate : float, default=0.1
        Length of the first steps of a vector in each feature, as a share of the rows' root mean square
        deviation.
    coefficient_rate : float, default=0.1
        Length of the first steps of a coefficient, as a share of the root mean square of the coefficients.
    noise : float, default=0.2
        Rows are displaced at random by this share of each feature's standard deviation, so that the models
        are compared beside the training rows too.
    places : int, default=2
        Number of displacements of each row, besides the row itself.
    """

    loss: Literal["agreement", "matching", "hinge", "squared_hinge"] = "agreement"
    sharpness: float = 1.0
    label_weight: float = 0.0
    steps: int = 20_000
    batch: int = 144
    vector_rate: float = 0.1
    coefficient_rate: float = 0.1
    noise: float = 0.2
    places: int = 2

    def __post_init__(self) -> None:
        check(asdict(self), RULES)

    @property
    def needs_labels(self) -> bool:
        """Whether y must be given."""
        return self.loss in ("hinge", "squared_hinge") or (self.loss == "agreement" and self.label_weight > 0)


def construct(
    source: ExpansionClassifier | KernelExpansion,
    n_vectors: int,
    *,
    rows: Any = None,
    labels: NDArray[np.int64] | None = None,
    settings: GradientSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> Any:
    """Make the small model of ``compress(method="gradient")``.

    Parameters
    ----------
    source : ExpansionClassifier or KernelExpansion
        The large model.
    n_vectors : int
        Number of vectors to make, at most the number of rows.
    rows : {ndarray, CSR matrix} of shape (n, n_features), default=None
        Validated rows on which both models are compared. None takes the model's vectors.
    labels : ndarray of int64 of shape (n,), default=None
        Index of each row's class. None takes the model's decisions where classes are needed for the start.
    settings : GradientSettings, default=None
        None takes the defaults.
    random_state : int, RandomState instance or None, default=None
        Of the start, the batches and the displacements; None always gives the same model.
    max_time : float, default=None
        Seconds after which moving ends with what it has.
    n_jobs : int, default=None
        Threads; the model does not depend on it.
    progress : callable, default=None
        Called as ``progress(phase, done, total, gap, steps)`` now and then.

    Returns
    -------
    ExpansionClassifier or KernelExpansion
        Of the kind of `source`. The vectors are dense float32.

    Raises
    ------
    ValueError
        If there are fewer rows than vectors, or the settings need labels that are not given.
    """
    bare = isinstance(source, KernelExpansion)
    full: KernelExpansion = source if isinstance(source, KernelExpansion) else source.expansion_
    chosen = GradientSettings() if settings is None else settings
    if not isinstance(chosen, GradientSettings):
        raise refuse("settings", settings, "None or a GradientSettings")
    if rows is None:
        rows, labels = full.vectors, None
    if chosen.needs_labels and (labels is None or bare):
        what = f"loss={chosen.loss!r} with label_weight={chosen.label_weight:g}"
        raise ValueError(f"{what} learns from labels: give X and y with a classifier")
    if not 1 <= n_vectors <= rows.shape[0]:
        raise refuse(
            "n_vectors", n_vectors, f"between 1 and {rows.shape[0]}, the number of rows to learn from"
        )
    seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
    groups = labels
    if groups is None and not isinstance(source, KernelExpansion):
        groups = source.decode(full._evaluate(rows, n_jobs)).astype(np.int64)
    start = _core.centres(core_rows(rows), groups, n_vectors, seed, threads(n_jobs))
    given = asdict(chosen)
    if bare:
        given["loss"] = "matching"
    made = _core.gradient_vectors(
        core_rows(full.vectors),
        full.coefficients,
        full.intercepts,
        full.kernel_spec,
        start,
        core_rows(rows),
        labels,
        {
            **given,
            "coding": source.decoding if not isinstance(source, KernelExpansion) else "values",
            "seed": seed,
        },
        max_time,
        progress,
        threads(n_jobs),
    )
    if made["stop"] != "converged":
        warnings.warn(
            f"the vectors were still moving when compression ended early ({made['stop']})",
            ConvergenceWarning,
            stacklevel=3,
        )
    small = KernelExpansion(
        made["vectors"],
        made["coefficients"],
        made["intercepts"],
        kernel=full.kernel,
        gamma=full.gamma,
        coef0=full.coef0,
        degree=full.degree,
    )
    return small if isinstance(source, KernelExpansion) else source.with_expansion(small)
