"""The sizes of a compression: the prefixes of one order, or models that were constructed separately.

The pursuit picks vectors one after the other; after s picks the best approximation of the model by those s
vectors has coefficients L_s^-T P_s, where L_s is the leading block of one Cholesky factor and P_s the leading
rows of one matrix of projections. So a path is one factor, and the outputs of *all* sizes on a row come from
one forward substitution: size s adds one term to size s - 1. Scoring a path costs what its last size does.

Memory is bounded: the thresholds of the sizes are chosen a group of sizes at a time.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from svmarrow import _core
from svmarrow._support.estimator import SizePath, scoring_chunks
from svmarrow._support.parameters import boolean, check, real
from svmarrow._support.rows import core_rows, threads
from svmarrow._support.schemas import savable
from svmarrow._support.training import new_threads
from svmarrow.reduced_set.holdout import HoldoutEvaluator, SizeSearch, sizes_to_search
from svmarrow.reduced_set.quantization import preparation_bytes
from svmarrow.reduced_set.score import (
    CONFIDENCE,
    GOAL_RULES,
    MAX_LOSS,
    Score,
    predictions_of,
    predicts_classes,
    refuse_large_loss,
    refuse_scoring,
    refuse_several_goals,
    rows_for,
    threshold_shifts,
    warn_if_constant,
    with_bound,
    wrap_like,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import ExpansionModel
    from svmarrow.models.expansion_models import ExpansionClassifier


__all__ = [
    "CompressionPath",
    "GradientPath",
    "ReducedPath",
]


# --- base class of the paths of compressed models: scores of every size, and the choice of a size ---
# Outputs (sizes, samples, q) are computed for a chunk of samples at a time, so that memory is bounded.


MAX_SAMPLE_SCORES = 1 << 24
"""Maximum number of sample scores that a choice among all sizes holds at once."""

MAX_TIMED_SAMPLES = 2000
"""Maximum number of samples that are timed together."""

MIN_SECONDS = 0.004
"""Minimum duration of one measurement."""


class ReducedPath(SizePath):
    """Small models of several sizes beside the one that was compressed."""

    model: ExpansionModel | KernelExpansion
    n_jobs: int | None
    orthogonal: bool = False

    if TYPE_CHECKING:

        def __getitem__(self, size: int) -> ExpansionModel | KernelExpansion: ...

    @abstractmethod
    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes."""

    @property
    def expansion(self) -> KernelExpansion:
        """The expansion that was compressed."""
        return self.model.expansion_

    def scores(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sizes: Sequence[int] | None = None,
        *,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Score of the compressed models on samples with known answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, q)
            Labels; 1 and -1 for an outlier detector; numbers for a regressor or a bare expansion.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.
        scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
            The measure: share of right labels, the mean of these shares over the classes, coefficient of
            determination, or minus the mean squared error, the last two averaged over the outputs. None is
            "accuracy" where there are labels, else "r2".
        sample_weight : array-like of shape (n_samples,), default=None
            What each sample counts in the score; None is 1 for each.

        Returns
        -------
        ndarray of shape (len(sizes),)
            The scores.

        Raises
        ------
        ValueError
            If X and y do not fit each other or the model, or the measure does not fit the model.
        IndexError
            If there is no such size.
        """
        asked = self.sizes if sizes is None else [self._checked_size(size) for size in sizes]
        increasing = sorted(set(asked))
        if not increasing:
            return np.empty(0)
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, len(increasing), scoring, sample_weight)
        for chunk in scoring_chunks(
            rows.shape[0], len(increasing) * self.expansion.n_outputs + increasing[-1]
        ):
            score.add(chunk, self._outputs(rows[chunk], increasing))
        by_size = dict(zip(increasing, score.result(), strict=True))
        return np.array([by_size[size] for size in asked])

    def full_score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score of the model that was compressed, in the measure of `scores`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, q)
            Labels or numbers, see `scores`.
        scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
            See `scores`.
        sample_weight : array-like of shape (n_samples,), default=None
            See `scores`.

        Returns
        -------
        float
            The score.
        """
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, 1, scoring, sample_weight)
        outputs = self.expansion._evaluate(rows, self.n_jobs)
        score.add(slice(0, rows.shape[0]), outputs[None])
        return float(score.result()[0])

    def agreement(self, X: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Agreement of the compressed models with the full one; no labels are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.

        Returns
        -------
        ndarray of shape (len(sizes),)
            Share of samples with the full model's label; where there are no labels, R^2 against its outputs,
            averaged over them.
        """
        outputs = self.expansion._evaluate(rows_for(self.model, X), self.n_jobs)
        return self.scores(X, predictions_of(self.model, outputs), sizes)

    def nbytes(self, size: int) -> int:
        """Bytes of the arrays of a size.

        Parameters
        ----------
        size : int
            One of `sizes`.

        Returns
        -------
        int
            As ``path[size].expansion_.nbytes``.
        """
        return self[size].expansion_.nbytes

    def microseconds(self, X: ArrayLike, size: int) -> float:
        """Measure the time of a prediction for one sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that are predicted together, at most 2000 of them; one sample gives the latency.
        size : int
            One of `sizes`.

        Returns
        -------
        float
            Median of three measurements on this machine, with ``n_jobs`` threads.
        """
        rows = rows_for(self.model, X)
        if rows.shape[0] == 0:
            raise ValueError("X has no rows: a measurement needs at least one")
        expansion = self[size].expansion_
        return microseconds_per_row(lambda some: expansion._evaluate(some, self.n_jobs), rows)

    def select(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        max_loss: float | None = None,
        *,
        min_agreement: float | None = None,
        max_bytes: int | None = None,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
        confidence: float = CONFIDENCE,
        strict: bool = False,
    ) -> ExpansionModel | KernelExpansion:
        """Choose a size by one goal.

        With `max_loss` or `min_agreement` the smallest size that is good enough: from the largest on, sizes a
        tenth smaller each are compared with the full model on the samples, until one loses too much beyond
        doubt. What counts is the loss with one standard error on the safe side, see
        `svmarrow.compress`; a size that loses more than smaller ones is averaged with them (isotonic
        regression). With `max_bytes` the largest size within it, or if `y` is given the one that scores best.
        Without a goal ``max_loss=0.003``. A size that predicts one class for all samples although the full
        model does not is never good enough.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Samples that neither training nor compression has seen. Not needed for `max_bytes`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Their labels or targets, see `scores`. Needed for `max_loss`.
        max_loss : float, default=None
            Largest difference of the scores, not negative; for accuracies 0.003 is 0.3 percentage points.
        min_agreement : float, default=None
            Smallest fraction of samples with the full model's label, between 0 and 1; for regression,
            smallest R^2 against the full model's outputs, averaged over them.
        max_bytes : int, default=None
            Largest number of bytes of the model's numbers, with those of its preparation (scaling, PCA).
        scoring : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error"}, default=None
            Measure of the loss, see `scores`. None is "accuracy" for a model that is known to be trained
            without weights or where `sample_weight` is given, "balanced_accuracy" for other models with
            labels, else "r2".
        sample_weight : array-like of shape (n_samples,), default=None
            Weights in the loss and in the agreement; None is 1 for each.
        confidence : float, default=0.95
            Confidence of the bound of the loss.
        strict : bool, default=False
            Whether the bound itself must keep to the goal. The sizes are then tested in sequence from the
            largest on (Maurer, Hothorn and Lehmacher, 1995). For max_loss=0.003 that takes at least 900
            samples.

        Returns
        -------
        ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
            The model, as ``path[size]`` gives it; all but the last with a ``loss_bound_``, see
            `svmarrow.models.LossBound`.

        Raises
        ------
        ValueError
            If there are several goals, no size on the path is good enough or small enough, or the input does
            not fit.

        Warns
        -----
        svmarrow.exceptions.SizeWarning
            If every size within `max_bytes` predicts one class for all samples although the full model does
            not.
        """
        goals = {"max_loss": max_loss, "min_agreement": min_agreement, "max_bytes": max_bytes}
        check(
            {**goals, "confidence": confidence, "strict": strict},
            GOAL_RULES | {"confidence": real(least=0.5, most=0.9999), "strict": boolean},
        )
        refuse_several_goals(goals)
        refuse_large_loss(max_loss, scoring)
        if max_bytes is not None:
            return self._best_within(max_bytes, X, y, scoring, sample_weight, confidence)
        name = "max_loss" if min_agreement is None else "min_agreement"
        if X is None or (y is None and name == "max_loss"):
            raise ValueError(f"{name} needs {'X and y' if name == 'max_loss' else 'X'}")
        if min_agreement is not None:
            refuse_scoring(scoring)
            y, allowed = None, 1.0 - min_agreement
        else:
            allowed = MAX_LOSS if max_loss is None else max_loss
        evaluator = HoldoutEvaluator(self.model, X, y, scoring, self.n_jobs, sample_weight)
        sizes = sizes_to_search(self.sizes)
        if strict:
            size, scores = None, {}
            for size_, one in evaluator.levels(self._outputs, sizes):
                if evaluator.bound(one, 1.0 - confidence) > allowed + 1e-12:
                    break
                size, scores = size_, {size_: one}
        else:
            search = SizeSearch(allowed)
            scores = search.search(evaluator.levels(self._outputs, sizes), evaluator)
            size = search.smallest
        if size is None:
            asked = f"{name}={MAX_LOSS if goals[name] is None else goals[name]:g}"
            raise self._not_reached(asked, evaluator)
        tests = 1 if strict else len(sizes)
        return with_bound(self[size], evaluator.loss_bound(scores[size], confidence, allowed, tests))

    def _best_within(
        self, max_bytes: int, X: Any, y: Any, scoring: str | None, sample_weight: Any, confidence: float
    ) -> ExpansionModel | KernelExpansion:
        limit = self._size_within(max_bytes)
        if X is None or y is None:
            return self[limit]
        sizes = [size for size in self.sizes if size <= limit]
        evaluator = HoldoutEvaluator(self.model, X, y, scoring, self.n_jobs, sample_weight)
        levels = evaluator.levels(self._outputs, sizes[::-1], MAX_SAMPLE_SCORES // evaluator.full.size)
        best = self[min((evaluator.loss(one), size) for size, one in levels)[1]]
        warn_if_constant(
            self.model, best, evaluator.rows, f"max_bytes={max_bytes}", self.n_jobs, stacklevel=4
        )
        scores = evaluator.scores_of(best, allow_constant=True)
        return with_bound(best, evaluator.loss_bound(scores, confidence, n_tests=len(sizes)))

    def _size_within(self, max_bytes: int) -> int:
        """The largest size whose arrays have at most `max_bytes` bytes, with those of the preparation."""
        fixed = preparation_bytes(self.model)
        sizes = [size for size in self.sizes if self.nbytes(size) + fixed <= max_bytes]
        if not sizes:
            least = self.sizes[0]
            needed = self.nbytes(least) + fixed
            raise ValueError(f"max_bytes={max_bytes} is less than {least} vectors need: {needed}")
        return sizes[-1]

    def _not_reached(self, goal: str, evaluator: HoldoutEvaluator) -> ValueError:
        largest = self.sizes[-1]
        ((_, scores),) = evaluator.levels(self._outputs, [largest])
        tried = f"{goal} is not reached: {largest} vectors, the largest size,"
        if np.isinf(scores).any():
            why = f"give all {evaluator.n} samples one class, which the full model does not"
        else:
            why = (
                f"lose {evaluator.loss(scores):.4f} of {evaluator.measure} on {evaluator.n} samples, "
                f"{evaluator.safe_loss(scores):.4f} with one standard error on the safe side"
            )
        remedy = "compress with a larger n_vectors, give more samples or ask for less"
        return ValueError(f"{tried} {why}; {remedy}")

    def _plot_arguments(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        return {
            "full_size": self.expansion.n_vectors,
            "full_score": self.full_score(X, y),
            "score_name": "accuracy" if predicts_classes(self.model) else "R^2",
        }


def microseconds_per_row(predict: Callable[[Any], Any], rows: Any, repeat: int = 3) -> float:
    """Median time of a prediction of all these rows at once, divided by their number."""
    rows = rows[:MAX_TIMED_SAMPLES]
    predict(rows)
    start = time.perf_counter()
    predict(rows)
    once = time.perf_counter() - start
    loops = max(1, int(MIN_SECONDS / max(once, 1e-7)))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(loops):
            predict(rows)
        return (time.perf_counter() - start) / loops

    return 1e6 * median(measure() for _ in range(repeat)) / float(rows.shape[0])


#: The precomputed kernel, as the extension module takes it.
PRECOMPUTED = ("precomputed", 1.0, 0.0, 3)
TUNING_BYTES = 256 << 20
"""Maximum bytes of the outputs that are held at once while thresholds are tuned."""


@savable("path-numbers/1")
@dataclass(frozen=True, eq=False)
class PathNumbers:
    """A triangle and projections, or the changes of basic steps with the vectors and sizes they belong to."""

    triangle: NDArray[np.float64] | None
    projections: NDArray[np.float64]
    steps: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    def coefficients(self, size: int) -> NDArray[np.float64]:
        """The coefficients (size, q) of a size."""
        return _core.path_coefficients((self.triangle, self.projections, self.steps), size)

    def outputs(
        self,
        expansion: KernelExpansion,
        kept: Any,
        order: NDArray[np.int64],
        rows: Any,
        sizes: Sequence[int],
        jobs: int,
    ) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes; `kept` are the vectors of the last, `order` the places
        of all among the vectors of the expansion, for those that can be selected only.
        """
        largest = sizes[-1]
        spec = None
        if len(expansion.parts) > 1 or callable(expansion.kernel):
            # The kernel values themselves are rows of a precomputed kernel, with the vectors as columns.
            rows = expansion._kernel_values(rows, order[:largest], jobs)
            kept, spec = np.arange(float(largest))[:, np.newaxis], PRECOMPUTED
        steps, used, triangle = None, largest, self.triangle
        if self.steps is not None:
            used = int(self.steps[1][largest - 1])
            steps = self.steps[0][:used], self.steps[1][:largest]
        return _core.path_decisions(
            (
                None if triangle is None else np.ascontiguousarray(triangle[:largest, :largest]),
                np.ascontiguousarray(self.projections[:used]),
                steps,
            ),
            (core_rows(kept), expansion.intercepts, spec or expansion.kernel_spec),
            core_rows(rows),
            np.array(sizes, dtype=np.int64),
            jobs,
        )


@savable("path/1")
class CompressionPath(ReducedPath):
    """Compressed models of every size, from one vector up, out of one run of `svmarrow.compression_path`.

    `svmarrow.papers.reduced_set.path` returns them too. ``path[s]`` is the model with s vectors, ready to
    predict; ``len(path)`` is the largest size.

    Attributes
    ----------
    model : ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        The model that was compressed.
    vectors : ndarray or sparse array of shape (len(path), n_features)
        The chosen vectors, in the order of the choice.
    order : ndarray of int of shape (len(path),)
        Which candidates they are.
    residual_norms : ndarray of shape (len(path) + 1,)
        Distance in feature space between the model and its approximation with s vectors, for s = 0, 1, ...;
        all outputs together, those of a regressor scaled to the standard deviation of the largest; for
        predictions the root mean square difference of the outputs on the samples.
    exact : bool
        False where `residual_norms` are upper bounds: for models of over 65,536 vectors reduced in chunks.
    penalties : ndarray of shape (len(path),) or None
        For ``"l1"`` and ``"lars"`` of `svmarrow.papers.reduced_set.path`: the lambda at which each vector
        enters; where several outputs choose together to one part in ten. None for all other methods.
    orthogonal : bool
        Whether sizes are orthogonal projections in feature space: not for the criterion ``"predictions"``,
        and of `svmarrow.papers.reduced_set.path` neither for ``"basic"`` nor for ``refit=False``.
    stop : str
        ``"converged"`` (size, tolerance, nothing to gain), ``"max_time"``, ``"interrupted"``, ``"max_iter"``
        or ``"stalled"`` (a penalized path that is not exact to its end).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, compression_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> path = compression_path(svc, X[:300], y[:300], n_vectors=40)
    >>> small = path.select(X[300:], y[300:], max_loss=0.05)
    >>> small.expansion_.n_vectors < svc.expansion_.n_vectors
    True
    """

    _transient = ("_factor", "_projections", "_tuning")
    _stored_as: ClassVar[dict[str, str]] = {
        "exact": "exact",
        "model": "model",
        "n_jobs": "n_jobs",
        "order": "order",
        "orthogonal": "orthogonal",
        "penalties": "penalties",
        "residual_norms": "residual_norms",
        "stop": "stop",
        "vectors": "vectors",
        "_numbers": "numbers",
        "_shifts": "shifts",
    }
    exact: bool = True
    penalties: NDArray[np.float64] | None = None
    model: ExpansionModel | KernelExpansion
    orthogonal: bool

    def __init__(
        self,
        model: ExpansionModel | KernelExpansion,
        vectors: Any,
        pursuit: Mapping[str, Any],
        tuning: tuple[Any, NDArray[Any], NDArray[np.float64] | None] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.vectors = vectors
        self.order: NDArray[np.int64] = pursuit["order"]
        self.residual_norms: NDArray[np.float64] = pursuit["residual_norms"]
        self.stop: str = pursuit["stop"]
        self.n_jobs = n_jobs
        self.penalties = pursuit["penalties"]
        self.exact = pursuit["exact"]
        self.orthogonal = pursuit["orthogonal"]
        self._numbers = PathNumbers(pursuit["factor"], pursuit["projections"], pursuit["steps"])
        self._set_projections()
        self._tuning = tuning
        self._shifts: dict[int, NDArray[np.float64]] = {}

    def _set_projections(self) -> None:
        """The triangle of orthogonal projections, a factor of the kernel matrix, and the projections."""
        self._factor = self._numbers.triangle if self.orthogonal else None
        self._projections = self._numbers.projections

    def _stored(self) -> dict[str, Any]:
        # Thresholds of all sizes are chosen now: the rows that choose them are no part of a model.
        self._shifts_of(self.sizes)
        self._shifts = {size: self._shifts[size] for size in sorted(self._shifts)}
        return vars(self)

    def _after_load(self) -> None:
        self._tuning = None
        self._set_projections()
        m, q, columns = (
            len(self.order),
            self.model.expansion_.n_outputs,
            self.model.expansion_.vectors.shape[1],
        )
        if self.vectors.shape != (m, columns) or self.residual_norms.shape != (m + 1,):
            raise ValueError(f"vectors and residual_norms are not those of {m} sizes")
        if [*self._shifts] not in ([], [*self.sizes]) or any(b.shape != (q,) for b in self._shifts.values()):
            raise ValueError("the thresholds are not those of all sizes")
        if self._numbers.coefficients(m).shape != (m, q):
            raise ValueError(f"the coefficients are not those of {q} outputs")

    @property
    def sizes(self) -> Sequence[int]:
        """All sizes: 1, 2, ..., len(path)."""
        return range(1, len(self.order) + 1)

    def __repr__(self) -> str:
        tuned = "thresholds tuned, " if self._tuning is not None or self._shifts else ""
        return f"CompressionPath(sizes {self._listed_sizes()}, {tuned}of {self.model!r})"

    def _model(self, size: int) -> Any:
        full, coefficients = self.model.expansion_, self._numbers.coefficients(size)
        intercepts = full.intercepts + self._shifts_of([size])[0]
        if len(full.parts) > 1:
            small = full._selected(self.order[:size], coefficients).replaced(intercepts=intercepts)
        else:
            vectors = self.vectors[:size]
            small = full.replaced(vectors=vectors, coefficients=coefficients, intercepts=intercepts)
        return wrap_like(self.model, small)

    def nbytes(self, size: int) -> int:
        """Bytes of the arrays of a size, without building its model.

        Parameters
        ----------
        size : int
            From 1 to ``len(path)``.

        Returns
        -------
        int
            As ``path[size].expansion_.nbytes``.
        """
        size = self._checked_size(size)
        vectors = self.vectors
        if hasattr(vectors, "indptr"):
            entries = int(vectors.indptr[size] - vectors.indptr[0])
            ends = (size + 1) * vectors.indptr.itemsize
            of_vectors = entries * (vectors.data.itemsize + vectors.indices.itemsize) + ends
        else:
            of_vectors = size * vectors.shape[1] * vectors.itemsize
        return int(of_vectors) + 8 * (size + 1) * self.model.expansion_.n_outputs

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes, with their own thresholds."""
        return self._untuned(rows, sizes) + self._shifts_of(sizes)[:, None, :]

    def _untuned(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """The same with the intercepts of the full model."""
        full, selected = self.model.expansion_, self.vectors[: sizes[-1]]
        return self._numbers.outputs(full, selected, self.order, rows, sizes, threads(self.n_jobs))

    def _shifts_of(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Changes of the intercepts by tuned thresholds, (sizes, q); zeros without tuning samples."""
        q = self.model.expansion_.n_outputs
        if self._tuning is not None:
            self._tune(sorted(set(sizes) - self._shifts.keys()), *self._tuning)
        shifts = [self._shifts.get(size, np.zeros(q)) for size in sizes]
        return np.array(shifts).reshape(len(shifts), q)

    def _tune(
        self,
        missing: Sequence[int],
        rows: Any,
        labels: NDArray[Any],
        weights: NDArray[np.float64] | None,
    ) -> None:
        step = max(1, TUNING_BYTES // (8 * max(1, rows.shape[0]) * self.model.expansion_.n_outputs))
        for start in range(0, len(missing), step):
            group = missing[start : start + step]
            outputs = self._untuned(rows, group)
            shifts = partial(threshold_shifts, self.model, labels=labels, weights=weights)
            # A size is a few milliseconds of work outside the interpreter lock; the sizes are independent.
            with new_threads(), ThreadPoolExecutor(min(threads(self.n_jobs), len(group))) as pool:
                try:
                    found = pool.map(shifts, outputs)
                    self._shifts.update(zip(group, found, strict=True))
                except BaseException:
                    # Ctrl-C does not wait for the sizes that have not begun.
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise


@savable("gradient-path/1")
class GradientPath(ReducedPath):
    """Models of several sizes, each constructed separately by `compression_path`.

    They are returned by ``svmarrow.compression_path(method="gradient")``.

    ``path[s]`` is the model with s vectors for each s of ``path.sizes``, ready to predict; ``len(path)`` is
    the number of sizes. Scores, choice and picture are those of `CompressionPath`; `order` and
    `residual_norms` are None, because the vectors are not selected from the model's own.

    Attributes
    ----------
    model : ExpansionClassifier or KernelExpansion
        The model that was compressed.
    sizes : tuple of int
        The sizes, increasing.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, compression_path
    >>> from svmarrow.reduced_set import GradientSettings
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> quick = GradientSettings(steps=500, sizes=(1, 2, 4))
    >>> options = {"method": "gradient", "settings": quick, "random_state": 0}
    >>> path = compression_path(svc, X[:300], y[:300], n_vectors=8, **options)
    >>> path.sizes
    (1, 2, 4, 8)
    >>> path.select(X[300:], y[300:], max_loss=0.02).expansion_.n_vectors <= 8
    True
    """

    model: ExpansionModel | KernelExpansion
    _stored_as: ClassVar[dict[str, str]] = {"model": "model", "n_jobs": "n_jobs", "_models": "models"}

    def __init__(
        self,
        model: ExpansionClassifier | KernelExpansion,
        models: Mapping[int, Any],
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.n_jobs = n_jobs
        self._models: dict[int, ExpansionModel | KernelExpansion] = dict(models)

    def _after_load(self) -> None:
        found = {size: model.expansion_ for size, model in self._models.items()}
        if not found or list(found) != sorted(found):
            raise ValueError("the sizes do not increase")
        if any((f.n_vectors, f.n_outputs) != (size, self.expansion.n_outputs) for size, f in found.items()):
            raise ValueError("the models are not of the sizes and outputs of the path")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, increasing."""
        return tuple(self._models)

    def __repr__(self) -> str:
        return f"GradientPath(sizes {self._listed_sizes()}, of {self.model!r})"

    def _model(self, size: int) -> ExpansionModel | KernelExpansion:
        return self._models[size]

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        expansions = [self._models[size].expansion_ for size in sizes]
        return np.stack([expansion._evaluate(rows, self.n_jobs) for expansion in expansions])
