"""Speed of regularized least squares beside scikit-learn and LAPACK: the last parts of ``rifkin_rls.py``.

The fits of one table are timed in turns, so that a busy moment of the machine meets all of them; seconds are
medians over the rounds. Each table has the operations that the fit cannot do without (``model``), as seconds
at the speed of the machine's matrix product, and the share of that speed which was reached.
"""

from __future__ import annotations

import os
import statistics
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from common import Report, Rows, load
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel

from svmarrow.least_squares import LinearRLSClassifier, LowRankRLSClassifier, fit_targets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

#: Sets of the exact fits: gamma, alpha, rows, rounds.
EXACT = {
    "usps": (1 / 128, 0.1, None, 3),
    "mnist": (0.01, 0.1, 10_000, 3),
    # Of letter's 16,000 rows: the OpenBLAS of SciPy 1.17 crashes there with two threads, in both peers.
    "letter": (0.05, 0.1, 12_000, 1),
}


@lru_cache(maxsize=1)
def newsgroups() -> Rows:
    """20newsgroups by date, tf-idf."""
    rows = load("news20_bydate")
    tfidf = TfidfTransformer(sublinear_tf=True).fit(rows.X)
    return Rows(tfidf.transform(rows.X).tocsr(), rows.y, tfidf.transform(rows.X_test).tocsr(), rows.y_test)


def rounds(works: dict[Any, Callable[[], Any]], repeat: int) -> tuple[dict[Any, float], dict[Any, Any]]:
    """Median seconds and last result of each, timed in turns."""
    times: dict[Any, list[float]] = {name: [] for name in works}
    results: dict[Any, Any] = {}
    for _ in range(repeat):
        for name, work in works.items():
            results.pop(name, None)
            start = time.perf_counter()
            results[name] = work()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(all_) for name, all_ in times.items()}, results


def peaks(report: Report, options: argparse.Namespace) -> tuple[float, float]:
    """GFLOP/s of NumPy's matrix product in double and single precision, said on the page."""
    size = 800 if options.quick else 3000
    best = []
    for dtype in (np.float64, np.float32):
        A = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
        times = [rounds({"": lambda A=A: A @ A}, 1)[0][""] for _ in range(5)]
        best.append(2 * size**3 / min(times) / 1e9)
    report.say(
        f"{len(os.sched_getaffinity(0))} cores; NumPy's matrix product reaches {best[0]:.0f} GFLOP/s in "
        f"double and {best[1]:.0f} in single precision."
    )
    return best[0], best[1]


