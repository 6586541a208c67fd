"""Ukkonen and Arias (2010), figures 1 and 2, and what perceptron trees cost.

``python benches/papers/perceptron_trees.py``

Data: a9a, ijcnn1 and cod_rna from ``MARROW_DATA`` or ``../shared/data`` beside the repository, all rows
together, split 50 / 25 / 25 into training, test and validation rows; the columns of cod_rna are
standardised. gamma is the one with which the kernel perceptron, after one pass over the training rows, errs
least on the validation rows.

figure 1: a Stoptron learns permuted training rows until its budget B is spent, is split, and the two
Stoptrons of the split go on along the test rows; medians over the permutations of the average cumulative
error. figure 2: kernel values for an answer, against the share of mistakes of one pass over permuted
training rows. speed: rows per second of a pass beside a kernel perceptron in NumPy, and predictions beside
scikit-learn's SVC. convert: a tree of an SVM beside the SVM and its compression to as many vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marrow import (
    SVC,
    BudgetPerceptron,
    Forgetron,
    KernelPerceptron,
    PerceptronTreeClassifier,
    Projectron,
    ProjectronPlusPlus,
    Stoptron,
    compress,
)

SETS = ("a9a", "ijcnn1", "cod_rna")
GAMMAS = {
    "a9a": (0.003, 0.01, 0.03, 0.1, 0.3),
    "ijcnn1": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "cod_rna": (0.03, 0.1, 0.3, 1.0, 3.0),
}
SPLITS = ("wpq", "zpq", "rndw-rnds", "rndw-inds", "rndw-opts", "ent-inds", "ent-opts", "bal-inds", "bal-opts")
ETAS = (0.1, 0.3, 0.5)
#: The order of the paper's text, best first, at the end of figure 1 and in figure 2, where it is told.
PRINTED = {
    "figure 1": "splits beat the Stoptron; rndw-rnds is weak on a9a and ijcnn1; wpq is good on all sets",
    "figure 2": {
        "a9a": "wpq has the least error of all",
        "ijcnn1": "wpq errs slightly more than the Projectron with a tenth of its vectors",
        "cod_rna": "the Projectron is best in size and error; trees are near the perceptron",
    },
}


def folder() -> Path:
    """Where the ``.npz`` files are."""
    named = os.environ.get("MARROW_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2].parent / "shared" / "data"


def load(name: str) -> tuple[Any, np.ndarray]:
    """All rows of a set and their labels -1 and 1, in the order of the file."""
    with np.load(folder() / f"{name}.npz") as d:
        y = [np.asarray(d["y"])] + ([np.asarray(d["y_test"])] if "y_test" in d else [])
        if "data" in d:
            parts = [
                sp.csr_array(
                    (d[f"{p}data"].astype(np.float32), d[f"{p}indices"], d[f"{p}indptr"]),
                    tuple(d[f"{p}shape"]),
                )
                for p in ("", "test_")
            ]
            return sp.csr_array(sp.vstack(parts)), np.concatenate(y).astype(np.int64)
        X = np.concatenate([d["X"], d["X_test"]] if "X_test" in d else [d["X"]]).astype(np.float32)
    if name == "cod_rna":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.concatenate(y).astype(np.int64)


def parts(name: str, limit: int | None) -> tuple[Any, ...]:
    """Training, test and validation rows."""
    X, y = load(name)
    order = np.random.default_rng(2010).permutation(len(y))[:limit]
    half, quarter = len(order) // 2, len(order) // 4
    cut = np.split(order, [half, half + quarter])
    return tuple(part for rows in cut for part in (X[rows], y[rows]))


def best_gamma(
    name: str, X: Any, y: np.ndarray, X_val: Any, y_val: np.ndarray
) -> tuple[float, dict[float, float]]:
    """The paper's procedure."""
    errors = {
        gamma: float((KernelPerceptron(gamma=gamma).fit(X, y).predict(X_val) != y_val).mean())
        for gamma in GAMMAS[name]
    }
    return min(errors, key=lambda gamma: errors[gamma]), errors


def figure_1(gamma: float, budget: int, data: tuple[Any, ...], runs: int) -> dict[str, np.ndarray]:
    """Median curves over permutations of the training rows, by the name of the split."""
    X, y, X_test, y_test = data[:4]
    curves: dict[str, list[np.ndarray]] = {}
    for run in range(runs):
        order = np.random.default_rng(run).permutation(len(y))
        begin = Stoptron(budget=budget + 1, gamma=gamma).fit(X[order], y[order])
        end = int(begin.mistake_rows_[budget]) + 1
        rows, labels = X[order[:end]], y[order[:end]]
        models: dict[str, Any] = {"stoptron": Stoptron(budget=budget, gamma=gamma)}
        for split in SPLITS:
            models[split] = PerceptronTreeClassifier(
                budget=budget, split=split, max_leaves=2, gamma=gamma, random_state=run
            )
        for name, model in models.items():
            model.partial_fit(rows, labels, classes=[-1, 1]).partial_fit(X_test, y_test)
            wrong = np.zeros(len(y_test))
            wrong[model.mistake_rows_ - end] = 1.0
            curves.setdefault(name, []).append(np.cumsum(wrong) / np.arange(1, len(y_test) + 1))
    return {name: np.median(several, axis=0) for name, several in curves.items()}


def rivals(gamma: float, budget: int, seed: int) -> dict[str, Any]:
    """All methods of figure 2, and the budget perceptrons that the paper names."""
    both = {"budget": budget, "gamma": gamma}
    methods: dict[str, Any] = {
        "perceptron": KernelPerceptron(gamma=gamma),
        "stoptron": Stoptron(**both),
        "forgetron": Forgetron(**both),
    }
    for removal in ("oldest", "margin", "random", "tightest"):
        methods[f"remove {removal}"] = BudgetPerceptron(removal=removal, random_state=seed, **both)
    for eta in ETAS:
        methods[f"projectron {eta}"] = Projectron(eta=eta, gamma=gamma)
        # Projectron++ costs the square of its vectors at nearly every row: minutes where eta keeps thousands.
        if eta > 0.1:
            methods[f"projectron++ {eta}"] = ProjectronPlusPlus(eta=eta, gamma=gamma)
    for split in SPLITS:
        methods[split] = PerceptronTreeClassifier(split=split, random_state=seed, **both)
    return methods


def figure_2(gamma: float, budget: int, data: tuple[Any, ...], runs: int) -> dict[str, dict[str, float]]:
    """Size, share of mistakes of one pass, and seconds, means over the runs."""
    X, y = data[:2]
    table: dict[str, list[tuple[float, ...]]] = {}
    for run in range(runs):
        order = np.random.default_rng(run).permutation(len(y))
        rows, labels = X[order], y[order]
        for name, model in rivals(gamma, budget, run).items():
            start = time.perf_counter()
            model.fit(rows, labels)
            seconds = time.perf_counter() - start
            tree = isinstance(model, PerceptronTreeClassifier)
            size = budget if tree else model.expansion_.n_vectors
            stored = model.n_vectors_ if tree else size
            table.setdefault(name, []).append((size, model.cumulative_error_, seconds, stored))
    names = ("size", "error", "seconds", "stored")
    return {
        name: dict(zip(names, np.mean(several, axis=0).tolist(), strict=True))
        for name, several in table.items()
    }


def numpy_perceptron(X: np.ndarray, y: np.ndarray, gamma: float) -> int:
    """The kernel perceptron as one writes it in NumPy; returns its mistakes."""
    Z, a, norms = np.empty_like(X), np.empty(len(y), X.dtype), np.einsum("ij,ij->i", X, X)
    kept, m = np.empty(len(y), X.dtype), 0
    for x, label, norm in zip(X, y, norms, strict=True):
        score = a[:m] @ np.exp(-gamma * (kept[:m] + norm - 2.0 * (Z[:m] @ x)))
        if label * score <= 0:
            Z[m], a[m], kept[m] = x, label, norm
            m += 1
    return m


def speed(name: str, gamma: float, budget: int) -> dict[str, float]:
    """Rows per second of one pass over the rows of a file's training part, whole and half."""
    X, y = load(name)
    n = {"ijcnn1": 49_990, "cod_rna": 59_535, "a9a": 32_561}[name]
    order = np.random.default_rng(0).permutation(n)
    X, y = X[order], y[order]

    def seconds(model: Any, count: int) -> float:
        start = time.perf_counter()
        model.fit(X[:count], y[:count])
        return time.perf_counter() - start

    def tree() -> PerceptronTreeClassifier:
        return PerceptronTreeClassifier(budget=budget, gamma=gamma, random_state=0)

    start = time.perf_counter()
    dense = X.toarray() if sp.issparse(X) else X
    numpy_perceptron(dense, y, gamma)
    plain = time.perf_counter() - start
    whole = seconds(tree(), n)
    return {
        "rows": n,
        "tree rows/s": n / whole,
        "tree seconds": whole,
        "tree, first half": seconds(tree(), n // 2),
        "perceptron rows/s": n / seconds(KernelPerceptron(gamma=gamma), n),
        "numpy rows/s": n / plain,
    }


def convert(gamma: float, C: float, budget: int, peer: bool) -> dict[str, float]:
    """ijcnn1's SVM, its tree, its compression, and scikit-learn's prediction."""
    with np.load(folder() / "ijcnn1.npz") as d:
        X, y, X_test, y_test = (np.asarray(d[k], dtype=np.float64) for k in ("X", "y", "X_test", "y_test"))
    svc = SVC(C=C, gamma=gamma).fit(X, y)
    start = time.perf_counter()
    tree = PerceptronTreeClassifier.from_expansion(svc, X, budget=budget, random_state=0)
    seconds = time.perf_counter() - start
    small = compress(svc, n_vectors=budget)

    def error(model: Any) -> float:
        return float((model.predict(X_test) != y_test).mean())

    def timed(model: Any) -> float:
        start = time.perf_counter()
        model.predict(X_test)
        return time.perf_counter() - start

    result = {
        "vectors": svc.expansion_.n_vectors,
        "error of the SVM": error(svc),
        "error of the tree": error(tree),
        "error of the compression": error(small),
        "most kernel values": int(tree.kernel_values(X_test).max()),
        "leaves": tree.n_leaves_,
        "seconds to convert": seconds,
        "seconds to predict, SVM": timed(svc),
        "seconds to predict, tree": timed(tree),
    }
    if peer:
        from sklearn import svm as peers

        result["seconds to predict, scikit-learn"] = timed(
            peers.SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y)
        )
    return result


