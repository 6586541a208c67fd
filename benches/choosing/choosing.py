"""Every estimator on six kinds of problem: error, fit time, prediction time, size.

    python benches/choosing/choosing.py [--only KIND ...] --json docs/benchmarks/choosing.json

One thread, processor seconds, so that other work on the machine does not count. gamma and C are those that
`SVCCV` (`SVRCV`) finds by racing on at most 2,000 training rows; all estimators share them, least squares
chooses its own penalty on the same rows by leave-one-out errors. What would need the whole kernel matrix of
more than 12,000 rows is left out, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.ensemble import BaggingRegressor
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import svmarrow as s

DATA = Path(os.environ.get("SVMARROW_DATA", "../shared/data"))
#: Above so many rows nothing that keeps a whole kernel matrix is tried.
WHOLE = 12_000


def read(name):
    """Arrays of a set, sparse ones put together."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        found = dict(file)
    if "indptr" in found:
        for prefix, key in (("", "X"), ("test_", "X_test")):
            parts = [found[prefix + part] for part in ("data", "indices", "indptr")]
            found[key] = csr_matrix((parts[0].astype(float), *parts[1:]), shape=found[f"{prefix}shape"])
    return found


def _bagged(machine):
    """The average of ten machines, each on a tenth of the rows."""
    return BaggingRegressor(machine, 10, max_samples=0.1, bootstrap=False, random_state=0, n_jobs=1)


def scaled(X, X_test, scaler):
    return scaler.fit_transform(X), scaler.transform(X_test)


def banana():
    found = read("ratsch_banana")
    train, test = found["train_idx"][0], found["test_idx"][0]
    X, y = found["X"].astype(float), found["y"]
    return X[train], y[train], X[test], y[test]


def usps():
    found = read("usps")
    return found["X"].astype(float), found["y"], found["X_test"].astype(float), found["y_test"]


def letter():
    found = read("letter")
    X, X_test = scaled(found["X"].astype(float), found["X_test"].astype(float), MinMaxScaler())
    return X, found["y"], X_test, found["y_test"]


def ijcnn1():
    found = read("ijcnn1")
    return found["X"].astype(float), found["y"], found["X_test"].astype(float), found["y_test"]


def news():
    found = read("news20_bydate")
    X, X_test = scaled(found["X"], found["X_test"], TfidfTransformer(sublinear_tf=True))
    # The file has one group after the other, which is no stream to learn from.
    order = np.random.default_rng(0).permutation(X.shape[0])
    return X[order], found["y"][order], X_test, found["y_test"]


def kin8nm():
    found = read("kin8nm")
    X, y = found["X"].astype(float), found["y"]
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:5000], order[5000:]
    X, X_test = scaled(X[train], X[test], StandardScaler())
    mean, spread = y[train].mean(), y[train].std()
    return X, (y[train] - mean) / spread, X_test, (y[test] - mean) / spread


KINDS = {
    "few rows, overlapping": ("banana", banana),
    "images, ten classes": ("usps", usps),
    "many classes": ("letter", letter),
    "many rows, two classes": ("ijcnn1", ijcnn1),
    "text, sparse": ("20 newsgroups", news),
    "a number to predict": ("kin8nm", kin8nm),
}


def classifiers(C, gamma, alpha, kernel):
    """Name to estimator and whether it keeps the whole kernel matrix."""
    own = {"kernel": kernel} | ({} if gamma is None else {"gamma": gamma})
    one = {"n_jobs": 1}
    found = {
        "SVC": (s.SVC(C=C, **own, **one), False),
        "SVC, one against the rest": (s.SVC(C=C, multi_class="ovr", **own, **one), False),
        "NuSVC": (s.NuSVC(nu=0.1, **own, **one), False),
        "LowRankSVC, 500": (s.LowRankSVC(500, C=C, random_state=0, **own, **one), False),
        "RLSClassifier": (s.RLSClassifier(alpha, **own, **one), True),
        "LowRankRLSClassifier, 500": (
            s.least_squares.LowRankRLSClassifier(500, alpha=alpha, random_state=0, **own, **one),
            False,
        ),
        "LinearRLSClassifier": (s.least_squares.LinearRLSClassifier(1.0, **one), False),
        "BaggingRegressor, one against the rest": (
            OneVsRestClassifier(_bagged(s.RLSRegressor(alpha, **own, **one))),
            False,
        ),
        "KMPClassifier, 100": (s.KMPClassifier(100, random_state=0, **own, **one), False),
        "ReducedSet, 100": (s.ReducedSet(s.SVC(C=C, multi_class="ovr", **own, **one), 100, **one), False),
        "ReducedSet, 100 made": (
            s.ReducedSet(
                s.SVC(C=C, multi_class="ovr", **own, **one), 100, method="gradient", random_state=0, **one
            ),
            False,
        ),
        "CodedClassifier, dense": (
            s.CodedClassifier(s.SVC(C=C, **own, **one), "dense", random_state=0, **one),
            False,
        ),
        "CalibratedCascade": (
            s.cascade.CalibratedCascade(s.SVC(C=C, multi_class="ovr", **own, **one), random_state=0, **one),
            False,
        ),
        "ExactCascade": (s.cascade.ExactCascade(s.SVC(C=C, **own, **one), **one), False),
        "KernelPerceptron": (s.online.KernelPerceptron(prediction="averaged", **own, **one), False),
        "PerceptronTreeClassifier": (s.PerceptronTreeClassifier(random_state=0, **own, **one), False),
    }
    for policy in ("stop", "oldest", "forgetron"):
        learner = s.online.KernelPerceptron(policy=policy, budget=500, **own, **one)
        found[f"KernelPerceptron, {policy}, 500"] = (learner, False)
    for policy in ("projectron", "projectron++"):
        found[f"KernelPerceptron, {policy}"] = (s.online.KernelPerceptron(policy=policy, **own, **one), False)
    return found


