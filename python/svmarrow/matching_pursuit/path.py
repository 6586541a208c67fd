"""Paths of pursuits: models of every size."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from svmarrow import _core
from svmarrow._support.estimator import SizePath, scoring_chunks
from svmarrow._support.parameters import real, refuse
from svmarrow._support.rows import product, threads
from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.matching_pursuit._dictionary import Dictionary

__all__ = ["MatchingPath", "PursuitModel"]


@runtime_checkable
class PursuitModel(Protocol):
    """Interface of the estimator of a path."""

    n_jobs: int | None

    def _at_step(self, path: MatchingPath, step: int) -> Any:
        """Returns the fitted estimator after a step."""

    def _rows(self, X: Any) -> Any:
        """Converts rows to the form of the extension module."""

    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """Returns the predictions of outputs (n_sizes, n, q)."""

    def _scores(self, predictions: NDArray[Any], y: Any) -> NDArray[np.float64]:
        """Returns the scores of the predictions of several sizes."""


#: Degrees of freedom of a function: one for its coefficient, and as many for its choice.
FREEDOM = 2.0


@savable("matching-path/1")
class MatchingPath(SizePath):
    """Models of every size from one fit of a matching pursuit.

    ``path[s]`` is the fitted estimator with s functions, ready to predict; nothing is fitted again. The
    intercept that is there from the start does not count; a constant that was a candidate does. Where several
    steps have the same number of functions, the last of them is the model of that size.

    Attributes
    ----------
    sizes : range
        The sizes: 0, the intercept alone, up to all functions.
    step_sizes : ndarray of int of shape (n_steps + 1,)
        Number of functions after each step, from 0 on: the "basic" pursuit may come back to a function.
    training_loss : ndarray of shape (n_steps + 1,)
        Mean loss of the training samples, all outputs together.
    validation_loss : ndarray of shape (n_steps + 1,) or (0,)
        The same of the validation samples; empty where there were none.
    validation_error : ndarray of shape (n_steps + 1,) or (0,)
        Share of the validation samples that are classified wrongly; classifiers only.
    cv_curve : ndarray of shape (n_sizes,) or None
        By size, the mean over the folds of the measure that chose the size, where cross-validation did.
    order : ndarray of int of shape (n_functions,)
        Candidates in the order of the choice.
    residual_norms : None
        Nothing is approximated but the targets: see `training_loss`.
    stop : str
        Why the pursuit ended: ``"converged"`` (size or tolerance reached, no candidate left that helps, or no
        better validation measure for `n_iter_no_change` steps), ``"max_iter"`` (the limit of steps came
        first), or ``"max_time"``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import KMPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> path = KMPClassifier(n_vectors=30).fit(X[:300], y[:300]).path_
    >>> path.sizes, path[5].n_vectors_
    (range(0, 31), 5)
    >>> small = path.select(X[300:], y[300:])
    >>> small.score(X[300:], y[300:]) > 0.95
    True
    """

    _estimator: PursuitModel
    _constant: int
    _dictionary: Dictionary
    _kept: NDArray[np.int64]
    _transient = ("_starts",)
    _stored_as: ClassVar[dict[str, str]] = {
        "cv_curve": "cv_curve",
        "order": "order",
        "step_sizes": "step_sizes",
        "stop": "stop",
        "training_loss": "training_loss",
        "validation_error": "validation_error",
        "validation_loss": "validation_loss",
        "_constant": "n_constants",
        "_dictionary": "dictionary",
        "_estimator": "estimator",
        "_factor": "triangle",
        "_kept": "functions",
        "_projections": "projections",
    }

    def __init__(
        self, estimator: PursuitModel, dictionary: Dictionary, fitted: Mapping[str, Any], constant: bool
    ) -> None:
        self._estimator = estimator
        self._constant = int(constant)
        self.cv_curve: NDArray[np.float64] | None = None
        self.order: NDArray[np.int64] = fitted["order"]
        self._dictionary, self._kept = dictionary.only(self.order)
        self.step_sizes: NDArray[np.int64] = fitted["sizes"]
        self.training_loss: NDArray[np.float64] = fitted["training_loss"]
        self.validation_loss: NDArray[np.float64] = fitted["validation_loss"]
        self.validation_error: NDArray[np.float64] = fitted["validation_error"]
        self.stop: str = fitted["stop"]
        # Squared error has one triangular factor for all sizes; other losses keep the coefficients of each.
        self._factor: NDArray[np.float64] | None = fitted.get("factor")
        self._projections: NDArray[np.float64] = (
            fitted["coefficients"] if self._factor is None else fitted["projections"]
        )
        self._set_starts()

    def _after_load(self) -> None:
        sizes, kept = self.step_sizes, self._kept
        if sizes.ndim != 1 or not sizes.size or sizes[0] < 0 or (np.diff(sizes) < 0).any():
            raise ValueError("step_sizes do not rise")
        if kept.shape != (sizes[-1],) or (
            kept.size and not 0 <= kept.min() <= kept.max() < self._dictionary.count
        ):
            raise ValueError("the functions are not those of the last size")
        self._set_starts()
        if self.coefficients(len(sizes) - 1).shape[0] != sizes[-1] + self._constant:
            raise ValueError("the coefficients are not those of the last size")

    def _set_starts(self) -> None:
        """Offsets of the coefficients of each step."""
        self._starts = np.concatenate([[0], np.cumsum(self.step_sizes + self._constant)])

    @property
    def sizes(self) -> range:
        """The sizes, from 0 on."""
        return range(int(self.step_sizes[-1]) + 1)

    def __repr__(self) -> str:
        return f"MatchingPath(sizes {self._listed_sizes()}, of {type(self._estimator).__name__})"

    def _model(self, size: int) -> Any:
        return self._estimator._at_step(self, self.step_of(size))

    def _generalized_errors(self, n: int) -> NDArray[np.float64]:
        """Returns the generalized cross-validation error of each step for a number of training samples.

        The training loss / (1 - freedom / n)^2: a chosen function costs more than its coefficient, as in
        Friedman (1991, section 3.6).
        """
        shares = (FREEDOM * self.step_sizes + self._constant) / n
        errors = np.full(shares.size, np.inf)
        is_known = shares < 1.0
        errors[is_known] = self.training_loss[is_known] / (1.0 - shares[is_known]) ** 2
        return errors

    def step_of(self, size: int) -> int:
        """Returns the last step with ``size`` functions."""
        return int(np.searchsorted(self.step_sizes, self._checked_size(size), side="right")) - 1

    def coefficients(self, step: int) -> NDArray[np.float64]:
        """Returns coefficients (n_functions, q) after a step in order of choice, an intercept first."""
        size = int(self.step_sizes[step]) + self._constant
        if self._factor is None:
            return self._projections[self._starts[step] : self._starts[step + 1]]
        return _core.path_coefficients((self._factor, self._projections, None), size)

    def outputs(self, X: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Returns the outputs of several sizes; function values are computed once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        sizes : sequence of int, default=None
            Which sizes, rising; None means all.

        Returns
        -------
        ndarray of shape (len(sizes), n, q)
            Outputs, size by size.
        """
        return self._outputs(self._estimator._rows(X), self._steps(sizes))

    def _steps(self, sizes: Sequence[int] | None) -> list[int]:
        steps = [self.step_of(size) for size in (self.sizes if sizes is None else sizes)]
        if any(first >= second for first, second in pairwise(steps)):
            raise ValueError("sizes must rise")
        return steps

    def _outputs(self, rows: Any, steps: Sequence[int]) -> NDArray[np.float64]:
        n_jobs = threads(self._estimator.n_jobs)
        largest = int(self.step_sizes[max(steps)])
        values = self._dictionary.values(rows, self._kept[:largest], n_jobs)
        if self._constant:
            values = np.column_stack([np.ones(rows.shape[0]), values])
        m = largest + self._constant
        if self._factor is None:
            by_step = [self.coefficients(step) for step in steps]
            return np.stack([product(values[:, : len(one)], one) for one in by_step])
        return _core.path_outputs(
            (np.ascontiguousarray(self._factor[:m, :m]), np.ascontiguousarray(self._projections[:m]), None),
            np.ascontiguousarray(values),
            self.step_sizes[list(steps)] + self._constant,
            n_jobs,
        )

    def scores(self, X: ArrayLike, y: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Return the score of each size on the given samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,) or (n, q)
            Labels or targets.
        sizes : sequence of int, default=None
            Which sizes, rising; None means all.

        Returns
        -------
        ndarray of shape (len(sizes),)
            Accuracy, or for a regressor R^2, as ``score`` gives it.
        """
        steps = self._steps(sizes)
        rows = self._estimator._rows(X)
        if np.shape(y)[:1] != (rows.shape[0],):
            raise ValueError(f"X and y disagree: X has {rows.shape[0]} rows, y has shape {np.shape(y)}")
        q = self._projections.shape[1]
        parts = [
            self._estimator._decoded(self._outputs(rows[chunk], steps))
            for chunk in scoring_chunks(rows.shape[0], len(steps) * q + self.sizes[-1])
        ]
        return self._estimator._scores(np.concatenate(parts, axis=1), y)

    def select(self, X: ArrayLike, y: ArrayLike, max_loss: float = 0.0) -> Any:
        """Smallest model whose score is at most `max_loss` below the best of the path.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples that the fit has not seen.
        y : array-like of shape (n,) or (n, q)
            Labels or targets.
        max_loss : float, default=0.0
            Largest difference of the scores, not negative.

        Returns
        -------
        KMPClassifier or KMPRegressor
            As ``path[size]`` gives it.
        """
        rule = real(least=0.0)
        if not rule.holds(max_loss):
            raise refuse("max_loss", max_loss, rule.text)
        scores = self.scores(X, y)
        return self[int(np.flatnonzero(scores >= scores.max() - max_loss - 1e-12)[0])]

    def _plot_arguments(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:  # noqa: ARG002
        return {"score_name": "accuracy" if hasattr(self._estimator, "classes_") else "R^2"}
