"""Displays: decision boundaries, the scores of a grid, errors against sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.rows import as_rows, dense
from svmarrow._support.training import label_indices

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, QuadMesh
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray


__all__ = [
    "CHOICE",
    "DecisionVectorsDisplay",
    "GridScoresDisplay",
    "SizeAccuracyDisplay",
    "finish",
    "image_axes",
    "new_axes",
    "pyplot",
]


# --- shared code of the plots, which need the extra ``svmarrow[plot]`` ---
# matplotlib is imported when something is drawn, so that importing svmarrow stays fast and needs no
# display.


SIZE = (6.4, 4.0)
"""Width and height of a new figure, in inches."""


def pyplot() -> ModuleType:
    """Imports matplotlib's pyplot; the ImportError names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'svmarrow[plot]'") from error
    return plt


def image_axes() -> Axes:
    """Returns axes on a figure for a file: no window, no entry in pyplot's list of figures."""
    pyplot()
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").subplots()


def new_axes(ax: Any = None, size: tuple[float, float] = SIZE) -> Axes:
    """Returns the given axes, else those of a new figure."""
    plt = pyplot()
    axes: Axes = plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
    return axes


def finish(ax: Any, **legend_options: Any) -> None:
    """Removes the upper and right side of the frame and adds the legend on white."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=True, facecolor="white", edgecolor="none", **legend_options)


# --- the decision boundary of a classifier of two features ---


#: Width and height of a new figure, in inches.
BOUNDARY_SIZE = (5.2, 4.6)
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

        rows = dense(as_rows(X), np.float64)
        if rows.shape[1] != 2:
            raise ValueError(f"X has {rows.shape[1]} features: a plot needs 2")
        vectors = _vectors(estimator, "estimator")
        # A model that was fitted with feature names needs a DataFrame.
        given = X if hasattr(X, "iloc") else rows
        ax = new_axes(ax, BOUNDARY_SIZE)

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
        ax = new_axes(ax, BOUNDARY_SIZE)
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
    return dense(vectors, np.float64)


# --- plot of the scores over a grid of C and gamma: `GridScoresDisplay` ---


GRID_CURVE, GRID_CHOICE = "#1f5f8b", "#c8501e"
#: Range of the colors below the best score, as a multiple of the distance from the best to the median.
_COLOUR_RANGE = 3.0


class GridScoresDisplay:
    """A heat map of the scores of a search, or their curve over C for a kernel without a gamma.

    ``search.plot()`` creates one from the results of a search; the constructor takes any scores. The colors
    distinguish the better points: scores far below the median all have the darkest color. Points without
    a score are white.

    Parameters
    ----------
    scores : array-like of shape (n_gammas, n_Cs)
        Scores, the larger the better; NaN for points without a score.
    Cs : array-like of shape (n_Cs,)
        Values of C in increasing order.
    gammas : array-like of shape (n_gammas,) or None, default=None
        Values of gamma in increasing order; None for a kernel without gamma.
    chosen : tuple of (float, float or None), default=None
        C and gamma to highlight.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    mesh_ : matplotlib.collections.QuadMesh or None
        The heat map.
    line_ : matplotlib.lines.Line2D or None
        The curve of a kernel without gamma.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from svmarrow.model_selection import GridScoresDisplay
    >>> display = GridScoresDisplay([[0.7, 0.9], [0.8, 0.6]], Cs=[1, 10], gammas=[0.1, 1], chosen=(10, 0.1))
    >>> display.plot().ax_.get_xlabel()
    'C'
    """

    gammas: NDArray[np.float64] | None
    mesh_: QuadMesh | None
    line_: Line2D | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        scores: ArrayLike,
        Cs: ArrayLike,
        gammas: ArrayLike | None = None,
        chosen: tuple[float, float | None] | None = None,
    ) -> None:
        self.scores: NDArray[np.float64] = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        self.Cs: NDArray[np.float64] = np.asarray(Cs, dtype=np.float64)
        self.gammas = None if gammas is None else np.asarray(gammas, dtype=np.float64)
        self.chosen = chosen
        expected = (1 if self.gammas is None else self.gammas.size, self.Cs.size)
        if self.scores.shape != expected:
            raise ValueError(
                f"scores have shape {self.scores.shape}: it must be (n_gammas, n_Cs), {expected}"
            )

    def plot(self, ax: Any = None, **options: Any) -> GridScoresDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **options : Any
            Passed to matplotlib's ``pcolormesh``, or to ``plot`` for a kernel without a gamma.

        Returns
        -------
        GridScoresDisplay
            This object.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(ax)
        self.mesh_ = self.line_ = None
        if self.gammas is None:
            self._curve(ax, options)
        else:
            self._map(ax, options)
        ax.set_xscale("log")
        ax.set_xlabel("C")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curve(self, ax: Any, options: dict[str, Any]) -> None:
        line = {"color": GRID_CURVE, "linewidth": 1.8, "marker": "o", "markersize": 4, **options}
        (self.line_,) = ax.plot(self.Cs, self.scores[0], **line)
        if self.chosen is not None:
            at = int(np.argmin(np.abs(np.log(self.Cs / self.chosen[0]))))
            ax.plot(self.Cs[at], self.scores[0, at], "o", color=GRID_CHOICE, markersize=8, zorder=3)
        ax.set_ylabel("mean score")
        ax.grid(visible=True, color="#e3e3e3", linewidth=0.8)

    def _map(self, ax: Any, options: dict[str, Any]) -> None:
        assert self.gammas is not None
        known = self.scores[np.isfinite(self.scores)]
        limits: dict[str, float] = {}
        if known.size:
            best = float(known.max())
            low = max(float(known.min()), best - _COLOUR_RANGE * (best - float(np.median(known))))
            limits = {"vmin": low, "vmax": best} if low < best else {}
        shown = {"cmap": "viridis", "shading": "flat", **limits, **options}
        # A logarithmic axis has no 0: it is drawn one step below the other values.
        gammas = self.gammas.copy()
        if gammas[0] == 0.0:
            gammas[0] = gammas[1] ** 2 / gammas[2] if gammas.size > 2 else (gammas[1:].min(initial=1.0)) / 10
        self.mesh_ = ax.pcolormesh(
            _edges(self.Cs), _edges(gammas), np.ma.masked_invalid(self.scores), **shown
        )
        if self.chosen is not None and self.chosen[1] is not None:
            at = int(np.argmin(np.abs(self.gammas - self.chosen[1])))
            ax.plot(
                self.chosen[0],
                gammas[at],
                "o",
                markersize=9,
                markerfacecolor="none",
                markeredgecolor=GRID_CHOICE,
                markeredgewidth=2.2,
            )
        ax.set_yscale("log")
        ax.set_ylabel("gamma")
        ax.figure.colorbar(self.mesh_, ax=ax, label="mean score")


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the edges of cells around values on a logarithmic axis."""
    logs = np.log(values)
    if logs.size == 1:
        single: NDArray[np.float64] = np.exp(logs[0] + np.array([-0.5, 0.5]))
        return single
    inner = 0.5 * (logs[1:] + logs[:-1])
    first, last = logs[0] - (inner[0] - logs[0]), logs[-1] + (logs[-1] - inner[-1])
    edges: NDArray[np.float64] = np.exp(np.concatenate([[first], inner, [last]]))
    return edges


