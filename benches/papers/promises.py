"""What one call promises, and what other rows say to it.

``python benches/papers/promises.py``

Data: every set of ``SVMARROW_DATA`` (or ``../shared/data`` beside the repository), several splits of each:
rows to train on, rows to judge, rows to test, drawn anew from all rows of the set; dense columns are
standardised by the training rows. An SVC, one-vs-rest where there are several classes, or an SVR, is
compressed by ``compress(model, X, y, validation=(X_valid, y_valid))`` with no other setting than the seed.
The promise holds where the loss on the test rows, which nothing has seen, is at most ``loss_bound_.upper``.

``--rows`` caps the training rows (and the judging rows at twice that), ``--splits`` the splits, ``--sets``
names sets. Runs that the file of ``--json`` has are not made again. One split of 600 rows takes some five
minutes on one core.
"""

from __future__ import annotations

import json
import statistics
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from common import Report, arguments, folder, load, no_sets, run
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from svmarrow import SVC, SVR, as_expansion, compress
from svmarrow.reduced_set.judge import Judge

if TYPE_CHECKING:
    import argparse

NUMBERS = {"abalone", "kin8nm"}
#: Parameters where the defaults C=10, gamma="scale" are far from good.
MACHINES: dict[str, dict[str, Any]] = {
    "a9a": {"C": 1.0, "gamma": 0.05},
    "w8a": {"C": 10.0, "gamma": 0.05},
    "german": {"C": 1.0},
    "ratsch_german": {"C": 1.0},
    "ratsch_banana": {"C": 1.0, "gamma": 1.0},
    "ratsch_waveform": {"C": 1.0},
    "pima_diabetes": {"C": 1.0},
    "yeast": {"C": 1.0},
    "abalone": {"C": 10.0},
    "mnist": {"C": 10.0},
}
MOST_TEST = 20_000


def all_rows(name: str) -> tuple[Any, np.ndarray]:
    """Rows and targets of a set, whatever its own splits."""
    if name.startswith("ratsch"):
        with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
            return np.ascontiguousarray(file["X"], dtype=np.float64), file["y"]
    return load(name).all()


def one(name: str, split: int, most: int, jobs: int) -> dict[str, Any]:
    """What a call gives on a split."""
    X, y = all_rows(name)
    n = y.size
    order = np.random.default_rng(split).permutation(n)
    train, judge = min(most, int(0.4 * n)), min(2 * most, int(0.3 * n))
    test = min(MOST_TEST, n - train - judge)
    parts = order[:train], order[train : train + judge], order[n - test :]
    if not sp.issparse(X):
        X = StandardScaler().fit(X[parts[0]]).transform(X)
    (A, b), (V, v), (T, t) = ((X[part], y[part]) for part in parts)
    settings: dict[str, Any] = {"C": 10.0, "n_jobs": jobs, **MACHINES.get(name, {})}
    full = SVR(**settings) if name in NUMBERS else SVC(multi_class="ovr", **settings)
    return {"set": name, "split": split, "rows": [train, judge, test]} | outcome(
        full.fit(A, b), (A, b), (V, v), (T, t), split, jobs
    )


def outcome(full: Any, learn: Any, judge: Any, test: Any, seed: int, jobs: int) -> dict[str, Any]:
    """What a call gives, and what the rows of the test say to it."""
    began = time.perf_counter()
    small = compress(full, *learn, validation=judge, random_state=seed, n_jobs=jobs)
    seconds = time.perf_counter() - began
    told = Judge(as_expansion(full), *test, n_jobs=jobs)
    promise, loss = small.loss_bound_, told.loss(told.of_model(small))
    T, t = test
    return {
        "full score": float(full.score(T, t)),
        "full vectors": full.expansion_.n_vectors,
        "vectors": small.expansion_.n_vectors,
        "measured": promise.loss,
        "promised": promise.upper,
        "test loss": loss,
        "holds": bool(loss <= promise.upper),
        "within 0.003": bool(loss <= 0.003),
        "seconds": seconds,
    }


def promises(report: Report, options: argparse.Namespace) -> None:
    """The table."""
    names = options.sets or sorted(path.stem for path in folder().glob("*.npz") if path.stem != "20news")
    splits, most = (1, 300) if options.quick else (options.splits, options.rows)
    if not names:
        raise no_sets()
    file = options.json
    known = {(run["set"], run["split"]): run for run in report.numbers.get("runs", [])}
    found: list[dict[str, Any]] = []
    for split in range(splits):
        for name in names:
            if (name, split) in known:
                found.append(known[name, split])
                continue
            with warnings.catch_warnings(), threadpool_limits(options.jobs):
                warnings.simplefilter("ignore")
                found.append(one(name, split, most, options.jobs))
            print(*found[-1].values(), flush=True)
        # A run that is ended early has whole splits.
        report.numbers["runs"] = list(found)
        if file is not None:
            file.write_text(json.dumps(report.numbers, indent=1, default=float) + "\n", encoding="utf-8")
    lines = []
    for name in names:
        runs = [run for run in found if run["set"] == name]
        mean = {
            key: statistics.mean(run[key] for run in runs) for key in ("full vectors", "vectors", "seconds")
        }
        share = statistics.median(run["vectors"] / run["full vectors"] for run in runs)
        losses = [
            f"{100 * statistics.mean(run[key] for run in runs):.2f}"
            for key in ("measured", "promised", "test loss")
        ]
        kept = sum(run["holds"] for run in runs)
        rows = " / ".join(f"{count:,}" for count in runs[0]["rows"])
        sizes = [f"{mean[key]:.0f}" for key in ("full vectors", "vectors")]
        ends = f"{kept} of {splits}", f"{mean['seconds']:.1f}"
        lines.append((name, rows, *sizes, f"{share:.3f}", *losses, *ends))
    head = ("set", "rows: train / judge / test", "full vectors", "vectors", "share", "measured loss, %")
    head += ("promised at most", "test loss", "promise kept", "seconds")
    report.table("Means of the splits; the share is the median", head, lines)
    kept = statistics.mean(run["holds"] for run in found)
    share = statistics.median(run["vectors"] / run["full vectors"] for run in found)
    within = statistics.mean(run["within 0.003"] for run in found)
    report.numbers["summary"] = {
        "promises kept": kept,
        "median share": share,
        "test loss within 0.003": within,
    }
    report.say(
        f"The promise was kept in {100 * kept:.1f} % of {len(found)} runs; the median model has {share:.3f} "
        f"of the full one's vectors. The test loss was at most 0.3 points in {100 * within:.0f} %."
    )
    report.say(
        f"{splits} splits of at most {most:,} training rows, one thread each run (`python "
        f"benches/papers/promises.py --rows {most} --splits {splits} --json docs/benchmarks/promises.json`; "
        "every run is in [promises.json](../benchmarks/promises.json), and runs that it has are not made "
        "again). The seconds are those of two cores that had much other work. Sizes follow the rows: few "
        "rows to judge by have losses with a standard error of some 0.4 points, so that the first sizes of "
        "some splits fail by chance and most vectors stay, and machines of few rows have few vectors to "
        "lose. Words of news20 have too many columns for vectors to be made."
    )


