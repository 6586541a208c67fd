"""Classification and regression of tables without a parameter to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from svmarrow._support.bases import MultiOutputMixin
from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    MAX_TIME,
    RANDOM_STATE,
    THREADS,
    VERBOSE,
    Rule,
    atomic_fit,
    check,
    check_array_types,
    consistent,
    either,
    integer,
    none,
    one_of,
    warn_caller,
    with_days,
)
from svmarrow._support.progress import Steps, fitting, progress
from svmarrow._support.training import encode_classes, refuse_zero_weights, sample_weights, weights_differ
from svmarrow.expansion.kernel_expansion import scale_outputs
from svmarrow.interop.convert import as_expansion
from svmarrow.least_squares._base import group_numbers
from svmarrow.models.base import compiled as compiled_method
from svmarrow.models.categories import with_text
from svmarrow.models.outputs import (
    Calibration,
    ClassifierOutputMixin,
    RegressorOutputMixin,
    log_probabilities,
)
from svmarrow.models.preparation import check_length
from svmarrow.preprocessing._shapes import draw, some_blocks, standardized
from svmarrow.preprocessing.scaler import MAX_SEARCHED, MIN_WEIGHT, LearnedScaler
from svmarrow.tabular._choice import KERNELS, MAX_CHOSEN, choose, final_machine
from svmarrow.tabular._columns import check_labels, columns_of, encoder, matrix_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import CompiledModel
    from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionRegressor
    from svmarrow.tabular._columns import Columns


__all__ = [
    "Tabular",
    "TabularClassifier",
    "TabularRegressor",
]


# --- base class of the estimators of tables: encoding, learned scales, choice of the kernel ---


#: The penalty where the search begins if it leads to a smaller error than the scaler's.
START_ALPHA = 0.1
#: Share of `max_time` for the search if the final fit has more samples.
SEARCH_SHARE = 0.5
#: Seconds that a fit to `MAX_CHOSEN` samples may take on one core. If fewer are left, `FEW_CHOSEN` samples
#: are drawn, whose fit takes a sixtieth.
FIT_SECONDS, FEW_CHOSEN = 1.5, 500


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(np.asarray(value, dtype=object)) == 1


class Tabular(Estimator):
    """Base class: encoding, learned scales, choice of the kernel, and the model of all of them."""

    categories: ArrayLike | None
    kernel: str
    n_samples: int
    random_state: int | np.random.RandomState | None
    max_time: float | None
    n_jobs: int | None
    verbose: bool | int

    model_: ExpansionClassifier | ExpansionRegressor
    feature_importances_: NDArray[np.float64]
    kernel_: str
    gamma_: float
    alpha_: float
    shape_: str
    loo_error_: float
    stop_: str
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _columns: Columns
    _classifies: ClassVar[bool]
    #: Whether the vectors of the model are all training samples.
    _has_all_samples: bool = False
    _stored_as: ClassVar[dict[str, str]] = {
        "_columns": "columns_",
        "_has_all_samples": "has_all_samples_",
        "_weighted": "weighted_",
    }
    _rules: ClassVar[Mapping[str, Rule]] = {
        "categories": either(none, Rule("a list of names or numbers of columns", _is_list)),
        "kernel": one_of("auto", *KERNELS),
        "n_samples": integer(least=10),
        "random_state": RANDOM_STATE,
        "max_time": MAX_TIME,
        "n_jobs": THREADS,
        "verbose": VERBOSE,
    }

    def _fit_all(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        check({name: getattr(self, name) for name in self._rules}, self._rules)
        with progress(self.verbose) as reporter:
            steps = Steps(reporter.callback, None if self.max_time is None else float(self.max_time))
            self._fit_steps(X, y, sample_weight, groups, steps)
        return self

    def _fit_steps(self, X: Any, y: Any, sample_weight: Any, groups: Any, steps: Steps) -> None:
        from sklearn.pipeline import Pipeline

        check_array_types(takes_dates=True, X=X)
        check_array_types(y=y)
        if self._classifies and y is not None:
            check_labels(y)
        table, X = X, _with_objects(X)
        # The sum with which scikit-learn searches for infinities may overflow although no value does.
        with np.errstate(over="ignore", invalid="ignore"):
            X, y = validate_data(
                self,
                X,
                y,
                dtype=None,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                multi_output=not self._classifies,
                y_numeric=not self._classifies,
            )
        weights = sample_weights(sample_weight, X.shape[0])
        blocks = None if groups is None else group_numbers(groups, X.shape[0], weights)
        if weights is not None:
            refuse_zero_weights(weights)
            weighted_rows = np.flatnonzero(weights > MIN_WEIGHT * weights.max())
            if weighted_rows.size < 2:
                raise ValueError(
                    "sample_weight leaves one sample, and the others no weight: at least 2 are needed"
                )
            X, y, weights = X[weighted_rows], y[weighted_rows], weights[weighted_rows] / weights.max()
            blocks = some_blocks(blocks, weighted_rows)
            if hasattr(table, "iloc"):
                table = table.iloc[weighted_rows]
        self._columns = columns_of(table, X, self.categories)
        matrix = matrix_of(table, X, self._columns)
        labels = self._check_targets(y)
        random = check_random_state(self.random_state)
        codes = _codes(y, labels, weights)
        table_encoder, rows = encoder(
            matrix, self._columns, codes, weights, random.randint(2**31 - 1), blocks
        )
        sources, groups = sources_of(table_encoder, self._columns)
        # The fit to all samples needs time too.
        search = steps.first_part(SEARCH_SHARE if len(rows) > MAX_CHOSEN else 1.0)
        scaler = LearnedScaler(
            task="classification" if self._classifies else "regression",
            groups=groups,
            n_samples=int(self.n_samples),
            class_weight=getattr(self, "class_weight", None),
            random_state=random.randint(2**31 - 1),
            n_jobs=self.n_jobs,
        )._fit(rows, y, weights, search, blocks)
        scaled = scaler.transform(rows)
        remaining = search.remaining
        is_short = remaining is not None and remaining < FIT_SECONDS
        search.was_stopped |= is_short and len(scaled) > FEW_CHOSEN
        taken = _drawn(len(scaled), FEW_CHOSEN if is_short else MAX_CHOSEN, labels, random)
        few = _drawn(taken.size, MAX_SEARCHED, None if labels is None else labels[taken], random)
        drawn = None if weights is None else weights[taken]
        units = self._units(y[taken], drawn)
        y = y if units is None else y / units
        starts = [(0.5 / scaled.shape[1], START_ALPHA)]
        if scaler.gamma_ is not None and scaler.alpha_ is not None:
            # If the scaler saw few samples of each class, its width may be useless.
            starts.insert(0, (scaler.gamma_, scaler.alpha_))
        about: dict[str, Any] = {"n_jobs": self.n_jobs}
        if self._classifies:
            about["class_weight"] = self.class_weight  # type: ignore[attr-defined]
        choice = choose(
            scaled[taken],
            y[taken],
            drawn,
            searched=few,
            blocks=some_blocks(blocks, taken),
            classify=self._classifies,
            kernels=KERNELS if self.kernel == "auto" else (self.kernel,),
            starts=starts,
            about=about,
            steps=search,
        )
        machine = choice.machine
        if taken.size < len(scaled):
            seed = random.randint(2**31 - 1)
            machine = final_machine(choice, scaled, y, weights, seed, steps) or machine
        self._has_all_samples = machine.expansion_.n_vectors == len(scaled)
        self.stop_ = self._stop_reason(search, steps, taken.size)
        parts = [("table", table_encoder), ("scaler", scaler), ("machine", machine)]
        model = as_expansion(Pipeline(parts))
        self.shape_, self.loo_error_ = scaler.shape_, float(choice.machine.loo_error_)
        if units is not None:
            model = model.with_expansion(scale_outputs(model.expansion_, units))
            errors = np.average((choice.machine.loo_prediction_ - y[taken]) ** 2, axis=0, weights=drawn)
            self.loo_error_ = float(np.mean(errors * units**2))
        names = getattr(self, "feature_names_in_", None)
        model = model.with_preparation(with_text(model.preparation), feature_names=names, n_features=None)
        self._weighted = bool(model.weighted) or weights_differ(weights)
        self.model_ = self._calibrated(model.with_weighted(self._weighted), choice.machine, y[taken], drawn)
        self.kernel_, self.gamma_, self.alpha_ = (
            machine.kernel,
            float(machine.gamma),
            float(choice.machine.alpha_),
        )
        shares = np.bincount(sources, scaler.feature_importances_, minlength=self.n_features_in_)
        self.feature_importances_ = shares.astype(np.float64)

    def _stop_reason(self, search: Steps, final: Steps, n_chosen: int) -> str:
        """Returns why the fit ended, and warns if time was too short."""
        if final.was_stopped:
            ended, consequence = "the fit to all samples", f"the model is a fit to {n_chosen:,} drawn samples"
        elif final.was_shortened:
            ended, consequence = "the exact fit to all samples", "the model is of low rank"
        elif search.was_stopped:
            ended, consequence = "the search for scales and kernel", "the best so far are used"
        else:
            return "finished"
        warn_caller(f"max_time={self.max_time} ended {ended}: {consequence}", ConvergenceWarning)
        return "max_time"

    def _check_targets(self, y: NDArray[Any]) -> NDArray[np.intp] | None:
        """Returns the class indices of labels; None for numbers."""
        raise NotImplementedError

    def _units(self, y: Any, weights: Any) -> NDArray[np.float64] | None:
        """Returns the units (q,) in which targets count alike; None for labels and for one target."""
        raise NotImplementedError

    def _calibrated(self, model: Any, machine: Any, y: Any, weights: Any) -> Any:
        """Returns the model with probabilities, from the leave-one-out values of a machine."""
        raise NotImplementedError

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        step = self.model_.preparation
        assert step is not None
        check_array_types(takes_dates=step.dates, X=X)
        with np.errstate(over="ignore", invalid="ignore"):
            table = _with_objects(with_days(X, self._columns.is_date))
            X = validate_data(self, table, reset=False, dtype=None, ensure_all_finite="allow-nan")
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = X.astype(np.float64) if X.dtype.kind in "fiub" else X
            rows = step.rows(matrix, getattr(self, "feature_names_in_", None))
        return self.model_.expansion_._evaluate(rows, self.n_jobs)

    @property
    def expansion_(self) -> KernelExpansion:
        """The expansion of the model, for the encoded and scaled columns."""
        check_is_fitted(self)
        return self.model_.expansion_

    def _after_load(self) -> None:
        if self.model_.n_features_in_ != self.n_features_in_:
            raise ValueError(f"n_features_in_ is {self.n_features_in_}, not {self.model_.n_features_in_}")
        if self._columns.is_category.size != self.n_features_in_:
            raise ValueError(
                f"there are {self.n_features_in_} features, not {self._columns.is_category.size}"
            )
        check_length("feature_importances_", self.feature_importances_, self.n_features_in_)

    compiled: ClassVar[Callable[..., CompiledModel]] = compiled_method

    @consistent
    def as_expansion(self) -> Any:
        """The fitted model as a kernel expansion behind the encoding of the table."""
        check_is_fitted(self)
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = False
        return tags


def _with_objects(X: Any) -> Any:
    """Returns a table that holds text as objects, so that its other values keep their types.

    NumPy makes text of all values of lists with text. scikit-learn makes numbers of all columns of a data
    frame if one of them has a nullable type of pandas.
    """
    if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "US":
        return np.array(X, dtype=object)
    # Columns of text and of categories are objects to NumPy.
    if hasattr(X, "iloc") and any(getattr(dtype, "kind", "O") in "OM" for dtype in getattr(X, "dtypes", ())):
        return X.astype(object)
    return with_days(X)


def _drawn(
    n: int, n_samples: int, labels: NDArray[np.intp] | None, random: np.random.RandomState
) -> NDArray[np.intp]:
    """Returns the numbers of about `n_samples` samples, among them one of each class."""
    taken = draw(n, n_samples, labels, random)
    if labels is None:
        return taken
    classes, first = np.unique(labels, return_index=True)
    missing = ~np.isin(classes, labels[taken])
    return np.sort(np.concatenate([taken, first[missing]]))


def _codes(
    y: NDArray[Any], labels: NDArray[np.intp] | None, weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Returns standardized targets (n, q); of labels 1 for the second of two classes, or for each class."""
    if labels is None:
        return standardized(np.asarray(y, dtype=np.float64).reshape(len(y), -1), weights)[0]
    k = int(labels.max()) + 1
    return np.eye(k)[labels][:, 1 if k == 2 else 0 :]


