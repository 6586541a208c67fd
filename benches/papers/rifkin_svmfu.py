"""The SVM solver beside the thesis (Rifkin, MIT 2002, chapter 2).

Parts:

* ``growth-a9a``, ``growth-usps``: figure 2-6, time against rows, beside LIBSVM and the oracle's bound (2.5);
* ``memory``: figure 2-7, time over the size of blocks and of the cache;
* ``unbounded``: the reduced working set of figure 2-5;
* ``blocks``: blocks smaller than the unbounded vectors (2.6.3);
* ``shrinking``: with and without;
* ``ablations``: the solver's own ideas taken away, direct steps, walks from face to face, largest blocks;
* ``samples``: large machines from nothing and from a sample of their rows;
* ``advice``: section 2.6.1, what sigma and C do to error, vectors and time;
* ``low-rank``: the machine of section 3.7.2 (3.121) beside the full one, "rectangle" and a reduced set.

All times but those of ``samples`` are processor times of one thread, works taking turns. A full run takes
about fifteen minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, arguments, folder, plain_ticks, processor_times, run
from rifkin_ablations import blocks, long_steps, samples, shrinking, unbounded
from rifkin_rows import adult, four, scaled
from sklearn import svm
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, LowRankSVC, compress
from svmarrow.io import save_svmlight
from svmarrow.least_squares import LowRankRLSClassifier

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

PARTS = (
    "growth-a9a",
    "growth-usps",
    "memory",
    "unbounded",
    "blocks",
    "advice",
    "low-rank",
    "shrinking",
    "ablations",
    "samples",
)
#: Rows of a1a to a9a, the nested sets of "adult".
NESTED = (1605, 2265, 3185, 4781, 6414, 11220, 16100, 22696, 32561)
#: Memory of section 2.5, in MB.
MEMORY = 120


def peer_program(X: Any, y: np.ndarray, gamma: float, C: float, folder: str) -> Callable[[], None] | None:
    """LIBSVM's own program, where it is installed: reading the rows is part of its time."""
    program = shutil.which("svm-train")
    if program is None:
        return None
    path = Path(folder) / f"{X.shape[0]}"
    save_svmlight(X, y, path)
    command = [program, "-q", "-m", str(MEMORY), "-c", str(C), "-g", str(gamma), str(path), f"{path}.model"]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL) and None


def growth(report: Report, options: argparse.Namespace, name: str) -> None:
    """Figure 2-6 and the oracle's bound, for one set."""
    from matplotlib.figure import Figure

    if name == "a9a":
        rows, sizes, gamma, C = adult, NESTED[:3] if options.quick else NESTED, 0.05, 1.0
        report.say(
            "Nested sets are the first samples of a9a, in the sizes of a1a to a9a. `svm-train` is run up "
            "to 6,414 samples and also reads them from a file. Medians of three below 4,000 samples."
        )
    else:
        rows, sizes, gamma, C = (
            four,
            (500, 1000) if options.quick else (500, 1000, 2000, 4000, 7291),
            0.02,
            10.0,
        )
        report.say("Nested sets are the first samples of USPS. Medians of three below 4,000 samples.")
    lines = []
    for size in sizes:
        X, y = rows(size)[:2]
        shared = {"C": C, "gamma": gamma, "cache_size": MEMORY}
        with tempfile.TemporaryDirectory() as folder:
            alone = peer_program(X, y, gamma, C, folder) if size <= 6414 else None
            works = [SVC(n_jobs=1, **shared), svm.SVC(**shared)]
            times, _, (ours, *_) = processor_times(
                [partial(machine.fit, X, y) for machine in works] + ([] if alone is None else [alone]),
                3 if size < 4000 else 1,
            )
        bound = processor_times([partial(ours.decision_function, X)], 3)[0][0]
        m = ours.support_.size
        last = [times[2] if len(times) > 2 else "not run", times[1] / times[0], bound, times[0] / bound]
        lines.append([size, m, times[0], times[1], *last, ours.certificate_.kernel_values / (size * m)])
    report.table(
        f"Analogue of figure 2-6, {name}: seconds of one thread",
        [
            "samples",
            "vectors",
            "svmarrow",
            "scikit-learn",
            "svm-train",
            "scikit-learn / svmarrow",
            "K(SV, X)",
            "svmarrow / K(SV, X)",
            "kernel values / (SV n)",
        ],
        lines,
    )
    columns = np.array([[line[0], line[2], line[3], line[6]] for line in lines], dtype=float)
    page = Figure(figsize=(6, 4.5))
    axis = page.subplots()
    for column, label in ((1, "svmarrow"), (2, "LIBSVM (scikit-learn)"), (3, "the oracle's bound, ours")):
        axis.loglog(columns[:, 0], columns[:, column], "o-", label=label)
    axis.set(title=f"figure 2-6, {name}", xlabel="samples", ylabel="seconds of one thread")
    plain_ticks(axis.xaxis, sizes[:: 2 if len(sizes) > 5 else 1])
    axis.legend()
    report.figure(page, f"growth-{name}")
    slopes = np.polyfit(np.log(columns[:, 0]), np.log(columns[:, 1:3]), 1)[0]
    report.say(
        f"The training time grows as the number of samples to the power {slopes[0]:.2f} (svmarrow) "
        f"and {slopes[1]:.2f} (LIBSVM). On all samples svmarrow takes "
        f"{columns[-1, 1] / columns[-1, 3]:.2f} times the oracle's bound, LIBSVM "
        f"{columns[-1, 2] / columns[-1, 3]:.1f} times; the bound is the time of svmarrow's own "
        "evaluation."
    )
    report.numbers[f"growth {name}"] = lines


