"""Classification and regression of tables without a parameter to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import atomic_fit, consistent
from svmarrow._support.bases import MultiOutputMixin
from svmarrow._support.callbacks import fitting
from svmarrow._support.decoding import encode_classes
from svmarrow._support.parameters import CLASS_WEIGHT, Rule
from svmarrow.models.calibration import Calibration
from svmarrow.models.output_mixins import ClassifierOutputMixin, RegressorOutputMixin
from svmarrow.preprocessing._targets import standardized
from svmarrow.tabular._base import Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray


__all__ = ["TabularClassifier", "TabularRegressor"]


class TabularClassifier(ClassifierOutputMixin, Tabular):
    """Classification of tables without a parameter to set.

    Takes a table as it is: numbers, booleans, strings, categories, missing values. Missing numbers are
    replaced by the median, and an extra column marks them. Numbers outside the training range are clipped to
    it. Categories become columns of 0 and 1 that share a scale. Shapes and scales of the columns are learned
    from the target (`svmarrow.preprocessing.LearnedScaler`). Kernel, bandwidth and penalty minimize the
    leave-one-out error. The model is exact up to 20,000 samples and low-rank above.

    Parameters
    ----------
    categories : list of str or int or None, default=None
        Names or numbers of columns that are categories although they hold numbers. Columns of strings and of
        pandas' type "category" always are.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in `svmarrow.RLSClassifier`.
    n_samples : int, default=1000
        Maximum number of samples from which scales and shapes are learned.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds and of the drawn samples.
    max_time : float or None, default=None
        Maximum number of seconds of the fit. With more than 2,000 samples, the search for scales and kernel
        takes at most half of them. If the remaining time is too short for an exact fit to all samples, that
        fit is low-rank. If the time is too short for a low-rank fit too, the model is the fit to the samples
        of the search: 2,000, or 500 if time is too short for 2,000. One such fit always takes place.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. The result is the same for any number.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    model_ : ExpansionClassifier
        The whole model: the encoding of the table, the scales and the expansion; what `as_expansion` returns
        and `svmarrow.compress` takes.
    expansion_ : KernelExpansion
        The model without the encoding, for the encoded and scaled columns.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Each feature's share of the squared scales, see `svmarrow.preprocessing.LearnedScaler`; the shares add
        up to 1.
    kernel_ : str
        The chosen kernel: "rbf", "matern52", "matern32" or "matern12".
    gamma_ : float
        The coefficient of the kernel.
    alpha_ : float
        The penalty, as in `svmarrow.RLSRegressor`.
    shape_ : str
        The shape of the columns, see `svmarrow.preprocessing.LearnedScaler`.
    loo_error_ : float
        The leave-one-out error of the chosen machine on at most 2,000 samples: the share of wrong labels. The
        scales have seen all targets, so it is somewhat too small.
    stop_ : {"finished", "max_time"}
        Why the fit ended.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.preprocessing.LearnedScaler : The scales alone, in front of any estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from svmarrow import TabularClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = TabularClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    classes_: NDArray[Any]
    _classifies = True
    _rules: ClassVar[Mapping[str, Rule]] = {**Tabular._rules, "class_weight": CLASS_WEIGHT}

    def __init__(
        self,
        *,
        categories: ArrayLike | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        n_samples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.categories = categories
        self.class_weight = class_weight
        self.n_samples = n_samples
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the encoding, the scales and the machine.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            Numbers, strings and missing values.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the squared errors; None is 1 for each. A sample of weight 0 takes no part.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters outside their rules, infinities, a table of gaps alone, a single class.
        MemoryError
            If the matrix of the samples does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.

        Warns
        -----
        ConvergenceWarning
            If `max_time` ended the search for scales and kernel, or the fit to all samples.
        """
        with fitting(self, X, y, sample_weight):
            return self._fit_all(X, y, sample_weight)

    def _check_targets(self, y: NDArray[Any]) -> NDArray[np.intp]:
        check_classification_targets(y)
        self.classes_, labels = encode_classes(y)
        return labels

    def _units(self, y: Any, weights: Any) -> None:  # noqa: ARG002
        return None

    def _calibrated(self, model: Any, machine: Any, y: Any, weights: Any) -> Any:
        labels = np.searchsorted(self.classes_, y)
        ones = np.ones(labels.size) if weights is None else weights
        scores = machine.loo_decision_.reshape(labels.size, -1)
        return model.with_calibration(Calibration.fitted("classes", scores, labels, self.classes_.size, ones))

    @consistent
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, by sigmoids of leave-one-out outputs.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features_in_)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. The most probable class may be another one than `predict` has.
            For two classes a larger score never has a smaller probability of the second class. If the
            leave-one-out outputs do not distinguish the classes, all samples have the same probabilities.

        Raises
        ------
        ValueError
            If X has infinities, another number of features, or text where there were numbers.
        """
        check_is_fitted(self)
        model: Any = self.model_
        probabilities: NDArray[np.float64] = model.probabilities_of(self._outputs(X))
        return probabilities


class TabularRegressor(MultiOutputMixin, RegressorOutputMixin, Tabular):
    """Regression of tables without a parameter to set.

    Takes a table as it is: numbers, booleans, strings, categories, missing values. Missing numbers are
    replaced by the median, and an extra column marks them. Numbers outside the training range are clipped to
    it. Categories become columns of 0 and 1 that share a scale. Shapes and scales of the columns are learned
    from the target (`svmarrow.preprocessing.LearnedScaler`). Kernel, bandwidth and penalty minimize the
    leave-one-out error. The model is exact up to 20,000 samples and low-rank above.

    Parameters
    ----------
    categories : list of str or int or None, default=None
        Names or numbers of columns that are categories although they hold numbers. Columns of strings and of
        pandas' type "category" always are.
    n_samples : int, default=1000
        Maximum number of samples from which scales and shapes are learned.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds and of the drawn samples.
    max_time : float or None, default=None
        Maximum number of seconds of the fit. With more than 2,000 samples, the search for scales and kernel
        takes at most half of them. If the remaining time is too short for an exact fit to all samples, that
        fit is low-rank. If the time is too short for a low-rank fit too, the model is the fit to the samples
        of the search: 2,000, or 500 if time is too short for 2,000. One such fit always takes place.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. The result is the same for any number.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    model_ : ExpansionRegressor
        The whole model: the encoding of the table, the scales and the expansion; what `as_expansion` returns
        and `svmarrow.compress` takes.
    expansion_ : KernelExpansion
        The model without the encoding, for the encoded and scaled columns.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Each feature's share of the squared scales, see `svmarrow.preprocessing.LearnedScaler`; the shares add
        up to 1.
    kernel_ : str
        The chosen kernel: "rbf", "matern52", "matern32" or "matern12".
    gamma_ : float
        The coefficient of the kernel.
    alpha_ : float
        The penalty, as in `svmarrow.RLSRegressor`.
    shape_ : str
        The shape of the columns, see `svmarrow.preprocessing.LearnedScaler`.
    loo_error_ : float
        The leave-one-out error of the chosen machine on at most 2,000 samples: the mean squared error. The
        scales have seen all targets, so it is somewhat too small.
    stop_ : {"finished", "max_time"}
        Why the fit ended.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.preprocessing.LearnedScaler : The scales alone, in front of any estimator.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from svmarrow import TabularRegressor
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = TabularRegressor().fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.95
    True
    """

    _classifies = False

    def __init__(
        self,
        *,
        categories: ArrayLike | None = None,
        n_samples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.categories = categories
        self.n_samples = n_samples
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the encoding, the scales and the machine.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            Numbers, strings and missing values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the squared errors; None is 1 for each. A sample of weight 0 takes no part.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters outside their rules, infinities, a table of gaps alone.
        MemoryError
            If the matrix of the samples does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.

        Warns
        -----
        ConvergenceWarning
            If `max_time` ended the search for scales and kernel, or the fit to all samples.
        """
        with fitting(self, X, y, sample_weight):
            return self._fit_all(X, y, sample_weight)

    def _check_targets(self, y: NDArray[Any]) -> None:
        self._single = np.ndim(y) == 1

    def _units(self, y: Any, weights: Any) -> NDArray[np.float64] | None:
        if y.ndim == 1:
            return None
        deviations = standardized(np.asarray(y, dtype=np.float64), weights)[1]
        return np.where(deviations > 0.0, deviations, deviations.max() or 1.0)

    def _calibrated(self, model: Any, machine: Any, y: Any, weights: Any) -> Any:  # noqa: ARG002
        return model
