"""A kernel expansion as a classifier, a regressor or an outlier detector.

Compression, model files and conversions give these models. All that they have learned is the expansion, so
there is nothing to fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils.metaestimators import available_if

from svmarrow._support.decoding import Code, check_decoder
from svmarrow._support.parameters import Decoding, Rule, boolean, check_shape, either, none, one_of, refuse
from svmarrow._support.training import known_labels, sample_weights
from svmarrow.models.base import ExpansionModel
from svmarrow.models.outputs import (
    Calibration,
    ClassifierOutputMixin,
    OutlierOutputMixin,
    OutputSpec,
    RegressorOutputMixin,
    code_class_indices,
    code_decision_values,
    decision_margins,
    log_probabilities,
    pair_matrix,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.preparation import Step

__all__ = ["ExpansionClassifier", "ExpansionDetector", "ExpansionRegressor"]


# --- a classifier: outputs with labels ---
# The q outputs of the expansion are decoded as in `svmarrow.SVC`:
#
# * ``"binary"``: one output, positive for the second class;
# * ``"ovo"``: one output for each pair of classes a < b, in the order (0, 1), (0, 2), ..., (1, 2), ...,
#   positive for class a; the class with the most votes wins, ties go to the first. Of two classes the score
#   is that of the second, as in scikit-learn's ``OneVsOneClassifier``;
# * ``"ovr"``: one output for each class; the largest wins;
# * ``"code"``: one output for each column of a code, decoded as `svmarrow.CodedClassifier` does it.
#
# `predict` gives the class that this decoding chooses, unless `predict_by` names another rule: scikit-learn's
# ``CalibratedClassifierCV`` predicts the most probable class, and its ``BaggingClassifier``, whose scores are
# averages, counts votes.

#: Ways in which `predict` finds the class.
PREDICT_BY = ("scores", "probabilities", "votes")
#: Approximate number of vectors at which rounding errors are measured.
N_MEASURED = 100
#: Largest rounding error of what a sigmoid or the softmax takes: a probability changes by a fourth of it.
MAX_SCORE_ERROR = 1e-3


def n_outputs(decoding: str, n_classes: int) -> int:
    """Number of outputs that a decoding needs for `n_classes` classes."""
    return {"binary": 1, "ovo": n_classes * (n_classes - 1) // 2, "ovr": n_classes}[decoding]


def _has_probabilities(model: ExpansionClassifier) -> bool:
    """For `available_if`."""
    if model.calibration is None:
        raise AttributeError(
            "this model has no probabilities: model.calibrated(X, y) fits sigmoids on samples that training "
            "has not seen"
        )
    return True


class ExpansionClassifier(ClassifierOutputMixin, ExpansionModel, schema="classifier/1"):
    """A classifier made of a kernel expansion, its classes and the way its outputs are decoded.

    Compressing a classifier gives one, and so does loading a LIBSVM model file. There is nothing to fit;
    to fit a compressed model inside a pipeline or a grid search use `svmarrow.ReducedSet`.

    Parameters
    ----------
    expansion : KernelExpansion
        The decision functions, one output for each binary machine.
    classes : array-like of shape (n_classes,)
        The labels, at least two, all different.
    decoding : {"binary", "ovo", "ovr", "code"}
        The meaning of the outputs, see the module.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For ``decoding="ovo"``: whether `decision_function` returns one score a class or the raw pairwise
        outputs.
    break_ties : bool, default=False
        For ``decoding="ovo"`` with ``decision_function_shape="ovr"`` and more than two classes: break ties of
        the votes by the sums of the outputs, as scikit-learn's SVC does.
    feature_names : array-like of str of shape (n_features,), default=None
        Feature names to expect at prediction.
    n_features : int, default=None
        Number of features at prediction, if the vectors do not determine it: for the precomputed kernel, the
        number of training samples. None takes it from the vectors.
    preparation : Step, default=None
        What happens to a sample before the kernel sees it, see `svmarrow.models.preparation`; `as_expansion`
        makes it of the steps of a pipeline. None hands samples to the kernel as they are.
    code : Code or array-like, default=None
        For ``decoding="code"``: the code.
    decoder : str, default=None
        For ``decoding="code"``: the decoder's own name, see `svmarrow.CodedClassifier`.
    predict_by : {"scores", "probabilities", "votes"}, default="scores"
        How `predict` finds the class. ``"scores"`` is the decoding. ``"probabilities"`` is the largest of
        `predict_proba`, the first of equals, as in scikit-learn's ``CalibratedClassifierCV``; it needs a
        `calibration`. ``"votes"``, for ``decoding="code"``, counts the signs of the outputs whatever the
        decoder of the scores is.
    calibration : Calibration, default=None
        Sigmoids or a softmax that make probabilities of outputs. `calibrated` fits them; those of
        scikit-learn's ``SVC(probability=True)`` and ``CalibratedClassifierCV(ensemble=False)`` are kept. None
        has no `predict_proba`.
    weighted : bool or None, default=None
        Whether the model was trained with weights that differ between samples or classes; None where that is
        not known. `svmarrow.compress` keeps the thresholds of such a model.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The expansion.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of features at prediction.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Feature names, where they are known.
    loss_bound_ : LossBound or None
        Bound of the loss against the model that `compress` was given, where it measured one.
    quantization_ : Quantization or None
        Loss against the model that `quantize` was given, where it made this one.
    distillation_ : Distillation or None
        Teacher and curve of a model that `distil` made of a predictor that is no kernel machine.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import KernelExpansion
    >>> from svmarrow.models.expansion_models import ExpansionClassifier
    >>> expansion = KernelExpansion(np.array([[0.0], [1.0]]), [[-1.0], [1.0]], [0.0], kernel="rbf", gamma=1.0)
    >>> model = ExpansionClassifier(expansion, ["low", "high"], "binary")
    >>> model.predict([[0.1], [0.8]]).tolist()
    ['low', 'high']
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "break_ties": boolean,
        "calibration": either(none, Rule("a Calibration", lambda v: isinstance(v, Calibration))),
        "predict_by": one_of(*PREDICT_BY),
        **ExpansionModel._rules,
    }
    _bound_depends_on: ClassVar[frozenset[str]] = ExpansionModel._bound_depends_on | {
        "calibration",
        "classes",
        "predict_by",
    }
    _transient = ("_is_steep", "_matrix")
    _fit_remedy: ClassVar[str] = "svmarrow.ReducedSet(estimator, n_vectors=...) instead"

    def __init__(
        self,
        expansion: KernelExpansion,
        classes: ArrayLike,
        decoding: Decoding,
        *,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        feature_names: ArrayLike | None = None,
        n_features: int | None = None,
        preparation: Step | None = None,
        code: Code | ArrayLike | None = None,
        decoder: str | None = None,
        predict_by: Literal["scores", "probabilities", "votes"] = "scores",
        calibration: Calibration | None = None,
        weighted: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.expansion = expansion
        self.classes = classes
        self.decoding = decoding
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.feature_names = feature_names
        self.n_features = n_features
        self.preparation = preparation
        self.code = code
        self.decoder = decoder
        self.predict_by = predict_by
        self.calibration = calibration
        self.weighted = weighted
        self.n_jobs = n_jobs
        self._check()

    #: The code's matrix for ``decoding="code"``.
    _matrix: NDArray[np.int8] | None
    #: Whether the calibration amplifies rounding errors, see `_amplifies`; None until it was measured.
    _is_steep: bool | None
    decision_function_shape: Literal["ovo", "ovr"]

    def _check(self) -> None:
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or labels.size < 2 or np.unique(labels).size != labels.size:
            raise refuse("classes", self.classes, "at least two distinct labels")
        if self.decoding not in ("binary", "ovo", "ovr", "code"):
            raise refuse("decoding", self.decoding, "'binary', 'ovo', 'ovr' or 'code'")
        if (self.decoding == "code") != (self.code is not None and self.decoder is not None):
            raise ValueError("code and decoder go with decoding='code', and it needs both")
        if self.decoding == "binary" and labels.size != 2:
            raise refuse("decoding", self.decoding, f"'ovo' or 'ovr' for {labels.size} classes")
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise refuse("decision_function_shape", self.decision_function_shape, "'ovr' or 'ovo'")
        check_shape(self.decoding, self.decision_function_shape, self.break_ties)
        self._matrix, self._is_steep = None, None
        if self.code is not None:
            code = self.code if isinstance(self.code, Code) else Code(self.code)
            code.check_classes(labels.size)
            check_decoder(str(self.decoder), code)
            self._matrix = code.matrix
        expected = n_outputs(self.decoding, labels.size) if self._matrix is None else self._matrix.shape[1]
        if self.expansion.n_outputs != expected:
            raise ValueError(
                f"expansion has {self.expansion.n_outputs} outputs: decoding={self.decoding!r} of "
                f"{labels.size} classes needs {expected}"
            )
        if self.predict_by not in PREDICT_BY:
            raise refuse("predict_by", self.predict_by, "'scores', 'probabilities' or 'votes'")
        if self.predict_by == "probabilities" and self.calibration is None:
            raise ValueError("predict_by='probabilities' needs a calibration")
        if self.predict_by == "votes" and self.decoding != "code":
            raise ValueError(f"predict_by='votes' needs decoding='code', not {self.decoding!r}")
        self._check_columns()
        if self.calibration is not None:
            self._check_calibration(self.calibration, labels.size)

    def _check_calibration(self, calibration: Calibration, n_classes: int) -> None:
        calibration.check(n_classes)
        if n_classes == 2:
            return
        if calibration.link == "pairs" and self.decoding != "ovo":
            raise ValueError(f"calibration with link='pairs' needs decoding='ovo', not {self.decoding!r}")
        if calibration.link != "pairs" and self.decision_function_shape == "ovo":
            raise ValueError(
                f"calibration with link={calibration.link!r} takes a score for each class, and "
                "decision_function_shape='ovo' gives one for each pair"
            )

    def _amplifies(self) -> bool:
        """Returns whether rounding in single precision may change a probability by more than .00025.

        A sigmoid fitted to outputs that hardly differ is steep. Measured at some of the vectors.
        """
        if self.calibration is None or self.expansion.kernel == "precomputed":
            return False
        if self._is_steep is None:
            vectors = self.expansion.vectors
            some = vectors[:: max(1, vectors.shape[0] // N_MEASURED)].astype(np.float32)
            exact, rounded = (
                self._calibrated_values(self.expansion._evaluate(rows, self.n_jobs))
                for rows in (some.astype(np.float64), some)
            )
            errors = np.reshape(np.abs(rounded - exact), (some.shape[0], -1)) * np.abs(
                self.calibration.slopes
            )
            self._is_steep = not errors.max(initial=0.0) <= MAX_SCORE_ERROR
        return self._is_steep

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]  # read-only here
        """The labels, (n_classes,)."""
        return np.asarray(self.classes)

    @property
    def _decoding(self) -> Decoding:
        return self.decoding

    def _output_spec(self) -> OutputSpec:
        matrix, n_classes = self._matrix, len(self.classes_)
        if self.decoding == "binary":
            winner, scores = "sign", "flat"
        elif self.decoding == "ovr":
            winner, scores = "largest", "outputs"
        elif self.decoding == "ovo":
            matrix = pair_matrix(n_classes)
            winner = "confidence" if self.break_ties else "votes"
            scores = "confidence" if self.decision_function_shape == "ovr" else "outputs"
            if n_classes == 2 and scores == "confidence":
                scores = "second confidence"
        else:
            assert matrix is not None
            winner = str(self.decoder)
            scores = "column" if matrix.shape == (2, 1) else winner
            if n_classes == 2 and scores != "column":
                scores = f"difference {winner}"
        if self.predict_by != "scores":
            winner = self.predict_by
        return OutputSpec(
            self.expansion,
            "classes",
            self.n_features_in_,
            self.preparation,
            classes=self.classes_,
            winner=winner,
            scores=scores,
            matrix=matrix,
            calibration=self.calibration,
        )

    def scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`decision_function` of outputs (n, q)."""
        if self._matrix is not None:
            return code_decision_values(outputs, self._matrix, str(self.decoder), self.n_jobs)
        return super()._scores_of(outputs)

    def decode(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """Index in `classes_` that wins each row of outputs (n, q)."""
        if self.predict_by == "probabilities":
            assert self.calibration is not None
            return self.calibration.winners(self._calibrated_values(outputs), len(self.classes_))
        if self._matrix is not None:
            decoder = "votes" if self.predict_by == "votes" else str(self.decoder)
            return code_class_indices(outputs, self._matrix, decoder, self.n_jobs)
        return super()._winners_of(outputs)

    _scores_of, _winners_of = scores_of, decode

    def margins_of(self, outputs: NDArray[np.float64], winners: NDArray[np.intp]) -> NDArray[np.float64]:
        """Margins (n,) of the classes `winners` (n,) in outputs (n, q)."""
        if self.predict_by == "probabilities":
            probabilities = self.probabilities_of(outputs)
            return decision_margins(probabilities, "ovr", len(self.classes_), winners)
        if self._matrix is not None:
            decoder = "votes" if self.predict_by == "votes" else str(self.decoder)
            values = code_decision_values(outputs, self._matrix, decoder, self.n_jobs)
            if values.ndim == 1:
                return np.abs(values)
            return decision_margins(values, "ovr", len(self.classes_), winners)
        return decision_margins(outputs, self.decoding, len(self.classes_), winners)

    def with_calibration(self, calibration: Calibration | None) -> Self:
        """A copy of the model with other probabilities; without any it predicts by its scores."""
        if calibration is None and self.predict_by == "probabilities":
            return self._replace(calibration=None, predict_by="scores")
        return self._replace(calibration=calibration)

    def with_predict_by(self, predict_by: Literal["scores", "probabilities", "votes"]) -> Self:
        """A copy of the model that finds the class of a sample in another way, see `predict_by`."""
        return self._replace(predict_by=predict_by)

    def calibrated(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ExpansionClassifier:
        """A copy of the model with sigmoids for probabilities, fitted on these samples.

        A sigmoid for each pair of classes where there is a machine for each pair, coupled; else one for each
        class, and their sum is 1. Slopes are not negative: a class whose outputs these samples contradict has
        the slope 0. `predict` stays as it is, unless the model predicts by its probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples that training has not seen: on its training samples a model is more certain than it should
            be.
        y : array-like of shape (n_samples,)
            Their labels, every class among them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        ExpansionClassifier
            With `predict_proba`. Its files have the sigmoids, and exports give probabilities.

        Raises
        ------
        ValueError
            If a label is not a class of the model, or a class has no samples.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from svmarrow import SVC, as_expansion
        >>> X, y = load_iris(return_X_y=True)
        >>> model = as_expansion(SVC().fit(X[::2], y[::2])).calibrated(X[1::2], y[1::2])
        >>> model.predict_proba(X[:1]).round(1).tolist()
        [[1.0, 0.0, 0.0]]
        """
        outputs = self.outputs(X)
        k = len(self.classes_)
        numbers = known_labels(y, self.classes_, len(outputs))
        weights = sample_weights(1.0 if sample_weight is None else sample_weight, numbers.size)
        assert weights is not None
        missing = np.bincount(numbers, weights > 0.0, minlength=k) == 0
        if missing.any():
            raise ValueError(
                f"y has no row of class {self.classes_[missing].tolist()[0]!r}: its sigmoid is not known"
            )
        link: Literal["classes", "pairs"] = "pairs" if self.decoding == "ovo" and k > 2 else "classes"
        values = outputs if link == "pairs" else self.scores_of(outputs).reshape(len(outputs), -1)
        return self.with_calibration(Calibration.fitted(link, values, numbers, k, weights))

    def probabilities_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`predict_proba` of outputs (n, q)."""
        assert self.calibration is not None
        return self.calibration.probabilities(self._calibrated_values(outputs), len(self.classes_))

    def _calibrated_values(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the values that the calibration takes, from outputs (n, q)."""
        assert self.calibration is not None
        pairwise = self.calibration.link == "pairs" and len(self.classes_) > 2
        return outputs if pairwise else self.scores_of(outputs).reshape(len(outputs), -1)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, if there is a `calibration`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. The most probable class may be another one than `predict` has,
            unless ``predict_by="probabilities"``.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        return self.probabilities_of(self.outputs(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
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
        return log_probabilities(self.predict_proba(X))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        about = f"{len(self.classes_)} classes, decoding={self.decoding!r}"
        return f"ExpansionClassifier({self.expansion!r}, {about})"


# --- a regressor: the result of compressing or converting a regression machine ---


class ExpansionRegressor(RegressorOutputMixin, ExpansionModel, schema="regressor/1"):
    """A regressor made of a kernel expansion: its outputs are its predictions.

    Compressing a regression machine gives one, and so does loading it from a file. There is nothing
    to fit.

    Parameters
    ----------
    expansion : KernelExpansion
        One output for each target.
    feature_names : array-like of str of shape (n_features,), default=None
        Feature names to expect at prediction.
    n_features : int, default=None
        Number of features at prediction, if the vectors do not determine it: for the precomputed kernel, the
        number of training samples. None takes it from the vectors.
    preparation : Step, default=None
        What happens to a sample before the kernel sees it, see `svmarrow.models.preparation`; `as_expansion`
        makes it of the steps of a pipeline. None hands samples to the kernel as they are.
    flat : bool, default=True
        Whether a single target is predicted as a vector (n,) or as a column (n, 1).
    weighted : bool or None, default=None
        Whether the model was trained with weights that differ between samples or classes; None where that is
        not known. `svmarrow.compress` keeps the thresholds of such a model.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The expansion.
    n_features_in_ : int
        Number of features at prediction.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Feature names, where they are known.
    loss_bound_ : LossBound or None
        Bound of the loss against the model that `compress` was given, where it measured one.
    quantization_ : Quantization or None
        Loss against the model that `quantize` was given, where it made this one.
    distillation_ : Distillation or None
        Teacher and curve of a model that `distil` made of a predictor that is no kernel machine.

    Examples
    --------
    >>> from svmarrow import KernelExpansion
    >>> from svmarrow.models import ExpansionRegressor
    >>> expansion = KernelExpansion([[0.0], [1.0]], [1.0, -1.0], 0.5, kernel="linear")
    >>> ExpansionRegressor(expansion).predict([[2.0], [3.0]])
    array([-1.5, -2.5])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {"flat": boolean, **ExpansionModel._rules}

    def __init__(
        self,
        expansion: KernelExpansion,
        *,
        feature_names: ArrayLike | None = None,
        n_features: int | None = None,
        preparation: Step | None = None,
        flat: bool = True,
        weighted: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.expansion = expansion
        self.feature_names = feature_names
        self.n_features = n_features
        self.preparation = preparation
        self.flat = flat
        self.weighted = weighted
        self.n_jobs = n_jobs
        self._check_columns()

    @property
    def _single(self) -> bool:  # type: ignore[override]  # read-only here
        return self.flat and self.expansion.n_outputs == 1

    def _output_spec(self) -> OutputSpec:
        return OutputSpec(self.expansion, "numbers", self.n_features_in_, self.preparation, flat=self._single)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.expansion.n_outputs > 1
        tags.target_tags.single_output = self.expansion.n_outputs == 1
        return tags


# --- an outlier detector: the result of compressing a one-class machine ---


class ExpansionDetector(OutlierOutputMixin, ExpansionModel, schema="detector/1"):
    """An outlier detector made of a kernel expansion with one output, negative outside.

    Compressing a ``OneClassSVM`` gives one, and so does loading it from a file. There is nothing to fit.

    Parameters
    ----------
    expansion : KernelExpansion
        The decision function.
    feature_names : array-like of str of shape (n_features,), default=None
        Feature names to expect at prediction.
    n_features : int, default=None
        Number of features at prediction, if the vectors do not determine it: for the precomputed kernel, the
        number of training samples. None takes it from the vectors.
    preparation : Step, default=None
        What happens to a sample before the kernel sees it, see `svmarrow.models.preparation`; `as_expansion`
        makes it of the steps of a pipeline. None hands samples to the kernel as they are.
    weighted : bool or None, default=None
        Whether the model was trained with weights that differ between samples or classes; None where that is
        not known. `svmarrow.compress` keeps the thresholds of such a model.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The expansion.
    offset_ : ndarray of shape (1,)
        What `decision_function` takes from `score_samples`.
    n_features_in_ : int
        Number of features at prediction.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Feature names, where they are known.
    loss_bound_ : LossBound or None
        Bound of the loss against the model that `compress` was given, where it measured one.
    quantization_ : Quantization or None
        Loss against the model that `quantize` was given, where it made this one.
    distillation_ : Distillation or None
        Teacher and curve of a model that `distil` made of a predictor that is no kernel machine.

    Examples
    --------
    >>> from svmarrow import OneClassSVM, compress
    >>> X = [[0], [0.44], [0.45], [0.46], [1]]
    >>> compress(OneClassSVM(gamma="auto").fit(X), n_vectors=3).predict(X).tolist()
    [-1, 1, 1, 1, -1]
    """

    def __init__(
        self,
        expansion: KernelExpansion,
        *,
        feature_names: ArrayLike | None = None,
        n_features: int | None = None,
        preparation: Step | None = None,
        weighted: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.expansion = expansion
        self.feature_names = feature_names
        self.n_features = n_features
        self.preparation = preparation
        self.weighted = weighted
        self.n_jobs = n_jobs
        if expansion.n_outputs != 1:
            raise ValueError(f"expansion has {expansion.n_outputs} outputs: a detector has one")
        self._check_columns()

    def _output_spec(self) -> OutputSpec:
        return OutputSpec(self.expansion, "inside", self.n_features_in_, self.preparation, scores="flat")

    def decode(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """1 inside the region and -1 outside, for outputs (n, 1)."""
        return np.where(outputs[:, 0] >= 0.0, 1, -1)
