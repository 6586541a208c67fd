"""Every size of a greedy compression, and the choice among them.

The pursuit picks vectors one after the other; after s picks the best approximation of the model by those s
vectors has coefficients L_s^-T P_s, where L_s is the leading block of one Cholesky factor and P_s the leading
rows of one matrix of projections. So a path is one factor, and the outputs of *all* sizes on a row come from
one forward substitution: size s adds one term to size s - 1. Scoring a whole path costs about as much as
scoring its last size.

Memory stays bounded: outputs of all sizes are (sizes, rows, q) and are made a chunk of rows at a time; the
thresholds, which need all rows at once, a group of sizes at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from marrow import _core
from marrow._params import integer, real, refuse
from marrow._validation import as_rows, core_rows, threads
from marrow.classifier import ExpansionClassifier
from marrow.expansion import KernelExpansion
from marrow.reduced_set import threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from marrow.plotting import SizeAccuracyDisplay

__all__ = ["CompressionPath"]

SCORING_BYTES = 64 << 20
"""Outputs of all sizes held at once while scoring."""

TUNING_BYTES = 256 << 20
"""Outputs of all rows held at once while choosing thresholds."""

FIRST_SIZES = 32
"""Sizes that a search for the smallest scores together at first."""


class CompressionPath:
    """Compressed models of every size, from one vector up, out of one run of `marrow.compress`.

    ``path[s]`` is the model with s vectors, ready to predict; ``len(path)`` is the largest size.

    Attributes
    ----------
    model : ExpansionClassifier or KernelExpansion
        The model that was compressed.
    vectors : ndarray or sparse array of shape (len(path), n_features)
        The chosen vectors, in the order of the choice.
    order : ndarray of int of shape (len(path),)
        Which candidates they are.
    residual_norms : ndarray of shape (len(path) + 1,)
        Distance in feature space between the model and its approximation with s vectors, for s = 0, 1, ...;
        all outputs together.
    stop : str
        Why the run ended: ``"converged"`` (size or tolerance reached), ``"max_time"``, ``"interrupted"``, or
        ``"stalled"`` where further vectors are combinations of the chosen ones.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marrow import SVC, compress
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> path = compress(svc, max_vectors=40, X=X[:300], y=y[:300])
    >>> small = path.select(X[300:], y[300:], max_loss=0.01)
    >>> small.expansion_.n_vectors < svc.expansion_.n_vectors
    True
    """

    def __init__(
        self,
        model: ExpansionClassifier | KernelExpansion,
        vectors: Any,
        pursuit: Mapping[str, Any],
        tuning: tuple[Any, NDArray[Any]] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.vectors = vectors
        self.order: NDArray[np.int64] = pursuit["order"]
        self.residual_norms: NDArray[np.float64] = pursuit["residual_norms"]
        self.stop: str = pursuit["stop"]
        self.n_jobs = n_jobs
        self._factor: NDArray[np.float64] = pursuit["factor"]
        self._projections: NDArray[np.float64] = pursuit["projections"]
        self._tuning = tuning
        self._shifts: dict[int, NDArray[np.float64]] = {}

    @property
    def expansion(self) -> KernelExpansion:
        """The expansion that was compressed."""
        return self.model if isinstance(self.model, KernelExpansion) else self.model.expansion_

    @property
    def sizes(self) -> Sequence[int]:
        """All sizes: 1, 2, ..., len(path)."""
        return range(1, len(self) + 1)

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Any]:
        return (self[size] for size in self.sizes)

    def __repr__(self) -> str:
        tuned = "thresholds tuned, " if self._tuning is not None else ""
        return f"CompressionPath(sizes 1 to {len(self)}, {tuned}of {self.model!r})"

    def __getitem__(self, size: int) -> Any:
        """Model with so many vectors.

        Parameters
        ----------
        size : int
            From 1 to ``len(path)``.

        Returns
        -------
        ExpansionClassifier or KernelExpansion
            Of the kind that was compressed.

        Raises
        ------
        IndexError
            If there is no such size.
        """
        size = self._check_size(size)
        full = self.expansion
        coefficients = _core.path_coefficients(self._factor, self._projections, size)
        intercepts = full.intercepts + self._shifts_of([size])[0]
        small = KernelExpansion(
            self.vectors[:size],
            coefficients,
            intercepts,
            kernel=full.kernel,
            gamma=full.gamma,
            coef0=full.coef0,
            degree=full.degree,
        )
        return small if isinstance(self.model, KernelExpansion) else self.model.with_expansion(small)

    def _check_size(self, size: Any) -> int:
        rule = integer()
        if not rule.holds(size):
            raise TypeError(f"size={size!r} is not allowed: it must be {rule.text}")
        if not 1 <= size <= len(self):
            raise IndexError(f"size={size} is not on this path: it has the sizes 1 to {len(self)}")
        return int(size)

    def scores(self, X: ArrayLike, y: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Score of the compressed models on rows with known answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,) or (n, q)
            Labels; numbers for a bare expansion.
        sizes : sequence of int, default=None
            Which sizes, in any order; None means all.

        Returns
        -------
        ndarray of shape (len(sizes),)
            Accuracy, or for a bare expansion the coefficient of determination R^2.

        Raises
        ------
        ValueError
            If X and y do not fit each other or the model.
        IndexError
            If there is no such size.
        """
        asked = self.sizes if sizes is None else [self._check_size(size) for size in sizes]
        increasing = sorted(set(asked))
        if not increasing:
            return np.empty(0)
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, len(increasing))
        n = rows.shape[0]
        step = max(1, SCORING_BYTES // (8 * (len(increasing) * self.expansion.n_outputs + increasing[-1])))
        shifts = self._shifts_of(increasing)
        for start in range(0, n, step):
            chunk = slice(start, min(start + step, n))
            score.add(chunk, self._outputs(rows[chunk], increasing) + shifts[:, None, :])
        by_size = dict(zip(increasing, score.result(), strict=True))
        return np.array([by_size[size] for size in asked])

    def full_score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Score of the model that was compressed, in the measure of `scores`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,) or (n, q)
            Labels; numbers for a bare expansion.

        Returns
        -------
        float
            Accuracy, or for a bare expansion R^2.
        """
        rows = rows_for(self.model, X)
        score = Score(self.model, rows, y, 1)
        outputs = self.expansion._evaluate(rows, self.n_jobs)
        score.add(slice(0, rows.shape[0]), outputs[None])
        return float(score.result()[0])

    def select(self, X: ArrayLike, y: ArrayLike, max_loss: float = 0.003) -> Any:
        """Smallest model that loses at most `max_loss` against the full one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows that neither training nor compression has seen.
        y : array-like of shape (n,) or (n, q)
            Their labels; numbers for a bare expansion.
        max_loss : float, default=0.003
            Largest difference of the scores (accuracy, or R^2), not negative; 0.003 is 0.3 percent points.

        Returns
        -------
        ExpansionClassifier or KernelExpansion
            The model, as ``path[size]`` gives it.

        Raises
        ------
        ValueError
            If no size on the path is good enough, or the input does not fit.
        """
        rule = real(least=0.0)
        if not rule.holds(max_loss):
            raise refuse("max_loss", max_loss, rule.text)
        full = self.full_score(X, y)
        best, best_size, start = -np.inf, 0, 1
        while start <= len(self):
            # Small sizes are cheap, and the search ends at the first that is good enough. Doubling the ranges
            # keeps the worst case within twice the cost of scoring all sizes at once.
            last = min(len(self), max(FIRST_SIZES, 2 * start))
            sizes = [size for size in self.sizes if start <= size <= last]
            start = last + 1
            if not sizes:
                continue
            scores = self.scores(X, y, sizes)
            # One part in 10^12 keeps a loss of exactly max_loss from falling to rounding.
            enough = np.flatnonzero(scores >= full - max_loss - 1e-12)
            if enough.size:
                return self[sizes[int(enough[0])]]
            if scores.max() > best:
                best, best_size = float(scores.max()), sizes[int(scores.argmax())]
        raise ValueError(
            f"max_loss={max_loss:g} is not reached on this path: the full model scores {full:.4f}, the best "
            f"of the sizes 1 to {len(self)} is {best:.4f} with {best_size} vectors; compress with a larger "
            "max_vectors or allow a larger max_loss"
        )

    def plot(self, X: ArrayLike, y: ArrayLike, ax: Any = None, **kwargs: Any) -> SizeAccuracyDisplay:
        """Draw the error against the number of vectors, see `marrow.plotting.SizeAccuracyDisplay.from_path`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,)
            Labels.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs : Any
            Passed on.

        Returns
        -------
        SizeAccuracyDisplay
            With ``ax_`` and ``figure_``.
        """
        from marrow.plotting import SizeAccuracyDisplay

        return SizeAccuracyDisplay.from_path(self, X, y, ax=ax, **kwargs)

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Outputs of increasing sizes, (sizes, n, q), with the intercepts of the full model."""
        largest = sizes[-1]
        factor = np.ascontiguousarray(self._factor[:largest, :largest])
        return _core.path_decisions(
            self.expansion.kernel_spec,
            core_rows(self.vectors[:largest]),
            factor,
            np.ascontiguousarray(self._projections[:largest]),
            self.expansion.intercepts,
            core_rows(rows),
            np.array(sizes, dtype=np.int64),
            threads(self.n_jobs),
        )

    def _shifts_of(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """What re-optimising the thresholds adds to the intercepts, (sizes, q); zeros without tuning rows."""
        q = self.expansion.n_outputs
        if self._tuning is None or isinstance(self.model, KernelExpansion):
            return np.zeros((len(sizes), q))
        rows, labels = self._tuning
        missing = sorted(set(sizes) - self._shifts.keys())
        step = max(1, TUNING_BYTES // (8 * max(1, rows.shape[0]) * q))
        for start in range(0, len(missing), step):
            group = missing[start : start + step]
            outputs = self._outputs(rows, group)
            # A size is a few milliseconds of work outside the interpreter lock; the sizes are independent.
            with ThreadPoolExecutor(min(threads(self.n_jobs), len(group))) as pool:
                found = pool.map(partial(threshold.shifts, self.model, labels=labels), outputs)
                self._shifts.update(zip(group, found, strict=True))
        return np.array([self._shifts[size] for size in sizes])


def rows_for(model: ExpansionClassifier | KernelExpansion, X: ArrayLike) -> Any:
    """Rows as the extension module takes them; a ValueError if they do not fit the model."""
    if isinstance(model, ExpansionClassifier):
        return model.validated(X)
    rows = as_rows(X)
    if rows.shape[1] != model.vectors.shape[1]:
        raise ValueError(
            f"X has {rows.shape[1]} columns, the vectors of the model have {model.vectors.shape[1]}"
        )
    return rows


class Score:
    """Scores of several models at once, from their outputs a chunk of rows at a time."""

    def __init__(
        self, model: ExpansionClassifier | KernelExpansion, rows: Any, y: ArrayLike, n_models: int
    ) -> None:
        self.model = model
        targets = np.asarray(y)
        if targets.shape[:1] != (rows.shape[0],):
            raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {targets.shape}")
        if rows.shape[0] == 0:
            raise ValueError("X has no rows: a score needs at least one")
        self.sums = np.zeros(n_models)
        if isinstance(model, KernelExpansion):
            targets = np.asarray(targets, dtype=np.float64)
            self.targets = targets[:, None] if targets.ndim == 1 else targets
            if self.targets.shape[1:] != (model.n_outputs,):
                raise ValueError(
                    f"y has shape {np.shape(y)}: expected one column for each of {model.n_outputs} outputs"
                )
            if not np.isfinite(self.targets).all():
                raise ValueError("y holds NaN or infinities")
        else:
            if targets.ndim != 1:
                raise ValueError(f"y has shape {targets.shape}: expected one label a row")
            self.targets = threshold.label_indices(targets, model.classes_)

    def add(self, chunk: slice, outputs: NDArray[np.float64]) -> None:
        """Take the outputs (models, rows of the chunk, q)."""
        models, n, q = outputs.shape
        if isinstance(self.model, KernelExpansion):
            self.sums += ((outputs - self.targets[chunk]) ** 2).sum(axis=(1, 2))
        else:
            won = self.model.decode(outputs.reshape(models * n, q)).reshape(models, n)
            self.sums += (won == self.targets[chunk]).sum(axis=1)

    def result(self) -> NDArray[np.float64]:
        """Accuracy, or R^2 over all outputs together."""
        if isinstance(self.model, KernelExpansion):
            spread = float(((self.targets - self.targets.mean(axis=0)) ** 2).sum())
            return 1.0 - self.sums / spread if spread > 0 else np.where(self.sums == 0, 1.0, 0.0)
        return self.sums / len(self.targets)
