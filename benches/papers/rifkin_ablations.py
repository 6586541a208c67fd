"""Parts of the SVM solver taken away, one at a time: the thesis's (Rifkin 2002, chapter 2) and our own.

Parts of ``rifkin_svmfu.py``.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, load, processor_times
from rifkin_rows import adult, four, scaled
from sklearn import svm
from sklearn.datasets import make_moons

from svmarrow import SVC

if TYPE_CHECKING:
    import argparse

#: Rows of the kernel matrix that the small cache of section 2.6.3 holds.
CACHED_ROWS = 256


def figure_2_5(
    K: np.ndarray, y: np.ndarray, C: float, *, reduced: bool, tolerance: float = 1e-3
) -> tuple[int, int, int, np.ndarray]:
    """The algorithm of figure 2-5, or always over all rows: steps, entries touched, returns, b = y alpha."""
    n, beta, f = len(y), np.zeros(len(y)), -y.astype(float)
    lower, upper = np.minimum(0, C * y), np.maximum(0, C * y)
    everything = np.arange(n)
    W, before = everything, beta.copy()
    steps = entries = returns = full = 0
    while True:
        here, at = f[W], beta[W]
        i = W[np.where(at < upper[W], here, np.inf).argmin()]
        j = W[np.where(at > lower[W], here, -np.inf).argmax()]
        entries += len(W)
        if f[j] - f[i] > tolerance:
            step = (f[j] - f[i]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
            rooms = (upper[i] - beta[i], beta[j] - lower[j])
            step = min(step, *rooms)
            beta[i] = upper[i] if step == rooms[0] else beta[i] + step
            beta[j] = lower[j] if step == rooms[1] else beta[j] - step
            f[W] += step * (K[i, W] - K[j, W])
            entries += len(W)
            steps += 1
            if len(W) == n and reduced:
                full += 1
                if full == 100:
                    free = np.flatnonzero((beta > lower) & (beta < upper))
                    if len(free) > 1:
                        W, before = free, beta.copy()
                    full = 0
        elif len(W) < n:
            rest = np.setdiff1d(everything, W, assume_unique=True)
            f[rest] += K[np.ix_(rest, W)] @ (beta[W] - before[W])
            entries += len(rest) * len(W)
            returns += 1
            W = everything
        else:
            return steps, entries, returns, beta


def unbounded(report: Report, options: argparse.Namespace) -> None:
    """The reduced working set."""
    size = 600 if options.quick else 2000
    report.say(
        f"{size} samples. *Entries* are those of gradients that steps and returns to the full set change."
    )
    cases: list[tuple[str, Any, float, float]] = [
        ("a9a", (adult(size)[0].toarray(), adult(size)[1]), 0.05, 1.0),
        ("a9a", (adult(size)[0].toarray(), adult(size)[1]), 0.05, 100.0),
        ("usps", four(size)[:2], 0.02, 10.0),
        ("magic", scaled("magic", size)[:2], 0.2, 1.0),
        ("magic", scaled("magic", size)[:2], 0.2, 100.0),
    ]
    table = []
    for name, (X, y), gamma, C in cases:
        square = (X**2).sum(axis=1)
        K = np.exp(-gamma * np.maximum(square[:, None] + square - 2 * X @ X.T, 0))
        works = [
            lambda K=K, y=y, C=C, reduced=reduced: figure_2_5(K, y, C, reduced=reduced)
            for reduced in (True, False)
        ]
        times, _, (with_set, without) = processor_times(works, 1 if options.quick else 3)
        kernel = SVC(kernel="precomputed", C=C, n_jobs=1).fit(K, y)
        free = int(((with_set[3] != 0) & (np.abs(with_set[3]) < C)).sum())
        apart = abs(_dual(K, y, with_set[3]) / kernel.certificate_.dual - 1)
        steps = [with_set[0], without[0], int(kernel.n_iter_[0])]
        ratios = [with_set[1] / without[1], times[0] / times[1]]
        table.append([name, C, free, *steps, with_set[2], *ratios, apart])
    report.table(
        "The reduced working set of figure 2-5",
        [
            "set",
            "C",
            "unbounded",
            "steps with",
            "without",
            "steps of svmarrow",
            "returns",
            "entries with / without",
            "seconds with / without",
            "objective off svmarrow's by",
        ],
        table,
    )
    saved, fewer = [row[7] for row in table], [row[5] / row[4] for row in table]
    more = [row[3] / row[4] for row in table]
    report.say(
        f"The reduced working set changes {min(saved):.2f} to {max(saved):.2f} of the entries and "
        f"takes {min(more):.1f} to {max(more):.1f} times as many steps. svmarrow has no such set: it "
        "selects the second sample of a pair to second order, and its whole fits take "
        f"{min(fewer):.2f} to {max(fewer):.2f} of the steps without the set."
    )
    report.numbers["unbounded"] = table


def blocks(report: Report, options: argparse.Namespace) -> None:
    """Section 2.6.3: blocks that do not hold the unbounded vectors, with a large and a small cache."""
    sizes = (32, 128, 1024) if options.quick else (32, 64, 128, 256, 512, 1024, 2048)
    lines: list[list[Any]] = []
    for name, (X, y), gamma, C in (
        ("usps", four(2000 if options.quick else None)[:2], 0.02, 10.0),
        ("magic", scaled("magic", 2000 if options.quick else 12_000)[:2], 0.2, 10.0),
    ):
        n, columns = X.shape
        for cache in ("all", CACHED_ROWS):
            works = []
            megabytes = 4000 if cache == "all" else math.ceil(4e-6 * n * (columns + cache))
            for block in sizes:
                machine = SVC(C=C, gamma=gamma, cache_size=megabytes, n_jobs=1)
                machine._tuning = {"block": block, "max_block": block, "cheap_kernel": 0}
                works.append(lambda machine=machine, X=X, y=y: machine.fit(X, y).certificate_)
            times, _, certificates = processor_times(works, 1)
            for block, found, seconds in zip(sizes, certificates, times, strict=True):
                solved = found.machines[0]
                free = solved.support - solved.bounded
                share = found.kernel_values / n**2
                lines.append(
                    [name, free, cache, block, solved.rounds, solved.iterations, f"{share:.3f}", seconds]
                )
    report.table(
        "Section 2.6.3",
        [
            "set",
            "unbounded",
            "cached rows",
            "block",
            "blocks solved",
            "steps",
            "kernel values / n^2",
            "seconds",
        ],
        lines,
    )
    report.numbers["blocks"] = lines


def _dual(K: np.ndarray, y: np.ndarray, beta: np.ndarray) -> float:
    return float(beta @ y - 0.5 * beta @ K @ beta)


def shrinking(report: Report, options: argparse.Namespace) -> None:
    """With and without shrinking, over C."""
    from matplotlib.figure import Figure

    size = 1500 if options.quick else 8000
    costs = (1.0, 100.0) if options.quick else (0.1, 1.0, 10.0, 100.0)
    page = Figure(figsize=(6, 4.5))
    axis, table = page.subplots(), []
    for name, (X, y), gamma in (
        ("a9a", adult(size)[:2], 0.05),
        ("cod_rna", scaled("cod_rna", size)[:2], 0.1),
        ("magic", scaled("magic", size)[:2], 0.1),
    ):
        for C in costs:
            works = [
                lambda X=X, y=y, C=C, gamma=gamma, on=on: SVC(C=C, gamma=gamma, shrinking=on, n_jobs=1).fit(
                    X, y
                )
                for on in (True, False)
            ]
            _, rounds, (on, off) = processor_times(works, 1 if options.quick else 3)
            theirs = [
                lambda X=X, y=y, C=C, gamma=gamma, on=on: svm.SVC(C=C, gamma=gamma, shrinking=on).fit(X, y)
                for on in (True, False)
            ]
            # LIBSVM at C = 100 takes minutes; its figure is for orientation.
            peer = processor_times(theirs, 1)[0] if C <= 10 else None
            ratio = float(np.median([a / b for a, b in rounds]))
            table.append(
                [
                    name,
                    C,
                    on.support_.size / len(y),
                    float(np.median([a for a, _ in rounds])),
                    ratio,
                    on.certificate_.kernel_values / off.certificate_.kernel_values,
                    abs(on.certificate_.dual / off.certificate_.dual - 1),
                    "not run" if peer is None else peer[0] / peer[1],
                ]
            )
        own = [row for row in table if row[0] == name]
        axis.semilogx([row[1] for row in own], [row[4] for row in own], "o-", label=name)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set(xlabel="C", ylabel="seconds with shrinking / without", title="shrinking")
    axis.legend()
    report.figure(page, "shrinking")
    report.table(
        f"Shrinking, {size} rows",
        [
            "set",
            "C",
            "share of vectors",
            "seconds with",
            "seconds with / without",
            "kernel values with / without",
            "objectives apart",
            "scikit-learn: with / without",
        ],
        table,
    )
    report.numbers["shrinking"] = table


def long_steps(report: Report, options: argparse.Namespace) -> None:
    """Direct steps and walks from face to face, and the largest block."""
    quick = options.quick
    report.say(
        "Newton steps solve for all unbounded vectors of a block at once where SMO steps have cost as"
        " much; blocks of few free variables use an active-set method."
    )
    size = 600 if quick else 4000
    cases: list[tuple[str, Any, float, float]] = [
        (name, scaled(name, size)[:2] if name == "magic" else adult(size)[:2], gamma, C)
        for name, gamma, C in (
            ("magic", 0.2, 1.0),
            ("magic", 0.2, 1e3),
            ("magic", 0.2, 1e4),
            ("magic", 0.02, 1e4),
            ("a9a", 0.05, 1.0),
            ("a9a", 0.05, 1e3),
        )
    ]
    banana = load("ratsch_banana")
    cases += [("banana", (banana.X[:400], banana.y[:400]), 1.0, C) for C in (1e2, 1e4)]
    without = {
        "both": {},
        "no Newton steps": {"newton_steps": False},
        "no active-set method": {"active_set": False},
    }
    without["neither"] = {"newton_steps": False, "active_set": False}
    lines = []
    for name, (X, y), gamma, C in cases:
        works = []
        for off in without.values():
            machine = SVC(C=C, gamma=gamma, n_jobs=1)
            machine._tuning = off
            works.append(lambda machine=machine, X=X, y=y: machine.fit(X, y).certificate_)
        times, rounds, found = processor_times(works, 1 if quick else 3)
        ratios = [float(np.median([of[at] / of[0] for of in rounds])) for at in range(1, 4)]
        steps = [sum(m.iterations for m in c.machines) for c in found]
        apart = max(abs(c.dual / found[0].dual - 1) for c in found)
        lines.append(
            [name, len(y), gamma, C, times[0], *ratios, steps[0], *(s / steps[0] for s in steps[1:])]
        )
        lines[-1].append(apart)
    report.table(
        "Long steps taken away: seconds of one thread, and multiples of them; steps, and multiples of them",
        [
            "set", "samples", "gamma", "C", "seconds", *(f"{name}, times" for name in list(without)[1:]),
            "steps", *(f"{name}, times" for name in list(without)[1:]), "objectives apart",
        ],
        lines,
    )  # fmt: skip
    blocks = []
    mnist = load("mnist", np.float32)
    ijcnn = load("ijcnn1", np.float32)
    rows, many = (1000, 4000) if quick else (10_000, 100_000)
    moons = make_moons(many, noise=0.3, random_state=0)
    for name, X, y, gamma, C in (
        ("mnist, even against odd", mnist.X[:rows] / 255, mnist.y[:rows] % 2, 0.02, 10.0),
        ("ijcnn1", ijcnn.X[: 5 * rows], ijcnn.y[: 5 * rows], 1.0, 10.0),
        ("moons", *moons, 1.0, 1.0),
    ):
        works = []
        for largest in (1024, 2048, 4096):
            machine = SVC(C=C, gamma=gamma, n_jobs=1)
            machine._tuning = {"max_block": largest}
            works.append(lambda machine=machine, X=X, y=y: machine.fit(X, y).certificate_)
        _, rounds, found = processor_times(works, 1 if quick else 3)
        least = [min(of[at] for of in rounds) for at in range(3)]
        counts = [sum(m.rounds for m in c.machines) for c in found]
        blocks.append([name, len(y), *least, *counts])
    report.table(
        "Largest block: least seconds of one thread, and blocks solved",
        ["set", "samples", "1,024", "2,048 (own)", "4,096", "blocks with 1,024", "2,048", "4,096"],
        blocks,
    )
    report.numbers["ablations"] = {"steps": lines, "blocks": blocks}


def samples(report: Report, options: argparse.Namespace) -> None:
    """Large machines from nothing and from a sample of their rows, with sums over all pairs and by boxes."""
    quick = options.quick
    report.say(
        "Models of 80,000 samples and more whose kernel values are computed again instead of stored "
        "are solved for a quarter of the samples with four times the C first, recursively; the "
        "outputs predict which coefficients are at a bound. Sums of Gaussians in one to three "
        "features are evaluated as polynomials in boxes where that costs less than the kernel values "
        "of all pairs. `predict` is `decision_function` of the training samples."
    )
    lines = []
    for rows in (3000, 6000) if quick else (100_000, 300_000, 1_000_000):
        X, y = make_moons(rows, noise=0.3, random_state=0)
        X = X.astype(np.float32)
        line: list[float] = [rows]
        found = []
        for fast, sampled in ((False, False), (False, True), (True, False), (True, True)):
            machine = SVC(C=10, gamma=2)
            limit = (rows if quick else 80_000) if sampled else 10**9
            machine._tuning = {"min_subsampled": limit, "fast_sums": fast}
            start = time.perf_counter()
            machine.fit(X, y)
            line.append(time.perf_counter() - start)
            found.append(machine.certificate_.machines[0])
        start = time.perf_counter()
        machine.decision_function(X)
        line += [time.perf_counter() - start, found[3].support]
        apart = max(f.dual for f in found) / min(f.dual for f in found) - 1
        lines.append([*line, apart])
    report.table(
        "Two moons, noise .3, C 10, gamma 2: seconds",
        [
            "samples", "all pairs, from nothing", "from a sample", "boxes, from nothing", "from a sample",
            "predict", "support vectors", "objectives apart",
        ],
        lines,
    )  # fmt: skip
    report.numbers["samples"] = lines
