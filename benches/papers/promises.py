"""What `compress` loses on samples that it has not seen, against what was asked.

``python benches/papers/promises.py``

Data: every set of ``SVMARROW_DATA`` (or ``../shared/data`` beside the repository). Each split draws samples
to train on, new samples to compress with and samples to test, from all samples of the set; dense columns are
standardised by the training samples. An SVC, one-vs-rest where there are several classes, or an SVR, is
compressed by three calls: with the new samples and no other setting, with ``max_loss=0.01``, and with the
training samples instead of new ones. The excess is what the score on the test samples falls by beyond the
loss that was asked for, 0 where it does not.

``--rows`` caps the training samples (the new ones at half of that), ``--splits`` the splits, ``--sets`` names
sets. Runs that the file of ``--json`` has are not made again.
"""

from __future__ import annotations

import json
import statistics
import time
import warnings
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from common import Report, arguments, folder, load, no_sets, run
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from svmarrow import SVC, SVR, compress

if TYPE_CHECKING:
    import argparse

NUMBERS = {"abalone", "kin8nm"}
#: The sets, with parameters where the defaults C=10, gamma="scale" are far from good.
MACHINES: dict[str, dict[str, Any]] = {
    "a9a": {"C": 1.0, "gamma": 0.05},
    "abalone": {},
    "breast_cancer_wisconsin": {},
    "cod_rna": {},
    "ijcnn1": {},
    "ionosphere": {},
    "kin8nm": {},
    "letter": {},
    "magic": {},
    "mnist": {},
    "mushrooms": {},
    "news20_bydate": {},
    "page_blocks": {},
    "pima_diabetes": {"C": 1.0},
    "ratsch_banana": {"C": 1.0, "gamma": 1.0},
    "ratsch_german": {"C": 1.0},
    "ratsch_image": {},
    "ratsch_waveform": {"C": 1.0},
    "satimage": {},
    "shuttle": {},
    "sonar": {},
    "usps": {},
    "w8a": {"gamma": 0.05},
    "yeast": {"C": 1.0},
}
MAX_TEST_SAMPLES = 10_000
#: Number of sets of a quick run.
QUICK_SETS = 4
#: The arguments of each call beside the model and the samples, and the loss that it asks for.
CALLS: dict[str, tuple[dict[str, Any], float]] = {
    "default": ({}, 0.003),
    "max_loss=0.01": ({"max_loss": 0.01}, 0.01),
    "training samples": ({}, 0.003),
}


def all_rows(name: str) -> tuple[Any, np.ndarray]:
    """Samples and targets of a set, whatever its own splits."""
    if name.startswith("ratsch"):
        with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
            return np.ascontiguousarray(file["X"], dtype=np.float64), file["y"]
    return load(name).all()


