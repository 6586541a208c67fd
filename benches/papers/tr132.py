"""The experiments of Weston and Bakir, "Fast binary and multi-output reduced set selection", TR-132, 2004.

Figure 1 (vectors of a linear machine against rows), Table 2 and Figure 2 (four sets of Raetsch, ten splits),
Table 3 (times of the methods), readings of the lossy zero norm, Figure 4 (USPS and Letter, outputs apart and
together), Figure 5 (kernel ridge regression on Abalone and kin8nm), and the growth of the pursuit's time. The
paper's numbers stand beside ours where it prints them; its figures are curves, of which it prints none.

The whole takes about ten minutes on two cores, two thirds of them the fits of Letter and MNIST.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from cited_preprocessing import smoothed
from common import Report, arguments, load, plain_ticks, run, seconds
from sklearn.kernel_ridge import KernelRidge
from tr132_two_class import axes, figure1, two_class
from tr132_zero_norm import zero_norm

from svmarrow import SVC, KernelExpansion, RLSRegressor, as_expansion, compression_path
from svmarrow._support.training import label_indices
from svmarrow.papers import reduced_set
from svmarrow.reduced_set import SelectionSettings
from svmarrow.reduced_set.score import threshold_shifts

if TYPE_CHECKING:
    import argparse

PARTS = ("figure1", "two-class", "zero-norm", "multi-class", "smoothed", "regression", "growth", "mnist")
#: Number of vectors of the l1 of Schoelkopf and others (1999), section 4.3.
L1_VECTORS = 570


#: Penalties of l1 that all outputs share, as shares of the largest one at which an output has a vector.
SHARED_PENALTIES = (0.2, 0.15, 0.13, 0.12, 0.115, 0.11, 0.1, 0.08)


def apart(
    svc: Any, method: str, sizes: tuple[int, ...], X: Any, y: np.ndarray, penalties: tuple[float, ...] = ()
) -> list[Any]:
    """Every output reduced by itself to so many vectors; models of the unions keep their coefficients.

    Their thresholds are chosen again on the training rows, as those of the models beside them. With penalties
    every output has the vectors of its own at a penalty that all outputs share.
    """
    classifier = as_expansion(svc)
    labels = label_indices(y, svc.classes_)
    full = svc.expansion_
    paths = []
    for j in range(full.n_outputs):
        own = np.flatnonzero(full.coefficients[:, j])
        one = KernelExpansion(
            full.vectors[own], full.coefficients[own][:, [j]], 0.0, kernel="rbf", gamma=full.gamma
        )
        paths.append((own, reduced_set.path(one, n_vectors=min(sizes[-1], len(own)), method=method)))
    sizes_of_outputs = [[size] * len(paths) for size in sizes]
    if penalties:
        largest = max(path.penalties.max() for _, path in paths)
        sizes_of_outputs = [
            [max(1, int((path.penalties >= share * largest).sum())) for _, path in paths]
            for share in penalties
        ]
    models = []
    for own_sizes in sizes_of_outputs:
        B = np.zeros_like(full.coefficients)
        for j, ((own, path), size) in enumerate(zip(paths, own_sizes, strict=True)):
            small = path[min(size, len(path))]
            B[own[path.order[: small.n_vectors]], j] = small.coefficients[:, 0]
        used = np.flatnonzero(B.any(axis=1))
        small = KernelExpansion(full.vectors[used], B[used], full.intercepts, kernel="rbf", gamma=full.gamma)
        shifts = threshold_shifts(classifier, small.decision_function(X).astype(np.float64), labels)
        tuned = KernelExpansion(
            small.vectors, B[used], full.intercepts + shifts, kernel="rbf", gamma=full.gamma
        )
        models.append(classifier.with_expansion(tuned))
    return models


def scales(model: Any, size: int, X: Any, y: np.ndarray) -> list[Any]:
    """How far the outputs of a model whose outputs were reduced apart are from one scale, on test rows."""
    B, outputs = model.expansion_.coefficients, model.decision_function(X)
    labels = label_indices(y, model.classes_)
    positive = (B > 0).sum(axis=0) / np.maximum(1, (B != 0).sum(axis=0))
    own = np.array([outputs[labels == k, k].mean() for k in range(B.shape[1])])
    lost = np.bincount(labels[outputs.argmax(axis=1) != labels], minlength=B.shape[1])
    worst = int(lost.argmax())
    return [
        size, float(positive.min()), float(positive.max()), float(own.min()), float(own.max()),
        model.classes_[worst], int(lost[worst]), int((labels == worst).sum()),
    ]  # fmt: skip


def multi_class(report: Report, options: argparse.Namespace) -> None:
    """Figure 4."""
    import matplotlib.pyplot as plt

    figure, plots = axes("USPS", "Letter")
    papers = {"USPS": (1526, 0.0416), "Letter": (4522, 0.0373)}
    machines, compared, scaled = [], [], []
    for plot, name in zip(plots, papers, strict=True):
        svc, X, y, X_test, y_test = machine(name, quick=options.quick)
        full_error = 1 - svc.score(X_test, y_test)
        m = svc.expansion_.n_vectors
        machines.append([name, m, papers[name][0], full_error, papers[name][1]])
        sizes = [s for s in (50, 100, 200, 400, 800, 1200) if s < m]
        curves = {}
        for label, settings in (
            ("together", None),
            ("together, on predictions", SelectionSettings(criterion="predictions")),
            ("apart, then refitted", SelectionSettings(joint=False)),
        ):
            # A quarter of Letter's rows is enough to compare predictions on.
            step = (
                4 if settings is not None and settings.criterion == "predictions" and name == "Letter" else 1
            )
            path = compression_path(
                svc, n_vectors=sizes[-1], settings=settings, X=X[::step], y=y[::step], tol=0
            )
            found = [size for size in sizes if size <= len(path)]
            curves[label] = list(zip(found, 1 - path.scores(X_test, y_test, found), strict=True))
        for method in ("backfit", "l1"):
            each = (5, 10, 20, 40, 80, 160)
            models = apart(svc, method, each, X, y)
            how = {"backfit": "pursuit"}.get(method, method)
            curves[f"apart, {how}"] = [
                (small.expansion_.n_vectors, 1 - small.score(X_test, y_test)) for small in models
            ]
            if name == "USPS":
                found = zip(models, each, strict=True)
                scaled += [[how, *scales(small, size, X_test, y_test)] for small, size in found]
        for label, points in curves.items():
            plot.plot(*zip(*points, strict=True), marker=".", label=label)
            compared += [[name, label, size, error] for size, error in points]
        plot.axhline(full_error, color="black", lw=0.8, label="all vectors")
        plot.set(xscale="log", yscale="log", ylim=(0.8 * full_error, 1.0))
        plot.set_xlabel("vectors in all")
    report.table("Table 2: the models", ["set", "vectors", "paper", "test error", "paper"], machines)
    report.table(
        "Figure 4: test error by the vectors of all outputs", ["set", "how", "vectors", "error"], compared
    )
    report.say(
        "The number of support vectors of Letter changes by a percent with the solver's tolerance (4569, "
        "4517, 4511 for 1e-1, 1e-2, 1e-3)."
    )
    report.table(
        "USPS, outputs reduced apart: are they on one scale?",
        [
            "how", "vectors an output", "share with positive weight, lowest", "highest",
            "mean output on own class, lowest", "highest", "class that loses most", "samples lost", "of",
        ],
        scaled,
    )  # fmt: skip
    report.say(
        "A class is given to the largest of ten outputs, and each output shrinks at its own rate. "
        "Separate l1 selects the vectors of an output's own class first (positive weights). At a size "
        "that differs from class to class it adds those of the other classes, which lower the output. "
        "Between the sizes where the first and the last outputs have reached this point, the outputs are "
        "not comparable and one class loses most of its samples to others. Thresholds do not correct "
        "this: those of all these models minimise the error of the training samples."
    )
    # Five curves leave no room inside.
    figure.set_layout_engine("constrained")
    figure.legend(*plots[0].get_legend_handles_labels(), fontsize=7, ncols=3, loc="outside lower center")
    report.figure(figure, "multi-class")
    plt.close(figure)
    report.numbers["multi-class"] = {"table2": machines, "figure4": compared, "scales": scaled}


def smoothed_usps(report: Report, options: argparse.Namespace) -> None:
    """USPS of table 2, figure 4 and section 4.3 with smoothed images, as in work that the report cites."""
    data = load("usps")
    kept = slice(600 if options.quick else None)
    X, y, X_test = smoothed(data.X[kept]), data.y[kept], smoothed(data.X_test)
    svc = SVC(C=1000, gamma=1 / 128, multi_class="ovr").fit(X, y)
    m, full_error = svc.expansion_.n_vectors, 1 - svc.score(X_test, data.y_test)
    report.table(
        "Table 2 with smoothed images: USPS",
        ["vectors", "paper", "test error", "paper"],
        [[m, 1526, full_error, 0.0416]],
    )
    sizes = [size for size in (100, 200, 400, L1_VECTORS, 800) if size < m]
    lines = []
    for label, method in (("pursuit", "backfit"), ("l1", "l1")):
        path = reduced_set.path(svc, n_vectors=sizes[-1], method=method, X=X, y=y, tol=0)
        found = [size for size in sizes if size <= len(path)]
        errors = path.scores(X_test, data.y_test, found)
        lines += [[f"together, {label}", size, 1 - score] for size, score in zip(found, errors, strict=True)]
        for model in apart(svc, method, (5, 10, 20, 40, 80, 160), X, y):
            size, error = model.expansion_.n_vectors, 1 - model.score(X_test, data.y_test)
            lines.append([f"apart, {label}", size, error])
    for model in apart(svc, "l1", (400,), X, y, SHARED_PENALTIES):
        size, error = model.expansion_.n_vectors, 1 - model.score(X_test, data.y_test)
        lines.append(["apart, l1, one penalty", size, error])
    report.table(
        "Figure 4 with smoothed images: test error on USPS by the vectors of all outputs",
        ["how", "vectors", "error"],
        lines,
    )
    report.numbers["smoothed"] = {"vectors": m, "error": full_error, "figure4": lines}


def machine(name: str, *, quick: bool) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the SVM of figure 4 on a set, its training samples, and the test samples."""
    data = load(name.lower(), np.float32)
    X, X_test = data.X, data.X_test
    if name == "Letter":
        mean, spread = X.mean(axis=0), X.std(axis=0)
        X, X_test = (X - mean) / spread, (X_test - mean) / spread
    y = data.y
    if quick:
        X, y = X[:600], y[:600]
    gamma = 1 / 128 if name == "USPS" else 1 / 32
    return SVC(C=1000, gamma=gamma, multi_class="ovr").fit(X, y), X, y, X_test, data.y_test


