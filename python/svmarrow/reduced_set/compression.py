"""`compress` and `compression_path`: from a fitted model to one with fewer vectors, or to all sizes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from svmarrow._support.parameters import Rule, check, either, integer, none, one_of
from svmarrow._support.progress import progress as shown_progress
from svmarrow._support.rows import sample_weights
from svmarrow.interop.convert import as_expansion
from svmarrow.models.loss_bound import LossBound
from svmarrow.reduced_set.automatic import announcement, best_of_size, smallest
from svmarrow.reduced_set.judge import Judge
from svmarrow.reduced_set.neighbourhoods import tell_of_few
from svmarrow.reduced_set.score import rows_for, without_kind
from svmarrow.reduced_set.sizes import (
    SELECTION_RULES,
    demands_of,
    no_use_of_scoring,
    promised,
    warn_if_constant,
)
from svmarrow.reduced_set.task import (
    METHODS,
    RULES,
    ConstantModelError,
    Method,
    Task,
    check_scoring,
    path_of,
    pursuit_of,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.reduced_set.construction import GradientSettings
    from svmarrow.reduced_set.selection import SelectionSettings

__all__ = ["METHODS", "RULES", "ConstantModelError", "Method", "compress", "compression_path"]

AnyMethod: TypeAlias = Literal["auto"] | Method
COMPRESS_RULES = {
    **SELECTION_RULES,
    "method": one_of("auto", *METHODS),
    "n_vectors": either(none, integer(least=1)),
    "validation": Rule(
        "None, (X, y) or (X, y, sample_weight)",
        lambda v: v is None or (isinstance(v, (tuple, list)) and len(v) in (2, 3)),
    ),
}
MAX_LOSS = 0.003
"""What a model may lose where nothing is said of it."""

HELD, MOST_HELD = 0.5, 20_000
"""Share of the rows that judge where no others are given, and the most of them."""


def compress(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_vectors: int | None = None,
    max_loss: float | None = None,
    min_agreement: float | None = None,
    max_bytes: int | None = None,
    max_microseconds: float | None = None,
    confidence: float = 0.95,
    strict: bool = False,
    validation: tuple[Any, ...] | None = None,
    scoring: Literal["accuracy", "balanced_accuracy", "r2", "mse"] | None = None,
    sample_weight: ArrayLike | None = None,
    method: AnyMethod = "auto",
    candidates: Literal["vectors", "rows"] = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Any:
    """Approximate a fitted kernel machine by one with fewer vectors.

    ``compress(model, X, y)`` gives the smallest model that loses at most 0.003 of the full one's accuracy on
    rows held out for it, and promises how much it may lose on others: its ``loss_bound_``. Or say what it
    must be able to do, with `max_loss` or `min_agreement`, or what it may cost, with `n_vectors`, `max_bytes`
    or `max_microseconds`; of demands on both sides all hold. All machines of a multiclass model are
    approximated together over one pool of vectors.

    The weights of a model are kept. If classes or rows had weights in training (``class_weight``,
    ``sample_weight``), thresholds stay as they are, vectors learn from the model and not from labels, and the
    loss is one of balanced accuracy unless `scoring` or `sample_weight` say another.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.as_expansion` takes: a fitted estimator of svmarrow, a fitted
        kernel machine of scikit-learn, a pipeline that ends in one, a model file, a `KernelExpansion` and
        what is made of one.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Rows to learn from: thresholds (for numbers, means of the outputs) are set on them, but not those of
        a model that was trained with weights, and vectors that are made learn from them. Where something is
        to be judged and `validation` is not given, half of them, 20,000 at most, are held out for it. On rows
        of the training the full model does better than it is: the promise is then too careful, and more
        vectors are kept than are needed. So take others, if you have some. Not needed for `n_vectors` and
        `max_bytes`; nothing is promised then.
    y : array-like of shape (n,) or (n, q), default=None
        Their labels; numbers for a model of numbers, 1 and -1 for a detector. Without them the answers of the
        full model take their place, and the loss is that of agreement; so it is with `min_agreement` alone.
        Thresholds are set for labels where the model is known to be trained without weights, or `scoring` or
        `sample_weight` say which loss is meant; where it is not known (LIBSVM's files; machines of
        scikit-learn, which forget the weights of rows) they are set for the model's own answers.
    n_vectors : int, default=None
        Number of vectors to keep; more than there are means all. A selection that reaches `tol` earlier gives
        fewer. With `max_loss` or `min_agreement` the most that the model may have; None is then all
        candidates, at most 1000, and not allowed for ``"gradient"``.
    max_loss : float, default=None
        How much lower the score may be than the full model's, see `scoring`. 0.003 is 0.3 percent points of
        accuracy. The default where neither a size nor a limit is given.
    min_agreement : float, default=None
        Least share of rows that get the full model's label; R^2 against its outputs where there are no
        labels. Labels `y` play no part in it.
    max_bytes : int, default=None
        Most bytes of the model's arrays.
    max_microseconds : float, default=None
        Most microseconds a row, see `CompressionPath.select`.
    confidence : float, default=0.95
        How sure the promise is: ``loss_bound_.upper`` is kept but for a share of 1 - confidence of all calls,
        however many sizes were looked at.
    strict : bool, default=False
        Whether the promise must keep to `max_loss` or `min_agreement`. Else the loss as measured must, at
        the size that is taken and at larger ones in the mean, and the promise says how far off that may be.
        Few rows cannot promise little: 0.003 takes 900 of them at least, and some thousand where data are
        noisy.
    validation : tuple of (X, y) or (X, y, sample_weight), default=None
        The rows that judge, best some that neither training nor compression has seen; y may be None.
    scoring : {"accuracy", "balanced_accuracy", "r2", "mse"}, default=None
        The measure of `max_loss` and of the choice among models of one size; needs y. None is "accuracy" for
        a classifier or detector that is known to be trained without weights, or where `sample_weight` is
        given, "balanced_accuracy" for the others, and "r2" for what predicts numbers.
    sample_weight : array-like of shape (n,), default=None
        What each row of `X` counts in the loss, in its bound, in the agreement and in the choice of
        thresholds; None is 1 for each. Vectors that are made then imitate the model alone, on all rows alike.
    method : str, default="auto"
        How vectors are chosen, or made. ``"auto"`` runs the pursuit for the curve and makes vectors where
        that pays, and judges both on the held-out rows: what it gives back is no worse there than the best of
        them. Its work is planned beforehand, some 10 to 30 seconds of one core, whatever the data; without
        rows it is the pursuit alone, in milliseconds. For kernels that are not positive semidefinite the
        pursuit compares outputs. The others, each by itself (what is left is the difference of the models):

        * ``"pursuit"``: adds one vector after the other, each time the one that makes the smallest angle with
          what is left, and after each solves for all coefficients again (matching pursuit with
          *back-fitting* [1]_).
        * ``"gradient"``: new vectors, moved together with their coefficients until they do on the rows what
          the model does [2]_, or better, where labels are used; takes seconds instead of milliseconds and is
          much better at small sizes.
        * ``"rank"``: a basis of the span of all vectors, lossless; few only for kernels of low rank, such as
          linear or polynomial ones.
        * ``"prefit"``: the pursuit, but each time the vector after which, all coefficients solved again,
          least is left (*pre-fitting*); dearer, and often a little better at small sizes.
        * ``"basic"``: the pursuit, but only the new coefficient is solved for: those that are there stay,
          until a vector is chosen once more.
        * ``"l0"``: coefficients are shrunk again and again, small ones more than large ones, until few are
          left; lossless or not [1]_.
        * ``"l1"``: vectors in the order in which they enter when a price on the size of the coefficients
          falls [1]_.
        * ``"lars"``: the same order, for an SVM that is trained again on its own vectors under such a
          price [2]_.

        The notes tell when each is right.
        ``"rank"``, ``"l0"``, ``"l1"`` and ``"lars"`` hold the kernel matrix of all vectors in memory. Models
        that are too long for a method are reduced in chunks, see `SelectionSettings`.
    candidates : {"vectors", "rows"}, default="vectors"
        Choose among the model's own vectors, or among the rows of `X`.
    tol : float, default=1e-5
        End when the distance to the model falls to this share of the model's norm; 0 goes on to the last
        vector.
    settings : GradientSettings or SelectionSettings, default=None
        The former for ``"gradient"``, the latter for all selections, either for ``"auto"``; None takes the
        defaults.
    random_state : int, RandomState instance or None, default=None
        Seed of what is made and of ``SelectionSettings(sample=...)``; nothing else is random. Rows are held
        out by a seed of their own.
    max_time : float, default=None
        Seconds after which the run ends with the sizes it has, a fraction of a second later at most; a
        ValueError where there is none yet. The start of ``"gradient"`` takes half of them at most.
    n_jobs : int, default=None
        Threads. None means all cores that this process may use.
    verbose : bool, default=False
        Show the progress on standard error, and for ``"auto"`` beforehand what is going to be done and how
        long it may take.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        A model of the kind of `model`, ready to predict, with a ``loss_bound_``
        (`svmarrow.models.LossBound`); a `KernelExpansion` of a bare one, which has no place for a promise.
        Where no smaller model meets the demands of ``"auto"``, the full one. A model that gives all rows that
        judge one class, as the full one does not, meets no demand.

    Raises
    ------
    ValueError
        If a parameter is out of its range, nothing is asked for that can be done without rows, no size of an
        explicit method meets the demands, X does not fit the model, the method does not take the
        kernel, the model is constant, or a selection needs more than ``max_memory``.
    MemoryError
        If `svmarrow.reduced_set.estimate_memory` is more than this process may take.
    TypeError
        If `model` is of another kind.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.

    Warns
    -----
    svmarrow.exceptions.SizeWarning
        Before anything is made, if `n_vectors` are fewer than half of the neighbourhoods that an RBF kernel
        tells apart among the model's vectors, m^2 / sum K_ij^2 over their kernel matrix: 40 at least, of rows
        that fill four dimensions at most. If a model of the size or limit that was given gives all rows that
        judge, or else all of `X`, one class, as the full one does not.

    See Also
    --------
    compression_path : The models of all sizes out of one run.

    Notes
    -----
    When each method is right; m is the number of the model's vectors, s that of the small one, d of columns
    and q of outputs:

    ==============  ==========================================================  ===========================
    method          take it                                                     multiplications
    ==============  ==========================================================  ===========================
    ``"auto"``      where there are rows, unless you know better                2e11 at most, planned
    ``"pursuit"``   without rows; for a curve of all sizes; where vectors must  m s (d + s + q)
                    be the model's own; where a third of them or more stay
    ``"gradient"``  for a given size of a tenth of the vectors or fewer, with   steps x 144 s (2 d + 3 q)
                    more steps than ``"auto"`` can afford: 60,000 instead of
                    3,000 to 8,000
    ``"rank"``      for linear and polynomial kernels and for repeated          m s (d + s)
                    vectors, where nothing may be lost
    ``"prefit"``    for the model's own vectors, a tenth of them or fewer,      a small multiple of the
                    where each counts and time does not                         pursuit's
    ``"basic"``     to repeat the papers' experiments; nothing else             the kernel matrix of all
    ``"l0"``        recommends them                                             vectors is kept but for
    ``"l1"``                                                                    ``"basic"``
    ``"lars"``
    ==============  ==========================================================  ===========================

    Few vectors fail where the classes themselves change at the distance of neighbouring rows (two spirals,
    checkerboards of many fields), so that each vector answers for its own neighbourhood, and where a kernel
    is narrow beyond all use. ``"auto"`` then gives back many vectors, or the full model; a machine with a
    wider kernel (smaller gamma) is then worth a try. Noise that a narrow kernel has learnt by heart is no
    hindrance: made vectors leave it out.

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
    >>> from svmarrow.reduced_set import GradientSettings
    >>> from sklearn.utils import shuffle
    >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:800], y[:800])

    The smallest that loses at most one percent point of accuracy, and what is promised of it:

    >>> quick = GradientSettings(steps=1000)
    >>> small = compress(svc, X[800:1600], y[800:1600], max_loss=0.01, settings=quick, random_state=0)
    >>> small.expansion_.n_vectors < svc.expansion_.n_vectors, small.loss_bound_.rows
    (True, 400)
    >>> svc.score(X[1600:], y[1600:]) - small.score(X[1600:], y[1600:]) <= small.loss_bound_.upper
    True

    A hundred of its vectors:

    >>> small = compress(svc, n_vectors=100)
    >>> small.expansion_.n_vectors, str(small.loss_bound_)
    (100, 'nothing is promised: no rows have judged')
    """
    if isinstance(X, Integral):
        raise TypeError(f"X={X} is not allowed: it must be rows; a number of vectors is n_vectors={X}")
    asked = {"max_loss": max_loss, "min_agreement": min_agreement}
    limits = {"max_bytes": max_bytes, "max_microseconds": max_microseconds}
    given: dict[str, Any] = {
        **asked,
        **limits,
        "confidence": confidence,
        "strict": strict,
        "validation": validation,
    }
    check({**given, "method": method, "n_vectors": n_vectors}, COMPRESS_RULES)
    if sample_weight is not None and X is None:
        raise ValueError("sample_weight is given without X")
    if sample_weight is not None and validation is not None and len(validation) == 2:
        raise ValueError(
            "sample_weight is given without weights of the rows that judge: give "
            "validation=(X, y, sample_weight)"
        )
    limited = any(limit is not None for limit in limits.values())
    has_rows = X is not None or validation is not None
    if max_loss is None and min_agreement is None and n_vectors is None and not limited:
        if not has_rows:
            raise ValueError(
                "without rows nothing can be promised of a loss: give X and y, or say how large the model "
                "may be with n_vectors or max_bytes"
            )
        labelled = y is not None or (validation is not None and validation[1] is not None)
        asked["max_loss" if labelled else "min_agreement"] = MAX_LOSS if labelled else 1.0 - MAX_LOSS
    demanding = any(demand is not None for demand in asked.values())
    if demanding and not has_rows:
        raise ValueError("max_loss and min_agreement need X and y, or validation=(X, y): rows that judge")
    whole = as_expansion(model)
    if n_vectors is not None and not demanding:
        tell_of_few(without_kind(whole), n_vectors, stacklevel=2)
    if sample_weight is not None:
        sample_weight = sample_weights(sample_weight, _num_samples(X))
    learn, judging = Labelled(X, y, sample_weight), None if validation is None else Labelled(*validation)
    if validation is None and X is not None and (demanding or method == "auto"):
        learn, judging = _held_out(learn)
    if judging is not None and judging.y is None and asked["max_loss"] is not None:
        raise ValueError("max_loss needs labels or numbers y: without them ask for min_agreement")
    check_scoring(whole, scoring, y if judging is None else judging.y)
    if asked["max_loss"] is None and asked["min_agreement"] is not None:
        if scoring is not None:
            raise no_use_of_scoring(scoring)
        if not getattr(settings, "needs_labels", False):
            learn = learn._replace(y=None)
    own = method if method != "auto" else "pursuit"
    task = Task(
        whole, n_vectors, learn.X, learn.y, own, candidates, tol, settings, random_state, max_time, n_jobs
    )
    task = task._replace(scoring=scoring if learn.y is not None else None, sample_weight=learn.weights)
    with shown_progress(verbose) as shown:
        shown.stops_in = ("pursuit", 1)
        if judging is not None and method == "auto":
            if verbose:
                shown.say(announcement(task, whole, of_size=not demanding))
            if demanding:
                demands = demands_of(
                    whole, judging.X, judging.y, **asked, scoring=scoring, n_jobs=n_jobs,
                    sample_weight=judging.weights,
                )  # fmt: skip
                told = shown.callback
                return smallest(task, whole, demands, confidence, told, judging.X, limits, strict=strict)
            judge = Judge(whole, judging.X, judging.y, scoring, n_jobs, judging.weights)
            small = best_of_size(task, judge, confidence, shown.callback, judging.X, limits)
        else:
            about: dict[str, Any] = {"confidence": confidence, "strict": strict, "scoring": scoring}
            make = pursuit_of if method == "auto" else path_of
            small = _of_one_method(make, task, judging, asked, limits, about, shown.callback)
    rows = X if judging is None else judging.X
    if not demanding and rows is not None:
        named = {"n_vectors": n_vectors, **limits}
        fixed = ", ".join(f"{name}={value}" for name, value in named.items() if value is not None)
        warn_if_constant(whole, small, rows_for(whole, rows), fixed or f"tol={tol:g}", n_jobs)
    return small


class Labelled(NamedTuple):
    """Rows with what is known of them."""

    X: Any
    y: Any
    weights: Any = None


def _held_out(rows: Labelled) -> tuple[Labelled, Labelled]:
    """Rows to learn from, and rows that judge."""
    X, y, weights = rows
    n = _num_samples(X)
    if n < 2:
        raise ValueError(f"X has {n} rows: some to learn from and some to judge are at least 2")
    if y is not None and _num_samples(y) != n:
        raise ValueError(f"X and y disagree: X has {n} rows, y has {_num_samples(y)}")
    order = np.random.default_rng(0).permutation(n)
    held = min(int(HELD * n), MOST_HELD)
    parts = np.sort(order[held:]), np.sort(order[:held])
    learn, judge = (
        Labelled(
            _safe_indexing(X, part),
            None if y is None else _safe_indexing(np.asarray(y), part),
            None if weights is None else weights[part],
        )
        for part in parts
    )
    return learn, judge


def _of_one_method(
    make: Any,
    task: Task,
    judging: Labelled | None,
    asked: dict[str, Any],
    limits: dict[str, Any],
    about: dict[str, Any],
    progress: ProgressCallback | None,
) -> Any:
    """What one method gives, judged where there are rows for it."""
    demanding = any(demand is not None for demand in asked.values())
    confidence = about["confidence"]
    limited = any(limit is not None for limit in limits.values())
    path = make(task, progress, every_size=demanding or limited)
    if demanding and judging is not None:
        return path.select(judging.X, judging.y, **asked, **limits, **about, sample_weight=judging.weights)
    timed = task.X if judging is None else judging.X
    if limits["max_microseconds"] is not None and timed is None:
        raise ValueError("max_microseconds needs X: rows to measure the time of")
    small = path[path.within(timed, **limits)[0]]
    if judging is None:
        return promised(small, LossBound(None, None, confidence, 0, "accuracy"))
    judge = Judge(path.model, judging.X, judging.y, about["scoring"], task.n_jobs, judging.weights)
    return promised(small, judge.promise_of(small, confidence))


def compression_path(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_vectors: int | None = None,
    method: Method = "pursuit",
    candidates: Literal["vectors", "rows"] = "vectors",
    tol: float = 1e-5,
    settings: GradientSettings | SelectionSettings | None = None,
    random_state: int | np.random.RandomState | None = None,
    max_time: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    scoring: Literal["accuracy", "balanced_accuracy", "r2", "mse"] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Compress a fitted kernel machine to every size in one run.

    Parameters
    ----------
    model : object
        As for `compress`.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Rows to learn from, as for `compress`; the thresholds of each size are chosen anew on them, but for
        models that were trained with weights.
    y : array-like of shape (n,) or (n, q), default=None
        Their labels or numbers; without them, or where it is not known whether there were weights and neither
        `scoring` nor `sample_weight` are given, the full model's answers.
    n_vectors : int, default=None
        The largest size; more than there are means all. None is all candidates, at most 1000, and not allowed
        for ``"gradient"``.
    method : str, default="pursuit"
        As for `compress`, but ``"auto"``. ``"gradient"`` has the sizes that its settings name, else the
        largest and its halves down to 8; all others have every size from 1 on.
    candidates, tol, settings, random_state, max_time, n_jobs, verbose
        As for `compress`.
    scoring : {"accuracy", "balanced_accuracy", "r2", "mse"}, default=None
        The loss by which thresholds are chosen for labels y; None is "accuracy".
    sample_weight : array-like of shape (n,), default=None
        What each row counts in that loss; None is 1 for each.

    Returns
    -------
    CompressionPath or GradientPath
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
    >>> path = compression_path(svc, X[:1000], y[:1000], n_vectors=200)
    >>> path[50].expansion_.n_vectors, path.scores(X[1000:], y[1000:]).shape
    (50, (200,))
    """
    if isinstance(X, Integral):
        raise TypeError(f"X={X} is not allowed: it must be rows; a number of vectors is n_vectors={X}")
    task = Task(model, n_vectors, X, y, method, candidates, tol, settings, random_state, max_time, n_jobs)
    task = task._replace(scoring=scoring, sample_weight=sample_weight)
    with shown_progress(verbose) as shown:
        shown.stops_in = ("pursuit", 1)
        return path_of(task, shown.callback, every_size=True)
