"""Which stages a cascade should have, by a model of the work.

Units are multiply-adds of a kernel value, which are made in register tiles. What the other parts cost in
them was fitted to the time of 250 stages and eleven full models; ``benches/papers/cascades.py --only work``
does it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Work", "cheapest", "ladder"]

#: The full model: an output's coefficient with its share of the exponential, an output, a row.
COEFFICIENT, OUTPUT, ROW = 17.5, 380.0, 3700.0
#: A stage, each row alone: a kernel value beside its features, a multiply-add of the triangular solve, a
#: direction of it, a multiply-add of an output, an output, a feature of the row, the stage itself.
VALUE, SOLVE, DIRECTION, PRODUCT, BOUND, FEATURE, STAGE = 26.0, 3.3, 146.0, 3.1, 450.0, 119.0, 3100.0
#: Stages must be expected to save so much of the full model's work, or there are none.
MIN_SAVING = 0.1


def ladder(most: int) -> list[int]:
    """Sizes a factor of 1.3 to 1.5 apart, whole panels of vectors, up to all."""
    sizes = [16 * step for power in range(26) for step in (2**power, 3 * 2**power // 2) if step]
    return [size for size in sorted(set(sizes)) if size < most] + [most]


class Work(NamedTuple):
    """Multiply-adds a sample, from measured ratios: the time of a cascade beside the full model's."""

    features: float
    outputs: int
    full: float

    @classmethod
    def of(cls, expansion: Any, rows: Any) -> Work:
        """Work of a model on samples like these."""
        vectors = expansion.vectors
        sparse = sp.issparse(vectors)
        features = vectors.nnz / max(1, vectors.shape[0]) if sparse else float(vectors.shape[1])
        used = float(np.count_nonzero(expansion.coefficients))
        full = expansion.n_vectors * features + COEFFICIENT * used + OUTPUT * expansion.n_outputs + ROW
        # The full model takes rows that are not in double precision at twice the speed; stages never do.
        return cls(features, expansion.n_outputs, full if rows.dtype == np.float64 else full / 2.0)

    def step(self, size: tuple[int, int], before: tuple[int, int]) -> float:
        """Work of a stage after another."""
        vectors, directions = size
        return (
            (self.features + VALUE) * (vectors - before[0])
            + SOLVE * (directions**2 - before[1] ** 2) / 2.0
            + DIRECTION * (directions - before[1])
            + self.outputs * (PRODUCT * vectors + directions + BOUND)
            + FEATURE * self.features
            + STAGE
        )


def cheapest(left: NDArray[np.float64], sizes: list[int], work: Work) -> list[tuple[int, int]]:
    """The chain of stages with the least expected work a sample; none where the full model is about as cheap.

    `left[i, j]` is the share of samples that stage (sizes[i] vectors, sizes[j] directions) leaves open.
    Dynamic programming over all pairs, from the last to the first: the least work of what comes after a
    stage.
    """
    nodes = [(i, j) for i in range(len(sizes)) for j in range(i + 1)]
    value: dict[tuple[int, int], float] = {}
    following: dict[tuple[int, int], tuple[int, int] | None] = {}

    def size(node: tuple[int, int]) -> tuple[int, int]:
        return sizes[node[0]], sizes[node[1]]

    def best(share: float, at: tuple[int, int], later: list[tuple[int, int]]) -> tuple[float, Any]:
        goes_on = ((share * work.step(size(node), at) + value[node], node) for node in later)
        return min(((share * work.full, None), *goes_on), key=lambda option: option[0])

    for node in reversed(nodes):
        later = [other for other in nodes if other[0] > node[0] and other[1] >= node[1]]
        value[node], following[node] = best(float(left[node]), size(node), later)
    expected, chosen = best(1.0, (0, 0), nodes)
    if expected > (1.0 - MIN_SAVING) * work.full:
        return []
    stages = []
    while chosen is not None:
        stages.append(size(chosen))
        chosen = following[chosen]
    return stages
