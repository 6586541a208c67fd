"""Regularized least squares: the estimators of the exact and of the low-rank systems.

The exact systems have all training rows; the low-rank ones take any number of samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    atomic_fit,
    atomic_update,
    check,
    consistent,
    real,
    refuse,
)
from svmarrow._support.rows import validated
from svmarrow._support.training import sample_weights
from svmarrow.least_squares._base import SquareLossClassifier, SquareLossRegressor, average, fit_all
from svmarrow.least_squares._exact import EXACT_RULES, ExactLeastSquares
from svmarrow.least_squares._low_rank import LOW_RANK_RULES, LowRankLeastSquares, takes_batches
from svmarrow.least_squares.targets import class_margins, conformal_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Rule
    from svmarrow.expansion.kernel_expansion import KernelFunction
    from svmarrow.least_squares.targets import TargetFit

__all__ = ["LowRankRLSClassifier", "LowRankRLSRegressor", "RLSClassifier", "RLSRegressor"]


# --- all training rows ---


class RLSClassifier(SquareLossClassifier, ExactLeastSquares, schema="rls-classifier/1"):
    """Regularized least-squares classification (Rifkin 2002, chapter 3).

    Minimizes sum_i w_i (y_i - f(x_i))^2 + alpha ||f||^2 for targets -1 and +1, one output for two classes,
    else one against the rest: (K + alpha W^-1) c = y, one factorization for all classes.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty, as in ``KernelRidge``; lambda n in Rifkin (2002).
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorization and its inverse, the kernel matrix is computed once. One eigendecomposition
        serves all where there are at most 1,500 samples, at most 100 for each alpha, and a built-in kernel.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, (n_samples_A, n_samples_B). Then
        samples may be objects: strings, series of different lengths (`svmarrow.kernels` has kernels of both),
        or of any class.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto", "loo"} or float, default="scale"
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
        "loo" takes the width of the least leave-one-out error, found from "scale" in steps by a factor of 2,
        if it is better than "scale" by one standard error: for kernels of a distance, some four fits, best
        with `alphas`.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool or "auto", default="auto"
        Whether exact leave-one-out values are computed, what each sample would be given had it not been
        there, which costs as much as the factorization. "auto": where they are to choose among ``alphas``
        or widths, else not. True is not for "cg", which has no factor to read them from.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the samples; "balanced" is
        n / (n_classes * count of the class), samples counted by their weights.
    solver : {"cholesky", "cg"}, default="cholesky"
        "cholesky" takes n^2 numbers of memory. "cg", conjugate gradients with a low-rank preconditioner,
        never stores the kernel matrix: for built-in kernels, and an alpha above 0.
    tol : float, default=1e-6
        For "cg": residual relative to the targets.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg", which begins no further iteration then.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    expansion_ : KernelExpansion
        The model: all training samples, coefficients (n, n_outputs), intercepts.
    dual_coef_ : ndarray of shape (n_outputs, n)
        The coefficients, for one output too: as ``SVC`` and ``SVR`` have them.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    alpha_ : float
        The alpha of the model.
    gamma_ : float
        With ``gamma="loo"``: the width that was taken.
    gammas_ : ndarray of shape (n_gammas,)
        With ``gamma="loo"``: the widths that were tried.
    gamma_errors_ : ndarray of shape (n_gammas,)
        Their leave-one-out errors; of labels with a thousandth of the squared error, which decides between
        equal shares.
    solver_ : str
        ``solver``, or "eigh" where one eigendecomposition served all of ``alphas``.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    gcv_path_ : ndarray of shape (n_alphas,)
        With ``alphas``: the mean of the outputs' generalized cross-validation scores.
    residual_ : float
        With "cg": the largest relative residual of an output, computed from the solution.
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    loo_decision_ : ndarray of shape (n,) or (n, n_classes)
        What `decision_function` would say of each training sample had it been left out; with
        ``leave_one_out``.
    loo_error_ : float
        Share of the samples that would then be misclassified.
    loo_error_bound_ : ndarray of shape (n_outputs,)
        Upper bounds of the leave-one-out error of each output that need no inverse (equation 3.59); without
        ``fit_intercept`` and without groups.
    gcv_ : ndarray of shape (n_outputs,)
        Generalized cross-validation scores; with ``leave_one_out``.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.SVC : The hinge loss, which leaves most samples out of the model.
    svmarrow.compress : A shorter expansion with nearly the same outputs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import RLSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RLSClassifier(alpha=0.1, leave_one_out=True).fit(X, y)
    >>> bool(model.score(X, y) > 0.95 and model.loo_error_ < 0.1)
    True
    """

    loo_error_bound_: NDArray[np.float64]
    _rules: ClassVar[Mapping[str, Rule]] = {**EXACT_RULES, "class_weight": CLASS_WEIGHT}
    leave_one_out: bool | Literal["auto"]
    class_weight: Mapping[Any, float] | Literal["balanced"] | None

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alphas: ArrayLike | None = None,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool | Literal["auto"] = "auto",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        solver: Literal["cholesky", "cg"] = "cholesky",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.alpha = alpha
        self.alphas = alphas
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Solve the system.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples; the (n, n) kernel matrix for the precomputed kernel.
        y : array-like of shape (n,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights w of the squares, and of the samples in leave-one-out errors; None is 1 for each. A sample
            of weight 2 counts as two samples, one of weight 0 takes no part.
        groups : array-like of shape (n,) or None, default=None
            Group of each sample, such as the patient or the site. Leave-one-out values, and the choices by
            their errors, are then those of models without the sample's whole group, exactly; None leaves
            out each sample alone.

        Returns
        -------
        object
            The fitted classifier.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a single class, a system that is not
            positive definite (raise alpha), and for groups where no leave-one-out value is computed, with
            missing values, or fewer than two.
        MemoryError
            If a kernel matrix that is needed does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        fitted: Self = fit_all(self, X, y, sample_weight, groups)
        return fitted

    @consistent
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Predict sets of classes that contain the labels with a given probability, by the jackknife+.

        A class belongs to the set of a sample x unless, for at least ``coverage`` of the training samples,
        the model without that sample gives the class a smaller margin at x than it gives the sample's own
        label at the sample (Romano, Sesia and Candes 2020). All these models follow from one factorization,
        exactly. Whatever the distribution, where samples are exchangeable, at least ``2 * coverage - 1`` of
        new labels are in their set in the mean over training sets, and about `coverage` in practice. A set
        may be empty, and hold several classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features_in_)
            Samples.
        coverage : float, default=0.9
            Probability, above 0 and below 1.

        Returns
        -------
        ndarray of shape (n, n_classes), bool
            Whether each of `classes_` belongs to the set of a sample.

        Raises
        ------
        ValueError
            For a coverage outside its range, for the precomputed kernel, if X has NaN, infinities or another
            number of columns, and for a system that is not positive definite.
        MemoryError
            If the n_train^2 numbers of the inverse do not fit in the free memory.
        """
        check({"coverage": coverage}, {"coverage": real(above=0.0, below=1.0)})
        X = validated(self, X, reset=False, precomputed=False)
        models, k = self._leave_one_out_models(), self.classes_.size
        labels = self._winners_of(models.targets)
        label_margins = class_margins(models.targets - models.residuals, k)[np.arange(labels.size), labels]
        least = float(coverage) * (label_margins.size + 1) * (1.0 - 4.0 * np.finfo(np.float64).eps)
        sets = np.empty((X.shape[0], k), dtype=np.bool_)
        for part, outputs in models.outputs(X, self.n_jobs):
            margins = class_margins(outputs, k)
            # Rows whose own label did better without them than the class does here.
            sets[part] = (margins < label_margins[:, np.newaxis]).sum(axis=1) < least
        return sets

    def _bound(
        self, fit: TargetFit, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> None:
        if self.fit_intercept:
            return
        with np.errstate(over="ignore"):  # where a row has hardly any weight
            alphas = self.alpha_ / (np.ones(len(targets)) if weights is None else weights)[:, np.newaxis]
        alphas = np.minimum(alphas, np.finfo(np.float64).max)
        diagonal = fit.diagonal[:, np.newaxis]
        uncleared = 1.0 - alphas * targets * fit.coef <= diagonal / (diagonal + alphas)
        self.loo_error_bound_ = average(uncleared, weights)


# --- regularized least-squares regression ---


class RLSRegressor(SquareLossRegressor, ExactLeastSquares, schema="rls-regressor/1"):
    """Regularized least-squares regression, also known as kernel ridge regression (Rifkin 2002, chapter 3).

    Minimizes sum_i w_i (y_i - f(x_i))^2 + alpha ||f||^2: (K + alpha W^-1) c = y, one factorization for all
    outputs.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty, as in ``KernelRidge``; lambda n in Rifkin (2002).
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorization and its inverse, the kernel matrix is computed once. One eigendecomposition
        serves all where there are at most 1,500 samples, at most 100 for each alpha, and a built-in kernel.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, (n_samples_A, n_samples_B). Then
        samples may be objects: strings, series of different lengths (`svmarrow.kernels` has kernels of both),
        or of any class.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto", "loo"} or float, default="scale"
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
        "loo" takes the width of the least leave-one-out error, found from "scale" in steps by a factor of 2,
        if it is better than "scale" by one standard error: for kernels of a distance, some four fits, best
        with `alphas`.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized.
    leave_one_out : bool or "auto", default="auto"
        Whether exact leave-one-out values are computed, what each sample would be given had it not been
        there, which costs as much as the factorization. "auto": where they are to choose among ``alphas``
        or widths, else not. True is not for "cg", which has no factor to read them from.
    solver : {"cholesky", "cg"}, default="cholesky"
        "cholesky" takes n^2 numbers of memory. "cg", conjugate gradients with a low-rank preconditioner,
        never stores the kernel matrix: for built-in kernels, and an alpha above 0.
    tol : float, default=1e-6
        For "cg": residual relative to the targets.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg", which begins no further iteration then.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model: all training samples, coefficients (n, n_outputs), intercepts.
    dual_coef_ : ndarray of shape (n_outputs, n)
        The coefficients, for one output too: as ``SVC`` and ``SVR`` have them.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    alpha_ : float
        The alpha of the model.
    gamma_ : float
        With ``gamma="loo"``: the width that was taken.
    gammas_ : ndarray of shape (n_gammas,)
        With ``gamma="loo"``: the widths that were tried.
    gamma_errors_ : ndarray of shape (n_gammas,)
        Their leave-one-out errors; of labels with a thousandth of the squared error, which decides between
        equal shares.
    solver_ : str
        ``solver``, or "eigh" where one eigendecomposition served all of ``alphas``.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    gcv_path_ : ndarray of shape (n_alphas,)
        With ``alphas``: the mean of the outputs' generalized cross-validation scores.
    residual_ : float
        With "cg": the largest relative residual of an output, computed from the solution.
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    loo_prediction_ : ndarray of shape (n,) or (n, n_outputs)
        What each training sample would be given had it been left out; with ``leave_one_out``.
    loo_error_ : float
        The mean squared error of those values.
    gcv_ : ndarray of shape (n_outputs,)
        Generalized cross-validation scores; with ``leave_one_out``.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import RLSRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = RLSRegressor(alpha=0.01, leave_one_out=True).fit(X, np.sin(X[:, 0]))
    >>> bool(model.loo_error_ < 1e-4)
    True
    """

    leave_one_out: bool | Literal["auto"]

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alphas: ArrayLike | None = None,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool | Literal["auto"] = "auto",
        solver: Literal["cholesky", "cg"] = "cholesky",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.alpha = alpha
        self.alphas = alphas
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Solve the system.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples; the (n, n) kernel matrix for the precomputed kernel.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights w of the squares, and of the samples in leave-one-out errors; None is 1 for each. A sample
            of weight 2 counts as two samples, one of weight 0 takes no part.
        groups : array-like of shape (n,) or None, default=None
            Group of each sample, such as the patient or the site. Leave-one-out values, and the choices by
            their errors, are then those of models without the sample's whole group, exactly; None leaves
            out each sample alone.

        Returns
        -------
        object
            The fitted regressor.

        Raises
        ------
        ValueError
            For parameters outside their rules, NaN or infinities, a system that is not
            positive definite (raise alpha), and for groups where no leave-one-out value is computed, with
            missing values, or fewer than two.
        MemoryError
            If a kernel matrix that is needed does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        fitted: Self = fit_all(self, X, y, sample_weight, groups)
        return fitted

    @consistent
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets and their uncertainty.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features_in_)
            Samples; (n, n_train) kernel values for the precomputed kernel.
        return_std : bool, default=False
            Whether to return standard deviations too. The first call after a fit inverts the matrix
            of the system, see `predict_interval`.

        Returns
        -------
        y : ndarray of shape (n,) or (n, n_outputs)
            In the shape of y in `fit`.
        std : ndarray of shape (n,)
            With ``return_std``: standard deviations of the function values under the prior of a Gaussian
            process with this kernel as covariance and noise of variance alpha, in which the predictions are
            the posterior mean; those of `sklearn.gaussian_process.GaussianProcessRegressor` with the same
            kernel. They follow from the kernel and from where the training samples are, not from the targets:
            `predict_interval` follows from the errors.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of columns; with ``return_std`` for the precomputed
            kernel.
        MemoryError
            With ``return_std``, if the n_train^2 numbers of the inverse do not fit in the free memory.
        """
        if not return_std:
            return self._shaped(self._outputs(X))
        X = validated(self, X, reset=False, precomputed=False)
        outputs = self.expansion_._evaluate(X, self.n_jobs)
        return self._shaped(outputs), np.sqrt(self._leave_one_out_models().variances(X, self.n_jobs))

    @consistent
    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Predict intervals that contain the targets with a given probability, by the jackknife+.

        The interval comes from the values that the models without one of the training samples give, and from
        their errors on the sample left out (Barber, Candes, Ramdas and Tibshirani 2021). All these models
        follow from one factorization, exactly. Whatever the distribution, where samples are exchangeable, at
        least ``2 * coverage - 1`` of new targets lie within in the mean over training sets, and about
        `coverage` in practice. The guarantee assumes that no parameter was chosen on the training samples, as
        `alphas` are, and that weights do not differ.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features_in_)
            Samples.
        coverage : float, default=0.9
            Probability, above 0 and below 1.

        Returns
        -------
        ndarray of shape (n, 2) or (n, n_outputs, 2)
            Lower and upper ends. Infinite with fewer training samples than ``coverage / (1 - coverage)``.

        Raises
        ------
        ValueError
            For a coverage outside its range, for the precomputed kernel, if X has NaN, infinities or another
            number of columns, and for a system that is not positive definite.
        MemoryError
            If the n_train^2 numbers of the inverse do not fit in the free memory.

        Notes
        -----
        The first call after a fit inverts the matrix of the system, which takes a few times as long as `fit`;
        later ones take n_train^2 multiplications a sample.
        """
        check({"coverage": coverage}, {"coverage": real(above=0.0, below=1.0)})
        X = validated(self, X, reset=False, precomputed=False)
        models = self._leave_one_out_models()
        sizes = np.abs(models.residuals)
        ends = np.empty((X.shape[0], models.residuals.shape[1], 2))
        for part, outputs in models.outputs(X, self.n_jobs):
            limits = conformal_limits(outputs - sizes, outputs + sizes, float(coverage))
            ends[part] = np.stack(limits, axis=-1)
        return ends[:, 0] if self._single else ends


