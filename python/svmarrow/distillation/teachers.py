"""Predictors that are no kernel expansions, as teachers of one: their outputs and their answers.

A teacher is asked for the first of these that it has:

| teacher | outputs (n, q) | loss of the student |
|---|---|---|
| regressor, function that returns floating-point numbers | the numbers | squares |
| classifier with ``predict_proba``, function that returns probabilities | their logarithms, or the log-odds \
of two classes | cross-entropy |
| classifier with ``decision_function``, outlier detector | the decision values | squares |
| classifier with ``predict`` alone, function that returns labels | log-odds of almost certain classes | \
cross-entropy |

Probabilities are clipped to [`MIN_PROBABILITY`, 1 - `MIN_PROBABILITY`]: averages of votes are exactly 0 and
1, and logarithms of them are infinite. What a classifier answers is what its ``predict`` returns, which may
have another threshold than its probabilities: two classes are shifted by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from svmarrow._support.estimator import check_fitted, columns_of
from svmarrow._support.parameters import check_array_types, missing_values
from svmarrow._support.rows import as_rows
from svmarrow._support.training import label_indices
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.outputs import Calibration

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.models.base import ExpansionModel

__all__ = ["MIN_PROBABILITY", "Teacher", "numeric_rows"]

MIN_PROBABILITY = 0.005
"""Probabilities are clipped to at least this, and to at most 1 minus this."""

MAX_CHUNK_SAMPLES = 2048
"""Maximum number of samples that a teacher is asked for at once; progress and Ctrl-C wait for it."""

ROUNDING = 1e-6
"""Maximum deviation of the sum of probabilities from 1."""

Source = Literal["numbers", "probabilities", "decision values", "labels"]


def numeric_rows(X: Any) -> Any:
    """Samples as float64 or float32, dense or sparse as they are; a ValueError for all but finite numbers."""
    check_array_types(X=X)
    kinds = getattr(X, "dtypes", None)
    if hasattr(X, "columns") and kinds is not None:
        names = [str(name) for name, kind in zip(X.columns, kinds, strict=True) if not _is_number(kind)]
        if names:
            raise ValueError(
                f"X has columns that hold no numbers ({', '.join(names[:5])}): encode them first, fit the "
                "estimator to the encoded columns, and pass that estimator and these columns; distil does "
                "not imitate the encoding inside a pipeline"
            )
    if sparse.issparse(X):
        refuse_gaps(X.tocsr().data)
        return as_rows(X)
    dense = np.asarray(X)
    if dense.dtype.kind not in "fiub":
        try:
            # Nullable columns have gaps of their own.
            dense = np.where(missing_values(dense), np.nan, dense).astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "X holds strings or objects, not numbers: encode them first, fit the estimator to the "
                "encoded columns, and pass that estimator and these columns"
            ) from None
    refuse_gaps(dense)
    rows = as_rows(dense)
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def refuse_gaps(values: NDArray[Any]) -> None:
    """Raise a ValueError if there are NaN."""
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(
            "X contains NaN, and a kernel expansion takes no gaps: impute them first, and fit the estimator "
            "to the imputed columns"
        )


def _is_number(kind: Any) -> bool:
    if isinstance(kind, np.dtype):
        return kind.kind in "fiub"
    numeric = getattr(kind, "_is_numeric", None)
    if numeric is not None:
        return bool(numeric)
    asks = getattr(kind, "is_numeric", None)
    return bool(asks()) if callable(asks) else str(kind) == "Boolean"


class Teacher:
    """The outputs and answers of a predictor.

    Parameters
    ----------
    model : object
        A fitted estimator, or a function of X.
    X : array-like of shape (n_samples, n_features)
        Some samples, as the predictor takes them.
    y : array-like or None
        Their labels, which name the classes where a function returns probabilities.

    Raises
    ------
    TypeError
        If the predictor has no ``predict``.
    ValueError
        If it predicts several labels for a sample, or one class, or numbers that are not finite.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """

    model: Any
    source: Source
    #: An empty model of the kind that a student is.
    template: ExpansionModel

    def __init__(self, model: Any, X: Any, y: Any = None) -> None:
        self.model = model
        self.name: str = _name(model)
        self._frame = X if hasattr(X, "columns") else None
        self._is_sparse = sparse.issparse(X)
        self._shift = 0.0
        self._predict: Callable[[Any], Any] = model
        if hasattr(model, "predict"):
            if hasattr(model, "get_params") and hasattr(model, "fit"):
                check_fitted(model)
            self._predict = model.predict
        probe = _safe_indexing(X, np.arange(min(_num_samples(X), MAX_CHUNK_SAMPLES)))
        options = {**columns_of(model), "weighted": _weighted(model)}
        columns = int(np.shape(X)[1])
        if options["n_features"] != columns:
            options["n_features"] = columns
        if options["feature_names"] is None and hasattr(X, "columns"):
            names = list(X.columns)
            options["feature_names"] = names if all(isinstance(name, str) for name in names) else None
        if _asks(is_outlier_detector, model):
            self.source, self._outputs = "decision values", model.decision_function
            self.template = ExpansionDetector(_empty(columns, 1), **options)
        elif _asks(is_classifier, model) or hasattr(model, "classes_"):
            self._classifier(model, probe, columns, options)
        elif _asks(is_regressor, model):
            self._regressor(self._answer(probe), columns, options)
        else:
            self._function(self._answer(probe), X, y, columns, options)
        self._refuse_clash(y)

    def _regressor(self, values: NDArray[Any], columns: int, options: dict[str, Any]) -> None:
        self.source, self._outputs = "numbers", self._predict
        q = 1 if values.ndim == 1 else values.shape[1]
        self.template = ExpansionRegressor(_empty(columns, q), flat=values.ndim == 1, **options)

    def _classifier(self, model: Any, probe: Any, columns: int, options: dict[str, Any]) -> None:
        labels = getattr(model, "classes_", None)
        if isinstance(labels, list) and labels and np.ndim(labels[0]) > 0:
            raise ValueError(
                f"{self.name} predicts {len(labels)} labels for each sample: distil one classifier for each"
            )
        answers = self._answer(probe)
        if answers.ndim != 1:
            raise ValueError(
                f"{self.name} predicts {answers.shape[1]} labels for each sample: distil one classifier "
                "for each"
            )
        classes = np.unique(answers) if labels is None else np.asarray(labels)
        if hasattr(model, "predict_proba"):
            self.source, self._outputs = "probabilities", model.predict_proba
        elif hasattr(model, "decision_function") and self._decides(model, probe, classes, answers):
            self.source, self._outputs = "decision values", model.decision_function
        else:
            self.source, self._outputs = "labels", self._predict
        self._classes(classes, columns, options)
        if self.source != "labels" and classes.size == 2:
            self._shift = _threshold(self.outputs(probe)[:, 0], answers == classes[1])

    def _decides(self, model: Any, probe: Any, classes: NDArray[Any], answers: NDArray[Any]) -> bool:
        """True if decision values, one for each class, decide as the predictor does."""
        values = np.asarray(model.decision_function(probe), dtype=np.float64)
        if classes.size == 2:
            return values.ndim == 1
        of_classes = values.ndim == 2 and values.shape[1] == classes.size
        return of_classes and bool((classes[values.argmax(axis=1)] == answers).mean() > 0.99)

    def _function(self, values: NDArray[Any], X: Any, y: Any, columns: int, options: dict[str, Any]) -> None:
        if values.dtype.kind == "f":
            sums = values.sum(axis=1) if values.ndim == 2 else np.zeros(1)
            if (
                values.ndim != 2
                or values.min() < 0
                or np.abs(sums - 1).max() > ROUNDING
                or values.shape[1] < 2
            ):
                self._regressor(values, columns, options)
                return
            self.source, self._outputs = "probabilities", self._predict
            known = None if y is None else np.unique(np.asarray(y))
            k = values.shape[1]
            classes = known if known is not None and known.size == k else np.arange(k)
            self._classes(classes, columns, options)
            probabilities = self._predict
            self._predict = lambda X: classes[np.asarray(probabilities(X)).argmax(axis=1)]
            return
        if values.ndim != 1:
            raise ValueError(
                f"{self.name} returns {values.shape[1]} labels for each sample: distil one classifier "
                "for each"
            )
        self.source, self._outputs = "labels", self._predict
        answers = self._answer(X)
        seen = answers if y is None else np.concatenate([answers, np.asarray(y)])
        self._classes(np.unique(seen), columns, options)

    def _classes(self, classes: NDArray[Any], columns: int, options: dict[str, Any]) -> None:
        if classes.size < 2:
            raise ValueError(f"{self.name} knows one class, {classes.tolist()}: nothing is to be imitated")
        binary = classes.size == 2
        self.template = ExpansionClassifier(
            _empty(columns, 1 if binary else classes.size), classes, "binary" if binary else "ovr", **options
        )

    def _refuse_clash(self, y: Any) -> None:
        """Refuse labels for a teacher of numbers."""
        if y is not None and self.source == "numbers" and np.asarray(y).dtype.kind in "OUS":
            try:
                np.asarray(y, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"y holds labels, and {self.name} predicts numbers") from None

    @property
    def has_probabilities(self) -> bool:
        """True if students have ``predict_proba``."""
        return self.source == "probabilities"

    @property
    def loss(self) -> str:
        """The loss of a student: ``"agreement"`` is the cross-entropy, ``"matching"`` are squares."""
        return "agreement" if self.source in ("probabilities", "labels") else "matching"

    @property
    def coding(self) -> str:
        """The meaning of the outputs as the extension module takes it."""
        return self.template.decoding if isinstance(self.template, ExpansionClassifier) else "values"

    def calibration(self) -> Calibration | None:
        """The probabilities of students: sigmoid or softmax of the outputs."""
        if not self.has_probabilities:
            return None
        return Calibration("softmax", np.ones(1), np.array([self._shift]))

    def _like_samples(self, rows: Any) -> Any:
        """Rows in the form of the samples that were given."""
        if not isinstance(rows, np.ndarray):
            return rows
        if self._is_sparse:
            return sparse.csr_matrix(rows)
        if self._frame is None:
            return rows
        return _like_frame(rows, self._frame)

    def _answer(self, X: Any) -> NDArray[Any]:
        returned = self._predict(X)
        values = np.asarray(returned)
        if values.ndim not in (1, 2) or values.shape[0] != _num_samples(X) or values.dtype.kind == "c":
            raise ValueError(
                f"{self.name} returned a {type(returned).__name__} of shape {values.shape} and dtype "
                f"{values.dtype} for {_num_samples(X)} samples: it must return an array of one real number, "
                "label or row for each"
            )
        return (
            values[:, 0]
            if values.ndim == 2 and values.shape[1] == 1 and values.dtype.kind in "OUS"
            else values
        )

    def answers(self, X: Any) -> NDArray[np.intp]:
        """The answers (n,) of a classifier or detector, in the form of a student's ``decode``."""
        found = [np.asarray(self._predict(part)).reshape(-1) for part in _chunks(X)]
        labels = np.concatenate(found)
        if isinstance(self.template, ExpansionClassifier):
            return np.asarray(label_indices(labels, self.template.classes_), dtype=np.intp)
        return labels.astype(np.intp)

    def outputs(self, X: Any, progress: ProgressCallback | None = None) -> NDArray[np.float64]:
        """Outputs (n, q) that a student is to have.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; an array is handed to the predictor as the data frame that was given.
        progress : callable, default=None
            Called with the progress after each chunk.

        Raises
        ------
        ValueError
            If the predictor returns numbers that are not finite, or labels that are not its classes.
        """
        n, q = _num_samples(X), self.template.expansion.n_outputs
        out, at = np.empty((n, q)), 0
        for part in _chunks(X):
            values = self._target(np.asarray(self._outputs(self._like_samples(part))))
            if values.shape != (_num_samples(part), q):
                raise ValueError(
                    f"{self.name} returned shape {values.shape} for {_num_samples(part)} samples and {q} "
                    "outputs"
                )
            out[at : at + len(values)] = values
            at += len(values)
            if progress is not None:
                progress("outputs", at, n, float("nan"), 0)
        if not np.isfinite(out).all():
            raise ValueError(
                f"{self.name} predicts NaN or infinities for some samples: nothing can imitate them"
            )
        return out - self._shift

    def _target(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Outputs of what the predictor returned."""
        if self.source == "labels":
            assert isinstance(self.template, ExpansionClassifier)
            classes = self.template.classes_
            indices = label_indices(values.reshape(-1), classes)
            if (indices < 0).any():
                raise ValueError(
                    f"{self.name} predicts the label {values.reshape(-1)[indices < 0].tolist()[0]!r} for a "
                    f"drawn sample, and none of X: its classes are {classes.tolist()[:5]}; give samples of "
                    "all classes, and return floating-point numbers where these are numbers, not labels"
                )
            values = np.eye(classes.size)[indices]
        numbers = np.asarray(values, dtype=np.float64)
        if self.loss == "matching":
            return numbers.reshape(len(numbers), -1)
        p = np.clip(numbers, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
        if p.shape[1] == 2:
            return np.log(p[:, 1:] / p[:, :1])
        logarithms = np.log(p)
        return np.asarray(logarithms - logarithms.mean(axis=1, keepdims=True))


def _like_frame(rows: NDArray[Any], frame: Any) -> Any:
    """Rows as a frame of pandas or Polars with the names and, where the numbers allow, types of another."""
    if not hasattr(frame, "iloc"):
        made = type(frame)(rows, schema=list(frame.columns))
        try:
            return made.cast(dict(zip(frame.columns, frame.dtypes, strict=True)))
        except Exception:  # Polars has exceptions of its own  # noqa: BLE001 - they derive from Exception alone
            return made
    made = type(frame)(rows, columns=frame.columns)
    try:
        return made.astype(frame.dtypes.to_dict())
    except (TypeError, ValueError):
        return made


def _name(model: Any) -> str:
    """The name of a function or of the class of an estimator; a method with that of its object."""
    name = getattr(model, "__name__", None)
    if name is None:
        return type(model).__name__
    owner = getattr(model, "__self__", None)
    return str(name) if owner is None else f"{type(owner).__name__}.{name}"


def _chunks(X: Any) -> Any:
    n = _num_samples(X)
    for start in range(0, n, MAX_CHUNK_SAMPLES):
        yield _safe_indexing(X, np.arange(start, min(n, start + MAX_CHUNK_SAMPLES)))


def _empty(columns: int, q: int) -> KernelExpansion:
    return KernelExpansion(np.zeros((0, columns)), np.zeros((0, q)), np.zeros(q), kernel="rbf", gamma=1.0)


def _asks(question: Callable[[Any], bool], model: Any) -> bool:
    """The answer of scikit-learn about a kind of estimator; False for objects that have no tags."""
    try:
        return bool(question(model))
    except AttributeError:
        return False


def _weighted(model: Any) -> bool | None:
    """True if classes have weights; None where the weights of samples are not known."""
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    return True if any(k.endswith("class_weight") and v is not None for k, v in parameters.items()) else None


def _threshold(values: NDArray[np.float64], second: NDArray[np.bool_]) -> float:
    """The output above which the predictor answers the second class; 0 if 0 is one or none is."""
    if second.all() or not second.any():
        return 0.0
    low, high = float(values[~second].max()), float(values[second].min())
    return 0.0 if low > high or low <= 0.0 <= high else 0.5 * (low + high)