# --- plot of the error against the number of vectors: `SizeAccuracyDisplay` ---


CURVE, REFERENCE, CHOICE, BASELINE = "#1f5f8b", "#6b6b6b", "#c8501e", "#4b8b3b"


class SizeAccuracyDisplay:
    """Error of a compressed model against its number of vectors.

    ``path.plot(X, y)`` creates one from the scores of a path; the constructor takes any scores.

    Parameters
    ----------
    sizes : array-like of int of shape (n_sizes,)
        Numbers of vectors, increasing.
    scores : array-like of shape (n_sizes,)
        Accuracy of each size, or R^2 for a bare expansion.
    full_size : int, default=None
        Number of vectors of the model that was compressed.
    full_score : float, default=None
        Its score.
    chosen : int, default=None
        A size to highlight.
    score_name : {"accuracy", "R^2"}, default="accuracy"
        Name of the scores. Accuracy is drawn as an error in percent, R^2 as 1 - R^2.
    baseline_sizes : array-like of int of shape (n_baselines,), default=None
        Sizes of models trained on fewer samples, to compare with.
    baseline_scores : array-like of shape (n_baselines,), default=None
        Their scores.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D
        The curve.
    baseline_line_ : matplotlib.lines.Line2D or None
        The curve of the models trained on fewer samples.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from svmarrow.reduced_set import SizeAccuracyDisplay
    >>> display = SizeAccuracyDisplay(
    ...     [1, 10, 100], [0.4, 0.9, 0.98], full_size=900, full_score=0.985, chosen=100
    ... )
    >>> display.plot().ax_.get_xlabel()
    'vectors kept'
    """

    line_: Line2D
    baseline_line_: Line2D | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        sizes: ArrayLike,
        scores: ArrayLike,
        *,
        full_size: int | None = None,
        full_score: float | None = None,
        chosen: int | None = None,
        score_name: str = "accuracy",
        baseline_sizes: ArrayLike | None = None,
        baseline_scores: ArrayLike | None = None,
    ) -> None:
        self.sizes: NDArray[np.int64] = np.asarray(sizes, dtype=np.int64)
        self.scores: NDArray[np.float64] = np.asarray(scores, dtype=np.float64)
        self.full_size = full_size
        self.full_score = full_score
        self.chosen = chosen
        self.score_name = score_name
        self.baseline_sizes = baseline_sizes
        self.baseline_scores = baseline_scores

    def plot(self, ax: Any = None, **line_options: Any) -> SizeAccuracyDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **line_options : Any
            Passed to matplotlib's ``plot`` for the curve.

        Returns
        -------
        SizeAccuracyDisplay
            This object.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(ax)
        percent = self.score_name == "accuracy"
        errors = self._errors(self.scores)
        options = {"color": CURVE, "linewidth": 1.8, "label": "compressed", **line_options}
        (self.line_,) = ax.plot(self.sizes, errors, **options)
        floor = [errors.min()]
        self.baseline_line_ = None
        if self.baseline_sizes is not None and self.baseline_scores is not None:
            others = self._errors(np.asarray(self.baseline_scores, dtype=np.float64))
            (self.baseline_line_,) = ax.plot(
                np.asarray(self.baseline_sizes),
                others,
                color=BASELINE,
                linewidth=1.4,
                linestyle=(0, (1, 1.5)),
                marker="s",
                markersize=3.5,
                label="trained on fewer samples",
            )
            floor.append(others.min())
        if self.full_score is not None:
            full = float(self._errors(np.array([self.full_score]))[0])
            name = "full model" if self.full_size is None else f"full model, {self.full_size:,} vectors"
            ax.axhline(
                full,
                color=REFERENCE,
                linewidth=1.2,
                linestyle=(0, (5, 3)),
                zorder=1.5,
                label=f"{name}: {_text(full, percent)}",
            )
            floor.append(full)
        if self.chosen is not None:
            at = int(np.flatnonzero(self.sizes == self.chosen)[0])
            label = f"chosen, {self.chosen:,} vectors: {_text(errors[at], percent)}"
            ax.plot(self.chosen, errors[at], "o", color=CHOICE, markersize=7, zorder=3, label=label)
        ax.set_xscale("log")
        if min(floor) > 0 and errors.max() > 0:
            ax.set_yscale("log")
            ax.yaxis.set_minor_formatter(_tick_formatter(percent))
        else:
            ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(_tick_formatter(percent))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        largest = self.sizes.max()
        if self.baseline_line_ is not None:
            largest = max(largest, int(np.max(np.asarray(self.baseline_sizes))))
        ax.set_xlim(self.sizes.min(), max(largest, self.sizes.min() + 1))
        ax.set_xlabel("vectors kept")
        ax.set_ylabel("error" if percent else "1 - R^2")
        ax.grid(visible=True, which="major", color="#e3e3e3", linewidth=0.8)
        ax.set_axisbelow(True)
        finish(ax, framealpha=1.0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _errors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        # Differences of accuracies carry rounding of 1e-16, which a logarithmic axis would show.
        return np.round(1.0 - scores, 12)


def _text(value: float, percent: bool) -> str:
    return f"{100 * value:.2f} %" if percent else f"{value:.3g}"


def _tick_formatter(percent: bool) -> Callable[[float, int | None], str]:
    """Returns a formatter that labels the ticks at 1, 2 and 5 of each decade."""

    def text(value: float, _: Any) -> str:
        digit = round(value / 10 ** np.floor(np.log10(value) + 1e-9), 6) if value > 0 else 0.0
        shown = f"{100 * value:.3g} %" if percent else f"{value:.3g}"
        return shown if digit in (0.0, 1.0, 2.0, 5.0) else ""

    return text
