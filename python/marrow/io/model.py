"""marrow's own model files: safetensors.

The expansion is stored as tensors; the rest (class, labels, decoding, parameters, certificate) is one JSON
object. `SCHEMA` is its version, and a file with another one, or with a class that is not in `load`'s table,
is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marrow import _core
from marrow._validation import core_rows
from marrow.classifier import ExpansionClassifier
from marrow.exceptions import FormatError
from marrow.expansion import KernelExpansion
from marrow.io._convert import build_expansion

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from numpy.typing import NDArray

    from marrow._decode import Decoding
    from marrow.svm import SVC

__all__ = ["load", "save"]

SCHEMA = 1
"""Version of the JSON part."""


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a model as a safetensors file.

    Parameters
    ----------
    model : object
        A `KernelExpansion`, an `ExpansionClassifier`, a fitted `marrow.SVC` or `marrow.ReducedSet`, or a
        fitted support vector machine of scikit-learn. An ``SVC`` of marrow comes back as one; the others come
        back as what they are to marrow, an `ExpansionClassifier` or a `KernelExpansion`.
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
    >>> import marrow
    >>> X, y = load_iris(return_X_y=True)
    >>> svc = marrow.SVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "iris.safetensors"
    ...     marrow.io.save(svc, file)
    ...     again = marrow.load(file)
    >>> bool((again.predict(X) == svc.predict(X)).all())
    True
    """
    from marrow.reduced_set import as_expansion
    from marrow.svm import SVC

    if isinstance(model, SVC):
        check_is_fitted(model)
        extra = _describe_svc(model)
        expansion = model.expansion_
    else:
        converted = as_expansion(model)
        if isinstance(converted, KernelExpansion):
            extra, expansion = {}, converted
        else:
            extra, expansion = _describe_classifier(converted), converted.expansion_
        extra["class"] = type(converted).__name__
    extra["schema"] = SCHEMA
    _core.write_model(
        os.fspath(path),
        core_rows(expansion.vectors),
        expansion.coefficients,
        expansion.intercepts,
        expansion.kernel_spec,
        json.dumps(extra, allow_nan=False, sort_keys=True),
    )


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    KernelExpansion, ExpansionClassifier or SVC
        Ready to predict, with the same outputs to the last bit.

    Raises
    ------
    OSError
        If the system cannot read the file.
    marrow.exceptions.FormatError
        A ValueError: the file is no model, is cut off or contradicts itself, or is of an unknown version or
        class.
    """
    raw = _core.read_model(os.fspath(path))
    extra = json.loads(raw["extra_json"])
    builders: dict[str, Callable[[KernelExpansion, Mapping[str, Any]], Any]] = {
        "KernelExpansion": lambda expansion, _: expansion,
        "ExpansionClassifier": _build_classifier,
        "SVC": _build_svc,
    }
    try:
        if not isinstance(extra, dict) or "schema" not in extra:
            raise ValueError("its metadata does not say schema")
        if extra["schema"] != SCHEMA:
            raise ValueError(f"schema {extra['schema']!r}: this version of marrow reads {SCHEMA}")
        name = extra.get("class")
        if not isinstance(name, str) or name not in builders:
            raise ValueError(f"class {name!r} is not one of {', '.join(builders)}")
        return builders[name](build_expansion(raw), extra)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise FormatError(f"{os.fspath(path)}: {reason}") from error


def _describe_classifier(model: ExpansionClassifier) -> dict[str, Any]:
    return {
        "classes": _labels_to_json(model.classes_),
        "decoding": model.decoding,
        "decision_function_shape": model.decision_function_shape,
        "break_ties": bool(model.break_ties),
        "feature_names": _names(model),
        "n_features": model.n_features_in_,
    }


def _build_classifier(expansion: KernelExpansion, extra: Mapping[str, Any]) -> ExpansionClassifier:
    return ExpansionClassifier(
        expansion,
        _labels_from_json(extra["classes"]),
        extra["decoding"],
        decision_function_shape=extra["decision_function_shape"],
        break_ties=_typed(extra, "break_ties", bool),
        feature_names=extra["feature_names"],
        n_features=_typed(extra, "n_features", int),
    )


def _describe_svc(model: SVC) -> dict[str, Any]:
    """Parameters and fitted attributes of an SVC beside its expansion."""
    parameters = model.get_params(deep=False)
    weights = parameters.pop("class_weight")
    if isinstance(weights, Mapping):
        keys = _labels_to_json(np.array(list(weights)))
        weights = {"labels": keys, "weights": [float(weight) for weight in weights.values()]}
    return {
        "class": "SVC",
        "parameters": {name: _plain(name, value) for name, value in parameters.items()},
        "class_weight": weights,
        "classes": _labels_to_json(model.classes_),
        "support": model.support_.tolist(),
        "class_counts": model.n_support_.tolist(),
        "class_weight_used": model.class_weight_.tolist(),
        "shape_fit": list(model.shape_fit_),
        "n_features": model.n_features_in_,
        "feature_names": _names(model),
        "certificate": asdict(model.certificate_),
    }


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"{name}={value!r} cannot be stored in a model file: it must be a number, a string or None"
    )


def _build_svc(expansion: KernelExpansion, extra: Mapping[str, Any]) -> SVC:
    from marrow.certificate import Certificate, MachineCertificate
    from marrow.svm import SVC

    weights = extra["class_weight"]
    if isinstance(weights, dict):
        weights = dict(zip(_labels_from_json(weights["labels"]).tolist(), weights["weights"], strict=True))
    # Everything goes through the constructor's own names: a name it does not have is a TypeError.
    model = SVC(**extra["parameters"], class_weight=weights)
    classes = _labels_from_json(extra["classes"])
    decoding: Decoding = "binary" if classes.size == 2 else model.multi_class
    # The checks of labels, decoding, outputs and columns are those of the bare classifier.
    ExpansionClassifier(
        expansion,
        classes,
        decoding,
        decision_function_shape=model.decision_function_shape,
        break_ties=model.break_ties,
        feature_names=extra["feature_names"],
        n_features=_typed(extra, "n_features", int),
    )
    support, counts = _indices(extra, "support"), _indices(extra, "class_counts")
    if support.size != expansion.n_vectors or counts.size != classes.size or counts.sum() != support.size:
        raise ValueError(f"support and class_counts do not describe {expansion.n_vectors} vectors")
    rows, columns = _indices(extra, "shape_fit").tolist()
    machines = tuple(MachineCertificate(**machine) for machine in extra["certificate"].pop("machines"))
    if len(machines) != expansion.n_outputs:
        raise ValueError(
            f"certificate has {len(machines)} machines, the expansion {expansion.n_outputs} outputs"
        )
    model.expansion_ = expansion
    model.certificate_ = Certificate(machines=machines, **extra["certificate"])
    model.classes_ = classes
    model.support_, model.n_support_ = support, counts
    model.class_weight_ = np.array(extra["class_weight_used"], dtype=np.float64)
    model.shape_fit_ = (rows, columns)
    model.n_features_in_ = extra["n_features"]
    if extra["feature_names"] is not None:
        model.feature_names_in_ = np.array(extra["feature_names"], dtype=object)
    model._decoding = decoding
    return model


def _indices(extra: Mapping[str, Any], key: str) -> NDArray[np.int32]:
    values = extra[key]
    if not isinstance(values, list) or any(type(v) is not int or not 0 <= v < 2**31 for v in values):
        raise ValueError(f"{key} is not a list of indices")
    return np.array(values, dtype=np.int32)


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _typed(extra: Mapping[str, Any], key: str, kind: type) -> Any:
    value = extra[key]
    if type(value) is not kind:
        raise ValueError(f"{key} is {value!r}, expected a value of type {kind.__name__}")
    return value


def _labels_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Labels as plain values, with the dtype that restores them."""
    values = classes.tolist()
    kind = classes.dtype.kind
    if kind == "O" and all(isinstance(value, str) for value in values):
        return {"dtype": "object", "values": values}
    if kind == "U":
        return {"dtype": "str", "values": values}
    if kind in "biuf" and classes.dtype.itemsize <= 8 and np.isfinite(classes).all():
        return {"dtype": classes.dtype.name, "values": values}
    raise TypeError(
        f"classes of type {classes.dtype} cannot be stored in a model file: they must be strings, integers, "
        "booleans or finite floating-point numbers"
    )


def _labels_from_json(described: Any) -> NDArray[Any]:
    dtype, values = described["dtype"], described["values"]
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "object": (str,), "bool": (bool,)}
    kinds |= {f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)}
    kinds |= {f"float{bits}": (int, float) for bits in (16, 32, 64)}
    if dtype not in kinds:
        raise ValueError(f"labels of dtype {dtype!r} are unknown")
    if not isinstance(values, list) or any(type(value) not in kinds[dtype] for value in values):
        raise ValueError(f"labels are not a list of {dtype}")
    try:
        return np.array(values, dtype=dtype)
    except OverflowError as error:
        raise ValueError(f"labels are not a list of {dtype}: {error}") from None
