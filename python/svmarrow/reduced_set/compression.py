"""`compress`: one call from a fitted model to fewer vectors, chosen or made."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from svmarrow import _core
from svmarrow._support.parameters import check, either, integer, none, one_of, real, refuse
from svmarrow._support.progress import progress as shown_progress
from svmarrow._support.rows import core_rows, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion, without_manners
from svmarrow.reduced_set.construction import GradientSettings, answers_of, construct, stages
from svmarrow.reduced_set.made_path import ConstructionPath
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.score import rows_for
from svmarrow.reduced_set.selection import PURSUITS, SelectionSettings, as_arguments, selection_of
from svmarrow.reduced_set.threshold import label_indices

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.models.classifier import ExpansionClassifier

__all__ = ["compress", "pursue"]

METHODS = ("pursuit", "prefit", "basic", "rank", "l0", "l1", "lars", "gradient")
Method: TypeAlias = Literal["pursuit", "prefit", "basic", "rank", "l0", "l1", "lars", "gradient"]
RULES = {
    "method": one_of(*METHODS),
    "candidates": one_of("vectors", "rows"),
    "tol": real(least=0.0),
    "max_time": either(none, real(least=0.0)),
}
DEFAULT_PATH = 1000
"""Largest size of a path when neither `n_vectors` nor `max_vectors` is given."""


@overload
def compress(
    model: Any,
    n_vectors: int,
    *,
    max_vectors: None = ...,
    method: Method = ...,
    X: ArrayLike | None = ...,
    y: ArrayLike | None = ...,
    candidates: Literal["vectors", "rows"] = ...,
    tol: float = ...,
    settings: GradientSettings | SelectionSettings | None = ...,
    random_state: int | np.random.RandomState | None = ...,
    max_time: float | None = ...,
    n_jobs: int | None = ...,
    verbose: bool = ...,
) -> Any: ...


@overload
def compress(
    model: Any,
    n_vectors: None = ...,
    *,
    max_vectors: int | None = ...,
    method: Literal["pursuit", "prefit", "basic", "rank", "l0", "l1", "lars"] = ...,
    X: ArrayLike | None = ...,
    y: ArrayLike | None = ...,
    candidates: Literal["vectors", "rows"] = ...,
    tol: float = ...,
    settings: SelectionSettings | None = ...,
    random_state: int | np.random.RandomState | None = ...,
    max_time: float | None = ...,
    n_jobs: int | None = ...,
    verbose: bool = ...,
) -> CompressionPath: ...


@overload
def compress(
    model: Any,
    n_vectors: None = ...,
    *,
    max_vectors: int,
    method: Literal["gradient"],
    X: ArrayLike | None = ...,
    y: ArrayLike | None = ...,
    settings: GradientSettings | None = ...,
    random_state: int | np.random.RandomState | None = ...,
    max_time: float | None = ...,
    n_jobs: int | None = ...,
    verbose: bool = ...,
) -> ConstructionPath: ...


def compress(
    model: Any,
    n_vectors: int | None = None,
    *,
    max_vectors: int | None = None,
    method: Method = "pursuit",
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    candidates: Literal["vectors", "rows"] = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Any:
    """Approximate a fitted kernel machine by one with fewer vectors.

    All machines of a multiclass model are approximated together over one pool of vectors.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.interop.as_expansion` takes: a fitted estimator of svmarrow, a fitted
        kernel machine of scikit-learn, a model file, a `KernelExpansion` and what is made of one.
    n_vectors : int, default=None
        Number of vectors to keep: the result is one model. A path that reaches `tol` earlier gives fewer.
    max_vectors : int, default=None
        Largest number of vectors: the result is the path of all sizes up to it, for ``"gradient"`` of the
        sizes that its settings name, else its halves down to 8. Without `n_vectors` and `max_vectors` that is
        all candidates, at most 1000.
    method : str, default="pursuit"
        How vectors are chosen, or made.

        * ``"pursuit"``: hyperplane matching pursuit with back-fitting [1]_, which adds the vector that
          makes the smallest angle with what is missing and then solves for all coefficients again.
        * ``"prefit"``: the same, but the vector that lowers the distance most.
        * ``"basic"``: the pursuit without back-fitting: coefficients that are there stay, until a vector is
          chosen once more.
        * ``"rank"``: a basis of the span of all vectors, lossless; few only for kernels of low rank, such as
          linear or polynomial ones.
        * ``"l0"``: iterated shrinking towards the fewest vectors, lossless or not [1]_.
        * ``"l1"``: the path of the l1 penalty [1]_.
        * ``"lars"``: the path of the SVM trained again on its own vectors with an l1 penalty [2]_.
        * ``"gradient"``: new vectors, moved together with their coefficients until they do on the rows what
          the model does [2]_, or better, where labels are used; takes seconds instead of milliseconds, needs
          `n_vectors` or `max_vectors`, and is much better at small sizes.

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
        Seed of ``"gradient"`` and of ``SelectionSettings(sample=...)``. None always gives the same model.
    max_time : float, default=None
        Seconds after which the run ends with the sizes it has.
    n_jobs : int, default=None
        Threads. None means all cores that this process may use.
    verbose : bool, default=False
        Show the progress on standard error.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector, KernelExpansion, CompressionPath or \
    ConstructionPath
        With `n_vectors` a model of the kind of `model`, ready to predict; a `KernelExpansion` of a bare one.
        Otherwise a `CompressionPath`, for ``"gradient"`` a `ConstructionPath`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, more vectors are asked for than there are candidates, X does not
        fit the model, the kernel is precomputed or seen not to be positive semidefinite, the model is
        constant, or a selection needs more than ``max_memory``.
    TypeError
        If `model` is of another kind.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

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
    >>> small = compress(svc, 100, X=X[:1000], y=y[:1000])
    >>> small.expansion_.n_vectors, small.score(X[1000:], y[1000:]) > 0.9
    (100, True)
    >>> made = compress(svc, 20, method="gradient", X=X[:1000], y=y[:1000])
    >>> made.score(X[1000:], y[1000:]) > 0.92
    True
    """
    if n_vectors is not None and max_vectors is not None:
        raise ValueError(
            f"n_vectors={n_vectors!r} and max_vectors={max_vectors!r} exclude each other: the first gives "
            "one model, the second the path of all sizes"
        )
    check({"method": method}, {"method": RULES["method"]})
    if method == "gradient":
        if n_vectors is None and max_vectors is None:
            raise ValueError("method='gradient' makes vectors: give n_vectors, or max_vectors for a path")
        if candidates != "vectors":
            raise ValueError(
                f"candidates={candidates!r} has no meaning for method='gradient', which makes vectors"
            )
        asked = n_vectors if max_vectors is None else max_vectors
        with shown_progress(verbose) as shown:
            made = make(
                model,
                cast("int", asked),
                parameter="n_vectors" if max_vectors is None else "max_vectors",
                X=X,
                y=y,
                settings=settings,
                random_state=random_state,
                max_time=max_time,
                n_jobs=n_jobs,
                progress=shown.callback,
            )
        return made[len(made)] if max_vectors is None else made
    with shown_progress(verbose) as shown:
        path = pursue(
            model,
            max_vectors if n_vectors is None else n_vectors,
            parameter="max_vectors" if n_vectors is None else "n_vectors",
            method=method,
            X=X,
            y=y,
            candidates=candidates,
            tol=tol,
            settings=settings,
            random_state=random_state,
            max_time=max_time,
            n_jobs=n_jobs,
            progress=shown.callback,
        )
    return path if n_vectors is None else path[min(n_vectors, len(path))]


class ConstantModelError(ValueError):
    """The model is the same everywhere: no vector has a part in it."""


def make(
    model: Any,
    size: int,
    *,
    parameter: str = "n_vectors",
    clip: bool = False,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    settings: Any = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> ConstructionPath:
    """Make the path of ``compress(method="gradient")``, with a hook for a progress bar.

    `parameter` is what errors call `size`; ``"n_vectors"`` asks for that size alone, and with `clip` a size
    beyond the rows means all of them.
    """
    whole = as_expansion(model)
    source = without_manners(whole)
    expansion = source if isinstance(source, KernelExpansion) else source.expansion_
    check(
        {parameter: size, "max_time": max_time},
        {parameter: integer(least=1), "max_time": RULES["max_time"]},
    )
    if expansion.n_vectors == 0:
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    chosen = GradientSettings() if settings is None else settings
    if not isinstance(chosen, GradientSettings):
        raise refuse("settings", settings, "None or a GradientSettings")
    _refuse_unknown_values(expansion)
    if X is None and y is not None:
        raise ValueError("y is given without X")
    rows: Any = None
    labels = answers = None
    if X is not None and y is not None and isinstance(source, KernelExpansion):
        rows = rows_for(source, X)
        answers = answers_of(source, chosen, y, rows.shape[0])
    elif X is not None:
        rows, labels = _tuning_rows(source, X, y, "rows")
    available = int((expansion.vectors if rows is None else rows).shape[0])
    if size > available and not clip:
        raise refuse(parameter, size, f"between 1 and {available}, the number of rows to learn from")
    sizes = stages(chosen, min(size, available), path=parameter != "n_vectors")

    def select(method: str, count: int) -> Any:
        asked = min(count, expansion.n_vectors)
        return pursue(
            source, asked, method=method, max_time=max_time, n_jobs=n_jobs, progress=progress
        ).vectors

    models = construct(
        source,
        sizes,
        select=select,
        rows=rows,
        labels=labels,
        answers=answers,
        settings=chosen,
        random_state=random_state,
        max_time=max_time,
        n_jobs=n_jobs,
        progress=progress,
    )
    if source is not whole:
        models = {size: whole.with_expansion(made) for size, made in models.items()}
    return ConstructionPath(whole, models, n_jobs)


def pursue(
    model: Any,
    size: int | None,
    *,
    parameter: str = "max_vectors",
    clip: bool = False,
    method: str = "pursuit",
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    candidates: str = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> CompressionPath:
    """Make the path of `compress`, with a hook for a progress bar.

    `parameter` is what errors call `size`, and with `clip` a size beyond the candidates means all of them;
    `progress(phase, done, total, gap, steps)` is called now and then.
    """
    whole = as_expansion(model)
    source = without_manners(whole)
    expansion = source if isinstance(source, KernelExpansion) else source.expansion_
    options = {"method": method, "candidates": candidates, "tol": tol, "max_time": max_time, parameter: size}
    check(options, {**RULES, parameter: either(none, integer(least=1))})
    _refuse_unknown_values(expansion)
    chosen = selection_of(settings, method)
    by_predictions = chosen.criterion == "predictions"
    rows, labels = _tuning_rows(source, X, y, candidates, of_use=by_predictions)
    pool = expansion.vectors if candidates == "vectors" else rows
    if not np.any(expansion.coefficients):
        raise ConstantModelError(f"{source!r} is constant: there is nothing to compress")
    checked = _checked_size(size, parameter, pool.shape[0], candidates, clip=clip)
    jobs = threads(n_jobs)
    drawn = random_state is not None and method in PURSUITS
    seed = int(check_random_state(random_state).randint(2**31 - 1)) if drawn else 0
    given = as_arguments(chosen) | {
        "method": method,
        "max_vectors": checked,
        "tolerance": float(tol),
        "seed": seed,
        "max_time": max_time,
    }
    if method in PURSUITS:
        rivals = None if candidates == "vectors" else core_rows(pool)
        compared = core_rows(expansion.vectors if rows is None else rows) if by_predictions else None
        path = _core.pursuit(expansion.core_parts, rivals, compared, given, progress, jobs)
    elif candidates != "vectors":
        raise ValueError(f"candidates={candidates!r} is for the pursuits only: method={method!r}")
    else:
        path = _core.select_vectors(expansion.core_parts, given, progress, jobs)
    if len(path["order"]) == 0:
        raise _nothing_chosen(source, chosen, path["stop"], max_time)
    if path["stop"] in ("max_time", "interrupted"):
        warnings.warn(
            f"compression ended early ({path['stop']}) with {len(path['order'])} vectors",
            ConvergenceWarning,
            stacklevel=3,
        )
    tuning = None if labels is None else (rows, labels)
    return CompressionPath(whole, pool[path["order"]], path, tuning, n_jobs)


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


def _checked_size(size: int | None, parameter: str, available: int, candidates: str, *, clip: bool) -> int:
    if size is None:
        return min(available, DEFAULT_PATH)
    if size > available and clip:
        return available
    if size > available:
        what = "vectors in the model" if candidates == "vectors" else "rows in X"
        raise ValueError(f"{parameter}={size} is more than there are: {available} {what} are available")
    return int(size)


def _tuning_rows(
    source: ExpansionClassifier | KernelExpansion,
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
    rows = rows_for(source, X)
    if y is None:
        return rows, None
    if isinstance(source, KernelExpansion):
        raise ValueError(
            "y is of no use for a model without classes: thresholds are tuned for classifiers only"
        )
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {labels.shape}")
    indices = label_indices(labels, source.classes_)
    if (indices < 0).any():
        unknown = np.unique(labels[indices < 0])[:3].tolist()
        raise ValueError(f"y holds labels that the model does not know, such as {unknown}")
    return rows, indices
