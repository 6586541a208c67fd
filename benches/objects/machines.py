"""Machines on series and strings: how many kernel values they ask for, what they predict, and their memory.

    python benches/objects/machines.py --json docs/benchmarks/objects.json

Series: a pen draws four shapes at varying speed, 20 to 40 steps of two features, one sample in ten with
another label. A support vector machine on 5,000 of them is compared with one on the matrix of all pairs; its
compression to 5 % of the vectors, and tslearn's ``TimeSeriesSVC`` on 500, if it is installed.

Strings: least squares of low rank on 20,000 words of random letters whose target counts letters.
Leave-one-out values are compared with fits without the sample, the vectors held fixed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from svmarrow import SVC, compress
from svmarrow.kernels import GlobalAlignment, Subsequence
from svmarrow.least_squares import LowRankRLSRegressor

N_SERIES, N_TEST, N_TSLEARN = 5_000, 2_000, 500
N_STRINGS, N_VECTORS = 20_000, 500
SIGMA = 4.0


class Counted:
    """A kernel that counts its values."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.values = kernel, 0

    def prepare(self, samples: Any) -> Any:
        return self.kernel.prepare(samples)

    def diagonal(self, samples: Any) -> Any:
        return self.kernel.diagonal(samples)

    def __call__(self, rows: Any, columns: Any) -> Any:
        self.values += len(rows) * len(columns)
        return self.kernel(rows, columns)


def drawn(n: int, rng: np.random.Generator) -> tuple[list[Any], Any]:
    """Returns series and their labels."""
    shapes = rng.integers(0, 4, size=n)
    series = []
    for shape in shapes:
        t = np.linspace(0.0, 1.0, rng.integers(20, 40)) ** rng.uniform(0.6, 1.6)
        x, y = [
            (np.cos(6.0 * t), np.sin(6.0 * t)),
            (np.sin(3.0 * t), np.sin(6.0 * t)),
            (t, np.abs(t - 0.5)),
            (np.cos(6.0 * t), 0.5 * np.sin(6.0 * t)),
        ][shape]
        series.append(np.column_stack([x, y]) + 0.3 * rng.normal(size=(len(t), 2)))
    return series, np.where(rng.random(n) < 0.1, rng.integers(0, 4, size=n), shapes)


def machine() -> dict[str, Any]:
    """The support vector machine on series."""
    rng = np.random.default_rng(0)
    (series, labels), (tested, test_labels) = drawn(N_SERIES, rng), drawn(N_TEST, rng)
    kernel = Counted(GlobalAlignment(SIGMA))
    start = time.perf_counter()
    model = SVC(kernel=kernel).fit(series, labels)
    seconds, values = time.perf_counter() - start, kernel.values
    pairs = N_SERIES * (N_SERIES + 1) // 2
    start = time.perf_counter()
    block = kernel.kernel.prepare(series)
    matrix = kernel.kernel(block, block)
    whole = SVC(kernel="precomputed").fit(matrix, labels)
    seconds_of_matrix = time.perf_counter() - start
    start, kernel.values = time.perf_counter(), 0
    small = compress(model, n_vectors=len(model.support_) // 20)
    seconds_of_compression, values_of_compression = time.perf_counter() - start, kernel.values
    against = kernel.kernel(tested, series)
    result = {
        "series": N_SERIES,
        "kernel values of the fit": values,
        "of all pairs": values / pairs,
        "seconds": seconds,
        "seconds with the whole matrix": seconds_of_matrix,
        "vectors": len(model.support_),
        "equal predictions": float(np.mean(model.predict(tested) == whole.predict(against))),
        "error %": 100.0 * (1.0 - model.score(tested, test_labels)),
        "compressed to": small.expansion_.n_vectors,
        "error of the compressed %": 100.0 * (1.0 - small.score(tested, test_labels)),
        "kernel values of the compression": values_of_compression,
        "seconds of the compression": seconds_of_compression,
    }
    if importlib.util.find_spec("tslearn"):
        result["tslearn"] = of_tslearn(series[:N_TSLEARN], labels[:N_TSLEARN], tested)
    return result


def of_tslearn(series: list[Any], labels: Any, tested: list[Any]) -> dict[str, Any]:
    """tslearn's machine on some of the series; its gamma is 2 sigma^2."""
    from tslearn.svm import TimeSeriesSVC
    from tslearn.utils import to_time_series_dataset

    start = time.perf_counter()
    peer = TimeSeriesSVC(kernel="gak", gamma=2.0 * SIGMA**2, n_jobs=2)
    peer.fit(to_time_series_dataset(series), labels)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    model = SVC(kernel=GlobalAlignment(SIGMA)).fit(series, labels)
    ours = time.perf_counter() - start
    equal = np.mean(peer.predict(to_time_series_dataset(tested[:300])) == model.predict(tested[:300]))
    return {
        "series": len(series),
        "seconds": seconds,
        "seconds of svmarrow": ours,
        "equal predictions": float(equal),
    }


def strings() -> dict[str, Any]:
    """Least squares of low rank on strings."""
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdefgh"), rng.integers(8, 20))) for _ in range(N_STRINGS)]
    target = np.array([word.count("a") - word.count("h") for word in words], dtype=float)
    target += 0.3 * rng.normal(size=N_STRINGS)
    kernel = Counted(Subsequence(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    model = LowRankRLSRegressor(N_VECTORS, alpha=0.1, kernel=kernel, random_state=0, leave_one_out=True)
    model.fit(words, target)
    seconds = time.perf_counter() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    points, differences = list(model.expansion_.vectors[:, 0]), []
    used = kernel.values
    for left_out in range(3):
        kept = np.arange(N_STRINGS) != left_out
        again = LowRankRLSRegressor(alpha=0.1, kernel=Subsequence(3), selection=points)
        again.fit([word for word, keep in zip(words, kept, strict=True) if keep], target[kept])
        refitted = again.predict(words[left_out : left_out + 1])[0]
        differences.append(abs(refitted - model.loo_prediction_[left_out]))
    return {
        "strings": N_STRINGS,
        "vectors": model.expansion_.n_vectors,
        "kernel values": used,
        "seconds": seconds,
        "MB": kilobytes / 1024.0,
        "MB of n x m values": 8e-6 * N_STRINGS * N_VECTORS,
        "leave-one-out R^2": 1.0 - model.loo_error_ / target.var(),
        "largest difference from refits": float(max(differences)),
    }


def processor() -> str:
    """Returns the name of the processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True)
    written: dict[str, Any] = {
        "commit": commit.strip(),
        "command": " ".join(["python", "benches/objects/machines.py", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"processors": os.cpu_count(), "processor": processor()},
        "strings": strings(),
        "series": machine(),
    }
    print(json.dumps(written, indent=1))
    if options.json:
        options.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
