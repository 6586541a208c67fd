"""Drawings, in the manner of scikit-learn's displays. They need matplotlib, the extra ``marrow[plot]``.

matplotlib is imported when something is drawn, never before: importing marrow stays fast and needs no
display.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from marrow.classifier import ExpansionClassifier
from marrow.detector import ExpansionDetector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from marrow.reduced_set.path import CompressionPath

__all__ = ["SizeAccuracyDisplay", "image_axes", "new_axes"]

SIZE = (6.4, 4.0)
"""Width and height of a new figure, in inches."""
DECIDES = (ExpansionClassifier, ExpansionDetector)
CURVE, REFERENCE, CHOICE = "#1f5f8b", "#6b6b6b", "#c8501e"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'marrow[plot]'") from error
    return plt


def image_axes() -> Any:
    """Axes on a figure that is for a file alone: no window, no entry in pyplot's list of figures."""
    _pyplot()
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").subplots()


def new_axes(ax: Any = None) -> Any:
    """The axes given, else those of a new figure."""
    plt = _pyplot()
    return plt.subplots(figsize=SIZE, layout="constrained")[1] if ax is None else ax


class SizeAccuracyDisplay:
    """The price of each size of a compressed model: error against the number of vectors.

    Make one with `from_path`; the constructor takes numbers that are already there.

    Parameters
    ----------
    sizes : array-like of int of shape (n_sizes,)
        Numbers of vectors, increasing.
    scores : array-like of shape (n_sizes,)
        Accuracy (R^2 for a bare expansion) with so many vectors.
    full_size : int, default=None
        Number of vectors of the model that was compressed.
    full_score : float, default=None
        Its score.
    chosen : int, default=None
        A size to point out.
    score_name : {"accuracy", "R^2"}, default="accuracy"
        What the scores are. Accuracy is drawn as an error in percent, R^2 as 1 - R^2.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.
    line_ : matplotlib.lines.Line2D
        The curve.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from marrow.plotting import SizeAccuracyDisplay
    >>> display = SizeAccuracyDisplay(
    ...     [1, 10, 100], [0.4, 0.9, 0.98], full_size=900, full_score=0.985, chosen=100
    ... )
    >>> display.plot().ax_.get_xlabel()
    'vectors kept'
    """

    def __init__(
        self,
        sizes: ArrayLike,
        scores: ArrayLike,
        *,
        full_size: int | None = None,
        full_score: float | None = None,
        chosen: int | None = None,
        score_name: str = "accuracy",
    ) -> None:
        self.sizes: NDArray[np.int64] = np.asarray(sizes, dtype=np.int64)
        self.scores: NDArray[np.float64] = np.asarray(scores, dtype=np.float64)
        self.full_size = full_size
        self.full_score = full_score
        self.chosen = chosen
        self.score_name = score_name

    @classmethod
    def from_path(
        cls,
        path: CompressionPath,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sizes: Sequence[int] | None = None,
        chosen: int | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> SizeAccuracyDisplay:
        """Score a path on rows with known answers and draw it.

        Parameters
        ----------
        path : CompressionPath
            What `marrow.compress` gave.
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,)
            Labels; numbers for a bare expansion.
        sizes : sequence of int, default=None
            Which sizes; None means all.
        chosen : int, default=None
            A size to point out.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
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
        """
        _pyplot()
        asked = sorted(set(path.sizes if sizes is None else sizes))
        display = cls(
            asked,
            path.scores(X, y, asked),
            full_size=path.expansion.n_vectors,
            full_score=path.full_score(X, y),
            chosen=chosen,
            score_name="accuracy" if isinstance(path.model, DECIDES) else "R^2",
        )
        return display.plot(ax=ax, **line_options)

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
            Without matplotlib.
        """
        ax = new_axes(ax)
        percent = self.score_name == "accuracy"
        errors = self._errors(self.scores)
        options = {"color": CURVE, "linewidth": 1.8, "label": "compressed", **line_options}
        (self.line_,) = ax.plot(self.sizes, errors, **options)
        floor = [errors.min()]
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
        ax.set_xlim(self.sizes.min(), self.sizes.max())
        ax.set_xlabel("vectors kept")
        ax.set_ylabel("error" if percent else "1 - R^2")
        ax.grid(visible=True, which="major", color="#e3e3e3", linewidth=0.8)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.legend(frameon=True, facecolor="white", edgecolor="none", framealpha=1.0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _errors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        # Differences of accuracies carry rounding of 1e-16, which a logarithmic axis would show.
        return np.round(1.0 - scores, 12)


def _text(value: float, percent: bool) -> str:
    return f"{100 * value:.2f} %" if percent else f"{value:.3g}"


def _tick_formatter(percent: bool) -> Any:
    """Ticks at 1, 2 and 5 of each decade, written out."""

    def text(value: float, _: Any) -> str:
        digit = round(value / 10 ** np.floor(np.log10(value) + 1e-9), 6) if value > 0 else 0.0
        shown = f"{100 * value:.3g} %" if percent else f"{value:.3g}"
        return shown if digit in (0.0, 1.0, 2.0, 5.0) else ""

    return text
