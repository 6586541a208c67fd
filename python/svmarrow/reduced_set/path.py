"""The sizes of a compression: the prefixes of one order, or models that were constructed separately.

The pursuit picks vectors one after the other; after s picks the best approximation of the model by those s
vectors has coefficients L_s^-T P_s, where L_s is the leading block of one Cholesky factor and P_s the leading
rows of one matrix of projections. So a path is one factor, and the outputs of *all* sizes on a row come from
one forward substitution: size s adds one term to size s - 1. Scoring a path costs what its last size does.

Memory is bounded: the thresholds of the sizes are chosen a group of sizes at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.memory import new_threads
from svmarrow._support.rows import core_rows, threads
from svmarrow._support.saving import savable
from svmarrow.reduced_set import threshold
from svmarrow.reduced_set.score import wrap_like
from svmarrow.reduced_set.sizes import ReducedPath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import ExpansionModel
    from svmarrow.models.classifier import ExpansionClassifier

__all__ = ["CompressionPath", "GradientPath"]

TUNING_BYTES = 256 << 20
"""Maximum bytes of the outputs that are held at once while thresholds are tuned."""


@savable
@dataclass(frozen=True, eq=False)
class PathNumbers:
    """A triangle and projections, or the changes of basic steps with the vectors and sizes they belong to."""

    triangle: NDArray[np.float64] | None
    projections: NDArray[np.float64]
    steps: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    def coefficients(self, size: int) -> NDArray[np.float64]:
        """The coefficients (size, q) of a size."""
        return _core.path_coefficients((self.triangle, self.projections, self.steps), size)

    def outputs(
        self, expansion: KernelExpansion, kept: Any, rows: Any, sizes: Sequence[int], jobs: int
    ) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes; `kept` are the vectors of the last."""
        largest = sizes[-1]
        steps, used, triangle = None, largest, self.triangle
        if self.steps is not None:
            used = int(self.steps[1][largest - 1])
            steps = self.steps[0][:used], self.steps[1][:largest]
        return _core.path_decisions(
            (
                None if triangle is None else np.ascontiguousarray(triangle[:largest, :largest]),
                np.ascontiguousarray(self.projections[:used]),
                steps,
            ),
            (core_rows(kept), expansion.intercepts, expansion.kernel_spec),
            core_rows(rows),
            np.array(sizes, dtype=np.int64),
            jobs,
        )


