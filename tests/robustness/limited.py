"""Drawn fits, predictions and files under a limit of the address space, each in a process of its own.

The data are made first. Then the limit is set some megabytes above what is in use, and the work is done by one Python
thread or by four at once. It succeeds or raises MemoryError; work that takes longer than its processor time is ended. Anything else, an abort
above all, is a fault.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from svmarrow import (
    SVC,
    SVR,
    KernelExpansion,
    KMPRegressor,
    LowRankRLSClassifier,
    LowRankSVC,
    NuSVC,
    OneClassSVM,
    Projectron,
    RLSRegressor,
    compress,
    load,
)

__all__ = ["KINDS", "Drawn", "draw", "run"]

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
    "Projectron": lambda of: Projectron(gamma=1.0).fit(of.X, of.y),
    "decision_function": lambda of: of.expansion.decision_function(of.X, n_jobs=of.n_jobs),
    "compress": lambda of: compress(
        KernelExpansion(of.X[:FEW], of.values[:FEW, None], np.zeros(1), gamma=1.0), n_vectors=50, n_jobs=of.n_jobs
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
    of = Data(X, (values > 0).astype(np.int64), values, _expansion(drawn.columns, 50, random), drawn.n_jobs, folder)
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
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            ended[place] = f"{type(error).__name__}: {error}"[:300]

    # The threads of the callers are Python's: they start before the limit.
    ready = threading.Barrier(drawn.callers)
    threads = [
        threading.Thread(target=lambda place=place: (ready.wait(), call(place))) for place in range(1, drawn.callers)
    ]
    for thread in threads:
        thread.start()
    in_use = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + drawn.megabytes * 2**20, resource.RLIM_INFINITY))
    ready.wait()
    call(0)
    for thread in threads:
        thread.join()
    return ended


def run(drawn: Drawn, busy: float) -> dict[str, Any]:
    """How a run ended, after at most ``busy`` processor seconds of work: ``{"ended": [...], "said": ...}``."""
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
                limit = int(used.ru_utime + used.ru_stime + 2 + drawn.rows / 1e6 + busy)
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                os.write(writing, json.dumps(_work(drawn, Path(folder))).encode())
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
        return {"ended": [signal.Signals(-status).name if status < 0 else f"exit {status}"], "said": words[-600:]}
    return {"ended": json.loads(answer), "said": ""}
