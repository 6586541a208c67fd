"""`compression_path`: every size of a compression in one run, by any method."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.parameters import (
    MAX_TIME,
    RANDOM_STATE,
    check,
    check_array_types,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
    seed_of,
)
from svmarrow._support.progress import progress as shown_progress
from svmarrow._support.rows import as_samples, core_rows, threads
from svmarrow._support.training import MemoryEstimate, known_labels, refuse_beyond_memory
from svmarrow.expansion.kernel_expansion import KernelExpansion, scale_outputs
from svmarrow.interop.convert import as_expansion, bare_expansion
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector
from svmarrow.reduced_set.construction import (
    GradientSettings,
    bytes_of_construction,
    construct,
    output_targets,
    path_sizes,
)
from svmarrow.reduced_set.path import CompressionPath, GradientPath
from svmarrow.reduced_set.score import (
    check_scoring,
    loss_weights,
    numbers_for,
    output_spread,
    predicts_by_probabilities,
    predicts_classes,
    refuse_number,
    rows_for,
)
from svmarrow.reduced_set.selection import (
    PURSUITS,
    Features,
    SelectionSettings,
    as_arguments,
    bytes_of_selection,
    features_of,
    has_fixed_vectors,
    refuse_selection,
    selection_of,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback


__all__ = [
    "METHODS",
    "RULES",
    "ConstantModelError",
    "Method",
    "PathRequest",
    "bytes_of_work",
    "compression_path",
    "estimate_memory",
    "path_of",
    "selected_path",
]

METHODS = ("backfit", "prefit", "rank", "gradient")
Method: TypeAlias = Literal["backfit", "prefit", "rank", "gradient"]
RULES = {
    "n_vectors": either(none, integer(least=1)),
    "method": one_of(*METHODS),
    "candidates": one_of("vectors", "samples"),
    "tol": real(least=0.0, below=1.0),
    "random_state": RANDOM_STATE,
    "max_time": MAX_TIME,
}
DEFAULT_PATH = 1000
"""Largest size of a path where `n_vectors` is not given."""


class ConstantModelError(ValueError):
    """The model is the same everywhere: no vector has a part in it."""


class PathRequest(NamedTuple):
    """The parameters of `compression_path`, the model as `as_expansion` returns it."""

    model: Any
    n_vectors: int | None
    X: Any = None
    y: Any = None
    method: str = "backfit"
    candidates: str = "vectors"
    tol: float = 1e-5
    settings: Any = None
    random_state: int | np.random.RandomState | None = None
    max_time: float | None = None
    n_jobs: int | None = None
    scoring: str | None = None
    sample_weight: Any = None
    #: Features of the vectors if it has not one kernel that the extension module knows.
    features: Features | None = None

    def has_equal_weights(self) -> bool:
        """True if labels may be learned with equal weights.

        False if the model was trained with weights or a weighted loss is asked for. If it is not known how it
        was trained, accuracy must be asked for. False too if its labels are not those of its outputs.
        """
        if predicts_by_probabilities(self.model):
            return False
        if self.sample_weight is not None or self.scoring == "balanced_accuracy":
            return False
        weighted = getattr(self.model, "weighted", False)
        return weighted is False or (weighted is None and self.scoring is not None)


def path_of(
    request: PathRequest, progress: ProgressCallback | None, *, every_size: bool
) -> CompressionPath | GradientPath:
    """The path of a request; unless every size is requested, ``"gradient"`` constructs the largest alone."""
    check({name: getattr(request, name) for name in RULES}, RULES)
    if request.method == "gradient":
        return _constructed(request, progress, every_size=every_size)
    return selected_path(request, progress)


def _constructed(
    request: PathRequest, progress: ProgressCallback | None, *, every_size: bool
) -> GradientPath:
    if request.n_vectors is None:
        raise ValueError("method='gradient' makes vectors: give n_vectors, the largest number of them")
    if request.candidates != "vectors":
        raise ValueError(
            f"candidates={request.candidates!r} has no meaning for method='gradient', which makes vectors"
        )
    full = request.model
    source = bare_expansion(full)
    expansion = source.expansion_
    if expansion.n_vectors == 0:
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    chosen = GradientSettings() if request.settings is None else request.settings
    if not isinstance(chosen, GradientSettings):
        raise refuse("settings", chosen, "None or a GradientSettings")
    _refuse_unknown_values(expansion)
    check_scoring(full, request.scoring, request.y)
    for name in ("y", "sample_weight"):
        if request.X is None and getattr(request, name) is not None:
            raise ValueError(f"{name} is given without X")
    rows: Any = None
    labels = answers = None
    learns = request.y is None or request.has_equal_weights()
    if not learns and chosen.needs_labels:
        is_weighted = request.sample_weight is not None or request.scoring is not None or full.weighted
        if is_weighted or predicts_by_probabilities(full):
            raise _refuse_labels(chosen, request)
        learns = True
    if request.X is not None:
        rows = rows_for(full, request.X)
        loss_weights(np.empty(rows.shape[0]), None, request.sample_weight)  # refuses what is wrong
        if isinstance(source, ExpansionClassifier):
            known = None if request.y is None else _labels(source, request.y, rows)
            labels = known if learns else None
        elif request.y is not None and isinstance(full, ExpansionDetector):
            raise ValueError(
                "y is of no use for method='gradient' of a detector: vectors learn from its outputs"
            )
        elif request.y is not None and learns:
            answers = output_targets(source, chosen, request.y, rows)
    spread = output_spread(full, rows, request.sample_weight, request.n_jobs)
    if source is not full:
        source = expansion = scale_outputs(expansion, 1.0 / spread)
    available = int((expansion.vectors if rows is None else rows).shape[0])
    size = min(request.n_vectors, available)

    needed = bytes_of_construction(
        expansion.n_outputs, expansion.vectors if rows is None else rows, size, chosen
    )
    refuse_beyond_memory(
        "compress(method='gradient')", needed, "make fewer vectors (n_vectors) from fewer rows"
    )

    def select(method: str, count: int, max_time: float | None) -> Any:
        start = PathRequest(source, min(count, expansion.n_vectors), method=method)
        start = start._replace(max_time=max_time, n_jobs=request.n_jobs)
        return selected_path(start, progress).vectors

    models = construct(
        source,
        path_sizes(chosen, size, path=every_size),
        select=select,
        rows=rows,
        labels=labels,
        answers=None if answers is None else answers / spread,
        settings=chosen,
        random_state=request.random_state,
        max_time=request.max_time,
        n_jobs=request.n_jobs,
        progress=progress,
    )
    if source is not full:
        models = {size: full.with_expansion(scale_outputs(made, spread)) for size, made in models.items()}
    return GradientPath(full, models, request.n_jobs)


def selected_path(request: PathRequest, progress: ProgressCallback | None) -> CompressionPath:
    """The path of a request whose parameters are checked, by any selection of the extension module.

    Warnings name the line that called the public function, which is two calls above this one.
    """
    full = request.model
    source = bare_expansion(full)
    expansion = source.expansion_
    method, candidates = request.method, request.candidates
    features = features_of(full, request.X) if request.features is None else request.features
    chosen = selection_of(request.settings, method)
    compares_predictions = features is not None and features.of is None
    by_predictions = chosen.criterion == "predictions" and not compares_predictions
    rows, tuning = _tuning(request, own=candidates == "vectors" and not by_predictions)
    pool = expansion.vectors if candidates == "vectors" else rows
    if not np.any(expansion.coefficients):
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    # Penalties and norms are in units of the largest output.
    scale = output_spread(full, rows, request.sample_weight, request.n_jobs)
    scale /= scale.max()
    expansion = scale_outputs(expansion, 1.0 / scale)
    given = as_arguments(chosen, method) | {
        "max_vectors": min(request.n_vectors or DEFAULT_PATH, int(pool.shape[0])),
        "tolerance": float(request.tol),
        "seed": 0 if chosen.sample is None else seed_of(request.random_state),
        "max_time": request.max_time,
    }
    jobs, compared = threads(request.n_jobs), None
    if by_predictions:
        compared = expansion.vectors if rows is None else rows
    reduced, points = expansion, pool
    if features is not None:
        if candidates != "vectors":
            raise refuse("candidates", candidates, f"'vectors' for kernel={expansion.kernel!r}")
        points = features.lines
        if compared is not None:
            compared = points if rows is None or features.of is None else features.of(rows)
        coefficients, intercepts = expansion.coefficients, expansion.intercepts
        reduced = KernelExpansion(points, coefficients, intercepts, kernel="linear")
    refuse_selection(method, bytes_of_selection(expansion.n_outputs, points, compared, given))
    if method not in PURSUITS and candidates != "vectors":
        raise ValueError(f"candidates={candidates!r} is for the pursuits only: method={method!r}")
    try:
        if method in PURSUITS:
            rivals = None if candidates == "vectors" else core_rows(pool)
            compared = None if compared is None else core_rows(compared)
            path = _core.pursuit(reduced.core_parts, rivals, compared, given, progress, jobs)
        else:
            path = _core.select_vectors(reduced.core_parts, given, progress, jobs)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"method={method!r}: {error}. method='auto' and method='gradient' of compress take such a "
            "kernel, and 'backfit' and 'prefit' with settings=SelectionSettings(criterion='predictions')"
        ) from None
    path = {**path, "projections": path["projections"] * scale}
    if len(path["order"]) == 0:
        raise _nothing_chosen(source, chosen, path["stop"], request.max_time)
    if path["stop"] == "max_time":
        warnings.warn(
            f"compression ended early (max_time) with {len(path['order'])} vectors",
            ConvergenceWarning,
            stacklevel=4,
        )
    return CompressionPath(full, pool[path["order"]], path, tuning, request.n_jobs)


def _nothing_chosen(
    source: object, settings: SelectionSettings, stop: str, max_time: float | None
) -> ValueError:
    if stop == "max_time" and max_time is not None:
        return ValueError(f"max_time={max_time:g} was over before the first vector was chosen")
    for name in ("max_change", "penalty"):  # settings of the papers
        value = getattr(settings, name, None)
        if value is not None:
            return refuse(name, value, "small enough for a vector to be left")
    return ConstantModelError(f"{source!r} is constant: there is nothing to compress")


def _refuse_unknown_values(expansion: KernelExpansion) -> None:
    if has_fixed_vectors(expansion):
        raise refuse(
            "method",
            "gradient",
            f"one that selects vectors for kernel={expansion.kernel!r}; it moves vectors of one built-in "
            "kernel",
        )


def _refuse_labels(settings: GradientSettings, request: PathRequest) -> ValueError:
    hinge = settings.loss in ("hinge", "squared_hinge")
    name, value = ("loss", settings.loss) if hinge else ("label_weight", settings.label_weight)
    why = "the model was trained with weights"
    if request.sample_weight is not None:
        why = "sample_weight is given"
    elif request.scoring is not None:
        why = f"scoring={request.scoring!r} is asked for"
    elif predicts_by_probabilities(request.model):
        why = "the model predicts by its probabilities, which belong to its outputs"
    remedy = "'agreement' or 'matching'" if hinge else "None or 0"
    return refuse(name, value, f"{remedy}, since labels count alike there, and {why}")


def _tuning(request: PathRequest, *, own: bool) -> tuple[Any, tuple[Any, NDArray[Any], Any] | None]:
    """Validated rows, and with what the thresholds of each size are set: rows, labels or numbers, weights.

    Thresholds of a model that was trained with weights stay, and so do those of one whose probabilities
    decide, which belong to its outputs. Those of one of which that is not known are set
    for its own answers, which have the weights in them, as where there are no labels; but not where the rows
    have another use.
    """
    full = request.model
    check_scoring(full, request.scoring, request.y)
    if request.X is None:
        for name in ("y", "sample_weight"):
            if getattr(request, name) is not None:
                raise ValueError(f"{name} is given without X")
        if request.candidates == "samples":
            raise ValueError("candidates='samples' needs X, the samples to choose from")
        return None, None
    rows = rows_for(full, request.X)
    known = None if request.y is None else _targets(full, request.y, rows)
    weighted = getattr(full, "weighted", False)
    if weighted or predicts_by_probabilities(full):
        loss_weights(np.empty(rows.shape[0]), None, request.sample_weight)  # refuses what is wrong
        return rows, None
    if known is not None and (
        weighted is False or request.scoring is not None or request.sample_weight is not None
    ):
        return rows, _counted(rows, known, loss_weights(known, request.scoring, request.sample_weight))
    if not own:
        return rows, None
    outputs: NDArray[Any] = full.expansion_._evaluate(rows, request.n_jobs)
    if predicts_classes(full):
        outputs = full.decode(outputs).astype(np.int64)
    return rows, _counted(rows, outputs, loss_weights(outputs, None, request.sample_weight))


def _counted(
    rows: Any, targets: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
    """The rows of positive weight."""
    if weights is None or weights.all():
        return rows, targets, weights
    weighted_rows = np.flatnonzero(weights)
    return rows[weighted_rows], targets[weighted_rows], weights[weighted_rows]


def _targets(full: Any, y: ArrayLike, rows: Any) -> NDArray[Any]:
    """Labels as numbers of classes, 1 and -1 for a detector, or numbers."""
    if isinstance(full, ExpansionClassifier):
        return _labels(full, y, rows)
    check_array_types(y=y)
    if isinstance(full, ExpansionDetector):
        inside = np.asarray(y)
        if inside.shape != (rows.shape[0],) or not np.isin(inside, (-1, 1)).all():
            raise ValueError(f"y of a detector is 1 or -1 for each of {rows.shape[0]} rows")
        return inside.astype(np.int64)
    return numbers_for(full, y, rows)


def _labels(source: ExpansionClassifier, y: ArrayLike, rows: Any) -> NDArray[np.int64]:
    check_array_types(y=y)
    return known_labels(y, source.classes_, rows.shape[0])


def compression_path(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_vectors: int | None = None,
    method: Method = "backfit",
    candidates: Literal["vectors", "samples"] = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    scoring: Literal["accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"] | None = None,
    sample_weight: ArrayLike | None = None,
) -> CompressionPath | GradientPath:
    """Compress a fitted kernel machine to every size in one run.

    Outputs of a regressor count alike, whatever the units of the targets; those of a bare expansion are
    approximated as they are.

    Parameters
    ----------
    model : object
        As for `compress`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples to learn from, as for `compress`. The thresholds of each size are set on them, except for
        models that were trained with weights.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Their labels or targets. Without them, or where it is not known whether there were weights and neither
        `scoring` nor `sample_weight` are given, the full model's answers take their place.
    n_vectors : int, default=None
        The largest size; more than there are means all. None is all candidates, at most 1000, and not allowed
        for ``"gradient"``.
    method : str, default="backfit"
        How vectors are selected or constructed.

        * ``"backfit"``: selects one vector after the other, each time the one with the smallest angle to the
          residual, and after each solves for all coefficients (matching pursuit with back-fitting [1]_).
        * ``"prefit"``: selects each time the vector after which, all coefficients solved for, the residual is
          smallest (pre-fitting); more expensive, and often a little better at small sizes.
        * ``"rank"``: a basis of the span of all vectors, lossless; small only for kernels of low rank.
        * ``"gradient"``: constructs new vectors, moved together with their coefficients [2]_. It has the
          sizes that its settings name, else the largest and its halves down to 8; all others have every size
          from 1 on.

        ``"rank"`` holds the kernel matrix of all vectors in memory. Models that are too long for a method are
        reduced in chunks, see `SelectionSettings`. The other selections of the papers, among them LARS-SVM,
        are in `svmarrow.papers.reduced_set.path`.
    candidates : {"vectors", "samples"}, default="vectors"
        Select among the model's own vectors, or among the samples `X`.
    tol : float, default=1e-5
        End when the distance to the model is at most this fraction of the model's norm; 0 continues to the
        last vector.
    settings : GradientSettings or SelectionSettings, default=None
        The former for ``"gradient"``, the latter for all other methods; None takes the defaults.
    random_state : int, RandomState instance or None, default=None
        Seed of ``"gradient"`` and of ``SelectionSettings(sample=...)``; nothing else is random.
    max_time : float, default=None
        Seconds after which the run ends with the sizes it has, a fraction of a second later at most. The
        start of ``"gradient"`` takes at most half of them.
    n_jobs : int, default=None
        Number of threads. None means all cores that this process may use.
    verbose : bool, default=False
        Show the progress on standard error.
    scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
        The loss by which thresholds are set for labels y; None is "accuracy".
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples in that loss; None is 1 for each.

    Returns
    -------
    CompressionPath or GradientPath
        ``path[s]`` is the model with s vectors; the latter for ``"gradient"``.

    Raises
    ------
    ValueError
        If a parameter is out of its range, X does not fit the model, the method does not take the kernel, the
        model is constant, `max_time` is over before there is a size, or a selection needs more than
        ``max_memory``.
    MemoryError
        If `svmarrow.reduced_set.estimate_memory` is more than this process may take.
    TypeError
        If `model` is not a kernel machine.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

    References
    ----------
    .. [1] J. Weston and G. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", technical report
       TR-132, Max Planck Institute for Biological Cybernetics, 2004, algorithm 3.2.
    .. [2] Z. Xu, J. Gardner, S. Tyree and K. Weinberger, "Compressed support vector machines", 2015, equation
       10, after C. Burges and B. Schoelkopf, "Improving the accuracy and speed of support vector machines",
       NIPS 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, compression_path
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:1000], y[:1000])
    >>> path = compression_path(svc, X[:1000], y[:1000], n_vectors=200)
    >>> path[50].expansion_.n_vectors, path.scores(X[1000:], y[1000:]).shape
    (50, (200,))
    """
    refuse_number(X)
    request = PathRequest(
        as_expansion(model), n_vectors, X, y, method, candidates, tol, settings, random_state, max_time,
        n_jobs, scoring, sample_weight,
    )  # fmt: skip
    with shown_progress(verbose) as shown:
        shown.stops_in = ("pursuit", 1)
        return path_of(request, shown.callback, every_size=True)


# --- memory that a compression needs, estimated before it starts ---


def estimate_memory(
    model: Any,
    n_vectors: int,
    X: ArrayLike | None = None,
    *,
    method: str = "backfit",
    candidates: str = "vectors",
    settings: GradientSettings | SelectionSettings | None = None,
) -> MemoryEstimate:
    """Memory that `compress` or `compression_path` needs, without compressing.

    Parameters
    ----------
    model : object
        A kernel machine, as for `compress`.
    n_vectors : int
        The largest size.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples, as for `compress`; they are not counted.
    method : str, default="backfit"
        As for `compress` and `compression_path`. ``"auto"`` counts the methods that `compress` tries: it
        constructs vectors where X is given.
    candidates, settings
        As for `compression_path`.

    Returns
    -------
    MemoryEstimate
        Bytes in addition to model and samples, roughly. `compress` raises a MemoryError if this process
        cannot allocate them.

    Raises
    ------
    ValueError
        If the method is unknown, or the settings are not those of the method.
    TypeError
        If `model` is of another kind.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC
    >>> from svmarrow.reduced_set import estimate_memory
    >>> svc = SVC(gamma=0.001).fit(*load_digits(return_X_y=True))
    >>> estimate_memory(svc, 100, method="rank").total > estimate_memory(svc, 100).total
    True
    """
    check({"method": method}, {"method": one_of("auto", *METHODS)})
    expansion = as_expansion(model).expansion_
    rows = None if X is None else as_samples(X, expansion.kernel)
    options: dict[str, Any] = {"candidates": candidates, "settings": settings}
    return MemoryEstimate.of(
        bytes_of_work(expansion.n_outputs, expansion.vectors, n_vectors, rows, method, **options)
    )


def bytes_of_work(
    outputs: int,
    vectors: Any,
    n_vectors: int,
    rows: Any,
    method: str,
    *,
    candidates: str = "vectors",
    settings: GradientSettings | SelectionSettings | None = None,
) -> int:
    """Bytes that the compression of a model with these outputs and vectors takes; rows may be None."""
    if method == "auto":
        constructs = isinstance(settings, GradientSettings)
        tried = [("backfit", None if constructs else settings)]
        if rows is not None or constructs:
            tried.append(("gradient", settings if constructs else None))
        return max(
            bytes_of_work(outputs, vectors, n_vectors, rows, each, candidates=candidates, settings=chosen)
            for each, chosen in tried
        )
    if method == "gradient":
        chosen = GradientSettings() if settings is None else settings
        if not isinstance(chosen, GradientSettings):
            raise refuse("settings", chosen, "None or a GradientSettings")
        return bytes_of_construction(outputs, vectors if rows is None else rows, n_vectors, chosen)
    selection = selection_of(settings, method)
    pool = rows if candidates == "samples" and rows is not None else vectors
    given = as_arguments(selection, method) | {"max_vectors": int(n_vectors)}
    given |= {"tolerance": 0.0, "seed": 0, "max_time": None}
    return bytes_of_selection(outputs, pool, rows if selection.criterion == "predictions" else None, given)
