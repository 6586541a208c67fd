"""Exact Shapley values of kernel expansions, and their pictures.

`ShapleyDisplay` takes numbers only, of any source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from svmarrow import _core
from svmarrow._support.displays import new_axes
from svmarrow._support.parameters import THREADS, boolean, check, integer, is_missing, one_of, refuse
from svmarrow._support.progress import progress
from svmarrow._support.rows import as_rows, core_rows, dense, product, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.preparation import Affine, Chain, Clip, Parts, PiecewiseLinear, Step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import ArrayLike, NDArray
    from shap import Explanation

__all__ = ["Players", "ShapleyDisplay", "ShapleyValues", "players_of", "shapley_values"]


# --- which player of a game each column of the kernel belongs to ---
# Players are the columns that a user passes, or groups of them. Behind the preparation of a pipeline a
# column may have become several (one-hot columns of a category) or stayed one (scaled); a map that mixes
# columns has no players.


class Players(NamedTuple):
    """The players of a game.

    Attributes
    ----------
    names : list of str
        One for each player.
    columns : list of ndarray of int64
        The input columns of each player.
    of_kernel_column : ndarray of int64 of shape (d,)
        The player of each column that the kernel sees.
    """

    names: list[str]
    columns: list[NDArray[np.int64]]
    of_kernel_column: NDArray[np.int64]


def _origins(step: Step) -> NDArray[np.int64]:
    """The input column of each output column of a step."""
    if isinstance(step, Chain):
        origins = np.arange(step.n_in)
        for part in step.steps:
            origins = origins[_origins(part)]
        return origins
    if isinstance(step, Parts):
        blocks = [
            taken if part is None else taken[_origins(part)]
            for taken, part in zip(step.columns, step.steps, strict=True)
        ]
        return np.concatenate(blocks).astype(np.int64)
    if isinstance(step, Impute):
        flags = np.empty(0, dtype=np.int64) if step.flags is None else step.flags
        return np.concatenate([np.arange(step.n_in), flags])
    if isinstance(step, Dates):
        return step.sources
    if isinstance(step, Encode):
        return np.repeat(np.arange(step.n_in), [table.numbers.shape[1] for table in step.tables])
    if isinstance(step, (Clip, PiecewiseLinear)) or (isinstance(step, Affine) and step.matrix is None):
        return np.arange(step.n_in)
    if isinstance(step, Affine) and step.matrix is not None and (np.count_nonzero(step.matrix, 0) <= 1).all():
        sources: NDArray[np.int64] = np.abs(step.matrix).argmax(axis=0)
        return sources
    raise ValueError(
        f"model: its pipeline mixes columns ({step!r}, such as PCA or a Normalizer), so that the kernel "
        "sees no column by itself; explain the part of the pipeline behind that step, on its output columns"
    )


def players_of(
    step: Step | None,
    n_columns: int,
    names: Sequence[Any] | None,
    groups: Mapping[str, Sequence[Any]] | None,
) -> Players:
    """The players of a model with `n_columns` input columns, behind the preparation `step`.

    Raises
    ------
    ValueError
        If a step mixes columns, or a group names a column that is not there or is in another group already.
    """
    columns = [f"x{i}" for i in range(n_columns)] if names is None else [str(name) for name in names]
    player = np.full(n_columns, -1)
    labels: list[str] = []
    if groups is not None and not isinstance(groups, Mapping):
        raise refuse("groups", groups, "None or a dict of the name of each group to its columns")
    for label, members in ({} if groups is None else groups).items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise refuse("groups", {label: members}, "a list of columns for each group")
        places = [_place(member, columns, n_columns) for member in members]
        if not places:
            raise refuse("groups", {label: members}, "at least one column in each group")
        for place in places:
            if player[place] >= 0:
                raise refuse(
                    "groups", {label: members}, f"disjoint: column {columns[place]!r} is in two groups"
                )
            player[place] = len(labels)
        labels.append(str(label))
    for place in np.flatnonzero(player < 0).tolist():
        player[place] = len(labels)
        labels.append(columns[place])
    origins = np.arange(n_columns) if step is None else _origins(step)
    return Players(labels, [np.flatnonzero(player == k) for k in range(len(labels))], player[origins])


def _place(member: Any, columns: list[str], n_columns: int) -> int:
    if isinstance(member, str):
        if columns.count(member) == 1:
            return columns.index(member)
    elif isinstance(member, (int, np.integer)) and not isinstance(member, bool) and 0 <= member < n_columns:
        return int(member)
    raise refuse("groups", member, f"the name of one column or its number, from 0 to {n_columns - 1}")


#: Maximum number of training samples that are drawn as the background.
MAX_BACKGROUND = 100
_PRODUCT_KERNELS = ("rbf", "laplacian", "chi2")
_RULES = {
    "game": one_of("interventional", "kernel"),
    "output": one_of("decision_function", "machines"),
    "verbose": boolean,
    "n_jobs": THREADS,
}


@dataclass(frozen=True, eq=False, repr=False)
class ShapleyValues:
    """Shapley values of some samples, as `shapley_values` returns them.

    Attributes
    ----------
    values : ndarray of float64 of shape (n_samples, n_players) or (n_samples, n_players, n_outputs)
        What each player adds to the output; without the last axis where there is one output.
    base_values : float or ndarray of float64 of shape (n_outputs,)
        The value of the empty coalition: for the interventional game the mean output over the background.
    data : ndarray of shape (n_samples, n_players) or None
        The samples, for players of one column each; NaN for groups of columns, text and missing values. None
        if X has no numbers.
    feature_names : list of str
        Names of the players.
    output_names : list of str
        Names of the outputs.
    additivity_error : ndarray of float64 of shape (n_samples,) or (n_samples, n_outputs)
        Absolute difference of the output and of `base_values` plus all values: the error of the quadrature
        and of rounding.
    n_nodes : int
        Largest number of quadrature nodes that a sample needed; 0 for the linear kernel, which needs none.
    """

    values: NDArray[np.float64]
    base_values: Any
    data: NDArray[Any] | None
    feature_names: list[str]
    output_names: list[str]
    additivity_error: NDArray[np.float64]
    n_nodes: int

    @property
    def importances(self) -> NDArray[np.float64]:
        """Mean absolute values over the samples, (n_players,) or (n_players, n_outputs)."""
        means: NDArray[np.float64] = np.abs(self.values).mean(axis=0)
        return means

    def to_shap(self) -> Explanation:
        """The same as a ``shap.Explanation``, for the plots of shap.

        Returns
        -------
        shap.Explanation
            Values, base values, samples and names of features and outputs.

        Raises
        ------
        ImportError
            If shap is not installed (the extra ``explain``).
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError("to_shap needs shap: pip install 'svmarrow[explain]'") from error
        base = np.broadcast_to(self.base_values, (len(self.values), *np.shape(self.base_values)))
        return shap.Explanation(
            values=self.values,
            base_values=np.array(base),
            data=self.data,
            feature_names=self.feature_names,
            output_names=self.output_names if self.values.ndim == 3 else None,
        )

    def plot(
        self,
        kind: Literal["bar", "beeswarm"] = "beeswarm",
        *,
        output: int = 0,
        max_display: int = 10,
        ax: Any = None,
    ) -> ShapleyDisplay:
        """Draw the players that matter most.

        Parameters
        ----------
        kind : {"bar", "beeswarm"}, default="beeswarm"
            Mean absolute values, or a point for each sample, colored by the player's own value.
        output : int, default=0
            Which output, where there are several.
        max_display : int, default=10
            Maximum number of players.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ShapleyDisplay
            The display with its figure.
        """
        n_outputs = len(self.output_names)
        if not 0 <= output < n_outputs:
            raise refuse("output", output, f"the number of an output, from 0 to {n_outputs - 1}")
        values = self.values[:, :, output] if self.values.ndim == 3 else self.values
        display = ShapleyDisplay(values, self.feature_names, self.data, output_name=self.output_names[output])
        return display.plot(kind, max_display=max_display, ax=ax)

    def __repr__(self) -> str:
        shape = (
            f"{len(self.values)} samples, {len(self.feature_names)} players, {len(self.output_names)} outputs"
        )
        return f"<ShapleyValues: {shape}>"


