"""Kernels of series and strings compared with tslearn's ``cdist_gak`` and with a naive dynamic program.

    python benches/objects/sequences.py --json FILE

Series: random walks, sigma by Cuturi's rule (the median distance of two steps times the square root of the
number of steps). The largest absolute difference and the ratio of seconds, measured in turns, are those of
``cdist_gak`` on as many threads; without tslearn this part is left out. Series of 10,000 steps have to stay
finite.

Strings: 200 texts of 100 to 200 letters. The naive program is the recursion of Lodhi and others (2002) in
NumPy, with one vector operation for each row of a table and one step for each cell of K''.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.kernels import GlobalAlignment, Subsequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

#: Numbers of series, steps and features.
SHAPES = [(300, 20, 1), (100, 100, 1), (100, 100, 3), (60, 250, 1), (30, 500, 1), (16, 1000, 1)]
N_STRINGS, N_NAIVE_PAIRS = 200, 40


def in_turns(functions: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Returns the least seconds of each function; the functions take turns."""
    seconds = dict.fromkeys(functions, float("inf"))
    for _ in range(repeat):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def random_walks(n_series: int, n_steps: int, n_features: int) -> tuple[NDArray[np.float64], float]:
    """Returns random walks and the sigma of Cuturi's rule."""
    rng = np.random.default_rng(n_steps)
    walks = rng.normal(size=(n_series, n_steps, n_features)).cumsum(axis=1)
    steps = walks.reshape(-1, n_features)
    pairs = rng.integers(0, len(steps), size=(2, 5000))
    distances = np.linalg.norm(steps[pairs[0]] - steps[pairs[1]], axis=1)
    return walks, float(np.median(distances) * np.sqrt(n_steps))


def series(n_jobs: int, repeat: int) -> list[dict[str, Any]]:
    """Compares with tslearn, if it is installed."""
    if importlib.util.find_spec("tslearn") is None:
        print("tslearn is not installed: no comparison of series")
        return []
    from tslearn.metrics import cdist_gak

    results = []
    for shape in SHAPES:
        X, sigma = random_walks(*shape)
        kernel = GlobalAlignment(sigma, n_jobs=n_jobs)
        ours = kernel(X, X)
        theirs = cdist_gak(X, sigma=sigma, n_jobs=n_jobs)
        n_finite = int(np.isfinite(theirs).sum())
        difference = float(np.nanmax(np.abs(ours - theirs))) if n_finite else float("nan")
        seconds = in_turns(
            {
                "svmarrow": lambda kernel=kernel, X=X: kernel(X, X),
                "tslearn": lambda X=X, sigma=sigma: cdist_gak(X, sigma=sigma, n_jobs=n_jobs),
            },
            repeat,
        )
        ratio = seconds["tslearn"] / seconds["svmarrow"]
        results.append({"shape": shape, "difference": difference, "ratio": ratio, "seconds": seconds})
        print(
            f"{shape}: {ratio:.1f} times as fast as tslearn, difference {difference:.1e}, "
            f"{theirs.size - n_finite} of tslearn's values are not finite",
            flush=True,
        )
    return results


def long_series(n_jobs: int) -> dict[str, Any]:
    """Checks that values of series of 10,000 steps are finite."""
    X, sigma = random_walks(3, 10_000, 1)
    results = {}
    for name, kernel in {
        "rule": GlobalAlignment(sigma, n_jobs=n_jobs),
        "small sigma": GlobalAlignment(sigma / 1000.0, n_jobs=n_jobs),
        "band": GlobalAlignment(sigma, band=500, n_jobs=n_jobs),
    }.items():
        start = time.perf_counter()
        values = kernel(X, X)
        results[name] = {
            "is_finite": bool(np.isfinite(values).all()),
            "seconds": time.perf_counter() - start,
        }
        print(f"10,000 steps, {name}: finite {results[name]['is_finite']}", flush=True)
    return results


def naive_value(s: str, t: str, length: int, decay: float) -> float:
    """Returns the value of two strings before the normalization, table by table."""
    matches = np.array([[a == b for b in t] for a in s])
    below = np.ones((len(s) + 1, len(t) + 1))
    for _ in range(1, length):
        table = np.zeros_like(below)
        for i in range(1, len(s) + 1):
            new = decay**2 * matches[i - 1] * below[i - 1, :-1]
            for j in range(1, len(t)):
                new[j] += decay * new[j - 1]
            table[i, 1:] = decay * table[i - 1, 1:] + new
        below = table
    return float(decay**2 * (matches * below[:-1, :-1]).sum())


def strings(n_jobs: int, repeat: int) -> list[dict[str, Any]]:
    """Compares with the naive program, which takes some of the pairs."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu "))
    texts = ["".join(rng.choice(letters, size=n)) for n in rng.integers(100, 201, size=N_STRINGS)]
    pairs = rng.integers(0, N_STRINGS, size=(N_NAIVE_PAIRS, 2))
    n_pairs = N_STRINGS * (N_STRINGS + 1) // 2
    results = []
    for length in (2, 3, 5):
        kernel = Subsequence(length, n_jobs=n_jobs)
        values = kernel(texts, texts)

        def naive(length: int = length) -> list[float]:
            def value(i: int, j: int) -> float:
                return naive_value(texts[i], texts[j], length, 0.5)

            return [value(i, j) / np.sqrt(value(i, i) * value(j, j)) for i, j in pairs]

        expected = naive()
        difference = max(abs(values[i, j] - x) for (i, j), x in zip(pairs, expected, strict=True))
        seconds = in_turns(
            {"svmarrow": lambda kernel=kernel: kernel(texts, texts), "naive": naive}, min(repeat, 2)
        )
        # Three values for each of the pairs of the naive program.
        ratio = seconds["naive"] / (3 * N_NAIVE_PAIRS) / (seconds["svmarrow"] / n_pairs)
        results.append({"length": length, "difference": difference, "ratio": ratio, "seconds": seconds})
        print(f"length {length}: {ratio:.0f} times as fast as the naive program, difference {difference:.1e}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report = {
        "series": series(arguments.n_jobs, arguments.repeat),
        "long_series": long_series(arguments.n_jobs),
        "strings": strings(arguments.n_jobs, arguments.repeat),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
