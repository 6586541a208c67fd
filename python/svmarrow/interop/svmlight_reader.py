"""Model files of SVM-light."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np
import scipy.sparse as sp

from svmarrow.exceptions import FormatError
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.regressor import ExpansionRegressor

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["load_svmlight_model"]

#: Kernels by their numbers in the file; 4 is a kernel that the user has programmed.
_KERNELS = ("linear", "poly", "rbf", "sigmoid")
#: Header lines after the version, in their order: the words after '#'.
_HEADER = (
    "kernel type",
    "kernel parameter -d",
    "kernel parameter -g",
    "kernel parameter -s",
    "kernel parameter -r",
    "kernel parameter -u",
    "highest feature index",
    "number of training documents",
    "number of support vectors plus 1",
    "threshold b",
)


def load_svmlight_model(
    path: str | PathLike[str],
    n_features: int | None = None,
    *,
    task: Literal["classification", "regression"] = "classification",
) -> ExpansionClassifier | ExpansionRegressor:
    """Read a model of SVM-light's ``svm_learn``.

    Parameters
    ----------
    path : str or path-like
        The file, of SVM-light 4 to 6.
    n_features : int, default=None
        Number of columns of the data; None takes the highest feature index of the file.
    task : {"classification", "regression"}, default="classification"
        What the outputs mean, which the file does not say. A classifier has the classes -1 and 1; a ranking
        model is read as a regression, whose outputs are its scores.

    Returns
    -------
    ExpansionClassifier or ExpansionRegressor
        The model. Columns count from 0, those of the file from 1.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line that does not follow the format, also for a kernel that the user of
        SVM-light has programmed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from svmarrow.io import load_svmlight_model
    >>> text = '''SVM-light Version V6.02
    ... 0 # kernel type
    ... 3 # kernel parameter -d
    ... 1 # kernel parameter -g
    ... 1 # kernel parameter -s
    ... 1 # kernel parameter -r
    ... empty# kernel parameter -u
    ... 2 # highest feature index
    ... 4 # number of training documents
    ... 2 # number of support vectors plus 1
    ... 0.5 # threshold b, each following line is a SV (starting with alpha*y)
    ... 2 1:1 2:-1 #
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model")
    ...     _ = file.write_text(text)
    ...     model = load_svmlight_model(file)
    >>> model.decision_function([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.5, -2.5]
    """
    if task not in ("classification", "regression"):
        raise ValueError(f"task={task!r} is not allowed: it must be 'classification' or 'regression'")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    expansion = _Reader(path).expansion(n_features)
    if task == "regression":
        return ExpansionRegressor(expansion)
    return ExpansionClassifier(expansion, np.array([-1, 1]), "binary")


class _Reader:
    """Parses the lines of a file and reports errors by line."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()

    def _fail(self, number: int, rule: str) -> NoReturn:
        raise FormatError(f"{self._path!s}, line {number}: {rule}")

    def _number(self, number: int, text: str, name: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._fail(number, f"{name} {text[:40]!r} is not a finite number")
        return value

    def _header(self) -> dict[str, str]:
        if not self._lines or not self._lines[0].lower().startswith("svm-light version"):
            self._fail(1, "expected 'SVM-light Version': it is no model of SVM-light")
        values = {}
        for number, name in enumerate(_HEADER, start=2):
            line = self._lines[number - 1] if number <= len(self._lines) else ""
            value, mark, comment = line.partition("#")
            if not mark or not comment.strip().startswith(name):
                self._fail(number, f"expected a value and '# {name}'")
            values[name] = value.strip()
        return values

    def expansion(self, n_features: int | None) -> KernelExpansion:
        """The outputs of the model."""
        header = self._header()
        numbers = {
            name: self._number(line, header[name], name)
            for line, name in enumerate(_HEADER, start=2)
            if name != "kernel parameter -u"
        }
        kind = numbers["kernel type"]
        if kind not in range(len(_KERNELS)):
            self._fail(2, f"kernel type {kind:g} is not supported: it must be one of 0 to 3")
        for place, name in ((3, "kernel parameter -d"), (8, "highest feature index"), (10, _HEADER[8])):
            if numbers[name] != int(numbers[name]) or numbers[name] < 0:
                self._fail(place, f"{name} must be a count")
        coefficients: list[float] = []
        indices: list[int] = []
        values: list[float] = []
        ends = [0]
        first = len(_HEADER) + 2
        for number, line in enumerate(self._lines[first - 1 :], start=first):
            words = line.partition("#")[0].split()
            if not words:
                self._fail(number, "the line is empty: a support vector begins with its coefficient")
            coefficients.append(self._number(number, words[0], "coefficient"))
            for word in words[1:]:
                index, _, value = word.partition(":")
                if not index.isascii() or not index.isdigit() or not 1 <= int(index) < 2**31:
                    self._fail(number, f"{word[:40]!r} is no feature: expected index:value, index from 1")
                if len(indices) > ends[-1] and int(index) <= indices[-1] + 1:
                    self._fail(number, f"index {index} does not increase")
                indices.append(int(index) - 1)
                values.append(self._number(number, value, "value"))
            ends.append(len(indices))
        if len(coefficients) != numbers[_HEADER[8]] - 1:
            expected = numbers[_HEADER[8]] - 1
            self._fail(
                len(self._lines), f"{len(coefficients)} support vectors, expected {expected:g}: cut off?"
            )
        found = max(max(indices, default=0) + 1, int(numbers["highest feature index"]), 1)
        if n_features is not None and found > n_features:
            raise FormatError(f"{self._path!s}: the model has {found} columns, n_features={n_features}")
        shape = (len(coefficients), n_features or found)
        kernel = _KERNELS[int(kind)]
        scale = numbers["kernel parameter -g" if kernel == "rbf" else "kernel parameter -s"]
        if kernel != "linear" and scale < 0.0:
            self._fail(4 if kernel == "rbf" else 5, f"the kernel parameter {scale:g} must not be negative")
        return KernelExpansion(
            sp.csr_array((np.array(values), np.array(indices, dtype=np.int32), ends), shape=shape),
            np.array(coefficients),
            0.0 - numbers["threshold b"],
            kernel,
            gamma=scale if kernel != "linear" else 1.0,
            coef0=numbers["kernel parameter -r"],
            degree=int(numbers["kernel parameter -d"]),
        )