def shapley_values(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    label: Any = None,
    groups: Mapping[str, Sequence[Any]] | None = None,
    game: Literal["interventional", "kernel"] = "interventional",
    output: Literal["decision_function", "machines"] = "decision_function",
    verbose: bool = False,
    n_jobs: int | None = None,
) -> ShapleyValues:
    """Exact Shapley values of a kernel machine's output.

    The value of a coalition of columns for a sample x is the mean output over samples that have these
    columns from x and the others from a background sample (the *interventional* game). For a kernel that is
    a product over columns, each vector's share is the integral of a polynomial (Owen, 1972), which
    Gauss-Legendre quadrature computes exactly; no coalition is sampled. The time is proportional to the
    numbers of samples, vectors, background samples and columns: `compress` the model first, and draw some
    hundred background samples.

    Parameters
    ----------
    model : object
        What `as_expansion` takes, with the kernel "rbf", "laplacian", "chi2" or "linear". The columns in
        front of a pipeline's scalers, imputers and encoders are the players.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        The samples to explain.
    background : {array-like, sparse matrix, data frame} of shape (n_background, n_features), default=None
        Samples that absent columns are taken from. The game "kernel" does not use their values. None draws at
        most 100 training samples of a model that contains them all: exact least squares and tables.
    label : object, default=None
        Class whose decision value is explained; for two classes, the values of the first class are minus
        those of the second. None explains all outputs, for two classes that of the second class.
    groups : mapping of str to sequence of str or int, default=None
        Columns that act as one player, by names or numbers, such as the one-hot columns of a category.
        Columns in no group are players of their own, after the groups.
    game : {"interventional", "kernel"}, default="interventional"
        "kernel" leaves out the factors of absent columns instead (the product-kernel game of PKeX-Shapley,
        2025).
    output : {"decision_function", "machines"}, default="decision_function"
        What is explained: the decision values, or for any model the outputs of its binary machines.
        Decision values that are votes or another nonlinear decoding of the machines' outputs are refused.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Returns
    -------
    ShapleyValues
        The values of all players for each sample and output, with their additivity error.

    Raises
    ------
    TypeError
        If the model is not a kernel expansion.
    ValueError
        For another kernel, a pipeline that mixes columns (PCA), a nonlinear decoding, groups that overlap, a
        label that is not a class, and no background for a model without all its training samples.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from svmarrow import SVR
    >>> from svmarrow.inspection import shapley_values
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svr = SVR(C=100).fit(X, y)
    >>> found = shapley_values(svr, X[:5], X[::10])
    >>> found.values.shape
    (5, 10)
    >>> bool(abs(found.base_values + found.values.sum(axis=1) - svr.predict(X[:5])).max() < 1e-8)
    True
    """
    check({"game": game, "output": output, "verbose": verbose, "n_jobs": n_jobs}, _RULES)
    converted = as_expansion(model)
    expansion, step, names = converted, None, None
    if not isinstance(converted, KernelExpansion):
        expansion, step = converted.expansion, converted.preparation
        names = getattr(converted, "feature_names_in_", None)
    _check_kernel(expansion, game)
    if names is None and hasattr(X, "columns"):
        names = list(X.columns)
    n_columns = expansion.vectors.shape[1] if step is None else step.n_in
    players = players_of(step, n_columns, names, groups)
    take = as_rows if isinstance(converted, KernelExpansion) else converted.validated
    rows = take(X)
    others = _training_samples(model, expansion) if background is None else take(background)
    results = [
        _linear(part, rows, others, players, n_jobs)
        if part.kernel == "linear"
        else _of_products(part, rows, others, players, game, verbose, n_jobs)
        for part in expansion.parts
    ]
    parts = results[0]
    if len(results) > 1:
        # The values of a sum of functions are the sums of their values.
        values, base = (np.sum([result[i] for result in results], axis=0) for i in (0, 1))
        error = np.abs(values.sum(axis=1) + base - expansion._evaluate(rows, n_jobs))
        parts = values, base, error, max(result[3] for result in results)
    output_names = _output_names(converted, expansion, output)
    if label is not None:
        parts, output_names = _of_label(label, parts, converted, output_names)
    return _result(*parts, players, output_names, _data(X, players))


