"""A support vector machine whose kernel matrix is projected on a few points (Rifkin 2002, (3.104)-(3.121)).

With K_mm = L L', the rows of F = K_lm L^-T have the projected kernel K_lm K_mm^-1 K_ml as their inner
products: the dual (3.118) is that of a linear machine on F, and
c_m = K_mm^-1 K_ml Y alpha = L^-T F' Y alpha = L^-T w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative

from svmarrow import _core
from svmarrow._support.parameters import check, either, none, real
from svmarrow._support.rows import core_rows, default_gamma, threads, validated
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.points import POINT_RULES, choose_points
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.svm.classification import SVC

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.certificate import Certificate

__all__ = ["LowRankSVC"]

_RULES = {
    **POINT_RULES,
    "C": real(above=0.0),
    "tol": real(above=0.0),
    "max_time": either(none, real(least=0.0)),
}


class LowRankSVC(ClassifierMixin, BaseEstimator):
    """Support vector classification with coefficients at a few points (Rifkin 2002, section 3.7.2).

    The loss is over all rows, the expansion has ``n_vectors`` points however many support vectors there are.
    Memory n m numbers.

    Parameters
    ----------
    n_vectors : int, default=500
        Points; fewer where there are fewer rows.
    C : float, default=1.0
        Weight of the loss.
    selection : {"random", "kmeans", "ic", "leverage", "trace"} or array of shape (m, d), default="random"
        The points, as in `svmarrow.LowRankRLSClassifier`.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "chi2"}, default="rbf"
        The kernel.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-3
        Tolerance of the linear machine.
    max_time : float or None, default=None
        Most seconds of the linear machine.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
    n_jobs : int or None, default=None
        Threads, in `fit` and in prediction.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    expansion_ : KernelExpansion
        The model: points, coefficients (m, n_outputs), intercepts.
    certificate_ : Certificate
        That of the linear machine.
    indices_ : ndarray of shape (m,) or None
        Which training rows the points are; None where they are not rows.
    n_features_in_ : int
        Columns of the training data.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import LowRankSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LowRankSVC(150, C=10, random_state=0).fit(X[:800], y[:800])
    >>> bool(model.score(X[800:], y[800:]) > 0.9)
    True
    """

    classes_: NDArray[Any]
    expansion_: KernelExpansion
    certificate_: Certificate
    indices_: NDArray[np.int64] | None
    n_features_in_: int

    def __init__(
        self,
        n_vectors: int = 500,
        *,
        C: float = 1.0,
        selection: str | ArrayLike = "random",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.C = C
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the points, train on their features, go back to coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of at least two classes.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a single class, and a kernel that is not
            positive definite on the points.
        KeyboardInterrupt
            On Ctrl-C.
        """
        check(self.get_params(deep=False), _RULES)
        X, y = validated(self, X, y, reset=True, with_y=True)
        if self.kernel == "chi2":
            check_non_negative(X, f"{type(self).__name__} with kernel='chi2'")
        gamma = default_gamma(self.gamma, X, precomputed=False)
        spec = (self.kernel, gamma, float(self.coef0), int(self.degree))
        points, rows, _ = choose_points(
            X,
            self.n_vectors,
            spec,
            selection=self.selection,
            alpha=1.0 / (2.0 * float(self.C)),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        jobs = threads(self.n_jobs)
        own = _core.gram(core_rows(points), None, spec, jobs)
        # Points that depend on each other: a shift far below what single-precision prediction resolves.
        own[np.diag_indices_from(own)] += 1e-10 * max(float(np.trace(own)) / len(own), 1e-300)
        factor = np.linalg.cholesky(own)
        cross = _core.gram(core_rows(points), core_rows(X), spec, jobs)
        features = np.ascontiguousarray(solve_triangular(factor, cross, lower=True, overwrite_b=True).T)
        machine = SVC(
            C=self.C,
            kernel="linear",
            tol=self.tol,
            max_time=self.max_time,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        ).fit(features, y)
        coefficients = solve_triangular(factor, machine.coef_.T, lower=True, trans="T")
        self.expansion_ = KernelExpansion(points, coefficients, machine.intercept_, *spec)
        self.classes_, self.indices_ = machine.classes_, rows
        self.certificate_ = machine.certificate_
        return self

    def as_expansion(self) -> ExpansionClassifier:
        """The fitted model as a classifier made of a kernel expansion, without the training."""
        check_is_fitted(self)
        return ExpansionClassifier(
            self.expansion_,
            self.classes_,
            "binary" if self.classes_.size == 2 else "ovo",
            feature_names=getattr(self, "feature_names_in_", None),
            n_jobs=self.n_jobs,
        )

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes, as those of `svmarrow.SVC`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)

        Raises
        ------
        ValueError
            For a wrong number of columns and values that are not finite.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return self.as_expansion().scores_of(self.expansion_._evaluate(X, self.n_jobs))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Elements of `classes_`.

        Raises
        ------
        ValueError
            For a wrong number of columns and values that are not finite.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return self.classes_[self.as_expansion().decode(self.expansion_._evaluate(X, self.n_jobs))]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags
