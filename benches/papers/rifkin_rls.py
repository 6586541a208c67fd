"""Regularized least squares beside the thesis (Rifkin, MIT 2002, chapter 3 and section 5.3), and its speed.

Parts:

* ``text-ovr``, ``text-bch``: tables 3.1 and 3.3 in kind, on 20newsgroups by date: least squares against a
  linear SVM, one-vs-rest and the 63-column BCH code, several sizes;
* ``toy``: figures 3-2 to 3-9, Gaussians with and without outliers;
* ``crossplot``: figures 3-10 and 3-12 in numbers;
* ``usps``: figures 3-10, 3-12, 3-17, 3-19, 3-21 and 3-23 to 3-25, "4" against the rest, and the conclusions
  of section 3.7.3;
* ``exact``, ``low-rank``, ``linear``: fits beside scikit-learn and LAPACK, and the cost model
  (``rls_speed.py``).

A full run takes about a quarter of an hour on two cores, most of it in the peers.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from common import Report, Rows, arguments, chunk_average, load, processor_times, run
from rls_speed import exact, linear, low_rank, newsgroups
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from svmarrow import SVC, CodedClassifier, RLSClassifier, RLSRegressor, as_expansion
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
)
from svmarrow.multiclass import Code, make_code

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

PARTS = ("text-ovr", "text-bch", "toy", "crossplot", "usps", "exact", "low-rank", "linear")
#: Table 3.1 as printed: (SVM, RLS) for 800, 250, 100 and 30 documents a class.
TABLE_3_1 = {
    "ovr": ((0.131, 0.129), (0.167, 0.165), (0.214, 0.211), (0.311, 0.309)),
    "BCH 63": ((0.125, 0.129), (0.164, 0.165), (0.213, 0.213), (0.312, 0.316)),
}
SIZES = (800, 250, 100, 30)
#: Values of C from which that of the SVM on USPS is chosen.
COSTS = (1.0, 10.0, 100.0)
#: Table 3.3 as printed: seconds of the SVM over seconds of least squares.
TABLE_3_3 = {"ovr": 10045 / 1309, "BCH 63": 104027 / 3913}


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def text(report: Report, options: argparse.Namespace, code: str) -> None:
    """Tables 3.1 and 3.3 for one code."""
    matrix = 2 * np.eye(20) - 1
    if code != "ovr":
        matrix = make_code("bch", 20, random_state=0).matrix.astype(np.float64)
    table_of(report, options, code, matrix, by_date=False)
    table_of(report, options, code, matrix, by_date=True)
    report.say(
        "In the split by date the test documents are later than the training documents, and errors "
        "are larger than on random splits. LIBLINEAR has no kernel rows to share; *SVC* has a "
        "tolerance of .01."
    )


def table_of(
    report: Report, options: argparse.Namespace, code: str, matrix: np.ndarray, *, by_date: bool
) -> None:
    """Both tables on one split."""
    rows = newsgroups() if by_date else shuffled(newsgroups())
    alpha, intercept = (0.3, True) if by_date else (1.0, False)
    classes = np.unique(rows.y)
    truth = np.searchsorted(classes, rows.y_test)
    lines, ratios = [], []
    for size, printed in zip(SIZES, TABLE_3_1[code], strict=True):
        if options.quick and size != SIZES[-1]:
            continue
        random = np.random.default_rng(size)
        parts = [np.flatnonzero(rows.y == k) for k in classes]
        chosen = np.sort(np.concatenate([random.permutation(part)[:size] for part in parts]))
        A, targets = rows.X[chosen], matrix[np.searchsorted(classes, rows.y[chosen])]
        least = LinearRLSRegressor(alpha, tol=1e-4, fit_intercept=intercept, n_jobs=1)
        hinge = LinearSVC(C=1.0, loss="hinge", max_iter=3000, tol=1e-2, fit_intercept=intercept)
        # Its linear kernel has rows, which all machines share, as the thesis's SVM has them.
        own = CodedClassifier(
            SVC(kernel="linear", C=1.0, tol=1e-2, fit_intercept=intercept, n_jobs=1), Code(matrix), n_jobs=1
        )
        (ours, svm, rows_of), _, (model, machines, coded) = processor_times(
            [
                lambda A=A, targets=targets, least=least: least.fit(A, targets),
                lambda A=A, targets=targets, hinge=hinge: [
                    clone(hinge).fit(A, column) for column in targets.T
                ],
                lambda A=A, labels=rows.y[chosen], own=own: own.fit(A, labels),
            ],
            1,
        )
        scores = np.column_stack([machine.decision_function(rows.X_test) for machine in machines])
        # Without zeros in the code, the nearest row has the largest inner product.
        found = (scores, model.predict(rows.X_test), coded.outputs(rows.X_test))
        wrong = [(f @ matrix.T).argmax(axis=1) != truth for f in found]
        # McNemar: documents that only one of them gets wrong.
        more = float(wrong[1].sum() - wrong[0].sum()) / max(1.0, float((wrong[0] != wrong[1]).sum()) ** 0.5)
        lines.append([size, len(chosen), *(float(w.mean()) for w in wrong), more, *printed])
        ratios.append([size, targets.shape[1], model.solver_, ours, svm, svm / ours, rows_of, rows_of / ours])
    split = "by date, alpha .3, intercept" if by_date else "random split, lambda n = 1, no intercept"
    report.table(
        f"Analogue of table 3.1, {code}, {split}: error on 20newsgroups",
        ["a class", "samples", "SVM", "RLS", "SVC", "standard errors apart", "SVM, printed", "RLS, printed"],
        lines,
    )
    report.table(
        f"Analogue of table 3.3, {code}, {split}: seconds to train; printed, all sizes together: "
        f"{TABLE_3_3[code]:.1f} times",
        ["a class", "columns", "solver", "RLS", "SVM", "SVM / RLS", "SVC", "SVC / RLS"],
        ratios,
    )
    worse = sum(line[5] > 2 for line in lines)
    report.say(
        f"RLS is worse than the SVM by more than two paired standard errors at {worse} of {len(lines)} sizes."
    )
    report.numbers[f"text {code}, {split}"] = {"errors": lines, "seconds": ratios}


def shuffled(rows: Rows) -> Rows:
    """All documents dealt out anew, with the thesis's number of test documents."""
    X, y = rows.all()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.sort(order[3993:]), np.sort(order[:3993])
    X = X.tocsr()
    return Rows(X[train], y[train], X[test], y[test])


def gaussians(figure: int, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes of figures 3-2 to 3-9, without outliers."""
    apart = 3.0 if figure in (2, 3) else 1.5
    shape = np.eye(2) if figure in (2, 4) else np.array([[1.5, 1.0], [1.0, 1.0]])
    X = random.multivariate_normal([0, 0], shape, 2 * count)
    y = np.repeat([-1, 1], count)
    return X + np.outer(y, [apart, -apart / 2]), y


def outliers(figure: int, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """So many outliers in one class or in both, figures 3-6 to 3-9."""
    if figure < 6:
        return np.zeros((0, 2)), np.zeros(0, dtype=int)
    at = np.array([8.0, -4.0]) if figure in (6, 7) else np.array([-4.0, -12.0])
    X, y = at + 0.3 * random.normal(size=(count, 2)), np.full(count, -1)
    if figure in (7, 9):
        X, y = (
            np.vstack([X, -at + 0.3 * random.normal(size=(count, 2))]),
            np.concatenate([y, np.full(count, 1)]),
        )
    return X, y


def toy(report: Report, _options: argparse.Namespace) -> None:
    """Figures 3-2 to 3-9."""
    report.say(
        "Each class has 100 training and 1,000 test samples; five outliers are added to one class or "
        "to both. There is no b; lambda is .1, .01 and .001 (alpha = lambda n, C = 1 / (2 lambda n))."
        " Fainter lines are the margin of the SVM. Errors are measured on test samples without "
        "outliers and with 50 more for each five."
    )
    from matplotlib.figure import Figure

    page = Figure(figsize=(18, 9))
    axes = page.subplots(2, 4)
    table = []
    for number, axis in zip(range(2, 10), axes.flat, strict=True):
        random = np.random.default_rng(number)
        X, y = gaussians(number, random, 100)
        extra, sign = outliers(number, random, 5)
        X, y = np.vstack([X, extra]), np.concatenate([y, sign])
        T, t = gaussians(number, random, 1000)
        far, far_sign = outliers(number, random, 50)
        both = np.vstack([T, far]), np.concatenate([t, far_sign])
        axis.scatter(*X.T, c=np.where(y > 0, "tab:blue", "tab:orange"), s=6)
        grid = np.linspace(-12, 12, 50)
        for weight, style in zip((0.1, 0.01, 0.001), ("-", "--", ":"), strict=True):
            alpha = weight * len(y)
            least = LinearRLSClassifier(alpha, fit_intercept=False).fit(X, y)
            machine = SVC(C=1 / (2 * alpha), kernel="linear", fit_intercept=False).fit(X, y)
            for model, colour in ((least, "black"), (machine, "tab:red")):
                w0, w1 = np.ravel(model.coef_)
                if abs(w1) > 1e-12:
                    axis.plot(grid, -w0 * grid / w1, style, c=colour)
                    for level in (1.0, -1.0) if model is machine else ():
                        axis.plot(grid, (level - w0 * grid) / w1, style, c=colour, alpha=0.25)
            errors = [1 - model.score(*rows) for rows in ((T, t), both) for model in (least, machine)]
            table.append([f"3-{number}", weight, *errors])
        axis.set(title=f"figure 3-{number}", xlim=(-12, 12), ylim=(-14, 12))
    axes[0, 0].plot([], [], "k", label="RLS")
    axes[0, 0].plot([], [], c="tab:red", label="SVM")
    axes[0, 0].legend(title="lambda .1, .01, .001: solid, dashed, dotted")
    page.tight_layout()
    report.figure(page, "toy")
    report.table(
        "Toy Gaussians: error on 2000 rows, and on these with outliers",
        ["figure", "lambda", "RLS", "SVM", "RLS, with outliers", "SVM, with outliers"],
        table,
    )

    def change(column: int) -> float:
        figures = {row[0] for row in table}
        return max(float(np.ptp([row[column] for row in table if row[0] == figure])) for figure in figures)

    claims = {
        "figures 3-2 to 3-5: both err alike to within a row of 2000": all(
            abs(row[2] - row[3]) <= 1 / 2000 + 1e-9 for row in table if row[0] < "3-6"
        ),
        "figure 3-8: RLS is the less sensitive to lambda": np.ptp([r[2] for r in table if r[0] == "3-8"])
        <= np.ptp([r[3] for r in table if r[0] == "3-8"]),
        "figure 3-8, lambda .1: the SVM errs less": next(r[3] < r[2] for r in table if r[:2] == ["3-8", 0.1]),
        "figure 3-8, lambda .001: RLS errs less": next(r[2] < r[3] for r in table if r[:2] == ["3-8", 0.001]),
    }
    lines = [[claim, "held" if held else "not held"] for claim, held in claims.items()]
    report.table("Claims of section 3.4", ["claim", "here"], lines)
    report.say(f"Largest change of the error along lambda: RLS {change(2):.4f}, SVM {change(3):.4f}.")
    report.numbers["toy"] = {"table": table, "claims": claims}


def usps(report: Report, options: argparse.Namespace) -> None:
    """The image part of section 3.7.3."""
    from matplotlib.figure import Figure

    rows = load("usps")
    X, y = rows.X, np.where(rows.y == 4, 1, -1)
    T, t = rows.X_test, np.where(rows.y_test == 4, 1, -1)
    if options.quick:
        X, y = X[:1200], y[:1200]
    gamma, sizes = 1 / 50, (256, 128) if options.quick else (1024, 512, 256, 128)
    runs = 2 if options.quick else 10
    order = np.random.default_rng(0).permutation(len(y))
    own, held = order[len(y) // 4 :], order[: len(y) // 4]

    def best(machines: list[Any]) -> Any:
        """The machine with the largest area on a quarter of the training rows."""
        areas = [roc_auc_score(y[held], m.fit(X[own], y[own]).decision_function(X[held])) for m in machines]
        return clone(machines[int(np.argmax(areas))])

    rls, machine = full_machines(X, y, gamma)
    alpha = rls.alpha
    (slow, fast), _, (full, fitted) = processor_times([lambda: rls.fit(X, y), lambda: machine.fit(X, y)], 1)
    svm, exact = fitted.decision_function(T), full.decision_function(T)

    def low(method: str, size: int, selection: Any, seed: int, alpha: float) -> Any:
        return LowRankRLSClassifier(
            size,
            alpha=alpha,
            gamma=gamma,
            method="subset_of_regressors" if method == "rectangle" else method,
            selection=selection,
            random_state=seed,
        )

    methods = ("rectangle", "subset", "nystrom")
    alphas = {
        (method, size): best(
            [low(method, size, "random", 100, a) for a in (1e-3, 1e-2, 0.1, 1, 10, 100)]
        ).alpha
        for method in methods
        for size in sizes
    }

    def fits(method: str, size: int, selection: Any, seed: int) -> Any:
        return low(method, size, selection, seed, alphas[method, size]).fit(X, y)

    random: dict[tuple[str, int], list[np.ndarray]] = {
        (method, size): [fits(method, size, "random", seed).decision_function(T) for seed in range(runs)]
        for method in methods
        for size in sizes
    }
    shared = {
        (method, size): [
            low(method, size, "random", seed, alpha).fit(X, y).decision_function(T) for seed in range(3)
        ]
        for method in methods
        for size in sizes
    }
    greedy = fits("rectangle", max(sizes), "pivoted_cholesky", 0)
    points = X[greedy.indices_]
    ordered = {
        (method, size): (
            RLSClassifier(alphas[method, size], gamma=gamma)
            .fit(points[:size], y[greedy.indices_[:size]])
            .decision_function(T)
            if method == "subset"
            else fits(method, size, points[:size], 0).decision_function(T)
        )
        for method in methods
        for size in sizes
    }

    def area(f: np.ndarray) -> float:
        return float(roc_auc_score(t, f))

    def curve(axis: Any, f: np.ndarray, label: str, **style: Any) -> None:
        false, true, _ = roc_curve(t, f)
        axis.plot(false, true, label=label, **style)

    rng = np.random.default_rng(0)
    resamples = [rng.integers(len(t), size=len(t)) for _ in range(20 if options.quick else 200)]

    def resampled(functions: list[np.ndarray]) -> np.ndarray:
        """Mean area of some functions on each bootstrap sample of the test samples."""
        return np.array([np.mean([rank_area(t[drawn], f[drawn]) for f in functions]) for drawn in resamples])

    areas_of = {key: resampled(functions) for key, functions in random.items()}

    def gain(key: tuple[str, int], other: np.ndarray) -> tuple[float, float]:
        """How much larger the area of a function is than that of random points, and its standard error."""
        own = [rank_area(t, f) for f in random[key]]
        error = np.std(resampled([other]) - areas_of[key], ddof=1)
        draws = np.std(own, ddof=1) / np.sqrt(runs)
        return rank_area(t, other) - float(np.mean(own)), float(np.hypot(error, draws))

    by_bagging = {key: gain(key, np.mean(functions, axis=0)) for key, functions in random.items()}
    by_ic = {key: gain(key, ordered[key]) for key in random}

    page = Figure(figsize=(20, 16))
    axes = page.subplots(3, 4)
    curve(axes[0, 0], svm, "SVM")
    curve(axes[0, 0], exact, "RLS")
    axes[0, 0].set_title("figure 3-10")
    table = []
    for column, method in enumerate(methods):
        for size in sizes:
            average = np.mean([area(f) for f in random[method, size]])
            bagged = area(np.mean(random[method, size], axis=0))
            alike = np.mean([area(f) for f in shared[method, size]])
            ic = area(ordered[method, size])
            table.append([method, size, average, bagged, ic, alphas[method, size], alike])
            curve(axes[0, column + 1], random[method, size][0], f"{size}")
            curve(axes[1, column + 1], np.mean(random[method, size], axis=0), f"{size}, bagged")
            curve(axes[2, column + 1], ordered[method, size], f"{size}, ic")
            curve(axes[2, column + 1], random[method, size][0], f"{size}, random", linestyle=":")
        curve(axes[0, column + 1], exact, "all", color="k", linewidth=0.8)
        axes[0, column + 1].set_title(f"figure 3-17, {method}")
        axes[1, column + 1].set_title(f"figure 3-19, {method}")
        axes[2, column + 1].set_title(f"figure 3-{(24, 23, 25)[column]}, {method}")
    for axis in [axes[0, 0], *axes[:, 1:].flat]:
        axis.set(xlim=(0, 0.2), ylim=(0.6, 1.0), xlabel="false positives", ylabel="true positives")
        axis.legend(fontsize=7)
    remaining = greedy.remaining_trace_ / len(y)
    axes[1, 0].plot(np.arange(len(remaining)), 1 - remaining, label="ic")
    spread = [random_trace(X, size, gamma) for size in sizes]
    axes[1, 0].plot(sizes, spread, "o-", label="random")
    axes[1, 0].set(title="figure 3-21", xlabel="points", ylabel="share of the trace")
    axes[1, 0].legend()
    training = fitted.decision_function(X), full.decision_function(X)
    axes[2, 0].plot(*training, ".", markersize=2, label="training rows")
    axes[2, 0].plot(svm, exact, ".", markersize=2, label="test rows")
    axes[2, 0].set(title="figure 3-12", xlabel="SVM", ylabel="RLS")
    axes[2, 0].legend(fontsize=7)
    page.tight_layout()
    report.figure(page, "usps")
    report.say(
        f"Area under the ROC curve: SVM {area(svm):.5f}, RLS {area(exact):.5f} (alpha {alpha:g} by "
        f"leave-one-out, C = {machine.C:g} on a quarter of the training samples). Training on all "
        f"{len(y)} samples takes RLS {slow:.2f} s and the SVM {fast:.2f} s of one processor: "
        f"{slow / fast:.1f} times. The last column of the table has the alpha of the full model for "
        "every method, means of three draws."
    )
    report.table(
        f"Area under the ROC curve, means of {runs} draws",
        ["method", "points", "random", "bagged", "ic", "alpha", f"random, alpha {alpha:g} for all"],
        table,
    )
    report.table(
        "Gains of area over random points, with standard errors over test samples and draws",
        ["method", "points", "bagged", "standard error", "ic", "standard error"],
        [
            [*key, *(f"{value:+.4f}" if at % 2 == 0 else f"{value:.4f}" for at, value in enumerate(values))]
            for key in random
            for values in [(*by_bagging[key], *by_ic[key])]
        ],
    )
    rise = {row[1]: row[2] - row[6] for row in table if row[0] == "nystrom"}
    areas = {(row[0], row[1]): row[2] for row in table}
    first = sum(areas["nystrom", size] == max(areas[m, size] for m in methods) for size in sizes)
    report.say(
        "*nystrom* needs another alpha than the other methods. With its own alpha its area is larger than "
        "with that of the full model by "
        + ", ".join(f"{higher:.3f} ({size} points)" for size, higher in rise.items())
        + f", and it is the best of the three at {first} of {len(sizes)} sizes."
    )
    share = {size: 1 - remaining[size] for size in sizes}
    report.table(
        "Share of the trace of K",
        ["points", "random", "ic"],
        [[size, at, share[size]] for size, at in zip(sizes, spread, strict=True)],
    )
    value = {(row[0], row[1]): row for row in table}
    claims = {
        "RLS is as good as the SVM": area(exact) >= area(svm) - 5e-4,
        "rectangle is the best of the three at every size": all(
            value["rectangle", s][2] >= max(value["subset", s][2], value["nystrom", s][2]) - 1e-6
            for s in sizes
        ),
        "rectangle loses less from 1024 to 512 points than from 512 to 256": options.quick
        or (
            value["rectangle", 1024][2] - value["rectangle", 512][2]
            < value["rectangle", 512][2] - value["rectangle", 256][2]
        ),
        "subset comes before nystrom": all(value["subset", s][2] >= value["nystrom", s][2] for s in sizes),
        "bagging helps nystrom": all(value["nystrom", s][3] >= value["nystrom", s][2] for s in sizes),
        "the best method does not gain from bagging": by_bagging["rectangle", sizes[0]][0]
        <= 2 * by_bagging["rectangle", sizes[0]][1],
        "nystrom gains from more points": value["nystrom", sizes[0]][2] > value["nystrom", sizes[-1]][2]
        and all(more_points(areas_of["nystrom", a], areas_of["nystrom", b]) > -2 for a, b in pairwise(sizes)),
        "bagging leaves the order of the methods": all(
            value["rectangle", s][3] >= value["subset", s][3] >= value["nystrom", s][3] for s in sizes
        ),
        "ic accounts for less of the trace than random points": all(
            share[s] < at for s, at in zip(sizes, spread, strict=True)
        ),
        "ic does not improve on random points (rectangle)": all(
            by_ic["rectangle", s][0] <= 2 * by_ic["rectangle", s][1] for s in sizes
        ),
    }
    report.table(
        "Conclusions of section 3.7.3",
        ["claim", "here"],
        [[k, "held" if v else "not held"] for k, v in claims.items()],
    )
    report.numbers["usps"] = {
        "areas": table,
        "claims": claims,
        "share": share,
    }


def rank_area(t: np.ndarray, f: np.ndarray) -> float:
    """Return the area under the ROC curve from the ranks of the outputs."""
    positive = t > 0
    n, ranks = int(positive.sum()), stats.rankdata(f)
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(t) - n)))


def more_points(larger: np.ndarray, smaller: np.ndarray) -> float:
    """Return the gain of area by more points in standard errors over bootstrap samples."""
    difference = larger - smaller
    return float(difference.mean() / difference.std(ddof=1))


def full_machines(X: np.ndarray, y: np.ndarray, gamma: float) -> tuple[RLSClassifier, SVC]:
    """Return an RLS machine and an SVM that are not fitted, their parameters chosen on training samples."""
    order = np.random.default_rng(0).permutation(len(y))
    own, held = order[len(y) // 4 :], order[: len(y) // 4]
    machines = [SVC(C=cost, gamma=gamma, n_jobs=1) for cost in COSTS]
    areas = [roc_auc_score(y[held], m.fit(X[own], y[own]).decision_function(X[held])) for m in machines]
    alpha = RLSClassifier(alphas=[0.01, 0.1, 1.0], gamma=gamma).fit(X, y).alpha_
    return RLSClassifier(alpha, gamma=gamma, n_jobs=1), clone(machines[int(np.argmax(areas))])


def crossplot(report: Report, options: argparse.Namespace) -> None:
    """Figures 3-10 and 3-12 in numbers, and the average of (5.24)."""
    rows = load("usps")
    X, y = rows.X, np.where(rows.y == 4, 1, -1)
    T, t = rows.X_test, np.where(rows.y_test == 4, 1, -1)
    if options.quick:
        X, y = X[:1200], y[:1200]
    rls, svm = (machine.fit(X, y) for machine in full_machines(X, y, 1 / 50))
    lines = []
    for cost in COSTS:
        other = clone(svm).set_params(C=cost).fit(X, y)
        for name, samples in (("training", X), ("test", T)):
            outputs = [machine.decision_function(samples) for machine in (other, rls)]
            inside = [np.clip(f, -1, 1) for f in outputs]
            measures = (pearson(outputs), spearman(outputs), pearson(inside))
            lines.append(
                [f"{cost:g}", name, *(f"{value:.4f}" for value in measures), f"{outputs[0].min():.2f}"]
            )
    report.table(
        "Figure 3-12: correlation of the outputs of SVM and RLS by the C of the SVM",
        ["C", "samples", "linear", "rank", "linear, clipped to [-1, 1]", "lowest output of the SVM"],
        lines,
    )
    test = [machine.decision_function(T) for machine in (svm, rls)]
    areas = [float(roc_auc_score(t, f)) for f in test]
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(100 if options.quick else 1000):
        drawn = rng.integers(len(t), size=len(t))
        svm_area, rls_area = (float(roc_auc_score(t[drawn], f[drawn])) for f in test)
        differences.append(rls_area - svm_area)
    error = float(np.std(differences, ddof=1))
    order = np.random.default_rng(0).permutation(len(y))
    chunks = [np.sort(order[chunk::10]) for chunk in range(10)]
    machine = RLSRegressor(rls.alpha, gamma=1 / 50)
    average = as_expansion(chunk_average(machine, X, y.astype(float), chunks))
    report.table(
        "Area under the ROC curve",
        ["machine", "area", "less that of the SVM", "standard error (bootstrap)"],
        [
            ["SVM", f"{areas[0]:.5f}", "", ""],
            ["RLS", f"{areas[1]:.5f}", f"{areas[1] - areas[0]:.5f}", f"{error:.5f}"],
            ["RLS, average of ten chunks (5.24)", f"{roc_auc_score(t, average.predict(T)):.5f}", "", ""],
        ],
    )
    report.say(
        f"alpha = {rls.alpha:g} by leave-one-out, C = {svm.C:g} on a quarter of the training samples. The "
        "chunks are disjoint; scikit-learn's `VotingRegressor` averages them and `as_expansion` pools them "
        "into one expansion."
    )
    report.numbers["crossplot"] = {"correlations": lines, "areas": areas, "standard error": error}


def pearson(outputs: list[np.ndarray]) -> float:
    """Linear correlation of two outputs."""
    return float(np.corrcoef(outputs)[0, 1])


def spearman(outputs: list[np.ndarray]) -> float:
    """Correlation of the ranks of two outputs."""
    return float(stats.spearmanr(*outputs).statistic)


def random_trace(X: np.ndarray, size: int, gamma: float) -> float:
    """Share of the trace of K that so many random points account for."""
    chosen = np.random.default_rng(size).permutation(len(X))[:size]
    own = rbf_kernel(X[chosen], gamma=gamma) + 1e-10 * np.eye(size)
    L = np.linalg.cholesky(own)
    part = scipy.linalg.solve_triangular(L, rbf_kernel(X[chosen], X, gamma=gamma), lower=True)
    return float((part**2).sum() / len(X))


def main() -> int:
    """Run the parts that were asked for."""
    options = arguments(__doc__, PARTS).parse_args()
    report = Report("rifkin_rls", "Regularized least squares (Rifkin 2002, chapter 3)", options)
    report.say("Times are wall-clock seconds unless stated otherwise.")
    works = (
        partial(text, code="ovr"),
        partial(text, code="BCH 63"),
        toy,
        crossplot,
        usps,
        exact,
        low_rank,
        linear,
    )
    return report.run(dict(zip(PARTS, works, strict=True)))


if __name__ == "__main__":
    run(main)
