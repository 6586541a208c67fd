"""Plot of the error against the number of vectors: `SizeAccuracyDisplay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.plotting import finish, new_axes

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray

__all__ = ["CHOICE", "SizeAccuracyDisplay"]

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
