"""Cascades on every classification set: what a compressed model may answer in the full model's place.

Three tables. *Exact*: the small model answers where its label is certain, see
`svmarrow.cascade.ExactCascade`; disagreements are counted over all test rows in double and in single
precision and must be 0. *How far certainty reaches*: the share of rows that t vectors certify, whatever it
costs. *Calibrated*: the switch-over point is set on half of the test rows for at most 1 % of other labels
with confidence 95 %, see `svmarrow.cascade.CalibratedCascade`, and checked on the other half.

Parameters are those of the papers or of common use; nothing is chosen on test rows. At most 8,000 rows are
trained on (`--rows`), and at most 10,000 are tested. Times are medians of three predictions of at least
20,000 rows (the test rows, repeated), full model and cascade in turns. A second part fits the model of the
work by which stages are chosen. About ten minutes on two cores; ``--quick`` takes three small sets.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from common import DataMissingError, Report, arguments, load, no_sets, run, splits
from scipy.optimize import nnls
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from svmarrow import SVC, compression_path
from svmarrow._support.rows import core_rows
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.cascade.exact import Work

if TYPE_CHECKING:
    import argparse

#: C, gamma, scaling, coding.
SETS: dict[str, tuple[float, float, str, str]] = {
    "ratsch_banana": (316.2, 1.0, "none", "ovr"),
    "ratsch_german": (3.162, 1 / 55, "none", "ovr"),
    "ratsch_image": (500.0, 1 / 30, "none", "ovr"),
    "ratsch_waveform": (1.0, 1 / 20, "none", "ovr"),
    "breast_cancer_wisconsin": (1.0, 0.1, "standard", "ovr"),
    "sonar": (10.0, 0.02, "standard", "ovr"),
    "pima_diabetes": (1.0, 0.05, "standard", "ovr"),
    "ionosphere": (10.0, 0.05, "standard", "ovr"),
    "mushrooms": (1.0, 0.05, "none", "ovr"),
    "yeast": (10.0, 0.1, "standard", "ovo"),
    "satimage": (10.0, 1.0, "255", "ovr"),
    "satimage (pairs)": (10.0, 1.0, "255", "ovo"),
    "usps": (10.0, 1 / 128, "none", "ovr"),
    "usps (pairs)": (10.0, 1 / 128, "none", "ovo"),
    "letter": (10.0, 1 / 16, "standard", "ovr"),
    "cod_rna": (1.0, 0.1, "standard", "ovr"),
    "ijcnn1": (10.0, 1.0, "none", "ovr"),
    "a9a": (1.0, 0.05, "none", "ovr"),
    "w8a": (10.0, 0.01, "none", "ovr"),
    "mnist": (10.0, 0.02, "255", "ovr"),
    "news20_bydate": (1.0, 1.0, "unit", "ovr"),
}
QUICK = ("ratsch_banana", "breast_cancer_wisconsin", "sonar")
TESTED, TIMED = 10_000, 20_000
#: Small and large, few and many columns, one to 45 outputs; dense rows, since features are multiplied.
FITTED = (
    "breast_cancer_wisconsin", "pima_diabetes", "ionosphere", "ratsch_image", "mushrooms", "satimage",
    "satimage (pairs)", "cod_rna", "yeast", "usps", "ijcnn1",
)  # fmt: skip
CERTIFIED = (50, 100, 200, 400, 800)
SMALL = (25, 50, 100, 200, 400)
EPSILON, DELTA = 0.01, 0.05


def rows_of(name: str, most: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training and test rows in double precision, scaled on the training rows."""
    file = name.split(" ")[0]
    data = next(splits(file)) if file.startswith("ratsch") else load(file)
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if X_test is None:
        order = np.random.default_rng(0).permutation(len(y))
        cut = min(most, int(0.7 * len(y)))
        X, y, X_test, y_test = X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]
    pick = np.random.default_rng(1).permutation(len(y))[:most]
    X, y, X_test, y_test = X[np.sort(pick)], y[np.sort(pick)], X_test[:TESTED], y_test[:TESTED]
    scaling = SETS[name][2]
    if scaling == "standard":
        scaler = (MaxAbsScaler() if sp.issparse(X) else StandardScaler()).fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    elif scaling == "255":
        X, X_test = X / 255.0, X_test / 255.0
    elif scaling == "unit":
        X, X_test = (_unit(part) for part in (X, X_test))
    return X, y, X_test, y_test