def plot(results: dict[str, Any], path: Path) -> None:
    """Figures 1 and 2 as one page."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(results), 9))
    axes = figure.subplots(2, len(results), squeeze=False)
    for (name, result), top, bottom in zip(results.items(), axes[0], axes[1], strict=True):
        for method, curve in result["figure 1"].items():
            top.plot(np.linspace(0, 1, len(curve)), curve, label=method)
        top.set(title=name, xlabel="part of the test stream", ylabel="average cumulative error")
        top.legend(fontsize=6)
        for method, values in result["figure 2"].items():
            bottom.plot(values["size"], values["error"], ".")
            bottom.annotate(method, (values["size"], values["error"]), fontsize=5)
        bottom.set(xscale="log", xlabel="kernel values for an answer", ylabel="mistakes of one pass")
    figure.tight_layout()
    figure.savefig(path)


def show(results: dict[str, Any]) -> None:
    """Tables, methods ranked by their error."""
    for name, result in results.items():
        print(f"\n{name}: gamma {result['gamma']:g} of {result['gammas']}")
        ends = {method: curve[-1] for method, curve in result["figure 1"].items()}
        print("  figure 1, end of the test stream:")
        for method, value in sorted(ends.items(), key=lambda item: item[1]):
            print(f"    {method:18} {value:.4f}")
        print(f"    printed: {PRINTED['figure 1']}")
        print("  figure 2, one pass over the training rows:     error     size   stored  seconds")
        for method, row in sorted(result["figure 2"].items(), key=lambda item: item[1]["error"]):
            values = f"{row['error']:.4f} {row['size']:8.0f} {row['stored']:8.0f} {row['seconds']:8.2f}"
            print(f"    {method:44} {values}")
        print(f"    printed: {PRINTED['figure 2'][name]}")
        print("  speed: " + ", ".join(f"{key} {value:,.2f}" for key, value in result["speed"].items()))


def main() -> int:
    """Run, print, plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--runs", type=int, default=10, help="permutations of figure 2")
    parser.add_argument("--permutations", type=int, default=30, help="permutations of figure 1")
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--limit", type=int, help="use so many rows of each set only")
    parser.add_argument("--no-peer", action="store_true", help="leave scikit-learn's SVC out")
    parser.add_argument("--svm", nargs=2, type=float, default=(32.0, 2.0), metavar=("C", "GAMMA"))
    parser.add_argument("--plot", type=Path, help="write the figures to this file")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for name in args.sets:
        if not (folder() / f"{name}.npz").is_file():
            print(f"{name}: skipped, {folder() / name}.npz is not there", file=sys.stderr)
            continue
        data = parts(name, args.limit)
        gamma, errors = best_gamma(name, data[0], data[1], data[4], data[5])
        results[name] = {
            "gamma": gamma,
            "gammas": errors,
            "figure 1": figure_1(gamma, args.budget, data, args.permutations),
            "figure 2": figure_2(gamma, args.budget, data, args.runs),
            "speed": speed(name, gamma, args.budget),
        }
        show({name: results[name]})
    if "ijcnn1" in results:
        C, gamma = args.svm
        results["ijcnn1"]["convert"] = convert(gamma, C, args.budget, not args.no_peer)
        print(
            f"\nijcnn1's SVM (C={C:g}, gamma={gamma:g}) and its tree of at most {args.budget} vectors a leaf"
        )
        for key, value in results["ijcnn1"]["convert"].items():
            print(f"  {key:36} {value:,.4f}")
    if results and args.plot:
        plot(results, args.plot)
    if args.json:
        args.json.write_text(json.dumps(results, default=np.ndarray.tolist), encoding="utf-8")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
