"""The decision boundary of a classifier of two columns, with its vectors: `DecisionVectorsDisplay`.

Of a classifier it asks what every fitted one of a kernel machine has: `predict`, `classes_` and the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.decoding import label_indices
from svmarrow._support.plotting import finish, new_axes, pyplot
from svmarrow._support.rows import as_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["DecisionVectorsDisplay"]

SIZE = (5.2, 4.6)
"""Width and height of a new figure, in inches."""
COLOURS = ("#1f5f8b", "#c8501e", "#4b8b3b", "#8a4f9e", "#b08a1e", "#5a5a5a", "#2a9d8f", "#9b2226")


class DecisionVectorsDisplay:
    """Regions of a classifier of two columns and its vectors, as in figure 2 of [1]_.

    Make one with `from_estimator`; the constructor takes numbers that are already there.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (grid_resolution, grid_resolution)
        Coordinates of a grid.
    response : ndarray of int of shape (grid_resolution, grid_resolution)
        Index of the class at each point.
    vectors : ndarray of shape (m, 2)
        The model's vectors.
    full_response : ndarray of int of shape (grid_resolution, grid_resolution), default=None
        The same for the model that was compressed.
    X : ndarray of shape (n, 2), default=None
        Rows to draw.
    y : ndarray of int of shape (n,), default=None
        The class index of each; -1 for labels that the model does not know.
    class_names : list of str, default=None
        For the legend.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.
    surface_ : matplotlib.contour.QuadContourSet
        The regions.
    vectors_ : matplotlib.collections.PathCollection
        The vectors.

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
    >>> svc = SVC(gamma=2).fit(X, y)
    >>> display = DecisionVectorsDisplay.from_estimator(compress(svc, n_vectors=6), X, y, full=svc)
    >>> display.vectors.shape
    (6, 2)
    """

    def __init__(
        self,
        xx0: NDArray[np.float64],
        xx1: NDArray[np.float64],
        response: NDArray[np.int64],
        vectors: NDArray[np.float64],
        *,
        full_response: NDArray[np.int64] | None = None,
        X: NDArray[np.float64] | None = None,
        y: NDArray[np.int64] | None = None,
        class_names: list[str] | None = None,
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.response = response
        self.vectors = vectors
        self.full_response = full_response
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
            A fitted classifier of two columns that says which its vectors are: any of svmarrow, a compressed
            one for example, or a support vector machine of scikit-learn.
        X : {array-like, sparse matrix} of shape (n, 2)
            Rows; they are drawn if `y` is given, and give the grid its borders.
        y : array-like of shape (n,), default=None
            Their labels.
        full : object, default=None
            The model that was compressed: its boundary is drawn too.
        grid_resolution : int, default=200
            Points of the grid along each side.
        eps : float, default=0.3
            How far the grid goes beyond the rows.
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
            If there are not two columns.
        TypeError
            If the model does not classify, or does not say which its vectors are.
        ImportError
            Without matplotlib.
        """
        pyplot()
        rows = _dense(as_rows(X))
        if rows.shape[1] != 2:
            raise ValueError(f"X has {rows.shape[1]} columns: a picture needs 2")
        vectors = _vectors(estimator, "estimator")
        if full is not None:
            _vectors(full, "full")
        low, high = rows.min(axis=0) - eps, rows.max(axis=0) + eps
        sides = [np.linspace(low[k], high[k], grid_resolution) for k in range(2)]
        xx0, xx1 = np.meshgrid(*sides)
        grid: Any = np.column_stack([xx0.ravel(), xx1.ravel()])
        frame: Any = X
        if hasattr(frame, "iloc"):
            grid = type(frame)(grid, columns=frame.columns)  # a model that knows names asks for them

        def classes_on_grid(one: Any) -> NDArray[np.int64]:
            return label_indices(one.predict(grid), estimator.classes_).reshape(xx0.shape)

        display = cls(
            xx0,
            xx1,
            classes_on_grid(estimator),
            vectors,
            full_response=None if full is None else classes_on_grid(full),
            X=None if y is None else rows,
            y=None if y is None else label_indices(np.asarray(y), estimator.classes_),
            class_names=[str(label) for label in estimator.classes_],
        )
        return display.plot(ax=ax, **surface_options)

    def plot(self, ax: Any = None, **surface_options: Any) -> DecisionVectorsDisplay:
        """Draw regions, boundaries, rows and vectors.

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
            Without matplotlib.
        """
        ax = new_axes(ax, SIZE)
        names = self.class_names or [str(k) for k in range(int(self.response.max()) + 1)]
        colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
        levels = np.arange(len(names) + 1) - 0.5
        options = {"colors": colours, "alpha": 0.16, **surface_options}
        self.surface_ = ax.contourf(self.xx0, self.xx1, self.response, levels=levels, **options)
        if self.X is not None and self.y is not None:
            for k, (name, colour) in enumerate(zip(names, colours, strict=True)):
                rows = self.X[self.y == k]
                if len(rows):
                    ax.scatter(*rows.T, s=7, color=colour, alpha=0.55, linewidths=0, label=name, zorder=2)
        if self.full_response is not None:
            self._boundary(ax, self.full_response, "#9a9a9a", 2.2, "full model")
        self._boundary(ax, self.response, "#202020", 1.4, "boundary")
        label = f"{len(self.vectors):,} vectors"
        self.vectors_ = ax.scatter(
            *self.vectors.T,
            s=46,
            facecolors="none",
            edgecolors="black",
            linewidths=1.3,
            label=label,
            zorder=3,
        )
        ax.set_xlim(self.xx0.min(), self.xx0.max())
        ax.set_ylim(self.xx1.min(), self.xx1.max())
        finish(ax, fontsize=8, framealpha=0.85)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _boundary(self, ax: Any, response: NDArray[np.int64], colour: str, width: float, name: str) -> None:
        for k in np.unique(response):
            inside = (response == k).astype(float)
            if inside.min() < inside.max():
                ax.contour(self.xx0, self.xx1, inside, levels=[0.5], colors=colour, linewidths=width)
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
