"""The decision boundary of a classifier of two features, with its vectors: `DecisionVectorsDisplay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.decoding import label_indices
from svmarrow._support.plotting import finish, new_axes, pyplot
from svmarrow._support.rows import as_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import ArrayLike, NDArray

__all__ = ["DecisionVectorsDisplay"]

#: Width and height of a new figure, in inches.
SIZE = (5.2, 4.6)
#: Options of the regions.
SURFACE = {"plot_method": "contourf", "alpha": 0.2}


class DecisionVectorsDisplay:
    """Regions of a classifier of two features and its vectors, as in figure 2 of [1]_.

    `from_estimator` creates one with scikit-learn's `DecisionBoundaryDisplay`.

    Parameters
    ----------
    boundary : sklearn.inspection.DecisionBoundaryDisplay
        The predicted classes on a grid.
    vectors : ndarray of shape (n_vectors, 2)
        The vectors of the model.
    full_boundary : sklearn.inspection.DecisionBoundaryDisplay, default=None
        The boundary of the model that was compressed.
    X : ndarray of shape (n_samples, 2), default=None
        Samples to draw.
    y : ndarray of int of shape (n_samples,), default=None
        Class index of each sample; -1 for labels that are unknown to the model.
    class_names : list of str, default=None
        Names in the legend.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    vectors_ : matplotlib.collections.PathCollection
        The vectors as drawn.

    References
    ----------
    .. [1] Z. Xu, J. Gardner, S. Tyree and K. Weinberger, "Compressed support vector machines", 2015.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from svmarrow import SVC, compress
    >>> from svmarrow.inspection import DecisionVectorsDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> full = SVC(gamma=2).fit(X, y)
    >>> display = DecisionVectorsDisplay.from_estimator(compress(full, n_vectors=8), X, y, full=full)
    >>> display.vectors.shape
    (8, 2)
    """

    vectors_: PathCollection
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        boundary: Any,
        vectors: NDArray[np.float64],
        *,
        full_boundary: Any = None,
        X: NDArray[np.float64] | None = None,
        y: NDArray[np.int64] | None = None,
        class_names: list[str] | None = None,
    ) -> None:
        self.boundary = boundary
        self.vectors = vectors
        self.full_boundary = full_boundary
        self.X = X
        self.y = y
        self.class_names = class_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        full: Any = None,
        grid_resolution: int = 200,
        eps: float = 0.3,
        ax: Any = None,
        **surface_options: Any,
    ) -> DecisionVectorsDisplay:
        """Evaluate a fitted classifier on a grid and draw it.

        Parameters
        ----------
        estimator : object
            A fitted classifier of two features that has vectors: any of svmarrow, such as a compressed one,
            or a support vector machine of scikit-learn.
        X : {array-like, sparse matrix} of shape (n_samples, 2)
            Samples; they are drawn if `y` is given, and determine the borders of the grid.
        y : array-like of shape (n_samples,), default=None
            Their labels.
        full : object, default=None
            The model that was compressed: its boundary is drawn too.
        grid_resolution : int, default=200
            Points of the grid along each side.
        eps : float, default=0.3
            Distance from the samples to the borders of the grid.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **surface_options : Any
            Passed to matplotlib's ``contourf``.

        Returns
        -------
        DecisionVectorsDisplay
            With ``ax_`` and ``figure_``.

        Raises
        ------
        ValueError
            If X does not have two features.
        TypeError
            If the model is not a classifier, or has no vectors.
        ImportError
            If matplotlib is not installed.
        """
        pyplot()
        from sklearn.inspection import DecisionBoundaryDisplay

        rows = _dense(as_rows(X))
        if rows.shape[1] != 2:
            raise ValueError(f"X has {rows.shape[1]} features: a plot needs 2")
        vectors = _vectors(estimator, "estimator")
        # A model that was fitted with feature names needs a DataFrame.
        given = X if hasattr(X, "iloc") else rows
        ax = new_axes(ax, SIZE)

        def on_grid(model: Any, **options: Any) -> Any:
            grid = {"response_method": "predict", "grid_resolution": grid_resolution, "eps": eps, "ax": ax}
            levels = np.arange(len(model.classes_) + 1) - 0.5
            return DecisionBoundaryDisplay.from_estimator(model, given, levels=levels, **grid, **options)

        full_boundary = None
        if full is not None:
            _vectors(full, "full")
            full_boundary = on_grid(full, plot_method="contourf", alpha=0.0)
        display = cls(
            on_grid(estimator, **{**SURFACE, **surface_options}),
            vectors,
            full_boundary=full_boundary,
            X=None if y is None else rows,
            y=None if y is None else label_indices(np.asarray(y), estimator.classes_),
            class_names=[str(label) for label in estimator.classes_],
        )
        return display._finish(ax)

    def plot(self, ax: Any = None, **surface_options: Any) -> DecisionVectorsDisplay:
        """Draw regions, boundaries, samples and vectors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **surface_options : Any
            Passed to matplotlib's ``contourf``.

        Returns
        -------
        DecisionVectorsDisplay
            This object.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(ax, SIZE)
        levels = np.arange(len(self.class_names or ("", "")) + 1) - 0.5
        self.boundary.plot(ax=ax, **{"levels": levels, **SURFACE, **surface_options})
        return self._finish(ax)

    def _finish(self, ax: Any) -> DecisionVectorsDisplay:
        """Draws samples, lines and vectors above the regions."""
        colours = self.boundary.surface_.get_facecolor()[:, :3]
        names = self.class_names or []
        if self.X is not None and self.y is not None:
            for k, name in enumerate(names):
                samples = self.X[self.y == k]
                ax.scatter(
                    *samples.T,
                    s=7,
                    color=[colours[k % len(colours)]],
                    alpha=0.7,
                    linewidths=0,
                    label=name,
                    zorder=2,
                )
        if self.full_boundary is not None:
            _draw_lines(ax, self.full_boundary, "#9a9a9a", 2.2, "full model")
        _draw_lines(ax, self.boundary, "#202020", 1.4, "boundary")
        circles = {"s": 46, "facecolors": "none", "edgecolors": "black", "linewidths": 1.3, "zorder": 3}
        self.vectors_ = ax.scatter(*self.vectors.T, label=f"{len(self.vectors):,} vectors", **circles)
        finish(ax, fontsize=8, framealpha=0.85)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_lines(ax: Any, boundary: Any, colour: str, width: float, name: str) -> None:
    for k in np.unique(boundary.response):
        inside = (boundary.response == k).astype(float)
        if inside.min() < inside.max():
            ax.contour(boundary.xx0, boundary.xx1, inside, levels=[0.5], colors=colour, linewidths=width)
    ax.plot([], [], color=colour, linewidth=width, label=name)


def _vectors(model: Any, name: str) -> NDArray[np.float64]:
    """The vectors (m, 2) of a fitted classifier; a TypeError for what is none."""
    expansion = getattr(model, "expansion_", None)
    vectors = getattr(model, "support_vectors_", None) if expansion is None else expansion.vectors
    if vectors is None or not hasattr(model, "classes_"):
        raise TypeError(f"{name}={model!r} is not allowed: it must be a fitted classifier with vectors")
    return _dense(vectors)


def _dense(rows: Any) -> NDArray[np.float64]:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
