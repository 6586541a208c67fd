"""Readers, writers and the command."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from helpers.operations.kinds import Run, Settings, data, operation
from helpers.operations.reductions import machine
from svmarrow import KMPClassifier, PerceptronTreeClassifier, compression_path, load, save
from svmarrow.cli import main
from svmarrow.export import to_c, to_onnx
from svmarrow.io import (
    info,
    load_libsvm_model,
    load_svmlight,
    load_svmlight_model,
    model_card,
    save_libsvm_model,
    save_svmlight,
)


@operation("save", 50_000, 300)
def saving(settings: Settings) -> Run:
    model = machine(settings, "wide ten")[0]
    target = settings.folder / "model.safetensors"
    save(model, target)
    return Run(lambda whole: save(whole, target), lambda _: model)


@operation("load", 50_000, 300)
def loading(settings: Settings) -> Run:
    saving(settings)
    return Run(lambda _: load(settings.folder / "model.safetensors"))


@operation("info", 50_000, 300)
def telling(settings: Settings) -> Run:
    saving(settings)
    return Run(lambda _: info(settings.folder / "model.safetensors"))


@operation("model_card", 50_000, 300)
def described(settings: Settings) -> Run:
    model, X, y = machine(settings, "wide ten")
    return Run(lambda whole: model_card(whole, X, y), lambda _: model)


@operation("CompressionPath.save and load", 6000, 300)
def paths(settings: Settings) -> Run:
    path = compression_path(machine(settings, "wide ten")[0], n_jobs=settings.n_jobs)
    target = settings.folder / "path.safetensors"
    path.save(target)
    return Run(lambda whole: (whole.save(target), load(target)), lambda _: path)


@operation("PerceptronTreeClassifier.save and load", 100_000, 600)
def trees(settings: Settings) -> Run:
    tree = settings.of(PerceptronTreeClassifier(budget=10, random_state=0)).fit(
        *data("plain two", settings.n)
    )
    target = settings.folder / "tree.safetensors"
    tree.save(target)
    return Run(lambda whole: (whole.save(target), load(target)), lambda _: tree)


@operation("MatchingPath.save and load", 6000, 600)
def pursuits(settings: Settings) -> Run:
    path = settings.of(KMPClassifier(500, loss="logistic")).fit(*data("plain ten", settings.n)).path_
    target = settings.folder / "path.safetensors"
    path.save(target)
    return Run(lambda whole: (whole.save(target), load(target)), lambda _: path)


@operation("save_libsvm_model", 10_000, 300)
def libsvm(settings: Settings) -> Run:
    model = machine(settings, "wide ten")[0]
    target = settings.folder / "libsvm.model"
    save_libsvm_model(model, target)
    return Run(lambda whole: save_libsvm_model(whole, target), lambda _: model)


@operation("load_libsvm_model", 10_000, 300)
def libsvm_again(settings: Settings) -> Run:
    libsvm(settings)
    return Run(lambda _: load_libsvm_model(settings.folder / "libsvm.model"))


@operation("load_svmlight_model", 40_000, 300)
def svmlight_model(settings: Settings) -> Run:
    X, y = data("wide numbers", settings.n)
    save_svmlight(X, y, settings.folder / "rows.svm")
    names = ["kernel type", *(f"kernel parameter -{letter}" for letter in "dgsru"), "highest feature index"]
    names += ["number of training documents", "number of support vectors plus 1", "threshold b"]
    values = [2, 3, 1, 1, 1, "empty", X.shape[1], len(y), len(y) + 1, 0.5]
    lines = [f"{value} # {name}" for value, name in zip(values, names, strict=True)]
    header = "\n".join(["SVM-light Version V6.02", *lines])
    target = settings.folder / "svmlight.model"
    target.write_text(f"{header}\n{(settings.folder / 'rows.svm').read_text()}")
    return Run(lambda _: load_svmlight_model(target))


@operation("to_onnx", 10_000, 300)
def onnx(settings: Settings) -> Run:
    model = machine(settings, "plain ten")[0]
    target = settings.folder / "model.onnx"
    to_onnx(model, target)
    return Run(lambda whole: to_onnx(whole, target), lambda _: model)


@operation("to_c", 10_000, 300)
def header(settings: Settings) -> Run:
    model, _, _ = machine(settings, "plain ten")
    target = settings.folder / "model.h"
    to_c(model, target)
    return Run(lambda whole: to_c(whole, target), lambda _: model)


@operation("save_svmlight", 40_000, 300)
def svmlight(settings: Settings) -> Run:
    X, y = data("wide numbers", settings.n)
    target = settings.folder / "rows.svm"
    save_svmlight(X, y, target)
    return Run(lambda _: save_svmlight(X, y, target))


@operation("load_svmlight", 40_000, 300)
def svmlight_again(settings: Settings) -> Run:
    svmlight(settings)
    return Run(lambda _: load_svmlight(settings.folder / "rows.svm"))


def _command(name: str, long: int, kind: str, arguments: Any, *, model: bool = False, **about: Any) -> None:
    """A command on files that are there."""

    def prepare(settings: Settings) -> Run:
        folder = settings.folder
        X, y = data(kind, settings.n)
        save_svmlight(X, y, folder / "rows.svm")
        np.savez(folder / "rows.npz", X=X.toarray() if hasattr(X, "toarray") else X, y=y)
        columns = (
            np.column_stack([X[: settings.n // 4], y[: settings.n // 4]]) if isinstance(X, np.ndarray) else []
        )
        np.savetxt(folder / "rows.csv", columns, delimiter=",")
        if model:
            machine(settings, kind)[0].save(folder / "model.safetensors")
        limit = [] if settings.max_time is None else ["--max-time", str(settings.max_time)]
        jobs = ["--n-jobs", str(settings.n_jobs or 1)] if name != "info" else []
        told = [
            "svmarrow",
            *(str(folder / a[1:]) if a.startswith("@") else a for a in arguments),
            *limit,
            *jobs,
        ]

        def work(_: Any) -> None:
            sys.argv = told
            try:
                main()
            except SystemExit as exit_:
                if exit_.code not in (0, None):
                    raise

        return Run(work)

    operation(f"svmarrow {name}", long, 400, raises="SystemExit", writes=True, **about)(prepare)


_command(
    "train",
    5000,
    "plain two",
    ["train", "@rows.svm", "-o", "@new", "-C", "1e4", "-g", "0.2", "--tol", "1e-6"],
    timed=True,
)
_command("train csv", 100_000, "plain two", ["train", "@rows.csv", "-o", "@new", "--tol", "10"])
_command("train npz", 6000, "wide ten", ["train", "@rows.npz", "-o", "@new", "--multi-class", "ovr"])
_command(
    "compress", 4000, "plain ten", ["compress", "@model.safetensors", "-o", "@new", "-n", "100"], model=True
)
_command(
    "compress with a target",
    3000,
    "plain ten",
    ["compress", "@model.safetensors", "-o", "@new", "--max-loss", "0.5", "--validation", "@rows.svm"],
    model=True,
)
_command(
    "predict",
    12_000,
    "wide ten",
    ["predict", "@model.safetensors", "@rows.svm", "-o", "@labels.txt"],
    model=True,
)
_command("info", 40_000, "wide ten", ["info", "@model.safetensors"], model=True)
_command("demo", 400, "plain two", ["demo", "-o", "@demo"])
