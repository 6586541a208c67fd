"""svmarrow's own model files: safetensors.

The expansion is stored as tensors; the rest (class, labels, decoding, parameters, certificate) is one JSON
object. `SCHEMA` is its version, and a file with another one, or with a class that is not in `load`'s table,
is refused.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow.exceptions import FormatError
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.read import build_expansion, csr_or_dense
from svmarrow.io._json import labels_from_json, labels_to_json, names, typed
from svmarrow.io.machine import MACHINES, build_machine, describe_machine
from svmarrow.io.stream import STREAMS, build_stream, describe_stream
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.regressor import ExpansionRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

__all__ = ["load", "save"]

SCHEMA = 1
"""Version of the JSON part."""


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a model as a safetensors file.

    Parameters
    ----------
    model : object
        Anything that `svmarrow.interop.as_expansion` takes, a fitted support vector machine, or an online
        learner of svmarrow (the perceptrons and `PerceptronTreeClassifier`). Machines and learners
        come back as what they were, and a learner goes on with its stream bit for bit; the others come back
        as what they are to svmarrow, an `ExpansionClassifier`, an `ExpansionRegressor`, an
        `ExpansionDetector` or a `KernelExpansion`.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    TypeError
        If the model, its labels or a parameter cannot be stored as plain data.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import svmarrow
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = svmarrow.SVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "iris.safetensors"
    ...     svmarrow.io.save(svc, file)
    ...     again = svmarrow.load(file)
    >>> bool((again.predict(X) == svc.predict(X)).all())
    True
    """
    from svmarrow.interop import as_expansion
    from svmarrow.perceptron._stream import StreamClassifier
    from svmarrow.svm._base import SupportVectorMachine

    arrays: dict[str, Any] = {}
    if isinstance(model, StreamClassifier):
        check_is_fitted(model)
        extra, arrays, rows, coefficients = describe_stream(model)
        expansion = KernelExpansion(
            csr_or_dense(rows), coefficients, np.zeros(coefficients.shape[1]), *model._kernel_spec
        )
    elif isinstance(model, SupportVectorMachine):
        check_is_fitted(model)
        extra = describe_machine(model)
        expansion = model.expansion_
    else:
        converted = as_expansion(model)
        if isinstance(converted, KernelExpansion):
            extra, expansion = {}, converted
        else:
            extra, expansion = _describe(converted), converted.expansion_
        extra["class"] = type(converted).__name__
    extra["schema"] = SCHEMA
    _core.write_model(
        os.fspath(path),
        expansion.core_parts,
        json.dumps(extra, allow_nan=False, sort_keys=True),
        arrays,
    )


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    KernelExpansion, ExpansionClassifier, ExpansionRegressor, ExpansionDetector, SVC, NuSVC, SVR, NuSVR, \
OneClassSVM or an online learner
        Ready to predict, with the same outputs to the last bit.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError: the file is no model, is cut off or contradicts itself, or is of an unknown version or
        class.
    """
    raw = _core.read_model(os.fspath(path))
    extra = json.loads(raw["extra_json"])
    builders: dict[str, Callable[[KernelExpansion, Mapping[str, Any]], Any]] = {
        "KernelExpansion": lambda expansion, _: expansion,
        "ExpansionClassifier": _build_classifier,
        "ExpansionDetector": lambda expansion, extra: ExpansionDetector(expansion, **_columns(extra)),
        "ExpansionRegressor": lambda expansion, extra: ExpansionRegressor(
            expansion, flat=typed(extra, "flat", bool), **_columns(extra)
        ),
        **dict.fromkeys(MACHINES, build_machine),
        **dict.fromkeys(STREAMS, lambda expansion, extra: build_stream(expansion, extra, raw["arrays"])),
    }
    try:
        if not isinstance(extra, dict) or "schema" not in extra:
            raise ValueError("its metadata does not say schema")
        if extra["schema"] != SCHEMA:
            raise ValueError(f"schema {extra['schema']!r}: this version of svmarrow reads {SCHEMA}")
        name = extra.get("class")
        if not isinstance(name, str) or name not in builders:
            raise ValueError(f"class {name!r} is not one of {', '.join(builders)}")
        if raw["arrays"] and name not in STREAMS:
            raise ValueError(f"a model of class {name} has no arrays of its own")
        return builders[name](build_expansion(raw), extra)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise FormatError(f"{os.fspath(path)}: {reason}") from error


def _describe(model: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"feature_names": names(model), "n_features": model.n_features_in_}
    if isinstance(model, ExpansionRegressor):
        described["flat"] = bool(model.flat)
    if isinstance(model, ExpansionClassifier):
        described |= {
            "classes": labels_to_json(model.classes_),
            "decoding": model.decoding,
            "decision_function_shape": model.decision_function_shape,
            "break_ties": bool(model.break_ties),
        }
        if model._matrix is not None:
            described |= {"code": model._matrix.tolist(), "decoder": model.decoder}
    return described


def _columns(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {"feature_names": extra["feature_names"], "n_features": typed(extra, "n_features", int)}


def _build_classifier(expansion: KernelExpansion, extra: Mapping[str, Any]) -> ExpansionClassifier:
    return ExpansionClassifier(
        expansion,
        labels_from_json(extra["classes"]),
        extra["decoding"],
        decision_function_shape=extra["decision_function_shape"],
        break_ties=typed(extra, "break_ties", bool),
        code=extra.get("code"),
        decoder=extra.get("decoder"),
        **_columns(extra),
    )
