"""The kernel perceptron, with the answer of its last, its average or all of its hypotheses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from svmarrow import _core
from svmarrow._support.atomic import consistent
from svmarrow._support.parameters import Rule, one_of
from svmarrow._support.rows import core_rows, threads
from svmarrow.perceptron._pool import PoolClassifier
from svmarrow.perceptron._stream import STREAM_RULES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from svmarrow.models.classifier import ExpansionClassifier

__all__ = ["KernelPerceptron"]


class KernelPerceptron(PoolClassifier):
    """The kernel perceptron: every mistake becomes a vector, without limit.

    Parameters
    ----------
    prediction : {"last", "averaged", "voted"}, default="last"
        Who answers at prediction: the last hypothesis; the average of all hypotheses of the stream, each
        weighted by the rows that it saw; or the votes of all of them, with the same weights. What is learnt
        is the same.
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
    Algorithm 1 of Ukkonen and Arias (2010); Freund and Schapire, Machine Learning 37, 1999, for averages and
    votes. With more than two classes a mistake adds the row to its class and takes it from the best other one
    (Crammer and Singer, JMLR 3, 2003). A row costs one kernel value a vector.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.perceptron import KernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelPerceptron(gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _policy_name = "unlimited"
    _rules: ClassVar[dict[str, Rule]] = {"prediction": one_of("last", "averaged", "voted"), **STREAM_RULES}

    def __init__(
        self,
        *,
        prediction: Literal["last", "averaged", "voted"] = "last",
        kernel: str = "rbf",
        gamma: str | float = "auto",
        coef0: float = 0.0,
        degree: int = 3,
        n_epochs: int = 1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.prediction = prediction
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_epochs = n_epochs
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _coefficients(self) -> NDArray[np.float64]:
        coefficients = super()._coefficients()
        if self.prediction != "averaged":
            return coefficients
        lived = (self.n_seen_ - self._state["born"]) / max(1, self.n_seen_)
        averaged: NDArray[np.float64] = coefficients * lived[:, None]
        return averaged

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        if self.prediction != "voted":
            return super()._outputs_of(rows)
        f = self.expansion_
        expansion = (core_rows(f.vectors), f.coefficients, f.intercepts, f.kernel_spec)
        born, n_classes = self._state["born"], int(self.classes_.size)
        votes = _core.voted(expansion, born, self.n_seen_, n_classes, core_rows(rows), threads(self.n_jobs))
        return votes if self.classes_.size > 2 else votes[:, 1:] - votes[:, :1]

    @consistent
    def as_expansion(self) -> ExpansionClassifier:
        """The model as an expansion with labels: what `svmarrow.compress` takes.

        Returns
        -------
        ExpansionClassifier
            The same answers, without the estimator.

        Raises
        ------
        TypeError
            For ``prediction="voted"``: votes are not an expansion.
        """
        if self.prediction == "voted":
            raise TypeError("prediction='voted' is not a kernel expansion: use 'last' or 'averaged'")
        return super().as_expansion()
