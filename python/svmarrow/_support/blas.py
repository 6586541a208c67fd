"""NumPy's and SciPy's linear algebra on one thread, so that a result does not depend on how many there are.

A BLAS library cuts sums at places that depend on its number of threads, which is a setting of the whole
process. So one thread at a time has it set, works and puts it back; others wait, and a fork does too. What no
lock of ours can help: another library that sets it in another thread at the same time.
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
    """Finding them takes a hundred times as long as setting their threads."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS and LAPACK use one thread; for work that is short or worth waiting for."""
    with _LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield


def product(a: Any, b: Any) -> NDArray[np.float64]:
    """``a @ b``, the same bits for any number of threads."""
    with one_blas_thread():
        result: NDArray[np.float64] = np.asarray(a @ b)
    return result
