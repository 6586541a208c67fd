"""Pictures of Shapley values: `ShapleyDisplay`. It knows numbers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow._support.displays import new_axes
from svmarrow._support.parameters import check, integer, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ShapleyDisplay"]

_COLOUR, _GREY = "#1f5f8b", "#6b6b6b"
#: Half the height of a row of points, where a row is 1.
_MAX_OFFSET = 0.38
#: Number of bins of equal width in which the points of a row are counted.
_BINS = 60
_RULES = {"kind": one_of("bar", "beeswarm"), "max_display": integer(least=1)}


class ShapleyDisplay:
    """Shapley values of many samples, the players that matter most at the top.

    ``ShapleyValues.plot`` makes one of its own numbers; the constructor takes any.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_players)
        Shapley values of one output.
    feature_names : sequence of str
        Names of the players.
    data : array-like of shape (n_samples, n_players), default=None
        The players' own values, which color the points.
    output_name : str, default=""
        Name of the output.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from svmarrow.inspection import ShapleyDisplay
    >>> display = ShapleyDisplay([[0.1, -2.0], [0.3, 1.0]], ["width", "length"]).plot("bar")
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['length', 'width']
    """

    feature_names: list[str]
    data: NDArray[Any] | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        values: ArrayLike,
        feature_names: Sequence[str],
        data: ArrayLike | None = None,
        *,
        output_name: str = "",
    ) -> None:
        self.values: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
        self.feature_names = list(feature_names)
        self.data = None if data is None else np.asarray(data)
        self.output_name = output_name

    def plot(
        self, kind: Literal["bar", "beeswarm"] = "beeswarm", *, max_display: int = 10, ax: Any = None
    ) -> Self:
        """Draw it.

        Parameters
        ----------
        kind : {"bar", "beeswarm"}, default="beeswarm"
            Mean absolute values, or a point for each sample.
        max_display : int, default=10
            Maximum number of players. The sum of the others is one more row, "and 3 more".
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ShapleyDisplay
            Itself.
        """
        check({"kind": kind, "max_display": max_display}, _RULES)
        means = np.abs(self.values).mean(axis=0)
        order = np.argsort(-means, kind="stable")
        order, hidden = order[:max_display], order[max_display:]
        names = [self.feature_names[player] for player in order]
        others = self.values[:, hidden].sum(axis=1)
        if hidden.size:
            names.append(f"and {hidden.size} more")
        self.ax_ = new_axes(ax, size=(6.4, 1.4 + 0.34 * len(names)))
        self.figure_ = self.ax_.figure
        of = f" of {self.output_name}" if self.output_name else ""
        if kind == "bar":
            lengths = [*means[order], *([np.abs(others).mean()] if hidden.size else [])]
            self.ax_.barh(np.arange(len(names)), lengths, color=_COLOUR)
            self.ax_.set_xlabel(f"mean |Shapley value|{of}")
        else:
            self._points(order)
            if hidden.size:
                self.ax_.scatter(others, order.size + _offsets(others), s=9, color=_GREY, linewidths=0)
            self.ax_.axvline(0.0, color=_GREY, linewidth=0.8, zorder=0)
            self.ax_.set_xlabel(f"Shapley value{of}")
        self.ax_.set_yticks(np.arange(len(names)), names)
        self.ax_.invert_yaxis()
        for side in ("top", "right", "left"):
            self.ax_.spines[side].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        return self

    def _points(self, order: NDArray[np.intp]) -> None:
        points = None
        for row, player in enumerate(order):
            values = self.values[:, player]
            heights = row + _offsets(values)
            ranks = np.full(values.size, np.nan) if self.data is None else _ranks(self.data[:, player])
            known = ~np.isnan(ranks)
            self.ax_.scatter(values[~known], heights[~known], s=9, color=_GREY, linewidths=0)
            if known.any():
                points = self.ax_.scatter(
                    values[known],
                    heights[known],
                    s=9,
                    c=ranks[known],
                    cmap="viridis",
                    vmin=0.0,
                    vmax=1.0,
                    linewidths=0,
                )
        if points is not None:
            bar = self.figure_.colorbar(points, ax=self.ax_, ticks=[0.0, 1.0], aspect=30)
            bar.ax.set_yticklabels(["low", "high"])
            bar.set_label("value of the feature")
            bar.outline.set_visible(False)


def _offsets(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places across a row: points with similar values lie beside each other, symmetrically."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    bins = np.floor((values - low) / max(high - low, np.finfo(float).tiny) * _BINS).astype(int)
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(bins[order]) != 0])
    counts = np.diff(np.r_[starts, order.size])
    place = np.arange(order.size) - np.repeat(starts, counts)
    signed = np.where(place % 2 == 0, place // 2, -(place + 1) // 2)
    offsets = np.empty(order.size)
    offsets[order] = signed / max(1, counts.max(initial=1) // 2) * _MAX_OFFSET
    return offsets


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks of numbers between 0 and 1, ties shared; NaN for missing values."""
    known = ~np.isnan(values)
    unique, places = np.unique(values[known], return_inverse=True)
    ranks = np.full(values.size, np.nan)
    ranks[known] = places / max(1, unique.size - 1)
    return ranks
