"""Memory that a compression needs, estimated before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svmarrow._support.memory import MemoryEstimate
from svmarrow._support.parameters import check, one_of, refuse
from svmarrow._support.rows import as_rows
from svmarrow.interop.convert import as_expansion
from svmarrow.reduced_set.construction import GradientSettings, bytes_of_construction
from svmarrow.reduced_set.paths import METHODS
from svmarrow.reduced_set.selection import SelectionSettings, as_arguments, bytes_of_selection, selection_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["bytes_of_work", "estimate_memory"]


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
        A kernel machine, as for `compress`.
    n_vectors : int
        The largest size.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples, as for `compress`; they are not counted.
    method : str, default="backfit"
        As for `compress` and `compression_path`. ``"auto"`` counts the methods that `compress` tries: it
        constructs vectors where X is given.
    candidates, settings
        As for `compression_path`.

    Returns
    -------
    MemoryEstimate
        Bytes in addition to model and samples, roughly. `compress` raises a MemoryError if this process
        cannot allocate them.

    Raises
    ------
    ValueError
        If the method is unknown, or the settings are not those of the method.
    TypeError
        If `model` is of another kind.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC
    >>> from svmarrow.reduced_set import estimate_memory
    >>> svc = SVC(gamma=0.001).fit(*load_digits(return_X_y=True))
    >>> estimate_memory(svc, 100, method="rank").total > estimate_memory(svc, 100).total
    True
    """
    check({"method": method}, {"method": one_of("auto", *METHODS)})
    expansion = as_expansion(model).expansion_
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
    if method == "auto":
        constructs = isinstance(settings, GradientSettings)
        tried = [("backfit", None if constructs else settings)]
        if rows is not None or constructs:
            tried.append(("gradient", settings if constructs else None))
        return max(
            bytes_of_work(outputs, vectors, n_vectors, rows, each, candidates=candidates, settings=chosen)
            for each, chosen in tried
        )
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
