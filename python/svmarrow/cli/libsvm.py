"""LIBSVM's programs as commands; the options are read by `svmarrow.libsvm`."""

from __future__ import annotations

from typing import Any

import typer

from svmarrow.libsvm._programs import run

__all__ = ["PASS_THROUGH", "grid", "svm_predict", "svm_scale", "svm_train"]

#: Settings of commands that read their own options.
PASS_THROUGH: dict[str, Any] = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": [],
}


def svm_train(context: typer.Context) -> None:
    """Train a model as LIBSVM's svm-train does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-train -s 0 -c 10 -g 0.1 train.svm train.model
    """
    raise typer.Exit(run("svm-train", context.args))


def svm_predict(context: typer.Context) -> None:
    """Predict as LIBSVM's svm-predict does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-predict -b 1 test.svm train.model labels.txt
    """
    raise typer.Exit(run("svm-predict", context.args))


def svm_scale(context: typer.Context) -> None:
    """Scale a data file as LIBSVM's svm-scale does; without arguments its usage.

    [bold]Example[/bold]

      svmarrow svm-scale -l 0 -u 1 -s ranges train.svm > scaled.svm
    """
    raise typer.Exit(run("svm-scale", context.args))


def grid(context: typer.Context) -> None:
    """Search C and gamma as LIBSVM's grid.py does, in one process; without arguments its usage.

    [bold]Example[/bold]

      svmarrow grid -log2c -3,9,2 -log2g 1,-9,-2 -v 5 -out results.txt train.svm
    """
    raise typer.Exit(run("grid", context.args))
