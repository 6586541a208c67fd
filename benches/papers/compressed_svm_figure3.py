"""Xu, Gardner, Tyree and Weinberger (2015), figure 3: accuracy against the number of vectors.

``python benches/papers/compressed_svm_figure3.py``

A part for each set of the paper's table 1 that is available: letter, news (20 newsgroups as 200 components
of tf-idf), mnist (its first 10,000 training samples), magic and page_blocks; DMOZ is not available.
Features are scaled as in ``compressed_svm.py``; one-vs-one and the squared hinge as in the paper. C and gamma
of magic and page_blocks are chosen on a fifth of the training samples: the smallest C within a standard error
of the lowest error, and the best gamma for it. The test samples are scored once.

Curves: the paper's (*LARS-SVM*, with coefficients fitted again and thresholds chosen on the training
samples, which each binary machine selects for itself; *CVM*, its vectors moved so that outputs match at the
model's own vectors, every size from LARS;
*Reduced-SVM*, a squared hinge SVM on a random subset of the training samples) and ours (*default*: vectors
from cluster centres, moved for agreement on the training samples). The paper moves vectors by conjugate
gradients, ours are moved by Adam on batches of 144 samples; at a tenth of the vectors, the paper's claim,
both are run. *finishes*: other minimizers, seeds and a selected basis at a tenth. *path*: the time of LARS by
the number of outputs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, Rows, arguments, load, plain_ticks, run
from compressed_svm import BLUE, GREEN, GREY, MACHINES, RED, error, few, rows
from reduced_svm import at_random, greedy
from scipy.optimize import minimize

from svmarrow import SVC, KernelExpansion, as_expansion, compress
from svmarrow.papers import reduced_set

if TYPE_CHECKING:
    import argparse

NAMES = ("letter", "news", "mnist", "magic", "page_blocks")
#: Shares of the vectors that are kept.
SHARES = (0.01, 0.02, 0.05, 0.1)
#: Steps at the sizes below a tenth, and at a tenth.
STEPS = (10_000, 20_000)
ITERATIONS = 100
#: Vectors from which LARS chooses at a time, where there are more than `MAX_LARS_VECTORS`.
CHUNK = 2048
#: LARS takes the vectors in chunks where there are more than this.
MAX_LARS_VECTORS = 3000
#: The loss of equation 1.
LOSS = "squared_hinge"
STYLES = {"Reduced-SVM": RED, "LARS-SVM": GREY, "CVM": BLUE, "default": GREEN}


def prepared(name: str, quick: bool) -> Rows:
    """Rows of a set; 10,000 of mnist."""
    if name in ("magic", "page_blocks"):
        found = load(name)
        kept = slice(800) if quick else slice(None)
        return Rows(found.X[kept], found.y[kept], found.X_test, found.y_test)
    found = rows(name, quick)
    if name == "mnist":
        return Rows(found.X[:10_000], found.y[:10_000], found.X_test, found.y_test)
    return found


def parameters(name: str, data: Rows) -> dict[str, float]:
    """C and gamma: those of the other experiments, else the best on a fifth of the training rows."""
    if name in MACHINES:
        return MACHINES[name]
    order = np.random.default_rng(0).permutation(len(data.y))
    held, rest = np.split(order, [len(order) // 5])
    errors = {
        (C, gamma): 1
        - SVC(C=C, gamma=gamma, loss=LOSS, tol=1e-2)
        .fit(data.X[rest], data.y[rest])
        .score(data.X[held], data.y[held])
        for C in (0.1, 1.0, 10.0, 100.0)
        for gamma in (0.02, 0.05, 0.1, 0.2, 0.5)
    }
    lowest = min(errors.values())
    limit = lowest + np.sqrt(lowest * (1 - lowest) / len(held))
    C = min(C for (C, _), wrong in errors.items() if wrong <= limit)
    gamma = min((wrong, gamma) for (cost, gamma), wrong in errors.items() if cost == C)[1]
    return {"C": C, "gamma": gamma}


def wrong_of(model: Any, data: Rows) -> np.ndarray:
    """Which test samples a model errs on."""
    return np.asarray(model.predict(data.X_test) != data.y_test)


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Return the difference of two numbers of errors in paired standard errors."""
    discordant = int((first != second).sum())
    return float((int(first.sum()) - int(second.sum())) / np.sqrt(max(discordant, 1)))


