"""Training samples whose labels look wrong, by the models without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.parameters import check, integer
from svmarrow.least_squares._leave_one_out import class_margins
from svmarrow.least_squares.exact import RLSClassifier, RLSRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SuspiciousSamples", "suspicious_samples"]


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