def exact(report: Report, options: argparse.Namespace) -> None:
    """(K + alpha I) c = y."""
    double, single = peaks(report, options)
    lines, model = [], []
    for name, (gamma, alpha, limit, repeat) in EXACT.items():
        rows = load(name)
        X, y = rows.X[:limit], rows.y[:limit]
        if options.quick:
            X, y, repeat = X[:1200], y[:1200], 1
        X = X / 255.0 if name == "mnist" else X
        Y = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
        n, d, q = *X.shape, Y.shape[1]
        kernel = []

        def lapack(
            X: np.ndarray = X, Y: np.ndarray = Y, a: float = alpha, g: float = gamma, kernel: list = kernel
        ) -> np.ndarray:
            start = time.perf_counter()
            K = rbf_kernel(X, gamma=g)
            K[np.diag_indices(len(X))] += a
            kernel.append(time.perf_counter() - start)
            factor = scipy.linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
            return scipy.linalg.cho_solve(factor, Y, check_finite=False)

        def ours(
            leave_one_out: bool, X: np.ndarray = X, Y: np.ndarray = Y, a: float = alpha, g: float = gamma
        ) -> Any:
            return fit_targets(X, Y, a, gamma=g, leave_one_out=leave_one_out)

        single_rows = X.astype(np.float32)
        took, results = rounds(
            {
                "ours": lambda ours=ours: ours(False).coef,
                "float32": lambda ours=ours, X=single_rows: ours(False, X).coef,
                "left": lambda ours=ours: ours(True).coef,
                "lapack": lapack,
                "ridge": lambda X=X, Y=Y, a=alpha, g=gamma: (
                    KernelRidge(alpha=a, kernel="rbf", gamma=g).fit(X, Y).dual_coef_
                ),
            },
            repeat,
        )
        factor = took["lapack"] - statistics.median(kernel)
        K = rbf_kernel(X, gamma=gamma)
        K[np.diag_indices(n)] += alpha
        residuals = [float(np.abs(K @ results[which] - Y).max()) for which in ("ours", "lapack", "ridge")]
        del K, results
        lines.append(
            [name, n, q]
            + [took[which] for which in ("ours", "float32", "left", "lapack")]
            + [factor, took["ridge"], took["lapack"] / took["ours"], took["ridge"] / took["ours"], *residuals]
        )
        work = [n * n * d / 1e9, n**3 / 3e9]
        seconds = [work[0] / double + work[1] / single, sum(work) / double]
        model.append([name, n, d, *work, *seconds, took["ours"], *[s / took["ours"] for s in seconds]])
    report.table(
        "Exact fits, seconds; the last three columns are the largest residuals",
        [
            "set",
            "n",
            "outputs",
            "svmarrow",
            "float32 rows",
            "with leave-one-out",
            "rbf_kernel + Cholesky",
            "Cholesky alone",
            "KernelRidge",
            "LAPACK / svmarrow",
            "KernelRidge / svmarrow",
            "svmarrow's",
            "LAPACK's",
            "KernelRidge's",
        ],
        lines,
    )
    report.table(
        "Cost model n^2 d + n^3 / 3 operations (half of a symmetric kernel, a factor)",
        [
            "set",
            "n",
            "d",
            "kernel, GFLOP",
            "factor, GFLOP",
            "model, factor in single",
            "model, all in double",
            "svmarrow, seconds",
            "share of the peak",
            "share, all in double",
        ],
        model,
    )
    report.say(
        "The first share is of the peaks of both precisions; the second is what a library reaches "
        "that stays in double precision. Leave-one-out values need a factor and an inverse in double "
        "precision."
    )
    rows = load("letter")
    Y = np.where(rows.y[:, None] == np.unique(rows.y), 1.0, -1.0)
    gamma, alpha, _, _ = EXACT["letter"]
    count = 1200 if options.quick else len(Y)
    all_rows = {
        False: lambda: fit_targets(rows.X[:count], Y[:count], alpha, gamma=gamma, leave_one_out=False).coef,
        True: lambda: fit_targets(rows.X[:count], Y[:count], alpha, gamma=gamma, leave_one_out=True).coef,
    }
    took, _ = rounds(all_rows, 1)
    report.say(
        f"All {count:,} samples of letter take {took[False]:.1f} s, {took[True]:.1f} s with "
        "leave-one-out values. SciPy's LAPACK with two threads crashes at this size, so the table "
        "has 12,000."
    )
    worst = {"LAPACK": min(line[9] for line in lines), "KernelRidge": min(line[10] for line in lines)}
    report.say(
        "The targets are the speed of the kernel and LAPACK's Cholesky factor, and twice the speed "
        f"of KernelRidge. The smallest ratios are {worst['LAPACK']:.2f} "
        f"({'met' if worst['LAPACK'] >= 1 else 'not met'}) and {worst['KernelRidge']:.2f} "
        f"({'met' if worst['KernelRidge'] >= 2 else 'not met'})."
    )
    report.numbers["exact"] = {"seconds": lines, "model": model}


