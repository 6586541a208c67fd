"""Vincent and Bengio (2002), Kernel Matching Pursuit: tables 1 to 3, figures 5 to 7, what a pursuit costs.

``python benches/papers/kmp.py``

Data from ``SVMARROW_DATA`` or ``../shared/data`` beside the repository.

table 1: USPS, each digit against the others, gamma = 1 / 76.8, as many functions as the paper's SVM has
vectors and half of them, beside our SVM (C = 10). table 2: Mushrooms, 64 to 1,024 training rows, 8 disjoint
training sets (4 of 1,024), width and size or C by 10-fold cross-validation. table 3: four sets, 50 random
splits into three equal parts, the paper's widths; the validation part chooses the size, or C; p-values by
the corrected resampled t-test. figure 5: the losses against the margin, and what each does on the sets of
table 3. figure 6: basic pursuit, back-fitting, pre-fitting and an SVM in two dimensions. figure 7: a cluster
far on its own side misleads the squared error, not the squared error after tanh. speed: pre-fitting beside
scikit-learn's OrthogonalMatchingPursuit and a plain NumPy figure 3. growth: seconds by functions, candidates
and rows.

The full run takes about a quarter of an hour on two cores; ``--quick`` a few seconds.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import OrthogonalMatchingPursuit
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from svmarrow import SVC, KMPClassifier, KMPRegressor, _core
from svmarrow.least_squares import LowRankRLSClassifier

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cited_preprocessing import smoothed
from common import Report, arguments, load, run
from kmp_network import STEPS, descended_outputs
from kmp_tables import TABLE_3, repository_set, table_2, table_3, thirds

if TYPE_CHECKING:
    import argparse

PARTS = ("table1", "table2", "table3", "figure5", "figure6", "figure7", "speed", "peer", "growth")
#: Table 1: vectors and errors of the SVM, errors of KMP with as many vectors, with half.
TABLE_1 = {
    "vectors": (274, 104, 377, 361, 334, 388, 236, 235, 342, 263),
    "svm": (16, 8, 25, 19, 29, 23, 14, 12, 25, 16),
    "same": (15, 15, 26, 17, 30, 23, 14, 14, 25, 13),
    "half": (16, 15, 29, 27, 29, 24, 17, 16, 28, 18),
    "kmeans": (20, 16, 43, 38, 46, 31, 15, 18, 37, 26),
}


#: Gamma of table 1: that of Schoelkopf and others (1997), whose experiment the paper repeats.
GAMMA_1 = 1 / 76.8
#: Widths of the Gaussian that smooths the images of table 1; the paper and the work it cites print none.
SMOOTHING = (0.7, 0.75, 0.8, 0.85)


def nearest_smoothing(report: Report, X: np.ndarray, y: np.ndarray, digits: range) -> float:
    """Return the width at which the SVMs have the printed numbers of support vectors.

    The numbers depend on the training samples alone.
    """
    counts = {}
    for width in SMOOTHING:
        images = smoothed(X, width)
        counts[width] = [
            SVC(C=10.0, gamma=GAMMA_1).fit(images, np.where(y == digit, 1, -1)).expansion_.n_vectors
            for digit in digits
        ]
    printed = TABLE_1["vectors"][: len(digits)]
    rows = [[digit, printed[k], *(counts[width][k] for width in SMOOTHING)] for k, digit in enumerate(digits)]
    head = ["digit", "paper", *(f"width {width:g}" for width in SMOOTHING)]
    report.table("Table 1: support vectors by the width of the smoothing", head, rows)
    apart = {width: sum(np.log(np.divide(counts[width], printed)) ** 2) for width in SMOOTHING}
    return min(apart, key=lambda width: apart[width])


def table_1(report: Report, options: argparse.Namespace) -> None:
    """USPS, each digit against the others."""
    quick = options.quick
    data = load("usps")
    digits = range(2) if quick else range(10)
    X, y = (data.X[:1500], data.y[:1500]) if quick else (data.X, data.y)
    width = nearest_smoothing(report, X, y, digits)
    report.say(
        f"The images are smoothed by a Gaussian of width {width:g}, with the background outside, which gives "
        "the numbers of support vectors nearest to the printed ones: a search over a parameter that is not "
        "printed."
    )
    X, X_test = smoothed(X, width), smoothed(data.X_test, width)
    rows, found, pairs, networks = [], [], [], []
    for digit in digits:
        one, test = np.where(y == digit, 1, -1), np.where(data.y_test == digit, 1, -1)
        svc = SVC(C=10.0, gamma=GAMMA_1).fit(X, one)
        size = min(TABLE_1["vectors"][digit], 60 if quick else 10_000)
        own = svc.expansion_.n_vectors
        path = KMPClassifier(size, gamma=GAMMA_1, fit_intercept=False).fit(X, one).path_
        half, same = (path[count].predict(X_test) != test for count in (size // 2, size))
        errors = [int(half.sum()), int(same.sum())]
        wrong = svc.predict(X_test) != test
        svm = int(wrong.sum())
        centres = LowRankRLSClassifier(
            size, alpha=1e-3, gamma=GAMMA_1, selection="kmeans", random_state=0
        ).fit(X, one)
        centres_wrong = centres.predict(X_test) != test
        classical = int(centres_wrong.sum())
        outputs = descended_outputs(centres.expansion_.vectors, GAMMA_1, (X, one), X_test)
        descended = [int(((output > 0) != (test > 0)).sum()) for output in outputs]
        networks.append([digit, TABLE_1["kmeans"][digit], classical, *descended])
        others = (wrong, same), (same, half), (same, centres_wrong)
        pairs.append((digit, *(int((first != second).sum()) for first, second in others)))
        rows.append(
            (
                digit,
                f"{TABLE_1['vectors'][digit]} / {own}",
                f"{TABLE_1['svm'][digit]} / {svm}",
                f"{TABLE_1['kmeans'][digit]} / {classical}",
                f"{TABLE_1['same'][digit]} / {errors[1]}",
                f"{TABLE_1['half'][digit]} / {errors[0]}",
            )
        )
        found.append((svm, classical, errors[1], errors[0]))
    total = [sum(column) for column in zip(*found, strict=True)]
    printed = [sum(TABLE_1[name][: len(found)]) for name in ("svm", "kmeans", "same", "half")]
    both = [f"{p} / {t}" for p, t in zip(printed, total, strict=True)]
    rows.append(("all", "", *both))
    pairs.append(("all", *(sum(column) for column in list(zip(*pairs, strict=True))[1:])))
    report.table(
        "Table 1: test errors of 2,007 on USPS, paper / ours; the paper's number of vectors and half of it",
        ("digit", "SVM vectors", "SVM", "k-means RBF", "KMP, same", "KMP, half"),
        rows,
    )
    report.table(
        "Table 1: test samples on which exactly one of two of our models is wrong",
        ("digit", "SVM and KMP, same", "KMP, same and half", "KMP, same and k-means RBF"),
        pairs,
    )
    networks.append(["all", *(sum(column) for column in list(zip(*networks, strict=True))[1:])])
    report.table(
        "Table 1: test errors of the k-means network by the steps of gradient descent for its weights",
        ("digit", "paper", "least squares", *(f"{count:,} steps" for count in STEPS)),
        networks,
    )
    names = ("svm", "kmeans", "same", "half")
    report.numbers["table1"] = dict(zip(names, total, strict=True))


#: Of figure 5, in both of its halves: formulas in the margin m.
MARGIN = {
    "exponential": ("exp(-m), AdaBoost", lambda m: np.exp(-m)),
    "logistic": ("log2(1 + exp(-2 m)), LogitBoost", lambda m: np.log2(1 + np.exp(-2 * m))),
    "one_minus_tanh": ("1 - tanh m, Doom II", lambda m: 1 - np.tanh(m)),
    "soft_margin": ("max(0, 1 - m), SVM", lambda m: np.maximum(0, 1 - m)),
}
TRADITIONAL = {
    "squared_error": ("(1 - m)^2", lambda m: (1 - m) ** 2),
    "squared_tanh": ("(0.65 - tanh m)^2", lambda m: (0.65 - np.tanh(m)) ** 2),
}


def figure_5(report: Report, options: argparse.Namespace) -> None:
    """Losses against the margin, and pursuits that minimise them."""
    from matplotlib.figure import Figure

    quick = options.quick
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    m = np.linspace(-3, 3, 301)
    for ax, losses, title in zip(
        figure.subplots(1, 2), (MARGIN, TRADITIONAL), ("boosting and SVM", "traditional"), strict=True
    ):
        for label, formula in losses.values():
            ax.plot(m, formula(m), label=label)
        ax.set(title=title, xlabel="margin m = y f(x)", ylabel="loss", ylim=(-0.2, 5))
        ax.axvline(0.0, color="#aaaaaa", lw=0.7)
        ax.legend(fontsize=8)
    report.figure(figure, "figure5")
    names = (*MARGIN, "squared_hinge", *TRADITIONAL)
    rows: dict[str, list[Any]] = {loss: [loss] for loss in names}
    for name, (sigma, *_) in TABLE_3.items():
        X, y = repository_set(name)
        for loss in names:
            errors, sizes = [], []
            for split in range(1 if quick else 20):
                train, valid, test = thirds(split, len(y))
                model = KMPClassifier(
                    min(100, len(train)),
                    loss=loss,
                    variant="backfit",
                    gamma=1 / sigma**2,
                    fit_intercept=False,
                    early_stopping=True,
                    scoring="accuracy",
                    n_iter_no_change=40,
                    n_jobs=1,
                ).fit(X[train], y[train], X_val=X[valid], y_val=y[valid])
                errors.append(100 * (model.predict(X[test]) != y[test]).mean())
                sizes.append(model.expansion_.n_vectors)
            spread = np.std(errors) / np.sqrt(len(errors))
            rows[loss].append(f"{np.mean(errors):.2f} +- {spread:.2f}, {np.mean(sizes):.0f}")
            report.numbers[f"figure5 {name} {loss}"] = [float(np.mean(errors)), float(np.mean(sizes))]
    report.table(
        "Test errors in percent with standard errors, and vectors, 20 splits of table 3's sets, back-fitting",
        ("loss", *TABLE_3),
        list(rows.values()),
    )


def draw(ax: Any, model: Any, X: np.ndarray, y: np.ndarray, support: np.ndarray, title: str) -> None:
    """Points, support points circled, and the decision line."""
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    grid = np.meshgrid(np.linspace(low[0], high[0], 150), np.linspace(low[1], high[1], 150))
    values = model.decision_function(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    ax.contourf(*grid, values, levels=[-1e9, 0, 1e9], colors=["#dfe9f2", "#f6e6da"])
    ax.contour(*grid, values, levels=[0], colors="#444444", linewidths=1)
    for label, mark, colour in ((1, "+", "#c8501e"), (-1, "x", "#1f5f8b")):
        ax.plot(*X[y == label].T, mark, color=colour, markersize=6)
    ax.plot(*X[support].T, "o", markerfacecolor="none", markeredgecolor="#222222", markersize=11)
    ax.set(title=title, xticks=[], yticks=[])


def figure_6(report: Report, _options: argparse.Namespace) -> None:
    """Basic pursuit, back-fitting, pre-fitting, SVM on one problem in two dimensions."""
    from matplotlib.figure import Figure

    rng = np.random.default_rng(6)
    angle = np.linspace(0.0, np.pi, 25)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1.0 - np.cos(angle), 0.3 - np.sin(angle)])
    X = 2.0 * np.vstack([upper, lower]) + 0.1 * rng.normal(size=(50, 2))
    y = np.repeat([1, -1], 25)
    gamma = 0.1
    svc = SVC(C=1e4, gamma=gamma).fit(X, y)
    size = int(svc.expansion_.n_vectors)
    kmp = {"gamma": gamma, "fit_intercept": False}
    models = {
        "basic, 100 steps": KMPClassifier(100, variant="basic", max_iter=100, **kmp).fit(X, y),
        "back-fitting": KMPClassifier(size, variant="backfit", **kmp).fit(X, y),
        "pre-fitting": KMPClassifier(size, variant="prefit", **kmp).fit(X, y),
        "SVM": svc,
    }
    figure = Figure(figsize=(8, 7), layout="constrained")
    rows = []
    for ax, (name, model) in zip(figure.subplots(2, 2).ravel(), models.items(), strict=True):
        wrong = int((model.predict(X) != y).sum())
        count = len(np.unique(model.support_))
        draw(ax, model, X, y, model.support_, f"{name}: {count} points, {wrong} wrong")
        rows.append((name, count, wrong))
    report.table("Figure 6: support points and wrong training rows", ("method", "points", "wrong"), rows)
    report.figure(figure, "figure6")


def figure_7(report: Report, _options: argparse.Namespace) -> None:
    """A cluster far on the right side of the line: least squares follows it."""
    from matplotlib.figure import Figure

    rng = np.random.default_rng(7)
    above = rng.normal([-1.0, 1.2], 0.45, (25, 2))
    below = rng.normal([1.0, -0.2], 0.45, (25, 2))
    far = rng.normal([9.0, -6.5], 0.4, (25, 2))
    X, y = np.vstack([above, below, far]), np.repeat([1, -1, -1], 25)
    models = {
        "SVM": SVC(kernel="linear", C=100.0).fit(X, y),
        "KMP-mse": KMPClassifier(10, kernel="linear").fit(X, y),
        "KMP-tanh": KMPClassifier(10, kernel="linear", loss="squared_tanh", backfit_every=1).fit(X, y),
    }
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    rows = []
    for ax, (name, model) in zip(figure.subplots(1, 3), models.items(), strict=True):
        wrong = int((model.predict(X) != y).sum())
        draw(ax, model, X, y, model.support_, f"{name}: {wrong} wrong")
        rows.append((name, wrong))
    report.table("Figure 7: wrong training rows", ("method", "wrong"), rows)
    report.figure(figure, "figure7")


def plain_figure_3(K: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    """Figure 3 as one writes it in NumPy; the squared norms of the residual."""
    D, R = K.copy(), y.astype(np.float64).copy()
    inside = np.zeros((n, K.shape[1]))
    norms = []
    alpha = np.zeros(n)
    for step in range(n):
        lengths = np.einsum("ij,ij->j", D, D)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = int(np.nanargmax(np.abs(R @ D) / np.sqrt(lengths)))
        g = D[:, best].copy()
        alpha[step] = (g @ R) / (g @ g)
        alpha[:step] -= alpha[step] * inside[:step, best]
        R -= alpha[step] * g
        beta = g @ D / (g @ g)
        D -= np.outer(g, beta)
        inside[:step] -= np.outer(inside[:step, best].copy(), beta)
        D[:, best], inside[:step, best], beta[best] = 0.0, 0.0, 1.0
        inside[step] = beta
        norms.append(R @ R)
    return np.array(norms)


def timed(work: Any) -> tuple[float, Any]:
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def speed(report: Report, options: argparse.Namespace) -> None:
    """500 functions out of 7,291 on USPS beside scikit-learn and NumPy, interleaved."""
    quick = options.quick
    data = load("usps")
    rows, n, plain_steps = (1000, 50, 10) if quick else (7291, 500, 25)
    X, y = data.X[:rows], np.where(data.y[:rows] == 0, 1.0, -1.0)
    K = _core.gram(X, None, ("rbf", 1 / 128, 0.0, 3), 2)
    scaled = K / np.linalg.norm(K, axis=0)
    times: dict[str, list[float]] = {"rows": [], "double": [], "matrix": [], "peer": [], "numpy": []}
    for repeat in range(1 if quick else 3):
        seconds, ours = timed(lambda: KMPRegressor(n, gamma=1 / 128, fit_intercept=False).fit(X, y))
        times["rows"].append(seconds)
        double = KMPRegressor(n, gamma=1 / 128, fit_intercept=False, precision="double")
        seconds, exact = timed(lambda double=double: double.fit(X, y))
        times["double"].append(seconds)
        seconds, _ = timed(lambda: KMPRegressor(n, kernel="precomputed", fit_intercept=False).fit(K, y))
        times["matrix"].append(seconds)
        peer = OrthogonalMatchingPursuit(n_nonzero_coefs=n, fit_intercept=False)
        seconds, fitted = timed(lambda peer=peer: peer.fit(scaled, y))
        times["peer"].append(seconds)
        if repeat == 0:
            # A step costs the same at any place of the run: a few tell all.
            seconds, norms = timed(lambda: plain_figure_3(K, y, plain_steps))
            times["numpy"].append(seconds * n / plain_steps)
            expected = ours.path_.training_loss[1 : plain_steps + 1] * 2 * rows
            assert np.allclose(norms, expected, rtol=1e-6), "figure 3 and the pursuit disagree"
    median = {name: statistics.median(values) for name, values in times.items()}
    left = np.linalg.norm(y - fitted.predict(scaled))
    lines = [
        ("pre-fitting, from the samples", median["rows"], 1.0),
        ("candidates compared in double precision", median["double"], median["double"] / median["rows"]),
        ("pre-fitting, from the kernel matrix", median["matrix"], median["matrix"] / median["rows"]),
        ("OrthogonalMatchingPursuit on the matrix", median["peer"], median["peer"] / median["rows"]),
        (
            f"NumPy figure 3 ({plain_steps} steps, times {n // plain_steps})",
            median["numpy"],
            median["numpy"] / median["rows"],
        ),
    ]
    report.table(
        f"{n} of {rows} functions, seconds, and as multiples of the first", ("", "seconds", "times"), lines
    )
    same = np.array_equal(ours.path_.order, exact.path_.order)
    report.say(
        f"Norm of the residual: pre-fitting {np.sqrt(2 * rows * ours.path_.training_loss[-1]):.3f},"
        f" orthogonal matching pursuit {left:.3f} (it chooses by the angle alone). Candidates compared in"
        f" single and in double precision: {'the same choices' if same else 'choices that differ'}."
    )
    report.say(
        "The rows of the functions that may be chosen soon are read for several steps at a time, since "
        "half of the candidates stay within a fifth of the best score. Other lengths of these passes (16, "
        "4, 1 and 32, 8, 1 instead of 12, 3, 1) read more."
    )
    report.numbers["speed"] = median


def peer(report: Report, options: argparse.Namespace) -> None:
    """Processor seconds of one thread beside OrthogonalMatchingPursuit, least of some interleaved rounds."""
    cases = [("usps", 3000, 300, 5), ("usps", 7291, 300, 2), ("mnist", 10_000, 200, 2)]
    table, numbers = [], {}
    with threadpool_limits(1):
        for name, rows, n, repeat in [("usps", 500, 30, 1)] if options.quick else cases:
            data = load(name)
            X = data.X[:rows] / (255.0 if name == "mnist" else 1.0)
            y, gamma = np.where(data.y[:rows] == 0, 1.0, -1.0), 0.02 if name == "mnist" else 1 / 128
            matrix: dict[str, np.ndarray] = {}

            def dictionary(
                X: np.ndarray = X, gamma: float = gamma, out: dict[str, np.ndarray] = matrix
            ) -> None:
                K = rbf_kernel(X, gamma=gamma)
                out["scaled"] = np.divide(K, np.linalg.norm(K, axis=0), order="F")

            def ours(variant: str, X: Any = X, y: Any = y, n: int = n, gamma: float = gamma) -> None:
                KMPRegressor(n, variant=variant, gamma=gamma, fit_intercept=False, n_jobs=1).fit(X, y)

            def omp(precompute: bool, y: Any = y, n: int = n, D: dict[str, np.ndarray] = matrix) -> None:
                model = OrthogonalMatchingPursuit(
                    n_nonzero_coefs=n, fit_intercept=False, precompute=precompute
                )
                model.fit(D["scaled"], y)

            works = {
                "matrix": dictionary,
                "prefit": partial(ours, "prefit"),
                "backfit": partial(ours, "backfit"),
                "peer": partial(omp, False),
                "gram": partial(omp, True),
            }
            times: dict[str, list[float]] = {key: [] for key in works}
            for _ in range(repeat):
                for key, work in works.items():
                    start = time.process_time()
                    work()
                    times[key].append(time.process_time() - start)
            least = {key: min(values) for key, values in times.items()}
            best = min(least["peer"], least["gram"])
            table.append(
                (
                    name,
                    rows,
                    n,
                    *least.values(),
                    *(best / least[v] for v in ("prefit", "backfit")),
                    *((best + least["matrix"]) / least[v] for v in ("prefit", "backfit")),
                )
            )
            numbers[f"{name} {rows} {n}"] = least
    report.table(
        "One thread, processor seconds; the last four columns are the peer's better way over ours, without"
        " and with the seconds for its matrix",
        (
            "set",
            "rows and candidates",
            "functions",
            "kernel matrix, unit columns",
            "pre-fitting, from the samples",
            "back-fitting, from the rows",
            "OrthogonalMatchingPursuit",
            "the same, Gram matrix first",
            "pre-fitting",
            "back-fitting",
            "pre-fitting, with",
            "back-fitting, with",
        ),
        table,
    )
    report.numbers["peer"] = numbers


def growth(report: Report, options: argparse.Namespace) -> None:
    """Seconds by functions N, candidates M and rows l."""
    quick = options.quick
    data = load("mnist", np.float32)
    base = (40, 400, 1000) if quick else (200, 2000, 8000)
    rows = []
    for doubled in (None, 0, 1, 2):
        n, m, count = (2 * size if place == doubled else size for place, size in enumerate(base))
        X, y = data.X[:count] / 255, np.where(data.y[:count] == 3, 1.0, -1.0)
        model = KMPRegressor(n, gamma=0.02, candidates=m, random_state=0)
        seconds = statistics.median(timed(lambda f=model, X=X, y=y: f.fit(X, y))[0] for _ in range(3))
        rows.append((n, m, count, seconds, 1e9 * seconds / (n * m * count)))
    report.table(
        "Growth on MNIST, 3 against the others: seconds, and nanoseconds for each of N M l",
        ("N", "M", "l", "seconds", "ns"),
        rows,
    )
    n, m, count = (40, 500, 2000) if quick else (400, 4000, 60_000)
    model = KMPClassifier(n, gamma=0.02, candidates=m, random_state=0)
    seconds, _ = timed(lambda: model.fit(data.X[:count] / 255, data.y[:count]))
    report.table(
        "All classes of MNIST at once: test error in percent by number of functions",
        ("l", "M", "seconds", *(str(size) for size in (n // 8, n // 4, n // 2, n))),
        [
            (
                count,
                m,
                seconds,
                *(
                    100 * (1 - model.path_[size].score(data.X_test / 255, data.y_test))
                    for size in (n // 8, n // 4, n // 2, n)
                ),
            )
        ],
    )


def main() -> int:
    """Run the parts, print, save."""
    options = arguments(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore")
    report = Report("kmp", "Kernel matching pursuit (Vincent and Bengio 2002)", options)
    parts = {
        "table1": table_1,
        "table2": table_2,
        "table3": table_3,
        "figure5": figure_5,
        "figure6": figure_6,
        "figure7": figure_7,
        "speed": speed,
        "peer": peer,
        "growth": growth,
    }
    return report.run(parts)


if __name__ == "__main__":
    run(main)