def split_of(name: str, split: int, max_train: int) -> list[tuple[Any, np.ndarray]]:
    """Training, new and test samples, dense columns standardised by the first."""
    X, y = all_rows(name)
    n = y.size
    order = np.random.default_rng(split).permutation(n)
    train, new = min(max_train, int(0.4 * n)), min(max_train // 2, int(0.2 * n))
    test = min(MAX_TEST_SAMPLES, n - train - new)
    parts = order[:train], order[train : train + new], order[n - test :]
    if not sp.issparse(X):
        X = StandardScaler().fit(X[parts[0]]).transform(X)
    if name not in NUMBERS:
        # Classes so rare that the model does not know them.
        known = np.isin(y[parts[1]], y[parts[0]])
        parts = parts[0], parts[1][known], parts[2]
    return [(X[part], y[part]) for part in parts]


def compressed(full: Any, given: Any, test: Any, call: str, seed: int, jobs: int) -> dict[str, Any]:
    """What one call gives, and how it does on the test samples."""
    options, asked = CALLS[call]
    began = time.perf_counter()
    small = compress(full, *given, random_state=seed, n_jobs=jobs, **options)
    seconds = time.perf_counter() - began
    score = float(full.score(*test))
    loss = score - float(small.score(*test))
    bound = small.loss_bound_
    vectors = full.expansion_.n_vectors
    return {
        "full score": score,
        "full vectors": vectors,
        "vectors": small.expansion_.n_vectors,
        "measured": bound.loss,
        "bound": bound.upper,
        "test loss": loss,
        "excess": max(0.0, loss - asked),
        "holds": bool(loss <= bound.upper),
        "seconds": seconds,
    }


def outcome(full: Any, given: Any, test: Any, seed: int, jobs: int) -> dict[str, Any]:
    """What the default call gives, and how it does on the test samples."""
    return compressed(full, given, test, "default", seed, jobs)


def promises(report: Report, options: argparse.Namespace) -> None:
    """The table."""
    names = options.sets or sorted(path.stem for path in folder().glob("*.npz") if path.stem in MACHINES)
    splits, most = (1, 300) if options.quick else (options.splits, options.rows)
    if options.quick and not options.sets:
        names = names[:QUICK_SETS]
    if not names:
        raise no_sets()
    file = options.json
    known = {(run["set"], run["split"], run["call"]): run for run in report.numbers.get("runs", [])}
    found: list[dict[str, Any]] = []
    for split, name in product(range(splits), names):
        if all((name, split, call) in known for call in CALLS):
            found += [known[name, split, call] for call in CALLS]
            continue
        train, new, test = split_of(name, split, most)
        settings: dict[str, Any] = {"C": 10.0, "n_jobs": options.jobs, **MACHINES[name]}
        full = (SVR(**settings) if name in NUMBERS else SVC(multi_class="ovr", **settings)).fit(*train)
        about = {"set": name, "split": split, "samples": [part[1].size for part in (train, new, test)]}
        for call in CALLS:
            given = train if call == "training samples" else new
            with warnings.catch_warnings(), threadpool_limits(options.jobs):
                warnings.simplefilter("ignore")
                run = about | {"call": call} | compressed(full, given, test, call, split, options.jobs)
            found.append(run)
            print(*run.values(), flush=True)
        # A run that is ended early has whole sets.
        report.numbers["runs"] = list(found)
        if file is not None:
            file.write_text(json.dumps(report.numbers, indent=1, default=float) + "\n", encoding="utf-8")
    lines = []
    for name in names:
        runs = [run for run in found if run["set"] == name]
        cells = [name, " / ".join(f"{count:,}" for count in runs[0]["samples"])]
        cells.append(f"{statistics.mean(run['full vectors'] for run in runs):.0f}")
        for call in CALLS:
            of_call = [run for run in runs if run["call"] == call]
            cells.append(f"{statistics.mean(run['vectors'] for run in of_call):.0f}")
            cells.append(f"{100 * statistics.mean(run['test loss'] for run in of_call):.2f}")
        lines.append(tuple(cells))
    head = ("set", "samples: train / new / test", "full vectors")
    head += tuple(f"{call}: {what}" for call in CALLS for what in ("vectors", "test loss, %"))
    report.table("Means of the splits", head, lines)
    summary: dict[str, dict[str, Any]] = {}
    for call, (_, asked) in CALLS.items():
        runs = [run for run in found if run["call"] == call]
        worst = max(runs, key=lambda run: run["excess"])
        shares = [run["vectors"] / run["full vectors"] for run in runs]
        summary[call] = {
            "asked": asked,
            "runs": len(runs),
            "beyond what was asked": sum(run["excess"] > 0.0 for run in runs),
            "mean excess": statistics.mean(run["excess"] for run in runs),
            "worst excess": worst["excess"],
            "worst set": worst["set"],
            "bounds held": sum(run["holds"] for run in runs),
            "median share": statistics.median(shares),
            "mean share": statistics.mean(shares),
            "mean seconds": statistics.mean(run["seconds"] for run in runs),
        }
    before = report.numbers.get("summary of the measured loss", {})
    lines = [
        (
            f"{call}{what}",
            f"{100 * CALLS[call][1]:g}",
            f"{one['beyond what was asked']} of {one['runs']}",
            f"{100 * one['mean excess']:.3f}",
            f"{100 * one['worst excess']:.2f} ({one['worst set']})",
            f"{one['bounds held']} of {one['runs']}",
            f"{one['median share']:.3f}",
            f"{one['mean share']:.3f}",
            f"{one['mean seconds']:.1f}",
        )
        for what, of_calls in (("", summary), (", by the measured loss", before))
        for call, one in of_calls.items()
        if call in CALLS
    ]
    report.numbers["summary"] = summary
    head = ("call", "asked, %", "beyond it", "mean excess, %", "worst excess, %", "bound held")
    head += ("median share of vectors", "mean share", "seconds")
    report.table("All sets", head, lines)
    report.say(
        f"{splits} splits of at most {most:,} training samples, {options.jobs} threads (`python "
        f"benches/papers/promises.py --rows {most} --splits {splits} --jobs {options.jobs} --json "
        "docs/benchmarks/promises.json`; every run is in [promises.json](../benchmarks/promises.json)). The "
        "last rows are the calls at commit 8809a26, which chose the smallest size by its measured loss. The "
        "seconds are those of processors that had much other work."
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
            train, new, test = draw(random, n), draw(random, n), draw(random, 20_000)
            full = SVC(C=C, gamma=gamma, n_jobs=options.jobs).fit(*train)
            with warnings.catch_warnings(), threadpool_limits(options.jobs):
                warnings.simplefilter("ignore")
                known[name] = {"set": name} | outcome(full, new, test, 0, options.jobs)
            print(*known[name].values(), flush=True)
        run = known[name]
        found.append(run)
        share = run["vectors"] / run["full vectors"]
        score, losses = 100 * run["full score"], [100 * run[key] for key in ("bound", "test loss")]
        lines.append((name, run["full vectors"], run["vectors"], f"{share:.3f}", f"{score:.1f}"))
        lines[-1] += tuple(f"{loss:.2f}" for loss in losses)
    head = ("case", "full vectors", "vectors", "share", "full accuracy, %", "bound", "test loss")
    report.say("## Hard cases")
    report.say(
        "The samples are generated so that every vector matters in its own neighbourhood: two spirals, "
        "checkerboards, and noise that a narrow kernel fits exactly."
    )
    report.table(f"Hard cases: {n:,} training samples, as many new ones", head, lines)


def main() -> int:
    """Run."""
    parser = arguments(__doc__ or "", ("promises", "hard"))
    parser.add_argument("--sets", nargs="+", help="these sets only")
    parser.add_argument("--splits", type=int, default=1, help="splits of each set")
    parser.add_argument("--rows", type=int, default=1200, help="most training samples")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    options = parser.parse_args()
    report = Report("promises", "Loss bounds of compressed models: measurements", options)
    if options.json is not None and options.json.is_file():
        report.numbers |= json.loads(options.json.read_text(encoding="utf-8"))
    return report.run({"promises": promises, "hard": hard})


if __name__ == "__main__":
    run(main)
