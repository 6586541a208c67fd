"""Models of several sizes made by construction, and the choice among them.

Every size has vectors of its own; the sizes of a selection are the beginnings of one order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.reduced_set.score import unwrap_expansion
from svmarrow.reduced_set.sizes import ReducedPath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.classifier import ExpansionClassifier

__all__ = ["GradientPath"]


class GradientPath(ReducedPath):
    """Models of several sizes, each made by itself, of ``svmarrow.compression_path(method="gradient")``.

    ``path[s]`` is the model with s vectors for each s of ``path.sizes``, ready to predict; ``len(path)`` is
    the number of sizes. Scores, choice and picture are those of `CompressionPath`; `order` and
    `residual_norms` are None, because the vectors are no choice of the model's own.

    Attributes
    ----------
    model : ExpansionClassifier or KernelExpansion
        The model that was compressed.
    sizes : tuple of int
        The sizes, increasing.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, compression_path
    >>> from svmarrow.reduced_set import GradientSettings
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> quick = GradientSettings(steps=500, sizes=(1, 2, 4))
    >>> options = {"method": "gradient", "settings": quick, "random_state": 0}
    >>> path = compression_path(svc, X[:300], y[:300], n_vectors=8, **options)
    >>> path.sizes
    (1, 2, 4, 8)
    >>> path.select(X[300:], y[300:], max_loss=0.02).expansion_.n_vectors <= 8
    True
    """

    def __init__(
        self,
        model: ExpansionClassifier | KernelExpansion,
        models: Mapping[int, Any],
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.n_jobs = n_jobs
        self._models = dict(models)

    def _after_load(self) -> None:
        found = {size: unwrap_expansion(model) for size, model in self._models.items()}
        if not found or list(found) != sorted(found):
            raise ValueError("the sizes do not increase")
        if any((f.n_vectors, f.n_outputs) != (size, self.expansion.n_outputs) for size, f in found.items()):
            raise ValueError("the models are not of the sizes and outputs of the path")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, increasing."""
        return tuple(self._models)

    def __repr__(self) -> str:
        return f"GradientPath(sizes {self._listed_sizes()}, of {self.model!r})"

    def _model(self, size: int) -> Any:
        return self._models[size]

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        expansions = [unwrap_expansion(self._models[size]) for size in sizes]
        return np.stack([expansion._evaluate(rows, self.n_jobs) for expansion in expansions])