# --- coefficients at a few vectors ---


class LowRankRLSClassifier(SquareLossClassifier, LowRankLeastSquares, schema="low-rank-rls-classifier/1"):
    """Regularized least-squares classification with a fixed number of vectors (Rifkin 2002, section 3.7).

    Cost n m d + n m^2 / 2, memory m^2, whatever the number of samples.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002) for n samples.
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorization and a pass over the samples; only for "subset_of_regressors".
    method : {"subset_of_regressors", "subset", "nystrom"}, default="subset_of_regressors"
        The approximation. "subset_of_regressors" (Rifkin's rectangle method): only the vectors have
        coefficients, and the loss is that of all samples (3.86). "subset": the vectors are the only training
        samples. "nystrom": the kernel matrix is replaced by its projection on the vectors, and all samples
        have coefficients (3.81); for comparisons.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen. "random": uniformly from the samples. "kmeans": cluster centers of
        scikit-learn's ``MiniBatchKMeans``, for dense samples. "pivoted_cholesky" (incomplete Cholesky
        factorization): next is the sample with the largest residual kernel value. "leverage": drawn by
        leverage scores. "greedy_trace": at each step, of 59 random samples the one that minimizes the trace
        of the residual kernel matrix; the best of 59 is among the best 5 % of all samples with a probability
        of 95 %. An array: these vectors, whatever ``n_vectors`` is.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, which may be objects such as strings.
        Both must be positive semidefinite, and go with ``selection="random"``; a function also with points.
        Vectors that depend on others are left out.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized; not with "nystrom".
    leave_one_out : bool, default=False
        Whether exact leave-one-out values are computed, the vectors held fixed: a second pass over the
        samples; not with "nystrom" and ``solver="cg"``.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        "cholesky" sums over the samples and factors the system: n m^2 / 2 multiply-adds. "cg" takes
        conjugate gradients, preconditioned by the system of 4 m samples (Rudi, Carratino and Rosasco 2017):
        n m d for each of some twenty passes over the samples and 4 m^3. "auto" compares their costs, takes
        "cg" from 1,000 vectors on at the earliest, and "cholesky" where "cg" does not apply. "cg" is for
        "subset_of_regressors", an alpha above 0 and positive definite kernels of rows, without leave-one-out
        values and ``alphas``. It keeps no sums: `partial_fit`, `path` and `merge` refuse its models.
    tol : float, default=1e-6
        For "cg": root mean square of the differences between the outputs on the training samples and those
        of the exact solution, relative to that of the targets (less their mean with an intercept). The
        iteration ends when a bound of it is as small, or with a warning when rounding keeps the bound above
        it: for linear and polynomial kernels with many vectors and a small alpha at about 1e-5.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg" after which it ends with the last iterate; "auto" takes "cg" if it
        is given.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the samples; "balanced" is
        n / (n_classes * count of the class), samples counted by their weights.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    loo_decision_ : ndarray of shape (n,) or (n, n_classes)
        What `decision_function` would say of each training sample had it been left out; with
        ``leave_one_out``.
    loo_error_ : float
        Share of the samples that would then be misclassified.
    alpha_ : float
        The alpha of the model.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    dual_coef_ : ndarray of shape (n_outputs, m)
        Coefficients of the points.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    expansion_ : KernelExpansion
        The model: points, coefficients (m, n_outputs), intercepts.
    indices_ : ndarray of shape (m,) or None
        Indices of the vectors among the training samples; None if they are not training samples.
    remaining_trace_ : ndarray of shape (m + 1,)
        Trace of K minus its approximation after each vector; for "pivoted_cholesky" and "greedy_trace".
    jitter_ : float
        With "cholesky": what had to be added to the diagonal of the system because rounding had made it
        indefinite; mostly 0. With "cg": what was added to the diagonal of the kernel matrix of the vectors,
        about its rounding error; the exact solution of ``tol`` is that of this matrix.
    solver_ : str
        The solver that was used: "cholesky" or "cg".
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    residual_ : float
        With "cg": the bound of ``tol``, computed from the solution.
    n_seen_ : int
        Samples the model stands for.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow.least_squares import LowRankRLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LowRankRLSClassifier(200, alpha=0.1, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**LOW_RANK_RULES, "class_weight": CLASS_WEIGHT}
    method: Literal["subset_of_regressors", "subset", "nystrom"]
    kernel: str | KernelFunction
    solver: Literal["auto", "cholesky", "cg"]
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    classes_: NDArray[Any]

    def __init__(
        self,
        n_vectors: int = 500,
        *,
        alpha: float = 1.0,
        alphas: ArrayLike | None = None,
        method: Literal["subset_of_regressors", "subset", "nystrom"] = "subset_of_regressors",
        selection: str | ArrayLike = "random",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool = False,
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.alpha = alpha
        self.alphas = alphas
        self.method = method
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @available_if(takes_batches)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Update the model with a batch: the result is that of a fit to all samples so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples. The vectors are chosen among those of the first piece.
        y : array-like of shape (n,)
            Labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All labels that may come; needed in the first call.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squares; None is 1 for each. Samples of weight 0 are not there.

        Returns
        -------
        object
            The model of all samples so far.

        Raises
        ------
        ValueError
            As `fit`, for labels that are not among the classes, for a ``method`` other than
            "subset_of_regressors", for ``class_weight="balanced"``, since the classes to come are not
            counted yet, and after a fit with ``solver_ == "cg"``.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        check(self.get_params(deep=False), self._rules)
        if self.class_weight == "balanced":
            raise refuse("class_weight", self.class_weight, "a dict or None for partial_fit")
        self._refuse_without_sums("partial_fit")
        first = not hasattr(self, "_sums") or self._sums is None
        X, y = validated(self, X, y, reset=first, with_y=True)
        targets = self._targets_of_piece(y, classes, first=first)
        weights = self._row_weights(targets, sample_weights(sample_weight, X.shape[0]))
        self._piece(X, targets, weights, first=first)
        return self


class LowRankRLSRegressor(SquareLossRegressor, LowRankLeastSquares, schema="low-rank-rls-regressor/1"):
    """Regularized least-squares regression with a fixed number of vectors (Rifkin 2002, section 3.7).

    Cost n m d + n m^2 / 2, or for many vectors some twenty times n m d by conjugate gradients; memory m^2,
    whatever the number of samples.

    Parameters
    ----------
    n_vectors : int, default=500
        Number of vectors; fewer if there are fewer samples.
    alpha : float, default=1.0
        Weight of the penalty; lambda n in Rifkin (2002) for n samples.
    alphas : array-like of float or None, default=None
        Several penalties: the one with the least leave-one-out error is taken, `alpha` is not used. Each
        costs a factorization and a pass over the samples; only for "subset_of_regressors".
    method : {"subset_of_regressors", "subset", "nystrom"}, default="subset_of_regressors"
        The approximation. "subset_of_regressors" (Rifkin's rectangle method): only the vectors have
        coefficients, and the loss is that of all samples (3.86). "subset": the vectors are the only training
        samples. "nystrom": the kernel matrix is replaced by its projection on the vectors, and all samples
        have coefficients (3.81); for comparisons.
    selection : str or array of shape (m, d), default="random"
        How the vectors are chosen. "random": uniformly from the samples. "kmeans": cluster centers of
        scikit-learn's ``MiniBatchKMeans``, for dense samples. "pivoted_cholesky" (incomplete Cholesky
        factorization): next is the sample with the largest residual kernel value. "leverage": drawn by
        leverage scores. "greedy_trace": at each step, of 59 random samples the one that minimizes the trace
        of the residual kernel matrix; the best of 59 is among the best 5 % of all samples with a probability
        of 95 %. An array: these vectors, whatever ``n_vectors`` is.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32", "matern52" or
        "precomputed"; `KernelExpansion` has the formulas. With "precomputed", `fit` takes the symmetric (n,
        n) kernel matrix, and prediction an (n_test, n) one or the columns of the vectors alone. A function
        ``k(A, B)`` returns the kernel values of two blocks of samples, which may be objects such as strings.
        Both must be positive semidefinite, and go with ``selection="random"``; a function also with points.
        Vectors that depend on others are left out.
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of all kernels but "linear" and "precomputed"; "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features, and for Matérn kernels their square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalized; not with "nystrom".
    leave_one_out : bool, default=False
        Whether exact leave-one-out values are computed, the vectors held fixed: a second pass over the
        samples; not with "nystrom" and ``solver="cg"``.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        "cholesky" sums over the samples and factors the system: n m^2 / 2 multiply-adds. "cg" takes
        conjugate gradients, preconditioned by the system of 4 m samples (Rudi, Carratino and Rosasco 2017):
        n m d for each of some twenty passes over the samples and 4 m^3. "auto" compares their costs, takes
        "cg" from 1,000 vectors on at the earliest, and "cholesky" where "cg" does not apply. "cg" is for
        "subset_of_regressors", an alpha above 0 and positive definite kernels of rows, without leave-one-out
        values and ``alphas``. It keeps no sums: `partial_fit`, `path` and `merge` refuse its models.
    tol : float, default=1e-6
        For "cg": root mean square of the differences between the outputs on the training samples and those
        of the exact solution, relative to that of the targets (less their mean with an intercept). The
        iteration ends when a bound of it is as small, or with a warning when rounding keeps the bound above
        it: for linear and polynomial kernels with many vectors and a small alpha at about 1e-5.
    max_iter : int, default=-1
        Maximum number of iterations of "cg"; -1 means no limit.
    max_time : float or None, default=None
        Maximum number of seconds of "cg" after which it ends with the last iterate; "auto" takes "cg" if it
        is given.
    random_state : int, RandomState instance or None, default=None
        Seed of the points.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    loo_prediction_ : ndarray of shape (n,) or (n, n_outputs)
        What each training sample would be given had it been left out; with ``leave_one_out``.
    loo_error_ : float
        The mean squared error of those values.
    alpha_ : float
        The alpha of the model.
    loo_errors_ : ndarray of shape (n_alphas,)
        With ``alphas``: the leave-one-out error of each.
    dual_coef_ : ndarray of shape (n_outputs, m)
        Coefficients of the points.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs; zeros without ``fit_intercept``.
    expansion_ : KernelExpansion
        The model: points, coefficients (m, n_outputs), intercepts.
    indices_ : ndarray of shape (m,) or None
        Indices of the vectors among the training samples; None if they are not training samples.
    remaining_trace_ : ndarray of shape (m + 1,)
        Trace of K minus its approximation after each vector; for "pivoted_cholesky" and "greedy_trace".
    jitter_ : float
        With "cholesky": what had to be added to the diagonal of the system because rounding had made it
        indefinite; mostly 0. With "cg": what was added to the diagonal of the kernel matrix of the vectors,
        about its rounding error; the exact solution of ``tol`` is that of this matrix.
    solver_ : str
        The solver that was used: "cholesky" or "cg".
    n_iter_ : int
        Number of iterations of "cg"; otherwise 1.
    residual_ : float
        With "cg": the bound of ``tol``, computed from the solution.
    n_seen_ : int
        Samples the model stands for.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow.least_squares import LowRankRLSRegressor
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> model = LowRankRLSRegressor(20, alpha=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

    method: Literal["subset_of_regressors", "subset", "nystrom"]
    kernel: str | KernelFunction
    solver: Literal["auto", "cholesky", "cg"]

    def __init__(
        self,
        n_vectors: int = 500,
        *,
        alpha: float = 1.0,
        alphas: ArrayLike | None = None,
        method: Literal["subset_of_regressors", "subset", "nystrom"] = "subset_of_regressors",
        selection: str | ArrayLike = "random",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        leave_one_out: bool = False,
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_vectors = n_vectors
        self.alpha = alpha
        self.alphas = alphas
        self.method = method
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.leave_one_out = leave_one_out
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @available_if(takes_batches)  # type: ignore[untyped-decorator]
    @atomic_update
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Update the model with a batch: the result is that of a fit to all samples so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, d)
            Samples. The vectors are chosen among those of the first piece.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squares; None is 1 for each. Samples of weight 0 are not there.

        Returns
        -------
        object
            The model of all samples so far.

        Raises
        ------
        ValueError
            As `fit`, for another number of outputs, for a ``method`` other than "subset_of_regressors", and
            after a fit with ``solver_ == "cg"``.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.
        """
        check(self.get_params(deep=False), self._rules)
        self._refuse_without_sums("partial_fit")
        first = not hasattr(self, "_sums") or self._sums is None
        X, y = self._validated_pair(X, y, precomputed=False, reset=first)
        targets = self._targets(y)
        if not first and targets.shape[1] != self._sums["targets"].size:
            raise ValueError(
                f"y has {targets.shape[1]} outputs: the rows so far have {self._sums['targets'].size}"
            )
        self._piece(X, targets, sample_weights(sample_weight, X.shape[0]), first=first)
        return self
