"""Work that would take more memory than there is ends before it begins."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from svmarrow import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bytes_of_fit", "bytes_of_rows", "new_threads", "refuse_beyond_memory"]

#: Bytes that are not worth a look at the system.
SMALL = 64 << 20


def refuse_beyond_memory(what: str, needed: int, remedy: str) -> None:
    """A MemoryError where `what` needs more bytes than this process may take."""
    if needed < SMALL:
        return
    free = _core.available_memory()
    if needed > free:
        raise MemoryError(
            f"{what} needs about {needed / 1e9:.2f} GB beside the data, and {free / 1e9:.2f} GB are free: "
            f"{remedy}"
        )


def bytes_of_rows(X: Any) -> int:
    """Bytes of one copy of rows."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes)


def bytes_of_fit(estimator: Any, X: Any, y: Any) -> tuple[int, int]:
    """Bytes of a fit of any estimator, and what it cannot do without; 0 where it says nothing."""
    if not hasattr(estimator, "estimate_memory"):
        return 0, 0
    given = estimator.estimate_memory(X, y)
    return int(getattr(given, "total", given)), int(getattr(given, "least", given))


@contextmanager
def new_threads() -> Iterator[None]:
    """Work that starts Python's threads: MemoryError, not RuntimeError, where there is no room for one."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise MemoryError("no thread could be started, memory is short: fewer n_jobs need less") from error
