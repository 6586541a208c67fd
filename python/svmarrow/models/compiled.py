"""Fitted models for one row at a time, without arrays on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.kinds import check_own
from svmarrow._support.parameters import consistent
from svmarrow.models.preparation import Affine

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from svmarrow.models.outputs import OutputSpec

__all__ = ["CompiledModel", "compiled"]


class CompiledModel:
    """A fitted model that answers single samples in microseconds.

    `compiled` of a fitted estimator makes one; it does not follow later fits. It computes in double precision
    and gives the labels and scores of the estimator. Safe to call from several threads.

    Parameters
    ----------
    spec : OutputSpec
        The expansion and the meaning of its outputs.
    feature_names : array-like of str or None, default=None
        Names of the features, in the order of training.

    Attributes
    ----------
    n_features_in_ : int
        Numbers of a sample.
    predict : callable
        From a sample to its label as a plain int, float or str, to 1 or -1 of an outlier detector, to a
        float, or to a tuple of floats for several targets. A sample is a list, a tuple, a vector of NumPy or
        another sequence of numbers, columns in the order of training. If `feature_names` are known, it may be
        a dict from names to values; further keys are ignored. Raises a ValueError for another number of
        features, a missing name, NaN and infinities.
    decision_function : callable or None
        From a sample to a float where `decision_function` of the estimator has one number a sample, else to a
        tuple of floats. None for what predicts numbers.
    predict_proba : callable
        From a sample to the tuple of the probabilities of the classes. Only for models with probabilities;
        `calibrated` adds them to a classifier.
    feature_names : list of str or None
        Names of the features, in the order of training.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> fast = SVC().fit(X, y).compiled()
    >>> fast.predict([5.0, 3.4, 1.5, 0.2]), len(fast.decision_function((5.0, 3.4, 1.5, 0.2)))
    (0, 3)
    """

    __slots__ = (
        "decision_function",
        "feature_names",
        "n_features_in_",
        "predict",
        "predict_proba",
        "spec",
    )

    predict: Callable[[Any], Any]
    decision_function: Callable[[Any], Any] | None
    predict_proba: Callable[[Any], tuple[float, ...]]
    feature_names: list[str] | None
    n_features_in_: int
    spec: OutputSpec

    def __init__(self, spec: OutputSpec, feature_names: ArrayLike | None = None) -> None:
        self.spec = spec
        self.feature_names = None if feature_names is None else np.asarray(feature_names).tolist()
        self.n_features_in_ = spec.n_features
        step, before = spec.preparation, None
        if isinstance(step, Affine):
            before = (step.centre, step.scale, step.matrix, step.offset)
        inner = step is not None and before is None
        columns = step.n_out if inner and step is not None else spec.n_features

        def single(answer: str, scores: str, labels: list[Any]) -> _core.Single:
            handle = spec.expansion.core_expansion
            return _core.Single(handle, columns, before, answer, scores, spec.matrix, labels)

        functions = single(*_decoding(spec))
        self.predict, self.decision_function = functions.predict, functions.decision_function
        if spec.one_score == "second":
            both = self.decision_function
            self.decision_function = lambda row: both(row)[1]
        probabilities: Callable[[Any], tuple[float, ...]] | None = None
        if spec.calibration is not None:
            outputs = single("outputs", "outputs", []).predict

            def probabilities(row: Any) -> tuple[float, ...]:
                return tuple(spec.probabilities_of(np.array([outputs(row)]))[0].tolist())

        if spec.winner == "probabilities":
            assert spec.classes is not None
            labels = spec.classes.tolist()
            self.predict = lambda row: labels[spec.winners_of(np.array([outputs(row)]))[0]]
        values_of = _values_of(self.feature_names)
        read: Callable[[Any], Any] = values_of
        if inner and step is not None:
            # Python handles categories and gaps: such a step takes longer than the model itself.
            def prepared(row: Any) -> Any:
                rows = step.rows(np.asarray([values_of(row)], dtype=object))
                return (rows.toarray() if hasattr(rows, "toarray") else rows)[0]

            read = prepared
        self.predict = _after(read, self.predict)
        self.decision_function = None if spec.kind == "numbers" else _after(read, self.decision_function)
        if probabilities is not None:
            self.predict_proba = _after(read, probabilities)

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba":
            raise AttributeError(
                "the model has no probabilities, so its compiled form has no predict_proba: "
                "model.calibrated(X, y) adds them to a classifier"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledModel, (self.spec, self.feature_names)

    def __repr__(self) -> str:
        return f"<CompiledModel: {self.spec.expansion!r}>"


def _values_of(names: list[str] | None) -> Callable[[Any], Any]:
    """The function that returns the values of a sample in the order of training."""

    def values_of(row: Any) -> Any:
        if names is not None and hasattr(row, "_asdict"):
            row = row._asdict()
        # A Series has keys too; of a model without names it is a list of numbers.
        if not (isinstance(row, Mapping) or (names is not None and hasattr(row, "keys"))):
            return row
        if names is None:
            raise TypeError(
                "the sample is a dict, and the model has no feature names: pass a list in the order of the "
                "columns of training, or fit on a DataFrame"
            )
        try:
            return [row[name] for name in names]
        except KeyError as error:
            raise ValueError(
                f"the sample has no value for the feature {error}: the features of the model are "
                f"{', '.join(map(repr, names))}; None is a missing value of a table"
            ) from None

    return values_of


def _after(read: Callable[[Any], Any], function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda row: function(read(row))


def _decoding(spec: OutputSpec) -> tuple[str, str, list[Any]]:
    """The meaning of the outputs as the extension module takes it, and the labels."""
    if spec.kind == "inside":
        return "inside", "flat", []
    if spec.kind in ("numbers", "outputs"):
        return "flat" if spec.flat else "outputs", "outputs", []
    assert spec.classes is not None
    winner = "sign" if len(spec.classes) == 2 else "largest"
    scores = str(spec.score_decoder) if spec.one_score == "second" else spec.scores
    return winner if spec.winner == "probabilities" else spec.winner, scores, spec.classes.tolist()


@consistent
def compiled(self: Any) -> CompiledModel:
    """The fitted model for one sample at a time, in microseconds.

    Returns
    -------
    CompiledModel
        Its functions ``predict``, ``decision_function`` and ``predict_proba`` take one sample: a list, a
        tuple, a vector, or a dict from the names of the features if the model has names. They return what
        the methods here return for it, in double precision. It does not follow later fits.

    Raises
    ------
    TypeError
        If the model is not one kernel expansion, or its kernel is a Python function.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    check_is_fitted(self)
    is_model = hasattr(self, "_output_spec")
    check_own(self, "_output_spec" if is_model else "as_expansion")
    spec = self._output_spec() if is_model else self.as_expansion()._output_spec()
    return CompiledModel(spec, getattr(self, "feature_names_in_", None))
