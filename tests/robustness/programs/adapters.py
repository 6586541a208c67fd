"""Compiled models, ONNX files and C headers with the methods of an estimator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import svmarrow
from helpers import reference


class OneRow:
    """Asks a model about a few samples at a time: one for a compiled model."""

    def __init__(self, model: Any, size: int = 1) -> None:
        self.model, self.size = model, size
        if getattr(model, "decision_function", None) is None:
            self.decision_function = None

    def _asked(self, method: Any, X: Any) -> Any:
        if self.size == 1:
            return np.array([method(row) for row in np.asarray(X, dtype=float).tolist()])
        return np.concatenate([method(X[start : start + self.size]) for start in range(0, len(X), self.size)])

    def predict(self, X: Any) -> Any:
        return self._asked(self.model.predict, X)

    def decision_function(self, X: Any) -> Any:
        return self._asked(self.model.decision_function, X)


class OnnxProgram:
    """Runs an ONNX model."""

    def __init__(self, model: Any) -> None:
        import onnxruntime  # noqa: PLC0415 - an extra

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        self.results = [result.name for result in self.session.get_outputs()]
        self.dtype = np.float64 if "double" in self.session.get_inputs()[0].type else np.float32
        if "probabilities" in self.results:
            self.predict_proba = lambda X: self._run("probabilities", X)
        if "scores" in self.results:
            self.decision_function = lambda X: self._run("scores", X)

    def _run(self, name: str, X: Any) -> Any:
        return self.session.run([name], {"X": np.ascontiguousarray(X, dtype=self.dtype)})[0]

    def predict(self, X: Any) -> Any:
        name = next(name for name in ("label", "prediction", "scores") if name in self.results)
        return self._run(name, X)


class CProgram:
    """Compiles a C header and runs it; `predict` only."""

    SOURCE = """#include <stdio.h>
#include "model.h"
int main(void) {
    static float x[SVMARROW_FEATURES];
    int j;
    if (!svmarrow_self_test()) { return 3; }
    for (;;) {
        for (j = 0; j < SVMARROW_FEATURES; ++j) {
            if (scanf("%f", &x[j]) != 1) { return 0; }
        }
        printf("%.9g\\n", (double)svmarrow_predict(x));
    }
}
"""

    def __init__(self, header: Any, model: Any, path: str) -> None:
        self.classes = getattr(model, "classes_", None)
        folder = Path(path)
        folder.mkdir(exist_ok=True)
        (folder / "model.h").write_text(header.text)
        (folder / "main.c").write_text(self.SOURCE)
        self.program = folder / "program"
        command = ["gcc", "-std=c99", "-O0", folder / "main.c", "-o", self.program, "-lm"]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        assert compiled.returncode == 0, f"the C header does not compile: {compiled.stderr}"

    def predict(self, X: Any) -> Any:
        text = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in np.asarray(X, dtype=np.float32))
        done = subprocess.run([self.program], input=text.encode(), capture_output=True, check=False)
        assert done.returncode == 0, f"the C program ends with {done.returncode}: 3 means its self test fails"
        values = np.array(done.stdout.split(), dtype=float)
        return values if self.classes is None else self.classes[values.astype(int)]


class CommandLine:
    """The command ``svmarrow predict``."""

    def __init__(self, path: str) -> None:
        self.path = path

    def predict(self, X: Any) -> Any:
        rows = np.asarray(X, dtype=float)
        table, output = Path(self.path + ".csv"), Path(self.path + ".txt")
        head = ",".join(f"x{j}" for j in range(rows.shape[1]))
        lines = [",".join(map(repr, row)) for row in rows.tolist()]
        table.write_text("\n".join([head, *lines]) + "\n")
        command = ["predict", self.path, str(table), "--target", "none", "-o", str(output)]
        done = subprocess.run(
            [sys.executable, "-m", "svmarrow", *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"the command fails: {done.stderr[-300:]}"
        answers = output.read_text(encoding="utf-8").split("\n")[:-1]
        classes = getattr(svmarrow.load(self.path), "classes_", None)
        if classes is None:
            numbers = np.array([line.split(",") for line in answers], dtype=float)
            return numbers[:, 0] if numbers.shape[1] == 1 else numbers
        places = {str(label): place for place, label in enumerate(classes.tolist())}
        return classes[[places[line] for line in answers]]


class KernelFunction:
    """The kernel of an expansion as a Python function, by its definition."""

    def __init__(self, expansion: Any) -> None:
        self.spec = expansion.kernel_spec

    def __call__(self, A: Any, B: Any) -> Any:
        return reference.kernel(self.spec, _rows_of(A), _rows_of(B))


def series_of(X: Any) -> list[Any]:
    """Each sample as a series of one feature, which no estimator takes for rows of numbers."""
    return [row[:, np.newaxis] for row in np.asarray(X)]


def _rows_of(samples: Any) -> Any:
    samples = np.asarray(samples)
    return np.array([one[:, 0] for one in samples]) if samples.dtype == object else samples


class Relabelled:
    """A classifier that was fitted on the numbers of the classes plus `SHIFT`, with the labels themselves."""

    SHIFT = 5

    def __init__(self, model: Any, classes: Any) -> None:
        self.model, self.classes = model, classes
        for name in ("decision_function", "predict_proba"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def predict(self, X: Any) -> Any:
        return self.classes[self.model.predict(X) - self.SHIFT]
