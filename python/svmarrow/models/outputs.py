"""From the outputs of a fitted model to its answers: decision values, classes, predictions, probabilities.

======== ======================== ===============================================
decoding outputs q                f > 0 means
======== ======================== ===============================================
binary   1                        the second class
ovo      k (k - 1) / 2, pairs a<b class a (LIBSVM's sign)
ovr      k                        class j
code     columns of a code        the classes of +1 in the column, not those of -1
======== ======================== ===============================================

The first three are decoded exactly as in scikit-learn's ``SVC``, the last by a named decoder, see
`svmarrow._support.decoding`. Functions of outputs come first, then `OutputSpec`, the meaning of the outputs
as exports and compiled models take it, then the mixins by which estimators and models predict, then
`Calibration`, the probabilities of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
from scipy.special import expit, softmax

from svmarrow import _core
from svmarrow._support.bases import ClassifierMixin, OutlierMixin, RegressorMixin
from svmarrow._support.parameters import Decoding, check_shape, consistent, refuse
from svmarrow._support.rows import threads
from svmarrow._support.schemas import savable
from svmarrow._support.training import pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.preparation import Step

__all__ = [
    "MAX_LOGIT",
    "MIN_LOGIT",
    "MIN_PROBABILITY",
    "TIE_LOGIT",
    "Calibration",
    "ClassifierOutputMixin",
    "OutlierOutputMixin",
    "OutputSpec",
    "RegressorOutputMixin",
    "UnavailableMethod",
    "class_indices",
    "code_class_indices",
    "code_decision_values",
    "code_scores",
    "coupled",
    "decision_margins",
    "decision_values",
    "log_probabilities",
    "pair_matrix",
    "sigmoid",
]


#: Minimum product of outputs and classes for which the number of cores is looked up.
_MIN_PARALLEL_OUTPUTS = 100_000


def decision_values(
    outputs: NDArray[np.float64], decoding: Decoding, n_classes: int, decision_function_shape: str
) -> NDArray[np.float64]:
    """Converts outputs (n, q) to decision values of shape (n,), (n, k) or (n, k (k - 1) / 2)."""
    if decoding == "binary":
        return outputs[:, 0]
    if decoding == "ovo" and decision_function_shape == "ovr":
        scores = _votes_and_confidence(outputs, n_classes)
        return scores[:, 1] if n_classes == 2 else scores
    return outputs


def class_indices(
    outputs: NDArray[np.float64],
    decoding: Decoding,
    n_classes: int,
    *,
    decision_function_shape: str = "ovr",
    break_ties: bool = False,
) -> NDArray[np.intp]:
    """Converts outputs (n, q) to the index of the predicted class (n,); the lower index wins a tie."""
    if decoding == "binary":
        return (outputs[:, 0] >= 0.0).astype(np.intp)
    if decoding == "ovr" or (break_ties and n_classes > 2):
        values = decision_values(outputs, decoding, n_classes, decision_function_shape)
        winners: NDArray[np.intp] = np.argmax(values, axis=1)
        return winners
    return code_class_indices(outputs, pair_matrix(n_classes), "votes")


def code_scores(
    outputs: NDArray[np.float64], matrix: NDArray[np.int8], decoder: str, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Converts outputs (n, F) of the machines of a code (k, F) to scores (n, k); the largest wins."""
    return _core.decode_scores(
        np.ascontiguousarray(outputs), matrix, decoder, _n_threads(outputs, matrix, n_jobs)
    )


