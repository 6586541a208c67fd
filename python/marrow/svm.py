"""Support vector machines."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative

from marrow import _core
from marrow._decode import Decoding, check_shape, class_indices, decision_values, pairs
from marrow._params import THREADS, boolean, check, either, integer, kernel_rules, mapping, none, one_of, real
from marrow._progress import progress
from marrow._validation import (
    cache_bytes,
    core_rows,
    default_gamma,
    sample_weights,
    select_rows,
    threads,
    validated,
)
from marrow.certificate import Certificate, MachineCertificate
from marrow.expansion import KernelExpansion

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from marrow.classifier import ExpansionClassifier

__all__ = ["SVC", "Certificate", "MachineCertificate"]

_RULES = {
    "C": real(above=0.0),
    **kernel_rules(),
    "shrinking": boolean,
    "tol": real(above=0.0),
    "cache_size": either(none, real(above=0.0)),
    "class_weight": either(none, one_of("balanced"), mapping),
    "multi_class": one_of("ovo", "ovr"),
    "decision_function_shape": one_of("ovo", "ovr"),
    "break_ties": boolean,
    "max_iter": either(integer(least=1), integer(least=-1, most=-1, text="-1 for no limit")),
    "max_time": either(none, real(least=0.0)),
    "n_jobs": THREADS,
    "verbose": either(boolean, integer(least=0)),
}


class SVC(ClassifierMixin, BaseEstimator):
    """Support vector classification with the hinge loss, solved to the tolerance on all cores.

    Each binary machine minimises 1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i (w'phi(x_i) + b)). All machines of a
    multiclass problem share kernel rows while they are trained and one pool of support vectors afterwards.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; multiplied for each row by its class weight and its sample weight. Positive and
        finite.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed"}, default="rbf"
        With "precomputed", `fit` takes the (n, n) kernel matrix and `predict` an (n_test, n) one.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of "poly", "rbf", "sigmoid", "laplacian" and "chi2"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether rows that seem settled are set aside until the end. It changes the time, not the result.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the decision function.
    cache_size : float or None, default=None
        Memory for kernel rows in MB; None is a share of the free memory.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    multi_class : {"ovo", "ovr"}, default="ovo"
        A machine for each pair of classes, or one for each class against all others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For ``multi_class="ovo"``: whether `decision_function` gives a number for each class, or one for each
        pair.
    break_ties : bool, default=False
        Whether `predict` breaks ties between votes by `decision_function`; needs
        ``decision_function_shape="ovr"``.
    max_iter : int, default=-1
        Most pair steps of one machine; -1 is no limit.
    max_time : float or None, default=None
        Most seconds of the fit. A fit that ends early is a usable model, and warns.
    n_jobs : int or None, default=None
        Threads, in `fit` and in prediction. None is all cores that this process may use, within the limits of
        joblib and ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model: support vectors, coefficients (n_SV, n_outputs), intercepts.
    certificate_ : Certificate
        Objectives, duality gap, violation, counts and cost of the fit, in all and for each machine.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    support_ : ndarray of shape (n_SV,), int32
        Training rows that are support vectors, class by class.
    n_support_ : ndarray of shape (n_classes,), int32
        Support vectors of each class.
    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of C for each class.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
        Columns of the training data.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, where X had names that are all strings.

    Notes
    -----
    The dual is solved by two-tier decomposition: blocks of violators, pair steps inside a block with
    second-order selection, float32 kernel rows and double-precision sums. float32, float64 and (dense) uint8
    data is used as it lies in memory when rows are contiguous; other data is converted once.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marrow import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.1).fit(X, y)
    >>> svc.predict(X[:3])
    array([0, 0, 0])
    >>> svc.certificate_.stop
    'converged'
    """

    expansion_: KernelExpansion
    certificate_: Certificate
    classes_: NDArray[Any]
    support_: NDArray[np.int32]
    n_support_: NDArray[np.int32]
    class_weight_: NDArray[np.float64]
    shape_fit_: tuple[int, int]
    n_features_in_: int

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovo", "ovr"] = "ovr",
        break_ties: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d), or (n, n) for the precomputed kernel
            Rows.
        y : array-like of shape (n,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Multiplier of C for each row, not negative. Rows of weight 0 are left out.

        Returns
        -------
        SVC
            Itself.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a single class, a class without a row of
            positive weight, lengths that disagree.
        KeyboardInterrupt
            On Ctrl-C, within a second; the estimator is then as it was.

        Warns
        -----
        ConvergenceWarning
            If a machine ended before the tolerance was reached.
        """
        check(self.get_params(deep=False), _RULES)
        precomputed = self.kernel == "precomputed"
        X, y = validated(self, X, y, reset=True, precomputed=precomputed, with_y=True)
        if precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(f"X has shape {X.shape}: a precomputed kernel matrix must be square")
        if self.kernel == "chi2":
            check_non_negative(X, "SVC with kernel='chi2'")
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(f"y has {classes.size} class: it must have at least 2 classes")
        coding: Decoding = "binary" if classes.size == 2 else self.multi_class
        check_shape(coding, self.decision_function_shape, self.break_ties)
        class_weight = compute_class_weight(self.class_weight, classes=classes, y=y)
        weights = self._row_weights(class_weight, labels, sample_weights(sample_weight, X.shape[0]), classes)
        used = np.flatnonzero(weights)
        every = used.size == weights.size
        gamma = default_gamma(self.gamma, X, precomputed=precomputed)
        kernel = (self.kernel, gamma, float(self.coef0), int(self.degree))
        with progress(self.verbose) as told:
            fitted = _core.fit_svc(
                core_rows(X if every else select_rows(X, used, precomputed=precomputed)),
                np.ascontiguousarray(labels if every else labels[used], dtype=np.int64),
                int(classes.size),
                np.ascontiguousarray((weights if every else weights[used]) * float(self.C)),
                kernel,
                self.multi_class,
                float(self.tol),
                cache_bytes(self.cache_size),
                bool(self.shrinking),
                None if self.max_iter == -1 else int(self.max_iter),
                None if self.max_time is None else float(self.max_time),
                told.callback,
                threads(self.n_jobs),
            )
        support = fitted["support"] if every else used[fitted["support"]]
        vectors = support[:, np.newaxis].astype(np.float64) if precomputed else X[support]
        self.expansion_ = KernelExpansion(vectors, fitted["coefficients"], fitted["intercepts"], *kernel)
        self.certificate_ = Certificate.of(fitted)
        self.classes_ = classes
        self.support_ = support.astype(np.int32)
        self.n_support_ = fitted["class_counts"].astype(np.int32)
        self.class_weight_ = class_weight
        self.shape_fit_ = (int(X.shape[0]), int(X.shape[1]))
        self._decoding: Decoding = coding
        self._warn()
        return self

    @staticmethod
    def _row_weights(
        class_weight: NDArray[np.float64],
        labels: NDArray[np.intp],
        weights: NDArray[np.float64] | None,
        classes: NDArray[Any],
    ) -> NDArray[np.float64]:
        if not np.isfinite(class_weight).all() or (class_weight < 0.0).any():
            raise ValueError(
                f"class_weight gives {class_weight.tolist()}: weights must be finite and not negative"
            )
        rows: NDArray[np.float64] = (
            class_weight[labels] if weights is None else class_weight[labels] * weights
        )
        left = np.bincount(labels[rows > 0.0], minlength=classes.size)
        if (left == 0).any():
            gone = classes[int(np.argmin(left))]
            raise ValueError(
                f"the weights of class {gone} are all zero: every class needs a row of positive weight"
            )
        return rows

    def _warn(self) -> None:
        certificate = self.certificate_
        if certificate.stop != "converged":
            warnings.warn(
                f"SVC ended before the tolerance was reached ({certificate.stop}): the violation is "
                f"{certificate.violation:.3g} for tol={self.tol:g}, the duality gap {certificate.gap:.3g} of "
                f"{certificate.primal:.6g}. The model is usable; raise max_iter or max_time, or scale the "
                "data",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        expansion = self.expansion_
        X = validated(self, X, reset=False, precomputed=expansion.kernel == "precomputed")
        return expansion._evaluate(X, self.n_jobs)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values, with scikit-learn's shapes and signs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows; (n, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n,), (n, n_classes) or (n, n_classes * (n_classes - 1) / 2)
            Two classes: positive for the second. Else one number for each class, or one for each pair with
            ``decision_function_shape="ovo"``.

        Raises
        ------
        ValueError
            For a wrong number of columns and values that are not finite.
        """
        outputs = self._outputs(X)
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        return decision_values(outputs, self._decoding, self.classes_.size, self.decision_function_shape)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Rows; (n, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n,)
            Elements of `classes_`.

        Raises
        ------
        ValueError
            For a wrong number of columns and values that are not finite.
        """
        outputs = self._outputs(X)
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        winners = class_indices(
            outputs,
            self._decoding,
            self.classes_.size,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )
        labels: NDArray[Any] = self.classes_[winners]
        return labels

    def as_expansion(self) -> ExpansionClassifier:
        """The fitted model as a classifier made of a kernel expansion, without the training."""
        from marrow.classifier import ExpansionClassifier

        check_is_fitted(self)
        return ExpansionClassifier(
            self.expansion_,
            self.classes_,
            self._decoding,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=self.n_features_in_,
            n_jobs=self.n_jobs,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves the fitted model as a safetensors file, all or nothing; `marrow.load` reads it.

        Raises
        ------
        OSError
            If the file cannot be written; an old file of that name is then as it was.
        """
        from marrow.io import save

        check_is_fitted(self)
        save(self, path)

    @property
    def support_vectors_(self) -> Any:
        """Support vectors (n_SV, d) as in the training data; empty for the precomputed kernel."""
        vectors = self._fitted_expansion().vectors
        return np.empty((0, 0)) if self._fitted_expansion().kernel == "precomputed" else vectors

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts (n_outputs,)."""
        return self._fitted_expansion().intercepts

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Signed coefficients in scikit-learn's layout.

        (1, n_SV) for two classes; (n_classes - 1, n_SV) one against one, where row r of a support vector
        belongs to its machine against the r-th of the other classes; (n_classes, n_SV) one against the rest.
        """
        coefficients = self._fitted_expansion().coefficients
        if self._decoding != "ovo":
            return coefficients.T
        k = self.classes_.size
        own = np.repeat(np.arange(k), self.n_support_)
        packed = np.zeros((k - 1, own.size))
        for output, (a, b) in enumerate(pairs(k)):
            packed[b - 1, own == a] = coefficients[own == a, output]
            packed[a, own == b] = coefficients[own == b, output]
        return packed

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features (n_outputs, d), read-only; for the linear kernel alone."""
        expansion = self._fitted_expansion()
        if expansion.kernel != "linear":
            raise AttributeError(f"coef_ exists for kernel='linear' only, this is {expansion.kernel!r}")
        vectors = (
            expansion.vectors if sp.issparse(expansion.vectors) else expansion.vectors.astype(np.float64)
        )
        weights: NDArray[np.float64] = np.asarray((vectors.T @ expansion.coefficients).T)
        weights.flags.writeable = False
        return weights

    @property
    def n_iter_(self) -> NDArray[np.int64]:
        """Pair steps of each machine (n_outputs,)."""
        self._fitted_expansion()
        return np.array([machine.iterations for machine in self.certificate_.machines], dtype=np.int64)

    @property
    def fit_status_(self) -> int:
        """0 if every machine reached the tolerance, else 1."""
        self._fitted_expansion()
        return int(self.certificate_.stop != "converged")

    def _fitted_expansion(self) -> KernelExpansion:
        try:
            return self.expansion_
        except AttributeError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags
