"""Models that LIBSVM's svm-train writes, predicted by svmarrow and by LIBSVM.

    python benches/libsvm/models.py [--json docs/benchmarks/libsvm_models.json]

Every type (-s 0 to 4) with every kernel (-t 0 to 4, the last one precomputed), with and without -b 1, on data
sets of two, three and ten classes and their regression targets, with two sets of parameters. svmarrow reads
each model. Its labels and regression values are compared with the output of svm-predict, its decision values
with those of LIBSVM's library (`svm_predict_values`, by ctypes), its probabilities with svm-predict -b 1. A
difference above 1e-10 is allowed where the terms of the sum are so large that rounding alone makes it.
Needs svm-train, svm-predict and libsvm.so.3 (Debian's libsvm-tools).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import platform
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import MinMaxScaler

from svmarrow.io import load_svmlight
from svmarrow.libsvm import svm_load_model, svm_model

if TYPE_CHECKING:
    import scipy.sparse as sp

PARAMETERS = (
    "-c 1 -n 0.1 -p 0.1 -g 0.2 -r 0.5 -d 2",
    "-c 30 -n 0.05 -p 0.02 -g 0.05 -r 0 -d 3 -e 1e-5 -w1 2",
)
#: Largest differences: decision values and regression values, relative above 1, and probabilities.
MAX_DIFFERENCE, MAX_PROBABILITY_DIFFERENCE = 1e-10, 1e-6
#: Differences up to this multiple of the rounding of a sum are allowed too.
MAX_ROUNDINGS = 4.0


class Node(ctypes.Structure):
    """LIBSVM's struct svm_node."""

    _fields_ = (("index", ctypes.c_int), ("value", ctypes.c_double))


def library() -> ctypes.CDLL:
    """LIBSVM's library."""
    found = ctypes.CDLL("libsvm.so.3")
    found.svm_load_model.restype = ctypes.c_void_p
    found.svm_load_model.argtypes = (ctypes.c_char_p,)
    found.svm_predict_values.restype = ctypes.c_double
    found.svm_predict_values.argtypes = (
        ctypes.c_void_p,
        ctypes.POINTER(Node),
        ctypes.POINTER(ctypes.c_double),
    )
    return found


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Samples between -1 and 1, integer labels, and a regression target."""
    made = {}
    for name, load, n in (("breast_cancer", load_breast_cancer, 240), ("wine", load_wine, 178)):
        X, y = load(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))[:n]
        made[name] = (X[order], y[order])
    X, y = load_digits(return_X_y=True)
    made["digits"] = (X[:300], y[:300])
    return {
        name: (MinMaxScaler((-1, 1)).fit_transform(X), y, X @ np.sin(np.arange(X.shape[1])) / np.abs(X).max())
        for name, (X, y) in made.items()
    }


def write_data(path: Path, X: np.ndarray, y: np.ndarray, serials: np.ndarray | None) -> None:
    """Writes features, or kernel values with their serial numbers."""
    lines = []
    for i, row in enumerate(X):
        head = [] if serials is None else [f"0:{serials[i]}"]
        # LIBSVM finds kernel values by their position, so that zeros are written too.
        kept = [(j, value) for j, value in enumerate(row.tolist()) if serials is not None or value != 0.0]
        values = [f"{j + 1}:{value!r}" for j, value in kept]
        lines.append(" ".join([f"{y[i]:.17g}", *head, *values]))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def decision_values(
    libsvm: ctypes.CDLL, model: Path, X: sp.csr_array, first: int, n_outputs: int
) -> np.ndarray:
    """LIBSVM's decision values (n_samples, n_outputs); `first` is the index of the first column."""
    loaded = libsvm.svm_load_model(str(model).encode())
    values = np.empty((X.shape[0], n_outputs))
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        row = [(j + first, v) for j, v in zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)]
        nodes = (Node * (len(row) + 1))(*[Node(j, v) for j, v in row], Node(-1, 0.0))
        out = (ctypes.c_double * n_outputs)()
        libsvm.svm_predict_values(loaded, nodes, out)
        values[i] = out
    return values


def rounding(model: svm_model, X: sp.csr_array) -> np.ndarray:
    """Machine epsilon times the sum of the magnitudes of the terms of each decision value."""
    expansion, m = model._expansion, model.get_nr_sv()
    single = expansion.replaced(coefficients=np.eye(m), intercepts=np.zeros(m))
    kernel_values = svm_model(3, single, [], [], [], [])._decision_values(X)
    return np.finfo(float).eps * (np.abs(kernel_values) @ np.abs(expansion.coefficients))


