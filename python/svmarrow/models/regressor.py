"""A kernel expansion as a regressor: the result of compressing or converting a regression machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from svmarrow._support.parameters import Rule, boolean
from svmarrow.models.base import ExpansionModel
from svmarrow.models.outputs import OutlierOutputMixin, OutputSpec, RegressorOutputMixin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.preparation import Step


__all__ = [
    "ExpansionDetector",
    "ExpansionRegressor",
]


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
    >>> from svmarrow.models.regressor import ExpansionRegressor
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


# --- A kernel expansion as an outlier detector: the result of compressing a one-class machine ---


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