def memory(report: Report, options: argparse.Namespace) -> None:
    """Figure 2-7."""
    from matplotlib.figure import Figure

    X, y = four(2000 if options.quick else None)[:2]
    n = len(y)
    report.say(
        f"A row of the kernel matrix has {4 * n / 1e6:.3f} MB, the whole matrix "
        f"{4 * n * n / 2**20:.0f} MB. The cache holds the packed rows as well."
    )
    fixed = (128, 512) if options.quick else (64, 128, 256, 512, 1024, 2048, 4096)
    blocks: list[int | None] = [*fixed, None]
    caches = (10, 40, 400) if options.quick else (12, 20, 40, 80, 160, 400)
    table, values = [], []
    for block in blocks:
        works = []
        for cache in caches:
            machine = SVC(C=10, gamma=0.02, cache_size=cache, n_jobs=1)
            if block is not None:
                machine._tuning = {"block": block, "max_block": block}
            works.append(lambda machine=machine: machine.fit(X, y).certificate_)
        times, _, found = processor_times(works, 1 if options.quick else 3)
        table.append([block or "own", *times])
        counts = [f"{c.kernel_values / n**2:.2f}, {c.machines[0].rounds}" for c in found]
        values.append([block or "own", *counts])
    head = ["block", *(f"{cache} MB" for cache in caches)]
    report.table("Analogue of figure 2-7: seconds of one thread", head, table)
    report.table("Kernel values as a multiple of n^2, and blocks solved", head, values)
    page = Figure(figsize=(6, 4.5))
    axis = page.subplots()
    for line in table:
        style = {"color": "black", "linewidth": 2} if line[0] == "own" else {}
        axis.loglog(caches, line[1:], "o-", label=f"block {line[0]}", markersize=3, **style)
    axis.set(xlabel="cache in MB", ylabel="seconds of one thread", title="figure 2-7")
    plain_ticks(axis.xaxis, caches)
    plain_ticks(axis.yaxis, (0.1, 0.2, 0.3, 0.5, 1.0))
    axis.legend(fontsize=8)
    report.figure(page, "memory")
    values_of = np.array([line[1:] for line in table[:-1]], dtype=float)
    best = values_of.min(axis=0)
    own = np.array(table[-1][1:], dtype=float)
    worst = (values_of / best).max(axis=1)
    steady = int(worst.argmin())
    report.say(
        "The solver's own rule takes "
        + ", ".join(f"{ratio:.2f} ({cache} MB)" for ratio, cache in zip(own / best, caches, strict=True))
        + f" times the time of the best block of the column. The single block size {table[steady][0]} would "
        "take "
        f"at most {worst[steady]:.2f} times. `SVC` has no parameter for the block size, because the gain "
        "is at most this factor and the best value depends on the cache; an experiment sets "
        f"`SVC()._tuning`, as this one does."
    )
    report.numbers["memory"] = {"seconds": table, "values": values}