class TabularClassifier(ClassifierOutputMixin, Tabular, schema="tabular-classifier/1"):
    """Classification of tables without a parameter to set.

    Takes a table as it is: numbers, booleans, strings, categories, dates, missing values. Missing numbers are
    replaced by the median, and an extra column marks them. Numbers outside the training range are clipped to
    it. Categories become columns of 0 and 1 that share a scale; those with more than 30 values become their
    mean targets too, if there are at most 10 classes or targets. Dates become days since 1970-01-01 and
    positions in the year, the week and the day. Shapes and scales of the columns are learned
    from the target (`svmarrow.preprocessing.LearnedScaler`). Kernel, bandwidth and penalty minimize the
    leave-one-out error. The model is exact up to 20,000 samples and low-rank above.

    Parameters
    ----------
    categories : list of str or int or None, default=None
        Names or numbers of columns that are categories although they hold numbers or dates. Columns of
        strings (but texts of dates such as "2026-01-31") and of pandas' type "category" always are.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in `svmarrow.RLSClassifier`.
    kernel : {"auto", "rbf", "matern52", "matern32", "matern12", "laplacian"}, default="auto"
        The kernel; "auto" takes the one of the least leave-one-out error: "laplacian", a product over the
        columns, for targets that change abruptly along single columns. `svmarrow.inspection.shapley_values`
        needs "rbf" or "laplacian".
    n_samples : int, default=1000
        Maximum number of samples from which scales and shapes are learned.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, of the drawn samples and of the trees.
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
        The chosen kernel: "rbf", "matern52", "matern32", "matern12" or "laplacian".
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

    Notes
    -----
    The scales are learned from equal ones, and again from the importances of the columns in scikit-learn's
    extremely randomized trees, which find relevant columns among many irrelevant ones. Held-out samples
    decide between the two.

    From 5,000 samples on, conjugate gradients solve the system of the model if `alpha_` is at least 0.02 and
    there are not so many columns that a factorization costs less. They end when the residual is 0.3 % of the
    leave-one-out error.

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
        kernel: Literal["auto", "rbf", "matern52", "matern32", "matern12", "laplacian"] = "auto",
        n_samples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.categories = categories
        self.class_weight = class_weight
        self.kernel = kernel
        self.n_samples = n_samples
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the encoding, the scales and the machine.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            Numbers, strings, dates and missing values.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the squared errors; None is 1 for each. A sample of weight 0 takes no part.
        groups : array-like of shape (n_samples,) or None, default=None
            Group of each sample, such as the patient or the site, for models that are used on new groups. All
            choices, `loo_error_` and the probabilities are then those of models without the sample's whole
            group. None leaves out each sample alone.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters outside their rules, infinities, a table of gaps alone, a single class, fewer than
            two groups, and groups with missing values.
        MemoryError
            If the matrix of the samples does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.

        Warns
        -----
        ConvergenceWarning
            If `max_time` ended the search for scales and kernel, or the fit to all samples.
        UserWarning
            If a column of text, which is taken as categories, holds more than 30 different numbers.
        """
        with fitting(self, X, y, sample_weight, groups):
            return self._fit_all(X, y, sample_weight, groups)

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

    @consistent
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`, minus infinity for a probability of 0.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features_in_)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If X has infinities, another number of features, or text where there were numbers.
        """
        return log_probabilities(self.predict_proba(X))


class TabularRegressor(MultiOutputMixin, RegressorOutputMixin, Tabular, schema="tabular-regressor/1"):
    """Regression of tables without a parameter to set.

    Takes a table as it is: numbers, booleans, strings, categories, dates, missing values. Missing numbers are
    replaced by the median, and an extra column marks them. Numbers outside the training range are clipped to
    it. Categories become columns of 0 and 1 that share a scale; those with more than 30 values become their
    mean targets too, if there are at most 10 classes or targets. Dates become days since 1970-01-01 and
    positions in the year, the week and the day. Shapes and scales of the columns are learned
    from the target (`svmarrow.preprocessing.LearnedScaler`). Kernel, bandwidth and penalty minimize the
    leave-one-out error. The model is exact up to 20,000 samples and low-rank above.

    Parameters
    ----------
    categories : list of str or int or None, default=None
        Names or numbers of columns that are categories although they hold numbers or dates. Columns of
        strings (but texts of dates such as "2026-01-31") and of pandas' type "category" always are.
    kernel : {"auto", "rbf", "matern52", "matern32", "matern12", "laplacian"}, default="auto"
        The kernel; "auto" takes the one of the least leave-one-out error: "laplacian", a product over the
        columns, for targets that change abruptly along single columns. `svmarrow.inspection.shapley_values`
        needs "rbf" or "laplacian".
    n_samples : int, default=1000
        Maximum number of samples from which scales and shapes are learned.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, of the drawn samples and of the trees.
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
        The chosen kernel: "rbf", "matern52", "matern32", "matern12" or "laplacian".
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

    Notes
    -----
    The scales are learned from equal ones, and again from the importances of the columns in scikit-learn's
    extremely randomized trees, which find relevant columns among many irrelevant ones. Held-out samples
    decide between the two.

    From 5,000 samples on, conjugate gradients solve the system of the model if `alpha_` is at least 0.02 and
    there are not so many columns that a factorization costs less. They end when the residual is 0.3 % of the
    leave-one-out error.

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
    _stored_as: ClassVar[dict[str, str]] = {"_single": "flat_"}

    def __init__(
        self,
        *,
        categories: ArrayLike | None = None,
        kernel: Literal["auto", "rbf", "matern52", "matern32", "matern12", "laplacian"] = "auto",
        n_samples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.categories = categories
        self.kernel = kernel
        self.n_samples = n_samples
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the encoding, the scales and the machine.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            Numbers, strings, dates and missing values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the squared errors; None is 1 for each. A sample of weight 0 takes no part.
        groups : array-like of shape (n_samples,) or None, default=None
            Group of each sample, such as the patient or the site, for models that are used on new groups. All
            choices, `loo_error_` and the probabilities are then those of models without the sample's whole
            group. None leaves out each sample alone.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters outside their rules, infinities, a table of gaps alone, fewer than two groups, and
            groups with missing values.
        MemoryError
            If the matrix of the samples does not fit in the free memory.
        KeyboardInterrupt
            On Ctrl-C; the model is then as it was before the call.

        Warns
        -----
        ConvergenceWarning
            If `max_time` ended the search for scales and kernel, or the fit to all samples.
        UserWarning
            If a column of text, which is taken as categories, holds more than 30 different numbers.
        """
        with fitting(self, X, y, sample_weight, groups):
            return self._fit_all(X, y, sample_weight, groups)

    def _check_targets(self, y: NDArray[Any]) -> None:
        self._single = np.ndim(y) == 1

    def _units(self, y: Any, weights: Any) -> NDArray[np.float64] | None:
        if y.ndim == 1:
            return None
        deviations = standardized(np.asarray(y, dtype=np.float64), weights)[1]
        return np.where(deviations > 0.0, deviations, deviations.max() or 1.0)

    def _calibrated(self, model: Any, machine: Any, y: Any, weights: Any) -> Any:  # noqa: ARG002
        return model