def low_rank(report: Report, options: argparse.Namespace) -> None:
    """Rectangle with 2000 points."""
    double, _ = peaks(report, options)
    lines, model = [], []
    for name in ("mnist", "cod_rna"):
        rows = load(name)
        if name == "mnist":
            X, y, T, t, gamma = rows.X / 255, rows.y, rows.X_test / 255, rows.y_test, 0.02
        else:
            order = np.random.default_rng(0).permutation(len(rows.y))
            X, y = ((rows.X - rows.X.mean(axis=0)) / rows.X.std(axis=0))[order], rows.y[order]
            X, y, T, t, gamma = X[:50_000], y[:50_000], X[50_000:], y[50_000:], 0.5
        m = 100 if options.quick else 2000
        if options.quick:
            X, y = X[:2000], y[:2000]

        def ours(X: np.ndarray = X, y: np.ndarray = y, m: int = m, g: float = gamma) -> Any:
            model = LowRankRLSClassifier(m, alpha=0.1, gamma=g, fit_intercept=True, random_state=0)
            return model.fit(X, y)

        def peer(X: np.ndarray = X, y: np.ndarray = y, m: int = m, g: float = gamma) -> tuple[Any, Any]:
            features = Nystroem(gamma=g, n_components=m, random_state=0).fit(X)
            return features, RidgeClassifier(alpha=0.1).fit(features.transform(X), y)

        took, results = rounds({"ours": ours, "peer": peer}, 1 if options.quick else 3)
        features, ridge = results["peer"]
        errors = [
            float((results["ours"].predict(T) != t).mean()),
            float((ridge.predict(features.transform(T)) != t).mean()),
        ]
        lines.append([name, len(X), m, *took.values(), took["peer"] / took["ours"], *errors])
        n, d = X.shape
        work = [2 * n * m * d / 1e9, n * m * m / 1e9]
        seconds = sum(work) / double
        model.append([name, n, d, m, *work, seconds, took["ours"], seconds / took["ours"]])
    report.table(
        "Rectangle against Nystroem + RidgeClassifier, seconds",
        ["set", "n", "m", "svmarrow", "scikit-learn", "ratio", "error", "error, scikit-learn"],
        lines,
    )
    report.table(
        "Cost model 2 n m d + n m^2 operations at the speed of the matrix product in double precision",
        [
            "set",
            "n",
            "d",
            "m",
            "kernel, GFLOP",
            "sums, GFLOP",
            "model",
            "svmarrow, seconds",
            "share of the peak",
        ],
        model,
    )
    least = min(line[5] for line in lines)
    same = all(line[6] <= line[7] + 0.002 for line in lines)
    report.say(
        "The target is twice the speed at the same error or a lower one (0.002). The smallest ratio "
        f"is {least:.2f}: {'met' if least >= 2 and same else 'not met'}."
    )
    report.numbers["low rank"] = {"seconds": lines, "model": model}


def linear(report: Report, options: argparse.Namespace) -> None:
    """20newsgroups."""
    rows = newsgroups()
    chosen = slice(None, None, 10 if options.quick else None)
    X, y = rows.X[chosen], rows.y[chosen]
    lines = []
    for alpha in (0.1, 0.3, 1.0):
        took, results = rounds(
            {
                "svmarrow": lambda a=alpha: LinearRLSClassifier(a, fit_intercept=True, tol=1e-4).fit(X, y),
                "RidgeClassifier": lambda a=alpha: RidgeClassifier(alpha=a, tol=1e-4).fit(X, y),
            },
            1 if options.quick else 3,
        )
        errors = [1 - float(results[name].score(rows.X_test, rows.y_test)) for name in took]
        ratio = took["RidgeClassifier"] / took["svmarrow"]
        lines.append([alpha, results["svmarrow"].solver_, *took.values(), ratio, *errors])
    report.table(
        "20newsgroups by date, tf-idf, 20 outputs: seconds",
        ["alpha", "solver", "svmarrow", "RidgeClassifier", "ratio", "error", "error, RidgeClassifier"],
        lines,
    )
    report.numbers["linear"] = lines
