"""Base class of the cascades: a small model answers where that is safe, the full model elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.bases import ClassifierMixin
from svmarrow._support.parameters import consistent
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.outputs import UnavailableMethod
from svmarrow.reduced_set.estimator import ModelWrapper

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Cascade", "CascadeReport"]


@dataclass(frozen=True)
class CascadeReport:
    """The number of samples that each stage of a cascade answers.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    sizes : tuple of int
        Vectors that have been used when a stage answers, stage after stage; the last is the full model after
        all stages.
    answered : tuple of int
        Samples that each stage answered, the full model last.
    full_size : int
        Vectors of the full model.
    share_small : float
        Fraction of the samples that did not need the full model; 1 for no samples.
    mean_kernel_values : float
        Kernel values a sample, on average; the full model alone needs `full_size`.
    """

    n_samples: int
    sizes: tuple[int, ...]
    answered: tuple[int, ...]
    full_size: int

    @property
    def share_small(self) -> float:
        """Fraction of the samples that did not need the full model."""
        return 1.0 - self.answered[-1] / self.n_samples if self.n_samples else 1.0

    @property
    def mean_kernel_values(self) -> float:
        """Kernel values a sample."""
        total = sum(size * count for size, count in zip(self.sizes, self.answered, strict=True))
        return total / self.n_samples if self.n_samples else 0.0

    def __str__(self) -> str:
        share = f"{100 * self.share_small:.1f} % of {self.n_samples:,} samples answered small"
        return f"{share}, {self.mean_kernel_values:,.0f} of {self.full_size:,} kernel values a sample"


_PROBABILITIES = (
    "its stages agree on labels, and are not calibrated on the samples that each of them answers; use the "
    "full model, cascade.model_.calibrated(X, y), or a small one, compress(model, ...).calibrated(X, y)"
)


class Cascade(ClassifierMixin, ModelWrapper):
    """Base class of the cascades: a full model, `predict` by stages, and the report."""

    predict_proba: Any = UnavailableMethod(_PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(_PROBABILITIES)
    n_jobs: int | None
    model_: ExpansionClassifier
    _kinds = (ExpansionClassifier,)
    _kind_text = "a classifier"

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, (n_classes,)."""
        check_is_fitted(self, "model_")
        return self.model_.classes_

    def _answers(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Class indices (n,), -1 where the full model has to answer, and the stages (n,) that answered."""
        raise NotImplementedError

    def _sizes(self) -> list[int]:
        """Kernel values of a sample that ends at each stage, the full model last."""
        raise NotImplementedError

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
        check_is_fitted(self, "model_")
        rows = self.model_.validated(X)
        classes, _ = self._answers(rows)
        rest = np.flatnonzero(classes < 0)
        if rest.size:
            left = rows if rest.size == rows.shape[0] else rows[rest]
            outputs = self.model_.expansion_._evaluate(left, self.n_jobs)
            classes[rest] = self.model_.decode(outputs)
        labels: NDArray[Any] = self.classes_[classes]
        return labels

    @consistent
    def route(self, X: ArrayLike) -> NDArray[np.int64]:
        """The stage that answers each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples.

        Returns
        -------
        ndarray of int64 of shape (n_samples,)
            0 for the first stage; the number of stages for the full model.
        """
        check_is_fitted(self, "model_")
        return self._answers(self.model_.validated(X))[1]

    @consistent
    def report(self, X: ArrayLike) -> CascadeReport:
        """The number of samples that each stage answers, and the cost.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples.

        Returns
        -------
        CascadeReport
            Share answered small and mean number of kernel values.
        """
        stages = self.route(X)
        sizes = self._sizes()
        return CascadeReport(
            n_samples=len(stages),
            sizes=tuple(sizes),
            answered=tuple(np.bincount(stages, minlength=len(sizes)).tolist()),
            full_size=self.model_.expansion_.n_vectors,
        )
