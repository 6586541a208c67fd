"""NumPy's and SciPy's linear algebra on one thread, so that results do not depend on the number of threads.

A BLAS library splits sums according to its number of threads, a setting of the whole process. A lock lets one
thread at a time change it, work and restore it; other threads and forks wait. It does not protect against
another library that changes the setting at the same time.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["one_blas_thread", "product"]

_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


@cache
def _libraries() -> ThreadpoolController:
    """Returns the loaded libraries, whose search takes a hundred times as long as setting their threads."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS and LAPACK to one thread within the context."""
    with _LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield


def product(a: Any, b: Any) -> NDArray[np.float64]:
    """Returns ``a @ b``, the same bits for any number of threads."""
    with one_blas_thread():
        result: NDArray[np.float64] = np.asarray(a @ b)
    return result