def regression(report: Report, options: argparse.Namespace) -> None:
    """Figure 5."""
    import matplotlib.pyplot as plt

    figure, plots = axes("Abalone", "kin8nm")
    table, compared = [], []
    paper = {"Abalone": (3133, 0.410), "kin8nm": (3000, None)}
    for plot, name in zip(plots, paper, strict=True):
        data = load(name.lower())
        X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
        y = (data.y - data.y.mean()) / data.y.std()
        order = np.random.default_rng(0).permutation(len(y))
        n = 300 if options.quick else paper[name][0]
        train, test = order[:n], order[paper[name][0] :]
        held = slice(0, n // 4)
        rest = slice(n // 4, n)
        best = min(
            (
                (
                    (
                        KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
                        .fit(X[train][rest], y[train][rest])
                        .predict(X[train][held])
                        - y[train][held]
                    )
                    ** 2
                ).mean(),
                gamma,
                alpha,
            )
            for gamma in (0.003, 0.01, 0.03, 0.1)
            for alpha in (0.003, 0.03, 0.3)
        )
        _, gamma, alpha = best
        ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(X[train], y[train])
        full = KernelExpansion(X[train], ridge.dual_coef_[:, None], 0.0, kernel="rbf", gamma=gamma)
        error = ((ridge.predict(X[test]) - y[test]) ** 2).mean()
        table.append([name, n, f"gamma {gamma:g}, alpha {alpha:g}", float(error), paper[name][1] or "none"])
        sizes = [s for s in (10, 20, 50, 100, 200, 400, 800) if s < n // 2]
        for label, settings in (
            ("pursuit", None),
            ("59 random candidates a step", SelectionSettings(sample=59)),
            ("on predictions", SelectionSettings(criterion="predictions")),
            ("59, on predictions", SelectionSettings(sample=59, criterion="predictions")),
        ):
            start = time.process_time()
            rows = X[train] if settings is not None and settings.criterion == "predictions" else None
            path = compression_path(
                full, n_vectors=sizes[-1], settings=settings, X=rows, tol=0, random_state=0
            )
            spent = time.process_time() - start
            found = [min(size, len(path)) for size in sizes]
            errors = (1 - path.scores(X[test], y[test], found)) * y[test].var()
            plot.plot(found, errors, marker=".", label=label)
            compared += [[name, label, f"{spent:.2f}", *errors, *[""] * (7 - len(sizes))]]
        plot.axhline(error, color="black", lw=0.8, label="all vectors")
        plot.set(xscale="log", yscale="log", xlabel="vectors")
        plain_ticks(plot.xaxis, sizes)
        low, high = plot.get_ylim()
        ticks = (0.1, 0.15, 0.2, 0.3, 0.45, 0.5, 0.6, 0.8, 1)
        plain_ticks(plot.yaxis, [tick for tick in ticks if low <= tick <= high])
    report.table(
        "Table 2: the models, mean squared error of the normalised target",
        ["set", "vectors", "chosen on a quarter of the training samples", "error", "paper"],
        table,
    )
    report.table(
        "Figure 5: mean squared error by the number of vectors",
        ["set", "pursuit", "seconds", "10", "20", "50", "100", "200", "400", "800"],
        compared,
    )
    _abalone_as_printed(report, options)
    plots[0].set_ylabel("mean squared error")
    figure.set_layout_engine("constrained")
    plots[0].legend(fontsize=7)
    report.figure(figure, "regression")
    plt.close(figure)
    report.numbers["regression"] = {"table2": table, "figure5": compared}


def _abalone_as_printed(report: Report, options: argparse.Namespace) -> None:
    """Abalone at sigma = 15 and gamma = 1e-5, which the paper picks on the test rows, under all readings."""
    data = load("abalone")
    y = (data.y - data.y.mean()) / data.y.std()
    standardised = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    shifted = 2 * (data.X - data.X.min(axis=0)) / np.ptp(data.X, axis=0) - 1
    size, splits = (600, 2) if options.quick else (3133, 5)
    lines, means, reached = [], [], 0
    for scaling, X in (
        ("as they are", data.X),
        ("standardised", standardised),
        ("to [-1, 1]", shifted),
        ("to [0, 1]", (shifted + 1) / 2),
    ):
        for width, gamma in (("1 / (2 sigma^2)", 1 / (2 * 15.0**2)), ("1 / sigma^2", 1 / 15.0**2)):
            line: list[Any] = [scaling, width]
            for alpha in (1e-5, 1e-5 * size):
                errors = []
                for seed in range(splits):
                    order = np.random.default_rng(seed).permutation(len(y))
                    train, test = order[:size], order[3133:]
                    model = RLSRegressor(alpha=alpha, gamma=gamma, fit_intercept=False).fit(
                        X[train], y[train]
                    )
                    errors.append(float(((model.predict(X[test]) - y[test]) ** 2).mean()))
                line.append(f"{np.mean(errors):.4f} ({min(errors):.4f} to {max(errors):.4f})")
                means.append(float(np.mean(errors)))
                reached += min(errors) <= 0.41 <= max(errors)
            lines.append(line)
    report.table(
        "Abalone at the paper's sigma = 15, gamma = 1e-5 (paper: .410): means of five splits, extremes",
        ["features", "width of the kernel", "ridge 1e-5", "ridge 1e-5 n"],
        lines,
    )
    report.say(
        f"The lowest mean of all readings is {min(means):.4f}; .410 lies between the extremes of five "
        f"splits for {reached} of the {len(means)} readings."
    )
    report.numbers["abalone"] = lines


def growth(report: Report, options: argparse.Namespace) -> None:
    """Seconds of the pursuit against the pool, the vectors kept, and the rows of predictions."""
    data = load("usps", np.float32)
    n = 800 if options.quick else len(data.X)
    svc = SVC(C=10, gamma=1 / 128, multi_class="ovr").fit(data.X[:n], data.y[:n])
    full = svc.expansion_
    m = full.n_vectors

    def timed(model: Any, most: int, **settings: Any) -> float:
        X = settings.pop("X", None)
        chosen = SelectionSettings(**settings)
        return seconds(
            lambda: compression_path(model, n_vectors=most, settings=chosen, X=X, tol=0, random_state=0)
        )

    rows = []
    for share in (4, 2, 1):
        pool = np.arange(0, m, share)
        part = KernelExpansion(
            full.vectors[pool], full.coefficients[pool], full.intercepts, kernel="rbf", gamma=full.gamma
        )
        rows += [
            [len(pool), most, timed(part, most), timed(part, most, sample=59)]
            for most in (100, 400, 800)
            if most < len(pool)
        ]
    report.table("USPS, ten outputs", ["pool", "kept", "seconds", "59 candidates a step"], rows)
    lines = [
        [rows_used, 200, timed(full, 200, criterion="predictions", X=data.X[:rows_used])]
        for rows_used in ((200, 400) if options.quick else (1000, 3500, 7291))
    ]
    report.table("Predictions on samples, the whole pool", ["samples", "kept", "seconds"], lines)
    if not options.quick:
        report.say(f"Selecting 800 of {m} vectors takes {rows[-1][2]:.2f} s; the target is less than .5 s.")
    made = []
    rng = np.random.default_rng(0)
    for size in (2_000, 4_000) if options.quick else (10_000, 50_000, 200_000):
        Z = rng.normal(size=(size, 8)).astype(np.float32)
        long = KernelExpansion(Z, rng.normal(size=(size, 1)), 0.0, kernel="rbf", gamma=0.1)
        made.append(
            [
                size,
                100,
                seconds(
                    lambda long=long: compression_path(
                        long, n_vectors=100, settings=SelectionSettings(chunk=1024), tol=0
                    ),
                    1,
                ),
            ]
        )
    report.table("In chunks of 1024, eight columns", ["pool", "kept", "seconds"], made)
    report.numbers["growth"] = {"usps": rows, "predictions": lines, "chunks": made}


def mnist(report: Report, options: argparse.Namespace) -> None:
    """The largest pool."""
    data = load("mnist", np.float32)
    X, y = data.X / 255, data.y
    if options.quick:
        X, y = X[:800], y[:800]
    svc = SVC(C=10, gamma=0.02, multi_class="ovr", tol=1e-2).fit(X, y)
    start = time.perf_counter()
    path = compression_path(svc, n_vectors=min(800, svc.expansion_.n_vectors), tol=0)
    spent = time.perf_counter() - start
    errors = 1 - path.scores(data.X_test / 255, data.y_test, [100, 300, len(path)])
    report.table(
        "The pursuit; target: less than 20 s",
        ["pool", "kept", "seconds", "error with 100", "300", "most", "all"],
        [
            [
                svc.expansion_.n_vectors,
                len(path),
                spent,
                *errors,
                1 - svc.score(data.X_test / 255, data.y_test),
            ]
        ],
    )
    report.numbers["mnist"] = {"seconds": spent, "errors": list(errors)}


def main() -> int:
    """Run the parts asked for."""
    options = arguments(__doc__, PARTS).parse_args()
    report = Report("tr132", "Reduced set selection (Weston and Bakir 2004)", options)
    parts = {
        "figure1": figure1,
        "two-class": two_class,
        "zero-norm": zero_norm,
        "multi-class": multi_class,
        "smoothed": smoothed_usps,
        "regression": regression,
        "growth": growth,
        "mnist": mnist,
    }
    return report.run(parts)


if __name__ == "__main__":
    run(main)
