"""Construct few vectors by gradient steps instead of selecting them (Burges & Schoelkopf, 1997; Xu, Gardner,
Tyree & Weinberger, "Compressed support vector machines", 2015, equation 10).

Vectors Z and coefficients B move together so that K(x, Z) B + b does on given rows what the large model
does, or better, where labels are given. The rows are the training samples if they are given, else the model's
own vectors.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.parameters import Rule, check, either, integer, none, one_of, real, refuse, seed_of
from svmarrow._support.rows import as_rows, core_rows, dense, threads
from svmarrow._support.schemas import savable
from svmarrow.exceptions import SizeWarning
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.reduced_set.score import numbers_for, wrap_like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.models.expansion_models import ExpansionClassifier


__all__ = [
    "GradientSettings",
    "construct",
    "effective_clusters",
    "output_targets",
    "path_sizes",
    "warn_too_few_vectors",
]


# --- A warning where few vectors cannot be enough ---
# The kernel matrix K of the m vectors, K(x, x) = 1, has trace m and a rank of at least (tr K)^2 / |K|^2,
# that is m^2 / sum_ij K(x_i, x_j)^2, its effective rank: the number of clusters that the kernel
# distinguishes. A function that changes from each to the next, as on two spirals or a checkerboard, needs
# about one vector for each. Samples of many features, all about as far from each other, have a high rank
# too, yet none are near: the mean of K^2 weighted by K^2, 2^(-d / 2) where samples fill d dimensions, is
# small. Few vectors may be enough there, so there is no warning; nor for other kernels than the RBF kernel.
#
# Cost: MAX_VECTORS^2 kernel values.


MAX_VECTORS = 1000
"""Maximum number of vectors that are compared."""

MIN_CLUSTERS = 40.0
"""Minimum number of clusters for a warning: the sets that this was measured on have at most 27."""

MIN_NEARNESS = 0.25
"""Minimum weighted mean of K^2: samples that fill four dimensions."""

VECTORS_PER_CLUSTER = 0.5
"""Vectors for each cluster below which there is a warning."""


def effective_clusters(expansion: KernelExpansion) -> tuple[float, float]:
    """The effective number of clusters of the vectors, and how near the near ones are.

    Parameters
    ----------
    expansion : KernelExpansion
        With the RBF kernel and two vectors at least.

    Returns
    -------
    rank : float
        The effective rank of the kernel matrix of all vectors, estimated from pairs of a sample.
    near : float
        The mean of K^2 over pairs, weighted by K^2; 0 where no two vectors have anything in common.
    """
    m = expansion.n_vectors
    size = min(m, MAX_VECTORS)
    chosen = np.sort(np.random.default_rng(0).permutation(m)[:size])
    sample = core_rows(expansion.vectors[chosen])
    squares = _core.gram(sample, None, expansion.kernel_spec, threads(1)) ** 2
    np.fill_diagonal(squares, 0.0)
    total = float(squares.sum())
    pairs = size * (size - 1)
    rank = m * m / (m + m * (m - 1) * total / pairs)
    return rank, float((squares**2).sum()) / total if total > 0.0 else 0.0


def warn_too_few_vectors(expansion: KernelExpansion, n_vectors: int, stacklevel: int) -> None:
    """Warn where the vectors are fewer than half of the effective clusters."""
    m = expansion.n_vectors
    if expansion.kernel != "rbf" or n_vectors >= VECTORS_PER_CLUSTER * m or m <= MIN_CLUSTERS:
        return
    rank, near = effective_clusters(expansion)
    if rank >= MIN_CLUSTERS and near >= MIN_NEARNESS and n_vectors < VECTORS_PER_CLUSTER * rank:
        warnings.warn(
            f"n_vectors={n_vectors} may be too few: the model's {m} vectors lie in about {rank:.0f} clusters "
            f"that its kernel distinguishes (gamma={expansion.gamma:g}). Allow about as many vectors, or "
            "train with a smaller gamma",
            SizeWarning,
            stacklevel=stacklevel + 1,
        )


SELECTIONS = ("backfit", "prefit", "rank")
MIN_PATH_SIZE = 8
"""Minimum size of a path whose sizes double."""

LABEL_WEIGHT = 0.3
"""Default weight of the labels where they are known."""

START_RIDGE = 1e-6
"""Ridge of the first coefficients, as a share of the mean diagonal."""

MAX_STEPS, MIN_STEPS = 60_000, 20_000
"""Default numbers of steps, of inexpensive and of expensive steps."""

MAX_FULL_COST = 64_000
"""Maximum number of multiplications for a sample at which all steps are taken."""

#: Samples of the fit of the first coefficients: for each vector, and their minimum number.
START_SAMPLES_PER_VECTOR, MIN_START_SAMPLES = 6, 2000
#: Samples of a cluster that its center is computed from.
SAMPLES_PER_CENTRE = 100


def _increasing(value: object) -> bool:
    if not isinstance(value, (list, tuple, range, np.ndarray)) or len(value) == 0:
        return False
    sizes = list(value)
    return all(integer(least=1).holds(size) for size in sizes) and all(a < b for a, b in pairwise(sizes))


RULES = {
    "loss": one_of("agreement", "matching", "hinge", "squared_hinge"),
    "start": either(
        one_of("centers", *SELECTIONS),
        Rule("vectors, or a model that has some", lambda v: _vectors(v) is not None),
    ),
    "sizes": either(none, Rule("increasing positive integers", _increasing)),
    "sharpness": real(above=0.0),
    "label_weight": either(none, real(least=0.0, most=1.0)),
    "steps": either(none, integer(least=0)),
    "batch": integer(least=1),
    "vector_rate": real(least=0.0),
    "coefficient_rate": real(least=0.0),
    "noise": real(least=0.0),
    "mixing": real(least=0.0, most=1.0),
    "places": integer(least=0),
}


def _vectors(start: object) -> Any:
    """Rows of a matrix, or the vectors of a model; None for everything else."""
    expansion = getattr(start, "expansion_", start)
    if isinstance(expansion, KernelExpansion):
        return expansion.vectors
    return start if getattr(start, "ndim", None) == 2 else None


@savable("gradient-settings/1")
@dataclass(frozen=True)
class GradientSettings:
    """Settings of ``compress(method="gradient")``.

    The defaults were chosen on held-out training samples of several data sets; more steps are what helps
    most.

    Parameters
    ----------
    loss : {"agreement", "matching", "hinge", "squared_hinge"}, default="agreement"
        ``"matching"`` is the squared difference of the outputs, equation 10 of the paper. ``"agreement"``
        is the cross-entropy between the class probabilities of both models, softmax or sigmoid of the
        outputs: vectors go where they change decisions. The hinge losses learn from the labels, which must
        have equal weights, and not from the model. A bare expansion, which has no classes, is always
        matched.
    start : str, matrix of shape (m, n_features) or model, default="centers"
        Where the vectors come from before they are moved. ``"centers"``: cluster centers of the samples,
        class by class. ``"backfit"``, ``"prefit"`` or ``"rank"``: the model's own vectors as that method of
        ``compress`` chooses them. A matrix begins with its first samples, a model with its vectors. Where
        these are too few, cluster centers follow. Coefficients begin with the least squares fit to the
        outputs. The paper begins with the vectors of LARS: ``start=path(model, method="lars")[m]``, with
        `svmarrow.papers.reduced_set.path`.
    sizes : sequence of int, default=None
        Sizes of a path besides its largest, each constructed separately. None means the halves of the
        largest size, down to 8. `compress`, which makes one model, refuses them.
    sharpness : float, default=1.0
        Factor of the outputs before they become probabilities.
    label_weight : float, default=None
        Share of the labels in the targets of ``"agreement"``: 0 imitates the model, 1 trains on the labels
        alone, by the logistic or softmax loss. For a bare expansion with ``y`` the share of y in the
        numbers that are matched. None is 0.3 where there are labels that count alike, else 0: they do not
        where the model was trained with weights or may have been, nor for a weighted loss.
    steps : int, default=None
        Number of steps for each size. None takes 60,000, or fewer, but at least 20,000, where the largest
        size costs more than 64,000 multiplications a sample.
    batch : int, default=144
        Samples of a step.
    vector_rate : float, default=0.1
        Length of the first steps of a vector in each feature, as a share of the samples' root mean square
        deviation.
    coefficient_rate : float, default=0.1
        Length of the first steps of a coefficient, as a share of the root mean square of the coefficients.
    noise : float, default=0.2
        Samples are displaced at random by this share of each feature's standard deviation, so that the models
        are compared beside the training samples too.
    mixing : float, default=0.0
        Displaced samples are also moved towards another sample, by a random share of the way up to this one.
    places : int, default=2
        Number of displacements of each sample, besides the sample itself.
    """

    loss: Literal["agreement", "matching", "hinge", "squared_hinge"] = "agreement"
    start: Any = "centers"
    sizes: Sequence[int] | None = None
    sharpness: float = 1.0
    label_weight: float | None = None
    steps: int | None = None
    batch: int = 144
    vector_rate: float = 0.1
    coefficient_rate: float = 0.1
    noise: float = 0.2
    mixing: float = 0.0
    places: int = 2

    def __post_init__(self) -> None:
        check({name: getattr(self, name) for name in RULES}, RULES)

    @property
    def needs_labels(self) -> bool:
        """True if y must be given."""
        return self.loss in ("hinge", "squared_hinge") or (self.loss == "agreement" and self.asks_for_labels)

    @property
    def asks_for_labels(self) -> bool:
        """True if `label_weight` is given and positive."""
        return self.label_weight is not None and self.label_weight > 0


def path_sizes(settings: GradientSettings, size: int, *, path: bool) -> list[int]:
    """The sizes to construct.

    Parameters
    ----------
    settings : GradientSettings
        Their `sizes` may be given.
    size : int
        The largest size.
    path : bool
        Whether to construct all sizes, or only the largest.

    Raises
    ------
    ValueError
        If a given size is larger than the largest, or sizes are given for a single model.
    """
    if settings.sizes is not None and not path:
        raise refuse("sizes", settings.sizes, "None for one model: compression_path makes several")
    if settings.sizes is not None:
        named = [int(between) for between in settings.sizes]
        if named[-1] > size:
            raise refuse("sizes", settings.sizes, f"at most {size}, the size of the largest model")
        return named if named[-1] == size else [*named, size]
    sizes = [size]
    while path and sizes[0] >= 2 * MIN_PATH_SIZE:
        sizes.insert(0, -(-sizes[0] // 2))
    return sizes


def output_targets(
    full: KernelExpansion, settings: GradientSettings, y: ArrayLike, rows: Any
) -> NDArray[np.float64]:
    """Targets (n, q) of the outputs of a bare expansion; a ValueError if `y` does not fit."""
    if settings.label_weight == 0:
        raise ValueError("y is not used with label_weight=0, which imitates the model: leave y out")
    values = numbers_for(full, y, rows)
    return np.ascontiguousarray(values)


def _initial_vectors(
    settings: GradientSettings,
    rows: Any,
    groups: NDArray[np.int64] | None,
    sizes: Sequence[int],
    select: Callable[[str, int, float | None], Any],
    seed: int,
    time_left: Callable[[], float | None],
    n_threads: int,
) -> list[NDArray[np.float32]]:
    """Vectors to begin with, for each size: of a selection its first ones. Half of the time at most goes into
    them.
    """

    def centres(count: int) -> NDArray[np.float32]:
        return _core.centres(core_rows(rows), groups, count, seed, half(time_left()), n_threads)

    def half(seconds: float | None) -> float | None:
        return None if seconds is None else 0.5 * seconds

    if isinstance(settings.start, str) and settings.start == "centers":
        return [centres(size) for size in sizes]
    if isinstance(settings.start, str):
        chosen = select(settings.start, sizes[-1], half(time_left()))
    else:
        chosen = _vectors(settings.start)
    if chosen.shape[1] != rows.shape[1]:
        raise ValueError(
            f"start has {chosen.shape[1]} columns, the vectors of the model have {rows.shape[1]}"
        )
    chosen = as_rows(chosen, "start")[: sizes[-1]]
    found = np.ascontiguousarray(dense(chosen, np.float32))
    missing = [size - found.shape[0] for size in sizes]
    return [
        found[:size] if more <= 0 else np.vstack([found, centres(more)])
        for size, more in zip(sizes, missing, strict=True)
    ]


def construct(
    source: ExpansionClassifier | KernelExpansion,
    sizes: Sequence[int],
    *,
    select: Callable[[str, int, float | None], Any],
    rows: Any = None,
    labels: NDArray[np.int64] | None = None,
    answers: NDArray[np.float64] | None = None,
    settings: GradientSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> dict[int, Any]:
    """Construct the small models of ``compress(method="gradient")``.

    Parameters
    ----------
    source : ExpansionClassifier or KernelExpansion
        The large model.
    sizes : sequence of int
        Increasing numbers of vectors, at most the number of samples.
    select : callable
        ``select(method, size, max_time)`` returns the first vectors that another method selects.
    rows : {ndarray, CSR matrix} of shape (n_samples, n_features), default=None
        Validated samples on which both models are compared. None takes the model's vectors.
    labels : ndarray of int64 of shape (n_samples,), default=None
        Index of each sample's class. None takes the model's decisions where classes are needed for the start.
    answers : ndarray of float64 of shape (n_samples, n_outputs), default=None
        What the outputs of a bare expansion should be.
    settings : GradientSettings, default=None
        None takes the defaults.
    random_state : int, RandomState instance or None, default=None
        Seed of the start, the batches and the displacements.
    max_time : float, default=None
        Seconds after which moving ends with what it has; the start takes half of them at most.
    n_jobs : int, default=None
        Threads; the model does not depend on it.
    progress : callable, default=None
        Called as ``progress(phase, done, total, gap, steps)`` now and then.

    Returns
    -------
    dict of int to ExpansionClassifier or KernelExpansion
        For each size a model of the kind of `source`; fewer if the time was over. The vectors are dense
        float32.

    Raises
    ------
    ValueError
        If there are fewer samples than vectors, the settings need labels that are not given, or the time was
        over before there were coefficients.
    """
    begin = monotonic()

    def time_left() -> float | None:
        return None if max_time is None else max(0.0, max_time - (monotonic() - begin))

    bare = isinstance(source, KernelExpansion)
    full = source.expansion_
    chosen = GradientSettings() if settings is None else settings
    if rows is None:
        rows, labels, answers = full.vectors, None, None
    if chosen.needs_labels and (labels is None or bare) and answers is None:
        what = f"loss={chosen.loss!r} with label_weight={chosen.label_weight!r}"
        raise ValueError(f"{what} learns from labels: give X and y with a classifier")
    if chosen.asks_for_labels and chosen.loss == "matching" and not bare:
        raise ValueError(
            f"label_weight={chosen.label_weight!r} has no meaning for loss='matching' of a classifier, which "
            "compares outputs only"
        )
    coding = "values" if isinstance(source, KernelExpansion) else source.decoding
    if coding == "code" and chosen.needs_labels:
        raise ValueError(
            f"loss={chosen.loss!r} with label_weight={chosen.label_weight!r} learns from labels, which is "
            "not there for a coded model: take 'agreement' or 'matching' without label_weight"
        )
    seed = seed_of(random_state)
    groups = labels
    if groups is None and not isinstance(source, KernelExpansion):
        groups = source.decode(full._evaluate(rows, n_jobs)).astype(np.int64)
    if coding == "code":
        labels = None
    given = asdict(replace(chosen, start="centers"))
    del given["start"], given["sizes"]
    if bare:
        given["loss"] = "matching"
    if chosen.label_weight is None:
        learns = answers is not None or (labels is not None and given["loss"] == "agreement")
        given["label_weight"] = LABEL_WEIGHT if learns else 0.0
    if chosen.steps is None:
        cost = int(sizes[-1]) * (2 * rows.shape[1] + 3 * full.n_outputs)
        given["steps"] = min(MAX_STEPS, max(MIN_STEPS, MAX_STEPS * MAX_FULL_COST // cost))
    starts = _initial_vectors(chosen, rows, groups, sizes, select, seed, time_left, threads(n_jobs))
    made = _core.gradient_vectors(
        full.core_parts,
        core_rows(rows),
        labels if answers is None else answers,
        {
            **given,
            "starts": starts,
            # The machines of a code are compared one by one.
            "coding": "values" if coding == "code" else coding,
            "seed": seed,
            "scale_rate": 0.0,
            "start_ridge": START_RIDGE,
            "held_out": 0,
            "known_outputs": False,
            "max_time": time_left(),
        },
        progress,
        threads(n_jobs),
    )
    if not made:
        raise ValueError(f"max_time={max_time:g} was over before the first vectors had coefficients")
    stop = made[-1]["stop"]
    if stop != "converged":
        warnings.warn(
            f"the vectors were still moving when compression ended early ({stop})",
            ConvergenceWarning,
            stacklevel=5,
        )
    models: dict[int, Any] = {}
    for size, one in zip(sizes, made, strict=False):
        parts = {name: one[name] for name in ("vectors", "coefficients", "intercepts")}
        models[int(size)] = wrap_like(source, full.replaced(**parts))
    return models


def bytes_of_construction(q: int, rows: Any, size: int, settings: GradientSettings) -> int:
    """Bytes of the construction of `size` vectors for q outputs."""
    n, d = int(rows.shape[0]), int(rows.shape[1])
    of_fit = 8 * min(n, max(START_SAMPLES_PER_VECTOR * size, MIN_START_SAMPLES)) * (
        2 * size + d + q
    ) + 8 * size * (size + q)
    of_centres = 8 * d * min(n, SAMPLES_PER_CENTRE * size) if isinstance(settings.start, str) else 0
    of_outputs = 4 * n * q * (1 + settings.places)
    of_steps = 4 * (6 * size * (d + q) + 2 * min(n, settings.batch) * (2 * size + d))
    return int(max(of_fit, of_centres) + of_outputs + of_steps)
