"""Compression as a meta-estimator, so that it lives in pipelines and grid searches."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from svmarrow._support.bases import MetaEstimatorMixin
from svmarrow._support.estimator import Estimator, RoutesFit, check_takes_weights
from svmarrow._support.parameters import (
    ESTIMATOR,
    THREADS,
    Rule,
    atomic_fit,
    boolean,
    check,
    consistent,
    integer,
)
from svmarrow._support.progress import fitting, progress, subtasks
from svmarrow._support.training import (
    MemoryEstimate,
    bytes_of_rows,
    estimate_of,
    refuse_beyond_memory,
    sample_weights,
    weights_differ,
)
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.interop.convert import as_expansion
from svmarrow.models.base import compiled as compiled_method
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionRegressor, n_outputs
from svmarrow.reduced_set.paths import RULES, PathRequest, bytes_of_work, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import CompiledModel, ExpansionModel
    from svmarrow.reduced_set.construction import GradientSettings
    from svmarrow.reduced_set.paths import Method
    from svmarrow.reduced_set.selection import SelectionSettings


__all__ = [
    "ModelWrapper",
    "ReducedSet",
]


# --- base class of the meta-estimators around a kernel machine: `ReducedSet` and the cascades ---


class ModelWrapper(RoutesFit, MetaEstimatorMixin, Estimator):
    """Fits an estimator, and makes its own model, ``model_``, of it."""

    estimator: Any
    estimator_: Any
    model_: Any
    #: The kinds of models that an estimator may become, and their name in an error.
    _kinds: ClassVar[tuple[type[ExpansionModel], ...]]
    _kind_text: ClassVar[str]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    @atomic_fit
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **metadata: Any
    ) -> Self:
        """Fit the estimator, and compress what it became.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, passed to the estimator's fit.
        **metadata : Any
            With scikit-learn's metadata routing: whatever else the estimator requests.

        Returns
        -------
        object
            This object.

        Raises
        ------
        ValueError
            If a parameter is out of its range, the kernel is not allowed, the estimator refuses the
            data, or weights are given that it does not take or ask for.
        TypeError
            If the estimator does not become an expansion of a kind that is allowed.
        MemoryError
            If the estimator or the compression needs more memory than this process may take, see
            `estimate_memory`.
        """
        check(self.get_params(deep=False), {"estimator": ESTIMATOR, **self._rules})
        with fitting(self, X, y, sample_weight):
            self._refuse_beyond_memory(X, y)
            self._fit(X, y, self._for_estimator(sample_weight, metadata))
        return self

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        check(self.get_params(deep=False), {"estimator": ESTIMATOR, **self._rules})
        outputs = self._n_outputs(y)
        # Vectors and coefficients of the full model are here while it is compressed.
        full = bytes_of_rows(rows) + 16 * int(rows.shape[0]) * outputs
        fit_estimate = estimate_of(self.estimator, rows, y)
        return MemoryEstimate(
            full + max(fit_estimate.total, self._bytes_after(rows, outputs)), fit_estimate.minimum
        )

    def _n_outputs(self, y: Any) -> int:
        """The number of outputs of a model of these labels or targets."""
        if y is None:
            return 1
        if is_regressor(self.estimator):
            return 1 if np.ndim(y) == 1 else int(np.shape(y)[1])
        classes = int(np.unique(np.asarray(y)).size)
        pairs = getattr(self.estimator, "multi_class", "ovr") == "ovo"
        return n_outputs("binary" if classes <= 2 else "ovo" if pairs else "ovr", classes)

    @abstractmethod
    def _bytes_after(self, rows: Any, outputs: int) -> int:
        """Bytes of the work after the fit of the full model, if all samples are vectors of it."""

    def _refuse_beyond_memory(self, X: Any, y: Any) -> None:
        try:
            least = estimate_of(self.estimator, X, y).minimum
        except (TypeError, ValueError):
            return  # The estimator reports what is wrong with X and y.
        remedy = f"give another {type(self.estimator).__name__}, whose estimate_memory is less"
        refuse_beyond_memory(f"{type(self).__name__}.fit", least, remedy)

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> None:
        """Fit the estimator with its metadata, make ``model_``."""

    def _fit_full(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> Any:
        """Fit a clone of the estimator; the expansion of what it became."""
        given = metadata.get("sample_weight")
        if given is not None:
            check_takes_weights(self.estimator)
        self.estimator_ = clone(self.estimator)
        with subtasks("estimator", 1) as one, one.part(0, self.estimator_):
            self.estimator_.fit(X, y, **metadata)
        full = self._full(self.estimator_)
        if full.weighted is None and weights_differ(sample_weights(given, _num_samples(X))):
            # Estimators of other packages do not keep the weights of samples.
            full = full.with_weighted(True)
        return full

    def _full(self, model: Any) -> Any:
        """The expansion of a fitted estimator; its columns become those of this object."""
        full = as_expansion(model)
        if not isinstance(full, self._kinds):
            raise TypeError(f"{model!r} is not allowed: it must be {self._kind_text}")
        self.n_features_in_ = full.n_features_in_
        if hasattr(full, "feature_names_in_"):
            self.feature_names_in_ = full.feature_names_in_
        return full

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        return tags


def _classifies(model: ReducedSet) -> bool:
    return bool(is_classifier(model))


def _has_probabilities(model: ReducedSet) -> bool:
    """For `available_if`: the model has probabilities, before the fit the estimator."""
    if not hasattr(getattr(model, "model_", model.estimator), "predict_proba"):
        raise AttributeError(
            "this ReducedSet has no probabilities: use ReducedSet(CalibratedClassifierCV(classifier, "
            "ensemble=False)), or model_.calibrated(X, y) with samples that training has not seen"
        )
    return True


class ReducedSet(ModelWrapper, schema="reduced-set/1"):
    """Fit a kernel classifier or regressor, then keep only the few vectors that matter.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor that `svmarrow.as_expansion` takes when it is fitted, such as
        `svmarrow.SVC`, `svmarrow.RLSRegressor` or ``SVR`` of scikit-learn, with a built-in kernel.
    n_vectors : int, default=100
        Largest number of vectors. A fitted model that has no more stays as it is, so that one value serves
        all folds of a search.
    method : str, default="backfit"
        See `svmarrow.compression_path`.
    candidates : {"vectors", "samples"}, default="vectors"
        Choose among the vectors of the fitted model, or among all training samples. ``"gradient"`` makes
        vectors and compares the models on all training samples.
    tune_threshold : bool, default=True
        Set the thresholds again on the training samples. Where the estimator was fitted with weights of
        samples or classes they stay as they are, see `svmarrow.compress`.
    tol : float, default=1e-5
        End with fewer vectors when the distance to the fitted model falls to this share of the model's norm.
    settings : GradientSettings or SelectionSettings, default=None
        See `svmarrow.compression_path`.
    random_state : int, RandomState instance or None, default=None
        Seed of ``"gradient"`` and of sampled pursuits; nothing else is random.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. The estimator has its own.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model before compression.
    model_ : ExpansionClassifier or ExpansionRegressor
        The model after it.
    expansion_ : KernelExpansion
        The compressed model.
    n_vectors_ : int
        Its number of vectors.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    svmarrow.compress : The same for a model that is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, ReducedSet
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), ReducedSet(SVC(C=10)))
    >>> search = GridSearchCV(model, {"reducedset__n_vectors": [2, 20]}, cv=3).fit(X, y)
    >>> search.best_params_
    {'reducedset__n_vectors': 20}

    The smallest model whose accuracy is within a point of the best, over size and kernel width together:

    >>> def smallest(results):
    ...     sizes = results["param_reducedset__n_vectors"].astype(float)
    ...     scores = results["mean_test_score"]
    ...     return int(np.where(scores >= scores.max() - 0.01, sizes, np.inf).argmin())
    >>> grid = {"reducedset__n_vectors": [2, 8, 40], "reducedset__estimator__gamma": [0.003, 0.03]}
    >>> search = GridSearchCV(model, grid, cv=3, refit=smallest).fit(X, y)
    >>> search.best_params_
    {'reducedset__estimator__gamma': 0.003, 'reducedset__n_vectors': 8}
    """

    _kinds = (ExpansionClassifier, ExpansionRegressor)
    _kind_text = "a classifier or a regressor"
    _rules: ClassVar[Mapping[str, Rule]] = {
        **{name: RULES[name] for name in ("method", "candidates", "tol", "random_state")},
        "n_vectors": integer(least=1),
        "tune_threshold": boolean,
        "n_jobs": THREADS,
    }
    model_: Any

    def __init__(
        self,
        estimator: Any,
        n_vectors: int = 100,
        *,
        method: Method = "backfit",
        candidates: Literal["vectors", "samples"] = "vectors",
        tune_threshold: bool = True,
        tol: float = 1e-5,
        settings: GradientSettings | SelectionSettings | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.method = method
        self.candidates = candidates
        self.tune_threshold = tune_threshold
        self.tol = tol
        self.settings = settings
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> None:
        full = self._fit_full(X, y, metadata)
        constructs, from_vectors = self.method == "gradient", self.candidates == "vectors"
        if from_vectors and full.expansion_.n_vectors <= self.n_vectors:
            self.model_ = full
            return
        tune = constructs or self.tune_threshold
        compared = getattr(self.settings, "criterion", "norm") == "predictions"
        targets = np.asarray(y).reshape(-1) if isinstance(full, ExpansionClassifier) else y
        request = PathRequest(
            full,
            self.n_vectors,
            X if tune or compared or not from_vectors else None,
            targets if tune else None,
            self.method,
            self.candidates,
            self.tol,
            self.settings,
            self.random_state,
            n_jobs=self.n_jobs,
        )
        with progress(self.verbose) as shown:
            shown.stops_in = ("pursuit", 1)
            path = path_of(request, shown.callback, every_size=False)
            self.model_ = path[path.sizes[-1]]

    def _bytes_after(self, rows: Any, outputs: int) -> int:
        most = min(int(self.n_vectors), int(rows.shape[0]))
        options: dict[str, Any] = {"candidates": self.candidates, "settings": self.settings}
        return bytes_of_work(outputs, rows, most, rows, self.method, **options)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, (n_classes,), of a classifier."""
        check_is_fitted(self, "model_")
        classes: NDArray[Any] = self.model_.classes_
        return classes

    @property
    @consistent
    def expansion_(self) -> KernelExpansion:
        """The compressed expansion."""
        check_is_fitted(self, "model_")
        expansion: KernelExpansion = self.model_.expansion_
        return expansion

    @property
    def n_vectors_(self) -> int:
        """Number of vectors of the compressed expansion."""
        return self.expansion_.n_vectors

    @consistent
    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of a classifier, predictions of a regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the shape of y in `fit`.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        check_is_fitted(self, "model_")
        predicted: NDArray[Any] = self.model_.predict(X)
        return predicted

    @available_if(_classifies)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    @consistent
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes; for a classifier only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            As the estimator's.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        check_is_fitted(self, "model_")
        values: NDArray[np.float64] = self.model_.decision_function(X)
        return values

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    @consistent
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, where the estimator is calibrated, as ``CalibratedClassifierCV`` is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The calibration is the estimator's, applied to the outputs of the compressed model.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        check_is_fitted(self, "model_")
        values: NDArray[np.float64] = self.model_.predict_proba(X)
        return values

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    @consistent
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`, minus infinity for a probability of 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        check_is_fitted(self, "model_")
        values: NDArray[np.float64] = self.model_.predict_log_proba(X)
        return values

    @consistent
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, coefficient of determination of a regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their labels or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            The score.
        """
        metric = accuracy_score if is_classifier(self) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    compiled: ClassVar[Callable[..., CompiledModel]] = compiled_method

    @consistent
    def as_expansion(self) -> ExpansionClassifier | ExpansionRegressor:
        """The compressed model without the estimator."""
        check_is_fitted(self, "model_")
        model: ExpansionClassifier | ExpansionRegressor = self.model_
        return model
