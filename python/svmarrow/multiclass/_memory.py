"""Memory that the machines of a code need, estimated before training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from svmarrow._support.memory import MemoryEstimate, bytes_of_rows, estimate_of, refuse_beyond_memory
from svmarrow._support.rows import as_rows, threads
from svmarrow.models.columns import ColumnTrainer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.codes import Code

__all__ = ["memory_of_machines", "refuse_machines"]


def memory_of_machines(
    estimator: Any, rows: Any, labels: NDArray[Any], code: Code, shared: bool, n_jobs: int | None
) -> MemoryEstimate:
    """Memory of all machines."""
    counts = np.bincount(labels, minlength=code.n_classes).astype(np.int64)
    matrix = np.ascontiguousarray(code.matrix[:, code.distinct_columns()[0]])
    # Coefficients, and the vectors of the pool: at most all rows, once.
    kept = 16 * int(counts.sum()) * code.n_columns + bytes_of_rows(rows)
    if shared and isinstance(estimator, ColumnTrainer):
        machine: Any = clone(estimator)
        if n_jobs is not None:
            machine.set_params(n_jobs=n_jobs)
        found = machine._column_memory(rows, matrix, counts)
        if found is not None:
            return MemoryEstimate(found.total + kept, found.least)
    sizes = np.sort(counts @ (matrix != 0))[::-1]
    # The largest machines, which may be fitted at the same time; each keeps its rows.
    part = np.linspace(0, rows.shape[0] - 1, int(sizes[0])).astype(np.intp)
    one = estimate_of(estimator, rows[part], np.arange(part.size) % 2)
    copies = 2 * bytes_of_rows(rows) * int(sizes.sum()) // max(int(counts.sum()), 1)
    at_once = min(threads(n_jobs), int(sizes.size))
    return MemoryEstimate(at_once * one.total + copies + kept, one.least)


def refuse_machines(
    estimator: Any, X: Any, labels: NDArray[Any], code: Code, shared: bool, n_jobs: int | None
) -> None:
    """Raise a MemoryError if the machines need more memory than is available."""
    try:
        least = memory_of_machines(estimator, as_rows(X), labels, code, shared, n_jobs).least
    except (TypeError, ValueError):
        return  # The estimator reports what is wrong with X and the parameters.
    remedy = f"give another {type(estimator).__name__}, whose estimate_memory is less"
    refuse_beyond_memory("CodedClassifier.fit", least, remedy)
