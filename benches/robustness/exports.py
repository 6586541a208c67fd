"""Exports of random models in single precision: errors on unseen samples of silent and of warned exports.

    python benches/robustness/exports.py             # 1,000 models, a table
    python benches/robustness/exports.py --cases 100 --output out.json

A model is drawn: learner, kernel, bandwidth, penalty, an offset of the features, a scaler. It is exported to
ONNX and to C. Where the export is not refused, its outputs on 200 unseen samples, by onnxruntime and by a
compiled header, are compared with those of the model in double precision: the root mean square of the
difference, relative to the standard deviation of a prediction or the root mean square of a classifier's
output. Outputs that hardly vary on the unseen samples are left out.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import svmarrow
from svmarrow.export import to_c, to_onnx

sys.path.insert(0, str(Path(__file__).resolve().parent))

from reports import keep

N, UNSEEN = 300, 200
KERNELS = ("rbf", "laplacian", "matern12", "matern32", "matern52", "poly", "linear")
#: Outputs that vary by less than this, relative to their size, are left out.
MIN_SPREAD = 1e-3


def drawn(random: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """A model, its samples, its targets, and unseen samples."""
    d = int(random.integers(1, 8))
    offset = random.choice([0.0, 0.0, 1.0, 100.0, 1e5])
    X = (offset + random.normal(size=(N + UNSEEN, d))).astype(np.float32).astype(np.float64)
    near = X - offset
    y = near @ random.normal(size=d) + np.sin(2.0 * near[:, 0]) + 0.05 * random.normal(size=len(X))
    size = 10.0 ** random.uniform(-10, 4)
    about = {"kernel": str(random.choice(KERNELS)), "gamma": 10.0 ** random.uniform(-3, 1) / d, "coef0": 1.0}
    learner = random.integers(4)
    if learner == 0:
        model: Any = svmarrow.RLSRegressor(size, fit_intercept=True, **about)
    elif learner == 1:
        model = svmarrow.RLSClassifier(size, fit_intercept=True, **about)
    elif learner == 2:
        model = svmarrow.SVC(C=min(1.0 / size, 1e6), max_iter=100_000, **about)
    else:
        model = svmarrow.SVR(C=min(1.0 / size, 1e6), max_iter=100_000, **about)
    if learner in (1, 2):
        y = y > np.median(y)
    if random.random() < 0.5:
        model = make_pipeline(StandardScaler(), model)
    return model, X[:N], y[:N], X[N:]


def model_outputs(model: Any, X: Any) -> Any:
    """The outputs of the model in double precision, (n, q)."""
    whole = svmarrow.as_expansion(model)
    rows = X if whole.preparation is None else whole.preparation.rows(X)
    return np.asarray(whole.expansion_.decision_function(rows)).reshape(len(X), -1)


def by_onnx(model: Any, X: Any) -> Any:
    """The outputs of the file in single precision."""
    made = to_onnx(model, dtype="float32")
    if all(output.name != "F" for output in made.graph.output):
        made.graph.output.append(onnx.helper.make_tensor_value_info("F", onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(made.SerializeToString())
    return session.run(["F"], {"X": X.astype(np.float32)})[0]


def by_c(model: Any, X: Any) -> Any:
    """The outputs of the compiled header."""
    text, q = to_c(model, prefix="p").text, svmarrow.as_expansion(model).expansion_.n_outputs
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "p.c"), Path(folder, "p.so")
        source.write_text(f"{text}\nvoid all(const float *x, float *f) {{ p_outputs(x, f); }}\n")
        command = ["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
        subprocess.run(command, check=True)
        function = ctypes.CDLL(str(library)).all
        rows, out = np.ascontiguousarray(X, dtype=np.float32), np.zeros((len(X), q), dtype=np.float32)
        for row, line in zip(rows, out, strict=True):
            function(row.ctypes.data_as(ctypes.c_void_p), line.ctypes.data_as(ctypes.c_void_p))
        return out


def outcome(model: Any, run: Any, X: Any, outputs: Any) -> tuple[str, float]:
    """What came of an export, and the error of its outputs relative to their spread."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = np.asarray(run(model, X), dtype=np.float64).reshape(outputs.shape)
        except ValueError as error:
            if "use dtype='float64'" not in str(error) and "too large for single" not in str(error):
                raise
            return "refused", np.nan
    # The sign of a classifier's output is the label.
    spread = np.sqrt((outputs**2).mean(axis=0)) if is_classifier(model) else outputs.std(axis=0)
    error = np.sqrt(((found - outputs) ** 2).mean(axis=0)) / spread
    warned = any("of its spread" in str(one.message) for one in said)
    return "warned" if warned else "silent", float(error.max())


def main() -> None:
    """Runs the cases and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    given = parser.parse_args()
    runs = {"onnx": by_onnx} | ({"c": by_c} if shutil.which("cc") else {})
    found: dict[tuple[str, str], list[float]] = {
        key: [] for key in itertools.product(runs, ("silent", "warned", "refused"))
    }
    for case in range(given.cases):
        model, X, y, unseen = drawn(np.random.default_rng(case))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(X, y)
            except ValueError:
                # The rows are too far from the origin for the kernel.
                continue
        outputs = model_outputs(model, unseen)
        if (outputs.std(axis=0) <= MIN_SPREAD * np.abs(outputs).max(axis=0)).any():
            continue
        for name, run in runs.items():
            said, error = outcome(model, run, unseen, outputs)
            found[name, said].append(error)
    results = {}
    print(f"{'format':8}{'outcome':10}{'share':>8}{'largest error':>16}")
    for (name, said), errors in found.items():
        total = sum(len(found[name, other]) for other in ("silent", "warned", "refused"))
        worst = max(errors, default=0.0)
        largest = None if said == "refused" else worst
        results[f"{name} {said}"] = {"cases": len(errors), "of": total, "largest_error": largest}
        print(f"{name:8}{said:10}{len(errors) / max(1, total):8.3f}{worst:16.2e}")
    keep(given.output, results)


if __name__ == "__main__":
    main()
