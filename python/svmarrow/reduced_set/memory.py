"""Memory that a compression needs, estimated before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.memory import MemoryEstimate, refuse_beyond_memory
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import as_rows
from svmarrow.interop.convert import as_expansion, bare_expansion
from svmarrow.reduced_set.construction import GradientSettings
from svmarrow.reduced_set.score import unwrap_expansion
from svmarrow.reduced_set.selection import SelectionSettings, as_arguments, selection_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

__all__ = [
    "bytes_of_construction",
    "bytes_of_selection",
    "bytes_of_work",
    "estimate_memory",
    "refuse_selection",
]

#: Samples of the fit of the first coefficients: for each vector, and their minimum number.
START_SAMPLES_PER_VECTOR, MIN_START_SAMPLES = 6, 2000
#: Samples of a cluster that its centre is computed from.
SAMPLES_PER_CENTRE = 100


def estimate_memory(
    model: Any,
    n_vectors: int,
    X: ArrayLike | None = None,
    *,
    method: str = "backfit",
    candidates: str = "vectors",
    settings: GradientSettings | SelectionSettings | None = None,
) -> MemoryEstimate:
    """Memory that `compress` or `compression_path` needs, without compressing.

    Parameters
    ----------
    model : object
        As for `compress`.
    n_vectors : int
        The largest size.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Rows, as for `compress`; they are not counted.
    method, candidates, settings
        As for `compress`.

    Returns
    -------
    MemoryEstimate
        Bytes in addition to model and rows, roughly. `compress` raises a MemoryError if this process cannot
        allocate them.

    Raises
    ------
    ValueError
        If the settings are not those of the method.
    TypeError
        If `model` is of another kind.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC
    >>> from svmarrow.reduced_set import estimate_memory
    >>> svc = SVC(gamma=0.001).fit(*load_digits(return_X_y=True))
    >>> estimate_memory(svc, 100, method="lars").total > estimate_memory(svc, 100).total
    True
    """
    expansion = unwrap_expansion(bare_expansion(as_expansion(model)))
    rows = None if X is None else as_rows(X)
    options: dict[str, Any] = {"candidates": candidates, "settings": settings}
    return MemoryEstimate.of(
        bytes_of_work(expansion.n_outputs, expansion.vectors, n_vectors, rows, method, **options)
    )


def bytes_of_work(
    outputs: int,
    vectors: Any,
    n_vectors: int,
    rows: Any,
    method: str,
    *,
    candidates: str = "vectors",
    settings: GradientSettings | SelectionSettings | None = None,
) -> int:
    """Bytes that the compression of a model with these outputs and vectors takes; rows may be None."""
    if method == "gradient":
        chosen = GradientSettings() if settings is None else settings
        if not isinstance(chosen, GradientSettings):
            raise refuse("settings", chosen, "None or a GradientSettings")
        return bytes_of_construction(outputs, vectors if rows is None else rows, n_vectors, chosen)
    selection = selection_of(settings, method)
    pool = rows if candidates == "rows" and rows is not None else vectors
    given = as_arguments(selection, method) | {"max_vectors": int(n_vectors)}
    given |= {"tolerance": 0.0, "seed": 0, "max_time": None}
    return bytes_of_selection(outputs, pool, rows if selection.criterion == "predictions" else None, given)


def bytes_of_selection(q: int, pool: Any, compared: Any, given: Mapping[str, Any]) -> int:
    """Bytes of a selection from a pool for q outputs; `compared` are samples to compare predictions on."""
    count = int(pool.shape[0])
    needed = _core.estimate_selection_memory(count, q, dict(given))
    if compared is not None:
        room = int(given["max_memory"] * 1e6 / 2)
        values = 8 * int(compared.shape[0]) * count
        needed += (values if values <= room else 0) + 8 * int(compared.shape[0]) * (q + 24)
    # Packed in double precision, and once as they are.
    return int(needed + 2 * 8 * np.prod(pool.shape, dtype=float))


def refuse_selection(method: str, needed: int) -> None:
    """Raise a MemoryError if a selection takes more memory than is available."""
    remedy = (
        "keep fewer vectors (n_vectors), compare few candidates in each step (SelectionSettings(sample=59)), "
        "or take the vectors in chunks (SelectionSettings(chunk=1000))"
    )
    refuse_beyond_memory(f"compress(method={method!r})", needed, remedy)


def bytes_of_construction(q: int, rows: Any, size: int, settings: GradientSettings) -> int:
    """Bytes of the construction of `size` vectors for q outputs."""
    n, d = int(rows.shape[0]), int(rows.shape[1])
    of_fit = 8 * min(n, max(START_SAMPLES_PER_VECTOR * size, MIN_START_SAMPLES)) * (
        2 * size + d + q
    ) + 8 * size * (size + q)
    of_centres = 8 * d * min(n, SAMPLES_PER_CENTRE * size) if isinstance(settings.start, str) else 0
    of_outputs = 4 * n * q * (1 + settings.places)
    of_steps = 4 * (6 * size * (d + q) + 2 * min(n, settings.batch) * (2 * size + d))
    return int(max(of_fit, of_centres) + of_outputs + of_steps)