def code_decision_values(
    outputs: NDArray[np.float64], matrix: NDArray[np.int8], decoder: str, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Converts outputs (n, F) to decision values of shape (n, k), for two classes (n,)."""
    if matrix.shape == (2, 1):
        return outputs[:, 0] * float(matrix[1, 0])
    scores = code_scores(outputs, matrix, decoder, n_jobs)
    return scores[:, 1] - scores[:, 0] if matrix.shape[0] == 2 else scores


def code_class_indices(
    outputs: NDArray[np.float64], matrix: NDArray[np.int8], decoder: str, n_jobs: int | None = None
) -> NDArray[np.intp]:
    """Converts outputs (n, F) to the index of the predicted class (n,); the lower index wins a tie."""
    n_threads = _n_threads(outputs, matrix, n_jobs)
    winners = _core.decode_winners(np.ascontiguousarray(outputs), matrix, decoder, n_threads)
    return winners.astype(np.intp, copy=False)


def _n_threads(outputs: NDArray[np.float64], matrix: NDArray[np.int8], n_jobs: int | None) -> int:
    return 1 if outputs.size * matrix.shape[0] < _MIN_PARALLEL_OUTPUTS else threads(n_jobs)


@lru_cache(maxsize=32)
def pair_matrix(n_classes: int) -> NDArray[np.int8]:
    """Returns the code of all pairs a < b: +1 for a, -1 for b."""
    first, second = np.triu_indices(n_classes, 1)
    matrix = np.zeros((n_classes, first.size), dtype=np.int8)
    matrix[first, np.arange(first.size)] = 1
    matrix[second, np.arange(first.size)] = -1
    return matrix


def decision_margins(
    outputs: NDArray[np.float64], decoding: Decoding, n_classes: int, winners: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Returns the margins (n,) by which the classes `winners` (n,) win over the runners-up.

    The absolute output for two classes, the difference of the two largest outputs for one-vs-rest, and for
    one-vs-one the smallest output of the winner's pairs, negative if it has lost one of them.
    """
    rows = np.arange(outputs.shape[0])
    if decoding == "binary":
        return np.abs(outputs[:, 0])
    if decoding == "ovr":
        others = outputs.copy()
        others[rows, winners] = -np.inf
        margins: NDArray[np.float64] = outputs[rows, winners] - others.max(axis=1)
        return margins
    margins = np.full(outputs.shape[0], np.inf)
    for output, (a, b) in enumerate(pairs(n_classes)):
        values = outputs[:, output]
        duel = np.where(winners == a, values, np.where(winners == b, -values, np.inf))
        np.minimum(margins, duel, out=margins)
    return margins


def _votes_and_confidence(outputs: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Returns votes plus the summed confidence scaled to (-1/3, 1/3), which only breaks ties."""
    return code_scores(outputs, pair_matrix(n_classes), "confidence")


def log_probabilities(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the logarithms of probabilities, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


class OutputSpec(NamedTuple):
    """An expansion and the meaning of its outputs.

    Attributes
    ----------
    expansion : KernelExpansion
        The outputs.
    kind : {"classes", "numbers", "inside", "outputs"}
        Labels; predictions; 1 inside and -1 outside; nothing is known.
    n_features : int
        Columns of a sample.
    preparation : Step or None
        What happens to a sample before the kernel sees it.
    flat : bool
        For numbers: whether one target is a number, not a row of them.
    classes : ndarray or None
        The labels, for classes.
    winner : str
        For classes, how the label is found: "sign" (the second class from 0 on), "largest" (output),
        "probabilities" (the largest, which `calibration` gives), or a decoder of `matrix`.
    scores : str
        For classes, what `decision_function` gives: "outputs", "flat" (the one output as a number), "column"
        (the same, with the sign of the code), a decoder, or "difference" or "second" and a decoder, for the
        scores of two classes as one number.
    matrix : ndarray of int8 of shape (n_classes, n_outputs) or None
        The code of the decoders.
    calibration : Calibration or None
        How outputs or scores become probabilities, where that is known.
    """

    expansion: KernelExpansion
    kind: Literal["classes", "numbers", "inside", "outputs"]
    n_features: int
    preparation: Step | None = None
    flat: bool = False
    classes: NDArray[Any] | None = None
    winner: str = ""
    scores: str = "outputs"
    matrix: NDArray[np.int8] | None = None
    calibration: Calibration | None = None

    @property
    def score_decoder(self) -> str | None:
        """The decoder of the scores; None where they are outputs."""
        name = self.scores.rpartition(" ")[2]
        return None if name in ("outputs", "flat", "column") else name

    @property
    def one_score(self) -> str:
        """The rule that makes one number of two scores: "difference" or "second"; else empty."""
        return self.scores.rpartition(" ")[0]

    @property
    def calibrates_outputs(self) -> bool:
        """True if the sigmoids take outputs of pairs of several classes, not scores."""
        of = self.calibration
        return of is not None and of.link == "pairs" and self.classes is not None and len(self.classes) > 2

    def scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n, k) of outputs (n, q); (n, 1) where `decision_function` has one number a sample."""
        if self.scores == "column":
            assert self.matrix is not None
            return outputs * float(self.matrix[1, 0])
        decoder = self.score_decoder
        if decoder is None:
            return outputs
        assert self.matrix is not None
        scores = code_scores(outputs, self.matrix, decoder, 1)
        if self.one_score == "difference":
            return scores[:, 1:] - scores[:, :1]
        return scores[:, 1:] if self.one_score else scores

    def _calibrated_values(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return outputs if self.calibrates_outputs else self.scores_of(outputs)

    def probabilities_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities (n, n_classes) of outputs (n, q), with a `calibration`."""
        assert self.calibration is not None
        assert self.classes is not None
        return self.calibration.probabilities(self._calibrated_values(outputs), len(self.classes))

    def winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """The index of the class that wins each row of outputs (n, q)."""
        assert self.classes is not None
        k = len(self.classes)
        if self.winner == "probabilities":
            assert self.calibration is not None
            return self.calibration.winners(self._calibrated_values(outputs), k)
        if self.winner in ("sign", "largest"):
            return class_indices(outputs, "binary" if self.winner == "sign" else "ovr", k)
        assert self.matrix is not None
        return code_class_indices(outputs, self.matrix, self.winner, 1)


# --- mixins that make labels or predictions of outputs (n, q), for estimators and models alike ---
# A class defines ``_outputs(X)`` and inherits the prediction methods. Labels follow from outputs by a
# decoding, see above; a class with another decoding overrides ``_scores_of`` and ``_winners_of``.


class UnavailableMethod:
    """A method that a class does not have; its AttributeError names the alternative, and `hasattr` is False.

    Parameters
    ----------
    remedy : str
        The end of the message; ``{kind}`` stands for the name of the class.
    """

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        kind = owner.__name__
        raise AttributeError(f"{kind} has no {self._name}: {self._remedy.format(kind=kind)}")


_CALIBRATION = (
    "use CalibratedClassifierCV({kind}(...), ensemble=False) of sklearn.calibration, or "
    "svmarrow.as_expansion(model).calibrated(X, y) with samples that training has not seen"
)


class ClassifierOutputMixin(ClassifierMixin):
    """Scores and labels from outputs; by default one output for two classes, else one for each class."""

    predict_proba: Any = UnavailableMethod(_CALIBRATION)
    predict_log_proba: Any = UnavailableMethod(_CALIBRATION)
    classes_: NDArray[Any]
    decision_function_shape: Literal["ovo", "ovr"] = "ovr"
    break_ties: bool = False

    if TYPE_CHECKING:

        def _outputs(self, X: Any) -> NDArray[np.float64]: ...

    @property
    def _decoding(self) -> Decoding:
        """The decoding that the fit has chosen, where there is a choice."""
        coding: Decoding | None = getattr(self, "_coding", None)
        return coding or ("binary" if self.classes_.size == 2 else "ovr")

    def _scores_of(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`decision_function` of outputs (n, q)."""
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        return decision_values(outputs, self._decoding, self.classes_.size, self.decision_function_shape)

    def _winners_of(self, outputs: NDArray[np.float64]) -> NDArray[np.intp]:
        """Index in `classes_` that wins each row of outputs (n, q)."""
        check_shape(self._decoding, self.decision_function_shape, self.break_ties)
        return class_indices(
            outputs,
            self._decoding,
            self.classes_.size,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )

    @consistent
    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
            Elements of `classes_`.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        winners = self._winners_of(self._outputs(X))
        labels: NDArray[Any] = self.classes_[winners]
        return labels

    @consistent
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), (n, n_classes) or (n, n_classes * (n_classes - 1) / 2)
            Two classes: one number a sample, positive for the second. Else one for each class, the larger the
            better, or with ``decision_function_shape="ovo"``, where there is such a parameter, one for each
            pair. Shapes and signs are scikit-learn's.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        return self._scores_of(self._outputs(X))


class RegressorOutputMixin(RegressorMixin):
    """Predictions that are the outputs themselves."""

    if TYPE_CHECKING:

        def _outputs(self, X: Any) -> NDArray[np.float64]: ...

    #: Whether the one target there is was a vector, not a column.
    _single: bool = True

    def _shaped(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`predict` of outputs (..., n, q)."""
        return outputs[..., 0] if self._single else outputs

    @consistent
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predictions.

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
        return self._shaped(self._outputs(X))


class OutlierOutputMixin(OutlierMixin):
    """One output, negative outside a region."""

    expansion_: KernelExpansion

    if TYPE_CHECKING:

        def _outputs(self, X: Any) -> NDArray[np.float64]: ...

    @property
    def offset_(self) -> NDArray[np.float64]:
        """`score_samples` minus `decision_function`, (1,)."""
        return -self.expansion_.intercepts

    @consistent
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Distances from the boundary in units of the feature space: negative outside.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        return self._outputs(X)[:, 0]

    @consistent
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """`decision_function` without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    @consistent
    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict if samples are inside the region (1) or not (-1).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 outside, where `decision_function` is negative; 1 inside and on the boundary.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)


# --- probabilities of classes: sigmoids, and how they become one distribution ---
# A sigmoid is fitted by the stable method of Lin, Lin and Weng (2007) with Platt's targets, on outputs for
# rows that the machine has not seen, with a slope that is not negative. Those of pairs of classes are coupled
# by the second method of Wu, Lin and Weng (2004): with r_ij the probability of i among i and j,
#
#     min over p, sum p = 1,  of  sum_{i, j != i} (r_ji p_i - r_ij p_j)^2  =  2 p' Q p,
#
# where Q_ii = sum_s r_si^2 and Q_ij = -r_ij r_ji. The optimum is p = x / sum x of (Q + 1 1') x = 1: a system
# that is positive definite even where the pairs agree and Q is singular, so that elimination needs no pivots.

#: Minimum probability of a class in a pair, as in LIBSVM.
MIN_PROBABILITY = _core.MIN_PAIR_PROBABILITY
#: Sigmoids of double precision are 0 below the first of these and 1 above the second.
MIN_LOGIT, MAX_LOGIT = -745.2, 36.7368005696771
#: Up to this logit a sigmoid of double precision is at most 1/2, and two classes tie.
TIE_LOGIT = 2.0**-52
#: Weight of B^2 / 2 for each sample. B moves the threshold of a pair away from that of `predict`, by an
#: amount that the outputs hardly determine: with the penalty the log loss is the same within a percent, and
#: the most probable class differs from `predict` for a fifth to nine tenths fewer samples.
OFFSET_PENALTY = 0.03
#: Maximum number of entries of the linear systems that are solved together: 32 MB.
MAX_SYSTEM_ENTRIES = 2**22


@savable("calibration/1")
@dataclass(frozen=True, eq=False)
class Calibration:
    """Sigmoids or a softmax that make probabilities of outputs.

    Parameters
    ----------
    link : {"classes", "pairs", "softmax"}
        ``"classes"``: a sigmoid for each class on its score, divided by their sum. ``"pairs"``: a sigmoid for
        each pair of classes on the output of its machine, coupled. ``"softmax"``: of the scores times the one
        slope. For two classes all are one sigmoid, of the second class.
    slopes, offsets : ndarray of shape (n_sigmoids,)
        The sigmoids are 1 / (1 + exp(-(slope f + offset))).

    Raises
    ------
    ValueError
        If `link` is unknown, or slopes and offsets are not equally many finite numbers.

    Examples
    --------
    >>> from svmarrow.models import Calibration
    >>> Calibration("classes", [2.0], [0.0]).probabilities([[0.0], [10.0]], 2).round(2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    link: Literal["classes", "pairs", "softmax"]
    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.link not in ("classes", "pairs", "softmax"):
            raise refuse("link", self.link, "'classes', 'pairs' or 'softmax'")
        for name in ("slopes", "offsets"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise refuse(name, getattr(self, name), "a vector of finite numbers")
            object.__setattr__(self, name, values)
        if self.slopes.shape != self.offsets.shape:
            raise ValueError(f"there are {self.slopes.size} slopes and {self.offsets.size} offsets")

    def check(self, n_classes: int) -> None:
        """Refuse a number of sigmoids that does not fit the number of classes."""
        n_slopes = {"classes": n_classes, "pairs": n_classes * (n_classes - 1) // 2, "softmax": 1}[self.link]
        n_slopes = 1 if n_classes == 2 else n_slopes
        if self.slopes.size != n_slopes:
            raise ValueError(
                f"calibration has {self.slopes.size} sigmoids: link={self.link!r} of {n_classes} classes "
                f"needs {n_slopes}"
            )

    def probabilities(self, values: Any, n_classes: int) -> NDArray[np.float64]:
        """Probabilities (n, n_classes).

        Parameters
        ----------
        values : array-like of shape (n_samples, n_sigmoids) or (n_samples, n_classes)
            What the link takes: outputs of pairs, positive for the first class, or scores; for two classes
            one column, positive for the second.
        n_classes : int
            Number of classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        z = np.asarray(values, dtype=np.float64) * self.slopes + self.offsets
        if self.link == "pairs":
            return coupled(expit(-z if n_classes == 2 else z), n_classes)
        if n_classes == 2:
            return np.column_stack([expit(-z[:, 0]), expit(z[:, 0])])
        if self.link == "softmax":
            return np.asarray(softmax(z, axis=1))
        p = expit(z)
        total = p.sum(axis=1, keepdims=True)
        # Where every sigmoid is 0 all classes are equally probable, as in scikit-learn.
        shares: NDArray[np.float64] = np.full_like(p, 1.0 / n_classes)
        np.divide(p, total, out=shares, where=total > 0.0)
        return shares

    def winners(self, values: Any, n_classes: int) -> NDArray[np.intp]:
        """The index of the most probable class (n,), the first of equals, as scikit-learn finds it.

        Parameters
        ----------
        values : array-like of shape (n_samples, n_sigmoids) or (n_samples, n_classes)
            See `probabilities`.
        n_classes : int
            Number of classes.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Indices of the classes.
        """
        probabilities = self.probabilities(values, n_classes)
        if n_classes == 2:
            # Rounded as 1 - p, the other class ties at 1/2.
            return (probabilities[:, 1] > 0.5).astype(np.intp)
        winners: NDArray[np.intp] = np.argmax(probabilities, axis=1)
        return winners

    @classmethod
    def fitted(
        cls,
        link: Literal["classes", "pairs"],
        values: NDArray[np.float64],
        labels: NDArray[np.intp],
        n_classes: int,
        weights: NDArray[np.float64],
    ) -> Calibration:
        """Fit sigmoids to values of samples with known classes.

        Parameters
        ----------
        link : {"classes", "pairs"}
            What to fit.
        values : ndarray of shape (n_samples, n_sigmoids)
            Values, see `probabilities`.
        labels : ndarray of int of shape (n_samples,)
            The number of each sample's class.
        n_classes : int
            Number of classes.
        weights : ndarray of shape (n_samples,)
            Weights of the samples.

        Returns
        -------
        Calibration
            Without a negative slope. A slope of 0 says that the values do not distinguish the classes.
        """
        found = []
        if n_classes == 2:
            found = [sigmoid(values[:, 0], labels == 1, weights)]
        elif link == "classes":
            found = [sigmoid(values[:, c], labels == c, weights) for c in range(n_classes)]
        else:
            for pair, (a, b) in enumerate(pairs(n_classes)):
                rows = np.flatnonzero((labels == a) | (labels == b))
                found.append(sigmoid(values[rows, pair], labels[rows] == a, weights[rows]))
        slopes, offsets = 0.0 - np.array(found).T
        return cls(link, slopes, offsets)


def sigmoid(
    outputs: NDArray[np.float64], first: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """A and B of p(first class) = 1 / (1 + exp(A f + B)), by Newton's method with backtracking.

    The objective is the log loss with Platt's targets and a weak penalty on B, and A is never positive: a
    larger output makes the first class no less probable. If the optimum has another sign, which outputs of
    cross-validation without a signal often give, A is 0 and B the best for it, since the loss is convex.
    """
    outputs, weights = (np.ascontiguousarray(values, dtype=np.float64) for values in (outputs, weights))
    first = np.ascontiguousarray(first, dtype=np.bool_)
    slope, offset = _core.fit_sigmoid(outputs, first, weights, OFFSET_PENALTY)
    if slope > 0.0:
        slope, offset = _core.fit_sigmoid(np.zeros_like(outputs), first, weights, OFFSET_PENALTY)
    return slope, offset


def coupled(pairwise: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Probabilities (n, k) from those of the first class of each pair, (n, pairs)."""
    pairwise = np.clip(pairwise, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    if k == 2:
        return np.column_stack([pairwise, 1.0 - pairwise])
    probabilities = np.empty((len(pairwise), k))
    step = max(1, MAX_SYSTEM_ENTRIES // (k + 1) ** 2)
    for start in range(0, len(pairwise), step):
        block = slice(start, start + step)
        probabilities[block] = _coupled(pairwise[block], k)
    return probabilities


def _coupled(pairwise: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    r = np.zeros((len(pairwise), k, k))
    a, b = np.array(pairs(k)).T
    r[:, a, b], r[:, b, a] = pairwise, 1.0 - pairwise
    system = 1.0 - r * r.transpose(0, 2, 1)
    every = np.arange(k)
    system[:, every, every] += (r**2).sum(axis=1)
    x = np.maximum(np.linalg.solve(system, np.ones((len(pairwise), k, 1)))[..., 0], 0.0)
    shares: NDArray[np.float64] = x / x.sum(axis=1, keepdims=True)
    return shares