def regressors(C, gamma, alpha, kernel):
    own, one = {"kernel": kernel, "gamma": gamma}, {"n_jobs": 1}
    return {
        "SVR": (s.SVR(C=C, **own, **one), False),
        "NuSVR": (s.NuSVR(C=C, **own, **one), False),
        "RLSRegressor": (s.RLSRegressor(alpha, **own, **one), True),
        "LowRankRLSRegressor, 500": (
            s.least_squares.LowRankRLSRegressor(500, alpha=alpha, random_state=0, **own, **one),
            False,
        ),
        "LinearRLSRegressor": (s.least_squares.LinearRLSRegressor(1.0, **one), False),
        "BaggingRegressor": (_bagged(s.RLSRegressor(alpha, **own, **one)), False),
        "KMPRegressor, 100": (s.KMPRegressor(100, random_state=0, **own, **one), False),
    }


def parameters(X, y, numbers, kernel):
    """C and gamma by racing folds, and the penalty of least squares by leave-one-out errors."""
    chosen = np.random.default_rng(0).permutation(len(y))[:2000]
    search = (s.SVRCV if numbers else s.SVCCV)(Cs=6, gammas=7, search="racing", kernel=kernel, n_jobs=1)
    search.fit(X[chosen], y[chosen])
    gamma = search.best_params_.get("gamma")
    own = {"kernel": kernel} | ({} if gamma is None else {"gamma": gamma})
    least = (s.RLSRegressor if numbers else s.RLSClassifier)(alphas=np.logspace(-4, 2, 7), n_jobs=1, **own)
    least.fit(X[chosen], y[chosen])
    return search.best_params_["C"], gamma, float(least.alpha_)


def kernel_values(model):
    """Vectors that an answer looks at, where the model is one expansion."""
    expansion = getattr(model, "expansion_", None)
    return None if expansion is None else int(expansion.n_vectors)


def measure(estimator, X, y, X_test, y_test, numbers):
    """One fit, five thousand rows predicted, one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", s.exceptions.ConvergenceWarning)
        began = time.process_time()
        estimator.fit(X, y)
        fitted = time.process_time() - began
    some = X_test[:5000]
    estimator.predict(some[:10])
    began, times = time.process_time(), 0
    while times < 1 or (time.process_time() - began < 0.2 and times < 100):
        answers = estimator.predict(some)
        times += 1
    predicted = (time.process_time() - began) / times / some.shape[0]
    wanted = y_test[:5000]
    error = float(np.mean((answers - wanted) ** 2) if numbers else np.mean(answers != wanted))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        s.save(estimator.expansion_ if hasattr(estimator, "expansion_") else estimator, path)
        size = path.stat().st_size
    return {
        "error": error,
        "fit_seconds": fitted,
        "predict_microseconds": 1e6 * predicted,
        "bytes": size,
        "vectors": kernel_values(estimator),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--estimators", nargs="+", help="only these, beside what the file has")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    kinds = json.loads(options.json.read_text())["kinds"] if options.json.exists() else {}
    for kind in options.only:
        name, load = KINDS[kind]
        X, y, X_test, y_test = load()
        numbers = kind == "a number to predict"
        kernel = "linear" if kind == "text, sparse" else "rbf"
        C, gamma, alpha = parameters(X, y, numbers, kernel)
        print(kind, C, gamma, alpha, flush=True)
        estimators = dict(kinds.get(kind, {}).get("estimators", {})) if options.estimators else {}
        candidates = (regressors if numbers else classifiers)(C, gamma, alpha, kernel)
        for title, (estimator, whole) in candidates.items():
            if options.estimators and title not in options.estimators:
                continue
            if len(np.unique(y)) == 2 and title in {"CodedClassifier, dense", "SVC, one against the rest"}:
                continue  # with two classes there is one machine
            if whole and X.shape[0] > WHOLE:
                found = {"left_out": f"the kernel matrix would take {8e-9 * X.shape[0] ** 2:.0f} GB"}
            else:
                try:
                    found = measure(estimator, X, y, X_test, y_test, numbers)
                except ValueError as error:
                    found = {"left_out": str(error)}
            estimators[title] = found
            print(" ", title, found, flush=True)
        kinds[kind] = {
            "set": name, "rows": int(X.shape[0]), "columns": int(X.shape[1]),
            "classes": 0 if numbers else len(np.unique(y)), "measure": "mse" if numbers else "error",
            "kernel": kernel, "C": C, "gamma": gamma, "alpha": alpha,
            "estimators": {title: estimators[title] for title in candidates if title in estimators},
        }  # fmt: skip
        about = {
            "command": "python benches/choosing/choosing.py --json docs/benchmarks/choosing.json",
            "commit": subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "processor": processor(), "threads": 1, "python": platform.python_version(),
        }  # fmt: skip
        ordered = {kind: kinds[kind] for kind in KINDS if kind in kinds}
        options.json.write_text(json.dumps({"about": about, "kinds": ordered}, indent=1) + "\n")


def processor():
    """The processor's name, as Linux has it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
