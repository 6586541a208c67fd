"""Classification and regression of tables without a parameter to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from svmarrow._support.atomic import atomic_fit, consistent
from svmarrow._support.callbacks import fitting
from svmarrow._support.decoding import encode_classes
from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import (
    CLASS_WEIGHT,
    RANDOM_STATE,
    THREADS,
    Rule,
    check,
    either,
    integer,
    none,
)
from svmarrow._support.rows import sample_weights, weights_differ
from svmarrow.interop.convert import as_expansion
from svmarrow.models.calibration import Calibration
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.output_mixins import ClassifierOutputMixin, OutputMixin, RegressorOutputMixin
from svmarrow.preprocessing._targets import draw
from svmarrow.preprocessing.scaler import LearnedScaler
from svmarrow.tabular._machine import MAX_CHOSEN, choose, final_machine
from svmarrow.tabular._table import Columns, columns_of, encoder, matrix_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.base import ExpansionModel

__all__ = ["TabularClassifier", "TabularRegressor"]

#: Bandwidth and penalty if the scaler learned nothing.
_ALPHA = 0.1


class _Tabular(OutputMixin, Estimator):
    """Base class: encoding, learned scales, choice of the kernel, and the model of all of them."""

    categories: ArrayLike | None
    n_samples: int
    random_state: int | np.random.RandomState | None
    n_jobs: int | None

    model_: ExpansionModel
    feature_importances_: NDArray[np.float64]
    kernel_: str
    gamma_: float
    alpha_: float
    shape_: str
    loo_error_: float
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _columns: Columns
    _classifies: ClassVar[bool]
    _rules: ClassVar[Mapping[str, Rule]] = {
        "categories": either(none, Rule("None or a list of columns", lambda v: np.ndim(v) == 1)),
        "n_samples": integer(least=10),
        "random_state": RANDOM_STATE,
        "n_jobs": THREADS,
    }

    def _fit_all(self, X: Any, y: Any, sample_weight: Any) -> Self:
        check({name: getattr(self, name) for name in self._rules}, self._rules)
        table = X
        X, y = validate_data(
            self,
            X,
            y,
            dtype=None,
            ensure_all_finite="allow-nan",
            multi_output=not self._classifies,
            y_numeric=not self._classifies,
        )
        weights = sample_weights(sample_weight, X.shape[0])
        if weights is not None:
            if not weights.any():
                raise ValueError(
                    "the sample weights are all zero: at least one sample needs a positive weight"
                )
            kept = np.flatnonzero(weights > 0.0)
            X, y, weights = X[kept], y[kept], weights[kept] / weights.max()
        self._columns = columns_of(table, X, self.categories)
        matrix = matrix_of(X, self._columns)
        table_encoder = encoder(matrix, self._columns)
        rows = np.ascontiguousarray(table_encoder.transform(matrix), dtype=np.float64)
        sources = sources_of(table_encoder)
        labels = self._check_targets(y)
        random = check_random_state(self.random_state)
        scaler = LearnedScaler(
            task="classification" if self._classifies else "regression",
            groups=_groups(sources, self._columns),
            n_samples=int(self.n_samples),
            class_weight=getattr(self, "class_weight", None),
            random_state=random.randint(2**31 - 1),
            n_jobs=self.n_jobs,
        ).fit(rows, y, weights)
        scaled = scaler.transform(rows)
        taken = draw(len(scaled), MAX_CHOSEN, labels, random)
        drawn = None if weights is None else weights[taken]
        about: dict[str, Any] = {"n_jobs": self.n_jobs}
        if self._classifies:
            about["class_weight"] = self.class_weight  # type: ignore[attr-defined]
        choice = choose(
            scaled[taken],
            y[taken],
            drawn,
            classify=self._classifies,
            gamma=scaler.gamma_ or 0.5 / scaled.shape[1],
            alpha=scaler.alpha_ or _ALPHA,
            about=about,
        )
        machine = choice.machine
        if taken.size < len(scaled):
            machine = final_machine(machine, scaled, y, weights, random.randint(2**31 - 1))
        steps = [("table", table_encoder), ("scaler", scaler), ("machine", machine)]
        model = as_expansion(Pipeline(steps))
        names = getattr(self, "feature_names_in_", None)
        model = model.with_preparation(model.preparation, feature_names=names, n_features=None)
        self._weighted = weights_differ(weights)
        self.model_ = self._calibrated(model.with_weighted(self._weighted), choice.machine, y[taken], drawn)
        self.kernel_, self.gamma_, self.alpha_ = (
            machine.kernel,
            float(machine.gamma),
            float(choice.machine.alpha_),
        )
        self.shape_, self.loo_error_ = scaler.shape_, float(choice.machine.loo_error_)
        shares = np.bincount(sources, scaler.feature_importances_, minlength=self.n_features_in_)
        self.feature_importances_ = shares
        return self

    def _check_targets(self, y: NDArray[Any]) -> NDArray[np.intp] | None:
        """Returns the class indices of labels; None for numbers."""
        raise NotImplementedError

    def _calibrated(self, model: Any, machine: Any, y: Any, weights: Any) -> Any:  # noqa: ARG002
        return model

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=None, ensure_all_finite="allow-nan")
        return self.model_.with_preparation(
            self.model_.preparation, feature_names=None, n_features=None
        ).outputs(matrix_of(X, self._columns))

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


def _groups(sources: NDArray[np.int64], columns: Columns) -> NDArray[np.int64]:
    """Returns the group of each encoded column: one for each category, others are alone."""
    alone = ~columns.is_category[sources]
    return np.where(alone, columns.is_category.size + np.arange(sources.size), sources)


class TabularClassifier(ClassifierOutputMixin, _Tabular):
    """DOC."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    classes_: NDArray[Any]
    _classifies = True
    _rules: ClassVar[Mapping[str, Rule]] = {**_Tabular._rules, "class_weight": CLASS_WEIGHT}

    def __init__(
        self,
        *,
        categories: ArrayLike | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        n_samples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.categories = categories
        self.class_weight = class_weight
        self.n_samples = n_samples
        self.random_state = random_state
        self.n_jobs = n_jobs

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        with fitting(self, X, y, sample_weight):
            return self._fit_all(X, y, sample_weight)

    def _check_targets(self, y: NDArray[Any]) -> NDArray[np.intp]:
        check_classification_targets(y)
        self.classes_, labels = encode_classes(y)
        return labels

    def _calibrated(self, model: ExpansionClassifier, machine: Any, y: Any, weights: Any) -> Any:
        labels = np.searchsorted(self.classes_, y)
        ones = np.ones(labels.size) if weights is None else weights
        scores = machine.loo_decision_.reshape(labels.size, -1)
        return model.with_calibration(Calibration.fitted("classes", scores, labels, self.classes_.size, ones))

    @consistent
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        model: Any = self.model_
        return model.probabilities_of(self._outputs(X))


class TabularRegressor(RegressorOutputMixin, _Tabular):
    """DOC."""

    _classifies = False

    def __init__(
        self,
        *,
        categories: ArrayLike | None = None,
        n_samples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.categories = categories
        self.n_samples = n_samples
        self.random_state = random_state
        self.n_jobs = n_jobs

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        with fitting(self, X, y, sample_weight):
            return self._fit_all(X, y, sample_weight)

    def _check_targets(self, y: NDArray[Any]) -> None:
        self._single = np.ndim(y) == 1