@savable
class CompressionPath(ReducedPath):
    """Compressed models of every size, from one vector up, out of one run of `svmarrow.compression_path`.

    `svmarrow.papers.reduced_set.path` returns them too. ``path[s]`` is the model with s vectors, ready to
    predict; ``len(path)`` is the largest size.

    Attributes
    ----------
    model : ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        The model that was compressed.
    vectors : ndarray or sparse array of shape (len(path), n_features)
        The chosen vectors, in the order of the choice.
    order : ndarray of int of shape (len(path),)
        Which candidates they are.
    residual_norms : ndarray of shape (len(path) + 1,)
        Distance in feature space between the model and its approximation with s vectors, for s = 0, 1, ...;
        all outputs together, those of a regressor scaled to the standard deviation of the largest; for
        predictions the root mean square difference of the outputs on the samples.
    exact : bool
        False where `residual_norms` are upper bounds: for models of over 65,536 vectors reduced in chunks.
    penalties : ndarray of shape (len(path),) or None
        For ``"l1"`` and ``"lars"`` of `svmarrow.papers.reduced_set.path`: the lambda at which each vector
        enters; where several outputs choose together to one part in ten. None for all other methods.
    orthogonal : bool
        Whether sizes are orthogonal projections in feature space: not for the criterion ``"predictions"``,
        and of `svmarrow.papers.reduced_set.path` neither for ``"basic"`` nor for ``refit=False``.
    stop : str
        ``"converged"`` (size, tolerance, nothing to gain), ``"max_time"``, ``"interrupted"``, ``"max_iter"``
        or ``"stalled"`` (a penalized path that is not exact to its end).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, compression_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC().fit(X[:300], y[:300])
    >>> path = compression_path(svc, X[:300], y[:300], n_vectors=40)
    >>> small = path.select(X[300:], y[300:], max_loss=0.05)
    >>> small.expansion_.n_vectors < svc.expansion_.n_vectors
    True
    """

    _transient = ("_tuning",)
    exact: bool = True
    penalties: NDArray[np.float64] | None = None
    model: ExpansionModel | KernelExpansion
    orthogonal: bool

    def __init__(
        self,
        model: ExpansionModel | KernelExpansion,
        vectors: Any,
        pursuit: Mapping[str, Any],
        tuning: tuple[Any, NDArray[Any], NDArray[np.float64] | None] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.vectors = vectors
        self.order: NDArray[np.int64] = pursuit["order"]
        self.residual_norms: NDArray[np.float64] = pursuit["residual_norms"]
        self.stop: str = pursuit["stop"]
        self.n_jobs = n_jobs
        self.penalties = pursuit["penalties"]
        self.exact = pursuit["exact"]
        self.orthogonal = pursuit["orthogonal"]
        self._numbers = PathNumbers(pursuit["factor"], pursuit["projections"], pursuit["steps"])
        self._factor = self._numbers.triangle if self.orthogonal else None  # of the kernel matrix
        self._projections = self._numbers.projections
        self._tuning = tuning
        self._shifts: dict[int, NDArray[np.float64]] = {}

    def _stored(self) -> dict[str, Any]:
        # Thresholds of all sizes are chosen now: the rows that choose them are no part of a model.
        self._shifts_of(self.sizes)
        self._shifts = {size: self._shifts[size] for size in sorted(self._shifts)}
        return vars(self)

    def _after_load(self) -> None:
        self._tuning = None
        m, q, columns = (
            len(self.order),
            self.model.expansion_.n_outputs,
            self.model.expansion_.vectors.shape[1],
        )
        if self.vectors.shape != (m, columns) or self.residual_norms.shape != (m + 1,):
            raise ValueError(f"vectors and residual_norms are not those of {m} sizes")
        if [*self._shifts] not in ([], [*self.sizes]) or any(b.shape != (q,) for b in self._shifts.values()):
            raise ValueError("the thresholds are not those of all sizes")
        if self._numbers.coefficients(m).shape != (m, q):
            raise ValueError(f"the coefficients are not those of {q} outputs")

    @property
    def sizes(self) -> Sequence[int]:
        """All sizes: 1, 2, ..., len(path)."""
        return range(1, len(self.order) + 1)

    def __repr__(self) -> str:
        tuned = "thresholds tuned, " if self._tuning is not None or self._shifts else ""
        return f"CompressionPath(sizes {self._listed_sizes()}, {tuned}of {self.model!r})"

    def _model(self, size: int) -> Any:
        full = self.model.expansion_
        small = full.replaced(
            vectors=self.vectors[:size],
            coefficients=self._numbers.coefficients(size),
            intercepts=full.intercepts + self._shifts_of([size])[0],
        )
        return wrap_like(self.model, small)

    def nbytes(self, size: int) -> int:
        """Bytes of the arrays of a size, without building its model.

        Parameters
        ----------
        size : int
            From 1 to ``len(path)``.

        Returns
        -------
        int
            As ``path[size].expansion_.nbytes``.
        """
        size = self._checked_size(size)
        vectors = self.vectors
        if hasattr(vectors, "indptr"):
            entries = int(vectors.indptr[size] - vectors.indptr[0])
            ends = (size + 1) * vectors.indptr.itemsize
            of_vectors = entries * (vectors.data.itemsize + vectors.indices.itemsize) + ends
        else:
            of_vectors = size * vectors.shape[1] * vectors.itemsize
        return int(of_vectors) + 8 * (size + 1) * self.model.expansion_.n_outputs

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Outputs (sizes, n, q) of increasing sizes, with their own thresholds."""
        return self._untuned(rows, sizes) + self._shifts_of(sizes)[:, None, :]

    def _untuned(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        """The same with the intercepts of the full model."""
        kept = self.vectors[: sizes[-1]]
        return self._numbers.outputs(self.model.expansion_, kept, rows, sizes, threads(self.n_jobs))

    def _shifts_of(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Changes of the intercepts by tuned thresholds, (sizes, q); zeros without tuning samples."""
        q = self.model.expansion_.n_outputs
        if self._tuning is not None:
            self._tune(sorted(set(sizes) - self._shifts.keys()), *self._tuning)
        shifts = [self._shifts.get(size, np.zeros(q)) for size in sizes]
        return np.array(shifts).reshape(len(shifts), q)

    def _tune(
        self,
        missing: Sequence[int],
        rows: Any,
        labels: NDArray[Any],
        weights: NDArray[np.float64] | None,
    ) -> None:
        step = max(1, TUNING_BYTES // (8 * max(1, rows.shape[0]) * self.model.expansion_.n_outputs))
        for start in range(0, len(missing), step):
            group = missing[start : start + step]
            outputs = self._untuned(rows, group)
            shifts = partial(threshold.shifts, self.model, labels=labels, weights=weights)
            # A size is a few milliseconds of work outside the interpreter lock; the sizes are independent.
            with new_threads(), ThreadPoolExecutor(min(threads(self.n_jobs), len(group))) as pool:
                try:
                    found = pool.map(shifts, outputs)
                    self._shifts.update(zip(group, found, strict=True))
                except BaseException:
                    # Ctrl-C does not wait for the sizes that have not begun.
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise


@savable
class GradientPath(ReducedPath):
    """Models of several sizes, each constructed separately by `compression_path`.

    They are returned by ``svmarrow.compression_path(method="gradient")``.

    ``path[s]`` is the model with s vectors for each s of ``path.sizes``, ready to predict; ``len(path)`` is
    the number of sizes. Scores, choice and picture are those of `CompressionPath`; `order` and
    `residual_norms` are None, because the vectors are not selected from the model's own.

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

    model: ExpansionModel | KernelExpansion

    def __init__(
        self,
        model: ExpansionClassifier | KernelExpansion,
        models: Mapping[int, Any],
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.n_jobs = n_jobs
        self._models: dict[int, ExpansionModel | KernelExpansion] = dict(models)

    def _after_load(self) -> None:
        found = {size: model.expansion_ for size, model in self._models.items()}
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

    def _model(self, size: int) -> ExpansionModel | KernelExpansion:
        return self._models[size]

    def _outputs(self, rows: Any, sizes: Sequence[int]) -> NDArray[np.float64]:
        expansions = [self._models[size].expansion_ for size in sizes]
        return np.stack([expansion._evaluate(rows, self.n_jobs) for expansion in expansions])
