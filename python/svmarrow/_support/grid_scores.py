"""Plot of the scores over a grid of C and gamma: `GridScoresDisplay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.plotting import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray

__all__ = ["GridScoresDisplay"]

CURVE, CHOICE = "#1f5f8b", "#c8501e"
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
        line = {"color": CURVE, "linewidth": 1.8, "marker": "o", "markersize": 4, **options}
        (self.line_,) = ax.plot(self.Cs, self.scores[0], **line)
        if self.chosen is not None:
            at = int(np.argmin(np.abs(np.log(self.Cs / self.chosen[0]))))
            ax.plot(self.Cs[at], self.scores[0, at], "o", color=CHOICE, markersize=8, zorder=3)
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
                markeredgecolor=CHOICE,
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
