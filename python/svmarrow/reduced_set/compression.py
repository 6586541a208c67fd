"""`compress`: from a fitted model to one with fewer vectors, in six steps.

Take the model in, split the samples, propose sizes and methods, choose, bound the loss, wrap.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples

from svmarrow._support.parameters import check, either, none, one_of, refuse
from svmarrow._support.progress import progress as shown_progress
from svmarrow.expansion.composites import ExpansionTree
from svmarrow.expansion.kernel_expansion import scale_outputs
from svmarrow.interop.convert import as_expansion, is_predictor
from svmarrow.models.base import LossBound
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector
from svmarrow.reduced_set.construction import GradientSettings, warn_too_few_vectors
from svmarrow.reduced_set.holdout import HoldoutEvaluator, Samples, SizeSearch, sizes_to_search, split_samples
from svmarrow.reduced_set.paths import DEFAULT_PATH, PathRequest, path_of
from svmarrow.reduced_set.quantization import (
    n_byte_vectors,
    preparation_bytes,
    rounded,
    stored_bytes,
)
from svmarrow.reduced_set.score import (
    CONFIDENCE,
    MAX_LOSS,
    MIN_AGREEMENT,
    SIZE_RULES,
    check_scoring,
    goal_of,
    output_spread,
    predictions_of,
    predicts_classes,
    refuse_large_loss,
    refuse_number,
    refuse_scoring,
    rows_for,
    warn_if_constant,
    with_bound,
    wrap_like,
)
from svmarrow.reduced_set.selection import SelectionSettings, features_of, has_fixed_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import KernelModel
    from svmarrow.reduced_set.path import ReducedPath


__all__ = [
    "METHODS",
    "Proposal",
    "compress",
    "plan_construction",
    "propose",
]


# --- propose sizes and methods: what a compression tries ---
# By itself, `compress` tries two methods. The back-fitting pursuit gives every size in one run. Gradient
# steps construct new vectors for sizes that decrease by a factor of 0.6, from half of the model's vectors
# on. Where one size is asked for, vectors are constructed twice, from cluster centers and from the
# pursuit's vectors.
#
# The work of construction is planned as a number of multiplications, at most `MAX_OPERATIONS`, which is a
# few seconds of one core, and not by a clock: a seed gives the same model on any machine.


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


def _local_vectors(request: PathRequest, progress: ProgressCallback | None) -> Proposal:
    """A tree whose leaves have their own vectors."""
    full, size = request.model, int(request.n_vectors or 0)
    rows = rows_for(full, request.X)
    spread = output_spread(full, rows, request.sample_weight, request.n_jobs)

    @cache
    def model(size: int) -> Any:
        tree = ExpansionTree.of(
            scale_outputs(full.expansion_, 1.0 / spread),
            rows,
            size,
            random_state=request.random_state,
            n_jobs=request.n_jobs,
            progress=progress,
        )
        return wrap_like(full, tree.scaled(spread))

    return Proposal([size], model, lambda evaluator: iter([(size, evaluator.scores_of(model(size)))]))


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
    if selected and has_fixed_vectors(expansion):
        return []
    n_samples = expansion.n_vectors if request.X is None else int(_num_samples(request.X))
    size = request.n_vectors if max_bytes is None else _size_within(request.model, max_bytes)
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


def _size_within(model: Any, max_bytes: int) -> int:
    """The number of constructed vectors, which are dense and of single precision, within some bytes."""
    expansion = model.expansion_
    d, q = int(expansion.vectors.shape[1]), expansion.n_outputs
    fixed = 8 * q + preparation_bytes(model)
    size = (max_bytes - fixed) // (4 * d + 8 * q)
    if size < 1:
        raise refuse("max_bytes", max_bytes, f"at least {fixed + 4 * d + 8 * q}, which one vector takes")
    return int(size)


METHODS = ("auto", "backfit", "prefit", "rank", "gradient")
CompressMethod: TypeAlias = Literal["auto", "backfit", "prefit", "rank", "gradient"]
RULES = {
    **SIZE_RULES,
    "max_evaluations": SIZE_RULES["n_vectors"],
    "method": one_of(*METHODS),
    "dtype": either(none, one_of("int8")),
}
MAX_REFINEMENTS = 2
"""Maximum number of sizes between the smallest that is good enough and the next."""


Scoring: TypeAlias = Literal["accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"]


def compress(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_vectors: int | None = None,
    max_loss: float = MAX_LOSS,
    min_agreement: float = MIN_AGREEMENT,
    max_bytes: int | None = None,
    max_evaluations: int | None = None,
    dtype: Literal["int8"] | None = None,
    validation: tuple[Any, ...] | None = None,
    scoring: Scoring | None = None,
    sample_weight: ArrayLike | None = None,
    method: CompressMethod = "auto",
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> KernelModel:
    """Approximate a fitted kernel machine by one with few vectors.

    ``compress(model, X, y)`` holds out half of the samples, at most 20,000, and learns from the others. It
    returns the smallest model that loses at most 0.003 of the full model's accuracy, as far as the held-out
    samples can tell, and bounds the loss on other samples: its ``loss_bound_``. The held-out samples have
    half of each class and follow `random_state`; `validation` gives others.

    There is one goal: `max_loss` by default, `min_agreement` by default without labels, or whichever of
    `n_vectors`, `max_loss`, `min_agreement`, `max_bytes` and `max_evaluations` is passed. All machines of a
    multiclass model are approximated together over one set of vectors. So are the outputs of a regressor,
    which count alike, whatever the units of the targets.

    `svmarrow.distil` takes predictors that are not a kernel expansion, such as trees and neural networks.

    The weights of a model are kept. If classes or samples had weights in training (``class_weight``,
    ``sample_weight``), thresholds stay as they are, vectors learn from the model and not from labels, and the
    loss is one of balanced accuracy unless `scoring` or `sample_weight` select another.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.as_expansion` takes: a fitted estimator of svmarrow, a fitted kernel machine
        of scikit-learn, a pipeline that ends in one, a model file, a `KernelExpansion`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples, best some that training has not seen: on its training samples a model has larger margins than
        on others. Where a loss is measured and `validation` is not given, half of them, at most 20,000, are
        held out for it: half of each class, of `y` where labels are compared, else of the model's own
        answers. Thresholds are set on the others (for regression, means of the outputs), except for a model
        that was trained with weights, and constructed vectors learn from them. Not needed for `n_vectors` and
        `max_bytes`; there is no bound of the loss then.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Their labels; targets for regression, 1 and -1 for a detector. Without them the answers of the full
        model take their place. Thresholds are set for labels where the model is known to be trained without
        weights, or `scoring` or `sample_weight` select a loss; where it is not known (LIBSVM's
        files; machines of scikit-learn, which do not keep the weights of samples) they are set for the
        model's own answers.
    n_vectors : int, default=None
        Number of vectors; more than there are means all. Fewer result where they reproduce the model up to
        one part in 10^5.
    max_loss : float, default=0.003
        How much lower the score may be than the full model's, see `scoring`; 0.003 is 0.3 percentage points
        of accuracy. Needs labels or targets. The default is the goal if there are some and no other goal is
        passed.
    min_agreement : float, default=0.99
        Smallest fraction of samples that get the full model's label; for regression, R^2 against its outputs,
        averaged over them. Labels `y` are not read. The default is the goal if there are no labels and no
        other goal is passed.
    max_bytes : int, default=None
        Largest number of bytes of the model's numbers, in the form of `dtype`: vectors, coefficients,
        intercepts, and the numbers of the preparation (scaling, PCA), which are not compressed and count in
        single precision, as in a C header; a file has them in double precision. The text of a file's header,
        about a thousand bytes, and the instructions of C code are not counted.
    max_evaluations : int, default=None
        Largest number of kernel values for an answer. The result has that number of vectors, or is a tree
        whose leaves have up to that number each (`svmarrow.models.ExpansionTree`), whichever scores better on
        the samples held out. A tree has many vectors in all, and evaluates those of one leaf for a sample: it
        is better where the model has many classes or details everywhere. Needs X.
    dtype : {"int8"} or None, default=None
        With `n_vectors` or `max_bytes`: "int8" rounds vectors and coefficients to one byte each, as
        `svmarrow.quantize` does. The result is the rounded model, and `loss_bound_` is the bound of its loss.
        An export by ``svmarrow.export.to_c(..., dtype="int8")`` takes about as many bytes.
    validation : tuple of (X, y) or (X, y, sample_weight), default=None
        The samples held out, best some that neither training nor compression has seen; y may be None.
    scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
        The measure of `max_loss` and of the choice among models of one size; needs y. None is "accuracy" for
        a classifier or detector that is known to be trained without weights, or where `sample_weight` is
        given, "balanced_accuracy" for the others, and "r2" for regression. Measures of several targets are
        averaged over them, as scikit-learn's ``score`` is, so that each counts on its own scale in "r2".
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples `X` in the loss, in its bound, in the agreement and in the choice of
        thresholds; None is 1 for each. Constructed vectors then learn from the model alone.
    method : {"auto", "backfit", "prefit", "rank", "gradient"}, default="auto"
        How vectors are selected or constructed. ``"auto"`` tries ``"backfit"`` and, where there are samples
        held out, ``"gradient"``, in a few seconds. The others, separately:

        * ``"backfit"``: selects one of the model's vectors after the other and solves for all coefficients
          after each (matching pursuit with back-fitting); milliseconds.
        * ``"prefit"``: the same, but each time the vector that leaves the smallest residual; a small multiple
          of the time, and often a little better at small sizes.
        * ``"rank"``: a basis of the span of all vectors, lossless; small for linear and polynomial kernels
          and for repeated vectors.
        * ``"gradient"``: constructs new vectors, moved together with their coefficients by gradient steps.
          Not for kernels that are Python functions or precomputed; for the latter X must be the kernel matrix
          of all training samples.
          For `n_vectors` it takes 20,000 to 60,000 steps, seconds to minutes, and is much better at a tenth
          of the vectors or fewer.

        `compression_path` has the last four, with more settings.
    settings : GradientSettings or SelectionSettings, default=None
        The former for ``"gradient"``, the latter for all other methods, either for ``"auto"``.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples that are held out, of constructed vectors and of
        ``SelectionSettings(sample=...)``; nothing else is random. None holds out the same samples each time.
    n_jobs : int, default=None
        Number of threads. None means all cores that this process may use.
    verbose : bool, default=False
        Show the progress on standard error.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        A model of the kind of `model`, ready to predict, with a ``loss_bound_``
        (`svmarrow.models.LossBound`); a `KernelExpansion` of a bare one, which has no place for it. Where no
        smaller model keeps to `max_loss` or `min_agreement`, the full one.

    Raises
    ------
    ValueError
        If a parameter is out of its range, there are several goals, the goal needs samples that are not
        given, X does not fit the model, the method does not take the kernel, the model is constant, or a
        selection needs more than ``max_memory``.
    MemoryError
        If `svmarrow.reduced_set.estimate_memory` is more than this process may take.
    TypeError
        If `svmarrow.as_expansion` refuses the model; the message names `svmarrow.distil` if it predicts.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

    Warns
    -----
    svmarrow.exceptions.SizeWarning
        If `n_vectors` are fewer than half of the clusters that an RBF kernel distinguishes among the model's
        vectors (m^2 / sum K_ij^2 over their kernel matrix, at least 40, of samples that fill at most four
        dimensions), or a model of the given size predicts one class for all samples although the full model
        does not.

    See Also
    --------
    compression_path : The models of all sizes out of one run.
    distil : A kernel model that imitates any predictor.

    Notes
    -----
    A score on a few hundred samples varies by several tenths of a percentage point, and the smallest of many
    sizes that scores well has often been lucky. The choice therefore counts the answers that change, each by
    what it costs: 2 p - 1, with p the probability that the full model is right at its margin on that sample,
    fitted to the labels held out. One standard error is added, and the measured loss must be small enough
    too. Few samples keep many vectors, down to the full model: ``max_loss=0.003`` takes some hundred held
    out, and ``min_agreement=0.99`` at least 100.

    Few vectors are not enough where the classes change at the distance of neighboring samples (two spirals,
    checkerboards of many fields); a machine with a smaller gamma may be. They are where a narrow kernel has
    learned noise.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, compress
    >>> from sklearn.utils import shuffle
    >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:800], y[:800])

    The smallest model that loses at most one percentage point of accuracy, and the bound of its loss:

    >>> small = compress(svc, X[800:1600], y[800:1600], max_loss=0.01, random_state=0)
    >>> small.expansion_.n_vectors < svc.expansion_.n_vectors / 2, small.loss_bound_.n_samples
    (True, 400)
    >>> svc.score(X[1600:], y[1600:]) - small.score(X[1600:], y[1600:]) <= small.loss_bound_.upper
    True

    A hundred of its vectors:

    >>> small = compress(svc, n_vectors=100)
    >>> small.expansion_.n_vectors, str(small.loss_bound_)
    (100, 'No samples were held out, so there is no bound of the loss.')
    """
    refuse_number(X)
    goals = {
        "n_vectors": n_vectors,
        "max_loss": max_loss,
        "min_agreement": min_agreement,
        "max_bytes": max_bytes,
        "max_evaluations": max_evaluations,
    }
    check({**goals, "dtype": dtype, "method": method, "validation": validation}, RULES)
    refuse_large_loss(max_loss, scoring)
    goal = goal_of(goals, X, y, validation)
    full = _kernel_machine(model)
    if dtype is not None and goal.max_loss is not None:
        raise refuse(
            "dtype",
            dtype,
            "None unless the goal is n_vectors or max_bytes; quantize(model, dtype='int8', X=X) rounds any "
            "model",
        )
    if max_evaluations is not None:
        refuse_local(X, dtype, method)
        n_vectors = max_evaluations
    _refuse_for_values(full.expansion_, max_bytes=max_bytes, max_evaluations=max_evaluations, dtype=dtype)
    byte_limit = max_bytes if dtype is not None else None
    if dtype is not None and max_bytes is not None:
        n_vectors, max_bytes = n_byte_vectors(full, max_bytes), None
    if goal.name == "n_vectors":
        warn_too_few_vectors(full.expansion_, int(goal.value), stacklevel=2)
    samples = Samples(X, y, sample_weight)

    def compared_labels() -> Any:
        if y is not None and goal.name != "min_agreement":
            return y
        return predictions_of(full, full.expansion_._evaluate(rows_for(full, samples.X), n_jobs))

    learn, holdout = split_samples(
        samples,
        validation,
        hold_out=goal.max_loss is not None or method == "auto",
        labels=compared_labels if predicts_classes(full) else None,
        random_state=random_state,
    )
    # A precomputed kernel needs all values; nothing else may look at the samples held out.
    features = features_of(full, X if full.expansion_.kernel == "precomputed" else learn.X)
    check_scoring(full, scoring, y if holdout is None else holdout.y)
    if goal.name == "min_agreement":
        refuse_scoring(scoring)
        learn = learn if getattr(settings, "needs_labels", False) else learn._replace(y=None)
        holdout = None if holdout is None else holdout._replace(y=None)
    evaluator = None
    if holdout is not None:
        evaluator = HoldoutEvaluator(full, holdout.X, holdout.y, scoring, n_jobs, holdout.weights)
    request = PathRequest(
        full, n_vectors, learn.X, learn.y, method, settings=settings, random_state=random_state, n_jobs=n_jobs
    )
    request = request._replace(
        scoring=None if learn.y is None else scoring, sample_weight=learn.weights, features=features
    )
    with shown_progress(verbose) as shown:
        shown.stops_in = ("pursuit", 1)
        proposals = propose(
            request, max_bytes=max_bytes, progress=shown.callback, held_out=evaluator is not None
        )
        if max_evaluations is not None and max_evaluations < full.expansion_.n_vectors:
            proposals.append(_local_vectors(request, shown.callback))
        if evaluator is not None and goal.max_loss is not None:
            choice = smallest(full, proposals, evaluator, goal.max_loss)
        else:
            finish = partial(_in_bytes, X=learn.X, dtype=dtype, n_jobs=n_jobs)
            models = [finish(proposal.model(proposal.sizes[0])) for proposal in proposals]
            if byte_limit is not None:
                # Nothing is nearer to the full model than its own vectors, if they fit.
                rounded_full = finish(full)
                fits = stored_bytes(rounded_full.expansion_) + preparation_bytes(full) <= byte_limit
                models = [rounded_full, *models] if fits else models
            choice = best_of_size(models, evaluator)
    rows = learn.X if evaluator is None else evaluator.rows
    if goal.max_loss is None and rows is not None:
        checked = rows_for(full, rows) if evaluator is None else rows
        warn_if_constant(full, choice.model, checked, str(goal), n_jobs)
    bound = LossBound(None, None, CONFIDENCE, 0, "accuracy")
    if evaluator is not None and choice.scores is not None:
        bound = evaluator.loss_bound(choice.scores, CONFIDENCE, goal.max_loss, choice.n_tests)
    small: KernelModel = with_bound(choice.model, bound)
    return small


def _refuse_for_values(expansion: KernelExpansion, **parameters: Any) -> None:
    """Refuse what reads the numbers of vectors and one kernel, for vectors that can be selected only."""
    if not has_fixed_vectors(expansion):
        return
    for name, value in parameters.items():
        if value is not None:
            raise refuse(
                name, value, f"None for kernel={expansion.kernel!r}; n_vectors sets the number of vectors"
            )


def refuse_local(X: Any, dtype: str | None, method: str) -> None:
    """Refuse what a compression to a number of kernel values does not take."""
    if X is None:
        raise ValueError("max_evaluations needs samples: give X, whose paths through a tree are looked at")
    if dtype is not None:
        raise refuse("dtype", dtype, "None with max_evaluations: a tree is not rounded to bytes")
    if method != "auto":
        raise refuse("method", method, "'auto' with max_evaluations, which compares several methods")


def _kernel_machine(model: Any) -> Any:
    """Returns the model as an expansion; the error for any other predictor names `distil`."""
    try:
        return as_expansion(model)
    except NotFittedError:
        raise
    except (TypeError, ValueError) as error:
        if not is_predictor(model):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{error}. compress reduces kernel expansions; svmarrow.distil(model, X, y) trains a kernel "
            f"model that imitates this {getattr(model, '__name__', type(model).__name__)}"
        ) from error


class Choice(NamedTuple):
    """A model, its sample scores where there are samples held out, and how many models were compared."""

    model: Any
    scores: NDArray[np.float64] | None = None
    n_tests: int = 1


def smallest(
    model: Any, proposals: Sequence[Proposal], evaluator: HoldoutEvaluator, max_loss: float
) -> Choice:
    """The smallest proposed model whose safe loss is at most `max_loss`; the full model where none is."""
    best = Choice(wrap_like(model, model.expansion_), evaluator.full)
    for proposal in proposals:
        search = SizeSearch(max_loss)
        seen = search.search(proposal.levels(evaluator), evaluator)
        for _ in range(MAX_REFINEMENTS):
            size = search.next_between if proposal.refines else None
            if size is None:
                break
            seen[size] = evaluator.scores_of(proposal.model(size))
            search.add(size, evaluator.safe_loss(seen[size]))
        size = search.smallest
        if size is not None and size < best.model.expansion_.n_vectors:
            best = Choice(proposal.model(size), seen[size])
    return best._replace(n_tests=max(1, sum(proposal.n_tests for proposal in proposals)))


def _in_bytes(model: Any, X: Any, dtype: str | None, n_jobs: int | None) -> Any:
    """The model with rounded vectors and coefficients if `dtype` is "int8"."""
    if dtype is None:
        return model
    rows = None if X is None else rows_for(model, X)
    return wrap_like(model, rounded(model.expansion_, "uint8", "uint8", rows, n_jobs))


def best_of_size(models: Sequence[Any], evaluator: HoldoutEvaluator | None) -> Choice:
    """The model that scores best of the largest that each method proposes."""
    if evaluator is None:
        return Choice(models[0])
    best = min(models, key=lambda model: evaluator.loss(evaluator.scores_of(model)))
    return Choice(best, evaluator.scores_of(best, allow_constant=True), len(models))