def _of_products(
    expansion: KernelExpansion,
    rows: Any,
    others: Any,
    players: Players,
    game: str,
    verbose: bool,
    n_jobs: int | None,
) -> tuple[Any, Any, Any, int]:
    """Values, base values, errors and nodes for a kernel that is a product over the columns."""
    with progress(verbose) as shown:
        found = _core.shapley_values(
            expansion.core_parts,
            core_rows(rows),
            core_rows(others),
            game,
            players.of_kernel_column.tolist(),
            len(players.names),
            shown.callback,
            threads(n_jobs),
        )
    return found["values"], found["base"], found["additivity_error"], found["nodes"]


def _training_samples(model: Any, expansion: KernelExpansion) -> Any:
    """Returns training samples as the kernel takes them, of a model that contains them all."""
    machine = model.steps[-1][1] if hasattr(model, "steps") else model
    if not getattr(machine, "_has_all_samples", False):
        raise ValueError(
            f"background=None is not allowed for {type(machine).__name__}, which does not contain all "
            "training samples: pass some hundred of them"
        )
    # Samples of weight zero are vectors without a coefficient.
    counting = np.flatnonzero(np.asarray(expansion.coefficients).any(axis=1))
    order = np.random.RandomState(0).permutation(counting)[:MAX_BACKGROUND]
    return expansion.vectors[np.sort(order)]


