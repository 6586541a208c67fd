"""Propose sizes and methods: what a compression tries.

By itself, `compress` tries two methods. The back-fitting pursuit gives every size in one run. Gradient steps
construct new vectors for sizes that decrease by a factor of 0.6, from half of the model's vectors on. Where
one size is asked for, vectors are constructed twice, from cluster centers and from the pursuit's vectors.

The work of construction is planned as a number of multiplications, at most `MAX_OPERATIONS`, which is a few
seconds of one core, and not by a clock: a seed gives the same model on any machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from svmarrow._support.parameters import refuse
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.holdout import sizes_to_search
from svmarrow.reduced_set.paths import DEFAULT_PATH, path_of
from svmarrow.reduced_set.selection import SelectionSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.reduced_set.holdout import HoldoutEvaluator
    from svmarrow.reduced_set.paths import PathRequest
    from svmarrow.reduced_set.sizes import ReducedPath

__all__ = ["Proposal", "plan_construction", "propose"]

MAX_OPERATIONS = 4e10
"""Maximum number of multiplications of all constructions."""

SERIES_FRACTION = 0.5
"""Fraction of them for the decreasing sizes; sizes between two of them may need the rest."""

MIN_SIZE, MAX_SIZE = 8, 512
"""Bounds of the first size that is constructed."""

COST_PER_VECTOR = 50
"""Multiplications for a vector and a sample beside those for its features and outputs."""

SIZE_RATIO = 0.6
"""A constructed size over the one before."""

MIN_STEPS, MAX_STEPS = 1_000, 8_000
"""Steps of a construction; where the minimum is too expensive, the first size is smaller."""

DISPLACED_SAMPLES, MAX_PLACES = 6_000, 8
"""Number of displaced samples to compare the models on where there are few, and the maximum for each."""


class Proposal(NamedTuple):
    """Sizes of one method, decreasing, with their models and sample scores."""

    sizes: list[int]
    #: The model of a size.
    model: Callable[[int], Any]
    #: The sizes with their sample scores by an evaluator.
    levels: Callable[[HoldoutEvaluator], Iterator[tuple[int, NDArray[np.float64]]]]
    #: Whether sizes between two of them may be tried.
    refines: bool = False

    @property
    def n_tests(self) -> int:
        """The number of sizes that may be looked at."""
        # Two refinements reach at most three sizes between each two.
        return (4 if self.refines else 1) * len(self.sizes)


def _selected_vectors(path: ReducedPath, limit: int) -> Proposal:
    """Sizes of a path of selected vectors."""
    sizes = sizes_to_search([size for size in path.sizes if size <= limit])
    return Proposal(sizes, path.__getitem__, lambda evaluator: evaluator.levels(path._outputs, sizes))


def _constructed_vectors(
    request: PathRequest, sizes: list[int], progress: ProgressCallback | None, *, refines: bool = False
) -> Proposal:
    """Sizes whose vectors are constructed, each when it is asked for."""
    models: dict[int, Any] = {}

    def model(size: int) -> Any:
        if size not in models:
            path = path_of(request._replace(n_vectors=size), progress, every_size=False)
            models[size] = path[path.sizes[-1]]
        return models[size]

    def levels(evaluator: HoldoutEvaluator) -> Iterator[tuple[int, NDArray[np.float64]]]:
        return ((size, evaluator.scores_of(model(size))) for size in sizes)

    return Proposal(sizes, model, levels, refines)


def propose(
    request: PathRequest, *, max_bytes: int | None, progress: ProgressCallback | None, held_out: bool
) -> list[Proposal]:
    """The sizes of each method that a compression tries.

    Parameters
    ----------
    request : PathRequest
        The model, the samples to learn from, the method (``"auto"`` for several) and the number of vectors,
        None for sizes to choose from.
    max_bytes : int or None
        Maximum size of the model's arrays.
    progress : callable or None
        Called with the progress.
    held_out : bool
        Whether there are samples to measure the loss on.

    Returns
    -------
    list of Proposal
        At least one.
    """
    automatic, settings = request.method == "auto", request.settings
    if automatic and not isinstance(settings, (GradientSettings, SelectionSettings, type(None))):
        raise refuse("settings", settings, "None, a GradientSettings or a SelectionSettings")
    of_gradient = isinstance(settings, GradientSettings)
    if automatic and of_gradient and not held_out:
        raise refuse("settings", settings, "None or a SelectionSettings where no samples are given")
    proposals: list[Proposal] = []
    if request.method != "gradient":
        selecting = request
        if automatic:
            # Thresholds follow the answers of the full model: on its training samples labels flatter it.
            selecting = request._replace(
                method="backfit", y=None, scoring=None, settings=None if of_gradient else settings
            )
        path = _selection(selecting, progress, by_predictions=automatic)
        limit = path.sizes[-1] if max_bytes is None else path._size_within(max_bytes)
        proposals.append(_selected_vectors(path, limit))
        if not automatic or not held_out:
            return proposals
    making = settings if of_gradient else _default_settings(request.X) if automatic else GradientSettings()
    if not isinstance(settings, (GradientSettings, type(None))) and not automatic:
        raise refuse("settings", settings, "None or a GradientSettings")
    return proposals + _constructions(request, making, max_bytes, proposals, progress)


def _selection(
    request: PathRequest, progress: ProgressCallback | None, *, by_predictions: bool
) -> ReducedPath:
    """A path of selected vectors; kernels that are not positive semidefinite may be compared by outputs."""
    path: ReducedPath
    try:
        path = path_of(request, progress, every_size=True)
    except np.linalg.LinAlgError:
        if not by_predictions:
            raise
        settings = replace(request.settings or SelectionSettings(), criterion="predictions")
        path = path_of(request._replace(settings=settings), progress, every_size=True)
    return path


def _constructions(
    request: PathRequest,
    settings: GradientSettings,
    max_bytes: int | None,
    selected: list[Proposal],
    progress: ProgressCallback | None,
) -> list[Proposal]:
    expansion = request.model.expansion_
    n_samples = expansion.n_vectors if request.X is None else int(_num_samples(request.X))
    size = request.n_vectors if max_bytes is None else _size_within(expansion, max_bytes)
    making = request._replace(method="gradient", settings=settings, tol=0.0)
    if selected and isinstance(request.model, ExpansionDetector):
        making = making._replace(y=None, scoring=None)
    if size is not None and not selected:
        return [_constructed_vectors(making, [size], progress)]
    if size is not None:
        size = min(size, expansion.n_vectors)
        steps = settings.steps or _steps_of_size(expansion, size, settings)
        if not steps or size > n_samples:
            return []
        starts = settings.start, selected[0].model(selected[0].sizes[0]).expansion_.vectors
        each = [replace(settings, steps=steps, sizes=None, start=start) for start in starts]
        return [_constructed_vectors(making._replace(settings=one), [size], progress) for one in each]
    sizes, steps = plan_construction(expansion, n_samples, settings)
    if not sizes:
        return []
    imitates = settings.loss == "agreement" and isinstance(request.model, ExpansionClassifier)
    weight = 0.0 if settings.label_weight is None and imitates else settings.label_weight
    settings = replace(settings, steps=steps, sizes=None, label_weight=weight)
    return [_constructed_vectors(making._replace(settings=settings), sizes, progress, refines=True)]


def plan_construction(expansion: Any, n_samples: int, settings: GradientSettings) -> tuple[list[int], int]:
    """Sizes to construct, decreasing, and the number of steps for each.

    There are none if the model is too small, or has too many columns for the minimum number of steps.
    """
    m = expansion.n_vectors
    size = min(MAX_SIZE, max(MIN_SIZE, m // 2), DEFAULT_PATH, m - 1, n_samples)
    # The sizes together are a geometric series.
    cost = _cost_of_step(expansion, settings) / (1.0 - SIZE_RATIO)
    affordable = int(SERIES_FRACTION * MAX_OPERATIONS / (cost * MIN_STEPS))
    size = min(size, affordable) if affordable >= min(size, MIN_SIZE) else 0
    sizes: list[int] = []
    while size >= 1:
        sizes.append(size)
        size = min(size - 1, int(SIZE_RATIO * size + 0.5))
    steps = settings.steps
    if steps is None:
        steps = int(SERIES_FRACTION * MAX_OPERATIONS / (cost * max(sizes, default=1)))
        steps = int(np.clip(steps, MIN_STEPS, MAX_STEPS))
    return sizes, steps


def _cost_of_step(expansion: Any, settings: GradientSettings) -> float:
    """Multiplications of a step for one vector."""
    d, q = int(expansion.vectors.shape[1]), expansion.n_outputs
    return float(settings.batch * (2 * d + 3 * q + COST_PER_VECTOR))


def _steps_of_size(expansion: Any, size: int, settings: GradientSettings) -> int:
    """Steps of each of two constructions of one size; 0 where they are too expensive."""
    return int(np.clip(MAX_OPERATIONS / (2 * size * _cost_of_step(expansion, settings)), 0, MAX_STEPS))


def _default_settings(X: Any) -> GradientSettings:
    """Settings with more displaced samples where there are few samples."""
    default = GradientSettings()
    if X is None:
        return default
    places = DISPLACED_SAMPLES // max(1, int(_num_samples(X)))
    return replace(default, places=int(np.clip(places, default.places, MAX_PLACES)))


def _size_within(expansion: Any, max_bytes: int) -> int:
    """The number of constructed vectors, which are dense and of single precision, within some bytes."""
    d, q = int(expansion.vectors.shape[1]), expansion.n_outputs
    size = (max_bytes - 8 * q) // (4 * d + 8 * q)
    if size < 1:
        raise ValueError(
            f"max_bytes={max_bytes} is not allowed: it must be at least {4 * d + 16 * q}, which one vector "
            "takes"
        )
    return int(size)
