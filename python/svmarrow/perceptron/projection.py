"""Projectron and Projectron++: rows near the span of the pool are projected onto it."""

from __future__ import annotations

from typing import ClassVar

from svmarrow._support.parameters import Rule, real
from svmarrow.perceptron._pool import PoolClassifier
from svmarrow.perceptron._stream import STREAM_RULES

__all__ = ["Projectron", "ProjectronPlusPlus"]


class _Projecting(PoolClassifier):
    """A learner that projects rows within a distance of `eta`."""

    def __init__(
        self,
        *,
        eta: float = 0.1,
        kernel: str = "rbf",
        gamma: str | float = "auto",
        coef0: float = 0.0,
        degree: int = 3,
        n_epochs: int = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.eta = eta
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_epochs = n_epochs
        self.n_jobs = n_jobs
        self.verbose = verbose


class Projectron(_Projecting):
    """The kernel perceptron that projects a mistake onto the vectors it has, where they nearly span it.

    A row whose function k(., x) is nearly a sum of those of the pool's vectors becomes no vector: the
    nearest such sum (its projection) is added to their coefficients.

    Parameters
    ----------
    eta : float, default=0.1
        Largest distance, in kernel space, at which a row is projected; the larger, the fewer vectors. 0
        projects only what the pool spans to rounding.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2"}, default="rbf"
        The kernel; "precomputed" is not among them, since a stream has no fixed rows to refer to.
    gamma : {"scale", "auto"} or float, default="auto"
        Kernel coefficient. "auto" is 1 / n_features. "scale" is 1 / (n_features * X.var()) of the first
        piece, so that the model depends on where the stream was cut.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly".
    n_epochs : int, default=1
        Passes of `fit` over its rows; `partial_fit` makes one.
    n_jobs : int or None, default=None
        Threads at prediction; learning from a stream has one. None means all cores that this process may use.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model: its vectors are rows of the stream.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    mistakes_ : int
        Rows that were answered wrongly, or with a score of exactly 0, before they were learnt from.
    cumulative_error_ : float
        `mistakes_` / `n_seen_`.
    mistake_rows_ : ndarray of int64
        Where along the stream the mistakes of the last piece (of `partial_fit`, or pass of `fit`) were.
    n_seen_ : int
        Rows seen.
    n_epochs_ : int
        Passes over its rows that `fit` completed; 0 where `partial_fit` alone taught.
    gamma_ : float
        Kernel coefficient in use.
    n_features_in_ : int
        Columns of the stream.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    Notes
    -----
    Orabona, Keshet and Caputo, JMLR 10, 2009. Kernel values are computed in double precision, since the
    inverse of their matrix is kept: m^2 numbers for m vectors, and O(m^2) work at a mistake.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.perceptron import Projectron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Projectron(eta=0.3, gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _policy_name = "projectron"
    _rules: ClassVar[dict[str, Rule]] = {"eta": real(least=0.0), **STREAM_RULES}


class ProjectronPlusPlus(_Projecting):
    """The Projectron that also learns from rows that are right with a margin below 1.

    Parameters
    ----------
    eta : float, default=0.1
        Largest distance, in kernel space, at which a row is projected; the larger, the fewer vectors.
        Positive.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2"}, default="rbf"
        The kernel; "precomputed" is not among them, since a stream has no fixed rows to refer to.
    gamma : {"scale", "auto"} or float, default="auto"
        Kernel coefficient. "auto" is 1 / n_features. "scale" is 1 / (n_features * X.var()) of the first
        piece, so that the model depends on where the stream was cut.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly".
    n_epochs : int, default=1
        Passes of `fit` over its rows; `partial_fit` makes one.
    n_jobs : int or None, default=None
        Threads at prediction; learning from a stream has one. None means all cores that this process may use.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model: its vectors are rows of the stream.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    mistakes_ : int
        Rows that were answered wrongly, or with a score of exactly 0, before they were learnt from.
    cumulative_error_ : float
        `mistakes_` / `n_seen_`.
    mistake_rows_ : ndarray of int64
        Where along the stream the mistakes of the last piece (of `partial_fit`, or pass of `fit`) were.
    n_seen_ : int
        Rows seen.
    n_epochs_ : int
        Passes over its rows that `fit` completed; 0 where `partial_fit` alone taught.
    gamma_ : float
        Kernel coefficient in use.
    n_features_in_ : int
        Columns of the stream.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    Notes
    -----
    Orabona, Keshet and Caputo, JMLR 10, 2009, Projectron++. Steps for margins never add a vector. They are
    not mistakes and are not counted as such. Cost as for `Projectron`, at every such row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.perceptron import ProjectronPlusPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectronPlusPlus(eta=0.3, gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _policy_name = "projectron++"
    _rules: ClassVar[dict[str, Rule]] = {"eta": real(above=0.0), **STREAM_RULES}