def descended(
    full: SVC, start: KernelExpansion, iterations: int, method: str = "CG"
) -> tuple[Any, int, float]:
    """Equation 10 by a method of SciPy over vectors and coefficients, from where they are.

    Returns the expansion, the number of iterations, and the mean squared difference of the outputs.
    """
    X = np.asarray(full.expansion_.vectors, dtype=np.float64)
    wanted = full.expansion_.decision_function(X)
    wanted = wanted.reshape(len(X), -1)
    size, d, q, gamma = start.n_vectors, X.shape[1], wanted.shape[1], float(full.gamma)
    scale = np.sqrt(X.var(axis=0).mean())
    own = (X**2).sum(axis=1)[:, None]

    def parts(point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        Z = point[: size * d].reshape(size, d) * scale
        return Z, point[size * d : -q].reshape(size, q), point[-q:]

    def value(point: np.ndarray) -> tuple[float, np.ndarray]:
        Z, B, b = parts(point)
        K = np.exp(-gamma * np.maximum(own + (Z**2).sum(axis=1) - 2 * X @ Z.T, 0))
        off = (K @ B + b - wanted) / len(X)
        W = 2 * gamma * K * (off @ B.T)
        slope = (W.T @ X - W.sum(axis=0)[:, None] * Z) * scale
        pieces = [slope.ravel(), (K.T @ off).ravel(), off.sum(axis=0)]
        return 0.5 * len(X) * float((off**2).sum()), np.concatenate(pieces)

    vectors = np.asarray(start.vectors, dtype=np.float64)
    begin = np.concatenate([(vectors / scale).ravel(), start.coefficients.ravel(), start.intercepts])
    found = minimize(value, begin, jac=True, method=method, options={"maxiter": iterations})
    Z, B, b = parts(found.x)
    expansion = KernelExpansion(np.ascontiguousarray(Z), B, b, kernel="rbf", gamma=gamma)
    return expansion, int(found.nit), 2 * float(found.fun) / q


def figure3(report: Report, options: argparse.Namespace, name: str) -> None:
    """All curves of a set."""
    from matplotlib.figure import Figure

    quick = options.quick
    data = prepared(name, quick)
    chosen = parameters(name, data)
    full = SVC(**chosen, loss=LOSS).fit(data.X, data.y)
    vectors, floor = full.expansion_.n_vectors, error(full, data)
    tenth = vectors // 10
    sizes = sorted({max(3, round(share * vectors)) for share in SHARES if share < SHARES[-1]} | {tenth})
    common: dict[str, Any] = {"X": data.X, "y": data.y}
    said = "" if name in MACHINES else ", chosen on a fifth of the training samples"
    report.say(
        f"{len(data.y):,} training samples, {len(full.classes_)} classes, C = {chosen['C']:g}, gamma = "
        f"{chosen['gamma']:g}{said}; one-vs-one, {full.expansion_.n_outputs} binary "
        f"SVM{'s' if full.expansion_.n_outputs > 1 else ''} with {vectors:,} vectors in all; test error "
        f"{floor:.2f} %. The loss is the squared hinge of equation 1, and each binary machine selects its "
        "vectors by a LARS of its own. The last columns of the table are in paired standard errors (McNemar)."
    )
    began = time.perf_counter()
    # One path for all outputs of several classes takes minutes to hours, see the part "path".
    chunk = max(CHUNK, 2 * tenth) if vectors > MAX_LARS_VECTORS else None
    apart = reduced_set.PaperSettings(joint=False, chunk=chunk)
    lars = reduced_set.path(full, n_vectors=tenth, method="lars", tol=0, settings=apart, **common)
    spent = time.perf_counter() - began
    mistakes: dict[str, list[np.ndarray]] = {label: [] for label in STYLES}
    for size in sizes:
        steps = STEPS[size == tenth]
        start = lars[min(size, len(lars))]
        mistakes["Reduced-SVM"].append(at_random(data, chosen["C"], chosen["gamma"], size, seed=size))
        mistakes["LARS-SVM"].append(wrong_of(start, data))
        paper = few(quick, start=start, loss="matching", noise=0.0, steps=steps)
        usual = few(quick, steps=steps)
        moved, made = (
            compress(full, n_vectors=size, method="gradient", random_state=0, settings=settings, **rows)
            for settings, rows in ((paper, {}), (usual, common))
        )
        mistakes["CVM"].append(wrong_of(moved, data))
        mistakes["default"].append(wrong_of(made, data))
    curves = {label: [100 * float(wrong.mean()) for wrong in each] for label, each in mistakes.items()}
    against = {
        label: [mcnemar(a, b) for a, b in zip(mistakes["CVM"], mistakes[label], strict=True)]
        for label in ("Reduced-SVM", "LARS-SVM")
    }
    iterations = 5 if quick else ITERATIONS
    began = time.perf_counter()
    by_gradients, _, _ = descended(full, lars[min(tenth, len(lars))].expansion_, iterations)
    took = time.perf_counter() - began
    classical = error(as_expansion(full).with_expansion(by_gradients), data)
    report.table(
        f"{name}: test error in %, the full model's {floor:.2f} with {vectors:,} vectors",
        ("vectors", "share", *STYLES, *(f"CVM less {label}, standard errors" for label in against)),
        [
            (
                size,
                f"{100 * size / vectors:.1f} %",
                *(f"{curves[label][at]:.2f}" for label in STYLES),
                *(f"{z[at]:+.1f}" for z in against.values()),
            )
            for at, size in enumerate(sizes)
        ],
    )
    last = {label: curve[-1] - floor for label, curve in curves.items()}
    report.say(
        f"With a tenth ({tenth} vectors) the test error differs from that of the full model by "
        f"{last['CVM']:+.2f} points for CVM, {last['LARS-SVM']:+.2f} for LARS-SVM, "
        f"{last['Reduced-SVM']:+.2f} for Reduced-SVM and {last['default']:+.2f} for *default*. "
        f"{iterations} iterations of conjugate gradients in place of {few(quick, steps=STEPS[1]).steps:,} "
        f"steps of Adam: {classical:.2f} % ({classical - floor:+.2f}), in {took:.0f} s. The path of LARS "
        f"took {spent:.0f} s{'' if chunk is None else f', in chunks of {chunk:,} vectors'}."
    )
    report.numbers[name] = {"sizes": sizes, "full": floor, **curves, "conjugate gradients": classical}
    figure = Figure(figsize=(5, 3.8), layout="constrained")
    axis = figure.subplots()
    for label, colour in STYLES.items():
        wide = 2 if label in ("CVM", "default") else 1
        axis.plot(sizes, curves[label], "o-", color=colour, lw=wide, ms=4, label=label)
    axis.plot([tenth], [classical], "D", color=BLUE, mfc="none", ms=8, label="CVM, conjugate gradients")
    axis.axhline(floor, color="black", ls=(0, (5, 3)), label=f"full, {vectors:,} vectors")
    axis.set(xscale="log", yscale="log", title=name, xlabel="vectors", ylabel="test error, %")
    low, high = axis.get_ylim()
    ticks = [0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100]
    if high < 8 * low:
        ticks += [3.5, 4.5]
    plain_ticks(axis.xaxis, sizes)
    plain_ticks(axis.yaxis, [tick for tick in ticks if low <= tick <= high])
    axis.legend(fontsize=7)
    report.figure(figure, name)


#: C and gamma of the part *finishes*: those that the part of the set has chosen on its training samples.
CHOSEN = {"magic": {"C": 1.0, "gamma": 0.2}}
#: The largest number of iterations of a method of SciPy.
MAX_ITERATIONS = 60
N_SEEDS = 3


def finishes(report: Report, options: argparse.Namespace) -> None:
    """What else was tried at a tenth of the vectors: other minimizers, a finish, and a selected basis."""
    quick = options.quick
    lines: list[tuple[Any, ...]] = []
    for name, chosen in CHOSEN.items():
        data = prepared(name, quick)
        full = SVC(**chosen, loss=LOSS).fit(data.X, data.y)
        vectors = full.expansion_.n_vectors
        tenth = vectors // 10
        chunk = max(CHUNK, 2 * tenth) if vectors > MAX_LARS_VECTORS else None
        apart = reduced_set.PaperSettings(joint=False, chunk=chunk)
        lars = reduced_set.path(
            full, n_vectors=tenth, method="lars", tol=0, settings=apart, X=data.X, y=data.y
        )
        begin = lars[min(tenth, len(lars))]
        most = 5 if quick else MAX_ITERATIONS
        kinds: dict[str, list[np.ndarray]] = {}
        losses: dict[str, list[str]] = {}

        def add(label: str, wrong: np.ndarray, loss: str = "", to: Any = (kinds, losses)) -> None:
            to[0].setdefault(label, []).append(wrong)
            to[1].setdefault(label, []).append(loss)

        moves = (("conjugate gradients", "CG"), ("L-BFGS", "L-BFGS-B"))
        for label, method in moves:
            made, iterations, loss = descended(full, begin.expansion_, most, method)
            add(label, wrong_of(begin.with_expansion(made), data), f"{loss:.2e} after {iterations:,}")
        for seed in range(1 if quick else N_SEEDS):
            settings = few(quick, start=begin, loss="matching", noise=0.0, steps=STEPS[1])
            moved = compress(full, n_vectors=tenth, method="gradient", random_state=seed, settings=settings)
            _, _, loss = descended(full, moved.expansion_, 0)
            add("Adam", wrong_of(moved, data), f"{loss:.2e}")
            made, iterations, loss = descended(full, moved.expansion_, most // 2, "L-BFGS-B")
            add("Adam, then L-BFGS", wrong_of(moved.with_expansion(made), data), f"{loss:.2e}")
            for label, work in (("Reduced-SVM, random", at_random), ("Reduced-SVM, selected", greedy)):
                add(label, work(data, chosen["C"], chosen["gamma"], tenth, seed))
        first = kinds["Adam"][0]
        for label, several in kinds.items():
            errors = [100 * float(wrong.mean()) for wrong in several]
            lines.append(
                (
                    name,
                    tenth,
                    label,
                    ", ".join(f"{error:.2f}" for error in errors),
                    f"{np.mean(errors):.2f}",
                    losses[label][0],
                    f"{mcnemar(first, several[0]):+.1f}",
                )
            )
        report.say(f"{name}: the full model's test error is {error(full, data):.2f} %.")
    report.table(
        "A tenth of the vectors: test errors in % by seed",
        ("set", "vectors", "method", "by seed", "mean", "mean squared difference of outputs", "Adam less it"),
        lines,
    )
    report.say(
        "*Adam less it* is in paired standard errors (McNemar), for the first seed. The first two methods "
        "have no seed. *Reduced-SVM, selected* takes the best of 59 random candidates at every step, as "
        "Keerthi, Chapelle and DeCoste (2006) do."
    )
    report.numbers["finishes"] = lines


def path(report: Report, options: argparse.Namespace) -> None:
    """What the path of LARS costs where many outputs share their vectors: the first classes of letter."""
    data = rows("letter", options.quick)
    table = []
    for classes in (3, 4) if options.quick else (8, 12, 16):
        kept = np.isin(data.y, np.unique(data.y)[:classes])
        X, y = data.X[kept], data.y[kept]
        full = SVC(**MACHINES["letter"]).fit(X, y)
        vectors = full.expansion_.n_vectors
        began = time.process_time()
        joint = reduced_set.PaperSettings(joint=True)
        chosen = reduced_set.path(
            full, X, y, n_vectors=vectors // 10, method="lars", tol=0, settings=joint, n_jobs=1
        )
        spent = time.process_time() - began
        met = "yes" if chosen.stop == "converged" else f"no ({chosen.stop})"
        table.append((classes, full.expansion_.n_outputs, vectors, vectors // 10, spent, met))
    report.table(
        "The first classes of letter, one thread",
        ("classes", "outputs", "vectors", "chosen", "processor seconds", "conditions met at every lambda"),
        table,
    )


def main() -> int:
    """Run the parts."""
    parts = {name: partial(figure3, name=name) for name in NAMES} | {"finishes": finishes, "path": path}
    options = arguments(__doc__ or "", tuple(parts)).parse_args()
    report = Report("compressed_svm_figure3", "Compressed support vector machines: figure 3", options)
    report.say(
        "*Reduced-SVM* is a squared hinge SVM on a random subset of the training samples. *LARS-SVM* has the "
        "vectors that LARS selects, with coefficients fitted again. *CVM* starts from these and moves the "
        "vectors so that outputs match at the model's own support vectors, every size independently. "
        '*default* is our own method, `compress(method="gradient")`, which the paper does not have.'
    )
    return report.run(parts)


if __name__ == "__main__":
    run(main)
