"""Random fits, predictions and files under a limit of the address space, each in a process of its own.

The data are made first. Then the limit is set some megabytes above what is in use, and the work is done by
one Python thread or by four at once. It succeeds or raises MemoryError; work that takes longer than its
processor time is ended. Anything else, above all an abort, is a fault.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    OneClassSVM,
    RLSRegressor,
    compress,
    load,
)
from svmarrow.least_squares import LowRankRLSClassifier
from svmarrow.online import KernelPerceptron

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GOOD", "KINDS", "Drawn", "alternate", "draw", "run"]

#: Ends of a run that are no faults.
GOOD = {"done", "MemoryError", "went on"}

#: Rows below which work is done whose time grows like the square or the cube of the rows.
FEW = 20_000


class Drawn(NamedTuple):
    """One run: what is done with how many rows, columns and spare megabytes, on how many threads."""

    kind: str
    rows: int
    columns: int
    single: bool
    megabytes: int
    n_jobs: int
    callers: int
    seed: int


class Data(NamedTuple):
    """What a run works on."""

    X: Any
    y: Any
    values: Any
    expansion: KernelExpansion
    n_jobs: int
    folder: Path


def _expansion(columns: int, vectors: int, random: np.random.Generator) -> KernelExpansion:
    Z, B = random.standard_normal((vectors, columns)), random.standard_normal((vectors, 1))
    return KernelExpansion(Z, B, np.zeros(1), gamma=1 / columns)


def _classes(of: Data) -> Any:
    return np.digitize(of.values, np.quantile(of.values, [0.2, 0.4, 0.6, 0.8]))


def _saved(of: Data) -> None:
    path = of.folder / f"{threading.get_ident()}.safetensors"
    machine = KernelExpansion(of.X, of.values[:, None], np.zeros(1), gamma=1.0)
    machine.save(path)
    load(path)


KINDS: dict[str, Callable[[Data], object]] = {
    "SVC": lambda of: SVC(gamma=1.0, n_jobs=of.n_jobs).fit(of.X, of.y),
    "SVC linear": lambda of: SVC(kernel="linear", n_jobs=of.n_jobs).fit(of.X, of.y),
    "SVC of five classes": lambda of: SVC(gamma=1.0, n_jobs=of.n_jobs).fit(of.X, _classes(of)),
    "NuSVC": lambda of: NuSVC(nu=0.3, gamma=1.0, n_jobs=of.n_jobs).fit(of.X, of.y),
    "SVR": lambda of: SVR(gamma=1.0, n_jobs=of.n_jobs).fit(of.X, of.values),
    "OneClassSVM": lambda of: OneClassSVM(nu=0.1, gamma=1.0, n_jobs=of.n_jobs).fit(of.X),
    "RLSRegressor": lambda of: RLSRegressor(n_jobs=of.n_jobs).fit(of.X, of.values),
    "RLSRegressor linear": lambda of: RLSRegressor(kernel="linear", n_jobs=of.n_jobs).fit(of.X, of.values),
    "LowRankRLSClassifier": lambda of: LowRankRLSClassifier(200, n_jobs=of.n_jobs).fit(of.X, of.y),
    "LowRankSVC": lambda of: LowRankSVC(100, n_jobs=of.n_jobs).fit(of.X, of.y),
    "KMPRegressor": lambda of: KMPRegressor(20, n_jobs=of.n_jobs).fit(of.X, of.values),
    "Projectron": lambda of: KernelPerceptron(policy="projectron", gamma=1.0).fit(of.X, of.y),
    "decision_function": lambda of: of.expansion.decision_function(of.X, n_jobs=of.n_jobs),
    "compress": lambda of: compress(
        KernelExpansion(of.X[:FEW], of.values[:FEW, None], np.zeros(1), gamma=1.0),
        n_vectors=50,
        n_jobs=of.n_jobs,
    ),
    "save and load": _saved,
}


def draw(number: int) -> Drawn:
    """The run of a number, the same on every machine."""
    random = np.random.default_rng(number)
    kind = list(KINDS)[number % len(KINDS)]
    rows = int(10 ** random.uniform(3.0, np.log10(2e6)))
    columns = int(random.choice([c for c in (2, 5, 20) if rows * c <= 8_000_000]))
    megabytes = int(2 ** random.uniform(np.log2(8), np.log2(600)))
    single, n_jobs, callers = bool(random.integers(2)), int(random.integers(1, 3)), int(random.choice([1, 4]))
    return Drawn(kind, rows, columns, single, megabytes, n_jobs, callers, number)


def _work(drawn: Drawn, folder: Path) -> list[str]:
    random = np.random.default_rng(drawn.seed)
    X = random.standard_normal((drawn.rows, drawn.columns), dtype=np.float32 if drawn.single else np.float64)
    values = X[:, 0].astype(np.float64) + 0.3 * random.standard_normal(drawn.rows)
    of = Data(
        X, (values > 0).astype(np.int64), values, _expansion(drawn.columns, 50, random), drawn.n_jobs, folder
    )
    # OpenBLAS takes its buffers at the first product; a process that has no memory for them it ends.
    square = np.ones((300, 300))
    blas.dgemm(1.0, square @ square, square)
    ended = ["started"] * drawn.callers

    def call(place: int) -> None:
        try:
            KINDS[drawn.kind](of)
            ended[place] = "done"
        except MemoryError as error:
            ended[place] = f"MemoryError: {error}"[:200]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            ended[place] = f"{type(error).__name__}: {error}"[:300]

    # The threads of the callers are Python's: they start before the limit.
    ready = threading.Barrier(drawn.callers)
    threads = [
        threading.Thread(target=lambda place=place: (ready.wait(), call(place)))
        for place in range(1, drawn.callers)
    ]
    for thread in threads:
        thread.start()
    _limit(drawn.megabytes)
    ready.wait()
    call(0)
    for thread in threads:
        thread.join()
    return ended


def _limit(megabytes: int | None) -> None:
    """Limits the address space to some megabytes above what is in use, or lifts the limit."""
    import resource  # noqa: PLC0415 - not on Windows

    limit = resource.RLIM_INFINITY
    if megabytes is not None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def _alternate(rounds: int, callers: int) -> list[str]:
    random = np.random.default_rng(0)
    X = random.standard_normal((10_000, 2))
    large = KernelExpansion(X[:20], random.standard_normal((20, 2000)), np.zeros(2000), gamma=1.0)
    few, labels = X[:300], X[:300, 0] > 0.0
    calls: dict[str, Callable[[], Any]] = {
        "large": lambda: large.decision_function(X, n_jobs=2),  # 160 MB
        "fit": lambda: SVC(gamma=1.0, n_jobs=2).fit(few, labels).decision_function(few),
        "small": lambda: large.decision_function(few[:10], n_jobs=2),
    }
    expected = {name: call() for name, call in calls.items()}
    ready, ended = threading.Barrier(callers), [Counter[str]() for _ in range(callers)]

    def caller(place: int) -> None:
        for turn in range(rounds):
            limited = turn % 3 != 2
            if place == 0:
                _limit(60 if limited else None)
            ready.wait()
            for name, call in calls.items():
                if place == 0 and turn % 3 == 1 and name == "small":
                    _limit(None)  # while the others are at work
                try:
                    end = "done" if np.array_equal(call(), expected[name]) else "other numbers"
                except MemoryError:
                    end = "MemoryError"
                except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
                    end = f"{type(error).__name__}: {error}"[:300]
                ended[place][f"{'limited' if limited else 'free'} {name}: {end}"] += 1
            ready.wait()

    threads = [threading.Thread(target=caller, args=(place,)) for place in range(1, callers)]
    for thread in threads:
        thread.start()
    caller(0)
    for thread in threads:
        thread.join()
    return sorted(sum(ended, Counter()).elements())


def alternate(rounds: int, callers: int) -> dict[str, Any]:
    """The ends of concurrent calls whose allocations are refused at first and succeed later.

    In each third round the memory is not limited; in one round of three the limit is lifted while calls run.
    """
    return _in_child(lambda _: _alternate(rounds, callers), 120.0)


def run(drawn: Drawn, busy: float) -> dict[str, Any]:
    """How a run ended, after at most ``busy`` processor seconds: ``{"ended": [...], "said": ...}``."""
    return _in_child(lambda folder: _work(drawn, folder), 2.0 + drawn.rows / 1e6 + busy)


def _in_child(work: Callable[[Path], list[str]], seconds: float) -> dict[str, Any]:
    """What work returns in a process of its own, which may take some processor seconds."""
    import resource  # noqa: PLC0415 - not on Windows

    reading, writing = os.pipe()
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                warnings.simplefilter("ignore")
                used = resource.getrusage(resource.RUSAGE_SELF)
                limit = int(used.ru_utime + used.ru_stime + seconds)
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                os.write(writing, json.dumps(work(Path(folder))).encode())
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writing)
        answer = b""
        while part := os.read(reading, 2**16):
            answer += part
        os.close(reading)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        words = said.read()
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"ended": ["went on"], "said": ""}
    if status != 0:
        return {
            "ended": [signal.Signals(-status).name if status < 0 else f"exit {status}"],
            "said": words[-600:],
        }
    return {"ended": json.loads(answer), "said": ""}
