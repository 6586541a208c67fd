"""The sizes of one construction, and the choice among them.

Made vectors go on moving as a run grows, so every size has vectors of its own, unlike the path of a
selection, whose sizes are the beginnings of one order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.score import without_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.classifier import ExpansionClassifier

__all__ = ["ConstructionPath"]


class ConstructionPath(CompressionPath):
    """Models of several sizes out of one run of ``svmarrow.compress(method="gradient")``.

    ``path[s]`` is the model with s vectors for each s of ``path.sizes``, ready to predict; ``len(path)`` is
    the largest size. Scores, choice and picture are those of `CompressionPath`.

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
    >>> from svmarrow import SVC, GradientSettings, compress
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> quick = GradientSettings(steps=500, sizes=(1, 2, 4))
    >>> path = compress(svc, max_vectors=8, method="gradient", X=X[:300], y=y[:300], settings=quick)
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

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, increasing."""
        return tuple(self._models)

    def __len__(self) -> int:
        return self.sizes[-1]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._models.values())

    def __repr__(self) -> str:
        return f"ConstructionPath(sizes {', '.join(map(str, self.sizes))}, of {self.model!r})"

    def __getitem__(self, size: int) -> Any:
        """Model with so many vectors.

        Parameters
        ----------
        size : int
            One of `sizes`.

        Returns
        -------
        ExpansionClassifier or KernelExpansion
            Of the kind that was compressed.

        Raises
        ------
        IndexError
            If there is no such size.
        """
        return self._models[self._check_size(size)]

    def nbytes(self, size: int) -> int:
        """Bytes of the arrays of a size.

        Parameters
        ----------
        size : int
            One of `sizes`.

        Returns
        -------
        int
            As ``path[size].expansion_.nbytes``.
        """
        return without_kind(self[size]).nbytes

    def _check_size(self, size: Any) -> int:
        if size not in self._models:
            listed = ", ".join(map(str, self.sizes))
            raise IndexError(f"size={size!r} is not on this path: it has the sizes {listed}")
        return int(size)

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        expansions = [getattr(self._models[size], "expansion_", self._models[size]) for size in sizes]
        return np.stack([expansion._evaluate(rows, self.n_jobs) for expansion in expansions])

    def _shifts_of(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        # The intercepts have moved with the vectors.
        return np.zeros((len(sizes), self.expansion.n_outputs))
