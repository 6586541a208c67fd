"""Base class of the models made of a kernel expansion: classifiers, regressors, outlier detectors.

All that they have learned is the expansion, so there is nothing to fit.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from svmarrow._support.estimator import Estimator
from svmarrow._support.parameters import THREADS, Rule, boolean, check, either, integer, none, refuse
from svmarrow._support.rows import validated
from svmarrow.models import compiled as compilation
from svmarrow.models.preparation import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.compiled import CompiledModel
    from svmarrow.models.outputs import OutputSpec
    from svmarrow.models.records import Distillation, LossBound, Quantization

__all__ = ["ExpansionModel", "KernelModel"]


def _are_names(value: Any) -> bool:
    names = np.asarray(value, dtype=object)
    return names.ndim == 1 and all(isinstance(name, str) for name in names)


def reorder_columns(X: Any, names: ArrayLike | None) -> Any:
    """The columns of a data frame in the order of the model; anything else as it is.

    Raises
    ------
    ValueError
        If one is missing, or two have its name.
    """
    if names is None or not hasattr(X, "columns"):
        return X
    columns, order = list(X.columns), list(np.asarray(names, dtype=object))
    if columns == order:
        return X
    missing = [name for name in order if columns.count(name) != 1]
    if missing:
        raise ValueError(
            f"X does not have the feature names of the model: {', '.join(map(repr, missing[:5]))} "
            f"{'is' if len(missing) == 1 else 'are'} missing or there more than once"
        )
    return X[order]


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
        vars(self).clear()
        vars(self).update(vars(changed))
        return self

    def outputs(self, X: ArrayLike) -> NDArray[np.float64]:
        """Outputs of the expansion, (n, q)."""
        return self.expansion._evaluate(self.validated(X), self.n_jobs)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        return self.outputs(X)

    def _output_spec(self) -> OutputSpec:
        """The expansion with the meaning of its outputs."""
        raise NotImplementedError

    compiled: ClassVar[Callable[..., CompiledModel]] = compilation.compiled

    def validated(self, X: ArrayLike) -> Any:
        """Samples as the extension module takes them; a ValueError if they do not fit the model.

        The columns of a data frame are put in order by their names, and the preparation is applied.
        """
        X = reorder_columns(X, self.feature_names)
        if self.preparation is not None:
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
