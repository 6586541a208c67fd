"""Any fitted kernel machine as a kernel expansion: an object by its class, a file by its content."""

from __future__ import annotations

import math
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn import __version__ as sklearn_version
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from svmarrow import _core
from svmarrow._support.estimator import (
    REMEDY,
    check_fitted,
    check_overrides,
    check_own,
    find_kind,
    metadata_of,
)
from svmarrow._support.saving import load
from svmarrow.exceptions import FormatError
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.ensembles import ENSEMBLES
from svmarrow.interop.sklearn_models import MODELS
from svmarrow.models.base import ExpansionModel
from svmarrow.models.expansion_models import (
    ExpansionClassifier,
    ExpansionDetector,
    ExpansionRegressor,
    n_outputs,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from svmarrow._support.parameters import Decoding

__all__ = [
    "as_expansion",
    "bare_expansion",
    "is_predictor",
    "load_libsvm_model",
    "load_model_file",
    "load_svmlight_model",
    "model_and_base",
    "text_format",
]


# --- LIBSVM's model text, read ---
# A file has one output for each pair of labels a < b in its own order, positive for a. So the second class
# of a binary model comes first in its file; the labels of other files keep their order.


def load_libsvm_model(
    path: str | PathLike[str],
    n_features: int | None = None,
    *,
    zero_based: bool | Literal["auto"] = False,
) -> ExpansionClassifier | ExpansionRegressor | ExpansionDetector:
    """Read a LIBSVM model, from ``svm-train`` or `save_libsvm_model`.

    Files that ``svm-predict`` would read as something else are refused: indices that do not increase,
    tokens that are no numbers, blank lines between the vectors, lines after the last one, and a last line
    without a line feed, which may be cut off.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, default=None
        Number of columns of the data. The file does not contain it; None takes the last column in which a
        vector has a value, and samples to predict must then have as many.
    zero_based : bool or "auto", default=False
        Whether columns count from 0; a file with the index 0 is refused unless they do. ``"auto"``: if the
        index 0 occurs. Give `load_svmlight` the same, or columns of the data are not those of the model.
        The precomputed kernel has no columns to count and does not take True.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor or ExpansionDetector
        For ``c_svc`` and ``nu_svc``, ``epsilon_svr`` and ``nu_svr``, ``one_class``. The `classes_` of a
        classifier are in the order of the file, so that tied votes are broken as ``svm-predict`` does.
        Probability parameters (``svm-train -b 1``) are not taken. The format does not state whether classes
        or rows had weights: ``weighted`` is None, which `svmarrow.compress` takes for possible.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line which does not follow the format.
    """
    return model_and_base(path, n_features, zero_based)[0]


def model_and_base(
    path: str | PathLike[str], n_features: int | None, zero_based: bool | Literal["auto"]
) -> tuple[ExpansionClassifier | ExpansionRegressor | ExpansionDetector, bool]:
    """The model of `load_libsvm_model`, and whether its columns count from 0."""
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is not allowed: it must be True, False or 'auto'")
    base = None if zero_based == "auto" else bool(zero_based)
    raw = _core.read_libsvm_model(os.fspath(path), n_features, base)
    if raw["kernel"][0] == "precomputed" and base:
        raise ValueError(
            "zero_based=True is not allowed for the precomputed kernel: it has no columns to count"
        )
    return _with_meaning(raw), bool(raw["zero_based"])


def _with_meaning(raw: dict[str, Any]) -> ExpansionClassifier | ExpansionRegressor | ExpansionDetector:
    labels = np.asarray(raw["labels"])
    expansion = KernelExpansion._of_parts(raw)
    if labels.size == 0:
        if raw["svm_type"] == "one_class":
            return ExpansionDetector(expansion)
        return ExpansionRegressor(expansion)
    if labels.size == 2:
        # A positive output votes for the first label of the file, here it is the second class.
        return ExpansionClassifier(expansion, labels[::-1].copy(), "binary")
    return ExpansionClassifier(expansion, labels, "ovo")


# --- model files of SVM-light ---


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


_SVMLIGHT = b"svm-light version"


def text_format(path: str | PathLike[str]) -> Literal["libsvm", "svmlight"] | None:
    """The program that wrote a text model, whatever the name of the file is; None for any other content.

    A ValueError for a pipe, whose content could then not be read again.
    """
    if Path(path).is_fifo():
        raise ValueError(f"{path} is a pipe: a model must be a file, since it is read more than once")
    with Path(path).open("rb") as file:
        start = file.read(len(_SVMLIGHT))
    if start[:9] in (b"svm_type ", b"svm_type\t"):
        return "libsvm"
    return "svmlight" if start.lower() == _SVMLIGHT else None


def load_model_file(path: str | PathLike[str]) -> Any:
    """The model of a file of svmarrow, LIBSVM or SVM-light; one of SVM-light is read as a classifier."""
    match text_format(path):
        case "libsvm":
            return load_libsvm_model(path)
        case "svmlight":
            return load_svmlight_model(path)
        case _:
            return load(path)


TAKEN = (
    "a svmarrow estimator, a KernelExpansion, a model file, (vectors, coefficients, kernel), or a fitted "
    "SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, GaussianProcessRegressor, OneVsRestClassifier, "
    "OneVsOneClassifier, CalibratedClassifierCV, BaggingClassifier, BaggingRegressor, VotingClassifier or "
    "VotingRegressor of scikit-learn, or a Pipeline or GridSearchCV of one of these"
)


def as_expansion(model: Any) -> Any:
    """Take a fitted model as what it is: a kernel expansion, with labels if it is a classifier.

    Parameters
    ----------
    model : object
        One of

        * a `KernelExpansion`, `ExpansionClassifier`, `ExpansionRegressor` or `ExpansionDetector`;
        * a fitted estimator of svmarrow, or any with an ``as_expansion`` method or an ``expansion_``;
        * a fitted ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR`` or ``OneClassSVM`` of scikit-learn with a built-in
          kernel;
        * its ``KernelRidge``; its ``GaussianProcessRegressor``, of which the mean is taken, with an isotropic
          RBF kernel or a dot product, scaled, with constants and white noise added;
        * its ``OneVsRestClassifier`` or ``OneVsOneClassifier`` over any of these; machines of several
          kernels, as those of ``gamma="scale"`` on other samples, become a `svmarrow.models.ExpansionSum`;
        * its ``CalibratedClassifierCV`` of one of these (``ensemble=False``, or a ``FrozenEstimator``) by
          sigmoids or temperature: the model then has probabilities, as ``SVC(probability=True)`` has;
        * its ``BaggingRegressor`` or ``VotingRegressor`` over any of these: the average is one expansion;
        * its ``BaggingClassifier`` or ``VotingClassifier`` of machines for two classes: the outputs of the
          machines are counted as votes;
        * a ``FrozenEstimator`` around any of these, and a search (``GridSearchCV`` and others) whose best
          estimator is one;
        * its ``Pipeline`` that ends in any of these, after scalers (`LearnedScaler` too), ``PCA``,
          ``Normalizer``, imputers, encoders and a ``ColumnTransformer`` of them, see
          `svmarrow.models.preparation`;
        * a path to a model file of svmarrow, LIBSVM or SVM-light;
        * ``(vectors, coefficients, kernel)``, where kernel is a name or a dict of `KernelExpansion`'s
          parameters.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        The latter if the meaning of the outputs is not known. Predictions are those of the model; the vectors
        are shared where their layout allows it.

    Raises
    ------
    TypeError
        If the model, or a step of a pipeline, is of a kind that is not listed above, or of a subclass that
        overrides what predicts or transforms.
    ValueError
        If its kernel is a Python function or none of svmarrow's, its machines have several kernels of which
        one is precomputed, or the answer of an ensemble is not a function of one expansion: votes over
        several classes, averages of probabilities, weighted votes, machines that see different features.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from svmarrow import as_expansion
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = SVC().fit(X, y)
    >>> bool((as_expansion(svc).predict(X) == svc.predict(X)).all())
    True
    """
    for kind in (KernelExpansion, ExpansionModel):
        if isinstance(model, kind):
            check_overrides(model, kind, REMEDY)
            return model
    if isinstance(model, type):
        raise TypeError(f"model={model.__name__} is a class: pass a fitted instance")
    if isinstance(model, (str, os.PathLike)):
        return as_expansion(load_model_file(model))
    if isinstance(model, (tuple, list)):
        return _bare(model)
    # The replacements of scikit-learn's classes have scikit-learn's public names alone.
    method = getattr(model, "as_expansion", None) or getattr(model, "_as_expansion", None)
    if method is not None:
        check_own(model, "as_expansion" if hasattr(model, "as_expansion") else "_as_expansion")
        check_fitted(model)
        return _wrap_as_model(model, method())
    name = find_kind(model, CONVERTERS, REMEDY)
    if name is not None:
        return _converted(model, CONVERTERS[name])
    if isinstance(getattr(model, "expansion_", None), KernelExpansion):
        return _wrap_as_model(model, model.expansion_)
    kind_name, inner = type(model).__name__, getattr(model, "model", None)
    if isinstance(inner, (KernelExpansion, ExpansionModel)):
        remedy = (
            "one of its sizes, path[size] or path.select(...)" if hasattr(model, "sizes") else "its .model"
        )
        raise TypeError(f"model of type {kind_name} is a result that contains a model: pass {remedy}")
    raise TypeError(f"model of type {kind_name} is not a kernel expansion: expected {TAKEN}")


def _converted(model: Any, convert: Callable[[Any], Any]) -> Any:
    """The result of a converter, which an older scikit-learn may not have left all attributes for."""
    try:
        return convert(model)
    except AttributeError as error:
        version = vars(model).get("_sklearn_version")
        if version is None:
            raise
        raise ValueError(
            f"this {type(model).__name__} was fitted by scikit-learn {version} and lacks what version "
            f"{sklearn_version} has ({error}): fit it again, or convert it with that version"
        ) from error


def is_predictor(model: object) -> bool:
    """Returns True for an object with ``predict``, and for a function."""
    return not isinstance(model, type) and (callable(getattr(model, "predict", None)) or callable(model))


def bare_expansion(
    model: ExpansionModel | KernelExpansion,
) -> ExpansionClassifier | KernelExpansion:
    """The expansion of a regressor or detector; a classifier as it is."""
    if isinstance(model, ExpansionModel) and not isinstance(model, ExpansionClassifier):
        return model.expansion_
    return model


def _bare(parts: Any) -> KernelExpansion:
    if len(parts) != 3:
        raise TypeError(
            f"a model of {len(parts)} parts is not a kernel expansion: "
            "it must be (vectors, coefficients, kernel)"
        )
    vectors, coefficients, kernel = parts
    B = np.asarray(coefficients, dtype=np.float64)
    outputs = 1 if B.ndim == 1 else B.shape[1]
    options = dict(kernel) if isinstance(kernel, dict) else {"kernel": kernel}
    return KernelExpansion(vectors, B, options.pop("intercepts", np.zeros(outputs)), **options)


def _wrap_as_model(model: Any, converted: Any) -> Any:
    """The expansion of an estimator as a model of the kind of the estimator."""
    if not isinstance(converted, KernelExpansion):
        if isinstance(converted, ExpansionModel):
            return converted
        raise TypeError(
            f"{type(model).__name__}.as_expansion() gave {type(converted).__name__}, not an expansion"
        )
    about = metadata_of(model)
    if is_regressor(model):
        return ExpansionRegressor(converted, flat=bool(getattr(model, "_single", True)), **about)
    if is_outlier_detector(model):
        return ExpansionDetector(converted, **about)
    if is_classifier(model):
        classes = np.asarray(model.classes_)
        codings: tuple[Decoding, ...] = ("binary", "ovr", "ovo")
        fitting = [
            decoding
            for decoding in codings
            if (decoding == "binary") == (classes.size == 2)
            and n_outputs(decoding, classes.size) == converted.n_outputs
        ]
        if len(fitting) != 1:
            raise TypeError(
                f"{type(model).__name__} does not define its {converted.n_outputs} outputs for "
                f"{classes.size} classes: it needs a method as_expansion"
            )
        return ExpansionClassifier(converted, classes, fitting[0], **about)
    return converted


#: Converters of scikit-learn's classes, by class name: none of their modules is imported for it.
CONVERTERS: dict[str, Callable[[Any], Any]] = {
    **MODELS,
    **{name: partial(convert, convert=as_expansion) for name, convert in ENSEMBLES.items()},
}
