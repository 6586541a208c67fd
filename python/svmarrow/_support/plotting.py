"""Drawings, in the manner of scikit-learn's displays. They need matplotlib, the extra ``svmarrow[plot]``.

matplotlib is imported when something is drawn, never before: importing svmarrow stays fast and needs no
display.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from svmarrow._support.boundary import DecisionVectorsDisplay
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.reduced_set.path import CompressionPath

__all__ = [
    "DecisionVectorsDisplay",
    "SizeAccuracyDisplay",
    "image_axes",
    "new_axes",
    "pyplot",
    "subsample_baseline",
]

SIZE = (6.4, 4.0)
"""Width and height of a new figure, in inches."""
DECIDES = (ExpansionClassifier, ExpansionDetector)
CURVE, REFERENCE, CHOICE, BASELINE = "#1f5f8b", "#6b6b6b", "#c8501e", "#4b8b3b"


def pyplot() -> Any:
    """Matplotlib's pyplot; an ImportError that names the extra where there is none."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'svmarrow[plot]'") from error
    return plt


def image_axes() -> Any:
    """Axes on a figure that is for a file alone: no window, no entry in pyplot's list of figures."""
    pyplot()
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, layout="constrained").subplots()


def new_axes(ax: Any = None) -> Any:
    """The axes given, else those of a new figure."""
    plt = pyplot()
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
    baseline_sizes : array-like of int of shape (n_baselines,), default=None
        Sizes of machines trained on fewer rows, to compare with.
    baseline_scores : array-like of shape (n_baselines,), default=None
        Their scores.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.
    line_ : matplotlib.lines.Line2D
        The curve.
    baseline_line_ : matplotlib.lines.Line2D or None
        The curve of the machines trained on fewer rows.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from svmarrow._support.plotting import SizeAccuracyDisplay
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

    @classmethod
    def from_path(
        cls,
        path: CompressionPath,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sizes: Sequence[int] | None = None,
        chosen: int | None = None,
        baseline: tuple[ArrayLike, ArrayLike] | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> SizeAccuracyDisplay:
        """Score a path on rows with known answers and draw it.

        Parameters
        ----------
        path : CompressionPath
            What `svmarrow.compress` gave.
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,)
            Labels; numbers for a bare expansion.
        sizes : sequence of int, default=None
            Which sizes; None means all.
        chosen : int, default=None
            A size to point out.
        baseline : (array-like of int, array-like), default=None
            Sizes and scores of machines trained on fewer rows, as `subsample_baseline` gives them.
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
        pyplot()
        sizes_of, scores_of = (None, None) if baseline is None else baseline
        asked = sorted(set(path.sizes if sizes is None else sizes))
        display = cls(
            asked,
            path.scores(X, y, asked),
            full_size=path.expansion.n_vectors,
            full_score=path.full_score(X, y),
            chosen=chosen,
            score_name="accuracy" if isinstance(path.model, DECIDES) else "R^2",
            baseline_sizes=sizes_of,
            baseline_scores=scores_of,
        )
        return display.plot(ax=ax, **line_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        max_vectors: int | None = None,
        X_train: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        n_baselines: int = 8,
        random_state: int | np.random.RandomState | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> SizeAccuracyDisplay:
        """Compress a fitted model and draw the price of each size.

        With training rows, machines of the same kind that are trained on random parts of them are drawn
        beside the curve: what one gets without compression for as many vectors.

        Parameters
        ----------
        estimator : object
            A fitted kernel machine, see `svmarrow.interop.as_expansion`.
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows to score on.
        y : array-like of shape (n,)
            Their labels or numbers.
        max_vectors : int, default=None
            Largest size, see `svmarrow.compress`.
        X_train : {array-like, sparse matrix} of shape (n_train, n_features), default=None
            Training rows, for the thresholds of a classifier and for the machines trained on fewer rows.
        y_train : array-like of shape (n_train,), default=None
            Their labels.
        n_baselines : int, default=8
            How many machines are trained on fewer rows; 0 for none.
        random_state : int, RandomState instance or None, default=None
            Seed of the choice of rows. None always gives the same.
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
        from svmarrow.interop.convert import as_expansion
        from svmarrow.reduced_set import compress

        pyplot()
        if (X_train is None) != (y_train is None):
            raise ValueError("X_train and y_train go together")
        tunes = X_train is not None and isinstance(as_expansion(estimator), ExpansionClassifier)
        rows: dict[str, Any] = {"X": X_train, "y": y_train} if tunes else {}
        path = compress(estimator, max_vectors=max_vectors, tol=0.0, **rows)
        baseline = None
        if X_train is not None and y_train is not None and n_baselines:
            sizes = np.geomspace(max(2, len(path) / 50), len(path), n_baselines)
            found = subsample_baseline(
                estimator, X_train, y_train, X, y, sizes=sizes, random_state=random_state
            )
            baseline = found if len(found[0]) else None
        return cls.from_path(path, X, y, baseline=baseline, ax=ax, **line_options)

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
                label="trained on fewer rows",
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
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.legend(frameon=True, facecolor="white", edgecolor="none", framealpha=1.0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _errors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        # Differences of accuracies carry rounding of 1e-16, which a logarithmic axis would show.
        return np.round(1.0 - scores, 12)


def subsample_baseline(
    estimator: Any,
    X_train: ArrayLike,
    y_train: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sizes: ArrayLike,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Scores of machines that are trained on random parts of the rows instead of being compressed.

    Parameters
    ----------
    estimator : estimator
        A fitted machine: clones of it are fitted.
    X_train : {array-like, sparse matrix} of shape (n_train, n_features)
        Training rows.
    y_train : array-like of shape (n_train,)
        Their labels or numbers.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Rows to score on.
    y : array-like of shape (n,)
        Their labels or numbers.
    sizes : array-like of shape (n_sizes,)
        Numbers of vectors to aim at: the rows are in the proportion that the full model has.
    random_state : int, RandomState instance or None, default=None
        Seed. None always gives the same rows.

    Returns
    -------
    sizes : ndarray of int
        Vectors that the machines have; those with one class only are left out.
    scores : ndarray of float
        ``estimator.score`` of each.
    """
    from svmarrow.interop import as_expansion

    rng = check_random_state(0 if random_state is None else random_state)
    full = as_expansion(estimator)
    vectors = (full if isinstance(full, KernelExpansion) else full.expansion_).n_vectors
    n = _num_samples(X_train)
    order, labels = rng.permutation(n), np.asarray(y_train)
    found: list[tuple[int, float]] = []
    for size in np.asarray(sizes, dtype=np.float64):
        rows = np.sort(order[: int(np.clip(round(n * size / max(1, vectors)), 2, n))])
        if is_classifier(estimator) and len(np.unique(labels[rows])) < len(np.unique(labels)):
            continue
        machine = clone(estimator).fit(_safe_indexing(X_train, rows), labels[rows])
        small = as_expansion(machine)
        expansion = small if isinstance(small, KernelExpansion) else small.expansion_
        found.append((expansion.n_vectors, float(machine.score(X, y))))
    found.sort()
    return np.array([size for size, _ in found], dtype=np.int64), np.array([score for _, score in found])


def _text(value: float, percent: bool) -> str:
    return f"{100 * value:.2f} %" if percent else f"{value:.3g}"


def _tick_formatter(percent: bool) -> Any:
    """Ticks at 1, 2 and 5 of each decade, written out."""

    def text(value: float, _: Any) -> str:
        digit = round(value / 10 ** np.floor(np.log10(value) + 1e-9), 6) if value > 0 else 0.0
        shown = f"{100 * value:.3g} %" if percent else f"{value:.3g}"
        return shown if digit in (0.0, 1.0, 2.0, 5.0) else ""

    return text
