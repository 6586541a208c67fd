"""LIBSVM's functions."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from helpers.operations.kinds import Run, Settings, data, operation
from svmarrow import _core
from svmarrow._support.rows import threads
from svmarrow.io import save_svmlight
from svmarrow.libsvm import (
    evaluations,
    svm_load_model,
    svm_parameter,
    svm_predict,
    svm_problem,
    svm_read_problem,
    svm_save_model,
    svm_train,
)


@operation("svm_train", 3000, 300)
def training(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    parameter = svm_parameter("-b 1 -q -c 10")

    def work(_: Any) -> None:
        model = svm_train(svm_problem(y, X), parameter)
        parameter.check()
        assert len(model.get_sv_coef()) == len(model.get_SV()) == len(model.get_sv_indices())

    return Run(work)


@operation("svm-train -v", 3000, 300)
def cross_validating(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    save_svmlight(X, y, settings.folder / "program.svm")
    arguments = ["-c", "10", "-v", "5", str(settings.folder / "program.svm")]

    def work(_: Any) -> None:
        out, messages = io.StringIO(), io.StringIO()
        code = _core.libsvm_program("svm-train", arguments, out, messages, threads(None))
        if "not enough memory" in messages.getvalue():
            raise MemoryError(messages.getvalue())
        assert code == 0, messages.getvalue()

    return Run(work)


@operation("svm_predict", 3000, 300)
def predicting(settings: Settings) -> Run:
    X, y = data("plain ten", settings.n)
    model = svm_train(y, X, "-q -b 1")

    def work(_: Any) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            labels, _, _ = svm_predict(y, X, model, "-b 1")
        evaluations(y, labels)

    return Run(work)


@operation("svm_save_model and svm_load_model", 10_000, 300)
def files(settings: Settings) -> Run:
    X, y = data("plain numbers", settings.n)
    model, target = svm_train(y, X, "-s 3 -b 1 -q -c 0.1"), settings.folder / "libsvm.model"
    svm_save_model(target, model)

    def work(_: Any) -> None:
        svm_save_model(target, model)
        again = svm_load_model(target)
        assert again.get_nr_sv() == model.get_nr_sv()
        assert again.get_nr_class() == 2
        assert not again.get_labels()
        assert again.is_probability_model()
        assert again.get_svr_probability() > 0.0
        assert again.get_svm_type() == 3

    return Run(work)


@operation("svm_read_problem", 40_000, 300)
def reading(settings: Settings) -> Run:
    X, y = data("wide numbers", settings.n)
    save_svmlight(X, y, settings.folder / "rows.svm")
    return Run(lambda _: svm_read_problem(settings.folder / "rows.svm"))
