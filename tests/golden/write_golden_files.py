"""Writes the golden files: small files of every schema, with the numbers that they must give.

    python tests/golden/write_golden_files.py            # writes the files that are missing
    python tests/golden/write_golden_files.py svc/1      # and those of a schema again

A golden file stays as it is for ever: it is the memory of what users have. A schema with a new number gets
new files beside the old ones (``svc-2.safetensors``), and `tests/io/test_schemas.py` reads all of them. A
name may have a third part (``svc-1-strings.safetensors``) for another form. ``numbers.json`` holds rows and
the predictions of the models for them, or the fields of an object that does not predict.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import svmarrow
from helpers.data import IRIS, KIND, NUMBERS, PAIRS, WORDS
from svmarrow import KernelExpansion, as_expansion, compress, compression_path, quantize
from svmarrow._support import saving
from svmarrow._support.schemas import SCHEMAS, Schema, schema_of
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.kernels import GlobalAlignment, Subsequence
from svmarrow.least_squares import (
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)
from svmarrow.matching_pursuit._dictionary import Constant, Dictionary, KernelPart
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.models import (
    Distillation,
    ExpansionDetector,
    ExpansionRegressor,
    ExpansionSum,
    ExpansionTree,
    LossBound,
    Quantization,
)
from svmarrow.models.categories import Dates, Encode, Impute, Table
from svmarrow.models.machine import Certificate, LeaveOneOut, MachineCertificate
from svmarrow.models.outputs import Calibration
from svmarrow.models.preparation import Affine, Chain, Clip, Normalize, Parts, PiecewiseLinear
from svmarrow.multiclass import Code
from svmarrow.multiclass.training import Machines
from svmarrow.online import KernelPerceptron
from svmarrow.preprocessing import LearnedScaler
from svmarrow.preprocessing._search import ScaleStep
from svmarrow.preprocessing._shapes import ColumnShapes
from svmarrow.reduced_set import GradientSettings, SelectionSettings
from svmarrow.reduced_set.path import PathNumbers
from svmarrow.svm import QuantileSVR
from svmarrow.tabular._columns import Columns

FILES = Path(__file__).resolve().parent / "files"
DATE = "2026-11-28"
#: Fields of times, which are 0 in golden files.
TIMES = ("seconds", "fit_times_", "score_times_")

X, y, NAMES, T, TT = IRIS[::6], KIND[::6], WORDS[::6], NUMBERS[::6], PAIRS[::6]
#: Targets whose model has small coefficients, so that its predictions do not depend on the processor.
NOISY = y + 0.5 * np.cos(2.3 * np.arange(len(T)))
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])
TEXTS = ["cat", "car", "bar", "dog", "dig", "big"]
SERIES = [np.sin(np.arange(3.0 + length)[:, np.newaxis] + length) for length in range(5)]
HALF = np.array([[0.5, 0.25], [2.0, 0.0]])
CURVE = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]])
KERNEL = {"gamma": 0.25}


def _svc():
    return svmarrow.SVC(C=2.0, **KERNEL).fit(X, y)


def _machine():
    leave_one_out = LeaveOneOut(5, 6, 3, 1, 2, stable=True)
    return MachineCertificate(-1.0, 1.5, 2.5, 0.001, 40, 3, 9, 4, "converged", leave_one_out, 0.1, 1e-9)


def _expansion(**kernel):
    return KernelExpansion(HALF, [[1.0, -0.5], [0.0, 2.0]], [0.5, -1.0], **kernel)


def _tree():
    return ExpansionTree.of(_svc().expansion_, X, 5, random_state=0)


def _with_records(model):
    model.loss_bound_ = _records()["loss-bound-1"]()
    model.quantization_ = _records()["quantization-1"]()
    model.distillation_ = _records()["distillation-1"]()
    return model


def _of_frame(kind, targets, /, **options):
    return lambda: kind(**options).fit(FRAME, targets)


def _scaler():
    scaler = LearnedScaler(max_iter=1, metric="full", n_components=2).fit(FRAME, NAMES)
    return scaler.set_output(transform="default")


def _records():
    return {
        "certificate-1": lambda: Certificate((_machine(), replace(_machine(), dual=0.0)), 100, 60, 40, 0.0),
        "distillation-1": lambda: Distillation("forest", "labels", 500, 20, (64, 32), (0.1, 0.2), (0.9, 0.8)),
        "gradient-settings-1": lambda: GradientSettings(steps=5, sizes=(1, 2), label_weight=0.5),
        "leave-one-out-1": lambda: _machine().leave_one_out,
        "loss-bound-1": lambda: LossBound(0.001, 0.003, 0.95, 800, "accuracy", 0.003, 0.9, 0.8),
        "machine-certificate-1": _machine,
        "quantization-1": lambda: Quantization(6800, 1786, 0.02, 0.01, 0.002, 0.955, 0.954),
        "scale-step-1": lambda: ScaleStep(1, "both", 0.5, 0.25, 0.1, 0.4, 0.5, 0.2, 0.1, kept=True),
        "selection-settings-1": lambda: SelectionSettings(sample=5, chunk=1000),
    }


def _steps():
    scale = Affine(np.array([1.0, 2.0]), np.array([0.5, 2.0]), HALF, np.array([0.1, 0.2]))
    table = Table(np.array(["a", "b"]), HALF, np.array([0.0, 1.0]), as_text=True)
    return {
        "affine-1": lambda: scale,
        "calibration-1": lambda: Calibration("classes", np.array([1.0, 2.0]), np.array([0.5, -0.5])),
        "category-table-1": lambda: table,
        "chain-1": lambda: Chain((Clip(2, -1.0, 1.0), scale)),
        "clipping-1": lambda: Clip(2, -1.0, 1.0),
        "column-kinds-1": lambda: Columns(*np.array([[True, False], [False, False], [False, True]])),
        "column-shapes-1": lambda: ColumnShapes(
            "both", np.zeros(2), np.ones(2), np.array([0, 1]), CURVE, CURVE**2
        ),
        "dates-1": lambda: Dates(
            np.array([19_000.5]), np.array([0]), np.array([0, 0]), np.array([365.2425, 7.0])
        ),
        "encoding-1": lambda: Encode((table, table), compact=True),
        "imputation-1": lambda: Impute((0.5, "none"), missing="?", flags=np.array([1])),
        "normalization-1": lambda: Normalize(2, "l2", "float32"),
        "parts-1": lambda: Parts(3, (np.array([2, 0]), np.array([1])), (scale, None)),
        "piecewise-linear-1": lambda: PiecewiseLinear(CURVE, CURVE**2),
    }


def _parts():
    spec = ("rbf", 0.25, 0.0, 3)
    functions = KernelPart(spec, HALF, np.array([4, 7]), 1)
    return {
        "alignment-kernel-1": lambda: GlobalAlignment(sigma=2.0, band=5, n_jobs=1),
        "code-1": lambda: Code([[1, 1, 0], [-1, 0, 1], [0, -1, -1]]),
        "constant-function-1": lambda: Constant(),
        "dictionary-1": lambda: Dictionary([functions, Constant()]),
        "kernel-functions-1": lambda: functions,
        "machines-1": lambda: svmarrow.CodedClassifier(_svc(), "ovr").fit(X, y)._machines,
        "machines-1-separate": lambda: Machines(
            estimators=[svmarrow.RLSClassifier().fit(HALF, [0, 1])],
            which=np.array([0, 0]),
            signs=np.array([1.0, -1.0]),
            columns=[np.array([0, 1]), np.array([1, 0])],
            left_out=HALF,
            weighted=True,
        ),
        "path-numbers-1": lambda: PathNumbers(HALF.T, HALF, (np.array([0, 1]), np.array([1, 2]))),
        "subsequence-kernel-1": lambda: Subsequence(length=3, decay=0.25, n_jobs=1),
    }


def _models():
    few = {"n_vectors": 5, "random_state": 0}
    pipeline = make_pipeline(StandardScaler(), svmarrow.SVC(**KERNEL))
    small = GradientSettings(steps=3, sizes=(1, 2))
    return {
        "classifier-1": lambda: _with_records(as_expansion(pipeline.fit(FRAME, NAMES))),
        "classifier-1-code": lambda: as_expansion(
            svmarrow.CodedClassifier(_svc(), code="dense", random_state=0).fit(X, y)
        ),
        "classifier-1-bytes": lambda: quantize(_svc(), X=X),
        "detector-1": lambda: _with_records(
            ExpansionDetector(
                svmarrow.OneClassSVM(nu=0.3).fit(X).expansion_,
                feature_names=list("abcd"),
                preparation=Clip(4, 0.0, 5.0),
            )
        ),
        "expansion-1": lambda: _expansion(kernel="poly", gamma=0.5, coef0=1.0, degree=2),
        "expansion-1-sparse": lambda: KernelExpansion(sparse.csr_array(HALF), [1.0, -1.0], 0.5, gamma=0.5),
        "expansion-1-objects": lambda: KernelExpansion(TEXTS[:2], [1.0, -1.0], 0.5, Subsequence(2)),
        "expansion-1-series": lambda: KernelExpansion(SERIES[:2], [1.0, -1.0], 0.5, GlobalAlignment(2.0)),
        "regressor-1": lambda: _with_records(
            ExpansionRegressor(_expansion(**KERNEL), feature_names=["u", "v"], flat=False, weighted=False)
        ),
        "sum-1": lambda: ExpansionSum([_expansion(**KERNEL), _expansion(kernel="laplacian")]),
        "tree-1": _tree,
        "path-1": lambda: compression_path(_svc(), n_vectors=4),
        "gradient-path-1": lambda: compression_path(
            _svc(), n_vectors=3, method="gradient", X=X, settings=small, random_state=0
        ),
        "matching-path-1": lambda: svmarrow.KMPRegressor(n_vectors=4, **KERNEL).fit(X, T).path_,
        "exact-cascade-1": lambda: ExactCascade(svmarrow.SVC(**KERNEL), stages=[2, (4, 3)]).fit(FRAME, NAMES),
        "calibrated-cascade-1": lambda: CalibratedCascade(
            svmarrow.SVC(**KERNEL), [2], epsilon=0.4, validation_fraction=0.4, random_state=0
        ).fit(FRAME, y),
        "reduced-set-1": _of_frame(svmarrow.ReducedSet, NAMES, estimator=svmarrow.SVC(), n_vectors=4),
        "coded-classifier-1": _of_frame(
            svmarrow.CodedClassifier, NAMES, estimator=svmarrow.RLSClassifier(leave_one_out=True), code="ovr"
        ),
        "learned-scaler-1": _scaler,
        "svc-1": _of_frame(svmarrow.SVC, NAMES, C=2.0, class_weight={"setosa": 2.0}, **KERNEL),
        "svc-1-strings": lambda: svmarrow.SVC(kernel=Subsequence(2)).fit(TEXTS, [0, 0, 0, 1, 1, 1]),
        "nu-svc-1": _of_frame(svmarrow.NuSVC, y, nu=0.3, **KERNEL),
        "svr-1": _of_frame(svmarrow.SVR, T, **KERNEL),
        "nu-svr-1": _of_frame(svmarrow.NuSVR, T, **KERNEL),
        "quantile-svr-1": _of_frame(QuantileSVR, T, quantile=[0.2, 0.8], **KERNEL),
        "one-class-svm-1": _of_frame(svmarrow.OneClassSVM, None, nu=0.3, **KERNEL),
        "low-rank-svc-1": _of_frame(svmarrow.LowRankSVC, NAMES, **few, **KERNEL),
        "svc-cv-1": _of_frame(svmarrow.SVCCV, NAMES, Cs=[1.0, 10.0], gammas=[0.1, 0.5], cv=3),
        "svr-cv-1": _of_frame(svmarrow.SVRCV, T, Cs=[1.0, 10.0], gammas=[0.1, 0.5], cv=3),
        "quantile-svr-cv-1": _of_frame(QuantileSVRCV, T, Cs=[1.0, 10.0], gammas=[0.1], cv=3),
        "rls-classifier-1": _of_frame(svmarrow.RLSClassifier, NAMES, alphas=[0.1, 1.0], **KERNEL),
        "rls-classifier-1-width": lambda: svmarrow.RLSClassifier(gamma="loo", alphas=[0.1, 1.0]).fit(X, y),
        "rls-classifier-1-cg": lambda: svmarrow.RLSClassifier(solver="cg").fit(X, y),
        "rls-regressor-1": _of_frame(svmarrow.RLSRegressor, TT, alphas=[0.1, 1.0], **KERNEL),
        "rls-regressor-1-width": lambda: svmarrow.RLSRegressor(gamma="loo", alphas=[0.1, 1.0]).fit(X, T),
        "rls-regressor-1-cg": lambda: svmarrow.RLSRegressor(solver="cg").fit(X, T),
        "linear-rls-classifier-1": _of_frame(LinearRLSClassifier, NAMES, alphas=[0.1, 1.0]),
        "linear-rls-classifier-1-cg": lambda: LinearRLSClassifier(solver="cg").fit(X, y),
        "linear-rls-regressor-1": _of_frame(LinearRLSRegressor, T, alphas=[0.1, 1.0]),
        "linear-rls-regressor-1-cg": lambda: LinearRLSRegressor(solver="cg").fit(X, T),
        "low-rank-rls-classifier-1": _of_frame(LowRankRLSClassifier, NAMES, alphas=[0.1, 1.0], **few),
        "low-rank-rls-classifier-1-adaptive": lambda: LowRankRLSClassifier(5, selection="greedy_trace").fit(
            X, y
        ),
        "low-rank-rls-classifier-1-cg": lambda: LowRankRLSClassifier(5, solver="cg", random_state=0).fit(
            X, y
        ),
        "low-rank-rls-regressor-1": _of_frame(LowRankRLSRegressor, T, alphas=[0.1, 1.0], **few),
        "low-rank-rls-regressor-1-adaptive": lambda: LowRankRLSRegressor(5, selection="greedy_trace").fit(
            X, T
        ),
        "low-rank-rls-regressor-1-cg": lambda: LowRankRLSRegressor(5, solver="cg", random_state=0).fit(X, T),
        "kmp-classifier-1": _of_frame(svmarrow.KMPClassifier, NAMES, n_vectors=4, gamma=(0.1, 1.0)),
        "kmp-regressor-1": _of_frame(svmarrow.KMPRegressor, T, n_vectors=4, gamma=(0.1, 1.0)),
        "kernel-perceptron-1": _of_frame(KernelPerceptron, NAMES, policy="oldest", budget=9, **KERNEL),
        "perceptron-tree-1": _of_frame(
            svmarrow.PerceptronTreeClassifier, NAMES, budget=6, gamma=2.0, random_state=0
        ),
        "tabular-classifier-1": _of_frame(svmarrow.TabularClassifier, NAMES, n_samples=20),
        "tabular-regressor-1": _of_frame(svmarrow.TabularRegressor, NOISY, n_samples=20),
        "reduced-set-1-settings": lambda: svmarrow.ReducedSet(
            _svc(), 3, method="gradient", settings=GradientSettings(steps=3), random_state=0
        ).fit(X, y),
        "classifier-1-compressed": lambda: compress(_svc(), n_vectors=3),
    }


def objects():
    """Returns functions that make the objects of the files, by the names of the files."""
    return _records() | _steps() | _parts() | _models()


def schema_in(name):
    """Returns the schema in the name of a file: "svc/1" of "svc-1" and "svc-1-strings"."""
    return re.sub(r"-([0-9]+)(-.*)?$", r"/\1", name)


# --- the numbers of a file ---

METHODS = ("decision_function", "predict", "predict_proba", "score_samples", "transform")


def rows_for(item):
    """Returns the rows that the numbers of an object are computed from, or None if it does not predict."""
    if hasattr(item, "sizes") and not isinstance(item, tuple(record_kinds())):
        return rows_for(item[max(item.sizes)])
    if not any(hasattr(item, method) for method in METHODS):
        return None
    expansion = getattr(item, "expansion_", item)
    if callable(getattr(expansion, "kernel", None)):
        return list(TEXTS) if isinstance(expansion.kernel, Subsequence) else [s.tolist() for s in SERIES]
    columns = item.n_features_in_ if hasattr(item, "n_features_in_") else expansion.vectors.shape[1]
    return (IRIS[2::30, :columns] + 0.01).tolist()


def record_kinds():
    """Returns the classes of parts that only have fields."""
    return [schema.kind for schema in SCHEMAS.values() if not hasattr(schema.kind, "save")]


def numbers_of(item, rows):
    """Returns the predictions of an object for rows, or its fields, as JSON."""
    if rows is None:
        return plain({"schema": str(schema_of(type(item))), **schema_of(type(item)).content(item)})
    if hasattr(item, "sizes"):
        return {str(size): numbers_of(item[size], rows) for size in item.sizes}
    if isinstance(rows[0], list) and isinstance(rows[0][0], list):
        rows = [np.array(series) for series in rows]
    if hasattr(item, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=item.feature_names_in_)
    numbers = {}
    for method in METHODS:
        try:
            numbers[method] = plain(getattr(item, method)(rows))
        except AttributeError:
            continue
    return numbers


def plain(value):
    """Converts a value to lists, texts and numbers."""
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return numbers_of(value, None)


def main(again):
    """Writes the files that are missing, and those of the schemas in `again`."""
    content = Schema.content

    def without_times(schema, item):
        values = content(schema, item)
        return values | {name: 0.0 * values[name] for name in TIMES if name in values}

    about = {"version": svmarrow.__version__, "date": DATE}
    path = FILES / "numbers.json"
    numbers = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    FILES.mkdir(exist_ok=True)
    for name, make in objects().items():
        file = FILES / f"{name}.safetensors"
        if file.exists() and schema_in(name) not in again:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            item = make()
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(Schema, "content", without_times),
            mock.patch.object(saving, "_about", return_value=about),
        ):
            saving.save(item, Path(folder) / "file")
            file.write_bytes((Path(folder) / "file").read_bytes())
        loaded = saving.load(file)
        rows = rows_for(loaded)
        numbers[name] = {"rows": rows, "numbers": numbers_of(loaded, rows)}
        print(f"{file.name}: {file.stat().st_size} bytes")
    lines = [f"{json.dumps(name)}: {json.dumps(numbers[name])}" for name in sorted(numbers)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
