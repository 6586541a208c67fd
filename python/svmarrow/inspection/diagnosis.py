"""What one fit shows about its samples and parameters: doubtful labels, and gamma and C that are far off.

`suspicious_samples` finds labels by the models without their samples. Cost: that of the leave-one-out models.

`diagnose` tells in words what a fit of a support vector machine shows about gamma and C. Rifkin (2002,
section 2.6.1): if the kernel is far too narrow, nearly every sample is an unbounded support vector; if it
is far too wide, the training error is terrible, and if C is far too small, no vector is unbounded. Each
rule here is one of these sentences with a limit. The limits were set so that a rule is right on nearly
every fit of a sweep over gamma and C that it speaks about (`benches/inspection/diagnosis.py`). Cost: none
beside the fit; with samples, a prediction of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.parameters import UNIT_DIAGONAL_KERNELS, check, integer, refuse
from svmarrow.least_squares.estimators import RLSClassifier, RLSRegressor
from svmarrow.least_squares.targets import class_margins

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Diagnosis", "SuspiciousSamples", "diagnose", "suspicious_samples"]


# --- training samples whose labels look wrong ---


@dataclass(frozen=True, eq=False)
class SuspiciousSamples:
    """Result of `suspicious_samples`."""

    #: Numbers of training samples, the most suspicious first.
    indices: NDArray[np.intp]
    #: For classifiers the leave-one-out margin of each of these samples: how far its label is ahead of the
    #: best other class, negative where the model without the sample decides for another. For regressors the
    #: leave-one-out residual divided by its standard deviation, the largest over outputs.
    scores: NDArray[np.float64]
    #: What the model without the row predicts for it.
    predictions: NDArray[Any]

    def __len__(self) -> int:
        return len(self.indices)


def suspicious_samples(model: Any, n_samples: int | None = None) -> SuspiciousSamples:
    """Find the training samples whose labels or targets the model without them contradicts most.

    The leave-one-out outputs are exact and follow from one factorization, so a sample cannot vote for its own
    label, as it does in the outputs of the model that was fitted to it.

    Parameters
    ----------
    model : RLSClassifier or RLSRegressor
        Fitted; not with the precomputed kernel, whose training matrix is not kept.
    n_samples : int or None, default=None
        Number of samples to return. None: for classifiers all samples whose margin is negative; for
        regressors all whose residual is larger than three standard deviations.

    Returns
    -------
    SuspiciousSamples
        `indices` (m,), `scores` (m,), `predictions` (m,) or (m, n_outputs); samples of weight 0 are left out.

    Raises
    ------
    TypeError
        For a model of another kind.
    ValueError
        If n_samples is negative, for the precomputed kernel, and for a system that is not positive definite.
    MemoryError
        If the n^2 numbers of the inverse do not fit in the free memory.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import RLSClassifier
    >>> from svmarrow.inspection import suspicious_samples
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 77]] = [2, 0]
    >>> found = suspicious_samples(RLSClassifier(0.1).fit(X, y), n_samples=2)
    >>> sorted(found.indices.tolist())
    [3, 77]
    >>> sorted(found.predictions.tolist())
    [0, 1]
    """
    if not isinstance(model, (RLSClassifier, RLSRegressor)):
        raise TypeError(
            f"model is a {type(model).__name__}: exact leave-one-out outputs exist for RLSClassifier and "
            "RLSRegressor"
        )
    if n_samples is not None:
        check({"n_samples": n_samples}, {"n_samples": integer(least=0)})

    check_is_fitted(model)
    models = model._leave_one_out_models()
    outputs = models.targets - models.residuals
    if isinstance(model, RLSClassifier):
        labels = model._winners_of(models.targets)
        scores = class_margins(outputs, model.classes_.size)[np.arange(labels.size), labels]
        predictions = model.classes_[model._winners_of(outputs)]
        doubt, limit = -scores, 0.0
    else:
        # c has the covariance s^2 P, so that c_i / sqrt(P_ii) are alike for all samples.
        scaled = models.residuals * np.sqrt(models.inverse_diagonal)[:, np.newaxis]
        spread = np.sqrt(np.mean(scaled**2, axis=0))
        scores = np.abs(scaled / np.where(spread > 0.0, spread, 1.0)).max(axis=1)
        predictions = model._shaped(outputs)
        doubt, limit = scores, 3.0
    order = np.argsort(-doubt, kind="stable")
    chosen = order[: int((doubt > limit).sum())] if n_samples is None else order[:n_samples]
    indices = chosen if models.used is None else models.used[chosen]
    return SuspiciousSamples(indices, scores[chosen], predictions[chosen])


# --- gamma and C ---

#: Share of the samples that are vectors from which a kernel may be too narrow.
NARROW_SHARE = 0.9
#: Share of the vectors below C from which such a kernel is too narrow.
NARROW_UNBOUNDED = 0.5
#: Vectors below C, as a share of all and as a number for each machine, up to which C or gamma is too small.
#: The share alone falls with the number of samples where classes overlap.
MIN_UNBOUNDED, MIN_UNBOUNDED_COUNT = 0.02, 10.0
#: C from which gamma, not C, is the one to enlarge.
LARGE_C = 10.0
#: Training error, as a share of that of the most frequent class, from which nothing has been learned.
MAX_ERROR_SHARE = 0.7


@dataclass(frozen=True)
class Diagnosis:
    """Result of `diagnose`: the shares that it looks at, and what they show.

    As a string it is a line for each share and one for the finding.
    """

    #: Support vectors of a binary machine as a share of its samples, the mean over the machines.
    vectors: float
    #: Share of the support vectors whose coefficient is below C.
    unbounded: float
    #: Upper bound of the leave-one-out error of a binary machine (xi-alpha), the mean over the machines.
    leave_one_out: float
    #: Share of the given samples with another label; None without samples.
    training_error: float | None
    #: A sentence that says what is far off and what to try; empty where nothing is.
    finding: str

    def __str__(self) -> str:
        lines = [
            f"support vectors        {100.0 * self.vectors:.1f} % of the samples",
            f"below C                {100.0 * self.unbounded:.1f} % of the support vectors",
            f"leave-one-out error    at most {100.0 * self.leave_one_out:.1f} % of the samples of a machine",
        ]
        if self.training_error is not None:
            lines.append(f"training error         {100.0 * self.training_error:.1f} %")
        nothing = "Nothing shows that gamma or C is far off. SVCCV finds the best of both."
        return "\n".join([*lines, self.finding or nothing])


def diagnose(model: Any, X: Any = None, y: ArrayLike | None = None) -> Diagnosis:
    """Tell from one fit whether gamma or C is far off.

    This needs no validation samples and no second fit. It finds parameters that are off by orders of
    magnitude, not the best ones.

    Parameters
    ----------
    model : SVC or SVCCV
        A fitted classifier with a certificate whose coefficients are bounded by C.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        The training samples, for the training error.
    y : array-like of shape (n_samples,), default=None
        Their labels.

    Returns
    -------
    Diagnosis
        The shares, and a sentence if gamma or C is far off.

    Raises
    ------
    TypeError
        For another model.
    ValueError
        If one of X and y is given without the other, or they do not fit the model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    References
    ----------
    R. Rifkin, *Everything old is new again*, PhD thesis, MIT, 2002, section 2.6.1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC
    >>> from svmarrow.inspection import diagnose
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> print(diagnose(SVC(gamma=10.0).fit(X, y)))
    support vectors        100.0 % of the samples
    below C                62.7 % of the support vectors
    leave-one-out error    at most 100.0 % of the samples of a machine
    gamma=10 is too large: nearly every sample is a support vector, most below C. Try gamma=0.1.
    >>> diagnose(SVC().fit(X, y), X, y).finding
    ''
    """
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: give both or neither")
    machines = getattr(getattr(model, "certificate_", None), "machines", ())
    if not machines:
        check_is_fitted(model)
    if not machines or any(machine.leave_one_out is None for machine in machines):
        raise TypeError(
            f"a {type(model).__name__} has no coefficients that C bounds: diagnose takes SVC and SVCCV"
        )
    counts = np.array([(of.leave_one_out.positive, of.leave_one_out.negative) for of in machines])
    support = np.array([machine.support for machine in machines])
    bounded = np.array([machine.bounded for machine in machines])
    wrong = np.array([of.leave_one_out.missed + of.leave_one_out.false_alarms for of in machines])
    vectors = float(np.mean(support / counts.sum(axis=1)))
    unbounded = float((support - bounded).sum() / max(1, support.sum()))
    error = least_error = None
    if y is not None:
        labels = np.asarray(y)
        predicted = model.predict(X)
        if labels.shape != predicted.shape:
            raise refuse("y", labels.shape, f"one label for each of {len(predicted)} samples")
        error = float(np.mean(predicted != labels))
        least_error = 1.0 - float(np.unique(labels, return_counts=True)[1].max()) / len(labels)
    return Diagnosis(
        vectors,
        unbounded,
        float(np.mean(wrong / counts.sum(axis=1))),
        error,
        _finding(model, vectors, unbounded, float(np.mean(support - bounded)), error, least_error),
    )


def _finding(
    model: Any,
    vectors: float,
    unbounded: float,
    count: float,
    error: float | None,
    least_error: float | None,
) -> str:
    """The sentence; `count` are vectors below C of a machine, `least_error` is that of the largest class."""
    expansion = model.expansion_
    C = float(getattr(model, "best_params_", {}).get("C", getattr(model, "C", 1.0)))
    gamma = float(expansion.gamma)
    has_width = expansion.kernel in UNIT_DIAGONAL_KERNELS
    if has_width and vectors >= NARROW_SHARE and unbounded >= NARROW_UNBOUNDED:
        return (
            f"gamma={gamma:.3g} is too large: nearly every sample is a support vector, most below C. Try "
            f"gamma={gamma / 100:.3g}."
        )
    # Other kernels have few degrees of freedom, and no more vectors below C than these.
    is_rigid = unbounded <= MIN_UNBOUNDED and count <= MIN_UNBOUNDED_COUNT if has_width else count == 0.0
    if is_rigid and has_width and C >= LARGE_C:
        return (
            f"gamma={gamma:.3g} is too small for C={C:.3g}: nearly all support vectors are at C. Try "
            f"gamma={10 * gamma:.3g}."
        )
    if is_rigid:
        other = f", or gamma={10 * gamma:.3g}" if has_width else ""
        return f"C={C:.3g} is too small: nearly all support vectors are at C. Try C={100 * C:.3g}{other}."
    if error is not None and least_error is not None and error >= MAX_ERROR_SHARE * least_error > 0.0:
        return (
            f"C={C:.3g} is too small: the training error is close to that of the most frequent class, "
            f"{100.0 * least_error:.1f} %. Try C={100 * C:.3g}."
        )
    return ""
