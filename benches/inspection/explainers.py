"""Exact Shapley values compared with shap's KernelExplainer and ExactExplainer and with shapiq.

    python benches/inspection/explainers.py --output docs/benchmarks/explainers.json

Needs shap and shapiq. Data: the sets of ``SVMARROW_DATA`` (or ``../shared/data`` beside the repository).

letter: one machine for each of 26 classes, 16 columns. a9a: one machine, 123 one-hot columns of 14
categories, a category is one player. cal_housing: support vector regression, 8 columns. Each model is
explained over the same background samples, before and after `compress`.

KernelExplainer draws coalitions (its default number) and solves a weighted least squares problem; with at
most 11 players it visits all coalitions, so that its values are exact. It calls scikit-learn's model of the
same parameters, and for comparison svmarrow's prediction, which is faster. Errors are the largest absolute
difference from the exact values, divided by the largest exact value. The product-kernel game is compared
with shapiq's explainer, for which scikit-learn's model is the input of both.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shap
import sklearn.svm
from scipy import sparse
from shap.utils._legacy import DenseData
from shapiq.explainer.product_kernel import ProductKernelExplainer
from sklearn.multiclass import OneVsRestClassifier

from svmarrow import SVC, SVR, as_expansion, compress
from svmarrow.inspection import shapley_values

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))

from common import load, place

if TYPE_CHECKING:
    from collections.abc import Callable

N_BACKGROUND, N_SAMPLES, N_KERNEL_EXPLAINER = 50, 200, 3
#: Sizes of the compressed models.
N_VECTORS = {"letter": 1000, "a9a": 100, "cal_housing": 300}
#: The fields of the first 14 columns of the original table that LIBSVM's a9a spreads over 123 columns.
A9A_CATEGORIES = {
    "age": 5,
    "workclass": 8,
    "fnlwgt": 5,
    "education": 16,
    "education-num": 5,
    "marital-status": 7,
    "occupation": 14,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 2,
    "capital-loss": 2,
    "hours-per-week": 5,
    "native-country": 41,
}


def dense(X: Any) -> np.ndarray:
    """The samples as a dense array of float64."""
    return np.ascontiguousarray((X.toarray() if sparse.issparse(X) else X).astype(np.float64))


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both, with the columns of the training samples of mean 0 and variance 1."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    return (train - mean) / spread, (test - mean) / spread


def problem(name: str) -> dict[str, Any]:
    """The models, samples and groups of a data set."""
    data = load(name)
    train, test = dense(data.X), dense(data.X_test)
    rng = np.random.default_rng(0)
    groups = None
    if name == "letter":
        train, test = standardised(train, test)
        chosen = rng.permutation(len(train))[:8000]
        ours: Any = OneVsRestClassifier(SVC(C=10.0, gamma=0.1))
        theirs: Any = OneVsRestClassifier(sklearn.svm.SVC(C=10.0, gamma=0.1))
    elif name == "a9a":
        chosen = rng.permutation(len(train))[:8000]
        ours, theirs = SVC(C=1.0, gamma=0.05), sklearn.svm.SVC(C=1.0, gamma=0.05)
        ends = np.cumsum(list(A9A_CATEGORIES.values()))
        groups = {
            key: list(range(end - size, end))
            for (key, size), end in zip(A9A_CATEGORIES.items(), ends, strict=True)
        }
    else:
        chosen = rng.permutation(len(train))[:8000]
        ours, theirs = SVR(C=10.0, gamma=0.2), sklearn.svm.SVR(C=10.0, gamma=0.2)
    y = np.asarray(data.y)[chosen]
    background = train[rng.permutation(len(train))[:N_BACKGROUND]]
    models = (ours.fit(train[chosen], y), theirs.fit(train[chosen], y))
    fresh = rng.permutation(len(test))[: N_SAMPLES + 2000]
    return {
        "models": models,
        "X": test[fresh[:N_SAMPLES]],
        "held_out": (test[fresh[N_SAMPLES:]], np.asarray(data.y_test)[fresh[N_SAMPLES:]]),
        "background": background,
        "groups": groups,
    }


def seconds_of(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """The shortest time of some runs, and the last result."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def output_of(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What is explained: decision values, or the prediction of a regressor."""
    return getattr(model, "decision_function", model.predict)