def good_costs(X: np.ndarray, y: np.ndarray, T: np.ndarray, t: np.ndarray) -> list[list[Any]]:
    """Return for several sigma the test error at C = 1, the best C, its error, and whether they are close."""
    lines = []
    for sigma in (0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0):
        errors = {
            C: float(1 - SVC(C=C, gamma=1 / (2 * sigma**2), n_jobs=1, max_time=60.0).fit(X, y).score(T, t))
            for C in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
        }
        best = min(errors, key=lambda C, errors=errors: errors[C])
        close = errors[1.0] <= errors[best] + 0.01
        lines.append([sigma, errors[1.0], best, errors[best], "yes" if close else "no"])
    return lines


#: All dense sets with classes and at most 60 features.
COST_SETS = (
    "breast_cancer_wisconsin",
    "cod_rna",
    "ijcnn1",
    "ionosphere",
    "letter",
    "magic",
    "page_blocks",
    "pima_diabetes",
    "ratsch_banana",
    "ratsch_german",
    "ratsch_image",
    "ratsch_waveform",
    "satimage",
    "segment",
    "shuttle",
    "sonar",
    "vowel",
    "yeast",
)
COST_GRID, NEAR_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), (1.0, 10.0)
N_FOLDS = 5


def cost_of_set(name: str, n_samples: int) -> list[Any]:
    """Return whether some values of C are within one point of the best of a grid, by five folds."""
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
        X, y = np.asarray(file["X"], dtype=np.float64), file["y"]
    kept = np.random.default_rng(0).permutation(len(y))[:n_samples]
    counts = dict(zip(*np.unique(y[kept], return_counts=True), strict=True))
    kept = kept[[counts[label] >= N_FOLDS for label in y[kept]]]
    X, y = StandardScaler().fit_transform(X[kept]), y[kept]
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    errors = {
        C: min(
            1 - cross_val_score(SVC(C=C, gamma=scale / X.shape[1], max_time=60.0), X, y, cv=folds).mean()
            for scale in (1 / 16, 1 / 4, 1, 4, 16)
        )
        for C in COST_GRID
    }
    lowest = min(errors.values())
    close = ["yes" if errors[C] <= lowest + 0.01 else "no" for C in NEAR_COSTS]
    best = f"{min(errors, key=lambda C: errors[C]):g}"
    return [name, len(y), *close, best, *(f"{error:.4f}" for error in errors.values())]


