"""`compress` and `compression_path`: from a fitted model to one with fewer vectors, or to all sizes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.decoding import label_indices
from svmarrow._support.kinds import check_kinds
from svmarrow._support.memory import refuse_beyond_memory
from svmarrow._support.parameters import (
    MAX_TIME,
    RANDOM_STATE,
    Rule,
    check,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
    seed_of,
)
from svmarrow._support.progress import progress as shown_progress
from svmarrow._support.rows import core_rows, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion, without_manners
from svmarrow.reduced_set.construction import GradientSettings, answers_of, construct, stages
from svmarrow.reduced_set.made_path import ConstructionPath
from svmarrow.reduced_set.memory import bytes_of_moving, bytes_of_selection, refuse_selection
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.score import rows_for, without_kind
from svmarrow.reduced_set.selection import PURSUITS, SelectionSettings, as_arguments, selection_of
from svmarrow.reduced_set.sizes import SELECTION_RULES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.models.classifier import ExpansionClassifier

__all__ = ["METHODS", "RULES", "ConstantModelError", "Method", "compress", "compression_path"]

METHODS = ("pursuit", "prefit", "basic", "rank", "l0", "l1", "lars", "gradient")
Method: TypeAlias = Literal["pursuit", "prefit", "basic", "rank", "l0", "l1", "lars", "gradient"]
RULES = {
    "n_vectors": either(none, integer(least=1)),
    "method": one_of(*METHODS),
    "candidates": one_of("vectors", "rows"),
    "tol": real(least=0.0),
    "random_state": RANDOM_STATE,
    "max_time": MAX_TIME,
}
TARGET_RULES = {
    **{name: SELECTION_RULES[name] for name in ("max_loss", "min_agreement")},
    "validation": Rule(
        "None or a pair (X, y)", lambda v: v is None or (isinstance(v, (tuple, list)) and len(v) == 2)
    ),
}
DEFAULT_PATH = 1000
"""Largest size of a path where `n_vectors` is not given."""


class ConstantModelError(ValueError):
    """The model is the same everywhere: no vector has a part in it."""


def compress(
    model: Any,
    n_vectors: int | None = None,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    max_loss: float | None = None,
    min_agreement: float | None = None,
    validation: tuple[ArrayLike, ArrayLike | None] | None = None,
    method: Method = "pursuit",
    candidates: Literal["vectors", "rows"] = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Any:
    """Approximate a fitted kernel machine by one with fewer vectors.

    Say how many vectors with `n_vectors`; or say what the small model must be able to do, with `max_loss` or
    `min_agreement` and the rows that judge it: then the model is the smallest that does it, and `n_vectors`
    the most that it may have. All machines of a multiclass model are approximated together over one pool of
    vectors.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.interop.as_expansion` takes: a fitted estimator of svmarrow, a fitted
        kernel machine of scikit-learn, a model file, a `KernelExpansion` and what is made of one.
    n_vectors : int, default=None
        Number of vectors to keep. A selection that reaches `tol` earlier gives fewer. With `max_loss` or
        `min_agreement` the largest number to try; None is then all candidates, at most 1000, and not allowed
        for ``"gradient"``.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Training rows. With `y`, the thresholds of a classifier are chosen anew on them. For ``"gradient"``,
        and for pursuits with ``SelectionSettings(criterion="predictions")``, the rows on which the models are
        compared; without them, the model's own vectors.
    y : array-like of shape (n,), default=None
        Their labels, which ``"gradient"`` learns from too, see `GradientSettings`; with a ``label_weight``
        numbers (n, q) for a model without classes.
    max_loss : float, default=None
        How much lower the score on the validation rows may be than the full model's: an accuracy for what
        classifies, else R^2. 0.003 is 0.3 percent points of accuracy.
    min_agreement : float, default=None
        Least share of the validation rows that get the full model's label; R^2 against its outputs where
        there are no labels.
    validation : tuple of (X, y), default=None
        The rows that judge `max_loss` and `min_agreement`, best some that neither training nor compression
        has seen; y may be None for `min_agreement` alone.
    method : str, default="pursuit"
        How vectors are chosen, or made. What is left of the model is its difference from the small one.

        * ``"pursuit"``: adds one vector after the other, each time the one that makes the smallest angle with
          what is left, and after each solves for all coefficients again (matching pursuit with
          *back-fitting* [1]_).
        * ``"prefit"``: the same, but each time the vector after which, all coefficients solved again, least
          is left (*pre-fitting*); dearer, and often a little better at small sizes.
        * ``"basic"``: only the new coefficient is solved for: those that are there stay, until a vector is
          chosen once more.
        * ``"rank"``: a basis of the span of all vectors, lossless; few only for kernels of low rank, such as
          linear or polynomial ones.
        * ``"l0"``: coefficients are shrunk again and again, small ones more than large ones, until few are
          left; lossless or not [1]_.
        * ``"l1"``: vectors in the order in which they enter when a price on the size of the coefficients
          falls [1]_.
        * ``"lars"``: the same order, for an SVM that is trained again on its own vectors under such a
          price [2]_.
        * ``"gradient"``: new vectors, moved together with their coefficients until they do on the rows what
          the model does [2]_, or better, where labels are used; takes seconds instead of milliseconds and is
          much better at small sizes.

        ``"rank"``, ``"l0"``, ``"l1"`` and ``"lars"`` hold the kernel matrix of all vectors in memory. Models
        that are too long for a method are reduced in chunks, see `SelectionSettings`.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Training rows. With `y`, the thresholds of each size are chosen anew on them. For ``"gradient"``, and
        for pursuits with ``SelectionSettings(criterion="predictions")``, the rows on which the models are
        compared; without them, the model's own vectors.
    y : array-like of shape (n,), default=None
        Their labels, which ``"gradient"`` learns from too, see `GradientSettings`; with a ``label_weight``
        numbers (n, q) for a model without classes.
    candidates : {"vectors", "rows"}, default="vectors"
        Choose among the model's own vectors, or among the rows of `X`.
    tol : float, default=1e-5
        End when the distance to the model falls to this share of the model's norm; 0 goes on to the last
        vector.
    settings : GradientSettings or SelectionSettings, default=None
        The former for ``"gradient"``, the latter for all other methods; None takes the defaults.
    random_state : int, RandomState instance or None, default=None
        Seed of ``"gradient"`` and of ``SelectionSettings(sample=...)``; nothing else is random.
    max_time : float, default=None
        Seconds after which the run ends with the sizes it has, a fraction of a second later at most; a
        ValueError where there is none yet. The start of ``"gradient"`` takes half of them at most.
    n_jobs : int, default=None
        Threads. None means all cores that this process may use.
    verbose : bool, default=False
        Show the progress on standard error.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        A model of the kind of `model`, ready to predict; a `KernelExpansion` of a bare one.

    Raises
    ------
    ValueError
        If a parameter is out of its range, more vectors are asked for than there are candidates, no size
        meets the demands, X does not fit the model, the kernel is precomputed or seen not to be positive
        semidefinite, the model is constant, or a selection needs more than ``max_memory``.
    MemoryError
        If `svmarrow.reduced_set.estimate_memory` is more than this process may take.
    TypeError
        If `model` is of another kind.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

    See Also
    --------
    compression_path : The models of all sizes out of one run.

    References
    ----------
    .. [1] J. Weston and G. Bakir, "Reduced set selection methods", Technical report 132, Max Planck Institute
       for Biological Cybernetics, 2004, algorithm 3.2.
    .. [2] Z. Xu, J. Gardner, S. Tyree and K. Weinberger, "Compressed support vector machines", 2015, equation
       10, after C. Burges and B. Schoelkopf, "Improving the accuracy and speed of support vector machines",
       NIPS 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, compress
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:1000], y[:1000])
    >>> small = compress(svc, 100, X[:1000], y[:1000])
    >>> small.expansion_.n_vectors, small.score(X[1000:], y[1000:]) > 0.9
    (100, True)

    The smallest that loses at most one percent point of accuracy:

    >>> small = compress(svc, X=X[:1000], y=y[:1000], max_loss=0.01, validation=(X[1000:], y[1000:]))
    >>> small.expansion_.n_vectors < svc.expansion_.n_vectors
    True

    Vectors that are made do with fewer:

    >>> made = compress(svc, 20, X[:1000], y[:1000], method="gradient", random_state=0)
    >>> made.score(X[1000:], y[1000:]) > 0.92
    True
    """
    targets: dict[str, Any] = {"max_loss": max_loss, "min_agreement": min_agreement}
    check({**targets, "validation": validation}, TARGET_RULES)
    targeted = max_loss is not None or min_agreement is not None
    if n_vectors is None and not targeted:
        raise refuse(
            "n_vectors", None, "a number of vectors where neither max_loss nor min_agreement is given"
        )
    if targeted and validation is None:
        raise ValueError("max_loss and min_agreement need validation=(X, y), the rows that judge the sizes")
    if validation is not None and not targeted:
        raise ValueError("validation is of no use without max_loss or min_agreement")
    task = _Task(model, n_vectors, X, y, method, candidates, tol, settings, random_state, max_time, n_jobs)
    path = _path(task, verbose, every_size=targeted)
    return path[path.sizes[-1]] if validation is None else path.select(*validation, **targets)


def compression_path(
    model: Any,
    n_vectors: int | None = None,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    method: Method = "pursuit",
    candidates: Literal["vectors", "rows"] = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Any:
    """Compress a fitted kernel machine to every size in one run.

    Parameters
    ----------
    model : object
        As for `compress`.
    n_vectors : int, default=None
        The largest size. None is all candidates, at most 1000, and not allowed for ``"gradient"``.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Training rows, as for `compress`; the thresholds of each size are chosen anew on them.
    y : array-like of shape (n,) or (n, q), default=None
        Their labels or numbers.
    method : str, default="pursuit"
        As for `compress`. ``"gradient"`` has the sizes that its settings name, else the largest and its
        halves down to 8; all others have every size from 1 on.
    candidates, tol, settings, random_state, max_time, n_jobs, verbose
        As for `compress`.

    Returns
    -------
    CompressionPath or ConstructionPath
        ``path[s]`` is the model with s vectors; the latter for ``"gradient"``.

    Raises
    ------
    ValueError
        As `compress`.
    TypeError
        As `compress`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, compression_path
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:1000], y[:1000])
    >>> path = compression_path(svc, 200, X[:1000], y[:1000])
    >>> path[50].expansion_.n_vectors, path.scores(X[1000:], y[1000:]).shape
    (50, (200,))
    """
    task = _Task(model, n_vectors, X, y, method, candidates, tol, settings, random_state, max_time, n_jobs)
    return _path(task, verbose, every_size=True)


@dataclass(frozen=True)
class _Task:
    """What a compression was asked for."""

    model: Any
    n_vectors: int | None
    X: Any = None
    y: Any = None
    method: str = "pursuit"
    candidates: str = "vectors"
    tol: float = 1e-5
    settings: Any = None
    random_state: int | np.random.RandomState | None = None
    max_time: float | None = None
    n_jobs: int | None = None


def _path(task: _Task, verbose: bool, *, every_size: bool) -> CompressionPath | ConstructionPath:
    """The path of a task; where not every size is wanted, ``"gradient"`` makes the largest alone."""
    check({name: getattr(task, name) for name in RULES}, RULES)
    whole = as_expansion(task.model)
    with shown_progress(verbose) as shown:
        shown.stops_in = ("pursuit", 1)
        if task.method == "gradient":
            return _made(task, whole, shown.callback, every_size=every_size)
        return _chosen(task, whole, shown.callback)


def _made(
    task: _Task, whole: Any, progress: ProgressCallback | None, *, every_size: bool
) -> ConstructionPath:
    if task.n_vectors is None:
        raise ValueError("method='gradient' makes vectors: give n_vectors, the largest number of them")
    if task.candidates != "vectors":
        raise ValueError(
            f"candidates={task.candidates!r} has no meaning for method='gradient', which makes vectors"
        )
    source = without_manners(whole)
    expansion = without_kind(source)
    if expansion.n_vectors == 0:
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    chosen = GradientSettings() if task.settings is None else task.settings
    if not isinstance(chosen, GradientSettings):
        raise refuse("settings", chosen, "None or a GradientSettings")
    _refuse_unknown_values(expansion)
    if task.X is None and task.y is not None:
        raise ValueError("y is given without X")
    rows: Any = None
    labels = answers = None
    if task.X is not None and task.y is not None and isinstance(source, KernelExpansion):
        rows = rows_for(whole, task.X)
        answers = answers_of(source, chosen, task.y, rows.shape[0])
    elif task.X is not None:
        rows, labels = _tuning_rows(source, whole, task.X, task.y, "rows")
    available = int((expansion.vectors if rows is None else rows).shape[0])
    if task.n_vectors > available:
        raise refuse(
            "n_vectors", task.n_vectors, f"between 1 and {available}, the number of rows to learn from"
        )

    needed = bytes_of_moving(
        expansion.n_outputs, expansion.vectors if rows is None else rows, task.n_vectors, chosen
    )
    refuse_beyond_memory(
        "compress(method='gradient')", needed, "make fewer vectors (n_vectors) from fewer rows"
    )

    def select(method: str, count: int, max_time: float | None) -> Any:
        start = _Task(source, min(count, expansion.n_vectors), method=method)
        start = replace(start, max_time=max_time, n_jobs=task.n_jobs)
        return _chosen(start, source, progress).vectors

    models = construct(
        source,
        stages(chosen, task.n_vectors, path=every_size),
        select=select,
        rows=rows,
        labels=labels,
        answers=answers,
        settings=chosen,
        random_state=task.random_state,
        max_time=task.max_time,
        n_jobs=task.n_jobs,
        progress=progress,
    )
    if source is not whole:
        models = {size: whole.with_expansion(made) for size, made in models.items()}
    return ConstructionPath(whole, models, task.n_jobs)


def _chosen(task: _Task, whole: Any, progress: ProgressCallback | None) -> CompressionPath:
    source = without_manners(whole)
    expansion = without_kind(source)
    _refuse_unknown_values(expansion)
    method, candidates = task.method, task.candidates
    chosen = selection_of(task.settings, method)
    by_predictions = chosen.criterion == "predictions"
    rows, labels = _tuning_rows(source, whole, task.X, task.y, candidates, of_use=by_predictions)
    pool = expansion.vectors if candidates == "vectors" else rows
    if not np.any(expansion.coefficients):
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    given = as_arguments(chosen) | {
        "method": method,
        "max_vectors": _checked_size(task.n_vectors, pool.shape[0], candidates),
        "tolerance": float(task.tol),
        "seed": 0 if chosen.sample is None else seed_of(task.random_state),
        "max_time": task.max_time,
    }
    jobs, compared = threads(task.n_jobs), None
    if by_predictions:
        compared = expansion.vectors if rows is None else rows
    refuse_selection(method, bytes_of_selection(expansion.n_outputs, pool, compared, given))
    if method in PURSUITS:
        rivals = None if candidates == "vectors" else core_rows(pool)
        compared = None if compared is None else core_rows(compared)
        path = _core.pursuit(expansion.core_parts, rivals, compared, given, progress, jobs)
    elif candidates != "vectors":
        raise ValueError(f"candidates={candidates!r} is for the pursuits only: method={method!r}")
    else:
        path = _core.select_vectors(expansion.core_parts, given, progress, jobs)
    if len(path["order"]) == 0:
        raise _nothing_chosen(source, chosen, path["stop"], task.max_time)
    if path["stop"] == "max_time":
        warnings.warn(
            f"compression ended early (max_time) with {len(path['order'])} vectors",
            ConvergenceWarning,
            stacklevel=4,
        )
    tuning = None if labels is None else (rows, labels)
    return CompressionPath(whole, pool[path["order"]], path, tuning, task.n_jobs)


def _nothing_chosen(
    source: object, settings: SelectionSettings, stop: str, max_time: float | None
) -> ValueError:
    if stop == "max_time" and max_time is not None:
        return ValueError(f"max_time={max_time:g} was over before the first vector was chosen")
    for name in ("gamma", "penalty"):
        value = getattr(settings, name)
        if value is not None:
            return refuse(name, value, "small enough for a vector to be left")
    return ConstantModelError(f"{source!r} is constant: there is nothing to compress")


def _refuse_unknown_values(expansion: KernelExpansion) -> None:
    if callable(expansion.kernel):
        raise ValueError(f"kernel={expansion.kernel!r} cannot be compressed: it must be a built-in kernel")
    if expansion.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' cannot be compressed: the model does not hold the kernel values "
            "between its vectors"
        )


def _checked_size(size: int | None, available: int, candidates: str) -> int:
    if size is None:
        return min(available, DEFAULT_PATH)
    if size > available:
        what = "vectors in the model" if candidates == "vectors" else "rows in X"
        raise ValueError(f"n_vectors={size} is more than there are: {available} {what} are available")
    return int(size)


def _tuning_rows(
    source: ExpansionClassifier | KernelExpansion,
    whole: Any,
    X: ArrayLike | None,
    y: ArrayLike | None,
    candidates: str,
    *,
    of_use: bool = False,
) -> tuple[Any, NDArray[np.int64] | None]:
    """Validated rows, and class indices where there are labels to tune the thresholds on.

    `of_use` says that rows have a use without labels.
    """
    if X is None:
        if y is not None:
            raise ValueError("y is given without X")
        if candidates == "rows":
            raise ValueError("candidates='rows' needs X, the rows to choose from")
        return None, None
    if y is None and candidates == "vectors" and not of_use:
        raise ValueError("X without y has no use with candidates='vectors': give y, or candidates='rows'")
    rows = rows_for(whole, X)
    if y is None:
        return rows, None
    if isinstance(source, KernelExpansion):
        raise ValueError(
            "y is of no use for a model without classes: thresholds are tuned for classifiers only"
        )
    check_kinds(y=y)
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {labels.shape}")
    indices = label_indices(labels, source.classes_)
    if (indices < 0).any():
        unknown = np.unique(labels[indices < 0])[:3].tolist()
        raise ValueError(f"y holds labels that the model does not know, such as {unknown}")
    return rows, indices