def _unit(X: Any) -> Any:
    logs = X.copy()
    logs.data = np.log1p(logs.data)
    norms = np.sqrt(np.asarray(logs.multiply(logs).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1.0 / np.maximum(norms, 1e-12)) @ logs)


def repeated(X: Any, n: int) -> Any:
    """Rows again and again, at least n: the cost of a call is then no part of the cost of a row."""
    times = max(1, -(-n // X.shape[0]))
    return sp.csr_array(sp.vstack([X] * times)) if sp.issparse(X) else np.tile(X, (times, 1))


def in_turns(*calls: Any) -> list[float]:
    """Median times of calls that take turns, so that a busy machine is busy for all."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(3):
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return [median(spent) for spent in times]


def expected_speed(cascade: ExactCascade, X: Any) -> float:
    """What the model of the work says about speed, from the rows that each stage has answered."""
    expansion = cascade.model_.expansion_
    work, route = Work.of(expansion, X), cascade.route(X)
    total, before = 0.0, (0, 0)
    for stage, size in enumerate(cascade.stages_):
        total += float((route >= stage).mean()) * work.step(size, before)
        before = size
    return work.full / (total + float((route == len(cascade.stages_)).mean()) * work.full)


def one_set(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All numbers of a set."""
    C, gamma, _, coding = SETS[name]
    X, y, X_test, y_test = rows_of(name, options.rows)
    svc = SVC(C=C, gamma=gamma, multi_class=coding).fit(X, y)
    m = svc.expansion_.n_vectors
    start = time.perf_counter()
    path = compression_path(svc, n_vectors=min(m, 1000), tol=0)
    compressed = time.perf_counter() - start
    start = time.perf_counter()
    exact = ExactCascade.from_path(path, X)
    built = time.perf_counter() - start
    truth = svc.predict(X_test)
    single = X_test.astype(np.float32)
    report = exact.report(X_test)
    many = repeated(X_test, TIMED)
    full_time, exact_time = in_turns(lambda: svc.predict(many), lambda: exact.predict(many))
    reach = sorted({min(size, len(path)) for size in CERTIFIED})
    sure = ExactCascade.from_path(path, stages=reach)
    route = sure.route(X_test)
    sure_wrong = int((sure.predict(X_test) != truth).sum())
    sure_wrong += int((sure.predict(single) != svc.predict(single)).sum())
    half = X_test.shape[0] // 2
    mixed = np.random.default_rng(2).permutation(X_test.shape[0])
    held, left = X_test[np.sort(mixed[:half])], np.sort(mixed[half:])
    smalls = [path[size] for size in sorted({min(size, len(path)) for size in SMALL})]
    result = {
        "set": name,
        "rows": X.shape[0],
        "m": m,
        "q": svc.expansion_.n_outputs,
        "accuracy": float((truth == y_test).mean()),
        "seconds to compress": compressed,
        "seconds to build": built,
        "stages": exact.stages_,
        "share": report.share_small,
        "values": report.mean_kernel_values,
        "speed": full_time / exact_time,
        "speed by the model": expected_speed(exact, X_test),
        "wrong": int((exact.predict(X_test) != truth).sum()),
        "wrong in single": int((exact.predict(single) != svc.predict(single)).sum()),
        "reach": {size: float((route <= stage).mean()) for stage, size in enumerate(reach)},
        "wrong in reach": sure_wrong,
        "tested": X_test.shape[0],
    }
    try:
        calibrated = CalibratedCascade.from_fitted(svc, smalls, held, epsilon=EPSILON, delta=DELTA)
    except ValueError:
        return result
    rest = X_test[left]
    answers = calibrated.predict(rest)
    many = repeated(rest, TIMED)
    full_time, fast_time = in_turns(lambda: svc.predict(many), lambda: calibrated.predict(many))
    told = calibrated.report(rest)
    return result | {
        "size": told.sizes[0],
        "bound": calibrated.risk_bound_,
        "calibrated share": told.share_small,
        "calibrated values": told.mean_kernel_values,
        "calibrated speed": full_time / fast_time,
        "disagreements": int((answers != truth[left]).sum()),
        "left": len(left),
        "calibrated accuracy": float((answers == y_test[left]).mean()),
        "full accuracy": float((truth[left] == y_test[left]).mean()),
    }


def sets(report: Report, options: argparse.Namespace) -> None:
    """Run the sets, print the tables."""
    names = [name for name in options.sets if not options.quick or name in QUICK]
    results = []
    for name in names:
        try:
            results.append(one_set(name, options))
        except DataMissingError as missing:
            print(missing)
            continue
        done = results[-1]
        print(
            f"{name}: {done['share']:.3f} exact, {done.get('calibrated share', 0):.3f} calibrated", flush=True
        )
    if not results:
        raise no_sets()
    report.numbers |= {result["set"]: result for result in results}
    report.say(
        "The full model is an SVM with RBF kernel; m is its number of vectors, q of outputs. Values are "
        "kernel values a row, speed is the time of the full model divided by the cascade's on the same rows."
    )
    report.table(
        "Exact: certain labels only, stages chosen on training rows",
        (
            "set",
            "m",
            "q",
            "stages",
            "last (t, p)",
            "share small",
            "values",
            "speed",
            "by the model",
            "wrong",
            "in f32",
        ),
        [
            (
                r["set"],
                r["m"],
                r["q"],
                len(r["stages"]),
                r["stages"][-1] if r["stages"] else "none",
                r["share"],
                r["values"],
                r["speed"],
                r["speed by the model"],
                r["wrong"],
                r["wrong in single"],
            )
            for r in results
        ],
    )
    wrong = sum(r["wrong"] + r["wrong in single"] + r["wrong in reach"] for r in results)
    tested = sum(r["tested"] for r in results)
    report.say(
        f"Disagreements with the full model on {tested:,} test rows, in both precisions and with both "
        f"choices of stages: {wrong}. Where there are no stages, they were not expected "
        f"to save a tenth of the work, "
        "and the full model answers alone."
    )
    report.table(
        "How far certainty reaches: share of test rows that t vectors certify",
        ("set", "m", *(f"t = {size}" for size in CERTIFIED), "seconds to compress", "seconds to build"),
        [
            (
                r["set"],
                r["m"],
                *(
                    r["reach"].get(size, r["reach"][max(r["reach"])] if size > r["m"] else "")
                    for size in CERTIFIED
                ),
                r["seconds to compress"],
                r["seconds to build"],
            )
            for r in results
        ],
    )
    report.say(
        "The bound is that of Cauchy and Schwarz: it knows the length of what is missing and not its "
        "direction, which makes it ten to fifty times the error. So it pays where few "
        "vectors span nearly everything "
        "(satimage, banana), and not where every row is far from every vector (usps, mnist, sparse text)."
    )
    report.table(
        f"Calibrated: at most {100 * EPSILON:g} % other labels with confidence {100 * (1 - DELTA):g} %",
        (
            "set",
            "m",
            "small",
            "share small",
            "values",
            "speed",
            "disagreements",
            "samples",
            "bound",
            "accuracy",
            "full",
        ),
        [
            (
                r["set"],
                r["m"],
                r["size"],
                r["calibrated share"],
                r["calibrated values"],
                r["calibrated speed"],
                r["disagreements"],
                r["left"],
                r["bound"],
                r["calibrated accuracy"],
                r["full accuracy"],
            )
            for r in results
            if "size" in r
        ],
    )
    few = [r["set"] for r in results if "size" not in r]
    if few:
        report.say(f"Too few rows to promise anything: {', '.join(few)}.")


def work(report: Report, options: argparse.Namespace) -> None:
    """Fit the work of a row, by the full model and by one stage, to the clock."""
    columns = ("feature x vector", "vector", "direction^2 / 2", "direction", "output x vector")
    columns += ("output x direction", "output", "feature", "row")
    stages: list[list[float]] = []
    fulls: list[list[float]] = []
    for name in FITTED if not options.quick else QUICK[1:2]:
        try:
            X, y, X_test, _ = rows_of(name, min(options.rows, 6_000))
        except DataMissingError as missing:
            print(missing)
            continue
        C, gamma, _, coding = SETS[name]
        svc = SVC(C=C, gamma=gamma, multi_class=coding, n_jobs=1).fit(X, y)
        path = compression_path(svc, n_vectors=min(svc.expansion_.n_vectors, 600), tol=0)
        rows, full = repeated(X_test, 6_000), svc.expansion_
        parts = core_rows(rows)
        f, q, n = X.shape[1], full.n_outputs, rows.shape[0]
        used = float(np.count_nonzero(full.coefficients))
        took = min(in_turns(*[lambda svc=svc, rows=rows: svc.predict(rows)] * 3))
        fulls.append([f * full.n_vectors, used, 0, 0, 0, 0, q, f, 1, 1e9 * took / n])
        for t in sorted({min(len(path), size) for size in (16, 48, 96, 192, 384, 600)}):
            for p in sorted({min(t, size) for size in (16, 32, 64, 128, 256, 600)}):
                stage = ExactCascade.from_path(path, stages=[(t, p)], n_jobs=1)._ready()
                took = min(in_turns(*[lambda stage=stage, parts=parts: stage.answer(parts, 1)] * 2))
                stages.append([f * t, t, p * p / 2, p, q * t, q * p, q, f, 1, 1e9 * took / n])
        print(f"{name}: {len(stages)} stages timed", flush=True)
    table = []
    unit = 0.0
    if not fulls:
        raise no_sets()
    for kind, timed in (("full model", fulls), ("stage", stages)):
        A, took = np.array(timed)[:, :-1], np.array(timed)[:, -1]
        cost, _ = nnls(A / took[:, None], np.ones(len(took)))
        unit = unit or cost[0]
        off = np.quantile(A @ cost / took, (0.1, 0.5, 0.9))
        table.append([kind, len(took), *(cost / unit), *off])
    report.numbers["work"] = {"nanoseconds": unit, "fits": table}
    report.table(
        f"What a row costs on one thread, in multiply-adds of a kernel value ({unit:.3f} ns here)",
        ("of", "timed", *columns, "model / clock, 10 %", "50 %", "90 %"),
        table,
    )
    report.say(
        "Fitted to relative errors, no part below zero. The vectors of the full model are counted once an "
        "output that uses them. Stages are chosen by these figures, rounded, so that the choice is the same "
        "on every machine (`svmarrow/cascade/stages.py`)."
    )


def main() -> int:
    """Run; a label that is not the full model's is an error."""
    parser = arguments(__doc__, ("sets", "work"))
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS), help="these sets only")
    parser.add_argument("--rows", type=int, default=8_000, help="most rows to train on")
    options = parser.parse_args()
    report = Report("cascades", "Cascades: measurements", options)
    code = report.run({"sets": sets, "work": work})
    keys = ("wrong", "wrong in single", "wrong in reach")
    return code or int(any(result.get(key) for result in report.numbers.values() for key in keys))


if __name__ == "__main__":
    run(main)
