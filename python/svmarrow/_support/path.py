"""A path of sizes: the models of several sizes that one fit or one compression gives.

Whoever has many sizes at hand is asked the same questions: which sizes, the model of one, how well each does,
the smallest that is good enough, a picture. `SizePath` asks them once; a family says how a model is made and
how its sizes are scored together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from svmarrow._support.parameters import integer
from svmarrow._support.plotting import new_axes
from svmarrow._support.saving import Savable
from svmarrow._support.size_accuracy import SizeAccuracyDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["SizePath", "scoring_chunks"]

SCORING_BYTES = 64 << 20
"""Outputs of all sizes held at once while scoring."""


class SizePath(Savable, ABC):
    """Models of several sizes out of one run.

    ``path[n]`` is the model with n vectors for each n of ``path.sizes``, ready to predict; ``len(path)`` is
    how many models there are, and iteration goes through them from the smallest to the largest.

    Attributes
    ----------
    order : ndarray of int or None
        Which candidates were chosen, in the order of the choice, so that a size has the first ones; None
        where every size has vectors of its own.
    residual_norms : ndarray or None
        How far the model of each size is from what it approximates, from no vectors at all on; None where
        nothing is approximated but the targets.
    """

    order: NDArray[np.int64] | None = None
    residual_norms: NDArray[np.float64] | None = None

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """The sizes, increasing; a `range` where none is missing."""

    @abstractmethod
    def _model(self, size: int) -> Any:
        """The model of one of the sizes."""

    @abstractmethod
    def scores(self, X: ArrayLike, y: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Score of each size on rows with known answers; None means all sizes."""

    @abstractmethod
    def select(self, X: ArrayLike, y: ArrayLike, max_loss: float) -> Any:
        """The smallest model whose score is at most `max_loss` below the reference."""

    @abstractmethod
    def _drawn(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        """What a picture says beside the sizes and scores: arguments of `SizeAccuracyDisplay`."""

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Any]:
        return map(self._model, self.sizes)

    def __getitem__(self, size: int) -> Any:
        """Model with so many vectors.

        Parameters
        ----------
        size : int
            One of `sizes`.

        Returns
        -------
        object
            The fitted model.

        Raises
        ------
        TypeError
            If the size is no integer.
        IndexError
            If there is no such size.
        """
        return self._model(self._checked_size(size))

    def _checked_size(self, size: Any) -> int:
        rule = integer()
        if not rule.holds(size):
            raise TypeError(f"size={size!r} is not allowed: it must be {rule.text}")
        if int(size) not in self.sizes:
            raise IndexError(f"size={size} is not on this path: it has the sizes {self._listed_sizes()}")
        return int(size)

    def _listed_sizes(self) -> str:
        if isinstance(self.sizes, range):
            return f"{self.sizes[0]} to {self.sizes[-1]}"
        return ", ".join(map(str, self.sizes))

    def plot(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ax: Any = None,
        *,
        sizes: Sequence[int] | None = None,
        chosen: int | None = None,
        baseline: tuple[ArrayLike, ArrayLike] | None = None,
        **line_options: Any,
    ) -> SizeAccuracyDisplay:
        """Draw the error against the number of vectors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,) or (n, q)
            Labels or targets.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        sizes : sequence of int, default=None
            Which sizes; None means all.
        chosen : int, default=None
            A size to point out.
        baseline : (array-like of int, array-like), default=None
            Sizes and scores of other machines to compare with, as
            `svmarrow.reduced_set.subsample_baseline` gives them.
        **line_options : Any
            Passed to matplotlib's ``plot`` for the curve.

        Returns
        -------
        SizeAccuracyDisplay
            With ``ax_`` and ``figure_``.

        Raises
        ------
        ImportError
            Without matplotlib.
        ValueError
            If no size has a vector.
        """
        ax = new_axes(ax)
        drawn = [size for size in sorted(set(self.sizes if sizes is None else sizes)) if size > 0]
        if not drawn:
            raise ValueError("this path has no vectors: there is nothing to draw")
        others = (None, None) if baseline is None else baseline
        display = SizeAccuracyDisplay(
            drawn,
            self.scores(X, y, drawn),
            chosen=chosen,
            baseline_sizes=others[0],
            baseline_scores=others[1],
            **self._drawn(X, y),
        )
        return display.plot(ax=ax, **line_options)


def scoring_chunks(n_rows: int, numbers_per_row: int) -> Iterator[slice]:
    """Parts of the rows so small that the outputs of all sizes on one fit into memory."""
    step = max(1, SCORING_BYTES // (8 * max(1, numbers_per_row)))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))