def _of_label(label: Any, parts: Any, converted: Any, names: list[str]) -> tuple[Any, list[str]]:
    """Returns the result for the decision value of one class."""
    values, base, error, nodes = parts
    classes = converted.classes_.tolist() if isinstance(converted, ExpansionClassifier) else []
    if label not in classes:
        known = f"one of {', '.join(map(repr, classes))}" if classes else "None for a model without classes"
        raise refuse("label", label, known)
    number, sign = classes.index(label), 1.0
    if len(names) == 1:
        number, sign = 0, 1.0 if number == 1 else -1.0
    elif names != [str(each) for each in classes]:
        raise refuse("label", label, "None for outputs that are not decision values of the classes")
    chosen = slice(number, number + 1)
    return (sign * values[:, :, chosen], sign * base[chosen], error[:, chosen], nodes), [str(label)]


def _check_kernel(expansion: KernelExpansion, game: str) -> None:
    allowed = _PRODUCT_KERNELS if game == "kernel" else ("linear", *_PRODUCT_KERNELS)
    for part in expansion.parts:
        if part.kernel not in allowed:
            kernel = "a Python function" if callable(part.kernel) else part.kernel
            rule = (
                f"one of {', '.join(allowed)} for game={game!r}, which are linear or products over the "
                "columns; TabularClassifier and TabularRegressor take kernel='rbf', and distil(model, X, y) "
                "imitates any other model by an RBF kernel"
            )
            raise refuse("kernel", kernel, rule)


def _output_names(converted: Any, expansion: KernelExpansion, output: str) -> list[str]:
    """Names of the outputs; a ValueError where decision values are not these outputs."""
    numbered = [str(k) for k in range(expansion.n_outputs)]
    if not isinstance(converted, ExpansionClassifier):
        return numbered
    labels = [str(label) for label in converted.classes_.tolist()]
    if converted.decoding == "binary":
        return labels[1:]
    if converted.decoding == "ovr":
        return labels
    pairs = [f"{a} or {b}" for i, a in enumerate(labels) for b in labels[i + 1 :]]
    if converted.decoding == "ovo" and (output == "machines" or converted.decision_function_shape == "ovo"):
        return pairs
    if output == "machines":
        return numbered
    raise refuse(
        "output",
        output,
        f"'machines' for a model of {len(labels)} classes whose decision values are votes or another "
        "nonlinear decoding of binary machines; or train one machine for each class against the rest, for "
        "example OneVsRestClassifier(SVC())",
    )


def _linear(
    expansion: KernelExpansion, X: Any, background: Any, players: Players, n_jobs: int | None
) -> tuple[Any, Any, Any, int]:
    """(x_j - mean of b_j) w_j for every column, summed over the columns of each player."""
    weights = _core.linear_weights(core_rows(expansion.vectors), expansion.coefficients, threads(n_jobs))
    mean = np.asarray(background.astype(np.float64).mean(axis=0)).ravel()
    terms = (dense(X, np.float64) - mean)[:, :, np.newaxis] * weights.T
    values = np.zeros((terms.shape[0], len(players.names), terms.shape[2]))
    for column, player in enumerate(players.of_kernel_column):
        values[:, player] += terms[:, column]
    base = product(weights, mean) + expansion.intercepts
    outputs = expansion._evaluate(X, n_jobs)
    return values, base, np.abs(values.sum(axis=1) + base - outputs), 0


def _data(X: Any, players: Players) -> NDArray[np.float64] | None:
    """The values of players of one column, NaN for groups, text and missing values.

    None if there are no numbers.
    """
    matrix = dense(X)
    if matrix.dtype.kind not in "fiub":
        matrix = np.column_stack([_numbers(column) for column in matrix.T])
    if np.isnan(matrix).all():
        return None
    data = np.full((matrix.shape[0], len(players.names)), np.nan)
    for player, columns in enumerate(players.columns):
        if columns.size == 1:
            data[:, player] = matrix[:, columns[0]]
    return data


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the numbers of a column, NaN for missing values, and for all if one is text."""
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in column])
    except (TypeError, ValueError):
        return np.full(column.size, np.nan)


def _result(
    values: Any, base: Any, error: Any, nodes: int, players: Players, names: list[str], data: Any
) -> ShapleyValues:
    if len(names) == 1:
        values, base, error = values[:, :, 0], float(base[0]), error[:, 0]
    return ShapleyValues(values, base, data, players.names, names, error, nodes)


# --- pictures of Shapley values ---

_COLOUR, _GREY = "#1f5f8b", "#6b6b6b"
#: Half the height of a row of points, where a row is 1.
_MAX_OFFSET = 0.38
#: Number of bins of equal width in which the points of a row are counted.
_BINS = 60
_DISPLAY_RULES = {"kind": one_of("bar", "beeswarm"), "max_display": integer(least=1)}


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
        check({"kind": kind, "max_display": max_display}, _DISPLAY_RULES)
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
