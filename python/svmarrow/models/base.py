"""Base class of the models made of a kernel expansion: classifiers, regressors, outlier detectors.

All that they have learned is the expansion, so there is nothing to fit. A compiled model is one for a single
sample at a time, without arrays on the way. Records hold what compression, quantization and distillation
measured on a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from svmarrow import _core
from svmarrow._support.estimator import Estimator, check_own
from svmarrow._support.parameters import (
    THREADS,
    Rule,
    boolean,
    check,
    consistent,
    either,
    integer,
    none,
    refuse,
)
from svmarrow._support.rows import validated
from svmarrow._support.schemas import savable
from svmarrow.models.preparation import Affine, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.outputs import OutputSpec

__all__ = [
    "CompiledModel",
    "Distillation",
    "ExpansionModel",
    "KernelModel",
    "LossBound",
    "Quantization",
    "compiled",
]


# --- a compiled model ---


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


# --- models ---


def _are_names(value: Any) -> bool:
    names = np.asarray(value, dtype=object)
    return names.ndim == 1 and all(isinstance(name, str) for name in names)


def _is_list_of_rows(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (list, tuple, np.ndarray))


class ExpansionModel(Estimator):
    """Columns, outputs, saving and scikit-learn's contract around an expansion."""

    expansion: KernelExpansion
    feature_names: ArrayLike | None
    n_features: int | None
    preparation: Step | None
    weighted: bool | None
    n_jobs: int | None
    #: Bound of the loss against the model that this one is a compression of.
    loss_bound_: LossBound | None = None
    #: Loss against the model that this one was rounded from.
    quantization_: Quantization | None = None
    #: Teacher and sizes of a model that imitates a predictor that is no kernel machine.
    distillation_: Distillation | None = None
    _rules: ClassVar[Mapping[str, Rule]] = {
        "feature_names": either(none, Rule("a list of strings", _are_names)),
        "n_features": either(none, integer(least=0)),
        "preparation": either(none, Rule("a step", lambda v: isinstance(v, Step))),
        "weighted": either(none, boolean),
        "n_jobs": THREADS,
    }
    #: Parameters of which `loss_bound_` is no longer true when they change.
    _bound_depends_on: ClassVar[frozenset[str]] = frozenset(("expansion", "preparation"))
    #: The remedy in the error of `fit`.
    _fit_remedy: ClassVar[str] = "the estimator that it came from, and compress that"

    if TYPE_CHECKING:

        def __init__(self, expansion: KernelExpansion, *arguments: Any, **parameters: Any) -> None: ...

    def _check_columns(self) -> None:
        step = self.preparation
        if step is not None:
            if self.expansion.kernel == "precomputed":
                raise ValueError("preparation with kernel='precomputed': kernel values are not prepared")
            if step.n_out != self.expansion.vectors.shape[1]:
                raise ValueError(
                    f"preparation gives {step.n_out} columns, the vectors have "
                    f"{self.expansion.vectors.shape[1]}"
                )
            if self.n_features not in (None, step.n_in):
                raise refuse("n_features", self.n_features, f"{step.n_in}, what the preparation takes")
        elif self.n_features is not None and self.expansion.kernel != "precomputed":
            columns = self.expansion.vectors.shape[1]
            if self.n_features != columns:
                raise refuse(
                    "n_features", self.n_features, f"{columns}, the number of columns of the vectors"
                )
        if self.feature_names is not None and len(np.asarray(self.feature_names)) != self.n_features_in_:
            raise ValueError(
                f"feature_names has {len(np.asarray(self.feature_names))} names, the vectors have "
                f"{self.n_features_in_} columns"
            )

    @property
    def expansion_(self) -> KernelExpansion:
        """The expansion."""
        return self.expansion

    @property
    def n_features_in_(self) -> int:
        """Number of features at prediction."""
        if self.n_features is not None:
            return self.n_features
        if self.preparation is not None:
            return self.preparation.n_in
        if self.expansion.kernel == "precomputed":
            return int(self.expansion.vectors.max(initial=-1)) + 1
        return int(self.expansion.vectors.shape[1])

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Feature names at prediction, an AttributeError where they are not known."""
        if self.feature_names is None:
            raise AttributeError("this model was made from data without column names")
        return np.asarray(self.feature_names, dtype=object)

    def with_expansion(self, expansion: KernelExpansion) -> Self:
        """A copy of the model with another expansion."""
        return self._replace(expansion=expansion)

    def with_weighted(self, weighted: bool | None) -> Self:
        """A copy of the model with another `weighted`."""
        return self._replace(weighted=weighted)

    def with_preparation(
        self, preparation: Step | None, *, feature_names: ArrayLike | None, n_features: int | None
    ) -> Self:
        """A copy of the model with another preparation and other columns."""
        return self._replace(preparation=preparation, feature_names=feature_names, n_features=n_features)

    def without_names(self) -> Self:
        """A copy of the model that does not compare the names of columns."""
        return self._replace(feature_names=None)

    def _replace(self, **changes: Any) -> Self:
        """A copy of the model with other parameters.

        `loss_bound_` and `quantization_` are about one expansion, one preparation and one way to predict.
        """
        other = type(self)(**{**self.get_params(deep=False), **changes})
        is_same = self._bound_depends_on.isdisjoint(changes)
        if self.loss_bound_ is not None and is_same:
            other.loss_bound_ = self.loss_bound_
        if self.quantization_ is not None and is_same:
            other.quantization_ = self.quantization_
        if self.distillation_ is not None:
            other.distillation_ = self.distillation_
        return other

    def set_params(self, **params: Any) -> Self:
        """Set parameters, with the checks of the constructor.

        `n_jobs` may be set at any time. Parameters that contradict the model are refused, and the model stays
        as it is.

        Parameters
        ----------
        **params : Any
            New values of parameters.

        Returns
        -------
        object
            This object.

        Raises
        ------
        ValueError
            If a parameter does not exist, or its value contradicts the other parameters.
        """
        names = self._get_param_names()
        for name in params:
            if name not in names:
                raise refuse("set_params", name, f"a parameter of {type(self).__name__}: {', '.join(names)}")
        changed = self._replace(**params)
        check(changed.get_params(deep=False), self._rules)
        # One assignment: a prediction of another thread keeps the dictionary that it has begun with.
        self.__dict__ = vars(changed)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        # A parameter is set once, by the constructor; the number of threads contradicts nothing.
        if name in vars(self) and name != "n_jobs" and name in self._get_param_names():
            raise AttributeError(
                f"{name} of an {type(self).__name__} cannot be assigned: call set_params({name}=...), which "
                "checks that it agrees with the rest of the model"
            )
        super().__setattr__(name, value)

    def outputs(self, X: ArrayLike) -> NDArray[np.float64]:
        """Outputs of the expansion, (n, q)."""
        return self.expansion._evaluate(self.validated(X), self.n_jobs)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        return self.outputs(X)

    def _output_spec(self) -> OutputSpec:
        """The expansion with the meaning of its outputs."""
        raise NotImplementedError

    compiled: ClassVar[Callable[..., CompiledModel]] = compiled

    def validated(self, X: ArrayLike) -> Any:
        """Samples as the extension module takes them; a ValueError if they do not fit the model.

        Names and number of the columns are compared as scikit-learn's estimators do, and the preparation is
        applied.
        """
        if self.preparation is not None:
            # What has no columns is refused by the step.
            is_table = getattr(X, "ndim", 0) == 2 or _is_list_of_rows(X)
            validate_data(self, X, skip_check_array=True, ensure_2d=is_table, reset=False)
            # The preparation must not round what the expansion computes in double precision.
            return self.preparation.rows(X, self.feature_names, needs_double=self._needs_double)
        rows = validated(self, X, reset=False, precomputed=self.expansion.kernel == "precomputed")
        # Samples of bytes are evaluated in single precision too.
        is_rounded = rows.dtype not in (np.float64, object)
        return rows.astype(np.float64) if is_rounded and self._amplifies() else rows

    def _needs_double(self) -> bool:
        """Returns whether rounding to single precision may be seen in a prediction."""
        return self._amplifies() or self.expansion.needs_double()

    def _amplifies(self) -> bool:
        """Returns whether predictions amplify the rounding errors of outputs in single precision."""
        return False

    def fit(self, X: Any, y: Any = None) -> NoReturn:  # noqa: ARG002 - scikit-learn's signature
        """Refuse: there is nothing to fit.

        The method exists because scikit-learn asks every estimator for one, `FrozenEstimator` for example,
        which then never calls it.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "this model is made of a kernel expansion and cannot be fitted again: fit " + self._fit_remedy
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        # There is nothing to fit: a clone predicts the same, and shares the arrays, which do not change.
        return copy(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.expansion.kernel == "precomputed"
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{type(self).__name__}({self.expansion!r})"


KernelModel: TypeAlias = "ExpansionModel | KernelExpansion"
"""Input and result of a compression: a model around an expansion, or a bare expansion."""


# --- records: the teacher, the loss and the bytes of a model that was made of another one ---


@savable("distillation/1")
@dataclass(frozen=True)
class Distillation:
    """The teacher of a distilled model and the curve of the sizes that were tried, its ``distillation_``.

    Attributes
    ----------
    teacher : str
        The name of the teacher's class or function.
    source : {"numbers", "probabilities", "decision values", "labels"}
        The outputs of the teacher that were imitated.
    n_samples : int
        Number of given samples that were learned from.
    n_drawn : int
        Number of samples drawn around them.
    sizes : tuple of int
        Decreasing numbers of vectors.
    losses : tuple of float
        What each size loses of the teacher's score on the samples held out; empty without labels.
    agreements : tuple of float
        Share of the samples held out for which each size gives the teacher's answer; for numbers R^2 against
        the teacher's. Empty without samples held out.

    Examples
    --------
    >>> from svmarrow.models import Distillation
    >>> print(Distillation("MLPRegressor", "numbers", 500, 0, (64, 32), (), (0.98, 0.96)))
    MLPRegressor, 500 samples and 0 drawn: 64 vectors agree 0.9800; 32 vectors agree 0.9600
    """

    teacher: str
    source: str
    n_samples: int
    n_drawn: int
    sizes: tuple[int, ...]
    losses: tuple[float, ...] = ()
    agreements: tuple[float, ...] = ()

    def __str__(self) -> str:
        points = []
        for at, size in enumerate(self.sizes):
            text = [f"lose {self.losses[at]:.4f}"] if self.losses else []
            text += [f"agree {self.agreements[at]:.4f}"] if self.agreements else []
            points.append(f"{size} vectors {', '.join(text)}".rstrip())
        return f"{self.teacher}, {self.n_samples:,} samples and {self.n_drawn:,} drawn: {'; '.join(points)}"


# --- bound of the loss of a compressed model compared with the full model ---


@savable("loss-bound/1")
@dataclass(frozen=True)
class LossBound:
    """Bound of the loss of a compressed model compared with the full model, its ``loss_bound_``.

    As a string it is one or two sentences, in which points are percentage points.

    Attributes
    ----------
    loss : float or None
        Score of the full model minus score of the compressed model on the held-out samples, so it is negative
        if the compressed model scores higher. None without held-out samples.
    upper : float or None
        Upper bound of the loss on other samples of the same distribution, with `confidence`. None without
        held-out samples.
    confidence : float
        Probability that such a bound holds.
    n_samples : int
        Number of held-out samples.
    measure : {"accuracy", "balanced_accuracy", "r2", "neg_mean_squared_error", "agreement"}
        The score, averaged over several targets as scikit-learn's ``score`` is; agreement is the fraction of
        samples that get the full model's answer, for regressors R^2 compared with its outputs.
    max_loss : float or None
        The requested maximum loss.
    agreement : float or None
        For a distilled model, if the loss is one of its score: the fraction of held-out samples that get the
        teacher's answer, or R^2 compared with the outputs of a regressor.
    min_agreement : float or None
        Lower bound of the agreement on other samples, with `confidence`.

    Examples
    --------
    >>> from svmarrow.models import LossBound
    >>> bound = LossBound(0.001, 0.0028, 0.95, 8000, "accuracy", 0.003)
    >>> bound.guaranteed
    True
    >>> for sentence in str(bound).split(". "):
    ...     print(sentence)
    Accuracy -0.10 points on 8,000 held-out samples
    The loss on other samples is at most 0.28 points with 95 % confidence.
    """

    loss: float | None
    upper: float | None
    confidence: float
    n_samples: int
    measure: str
    max_loss: float | None = None
    agreement: float | None = None
    min_agreement: float | None = None

    @property
    def guaranteed(self) -> bool | None:
        """True if the bound is at most `max_loss`; None if that is None."""
        return None if self.max_loss is None else self.upper is not None and self.upper <= self.max_loss

    def __str__(self) -> str:
        if self.loss is None or self.upper is None:
            return "No samples were held out, so there is no bound of the loss."
        name, number, sign = _FORMATS[self.measure]
        rows, level = f"{self.n_samples:,} held-out samples", f"{100 * self.confidence:g} % confidence"
        if self.measure == "agreement":
            text = (
                f"The answers agree with the full model's for {number(1.0 - self.loss)} of {rows}, and for "
                f"at least {number(max(0.0, 1.0 - self.upper))} of other samples with {level}"
            )
            goal = None if self.max_loss is None else number(1.0 - self.max_loss)
        else:
            text = (
                f"{name} {_signed(sign * self.loss, number)} on {rows}. The loss on other samples is at "
                f"most {number(self.upper)} with {level}"
            )
            goal = None if self.max_loss is None else number(self.max_loss)
        text += f"; these samples cannot guarantee {goal}." if self.guaranteed is False else "."
        if self.agreement is not None and self.min_agreement is not None:
            share = _number if self.measure in {"r2", "neg_mean_squared_error"} else _percent
            text += (
                f" Agreement with the teacher: {share(self.agreement)} on these samples, at least "
                f"{share(self.min_agreement)} on others."
            )
        return text


def _points(value: float) -> str:
    return f"{100 * value:.2f} points"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _number(value: float) -> str:
    return f"{value:.4f}"


def _signed(value: float, number: Callable[[float], str]) -> str:
    return f"{'-' if value < 0 else '+'}{number(abs(value))}"


#: Name of a measure, how its losses are written, and the sign of a loss in its values.
_FORMATS: dict[str, tuple[str, Callable[[float], str], float]] = {
    "accuracy": ("Accuracy", _points, -1.0),
    "balanced_accuracy": ("Balanced accuracy", _points, -1.0),
    "r2": ("R^2", _number, -1.0),
    "neg_mean_squared_error": ("Mean squared error", _number, 1.0),
    "agreement": ("Agreement", _percent, -1.0),
}


@savable("quantization/1")
@dataclass(frozen=True)
class Quantization:
    """What a quantized model lost against the model that it was made of, its ``quantization_``.

    Attributes
    ----------
    bytes_before, bytes_after : int
        Bytes of vectors, coefficients and intercepts as a file of `svmarrow.save` holds them.
    largest_difference : float
        Of an output, over the samples it was measured on.
    relative_difference : float
        Root mean square of the difference of the outputs, each in units of its standard deviation on the
        samples, a constant one in units of its size.
    disagreement : float or None
        Fraction of the samples that get another label; None for a model without labels.
    score_before, score_after : float or None
        Accuracy, or R^2 of numbers averaged over the outputs; None without `y`.

    Examples
    --------
    >>> from svmarrow.models import Quantization
    >>> print(Quantization(6800, 1786, 0.02, 0.01, 0.002, 0.955, 0.954))
    1,786 bytes instead of 6,800; 0.20 % of the answers differ; the score is 0.9540 instead of 0.9550.
    """

    bytes_before: int
    bytes_after: int
    largest_difference: float
    relative_difference: float
    disagreement: float | None = None
    score_before: float | None = None
    score_after: float | None = None

    def __str__(self) -> str:
        text = f"{self.bytes_after:,} bytes instead of {self.bytes_before:,}"
        if self.disagreement is None:
            text += f"; the outputs differ by {_percent(self.relative_difference)} of their deviation"
        else:
            text += f"; {_percent(self.disagreement)} of the answers differ"
        if self.score_before is not None and self.score_after is not None:
            text += f"; the score is {_number(self.score_after)} instead of {_number(self.score_before)}"
        return text + "."
