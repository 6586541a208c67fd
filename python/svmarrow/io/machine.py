"""Fitted support vector machines as the JSON beside their expansion, and back.

Parameters go through the constructor, so that a file cannot set what the constructor does not know; what
`fit` has left is checked for its type and its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.certificate import Certificate, LeaveOneOut, MachineCertificate
from svmarrow.io._json import indices, labels_from_json, labels_to_json, names, typed
from svmarrow.models.classifier import ExpansionClassifier

if TYPE_CHECKING:
    from svmarrow._support.decoding import Decoding
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.svm._base import SupportVectorMachine

__all__ = ["MACHINES", "build_machine", "describe_machine", "plain"]

#: Estimators that come back as what they were.
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


def describe_machine(model: SupportVectorMachine) -> dict[str, Any]:
    """Parameters and fitted attributes beside the expansion."""
    name = type(model).__name__
    if name not in MACHINES:
        raise TypeError(f"a model of type {name} cannot be stored: it must be one of {', '.join(MACHINES)}")
    parameters = model.get_params(deep=False)
    if callable(parameters["kernel"]):
        raise TypeError(
            f"kernel={parameters['kernel']!r} cannot be stored in a model file: it is a Python function, "
            "and files hold no code; pickle keeps it"
        )
    described: dict[str, Any] = {
        "class": name,
        "support": model.support_.tolist(),
        "class_counts": model.n_support_.tolist(),
        "shape_fit": list(model.shape_fit_),
        "n_features": model.n_features_in_,
        "feature_names": names(model),
        "certificate": asdict(model.certificate_),
    }
    if hasattr(model, "classes_"):
        weights = parameters.pop("class_weight")
        if isinstance(weights, Mapping):
            keys = labels_to_json(np.array(list(weights)))
            weights = {"labels": keys, "weights": [float(weight) for weight in weights.values()]}
        described["class_weight"] = weights
        described["classes"] = labels_to_json(model.classes_)
        described["class_weight_used"] = model.class_weight_.tolist()
    if hasattr(model, "epsilon_"):
        described["epsilon"] = model.epsilon_
    described["parameters"] = {name: plain(name, value) for name, value in parameters.items()}
    return described


def build_machine(expansion: KernelExpansion, extra: Mapping[str, Any]) -> SupportVectorMachine:
    """The fitted estimator of a file."""
    from svmarrow import svm

    kind = getattr(svm, extra["class"])
    parameters = dict(typed(extra, "parameters", dict))
    is_classifier = issubclass(kind, (svm.SVC, svm.NuSVC))
    if is_classifier:
        weights = extra["class_weight"]
        if isinstance(weights, dict):
            labels = labels_from_json(weights["labels"]).tolist()
            weights = dict(zip(labels, weights["weights"], strict=True))
        parameters["class_weight"] = weights
    # Everything goes through the constructor's own names: a name it does not have is a TypeError.
    model: Any = kind(**parameters)
    if is_classifier:
        _set_classes(model, expansion, extra)
    elif expansion.n_outputs != 1:
        raise ValueError(f"the expansion has {expansion.n_outputs} outputs, {extra['class']} has one")
    support, counts = indices(extra, "support"), indices(extra, "class_counts")
    groups = model.classes_.size if is_classifier else 1
    if support.size != expansion.n_vectors or counts.size != groups or counts.sum() != support.size:
        raise ValueError(f"support and class_counts do not describe {expansion.n_vectors} vectors")
    rows, columns = indices(extra, "shape_fit").tolist()
    n_features = typed(extra, "n_features", int)
    if expansion.kernel != "precomputed" and n_features != expansion.vectors.shape[1]:
        raise ValueError(f"n_features is {n_features}, the vectors have {expansion.vectors.shape[1]} columns")
    model.certificate_ = _certificate(extra["certificate"], expansion.n_outputs)
    model.expansion_ = expansion
    model.support_, model.n_support_ = support, counts
    model.shape_fit_ = (rows, columns)
    model.n_features_in_ = n_features
    if extra["feature_names"] is not None:
        model.feature_names_in_ = np.array(extra["feature_names"], dtype=object)
    if kind is svm.NuSVR:
        model.epsilon_ = typed(extra, "epsilon", float)
    built: SupportVectorMachine = model
    return built


def _set_classes(model: Any, expansion: KernelExpansion, extra: Mapping[str, Any]) -> None:
    classes = labels_from_json(extra["classes"])
    decoding: Decoding = "binary" if classes.size == 2 else model.multi_class
    # The checks of labels, decoding, outputs and columns are those of the bare classifier.
    ExpansionClassifier(
        expansion,
        classes,
        decoding,
        decision_function_shape=model.decision_function_shape,
        break_ties=model.break_ties,
        feature_names=extra["feature_names"],
        n_features=typed(extra, "n_features", int),
    )
    model.classes_ = classes
    model.class_weight_ = np.array(extra["class_weight_used"], dtype=np.float64)
    model._decoding = decoding


def _certificate(described: Mapping[str, Any], outputs: int) -> Certificate:
    rest = dict(described)
    machines = []
    for machine in rest.pop("machines"):
        fields = dict(machine)
        estimate = fields.pop("leave_one_out", None)
        bounds = None if estimate is None else LeaveOneOut(**estimate)
        machines.append(MachineCertificate(**fields, leave_one_out=bounds))
    if len(machines) != outputs:
        raise ValueError(f"certificate has {len(machines)} machines, the expansion {outputs} outputs")
    return Certificate(machines=tuple(machines), **rest)


def plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"{name}={value!r} cannot be stored in a model file: it must be a number, a string or None"
    )