def kernel_explainer(model: Any, data: dict[str, Any]) -> tuple[float, np.ndarray]:
    """Seconds a sample and the values of KernelExplainer's default settings on the first samples."""
    groups, background = data["groups"], data["background"]
    if groups is not None:
        background = DenseData(background, list(groups), [np.array(g) for g in groups.values()])
    explainer = shap.KernelExplainer(output_of(model), background)
    X = data["X"][:N_KERNEL_EXPLAINER]
    seconds, values = seconds_of(lambda: explainer.shap_values(X, silent=True))
    return seconds / len(X), np.asarray(values)


def run(name: str) -> dict[str, Any]:
    """All comparisons on one data set."""
    data = problem(name)
    ours, theirs = data["models"]
    X, background = data["X"], data["background"]
    found: dict[str, Any] = {"set": name, "background": len(background)}

    def exact(model: Any) -> Any:
        return shapley_values(model, X, background, groups=data["groups"])

    seconds, values = seconds_of(lambda: exact(ours), 2)
    found["exact"] = {
        "seconds a sample": seconds / len(X),
        "additivity error": float(np.max(values.additivity_error)),
        "nodes": values.n_nodes,
        "players": len(values.feature_names),
    }
    small = compress(ours, *data["held_out"], n_vectors=N_VECTORS[name], random_state=0)
    seconds, of_small = seconds_of(lambda: exact(small), 2)
    found["compressed"] = {
        "seconds a sample": seconds / len(X),
        "additivity error": float(np.max(of_small.additivity_error)),
        "vectors": [vectors_of(ours), vectors_of(small)],
        "scores": [float(model.score(*data["held_out"])) for model in (ours, small)],
    }
    scale = float(np.abs(values.values).max())
    for label, model in (("scikit-learn", theirs), ("svmarrow", ours), ("compressed", small)):
        seconds, sampled = kernel_explainer(model, data)
        of = of_small if model is small else values
        error = float(np.abs(sampled - of.values[: len(sampled)]).max()) / scale
        found[f"KernelExplainer, {label}"] = {"seconds a sample": seconds, "relative error": error}
    if data["groups"] is None:
        few = X[: 1 if X.shape[1] > 10 else 5]
        explainer = shap.ExactExplainer(
            output_of(ours), shap.maskers.Independent(background, len(background))
        )
        seconds, explained = seconds_of(lambda: explainer(few))
        error = float(np.abs(explained.values - values.values[: len(few)]).max()) / scale
        found["ExactExplainer"] = {"seconds a sample": seconds / len(few), "relative error": error}
    return found


def vectors_of(model: Any) -> int:
    """The number of distinct support vectors of a model."""
    converted = as_expansion(model)
    return int(getattr(converted, "expansion", converted).vectors.shape[0])


def product_kernel_game() -> dict[str, Any]:
    """The product-kernel game of a support vector regression beside shapiq's explainer."""
    data = problem("cal_housing")
    theirs = data["models"][1]
    X = data["X"][:5]
    explainer = ProductKernelExplainer(model=theirs)
    seconds, explained = seconds_of(lambda: [explainer.explain(x) for x in X])
    expected = np.array([e.get_n_order_values(1) for e in explained])
    ours, values = seconds_of(lambda: shapley_values(theirs, X, data["background"], game="kernel"), 2)
    error = float(np.abs(values.values - expected).max() / np.abs(expected).max())
    return {
        "shapiq, seconds a sample": seconds / len(X),
        "svmarrow, seconds a sample": ours / len(X),
        "relative difference": error,
    }


def main() -> None:
    """Run, print, write the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--sets", nargs="+", default=("letter", "a9a", "cal_housing"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("shap").setLevel(logging.ERROR)
    numbers: dict[str, Any] = {
        "command": "python benches/inspection/explainers.py --output docs/benchmarks/explainers.json",
        "place": place(),
        "versions": {name: version(name) for name in ("shap", "shapiq", "scikit-learn")},
        "sets": [],
    }
    for name in options.sets:
        numbers["sets"].append(run(name))
        print(json.dumps(numbers["sets"][-1], indent=1), flush=True)
    numbers["product-kernel game"] = product_kernel_game()
    print(json.dumps(numbers["product-kernel game"], indent=1))
    if options.output is not None:
        options.output.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