def compare(libsvm: ctypes.CDLL, test: Path, model: Path, folder: Path, probability: bool) -> dict:
    """Differences of one model."""
    loaded = svm_load_model(model)
    X, _ = load_svmlight(test, zero_based=loaded._is_precomputed)
    ours = loaded._decision_values(X)
    theirs = decision_values(libsvm, model, X, 0 if loaded._is_precomputed else 1, ours.shape[1])
    scale = np.maximum(1.0, np.abs(theirs))
    found = {
        "decision": float((np.abs(ours - theirs) / scale).max()),
        "rounding": float((rounding(loaded, X) / scale).max()),
    }
    output = folder / "predicted"
    subprocess.run(["svm-predict", "-q", test, model, output], check=True)
    wanted = np.loadtxt(output, ndmin=1)
    predicted = loaded._answers(ours, probability=False)[0]
    if loaded.get_svm_type() >= 3:
        found["decision"] = max(
            found["decision"], float((np.abs(predicted - wanted) / np.maximum(1.0, np.abs(wanted))).max())
        )
    else:
        # Where a decision value is 0 up to rounding both labels are right.
        is_tie = (np.abs(theirs) < MAX_DIFFERENCE).any(axis=1)
        found["labels"] = int(((predicted != wanted) & ~is_tie).sum())
    if probability and loaded.get_svm_type() < 2:
        subprocess.run(["svm-predict", "-q", "-b", "1", test, model, output], check=True)
        shares = np.loadtxt(output, skiprows=1, ndmin=2)[:, 1:]
        # The file has six digits; the same format makes them comparable.
        probabilities = loaded._answers(ours, probability=True)[1]
        printed = np.array([[float(f"{v:g}") for v in row] for row in probabilities])
        found["probability"] = float(np.abs(printed - shares).max())
    elif probability:
        done = subprocess.run(
            ["svm-predict", "-b", "1", test, model, output], check=True, capture_output=True, text=True
        )
        sigma = float(done.stdout.split("sigma=")[1].split()[0])
        found["probability"] = abs(float(f"{loaded.get_svr_probability():g}") - sigma)
    return found


def runs(libsvm: ctypes.CDLL) -> list[dict]:
    """All models."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for set_name, (X, y, target) in data_sets().items():
            n = 2 * len(X) // 3
            for svm_type in range(5):
                t = target if svm_type > 2 else y
                gram, serials = X @ X[:n].T, np.arange(1, len(X) + 1)
                data = {
                    False: [(X[:n], t[:n], None), (X[n:], t[n:], None)],
                    True: [(gram[:n], t[:n], serials[:n]), (gram[n:], t[n:], serials[n:])],
                }
                for kernel in range(5):
                    for part, given in zip(("train", "test"), data[kernel == 4], strict=True):
                        write_data(folder / part, *given)
                    for probability in (False, True) if svm_type != 2 else (False,):
                        for options in PARAMETERS:
                            made = ["-s", svm_type, "-t", kernel, "-b", int(probability), *options.split()]
                            command = ["svm-train", "-q", *map(str, made), "train", "model"]
                            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
                            found = compare(libsvm, folder / "test", folder / "model", folder, probability)
                            rows.append({"set": set_name, "options": " ".join(map(str, made)), **found})
    return rows


def cpu() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Compares all models and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = runs(library())
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    decision = max(row["decision"] for row in rows)
    probability = max(row.get("probability", 0.0) for row in rows)
    labels = sum(row.get("labels", 0) for row in rows)
    table = {
        "command": "python benches/libsvm/models.py --json docs/benchmarks/libsvm_models.json",
        "commit": commit.stdout.strip(),
        "cpu": cpu(),
        "date": datetime.now(UTC).date().isoformat(),
        "models": len(rows),
        "probability_models": sum("probability" in row for row in rows),
        "decision_within_1e-10": sum(row["decision"] <= MAX_DIFFERENCE for row in rows),
        "max_decision_difference": decision,
        "max_probability_difference": probability,
        "different_labels": labels,
        "runs": rows,
    }
    print({key: value for key, value in table.items() if key != "runs"})
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n")
    is_off = any(row["decision"] > max(MAX_DIFFERENCE, MAX_ROUNDINGS * row["rounding"]) for row in rows)
    if is_off or probability > MAX_PROBABILITY_DIFFERENCE or labels:
        raise SystemExit("the differences are larger than allowed")


if __name__ == "__main__":
    main()
