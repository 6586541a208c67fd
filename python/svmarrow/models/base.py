"""What models made of a finished expansion share: classifiers, regressors, outlier detectors.

They hold nothing that was learnt besides the expansion, so they have nothing to fit: they are made ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from svmarrow._support.estimator import Documented
from svmarrow._support.parameters import THREADS, Rule, either, integer, none, refuse
from svmarrow._support.rows import validated
from svmarrow._support.saving import Savable
from svmarrow.models.decoded import WithOutputs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["ExpansionModel"]


def _are_names(value: Any) -> bool:
    names = np.asarray(value, dtype=object)
    return names.ndim == 1 and all(isinstance(name, str) for name in names)


class ExpansionModel(WithOutputs, Documented, Savable, BaseEstimator):
    """Columns, outputs, saving and scikit-learn's contract around an expansion."""

    expansion: KernelExpansion
    feature_names: ArrayLike | None
    n_features: int | None
    n_jobs: int | None
    _rules: ClassVar[Mapping[str, Rule]] = {
        "feature_names": either(none, Rule("a list of strings", _are_names)),
        "n_features": either(none, integer(least=0)),
        "n_jobs": THREADS,
    }
    #: Parameters that another expansion in the same place keeps.
    _kept: ClassVar[tuple[str, ...]] = ("feature_names", "n_features", "n_jobs")
    #: What to fit instead.
    _instead: ClassVar[str] = "the estimator that it came from, and compress that"

    def _check_columns(self) -> None:
        if self.n_features is not None and self.expansion.kernel != "precomputed":
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
        """Number of columns at prediction."""
        if self.n_features is not None:
            return self.n_features
        if self.expansion.kernel == "precomputed":
            return int(self.expansion.vectors.max(initial=-1)) + 1
        return int(self.expansion.vectors.shape[1])

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names at prediction, an AttributeError where they are not known."""
        if self.feature_names is None:
            raise AttributeError("this model was made from data without column names")
        return np.asarray(self.feature_names, dtype=object)

    def with_expansion(self, expansion: KernelExpansion) -> Self:
        """The same model on top of another expansion."""
        return type(self)(expansion, **{name: getattr(self, name) for name in self._kept})

    def outputs(self, X: ArrayLike) -> NDArray[np.float64]:
        """Outputs of the expansion, (n, q)."""
        return self.expansion._evaluate(self.validated(X), self.n_jobs)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        return self.outputs(X)

    def validated(self, X: ArrayLike) -> Any:
        """Rows as the extension module takes them; a ValueError if they do not fit the model."""
        return validated(self, X, reset=False, precomputed=self.expansion.kernel == "precomputed")

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
            "this model is made of a finished expansion and cannot be fitted again: fit " + self._instead
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.expansion.kernel == "precomputed"
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{type(self).__name__}({self.expansion!r})"
