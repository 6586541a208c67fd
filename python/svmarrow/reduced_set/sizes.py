"""What the paths of compressed models share: scores beside those of the full model, the choice of a size.

Outputs (sizes, rows, q) come a chunk of rows at a time, so that
memory is bounded whatever the number of rows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import check, either, integer, none, real
from svmarrow._support.path import SizePath, scoring_chunks
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.reduced_set.cost import largest_within, microseconds_per_row
from svmarrow.reduced_set.score import Score, decides, rows_for, without_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import ExpansionModel

__all__ = ["SELECTION_RULES", "ReducedPath"]

FIRST_SIZES = 32
"""Sizes that a search for the smallest scores together at first."""

SELECTION_RULES = {
    "max_loss": either(none, real(least=0.0)),
    "min_agreement": either(none, real(least=0.0, most=1.0)),
    "max_bytes": either(none, integer(least=1)),
    "max_microseconds": either(none, real(above=0.0)),
}


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
        scoring : {"accuracy", "r2", "mse"}, default=None
            The measure: share of right labels, coefficient of determination, or the mean squared error with
            its sign turned (larger is better). None is "accuracy" where there are labels, else "r2".

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
        score = Score(self.model, rows, y, len(increasing), scoring)
        for chunk in scoring_chunks(
            rows.shape[0], len(increasing) * self.expansion.n_outputs + increasing[-1]
        ):
            score.add(chunk, self._outputs(rows[chunk], increasing))
        by_size = dict(zip(increasing, score.result(), strict=True))
        return np.array([by_size[size] for size in asked])

    def full_score(self, X: ArrayLike, y: ArrayLike, *, scoring: str | None = None) -> float:
        """Score of the model that was compressed, in the measure of `scores`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,) or (n, q)
            Labels or numbers, see `scores`.
        scoring : {"accuracy", "r2", "mse"}, default=None
            See `scores`.

        Returns
        -------
        float
            The score.
        """
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, 1, scoring)
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
    ) -> Any:
        """Choose a size.

        With a demand on quality (`max_loss`, `min_agreement`) the smallest size that meets it. With limits
        only (`max_bytes`, `max_microseconds`) the largest size within them, or if `y` is given the one that
        scores best. With neither, ``max_loss=0.003``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), default=None
            Rows that neither training nor compression has seen. Not needed for `max_bytes`.
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
        scoring : {"accuracy", "r2", "mse"}, default=None
            Measure of the loss, see `scores`.

        Returns
        -------
        ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
            The model, as ``path[size]`` gives it.

        Raises
        ------
        ValueError
            If no size on the path is good enough or small enough, or the input does not fit.
        """
        demands = {
            "max_loss": max_loss,
            "min_agreement": min_agreement,
            "max_bytes": max_bytes,
            "max_microseconds": max_microseconds,
        }
        check(demands, SELECTION_RULES)
        if all(demand is None for demand in demands.values()):
            max_loss = 0.003
        for name, needs in (("max_loss", y), ("min_agreement", X), ("max_microseconds", X)):
            if needs is None and (max_loss if name == "max_loss" else demands[name]) is not None:
                raise ValueError(f"{name} needs {'X and y' if name == 'max_loss' else 'X'}")
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
        if max_loss is None and min_agreement is None:
            if X is None or y is None:
                return self[limit]
            sizes = [size for size in self.sizes if size <= limit]
            return self[sizes[int(self.scores(X, y, sizes, scoring=scoring).argmax())]]
        return self._smallest(X, y, max_loss, min_agreement, scoring, limit, within)

    def _largest(self, most: int) -> int:
        """The largest size that is not above `most`, 0 where there is none."""
        return max((size for size in self.sizes if size <= most), default=0)

    def _within_bytes(self, most: int) -> int:
        sizes = [size for size in self.sizes if self.nbytes(size) <= most]
        if not sizes:
            least = self.sizes[0]
            raise ValueError(f"max_bytes={most} is less than {least} vectors need: {self.nbytes(least)}")
        return sizes[-1]

    def _smallest(
        self,
        X: Any,
        y: Any,
        max_loss: float | None,
        min_agreement: float | None,
        scoring: str | None,
        limit: int,
        within: str,
    ) -> Any:
        """The smallest size that meets the demands."""
        demands: list[tuple[str, Any, float, str | None]] = []
        if max_loss is not None:
            full = self.full_score(X, y, scoring=scoring)
            text = f"max_loss={max_loss:g} is not reached: the full model scores {full:.4f}"
            # One part in 10^12 keeps a loss of exactly max_loss from falling to rounding.
            demands.append((text, y, full - max_loss - 1e-12, scoring))
        if min_agreement is not None:
            answers = self._full_answers(rows_for(self.model, X))
            text = f"min_agreement={min_agreement:g} is not reached"
            demands.append((text, answers, min_agreement - 1e-12, None))
        best, start = [(-np.inf, 0)] * len(demands), 1
        while start <= limit:
            # Small sizes are cheap, and the search ends at the first that is good enough. Doubling the ranges
            # keeps the worst case within twice the cost of scoring all sizes at once.
            last = min(limit, max(FIRST_SIZES, 2 * start))
            sizes = [size for size in self.sizes if start <= size <= last]
            start = last + 1
            if not sizes:
                continue
            enough = np.ones(len(sizes), dtype=bool)
            for number, (_, answers, least, measure) in enumerate(demands):
                scores = self.scores(X, answers, sizes, scoring=measure)
                enough &= scores >= least
                best[number] = max(best[number], (float(scores.max()), sizes[int(scores.argmax())]))
            if enough.any():
                return self[sizes[int(np.flatnonzero(enough)[0])]]
        said = "; ".join(
            f"{text}, the best of the sizes up to {limit} is {score:.4f} with {size} vectors"
            for (text, *_), (score, size) in zip(demands, best, strict=True)
        )
        raise ValueError(f"{said}{within}; compress with a larger n_vectors or demand less")

    def _drawn(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        return {
            "full_size": self.expansion.n_vectors,
            "full_score": self.full_score(X, y),
            "score_name": "accuracy" if decides(self.model) else "R^2",
        }
