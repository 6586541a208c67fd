"""Xu, Gardner, Tyree and Weinberger (2015), figure 2, and measurements of constructed vectors.

``python benches/papers/compressed_svm.py``

Data: usps, letter, ijcnn1, a9a, mnist and news20_bydate from ``SVMARROW_DATA`` or ``../shared/data`` beside
the repository. letter is standardised, pixels of mnist are divided by 255, news is 200 components of its
tf-idf as in the paper's table 1. Everything is chosen on training rows; test rows are scored once.

figure2: 600 samples of a Gaussian inside a noisy ring; the full model, LARS with 8 vectors, and the
boundary of 8 moved vectors after 0 to 2,560 steps. Figure 3 has a script of its own
(``compressed_svm_figure3.py``). targets: mean errors of the default settings at given sizes over seeds and
precisions of the rows, each error into the file of ``--json`` as soon as it is known; errors that the file
has are not made again. starts: LARS, pursuit and cluster centres. path: what each size of a path errs and
takes. bytes: single precision and coefficients of one byte. room: letter in 8 kB and mnist in 64 kB.
optimiser: conjugate gradients, as the paper has it, beside small steps. search: size and kernel parameters
together by scikit-learn's searches.

Takes about fifteen minutes on two cores.
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, Rows, arguments, load, run
from scipy.optimize import minimize
from sklearn.decomposition import TruncatedSVD
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next line possible
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from svmarrow import SVC, ReducedSet, compress, compression_path, quantize
from svmarrow.papers import reduced_set
from svmarrow.reduced_set import GradientSettings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

PARTS = ("figure2", "targets", "starts", "path", "bytes", "room", "optimiser", "search")
MACHINES = {
    "usps": {"C": 10.0, "gamma": 1 / 128},
    "letter": {"C": 1000.0, "gamma": 1 / 32},
    "ijcnn1": {"C": 10.0, "gamma": 1.0},
    "a9a": {"C": 1.0, "gamma": 0.05},
    "mnist": {"C": 10.0, "gamma": 0.02},
    "news": {"C": 10.0, "gamma": 1.0},
}
#: Largest mean of the test errors in percent by set and number of vectors.
TARGETS = {
    "ijcnn1": {50: 1.25, 100: 1.15},
    "letter": {100: 4.6, 200: 4.1, 400: 3.6},
    "a9a": {10: 14.9},
    "usps": {50: 5.0, 100: 4.6},
    "mnist": {300: 1.5},
}
PRECISIONS = ("float64", "float32")
BLUE, RED, GREEN, GREY = "#3b6fb6", "#c8553d", "#3a8f5c", "#8a8a8a"


@lru_cache
def rows(name: str, quick: bool, dtype: str | None = None) -> Rows:
    """Rows of a set, scaled; a quick run has a tenth of them and at most 800."""
    usual = "float32" if name == "mnist" else "float64"
    found = load("news20_bydate" if name == "news" else name, np.dtype(dtype or usual))
    X, y, X_test, y_test = found.X, found.y, found.X_test, found.y_test
    if quick:
        kept = np.random.default_rng(0).permutation(len(y))[: min(len(y) // 10, 800)]
        X, y, X_test, y_test = X[kept], y[kept], X_test[:500], y_test[:500]
    if name == "letter":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    elif name == "mnist":
        X, X_test = X / 255, X_test / 255
    elif name == "news":
        weight = TfidfTransformer(sublinear_tf=True).fit(X)
        project = TruncatedSVD(200, random_state=0).fit(weight.transform(X))
        X, X_test = (normalize(project.transform(weight.transform(part))) for part in (X, X_test))
    return Rows(X, y, X_test, y_test)


@lru_cache
def machine(name: str, coding: str, quick: bool, dtype: str | None = None) -> Any:
    """The full machine of a set."""
    data = rows(name, quick, dtype)
    return SVC(multi_class=coding, **MACHINES[name]).fit(data.X, data.y)


@lru_cache
def default(name: str, size: int, quick: bool) -> tuple[Any, float]:
    """What the default settings make of a one-vs-rest machine, and the seconds it takes."""
    data, full = rows(name, quick), machine(name, "ovr", quick)
    start = time.perf_counter()
    made = compress(
        full, n_vectors=size, method="gradient", random_state=0, X=data.X, y=data.y, settings=few(quick)
    )
    return made, time.perf_counter() - start


def error(model: Any, data: Rows) -> float:
    """Test error in percent."""
    return 100.0 * (1.0 - float(model.score(data.X_test, data.y_test)))


def few(quick: bool, **settings: Any) -> GradientSettings:
    """The defaults with these changes; a quick run has few steps."""
    return GradientSettings(**{**settings, **({"steps": 300} if quick else {})})


def targets(report: Report, options: argparse.Namespace) -> None:
    """Mean errors of the default settings."""
    quick = options.quick
    sets = [name for name in TARGETS if not (quick and name == "mnist")]
    file = options.json
    found: dict[str, dict[str, float]] = report.numbers.setdefault("targets", {})

    def of(group: str, key: str, work: Callable[[], float]) -> None:
        """Make a number that the file does not have, and put it there."""
        numbers = found.setdefault(group, {})
        if key not in numbers:
            numbers[key] = work()
            print(group, key, numbers[key], flush=True)
            if file is not None:
                file.write_text(json.dumps(report.numbers, indent=1) + "\n", encoding="utf-8")

    def made(name: str, size: int, dtype: str, **given: Any) -> float:
        data, full = rows(name, quick, dtype), machine(name, "ovr", quick, dtype)
        small = compress(full, data.X, data.y, n_vectors=size, n_jobs=options.jobs, **given)
        return error(small, data)

    lines: list[tuple[Any, ...]] = []
    # Seeds outside: a run that is ended early has as many of every set as there was time for.
    for seed in range(1 if quick else options.seeds):
        for name in sets:
            for dtype in PRECISIONS:
                for size in TARGETS[name]:
                    given = {"method": "gradient", "random_state": seed, "settings": few(quick)}
                    work = partial(made, name, size, dtype, **given)
                    of(f"{name} {size}, {dtype}", str(seed), work)
    for name in sets:
        for size, most in TARGETS[name].items():
            groups = [list(found.get(f"{name} {size}, {dtype}", {}).values()) for dtype in PRECISIONS]
            every = [one for group in groups for one in group]
            if not every:
                continue
            mean = float(np.mean(every))
            met = "few rows" if quick else "yes" if mean <= most + 0.005 else f"no, by {mean - most:.2f}"
            means = [f"{np.mean(group):.2f} ({len(group)})" if group else "" for group in groups]
            lines.append((name, size, *means, f"{mean:.2f}", f"{np.std(every):.2f}", f"{most:.2f}", met))
    head = ("set", "kept", *(f"{one}, % (runs)" for one in PRECISIONS), "mean, %", "deviation")
    head += ("target mean, %", "met")
    report.table("Test error of one-vs-rest RBF SVMs, default settings: means over seeds", head, lines)
    report.say(
        "The columns give how many seeds were run in each precision of the samples. `--seeds 5 --json "
        "docs/benchmarks/compressed_svm.json` adds the runs that the file does not have."
    )


def ring(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Six hundred rows: a standard Gaussian, and a noisy ring around it."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, 300)
    radius = 4.0 + 0.5 * rng.standard_normal(300)
    outside = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    return np.vstack([rng.standard_normal((300, 2)), outside]), np.repeat([0, 1], 300)


def figure2(report: Report, _options: argparse.Namespace) -> None:
    """The boundary of 8 vectors after more and more steps."""
    from matplotlib.figure import Figure

    X, y = ring()
    full = SVC(C=1.0, gamma=0.2, loss="squared_hinge").fit(X, y)
    kept = reduced_set.path(full, n_vectors=8, method="lars", X=X, y=y)[8]
    counts = (0, 40, 160, 640, 2560)
    models: dict[str, Any] = {"LARS-SVM": kept}
    for steps in counts:
        settings = GradientSettings(loss="matching", start=kept, steps=steps, noise=0.0)
        models[f"{steps} steps"] = compress(
            full, n_vectors=8, method="gradient", random_state=0, settings=settings
        )
    side = np.linspace(-5, 5, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    wanted = full.decision_function(grid)
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    lines = []
    for at, (name, model) in enumerate([("inputs", None), ("full machine", full), *models.items()]):
        ax = axes[at]
        for label, colour in ((0, BLUE), (1, RED)):
            ax.plot(*X[y == label].T, ".", color=colour, markersize=2.5, alpha=0.55)
        if model is not None:
            ax.contour(side, side, wanted.reshape(201, 201), [0.0], colors="black", linewidths=1.4)
        if model not in (None, full):
            found = model.decision_function(grid)
            colour = GREY if name == "LARS-SVM" else GREEN
            ax.contour(side, side, found.reshape(201, 201), [0.0], colors=colour, linewidths=1.8)
            ax.plot(*model.expansion_.vectors.T, "o", color=GREY, markeredgecolor="black", markersize=6)
            agree = float(((found > 0) == (wanted > 0)).mean())
            distance = float(np.sqrt(((found - wanted) ** 2).mean() / wanted.var()))
            lines.append((name, f"{100 * agree:.2f}", distance, float(model.score(X, y))))
            report.numbers[f"figure 2, {name}"] = agree
        ax.set(title=name, xlim=(-5, 5), ylim=(-5, 5), xticks=[], yticks=[], aspect="equal")
    axes[-1].set_visible(len(models) + 2 >= len(axes))
    report.say(
        f"The full model has {full.expansion_.n_vectors} vectors and classifies "
        f"{100 * full.score(X, y):.1f} % of the samples correctly."
    )
    head = ("8 vectors", "grid labelled as by the full SVM, %", "relative distance", "accuracy")
    report.table("Boundary of the moved vectors", head, lines)
    report.figure(figure, "figure2")


def starts(report: Report, options: argparse.Namespace) -> None:
    """Where the vectors start, and what is left of it when they have moved."""
    quick = options.quick
    data, full = rows("usps", quick), machine("usps", "ovr", quick)
    common: dict[str, Any] = {"X": data.X, "y": data.y}
    lines = []
    for start in ("lars", "backfit", "centers"):
        began = time.perf_counter()
        joint = reduced_set.PaperSettings(joint=True)
        begin = (
            None
            if start == "centers"
            else reduced_set.path(full, n_vectors=50, method=start, settings=joint, **common)[50]
        )
        took = time.perf_counter() - began
        given: Any = start if begin is None else begin
        paper = few(quick, start=given, loss="matching", noise=0.0, steps=20_000)
        usual = few(quick, start=given, steps=20_000)
        matched = compress(full, n_vectors=50, method="gradient", random_state=0, settings=paper)
        made = compress(full, n_vectors=50, method="gradient", random_state=0, settings=usual, **common)
        alone = "" if begin is None else f"{error(begin, data):.2f}"
        lines.append((start, alone, f"{error(matched, data):.2f}", f"{error(made, data):.2f}", took))
        report.numbers[f"usps 50 from {start}"] = error(made, data)
    head = ("start", "by itself", "outputs matched at the vectors", "default loss", "seconds of the start")
    report.table("usps, 50 vectors, 20,000 steps: test error in %", head, lines)


def path_of_sizes(report: Report, options: argparse.Namespace) -> None:
    """What each size of a path errs, and what it takes."""
    quick = options.quick
    data, full = rows("letter", quick), machine("letter", "ovr", quick)
    last = 40 if quick else 400
    common: dict[str, Any] = {
        "method": "gradient",
        "random_state": 0,
        "X": data.X,
        "y": data.y,
        "settings": few(quick, steps=20_000),
    }
    start = time.perf_counter()
    path = compression_path(full, n_vectors=last, **common)
    seconds = time.perf_counter() - start
    report.say(f"Every size is constructed independently; all of them take {seconds:.1f} s.")
    lines = [(size, f"{error(path[size], data):.2f}") for size in path.sizes]
    report.table("letter, one-vs-rest, 20,000 steps a size: test error in %", ("vectors", "error"), lines)
    times = []
    for n in (len(data.y) // 4, len(data.y)):
        took = []
        for size in (last // 4, last // 2, last):
            start = time.perf_counter()
            common.update(X=data.X[:n], y=data.y[:n], settings=few(quick, steps=5000))
            compress(full, n_vectors=size, **common)
            took.append(time.perf_counter() - start)
        times.append((n, *[f"{value:.2f}" for value in took]))
    head = ("samples", *[f"{size} vectors" for size in (last // 4, last // 2, last)])
    report.table("letter: seconds of 5000 steps", head, times)


def in_bytes(report: Report, options: argparse.Namespace) -> None:
    """What single precision and coefficients of one byte cost."""
    quick = options.quick
    lines = []
    for name, size in (("usps", 50), ("letter", 100), ("ijcnn1", 50)):
        data, full = rows(name, quick), machine(name, "ovr", quick)
        made, _ = default(name, size, quick)
        rounded = quantize(made, X=data.X_test, y=data.y_test)
        result = rounded.quantization_
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(at) for at in range(3)]
            for file, model in zip(files, (full, made, rounded), strict=True):
                model.save(file)
            held = [file.stat().st_size / 1024 for file in files]
        scores = [f"{100 * (1 - score):.2f}" for score in (result.score_before, result.score_after)]
        lines.append(
            (name, size, *[f"{size:,.1f}" for size in held], *scores, f"{100 * result.disagreement:.2f}")
        )
    head = (
        "set",
        "vectors",
        "full, KiB",
        "constructed, KiB",
        "one byte, KiB",
        "error, %",
        "after, %",
        "labels changed, %",
    )
    report.table(
        "Files of the full model, of the constructed one, and with coefficients of one byte", head, lines
    )


#: Bytes that there are for the file of a set, and vectors that fit in one byte a number.
ROOM = {"letter": (8 * 1024, 148), "mnist": (64 * 1024, 78)}


def in_room(report: Report, options: argparse.Namespace) -> None:
    """What fits a given number of bytes, vectors and coefficients of one byte each, and what it errs."""
    quick = options.quick
    numbers = report.numbers.setdefault("room", {})
    lines = []
    for name, (most, size) in ROOM.items():
        if quick and name == "mnist":
            continue
        data, full = rows(name, quick), machine(name, "ovr", quick)
        small = compress(
            full,
            data.X,
            data.y,
            n_vectors=size,
            method="gradient",
            random_state=0,
            settings=few(quick),
            n_jobs=options.jobs,
        )
        packed = quantize(small, dtype="int8", X=data.X, n_jobs=options.jobs)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model"
            held = []
            for model in (full, small, packed):
                model.save(file)
                held.append(file.stat().st_size)
        errors = [error(model, data) for model in (full, small, packed)]
        numbers[name] = {"vectors": size, "bytes": held, "errors": errors, "room": most}
        print(name, numbers[name], flush=True)
        met = "yes" if held[-1] <= most else f"no, by {held[-1] - most}"
        shown = [
            cell for pair in zip(held, errors, strict=True) for cell in (f"{pair[0]:,}", f"{pair[1]:.2f}")
        ]
        lines.append((name, full.expansion_.n_vectors, size, *shown, f"{most:,}", met))
    head = ("set", "vectors", "kept", "full, bytes", "error, %", "constructed, bytes", "error, %")
    head += ("one byte a number, bytes", "error, %", "limit, bytes", "fits")
    report.table(
        "One-vs-rest SVMs; constructed vectors, and rounded to bytes with tuned coefficients", head, lines
    )


def optimiser(report: Report, options: argparse.Namespace) -> None:
    """Conjugate gradients on all of equation 10, in NumPy, beside Adam on batches for the same objective."""
    quick = options.quick
    full = machine("usps", "ovr", quick)
    size, gamma = 50, MACHINES["usps"]["gamma"]
    X = np.asarray(full.expansion_.vectors)
    wanted = full.expansion_.decision_function(X)
    begin = GradientSettings(loss="matching", start="backfit", noise=0.0, steps=0)
    start = compress(full, n_vectors=size, method="gradient", random_state=0, settings=begin).expansion_
    d, q = X.shape[1], wanted.shape[1]
    scale = np.sqrt(X.var(axis=0).mean())

    def value(point: np.ndarray) -> tuple[float, np.ndarray]:
        Z = point[: size * d].reshape(size, d) * scale
        B, b = point[size * d : -q].reshape(size, q), point[-q:]
        squares = (X**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * X @ Z.T
        K = np.exp(-gamma * np.maximum(squares, 0))
        off = (K @ B + b - wanted) / len(X)
        W = 2 * gamma * K * (off @ B.T)
        slope = (W.T @ X - W.sum(0)[:, None] * Z) * scale
        return 0.5 * len(X) * float((off**2).sum()), np.concatenate(
            [slope.ravel(), (K.T @ off).ravel(), off.sum(0)]
        )

    point = np.concatenate([(start.vectors / scale).ravel(), start.coefficients.ravel(), start.intercepts])
    lines = []
    for steps in (20,) if quick else (50, 200, 800):
        began = time.perf_counter()
        found = minimize(value, point, jac=True, method="CG", options={"maxiter": steps})
        lines.append(
            (f"conjugate gradients, {steps} iterations", float(found.fun), time.perf_counter() - began)
        )
    for steps in (300,) if quick else (2000, 8000, 32_000):
        began = time.perf_counter()
        settings = GradientSettings(loss="matching", start="backfit", noise=0.0, steps=steps)
        small = compress(
            full, n_vectors=size, method="gradient", random_state=0, settings=settings
        ).expansion_
        loss = 0.5 * float(((small.decision_function(X) - wanted) ** 2).sum(1).mean())
        lines.append((f"Adam, {steps} steps", loss, time.perf_counter() - began))
    report.table("usps, 50 vectors: half the squared distance at the vectors", ("", "loss", "seconds"), lines)


def smallest(max_loss: float) -> Any:
    """For ``refit``: the fewest vectors whose score is within ``max_loss`` of the best."""

    def choose(results: dict[str, Any]) -> int:
        scores = np.asarray(results["mean_test_score"])
        sizes = np.asarray(results["param_reducedset__n_vectors"], dtype=float)
        sizes[scores < scores.max() - max_loss] = np.inf
        # Among equal sizes the better score.
        return int(np.lexsort((-scores, sizes))[0])

    return choose


def search(report: Report, options: argparse.Namespace) -> None:
    """Size, C and gamma together, constrained by the accuracy of the compressed model."""
    quick = options.quick
    data = load("satimage")
    kept = np.random.default_rng(0).permutation(len(data.y))[: 400 if quick else None]
    X, y = data.X[kept], data.y[kept]
    settings = few(quick, steps=3000)
    model = make_pipeline(
        StandardScaler(),
        ReducedSet(SVC(multi_class="ovr"), method="gradient", random_state=0, settings=settings),
    )
    grid = {
        "reducedset__n_vectors": [12, 50] if quick else [12, 25, 50, 100],
        "reducedset__estimator__C": [4.0] if quick else [4.0, 16.0],
        "reducedset__estimator__gamma": [0.05] if quick else [0.02, 0.05, 0.1],
    }
    lines = []
    for name, tried in (
        ("GridSearchCV", GridSearchCV(model, grid, cv=3, refit=smallest(0.005))),
        ("HalvingGridSearchCV", HalvingGridSearchCV(model, grid, cv=3, factor=3, random_state=0)),
    ):
        began = time.perf_counter()
        tried.fit(X, y)
        best = {key.split("__")[-1]: value for key, value in tried.best_params_.items()}
        full = SVC(multi_class="ovr", C=best["C"], gamma=best["gamma"])
        reference = make_pipeline(StandardScaler(), full).fit(X, y)
        lines.append(
            (
                name,
                best["n_vectors"],
                best["C"],
                best["gamma"],
                100 * (1 - float(tried.score(data.X_test, data.y_test))),
                100 * (1 - float(reference.score(data.X_test, data.y_test))),
                full.expansion_.n_vectors,
                time.perf_counter() - began,
            )
        )
    head = ("search", "vectors", "C", "gamma", "error, %", "full, %", "vectors of full", "seconds")
    report.table(
        "satimage: the smallest model within half a point of the best, by cross-validation", head, lines
    )


def main() -> int:
    """Run the parts."""
    parser = arguments(__doc__ or "", PARTS)
    parser.add_argument("--seeds", type=int, default=5, help="targets: runs of each precision")
    parser.add_argument("--jobs", type=int, help="targets, room: threads of a construction")
    options = parser.parse_args()
    report = Report("compressed_svm", "Compressed support vector machines (Xu and others 2015)", options)
    report.numbers["command"] = "python benches/papers/compressed_svm.py --only targets room"
    if options.json is not None and options.json.is_file():
        report.numbers |= json.loads(options.json.read_text(encoding="utf-8"))
    parts = {
        "figure2": figure2,
        "targets": targets,
        "starts": starts,
        "path": path_of_sizes,
        "bytes": in_bytes,
        "room": in_room,
        "optimiser": optimiser,
        "search": search,
    }
    return report.run(parts)


if __name__ == "__main__":
    run(main)
