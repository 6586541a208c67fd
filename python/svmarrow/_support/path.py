"""Base class of paths: models of several sizes from one fit or one compression.

`SizePath` provides indexing, iteration and the plot of the scores; a subclass creates the model of a size and
scores all sizes together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from svmarrow._support.displays import SizeAccuracyDisplay, new_axes
from svmarrow._support.parameters import integer
from svmarrow._support.saving import save_method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["SizePath", "scoring_chunks"]

MAX_SCORING_BYTES = 64 << 20
"""Maximum number of bytes of the outputs of all sizes while scoring."""


class SizePath(ABC):
    """Models of several sizes from one run.

    ``path[n]`` is the model with n vectors for each n of ``path.sizes``, ready to predict; ``len(path)`` is
    the number of models, and iteration yields them from the smallest to the largest.

    Attributes
    ----------
    order : ndarray of int or None
        Indices of the chosen candidates in the order of the choice; a model of n vectors has the first n.
        None if every size has its own vectors.
    residual_norms : ndarray or None
        Distance of the model of each size, from 0 vectors on, to the approximated model; None if only the
        targets are approximated.
    """

    order: NDArray[np.int64] | None = None
    residual_norms: NDArray[np.float64] | None = None

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """Sizes in increasing order; a `range` if none is missing."""

    @abstractmethod
    def _model(self, size: int) -> Any:
        """Returns the model of one of the sizes."""

    @abstractmethod
    def scores(self, X: ArrayLike, y: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Returns the score of each size on the given samples; None means all sizes."""

    @abstractmethod
    def select(self, X: ArrayLike, y: ArrayLike, max_loss: float) -> Any:
        """Returns the smallest model whose score is at most `max_loss` below the reference."""

    @abstractmethod
    def _plot_arguments(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        """Returns further arguments of `SizeAccuracyDisplay`."""

    save: ClassVar[Callable[..., None]] = save_method

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Any]:
        return map(self._model, self.sizes)

    def __getitem__(self, size: int) -> Any:
        """Return the model with `size` vectors.

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
            If the size is not an integer.
        IndexError
            If the path does not have the size.
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
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        sizes : sequence of int, default=None
            Sizes to draw; None means all.
        chosen : int, default=None
            A size to highlight.
        baseline : (array-like of int, array-like), default=None
            Sizes and scores of other models to compare with, as
            `svmarrow.reduced_set.subsample_baseline` returns them.
        **line_options : Any
            Passed to matplotlib's ``plot`` for the curve.

        Returns
        -------
        SizeAccuracyDisplay
            With ``ax_`` and ``figure_``.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If no model has a vector.
        """
        ax = new_axes(ax)
        drawn = [size for size in sorted(set(self.sizes if sizes is None else sizes)) if size > 0]
        if not drawn:
            raise ValueError("the models of this path have no vectors: there is nothing to draw")
        others = (None, None) if baseline is None else baseline
        display = SizeAccuracyDisplay(
            drawn,
            self.scores(X, y, drawn),
            chosen=chosen,
            baseline_sizes=others[0],
            baseline_scores=others[1],
            **self._plot_arguments(X, y),
        )
        return display.plot(ax=ax, **line_options)


def scoring_chunks(n_rows: int, numbers_per_row: int) -> Iterator[slice]:
    """Yields slices of rows so small that the outputs of all sizes fit into `MAX_SCORING_BYTES`."""
    step = max(1, MAX_SCORING_BYTES // (8 * max(1, numbers_per_row)))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))
