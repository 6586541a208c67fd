"""Perceptrons with a budget: what happens when a mistake finds the pool full."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from svmarrow._support.parameters import RANDOM_STATE, Rule, integer, one_of
from svmarrow.perceptron._pool import NO_BUDGET, PoolClassifier
from svmarrow.perceptron._stream import STREAM_RULES

if TYPE_CHECKING:
    import numpy as np

__all__ = ["BudgetPerceptron", "Forgetron", "Stoptron"]

BUDGET = integer(least=1, most=NO_BUDGET)


class _Budgeted(PoolClassifier):
    """A policy without settings of its own."""

    _rules: ClassVar[dict[str, Rule]] = {"budget": BUDGET, **STREAM_RULES}

    def __init__(
        self,
        *,
        budget: int = 100,
        kernel: str = "rbf",
        gamma: str | float = "auto",
        coef0: float = 0.0,
        degree: int = 3,
        n_epochs: int = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.budget = budget
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_epochs = n_epochs
        self.n_jobs = n_jobs
        self.verbose = verbose


class Stoptron(_Budgeted):
    """The kernel perceptron that stops learning when its budget is spent.

    Parameters
    ----------
    budget : int, default=100
        Most vectors, which is also the most kernel values that an answer costs. At least 1; during a stream
        it may grow but not fall below the vectors there are.
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
    The baseline of Ukkonen and Arias (2010), section 5. Mistakes are counted after it stopped, too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.perceptron import Stoptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Stoptron(budget=50, gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _policy_name = "stop"


class BudgetPerceptron(PoolClassifier):
    """The kernel perceptron whose mistakes take the place of older vectors when the budget is spent.

    Parameters
    ----------
    budget : int, default=100
        Most vectors, which is also the most kernel values that an answer costs. At least 1; during a stream
        it may grow but not fall below the vectors there are.
    removal : {"oldest", "margin", "random", "tightest"}, default="oldest"
        Who leaves: "oldest", the vector that came first; "margin", the vector that is most surely right
        without itself; "random", anyone; "tightest", the vector without which the fewest vectors of the pool
        are wrong, among these the one of "margin".
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
    random_state : int, RandomState instance or None, default=None
        Seed of the choices; None draws one.
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
    "margin": Crammer, Kandola and Singer, NIPS 16, 2004. "random": Cavallanti, Cesa-Bianchi and Gentile,
    Machine Learning 69, 2007. "tightest": Weston, Bordes and Bottou, AISTATS 2005. A mistake at a full pool
    of m vectors costs O(m) more kernel values for "margin", and O(m^2) additions and m^2 numbers for
    "tightest".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.perceptron import BudgetPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BudgetPerceptron(budget=50, removal="margin", gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "budget": BUDGET,
        "removal": one_of("oldest", "margin", "random", "tightest"),
        **STREAM_RULES,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        *,
        budget: int = 100,
        removal: Literal["oldest", "margin", "random", "tightest"] = "oldest",
        kernel: str = "rbf",
        gamma: str | float = "auto",
        coef0: float = 0.0,
        degree: int = 3,
        n_epochs: int = 1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.budget = budget
        self.removal = removal
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _policy(self) -> str:
        return self.removal


class Forgetron(_Budgeted):
    """The Forgetron: the oldest vector leaves after all coefficients shrank, so that it leaves quietly.

    Every mistake that finds the pool full shrinks all coefficients; that of the oldest vector has shrunk most
    often, and answers change little when it leaves.

    Parameters
    ----------
    budget : int, default=100
        Most vectors, which is also the most kernel values that an answer costs. At least 1; during a stream
        it may grow but not fall below the vectors there are.
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
    The self-tuned Forgetron of Dekel, Shalev-Shwartz and Singer, SIAM Journal on Computing 37, 2008. Its
    bound on the mistakes holds for k(x, x) <= 1: the kernels "rbf", "laplacian" and "chi2".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.perceptron import Forgetron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Forgetron(budget=50, gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _policy_name = "forgetron"
