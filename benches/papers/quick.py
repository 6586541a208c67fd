"""Runs every part of every script with ``--quick``: ``python benches/papers/quick.py [SCRIPT ...]``.

Each part must end, and one number of each, which does not depend on time, must lie in a loose band. The bands
are wide enough for other processors and for other versions of NumPy and scikit-learn; they find scripts that
no longer run and numbers that have changed. Two scripts run at a time, with one thread of BLAS each.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common import folder
from judging import numbers, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
N_JOBS = 2
FOOTER = re.compile(r"^\*(\S+): ([\d,]+) s by ", re.MULTILINE)


@dataclass(frozen=True)
class Band:
    """The first number of a cell of a table of a part, and what it must lie between."""

    title: str
    line: int
    column: str
    low: float
    high: float


BANDS: dict[str, dict[str, Band]] = {
    "perceptron_trees": {
        "figure1": Band("a9a: average cumulative error", 0, "median", 0.2, 0.28),
        "figure2-a9a": Band("a9a, by mistakes", 0, "maximum number of kernel values", 20, 500),
        "figure2-ijcnn1": Band("Claim of the text", 0, "WPQ", 0.14, 0.22),
        "figure2-cod_rna": Band("Claim of the text", 0, "WPQ", 0.12, 0.2),
        "gammas": Band("a9a: figure 2 by gamma", 0, "WPQ", 0.2, 0.4),
        "convert": Band("Kernel values for an answer", 0, "maximum number of kernel values", 160, 195),
        "speed": Band("Rows per second", 0, "perceptron's", 420, 500),
    },
    "compressed_svm_figure3": {
        "letter": Band("letter: test error", 0, "CVM", 40, 70),
        "news": Band("news: test error", 0, "CVM", 40, 80),
        "mnist": Band("mnist: test error", 0, "CVM", 12, 28),
        "magic": Band("magic: test error", 0, "CVM", 14, 22),
        "page_blocks": Band("page_blocks: test error", 0, "CVM", 7, 14),
        "finishes": Band("A tenth of the vectors", 0, "mean", 10, 25),
        "path": Band("The first classes of letter", 0, "outputs", 3, 3),
    },
    "promises": {
        "promises": Band("Means of the splits", 0, "full vectors", 135, 170),
        "hard": Band("Hard cases", 0, "full vectors", 105, 135),
    },
    "perceptron_variants": {
        "gammas": Band("a9a: the perceptron without", 1, "wpq, along training", 0.2, 0.32),
        "variants": Band("a9a: mistakes of one pass", 0, "mistakes", 0.2, 0.3),
        "averaged": Band("Mistakes of one pass", 0, "averaged", 0.14, 0.22),
    },
    "cascades": {
        "sets": Band("Exact: certain labels", 0, "m", 70, 85),
        "work": Band("What a row costs", 0, "timed", 1, 1),
    },
    "compressed_svm": {
        "figure2": Band("Boundary of the moved vectors", 0, "accuracy", 0.96, 1.0),
        "targets": Band("Test error of one-vs-rest", 0, "mean, %", 4.5, 8.5),
        "starts": Band("usps, 50 vectors", 0, "by itself", 18, 32),
        "path": Band("letter, one-vs-rest", 0, "error", 30, 50),
        "bytes": Band("Files of the full model", 0, "one byte, KiB", 49, 54),
        "room": Band("One-vs-rest SVMs; constructed", 0, "one byte a number, bytes", 7000, 8192),
        "optimiser": Band("usps, 50 vectors: half", 1, "loss", 0.05, 0.3),
        "search": Band("satimage: the smallest", 0, "full, %", 9, 14),
    },
    "rifkin_multiclass": {
        "satimage": Band("table 4.5, satimage", 0, "error %", 11, 18),
        "yeast": Band("table 4.4, yeast", 0, "error % of 5 folds", 40, 54),
        "left_out": Band("table 4.5, yeast", 0, "machines", 10, 10),
        "draws-satimage": Band("Overlaps over draws", 0, "overlap", 0.95, 0.99),
        "draws-yeast": Band("Errors over draws", 0, "error %", 45, 57),
        "weak": Band("tables 4.1 and 4.2", 0, "error %, degree 4", 16, 27),
        "weak_complete": Band("table 4.2, yeast", 0, "error %, degree 4", 38, 60),
        "shuttle": Band("shuttle, sigma", 0, "error %", 0.2, 3.0),
        "news": Band("table 4.5, 20newsgroups", 0, "error %, random splits", 65, 92),
        "shared": Band("Kernel products of an answer", 0, "vectors of the pool", 285, 335),
        "bounds": Band("section 4.4.1", 0, "least squares, exact %", 9, 16),
        "drawn": Band("The sparse rows of table 4.5", 0, "error %", 12, 20),
        "speed": Band("speed beside", 0, "error %", 14, 24),
        "errors": Band("test errors in percent beside", 0, "total loss", 14, 26),
    },
    "kmp": {
        "table1": Band("Table 1: support vectors", 0, "width 0.8", 130, 160),
        "table2": Band("Mushrooms: vectors and errors", 0, "gamma 0.15", 58, 64),
        "table3": Band("Both ends of the ties", 0, "smallest", 65, 90),
        "figure5": Band("Test errors in percent", 0, "sonar", 18, 34),
        "figure6": Band("Figure 6", 1, "wrong", 0, 0),
        "figure7": Band("Figure 7", 1, "wrong", 1, 12),
        "speed": Band("50 of 1000 functions", 0, "times", 1, 1),
        "peer": Band("One thread", 0, "functions", 30, 30),
        "growth": Band("All classes of MNIST", 0, "40", 9, 20),
    },
    "tr132": {
        "figure1": Band("Vectors, and the largest", 1, "l0, lossless", 10, 10),
        "two-class": Band("Table 2: the models", 0, "vectors", 200, 260),
        "zero-norm": Band("Figure 3: readings", 0, "pursuit", 0.8, 0.98),
        "multi-class": Band("Table 2: the models", 0, "test error", 0.08, 0.1),
        "smoothed": Band("Table 2 with smoothed", 0, "vectors", 310, 370),
        "regression": Band("Table 2: the models", 0, "error", 0.45, 0.57),
        "growth": Band("In chunks of 1024", 0, "kept", 100, 100),
        "mnist": Band("The pursuit; target", 0, "all", 0.08, 0.16),
    },
    "rifkin_svmfu": {
        "growth-a9a": Band("Analogue of figure 2-6", 0, "vectors", 670, 740),
        "growth-usps": Band("Analogue of figure 2-6", 0, "vectors", 320, 355),
        "memory": Band("Kernel values as a multiple", 0, "10 MB", 0.3, 0.6),
        "unbounded": Band("The reduced working set", 0, "unbounded", 55, 72),
        "blocks": Band("Section 2.6.3", 0, "blocks solved", 120, 220),
        "advice": Band("Errors, support vectors", 2, "test error", 0.14, 0.2),
        "low-rank": Band("Low rank", 0, "area under ROC", 0.98, 1.0),
        "shrinking": Band("Shrinking", 0, "share of vectors", 0.4, 0.48),
        "ablations": Band("Long steps taken away", 0, "steps", 500, 1100),
        "samples": Band("Two moons", 0, "support vectors", 590, 660),
    },
    "rifkin_rls": {
        "text-ovr": Band("Analogue of table 3.1", 0, "RLS", 0.2, 0.3),
        "text-bch": Band("Analogue of table 3.1", 0, "RLS", 0.2, 0.3),
        "toy": Band("Toy Gaussians", 6, "RLS", 0.03, 0.055),
        "crossplot": Band("Figure 3-12", 1, "linear", 0.93, 0.99),
        "usps": Band("Area under the ROC curve", 0, "random", 0.96, 0.99),
        "exact": Band("Exact fits", 0, "outputs", 10, 10),
        "low-rank": Band("Rectangle against Nystroem", 0, "error", 0.11, 0.17),
        "linear": Band("20newsgroups by date", 0, "error", 0.2, 0.26),
    },
    "rifkin_bounds": {
        "codes": Band("Bounds of a coded model", 1, "leave-one-out", 0.02, 0.06),
        "lambda": Band("One-vs-rest, SVM", 0, "test error", 0.3, 0.5),
        "stability": Band("(5.8) and refits", 2, "refits", 0.03, 0.04),
        "bagging": Band("(5.27) and refits", 0, "alpha of the average", 2.0, 3.5),
        "ivanov": Band("The counterexample", 0, "Ivanov", 1.0, 1.0),
    },
}


def failures(script: str, output: str) -> list[str]:
    """Return what is wrong with the output of a script."""
    ends = [match.end() for match in FOOTER.finditer(output)]
    names = [match[1] for match in FOOTER.finditer(output)]
    bands = BANDS[script]
    if set(names) != set(bands):
        return [f"{script}: parts without a band, or bands without a part: {set(names) ^ set(bands)}"]
    wrong = []
    for name, begin, end in zip(names, [0, *ends], ends, strict=False):
        band = bands[name]
        lines = table_of(output[begin:end].splitlines(), band.title)
        value = numbers(lines[band.line][band.column])[0]
        if not band.low <= value <= band.high:
            wrong.append(
                f"{script} {name}: {band.title!r}, line {band.line}, {band.column!r} is {value:g}, not "
                f"between {band.low:g} and {band.high:g}"
            )
    return wrong


def run_quick(script: str) -> tuple[list[str], float]:
    """Run all parts of a script; what is wrong, and the seconds it took."""
    start = time.perf_counter()
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    ended = subprocess.run(
        [sys.executable, HERE / f"{script}.py", "--quick"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | one_thread,
    )
    seconds = time.perf_counter() - start
    if ended.returncode != 0:
        return [f"{script} ended with {ended.returncode}: {ended.stderr.strip()}"], seconds
    return failures(script, ended.stdout), seconds


def main() -> int:
    """Run the scripts; 1 if one fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "scripts", nargs="*", metavar="SCRIPT", help=f"of {', '.join(BANDS)}; all without one"
    )
    scripts: Sequence[str] = parser.parse_args().scripts or list(BANDS)
    unknown = sorted(set(scripts) - set(BANDS))
    if unknown:
        parser.error(f"SCRIPT: {', '.join(unknown)}: must be one of {', '.join(BANDS)}")
    if not (folder() / "usps.npz").is_file():
        print(f"SKIPPED: {folder()} has no data sets, so the scripts of the papers did not run")
        return 0
    start, wrong = time.perf_counter(), []
    with ThreadPoolExecutor(N_JOBS) as pool:
        for script, (found, seconds) in zip(scripts, pool.map(run_quick, scripts), strict=True):
            print(f"{script}: {len(BANDS[script])} parts, {seconds:.0f} s", flush=True)
            wrong += found
    n_parts = sum(len(BANDS[script]) for script in scripts)
    print(*wrong, sep="\n")
    print(f"{n_parts} parts of the papers ran in {time.perf_counter() - start:.0f} s, {len(wrong)} failed")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
