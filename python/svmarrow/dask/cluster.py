"""Work on a cluster: which client, how a task uses its worker's threads, what is said of lost work.

All work is pure tasks, functions of other tasks' results and of what is written into them, so that whatever a
worker takes with it can be computed again from the collections that the user gave: Dask does so by itself.
Nothing is ever scattered during a fit, since scattered data has no task that could make it again. Results are
gathered in the order of the partitions and added up in that order or in a fixed tree, so the bits are the
same on any number of workers.
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

__all__ = ["Cluster", "all_threads", "connected", "current_client", "some_client", "tree"]

#: One computation at a time on a worker, with all of its threads.
_TURNS: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_TURNS_ARE_MADE = threading.Lock()


def _worker() -> Any:
    """The worker that runs this task, or None."""
    try:
        return get_worker()
    except ValueError:
        return None


@contextmanager
def all_threads() -> Iterator[int]:
    """Inside a task: the number of the worker's threads, while no other task of it computes.

    Without a worker, on one of Dask's schedulers in this process, 1: it runs tasks side by side itself.
    """
    worker = _worker()
    if worker is None:
        yield 1
        return
    with _TURNS_ARE_MADE:
        turn = _TURNS.setdefault(worker, threading.Lock())
    with turn:
        yield threads(int(worker.state.nthreads))


def current_client() -> Any:
    """The client that this process talks to a cluster with; a ValueError where there is none."""
    try:
        return get_client() if _worker() is not None else default_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: make one, client = distributed.Client(...), or set the estimator's "
            "client property"
        ) from None


def some_client(own: Any = None) -> Any:
    """A client, or None where there is none."""
    if own is not None:
        return own
    try:
        return current_client()
    except ValueError:
        return None


@contextmanager
def connected(own: Any = None) -> Iterator[Cluster]:
    """A cluster to work on. A fit inside a task gives its thread back to the worker meanwhile."""
    if own is None and _worker() is not None:
        with worker_client() as client:
            yield Cluster(client)
    else:
        yield Cluster(current_client() if own is None else own)


class Cluster:
    """A client, as fits use it."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def load(self, delayed: Sequence[Any]) -> list[Any]:
        """Futures of Dask's delayed values."""
        with _large_is_meant():
            futures: list[Any] = self.client.compute(list(delayed))
        return futures

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The future of a function; futures among the arguments are what they stand for."""
        with _large_is_meant():
            # Not pure: Dask would take a hash of every argument.
            return self.client.submit(function, *arguments, pure=False)

    def later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The delayed value of a function."""
        return delayed(function, pure=False, traverse=False)(*arguments)

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The future of a function of delayed values, which are computed for it and let go again."""
        return self.load([self.later(function, *arguments)])[0]

    def each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """A future for each line of some columns of arguments."""
        return [self.submit(function, *arguments) for arguments in zip(*columns, strict=True)]

    def shared(self, value: Any) -> Any:
        """The future of a value that many tasks need: sent once, written into a task of its own."""
        return self.submit(_itself, value)

    def gather(self, futures: Sequence[Any], what: str) -> list[Any]:
        """Results in their order; an error tells which of them is lost."""
        try:
            return list(self.client.gather(list(futures)))
        except KilledWorker as error:
            lost = [number for number, future in enumerate(futures) if future.status == "error"]
            raise RuntimeError(
                f"{what} of partition {_some(lost)} could not be computed: the workers that tried it died, "
                f"the last at {error.last_worker.address}. Look for its end in the workers' logs; memory is "
                "the usual cause, then smaller partitions or more memory a worker help"
            ) from error
        except CancelledError as error:
            raise RuntimeError(
                f"{what} cannot be computed any more: data that was scattered, or futures of another client, "
                "have gone with their worker. Collections made of files or of functions are computed again"
            ) from error

    def result(self, future: Any, what: str) -> Any:
        """The result of one future."""
        return self.gather([future], what)[0]


def tree(cluster: Cluster, merge: Callable[[Any, Any], Any], futures: Sequence[Any]) -> Any:
    """The future of a sum of results, two neighbours at a time, by their numbers alone."""
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
def _large_is_meant() -> Iterator[None]:
    """Dask warns of what is sent with a task, which is where lost workers find it again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        yield