def advice(report: Report, options: argparse.Namespace) -> None:
    """Section 2.6.1."""
    X, y, T, t = scaled("magic", 1000 if options.quick else 3000)
    table = []
    for what, C, sigma in (
        *(("sigma", 1.0, sigma) for sigma in (0.05, 0.3, 1.0, 3.0, 30.0, 1000.0)),
        *(("C", C, 3.0) for C in (1e-5, 1e-3, 0.1, 10.0, 1e3, 1e5)),
    ):
        machine = SVC(C=C, gamma=1 / (2 * sigma**2), n_jobs=1, max_time=60.0)
        (seconds,), _, _ = processor_times([lambda machine=machine: machine.fit(X, y)], 1)
        c = machine.certificate_.machines[0]
        errors = [1 - machine.score(*rows) for rows in ((X, y), (T, t))]
        table.append([what, sigma, C, *errors, c.support / len(y), c.support - c.bounded, seconds, c.stop])
    report.table(
        "Errors, support vectors and times by sigma and C",
        [
            "along",
            "sigma",
            "C",
            "training error",
            "test error",
            "share of vectors",
            "unbounded",
            "seconds",
            "end",
        ],
        table,
    )
    along = [row for row in table if row[0] == "sigma"]
    costs = [row for row in table if row[0] == "C"]
    widths = good_costs(X, y, T, t)
    # A sigma at which every C fails says nothing about C = 1.
    useful = [row for row in widths if row[3] <= min(other[3] for other in widths) + 0.02]
    names, n_samples = (COST_SETS[:1], 150) if options.quick else (COST_SETS, 1500)
    sets = [cost_of_set(name, n_samples) for name in names]
    near = {C: sum(line[2 + at] == "yes" for line in sets) for at, C in enumerate(NEAR_COSTS)}
    claims = {
        "sigma far too small: nearly every row is a vector": along[0][5] > 0.9,
        "sigma far too large: the training error is terrible": along[-1][3] > 0.3,
        "C far too small: no vector is unbounded": costs[0][6] == 0,
        "an excessive C costs more than ten times the time": costs[-1][7] > 10 * costs[2][7],
        "C = 1 is often a good choice with the Gaussian kernel": 2 * near[1.0] >= len(sets),
    }
    report.table(
        "C = 1 at several sigma: test error",
        ["sigma", "C = 1", "best C", "its error", "C = 1 within one point of it"],
        widths,
    )
    close = sum(row[4] == "yes" for row in useful)
    report.say(
        f"Of the {len(useful)} sigma whose lowest error is within two points of the lowest of all, C = 1 is "
        f"within one point of the best C at {close}."
    )
    report.table(
        "C = 1 and C = 10 on several sets: error of five folds, at the best gamma for each C",
        ["set", "samples", *(f"C = {C:g} within a point of the best" for C in NEAR_COSTS), "best C"]
        + [f"error at C = {C:g}" for C in COST_GRID],
        sets,
    )
    report.say(
        f"Of {len(sets)} sets, "
        + ", ".join(f"{near[C]} are within one point of the lowest error at C = {C:g}" for C in NEAR_COSTS)
        + ". The claim counts as held if C = 1 is at half of the sets at least."
    )
    lines = [[claim, "held" if held else "not held"] for claim, held in claims.items()]
    report.table("Claims of section 2.6.1", ["claim", "here"], lines)
    report.say(
        "Where no vector is unbounded, b may lie anywhere in an interval. *Samples that change class*"
        " are training samples whose output lies between its ends. *Balanced* sets have equally many "
        "samples of both classes."
    )
    intervals = []
    few = min(int((y == k).sum()) for k in np.unique(y))
    level = np.concatenate([np.flatnonzero(y == k)[:few] for k in np.unique(y)])
    for what, kept in (("all samples", np.arange(len(y))), ("balanced", level)):
        for C in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
            machine = SVC(C=C, gamma=1 / 18, n_jobs=1, tol=1e-5).fit(X[kept], y[kept])
            c = machine.certificate_.machines[0]
            low, high, rows = interval_of_b(machine, X[kept], y[kept])
            intervals.append([what, C, c.support - c.bounded, float(machine.intercept_[0]), low, high, rows])
    report.table(
        "The interval of b, sigma = 3",
        ["samples", "C", "unbounded", "b", "from", "to", "samples that change class"],
        intervals,
    )
    wide = [row for row in intervals if row[2] == 0]
    report.say(
        f"No vector is unbounded in {len(wide)} of {len(intervals)} lines. In "
        f"{sum(row[6] > 0 for row in wide)} of these the choice of b changes the class of samples, of"
        f" at most {max((row[6] for row in wide), default=0)}."
    )
    report.numbers["advice"] = {"table": table, "claims": claims, "intervals": intervals}


def interval_of_b(machine: SVC, X: np.ndarray, y: np.ndarray) -> tuple[float, float, int]:
    """Ends of the interval in which b keeps the optimality conditions, and rows whose class depends on it."""
    g = machine.decision_function(X) - machine.intercept_[0]
    size = np.zeros(len(y))
    size[machine.support_] = np.abs(machine.expansion_.coefficients[:, 0])
    sign = np.where(y == machine.classes_[1], 1.0, -1.0)
    bound = sign - g
    # A row without coefficient has y (g + b) >= 1, a bounded one <= 1, an unbounded one both.
    rising, falling = size < machine.C * (1 - 1e-9), size > 0
    from_below = np.where(sign > 0, rising, falling)
    from_above = np.where(sign > 0, falling, rising)
    low, high = bound[from_below].max(initial=-np.inf), bound[from_above].min(initial=np.inf)
    low, high = min(low, high), max(low, high)
    return float(low), float(high), int(((g + low > 0) != (g + high > 0)).sum())


