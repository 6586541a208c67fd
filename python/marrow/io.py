"""Model files and data files.

| format | write | read | holds |
|---|---|---|---|
| safetensors | `save` | `load` | any model of marrow, exactly |
| LIBSVM model text | `save_libsvm_model` | `load_libsvm_model` | what LIBSVM has: its kernels, integer labels |
| svmlight text | `save_svmlight` | `load_svmlight` | sparse rows and targets |

None of them can hold code: a file from a stranger can be wrong, and is then refused, but it cannot run anything.
Saving is all or nothing: when it fails, an existing file is as it was.

In a safetensors model the expansion is stored as tensors; the rest (class, labels, decoding, parameters,
certificate) is one JSON object. `SCHEMA` is its version, and a file with another one, or with a class that is not in
`load`'s table, is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from marrow import _core
from marrow._validation import as_rows, core_rows
from marrow.classifier import ExpansionClassifier
from marrow.exceptions import FormatError
from marrow.expansion import KernelExpansion

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from marrow._decode import Decoding
    from marrow._progress import ProgressCallback
    from marrow.svm import SVC

__all__ = [
    "load",
    "load_libsvm_model",
    "load_svmlight",
    "save",
    "save_libsvm_model",
    "save_svmlight",
]

SCHEMA = 1
"""Version of the JSON part."""


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a model as a safetensors file.

    Parameters
    ----------
    model : object
        A `KernelExpansion`, an `ExpansionClassifier`, a fitted `marrow.SVC` or `marrow.ReducedSet`, or a fitted
        support vector machine of scikit-learn. An ``SVC`` of marrow comes back as one; the others come back as
        what they are to marrow, an `ExpansionClassifier` or a `KernelExpansion`.
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
        A ValueError: the file is no model, is cut off or contradicts itself, or is of an unknown version or class.
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
            raise ValueError("its metadata does not say schema")  # noqa: TRY301
        if extra["schema"] != SCHEMA:
            raise ValueError(f"schema {extra['schema']!r}: this version of marrow reads {SCHEMA}")  # noqa: TRY301
        name = extra.get("class")
        if not isinstance(name, str) or name not in builders:
            raise ValueError(f"class {name!r} is not one of {', '.join(builders)}")  # noqa: TRY301
        return builders[name](_build_expansion(raw), extra)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise FormatError(f"{os.fspath(path)}: {reason}") from error


def _build_expansion(raw: Mapping[str, Any]) -> KernelExpansion:
    kernel, gamma, coef0, degree = raw["kernel"]
    return KernelExpansion(
        _matrix(raw["vectors"]),
        raw["coefficients"],
        raw["intercepts"],
        kernel=kernel,
        gamma=gamma,
        coef0=coef0,
        degree=degree,
    )


def _matrix(rows: Any) -> Any:
    """Array of the core, or its CSR parts as a sparse array."""
    if not isinstance(rows, tuple):
        return rows
    data, indices, indptr, shape = rows
    return sparse.csr_array((data, indices, indptr), shape=tuple(shape))


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
    raise TypeError(f"{name}={value!r} cannot be stored in a model file: it must be a number, a string or None")


def _build_svc(expansion: KernelExpansion, extra: Mapping[str, Any]) -> SVC:
    from marrow.svm import SVC, Certificate, MachineCertificate

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
        raise ValueError(f"certificate has {len(machines)} machines, the expansion {expansion.n_outputs} outputs")
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


def save_libsvm_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a model as LIBSVM's text, for ``svm-predict`` and everything else that reads it.

    A one-vs-rest model becomes the pairwise differences of its outputs, so that the votes have the same winner; its
    file has up to n_classes - 1 lines a vector.

    Parameters
    ----------
    model : object
        Anything that `marrow.reduced_set.as_expansion` takes. Labels must be whole numbers of at most 32 bits. A
        model without labels needs one output and is written as ``epsilon_svr``.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If the format cannot hold the model: another kernel, labels that are not integers, several outputs without
        labels.
    """
    from marrow.reduced_set import as_expansion

    converted = as_expansion(model)
    expansion = converted if isinstance(converted, KernelExpansion) else converted.expansion_
    coefficients, intercepts = expansion.coefficients, expansion.intercepts
    if isinstance(converted, KernelExpansion):
        if expansion.n_outputs != 1:
            raise ValueError(
                f"an expansion with {expansion.n_outputs} outputs and no labels has no place in a LIBSVM model: it "
                "must have one"
            )
        svm_type, labels = "epsilon_svr", np.empty(0, dtype=np.int64)
    else:
        svm_type, labels = "c_svc", _integer_labels(converted.classes_)
        if converted.decoding == "binary":
            labels = labels[::-1]  # a positive output votes for the first label of the file
        elif converted.decoding == "ovr":
            first, second = np.triu_indices(len(labels), 1)
            coefficients = coefficients[:, first] - coefficients[:, second]
            intercepts = intercepts[first] - intercepts[second]
    _core.write_libsvm_model(
        os.fspath(path),
        svm_type,
        core_rows(expansion.vectors),
        np.ascontiguousarray(coefficients),
        np.ascontiguousarray(intercepts),
        expansion.kernel_spec,
        np.ascontiguousarray(labels),
        np.empty(0, dtype=np.int64),
    )


