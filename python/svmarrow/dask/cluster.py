"""Tasks on a cluster: the client, the threads of a task, and errors for lost results.

All tasks are pure functions of other tasks' results and of their arguments, so that Dask can recompute the
results of a lost worker from the user's collections. A fit never scatters data, since scattered data cannot
be recomputed. Results are gathered and added in the order of the partitions or in a fixed tree, so the bits
do not depend on the number of workers.
"""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

try:
    from distributed import Client, default_client, get_client, get_worker, worker_client
    from distributed.scheduler import KilledWorker

    from dask import delayed
except ImportError as _error:
    raise ImportError(
        "svmarrow.dask needs dask and distributed: pip install 'svmarrow[dask]'", name=_error.name
    ) from _error

from svmarrow._support.rows import threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Cluster", "all_threads", "cluster_of", "current_client", "some_client", "tree_sum"]

#: Locks so that a worker runs one computation at a time with all of its threads.
_LOCKS: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


def _worker() -> Any:
    """Returns the worker that runs this task, or None."""
    try:
        return get_worker()
    except ValueError:
        return None


@contextmanager
def all_threads() -> Iterator[int]:
    """Yields the number of the worker's threads while no other task of the worker computes.

    Without a worker, on one of Dask's local schedulers, which run tasks in parallel, it is 1.
    """
    worker = _worker()
    if worker is None:
        yield 1
        return
    with _LOCKS_LOCK:
        lock = _LOCKS.setdefault(worker, threading.Lock())
    with lock:
        yield threads(int(worker.state.nthreads))


def current_client() -> Any:
    """Returns the current client of this process; raises ValueError if there is none."""
    try:
        return get_client() if _worker() is not None else default_client()
    except ValueError:
        raise ValueError(
            "no Dask client is active: create one, client = distributed.Client(...), or set the estimator's "
            "client attribute"
        ) from None


def some_client(own: Any = None) -> Any:
    """Returns the given or the current client, or None."""
    if own is not None:
        return own
    try:
        return current_client()
    except ValueError:
        return None


@contextmanager
def cluster_of(own: Any = None) -> Iterator[Cluster]:
    """Yields the cluster of a client. A fit inside a task releases its thread meanwhile."""
    if own is None and _worker() is not None:
        with worker_client() as client:
            yield Cluster(client)
    else:
        yield Cluster(current_client() if own is None else own)


class Cluster:
    """The operations of a client that fits use."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def load(self, delayed: Sequence[Any]) -> list[Any]:
        """Returns the futures of delayed values."""
        with _ignore_large_graph_warning():
            futures: list[Any] = self.client.compute(list(delayed))
        return futures

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the future of a function; futures among the arguments are replaced by their results."""
        with _ignore_large_graph_warning():
            # With pure=True Dask would hash every argument.
            return self.client.submit(function, *arguments, pure=False)

    def later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the delayed value of a function."""
        return delayed(function, pure=False, traverse=False)(*arguments)

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the future of a function of delayed values, which are released afterwards."""
        return self.load([self.later(function, *arguments)])[0]

    def each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Returns a future for each tuple of arguments."""
        return [self.submit(function, *arguments) for arguments in zip(*columns, strict=True)]

    def shared(self, value: Any) -> Any:
        """Returns the future of a value that many tasks need, which is sent once in a task of its own."""
        return self.submit(_itself, value)

    def gather(self, futures: Sequence[Any], what: str) -> list[Any]:
        """Returns the results in order; errors name the lost partitions."""
        try:
            return list(self.client.gather(list(futures)))
        except KilledWorker as error:
            lost = [number for number, future in enumerate(futures) if future.status == "error"]
            raise RuntimeError(
                f"{what} of partition {_some(lost)} could not be computed: the workers that tried it died, "
                f"the last at {error.last_worker.address}. See the workers' logs; the usual cause is a lack "
                "of memory: use smaller partitions or more memory per worker"
            ) from error
        except CancelledError as error:
            raise RuntimeError(
                f"{what} cannot be computed again: scattered data, or futures of another client, were lost "
                "with their worker. Collections of files or of functions can be recomputed"
            ) from error

    def result(self, future: Any, what: str) -> Any:
        """Returns the result of one future."""
        return self.gather([future], what)[0]


def tree_sum(cluster: Cluster, merge: Callable[[Any, Any], Any], futures: Sequence[Any]) -> Any:
    """Returns the future of a sum of results, added in pairs of neighbors in a fixed order."""
    level = list(futures)
    while len(level) > 1:
        pairs = [cluster.submit(merge, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def _itself(value: Any) -> Any:
    return value


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) or "?"


@contextmanager
def _ignore_large_graph_warning() -> Iterator[None]:
    """Ignores the warning of large arguments of a task, from which a lost worker's results are recomputed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        yield
