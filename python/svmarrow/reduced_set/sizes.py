"""What the paths of compressed models share: scores beside those of the full model, the choice of a size.

Outputs (sizes, rows, q) come a chunk of rows at a time, so that
memory is bounded whatever the number of rows.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import boolean, check, either, integer, none, real
from svmarrow._support.path import SizePath, scoring_chunks
from svmarrow.exceptions import SizeWarning
from svmarrow.models.base import ExpansionModel
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.reduced_set.cost import largest_within, microseconds_per_row
from svmarrow.reduced_set.judge import Demand, Descent, Judge, sizes_to_look_at
from svmarrow.reduced_set.score import Score, decides, rows_for, without_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.loss_bound import LossBound

__all__ = ["SELECTION_RULES", "ReducedPath", "demands_of", "promised"]

TOGETHER = 8
"""Sizes that a search for the smallest scores together."""

MOST_MERITS = 1 << 24
"""Merits of rows that a choice among all sizes holds at once."""

REMEDY = "compress with a larger n_vectors or demand less"

SELECTION_RULES = {
    "max_loss": either(none, real(least=0.0)),
    "min_agreement": either(none, real(least=0.0, most=1.0)),
    "max_bytes": either(none, integer(least=1)),
    "max_microseconds": either(none, real(above=0.0)),
    "confidence": real(least=0.5, most=0.9999),
    "strict": boolean,
}


def promised(model: Any, promise: LossBound) -> Any:
    """The model with its promise; a bare expansion has no place for one."""
    if isinstance(model, ExpansionModel):
        model.loss_bound_ = promise
    return model


def no_use_of_scoring(scoring: str) -> ValueError:
    """The error where labels that are not looked at should be scored."""
    return ValueError(
        f"scoring={scoring!r} is of no use with min_agreement alone, which compares both models and looks at "
        "no labels: ask for max_loss, or leave it out"
    )


def warn_if_constant(
    model: Any, small: Any, rows: Any, asked: str, n_jobs: int | None, stacklevel: int = 3
) -> None:
    """Warns of a small model that gives all rows one class where the full model does not."""
    if not decides(model) or rows.shape[0] == 0:
        return
    decide = model.decode if isinstance(model, ExpansionClassifier) else model.inside
    found = decide(without_kind(small)._evaluate(rows, n_jobs))
    if np.ptp(found) > 0 or np.ptp(decide(model.expansion_._evaluate(rows, n_jobs))) == 0:
        return
    label = model.classes_[found[0]] if isinstance(model, ExpansionClassifier) else found[0]
    warnings.warn(
        f"{asked} leaves {without_kind(small).n_vectors} vectors, which give all {rows.shape[0]} rows the "
        f"class {label.tolist()!r}, as the full model does not: allow more",
        SizeWarning,
        stacklevel=stacklevel,
    )


def demands_of(
    model: Any,
    X: Any,
    y: Any,
    max_loss: float | None,
    min_agreement: float | None,
    scoring: str | None,
    n_jobs: int | None,
    sample_weight: ArrayLike | None = None,
) -> list[Demand]:
    """What is asked of a compression on these rows."""
    asked = []
    if max_loss is not None:
        asked.append(Demand(Judge(model, X, y, scoring, n_jobs, sample_weight), max_loss))
    if min_agreement is not None:
        asked.append(Demand(Judge(model, X, None, None, n_jobs, sample_weight), 1.0 - min_agreement))
    return asked


class ReducedPath(SizePath):
    """Small models of several sizes beside the one that was compressed."""

    model: ExpansionModel | KernelExpansion
    n_jobs: int | None
    orthogonal: bool = False

    @abstractmethod
    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes."""

    @property
    def expansion(self) -> KernelExpansion:
        """The expansion that was compressed."""
        return without_kind(self.model)

    def scores(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sizes: Sequence[int] | None = None,
        *,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Score of the compressed models on rows with known answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,) or (n, q)
            Labels; 1 and -1 for an outlier detector; numbers for a regressor or a bare expansion.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.
        scoring : {"accuracy", "balanced_accuracy", "r2", "mse"}, default=None
            The measure: share of right labels, the mean of these shares over the classes, coefficient of
            determination, or the mean squared error with its sign turned (larger is better). None is
            "accuracy" where there are labels, else "r2".
        sample_weight : array-like of shape (n,), default=None
            What each row counts in the score; None is 1 for each.

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
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,) or (n, q)
            Labels or numbers, see `scores`.
        scoring : {"accuracy", "balanced_accuracy", "r2", "mse"}, default=None
            See `scores`.
        sample_weight : array-like of shape (n,), default=None
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
        """How far the compressed models answer as the full one does; no labels are needed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.

        Returns
        -------
        ndarray of shape (len(sizes),)
            Share of rows with the full model's label; where there are no labels, R^2 against its outputs.
        """
        return self.scores(X, self._full_answers(rows_for(self.model, X)), sizes)

    def _full_answers(self, rows: Any) -> Any:
        outputs = self.expansion._evaluate(rows, self.n_jobs)
        if isinstance(self.model, ExpansionClassifier):
            return self.model.classes_[self.model.decode(outputs)]
        return self.model.inside(outputs) if isinstance(self.model, ExpansionDetector) else outputs

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
        return without_kind(self[size]).nbytes

    def microseconds(self, X: ArrayLike, size: int) -> float:
        """Measured time of a prediction, a row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows that are predicted together, at most 2000 of them; one row gives the latency.
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
        expansion = without_kind(self[size])
        return microseconds_per_row(lambda some: expansion._evaluate(some, self.n_jobs), rows)

    def select(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        max_loss: float | None = None,
        *,
        min_agreement: float | None = None,
        max_bytes: int | None = None,
        max_microseconds: float | None = None,
        scoring: str | None = None,
        sample_weight: ArrayLike | None = None,
        confidence: float = 0.95,
        strict: bool = False,
    ) -> Any:
        """Choose a size.

        With a demand on quality (`max_loss`, `min_agreement`) the smallest size that meets it: from the
        largest on, sizes a tenth smaller each are judged on the rows, both models on each row, until one
        loses too much beyond doubt; a size that loses more than smaller ones is taken together with them
        (isotonic regression), so that no lucky or unlucky size decides. What is promised of other rows is
        the ``loss_bound_`` of the model. With limits only (`max_bytes`, `max_microseconds`) the largest size
        within them, or if `y` is given the one that scores best. With neither, ``max_loss=0.003``. A size
        that gives all rows one class where the full model does not is never good enough.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), default=None
            Rows that neither training nor compression has seen; on rows of the training the full model does
            better than it is, and more vectors are kept than are needed. Not needed for `max_bytes`.
        y : array-like of shape (n,) or (n, q), default=None
            Their labels or numbers, see `scores`. Needed for `max_loss`.
        max_loss : float, default=None
            Largest difference of the scores, not negative; for accuracies 0.003 is 0.3 percent points.
        min_agreement : float, default=None
            Least share of rows with the full model's label, between 0 and 1; without labels, least R^2
            against the full model's outputs.
        max_bytes : int, default=None
            Most bytes of the model's arrays.
        max_microseconds : float, default=None
            Most microseconds a row, when all rows of X (2000 at most) are predicted together on this machine.
            A line through some measured sizes proposes a size, and what it proposes is measured.
        scoring : {"accuracy", "balanced_accuracy", "r2", "mse"}, default=None
            Measure of the loss, see `scores`. None is "accuracy" for a model that is known to be trained
            without weights or where `sample_weight` is given, "balanced_accuracy" for other models with
            labels, else "r2".
        sample_weight : array-like of shape (n,), default=None
            What each row counts in the loss and in the agreement; None is 1 for each.
        confidence : float, default=0.95
            How sure the promise is.
        strict : bool, default=False
            Whether the promise itself must keep to the demand, not only the loss as measured.

        Returns
        -------
        ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
            The model, as ``path[size]`` gives it; all but the last with a ``loss_bound_``, see
            `svmarrow.models.LossBound`.

        Raises
        ------
        ValueError
            If no size on the path is good enough or small enough, or the input does not fit.

        Warns
        -----
        svmarrow.exceptions.SizeWarning
            If every size within the limits gives all rows one class where the full model does not.
        """
        demands = {
            "max_loss": max_loss,
            "min_agreement": min_agreement,
            "max_bytes": max_bytes,
            "max_microseconds": max_microseconds,
        }
        check({**demands, "confidence": confidence, "strict": strict}, SELECTION_RULES)
        if all(demand is None for demand in demands.values()):
            max_loss = 0.003
        for name, needs in (("max_loss", y), ("min_agreement", X), ("max_microseconds", X)):
            if needs is None and (max_loss if name == "max_loss" else demands[name]) is not None:
                raise ValueError(f"{name} needs {'X and y' if name == 'max_loss' else 'X'}")
        limit, within = self.within(X, max_bytes, max_microseconds)
        if max_loss is None and min_agreement is None:
            if X is None or y is None:
                return self[limit]
            sizes = [size for size in self.sizes if size <= limit]
            judge = Judge(self.model, X, y, scoring, self.n_jobs, sample_weight)
            together = max(TOGETHER, MOST_MERITS // judge.n)
            levels = self._merits([judge], sizes[::-1], together)
            losses = [(judge.loss(one), size) for size, (one,) in levels]
            best = self[min(losses)[1]]
            warn_if_constant(self.model, best, judge.rows, within.removeprefix(" within "), self.n_jobs)
            return promised(best, judge.promise_of(best, confidence, len(sizes)))
        if max_loss is None and scoring is not None:
            raise no_use_of_scoring(scoring)
        asked = demands_of(self.model, X, y, max_loss, min_agreement, scoring, self.n_jobs, sample_weight)
        error = 1.0 - confidence
        descent = Descent(asked, error)
        descent.through(self.levels([demand.judge for demand in asked], limit))
        found = descent.promised if strict else descent.measured
        if found is None:
            raise ValueError(
                f"{self._refused(asked, max_loss, min_agreement, limit, error)}{within}; {REMEDY}"
            )
        size, merits = found
        tests = 1 if strict else len(self.looked_at(limit))
        judge, most = asked[0]
        return promised(self[size], judge.promise(merits[0], confidence, most, tests))

    def within(
        self, X: ArrayLike | None, max_bytes: int | None, max_microseconds: float | None
    ) -> tuple[int, str]:
        """The largest size within limits, and what is said of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or None
            Rows that are predicted together to measure the time.
        max_bytes : int or None
            Most bytes.
        max_microseconds : float or None
            Most microseconds a row.

        Returns
        -------
        size : int
            The size.
        text : str
            Empty without limits.

        Raises
        ------
        ValueError
            If the smallest size is above them.
        """
        limit, within = self.sizes[-1], ""
        if max_bytes is not None:
            limit, within = self._within_bytes(max_bytes), f" within max_bytes={max_bytes}"
        if max_microseconds is not None and X is not None:
            rows = X

            def measure(size: int) -> float:
                return self.microseconds(rows, max(self.sizes[0], self._largest(size)))

            limit = self._largest(largest_within(max_microseconds, limit, measure)[0])
            if limit == 0:
                raise ValueError(
                    f"max_microseconds={max_microseconds:g} is not reached by {self.sizes[0]} vectors"
                )
            within += f" within max_microseconds={max_microseconds:g}"
        return limit, within

    def looked_at(self, limit: int) -> list[int]:
        """The sizes up to a limit that may be judged, decreasing."""
        return sizes_to_look_at([size for size in self.sizes if size <= limit])

    def levels(self, judges: Sequence[Judge], limit: int) -> Iterator[tuple[int, list[NDArray[np.float64]]]]:
        """Sizes up to a limit, decreasing, with what they are on the rows of each judge.

        Parameters
        ----------
        judges : sequence of Judge
            The rows.
        limit : int
            The largest size.

        Returns
        -------
        iterator of (int, list of ndarray of shape (n,))
            The sizes, and for each judge `Judge.of_sizes` of them.
        """
        return self._merits(judges, self.looked_at(limit))

    def _merits(
        self, judges: Sequence[Judge], sizes: Sequence[int], together: int = TOGETHER
    ) -> Iterator[tuple[int, list[NDArray[np.float64]]]]:
        """Decreasing sizes with what they are on the rows of each judge."""
        for start in range(0, len(sizes), together):
            group = sizes[start : start + together][::-1]
            width = self.expansion.n_outputs
            merits = [judge.of_sizes(self._outputs, group, width) for judge in judges]
            for place in reversed(range(len(group))):
                yield group[place], [one[place] for one in merits]

    def _refused(
        self,
        asked: Sequence[Demand],
        max_loss: float | None,
        min_agreement: float | None,
        limit: int,
        error: float,
    ) -> str:
        """Why no size was found."""
        named = [("max_loss", max_loss), ("min_agreement", min_agreement)]
        (size, merits), *_ = self.levels([demand.judge for demand in asked], limit)
        said = []
        for (name, value), demand, one in zip(
            [pair for pair in named if pair[1] is not None], asked, merits, strict=True
        ):
            if np.isinf(one).any():
                said.append(
                    f"{name}={value:g} is not reached: {size} vectors, the most that were tried, give all "
                    f"{demand.judge.n} rows one class, which the full model does not"
                )
                continue
            said.append(
                f"{name}={value:g} is not reached: {size} vectors, the most that were tried, lose "
                f"{demand.judge.loss(one):.4f} of {demand.judge.measure} on {demand.judge.n} rows, and "
                f"{demand.judge.bound(one, error):.4f} at most with confidence {1.0 - error:g}"
            )
        return "; ".join(said)

    def _largest(self, most: int) -> int:
        """The largest size that is not above `most`, 0 where there is none."""
        return max((size for size in self.sizes if size <= most), default=0)

    def _within_bytes(self, most: int) -> int:
        sizes = [size for size in self.sizes if self.nbytes(size) <= most]
        if not sizes:
            least = self.sizes[0]
            raise ValueError(f"max_bytes={most} is less than {least} vectors need: {self.nbytes(least)}")
        return sizes[-1]

    def _drawn(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        return {
            "full_size": self.expansion.n_vectors,
            "full_score": self.full_score(X, y),
            "score_name": "accuracy" if decides(self.model) else "R^2",
        }