def two_spirals(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two spirals of three turns."""
    y = random.integers(0, 2, n)
    turn = np.sqrt(random.random(n)) * 3 * 2 * np.pi
    X = np.column_stack([np.cos(turn + np.pi * y), np.sin(turn + np.pi * y)]) * turn[:, None] / 6
    return X + 0.08 * random.standard_normal((n, 2)), y


def checkerboard(random: np.random.Generator, n: int, fields: int, noise: float) -> Any:
    """Fields of two colours, some labels turned."""
    X = random.uniform(0, fields, (n, 2))
    y = X.astype(int).sum(axis=1) % 2
    return X, np.where(random.random(n) < noise, 1 - y, y)


def narrow(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Five columns, a smooth boundary, a tenth of the labels turned: noise that a narrow kernel learns."""
    X = random.standard_normal((n, 5))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] > 0).astype(int)
    return X, np.where(random.random(n) < 0.1, 1 - y, y)


#: Cases that few vectors may not hold: how rows are drawn, C and gamma.
HARD: dict[str, tuple[Any, float, float]] = {
    "two spirals": (two_spirals, 10.0, 4.0),
    "checkerboard of 4 x 4": (lambda random, n: checkerboard(random, n, 4, 0.0), 10.0, 4.0),
    "checkerboard of 8 x 8": (lambda random, n: checkerboard(random, n, 8, 0.0), 10.0, 4.0),
    "checkerboard of 4 x 4, a tenth turned": (
        lambda random, n: checkerboard(random, n, 4, 0.1),
        10.0,
        4.0,
    ),
    "noise, five columns, gamma 0.2": (narrow, 10.0, 0.2),
    "noise, five columns, gamma 1": (narrow, 10.0, 1.0),
    "noise, five columns, gamma 5": (narrow, 10.0, 5.0),
}


def hard(report: Report, options: argparse.Namespace) -> None:
    """The table of hard cases."""
    n = 300 if options.quick else 1500
    known = {run["set"]: run for run in report.numbers.get("hard", [])}
    found = report.numbers["hard"] = []
    lines = []
    for name, (draw, C, gamma) in HARD.items():
        if name not in known:
            random = np.random.default_rng(0)
            learn, judge, test = draw(random, n), draw(random, 2 * n), draw(random, 20_000)
            full = SVC(C=C, gamma=gamma, n_jobs=options.jobs).fit(*learn)
            with warnings.catch_warnings(), threadpool_limits(options.jobs):
                warnings.simplefilter("ignore")
                known[name] = {"set": name} | outcome(full, learn, judge, test, 0, options.jobs)
            print(*known[name].values(), flush=True)
        run = known[name]
        found.append(run)
        share = run["vectors"] / run["full vectors"]
        score, losses = 100 * run["full score"], [100 * run[key] for key in ("promised", "test loss")]
        lines.append((name, run["full vectors"], run["vectors"], f"{share:.3f}", f"{score:.1f}"))
        lines[-1] += tuple(f"{loss:.2f}" for loss in losses)
    head = ("case", "full vectors", "vectors", "share", "full accuracy, %", "promised at most", "test loss")
    report.say("## Hard cases")
    report.say(
        "The samples are generated so that every vector matters in its own neighbourhood: two spirals, "
        "checkerboards, and noise that a narrow kernel fits exactly."
    )
    report.table(f"Hard cases: {n:,} rows to learn from, twice as many judge", head, lines)


def main() -> int:
    """Run."""
    parser = arguments(__doc__ or "", ("promises", "hard"))
    parser.add_argument("--sets", nargs="+", help="these sets only")
    parser.add_argument("--splits", type=int, default=5, help="splits of each set")
    parser.add_argument("--rows", type=int, default=3000, help="most training rows")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    options = parser.parse_args()
    report = Report("promises", "What one call promises", options)
    if options.json is not None and options.json.is_file():
        report.numbers |= json.loads(options.json.read_text(encoding="utf-8"))
    return report.run({"promises": promises, "hard": hard})


if __name__ == "__main__":
    run(main)