def _integer_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    if classes.dtype.kind in "biuf":
        whole = classes.astype(np.int64)
        if (whole == classes).all() and (np.abs(whole) < 2**31).all():
            return whole
    raise ValueError(
        f"classes {classes[:4].tolist()!r} cannot be written to a LIBSVM model: it has whole numbers of 32 bits only; "
        "marrow.io.save keeps any labels"
    )


def load_libsvm_model(
    path: str | PathLike[str], n_features: int | None = None
) -> ExpansionClassifier | KernelExpansion:
    """Read a LIBSVM model, from ``svm-train`` or `save_libsvm_model`.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, default=None
        Number of columns of the data. The file does not say; None takes the last column in which a vector has a
        value, and rows to predict must then have as many.

    Returns
    -------
    ExpansionClassifier or KernelExpansion
        The former for ``c_svc`` and ``nu_svc``; its `classes_` are in the order of the file, so that tied votes are
        broken as ``svm-predict`` does. The latter for regression and one-class models. Probability parameters
        (``svm-train -b 1``) are not taken.

    Raises
    ------
    OSError
        If the system cannot read the file.
    marrow.exceptions.FormatError
        A ValueError that names the line which does not follow the format.
    """
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    raw = _core.read_libsvm_model(os.fspath(path), n_features)
    labels = np.asarray(raw["labels"])
    expansion = _build_expansion(raw)
    if labels.size == 0:
        return expansion
    if labels.size == 2:
        # A positive output votes for the first label of the file, here it is the second class.
        return ExpansionClassifier(expansion, labels[::-1].copy(), "binary")
    return ExpansionClassifier(expansion, labels, "ovo")


def save_svmlight(X: ArrayLike, y: ArrayLike, path: str | PathLike[str]) -> None:
    """Write rows and targets as svmlight text, columns counted from 1.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, n_features)
        Rows. Zeros are not written.
    y : array-like of shape (n,)
        Targets: numbers.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete, and stays as it is on any error.

    Raises
    ------
    OSError
        If the system cannot write the file.
    ValueError
        If X or y has NaN or infinities, their lengths disagree, or the targets are not numbers.
    """
    rows = as_rows(X)
    try:
        targets = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold numbers to be written as svmlight text") from None
    if targets.ndim != 1:
        raise ValueError(f"y has shape {targets.shape}: expected one number a row")
    _core.write_svmlight(os.fspath(path), core_rows(rows), targets)


def load_svmlight(
    path: str | PathLike[str],
    n_features: int | None = None,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
    progress: ProgressCallback | None = None,
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Read svmlight text, a line at a time.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, default=None
        Number of columns; None takes the largest index. A file with larger indices is refused.
    zero_based : bool or "auto", default="auto"
        Whether columns count from 0. ``"auto"``: if an index 0 occurs in the file.
    dtype : float64 or float32, default=float64
        Type of the values.
    progress : callable, default=None
        ``progress(phase, done, total, gap, steps)`` is called now and then; `done` and `total` are bytes.

    Returns
    -------
    X : scipy.sparse.csr_array of shape (n, n_features)
        Rows.
    y : ndarray of float64 of shape (n,)
        Targets.

    Raises
    ------
    OSError
        If the system cannot read the file.
    marrow.exceptions.FormatError
        A ValueError that names the line which does not follow the format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from marrow.io import load_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "two.svm"
    ...     _ = file.write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     X, y = load_svmlight(file)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    if np.dtype(dtype) not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype={dtype!r} is not allowed: it must be float64 or float32")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is not allowed: it must be True, False or 'auto'")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    data, indices, indptr, shape, targets = _core.read_svmlight(
        os.fspath(path),
        n_features,
        None if zero_based == "auto" else bool(zero_based),
        np.dtype(dtype) == np.float32,
        progress,
    )
    return _matrix((data, indices, indptr, shape)), targets
