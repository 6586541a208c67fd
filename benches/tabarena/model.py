"""`Tabular*` as a model of AutoGluon, the form in which TabArena ranks models for tables.

    pip install autogluon.tabular svmarrow
    TabularPredictor("label").fit(frame, hyperparameters={SvmarrowTabularModel: {}})

TabArena fits each model to many draws of each table, inside AutoGluon, within a time limit and a number of
cores. `experiments` returns the default settings and a random search over what `Tabular*` lets a user choose,
as `tabarena` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from autogluon.common.features.types import R_BOOL, R_CATEGORY, R_DATETIME, R_FLOAT, R_INT
from autogluon.common.space import Categorical, Int
from autogluon.core.constants import BINARY, MULTICLASS, REGRESSION
from autogluon.core.models import AbstractModel

from svmarrow import TabularClassifier, TabularRegressor
from svmarrow.tabular._choice import MAX_CHOSEN, MAX_EXACT, N_VECTORS
from svmarrow.tabular._columns import MAX_CATEGORIES

if TYPE_CHECKING:
    import pandas as pd

#: Share of the time limit for the fit; the rest is for encoding and for the probabilities.
FIT_SHARE = 0.9
#: Bytes of the interpreter with its libraries.
BASE_BYTES = 400_000_000


class SvmarrowTabularModel(AbstractModel):
    """`svmarrow.TabularClassifier` or `svmarrow.TabularRegressor`, by the type of the problem.

    Categories and gaps stay as they are. The samples that AutoGluon holds out for early stopping are not
    used: leave-one-out errors of the training samples choose scales, kernel and penalty.

    Hyperparameters are those of the estimators: ``categories``, ``class_weight``, ``kernel``, ``n_samples``,
    ``random_state``.
    """

    ag_key = "SVMARROW"
    ag_name = "SvmarrowTabular"
    ag_priority = 60
    seed_name = "random_state"
    default_resources_physical_cores_only = True
    _supported_problem_types: ClassVar[list[str]] = [BINARY, MULTICLASS, REGRESSION]
    _default_auxiliary_params_extra: ClassVar[dict[str, Any]] = {
        "valid_raw_types": [R_BOOL, R_INT, R_FLOAT, R_CATEGORY, R_DATETIME],
    }

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        time_limit: float | None = None,
        num_cpus: int | str = "auto",
        sample_weight: Any = None,
        **_: Any,
    ) -> None:
        kind = TabularRegressor if self.problem_type == REGRESSION else TabularClassifier
        self.model = kind(
            **self._get_model_params(),
            n_jobs=None if num_cpus == "auto" else int(num_cpus),
            max_time=None if time_limit is None else max(FIT_SHARE * time_limit, 0.01),
        )
        self.model.fit(self.preprocess(X, y=y, is_train=True), y, sample_weight)

    def _more_tags(self) -> dict[str, Any]:
        return {"can_refit_full": True}

    def _get_default_searchspace(self) -> dict[str, Any]:
        return search_space()

    def _estimate_memory_usage(self, X: pd.DataFrame, **kwargs: Any) -> int:
        return self.estimate_memory_usage_static(
            X=X, problem_type=self.problem_type, num_classes=self.num_classes, **kwargs
        )

    @classmethod
    def _estimate_memory_usage_static(cls, *, X: pd.DataFrame, num_classes: int | None = 1, **_: Any) -> int:
        """Returns the bytes of a fit at its peak: kernel matrices and several copies of the samples."""
        n, d = X.shape
        d += MAX_CATEGORIES * sum(str(kind) == "category" for kind in X.dtypes)
        n_outputs = max(num_classes or 1, 1)
        # The matrix and its factor in single precision, and a copy that is factored.
        machine = 12 * n * n if n <= MAX_EXACT else 24 * N_VECTORS**2
        search = 32 * min(n, MAX_CHOSEN) ** 2
        samples = 8 * n * (6 * d + 4 * n_outputs)
        return int(BASE_BYTES + max(machine, search) + samples)


def search_space() -> dict[str, Any]:
    """Returns the settings of a random search: the kernel, and the samples of learned scales."""
    return {
        "kernel": Categorical("auto", "rbf", "matern52", "matern32", "matern12"),
        "n_samples": Int(300, 3000, default=1000),
    }


def experiments(n_random: int) -> list[Any]:
    """Returns TabArena's experiments: the default settings and `n_random` drawn ones; needs `tabarena`."""
    from tabarena.utils.config_utils import ConfigGenerator

    generator = ConfigGenerator(
        model_cls=SvmarrowTabularModel, search_space=search_space(), manual_configs=[{}]
    )
    return generator.generate_all_bag_experiments(num_random_configs=n_random)