def low_rank_machines(report: Report, options: argparse.Namespace) -> None:
    """The hinge loss over a projected kernel beside its rivals of the same number of vectors."""
    report.say("All points are drawn at random with one seed.")
    sizes = (64, 128) if options.quick else (64, 256, 1024)
    cut = 1000 if options.quick else None
    table = []
    for name, (X, y, T, t), gamma, C in (
        ("usps", four(cut), 0.02, 10.0),
        ("a9a", adult(cut or 8000), 0.05, 1.0),
        ("magic", scaled("magic", cut or 8000), 0.1, 10.0),
        ("cod_rna", scaled("cod_rna", cut or 8000), 0.1, 10.0),
    ):

        def line(model: Any, what: str, seconds: float, name: str = name, T: Any = T, t: Any = t) -> None:
            f = np.ravel(model.decision_function(T))
            error, area = 1 - model.score(T, t), float(roc_auc_score(t, f))
            table.append([name, what, model.expansion_.n_vectors, error, area, seconds])

        (seconds,), _, (full,) = processor_times(
            [lambda X=X, y=y, C=C, gamma=gamma: SVC(C=C, gamma=gamma, n_jobs=1).fit(X, y)], 1
        )
        line(full, "SVC", seconds)
        for m in sizes:
            shared = {"gamma": gamma, "random_state": 0, "n_jobs": 1}
            works: list[Callable[[], Any]] = [
                partial(LowRankSVC(m, C=C, max_time=120.0, **shared).fit, X, y),
                partial(LowRankRLSClassifier(m, alpha=1 / (2 * C), **shared).fit, X, y),
            ]
            if m < full.expansion_.n_vectors:
                works.append(lambda full=full, m=m: compress(full, n_vectors=m, n_jobs=1))
            times, _, models = processor_times(works, 1)
            line(models[0], "LowRankSVC", times[0])
            line(models[1], "rectangle", times[1])
            if len(models) > 2:
                line(models[2], "SVC, reduced set", seconds + times[2])
    report.table(
        "Low rank", ["set", "model", "vectors", "error", "area under ROC", "seconds to train"], table
    )
    pairs = {(row[0], row[1], row[2]): row for row in table}
    low = [row for row in table if row[1] == "LowRankSVC"]
    slower = [row[5] / pairs[row[0], "rectangle", row[2]][5] for row in low]
    full = [row[5] / next(other[5] for other in table if other[:2] == [row[0], "SVC"]) for row in low]
    better = sum(row[3] < pairs[row[0], "rectangle", row[2]][3] for row in low)
    reduced = [row for row in low if (row[0], "SVC, reduced set", row[2]) in pairs]
    beaten = sum(pairs[row[0], "SVC, reduced set", row[2]][3] < row[3] for row in reduced)
    report.say(
        f"`LowRankSVC` takes {min(slower):.1f} to {max(slower):.1f} times the time of the rectangle "
        f"method and {min(full):.1f} to {max(full):.1f} times that of the full SVC. Its error is "
        f"lower than that of the rectangle method in {better} of {len(low)} lines. A reduced set of "
        f"the full SVC has a lower error than `LowRankSVC` in {beaten} of {len(reduced)}."
    )
    report.numbers["low-rank"] = table


def main() -> int:
    """Run the parts that were asked for."""
    options = arguments(__doc__, PARTS).parse_args()
    report = Report("rifkin_svmfu", "The SVM solver (Rifkin 2002, chapter 2)", options)
    report.say("Seconds are processor time of one thread; programs that are compared run alternately.")
    works = (
        partial(growth, name="a9a"),
        partial(growth, name="usps"),
        memory,
        unbounded,
        blocks,
        advice,
        low_rank_machines,
        shrinking,
        long_steps,
        samples,
    )
    return report.run(dict(zip(PARTS, works, strict=True)))


if __name__ == "__main__":
    run(main)
