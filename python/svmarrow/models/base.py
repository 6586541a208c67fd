"""What models made of a finished expansion share: classifiers, regressors, outlier detectors.

They hold nothing that was learnt besides the expansion, so they have nothing to fit: they are made ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.estimator import Documented
from svmarrow._support.parameters import THREADS, Rule, boolean, either, integer, none, refuse
from svmarrow._support.rows import validated
from svmarrow._support.saving import Savable
from svmarrow.models.decoded import WithOutputs
from svmarrow.models.preparation import Step

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.loss_bound import LossBound

__all__ = ["ExpansionModel", "KernelModel"]


def _are_names(value: Any) -> bool:
    names = np.asarray(value, dtype=object)
    return names.ndim == 1 and all(isinstance(name, str) for name in names)


def in_order(X: Any, names: ArrayLike | None) -> Any:
    """The columns of a data frame that a model knows, in its order; anything else as it is.

    Raises
    ------
    ValueError
        If one is missing, or two have its name.
    """
    if names is None or not hasattr(X, "columns"):
        return X
    there, wanted = list(X.columns), list(np.asarray(names, dtype=object))
    if there == wanted:
        return X
    missing = [name for name in wanted if there.count(name) != 1]
    if missing:
        raise ValueError(
            f"X does not have the feature names of the model: {', '.join(map(repr, missing[:5]))} "
            f"{'is' if len(missing) == 1 else 'are'} not there, or not once"
        )
    return X[wanted]


class ExpansionModel(WithOutputs, Documented, Savable, BaseEstimator):
    """Columns, outputs, saving and scikit-learn's contract around an expansion."""

    expansion: KernelExpansion
    feature_names: ArrayLike | None
    n_features: int | None
    preparation: Step | None
    weighted: bool | None
    n_jobs: int | None
    #: What is known of its loss against the model that it is a compression of, where it is one.
    loss_bound_: LossBound | None = None
    _rules: ClassVar[Mapping[str, Rule]] = {
        "feature_names": either(none, Rule("a list of strings", _are_names)),
        "n_features": either(none, integer(least=0)),
        "preparation": either(none, Rule("a step", lambda v: isinstance(v, Step))),
        "weighted": either(none, boolean),
        "n_jobs": THREADS,
    }
    #: Parameters that another expansion in the same place keeps.
    _kept: ClassVar[tuple[str, ...]] = ("feature_names", "n_features", "preparation", "weighted", "n_jobs")
    #: What to fit instead.
    _instead: ClassVar[str] = "the estimator that it came from, and compress that"

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
        """Number of columns at prediction."""
        if self.n_features is not None:
            return self.n_features
        if self.preparation is not None:
            return self.preparation.n_in
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

    def with_weighted(self, weighted: bool | None) -> Self:
        """The same model, of which it is known whether it was trained with weights."""
        kept = {name: getattr(self, name) for name in self._kept}
        other = type(self)(self.expansion, **{**kept, "weighted": weighted})
        if self.loss_bound_ is not None:
            other.loss_bound_ = self.loss_bound_
        return other

    def with_preparation(
        self, preparation: Step | None, *, feature_names: ArrayLike | None, n_features: int | None
    ) -> Self:
        """The same model behind another preparation, with other columns."""
        kept = {name: getattr(self, name) for name in self._kept}
        columns = {"feature_names": feature_names, "n_features": n_features}
        return type(self)(self.expansion, **{**kept, **columns, "preparation": preparation})

    def outputs(self, X: ArrayLike) -> NDArray[np.float64]:
        """Outputs of the expansion, (n, q)."""
        return self.expansion._evaluate(self.validated(X), self.n_jobs)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        return self.outputs(X)

    def validated(self, X: ArrayLike) -> Any:
        """Rows as the extension module takes them; a ValueError if they do not fit the model.

        The columns of a data frame are put in order by their names, and the preparation is done.
        """
        X = in_order(X, self.feature_names)
        if self.preparation is not None:
            return self.preparation.rows(X)
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


KernelModel: TypeAlias = "ExpansionModel | KernelExpansion"
"""What a compression takes and gives: an expansion with a meaning, or a bare one."""
