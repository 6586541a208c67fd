"""scikit-learn's compositions of kernel machines as one expansion.

Every converter takes a fitted composition and `convert`, which converts the machines in it. The outputs of
the machines are pooled into one expansion where the composition computes a function of them that svmarrow can
decode:

===================================== ============================================= ==========================
composition                           expansion                                     decoding
===================================== ============================================= ==========================
BaggingRegressor, VotingRegressor     the average of the outputs                    regression
OneVsRestClassifier                   an output for each class                      the largest output
OneVsOneClassifier                    an output for each pair of classes            votes, ties by the sums
VotingClassifier                      an output for each machine, for two classes   votes
BaggingClassifier                     the same                                      votes; scores are averages
CalibratedClassifierCV                the outputs of its machine                    the largest probability
GridSearchCV and other searches       that of the best estimator                    its own
===================================== ============================================= ==========================

A OneVsRestClassifier uses the decision values of its machines, and those of a BaggingClassifier are averages.
So one-vs-rest over an ensemble is an average of decision values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from svmarrow._support.estimator import REMEDY, check_fitted, columns_of, find_kind
from svmarrow._support.training import any_weighted
from svmarrow.expansion.composites import average, merge
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.pipeline import preparation
from svmarrow.models.base import ExpansionModel
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionRegressor
from svmarrow.models.outputs import Calibration
from svmarrow.models.preparation import chain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

    Convert = Callable[[Any], Any]

__all__ = ["ENSEMBLES"]

#: What to use in place of an ensemble of classifiers that is not one expansion.
_REMEDY = (
    "fit OneVsRestClassifier(BaggingRegressor(...)) or OneVsRestClassifier(VotingRegressor(...)), which "
    "average decision values"
)


class _Machine(NamedTuple):
    """One machine of a composition."""

    expansion: KernelExpansion
    weighted: bool | None
    flat: bool


def _frozen(model: Any, convert: Convert) -> Any:
    return convert(model.estimator)


def _search(model: Any, convert: Convert) -> Any:
    check_fitted(model)
    if not hasattr(model, "best_estimator_"):
        raise ValueError(f"refit=False of this {type(model).__name__} leaves no model: set refit=True")
    return convert(model.best_estimator_)


def _pipeline(model: Any, convert: Convert) -> ExpansionModel:
    check_fitted(model)
    last = convert(model.steps[-1][1])
    if not isinstance(last, ExpansionModel):
        raise TypeError(f"this pipeline ends in {model.steps[-1][1]!r}, whose outputs have no known meaning")
    columns = columns_of(model)
    steps = [step for step in model.steps[:-1] if step[1] not in (None, "passthrough")]
    if columns["n_features"] is None and steps:
        columns = columns_of(steps[0][1])
    before = preparation(steps, columns["n_features"] or last.n_features_in_)
    return last.with_preparation(chain([before, last.preparation]), **columns)


def _calibrated(model: Any, convert: Convert) -> ExpansionClassifier:
    """A ``CalibratedClassifierCV`` of one machine."""
    check_fitted(model)
    if len(model.calibrated_classifiers_) != 1:
        raise ValueError(
            f"this CalibratedClassifierCV is a mean of {len(model.calibrated_classifiers_)} machines: fit it "
            "with ensemble=False, which has one"
        )
    one = model.calibrated_classifiers_[0]
    if not hasattr(one.estimator, "decision_function"):
        raise ValueError(
            f"{one.estimator!r} has no decision_function, and this CalibratedClassifierCV calibrates its "
            "probabilities again: calibrate the classifier itself, once"
        )
    converted = convert(one.estimator)
    if not isinstance(converted, ExpansionClassifier):
        raise TypeError(f"{one.estimator!r} has outputs of no known meaning: it cannot have probabilities")
    # For temperatures scikit-learn fits the machine on the numbers of the classes.
    if one.method == "sigmoid":
        slopes = np.array([-float(each.a_) for each in one.calibrators])
        offsets = np.array([-float(each.b_) for each in one.calibrators])
        calibration = Calibration("classes", slopes, offsets)
    elif one.method == "temperature":
        slope = float(one.calibrators[0].beta_)
        if len(converted.classes_) == 2:
            # The softmax of (-f, f).
            slope *= 2.0
        calibration = Calibration("softmax", np.array([slope]), np.zeros(1))
    else:
        raise ValueError(
            f"method={one.method!r} of this CalibratedClassifierCV is no sigmoid: use 'sigmoid' or "
            "'temperature'"
        )
    # Its labels are the most probable classes, not those of its machine.
    return converted._replace(classes=model.classes_, calibration=calibration, predict_by="probabilities")


def _machine(estimator: Any, features: Any, n_features: int, convert: Convert) -> _Machine:
    """A machine as an expansion of the features of the composition, in their order."""
    if type(estimator).__name__ == "_ConstantPredictor":
        value = [float(np.ravel(estimator.y_)[0])]
        return _Machine(KernelExpansion(np.empty((0, n_features)), np.empty((0, 1)), value), False, True)
    if find_kind(estimator, ("BaggingClassifier",), REMEDY) is not None:
        # Its decision values are averages, whatever its labels are.
        return _average(estimator, convert)
    converted = convert(estimator)
    if getattr(converted, "preparation", None) is not None:
        raise ValueError(
            f"{estimator!r} cannot be one machine of several: put what it does before its kernel machine in "
            "front of all of them"
        )
    expansion = converted if isinstance(converted, KernelExpansion) else converted.expansion_
    if (
        isinstance(converted, ExpansionClassifier)
        and converted.decoding == "ovo"
        and expansion.n_outputs == 1
    ):
        raise ValueError(
            f"{estimator!r} cannot be one machine of several: its score counts a vote, and is no output of "
            "an expansion; leave out OneVsOneClassifier, which has one machine for two classes"
        )
    if (
        isinstance(converted, ExpansionClassifier)
        and converted.decoding == "code"
        and expansion.n_outputs == 1
    ):
        expansion = _scaled(expansion, float(np.asarray(converted._matrix)[1, 0]), 0.0)
    if features is not None:
        expansion = _reorder_features(estimator, expansion, np.asarray(features), n_features)
    return _Machine(expansion, getattr(converted, "weighted", None), getattr(converted, "flat", True))


def _reorder_features(
    estimator: Any, expansion: KernelExpansion, features: Any, n_features: int
) -> KernelExpansion:
    """The expansion with its columns in the order of the composition."""
    if np.array_equal(features, np.arange(n_features)):
        return expansion
    if not np.array_equal(np.sort(features), np.arange(n_features)) or expansion.kernel == "precomputed":
        raise ValueError(
            f"{estimator!r} sees {np.unique(features).size} of {n_features} features: all machines of one "
            "expansion must see all features, set max_features=1.0 and bootstrap_features=False"
        )
    return expansion.replaced(vectors=expansion.vectors[:, np.argsort(features)])


def _single_outputs(model: Any, convert: Convert) -> list[_Machine]:
    """The machines of a multiclass wrapper, each of one output."""
    found = []
    for estimator in model.estimators_:
        constant = type(estimator).__name__ == "_ConstantPredictor"
        if is_classifier(estimator) and not constant and not hasattr(estimator, "decision_function"):
            raise ValueError(
                f"{estimator!r} cannot be one machine of several: it has no decision_function, calibrate the "
                "classifier of all classes instead of its machines"
            )
        machine = _machine(estimator, None, int(model.n_features_in_), convert)
        outputs, kernel = machine.expansion.n_outputs, machine.expansion.kernel
        if outputs != 1 or (kernel == "precomputed" and is_classifier(estimator)):
            raise ValueError(
                f"{estimator!r} cannot be one machine of several: it has {outputs} outputs and "
                f"kernel={kernel!r}"
            )
        found.append(machine)
    return found


def _about(model: Any, machines: Iterable[_Machine]) -> dict[str, Any]:
    return {**columns_of(model), "weighted": any_weighted(machine.weighted for machine in machines)}


def _scaled(expansion: KernelExpansion, sign: float, shift: float) -> KernelExpansion:
    return expansion.replaced(
        coefficients=sign * expansion.coefficients, intercepts=sign * expansion.intercepts + shift
    )


def _one_vs_rest(model: Any, convert: Convert) -> ExpansionClassifier:
    check_fitted(model)
    if model.multilabel_:
        raise ValueError("this OneVsRestClassifier gives several labels to a row: that is not one decision")
    if len(model.classes_) < 2:
        raise ValueError("this OneVsRestClassifier was fitted to one class: it has no machine")
    machines = _single_outputs(model, convert)
    parts = [machine.expansion for machine in machines]
    if len(parts) == 1:
        shift = 0.0 if is_classifier(model.estimators_[0]) else -0.5
        binary = _scaled(parts[0], 1.0, shift)
        return ExpansionClassifier(binary, model.classes_, "binary", **_about(model, machines))
    return ExpansionClassifier(merge(parts), model.classes_, "ovr", **_about(model, machines))


def _one_vs_one(model: Any, convert: Convert) -> ExpansionClassifier:
    check_fitted(model)
    if getattr(model, "pairwise_indices_", None) is not None:
        raise ValueError("this OneVsOneClassifier has a precomputed kernel: its machines share no vectors")
    for estimator in model.estimators_:
        if not is_classifier(estimator):
            raise TypeError("the machines of this OneVsOneClassifier are no classifiers: they cast no votes")
        if find_kind(estimator, ("BaggingClassifier",), REMEDY) is not None:
            raise ValueError(
                f"{estimator!r} has averages as decision values and labels by votes: a OneVsOneClassifier "
                f"uses both: {_REMEDY}"
            )
    machines = _single_outputs(model, convert)
    parts = [machine.expansion for machine in machines]
    # scikit-learn's pair machines are positive for the second class, and ties are broken by the sums.
    merged = merge([_scaled(part, -1.0, 0.0) for part in parts])
    return ExpansionClassifier(merged, model.classes_, "ovo", break_ties=True, **_about(model, machines))


def _members(model: Any, convert: Convert) -> list[_Machine]:
    check_fitted(model)
    seen = getattr(model, "estimators_features_", [None] * len(model.estimators_))
    width = int(model.n_features_in_)
    return [
        _machine(estimator, features, width, convert)
        for estimator, features in zip(model.estimators_, seen, strict=True)
    ]


def _average(model: Any, convert: Convert, weights: ArrayLike | None = None) -> _Machine:
    """The average of the machines as one machine."""
    machines = _members(model, convert)
    mean = average([machine.expansion for machine in machines], weights)
    return _Machine(mean, any_weighted(machine.weighted for machine in machines), machines[0].flat)


def _averaging_regressor(model: Any, convert: Convert) -> ExpansionRegressor:
    mean = _average(model, convert, getattr(model, "_weights_not_none", None))
    if not mean.flat and find_kind(model, ("VotingRegressor",), REMEDY) is not None:
        raise ValueError(
            "this VotingRegressor has machines of several outputs, of which it averages the samples, not the "
            "machines: fit one to each output"
        )
    return ExpansionRegressor(mean.expansion, flat=mean.flat, weighted=mean.weighted, **columns_of(model))


def _voting_classifier(model: Any, convert: Convert) -> ExpansionClassifier:
    """Machines for two classes that vote: the code that has the first class on the positive side of all."""
    check_fitted(model)
    name = find_kind(model, ("BaggingClassifier", "VotingClassifier"), REMEDY)
    soft = getattr(model, "voting", "hard") == "soft"
    if soft or (name == "BaggingClassifier" and hasattr(model.estimators_[0], "predict_proba")):
        raise ValueError(
            f"this {name} averages probabilities, which no decoding of one expansion gives: {_REMEDY}"
        )
    if len(model.classes_) != 2:
        raise ValueError(
            f"this {name} counts the votes of machines for {len(model.classes_)} classes, which no decoding "
            f"of one expansion gives: {_REMEDY}"
        )
    weights = getattr(model, "_weights_not_none", None)
    if weights is not None and np.unique(weights).size > 1:
        raise ValueError(
            f"weights={model.weights!r} of this {name} are different: votes of one expansion count alike, "
            "set weights=None"
        )
    for estimator in model.estimators_:
        converted = convert(estimator)
        by_sign = isinstance(converted, ExpansionClassifier) and converted.predict_by == "scores"
        if not by_sign or converted.decoding != "binary":
            raise ValueError(f"{estimator!r} has no single output whose sign is its vote: {_REMEDY}")
    machines = _members(model, convert)
    # An output of 0 is a vote for the second class, which is that of -1.
    merged = merge([_scaled(machine.expansion, -1.0, 0.0) for machine in machines])
    code = np.repeat(np.array([[1], [-1]], dtype=np.int8), len(machines), axis=1)
    # Of two classes the mean perceptron losses differ by the average output, which a bagging has as scores.
    by_average: dict[str, Any] = {"decoder": "mean_perceptron", "predict_by": "votes"}
    decoding = by_average if name == "BaggingClassifier" else {"decoder": "votes"}
    about = _about(model, machines)
    return ExpansionClassifier(merged, model.classes_, "code", code=code, **decoding, **about)


#: scikit-learn's classes by their names: none of their modules is imported for it.
ENSEMBLES: dict[str, Callable[..., Any]] = {
    "BaggingClassifier": _voting_classifier,
    "BaggingRegressor": _averaging_regressor,
    "BaseSearchCV": _search,
    "CalibratedClassifierCV": _calibrated,
    "FrozenEstimator": _frozen,
    "OneVsOneClassifier": _one_vs_one,
    "OneVsRestClassifier": _one_vs_rest,
    "Pipeline": _pipeline,
    "VotingClassifier": _voting_classifier,
    "VotingRegressor": _averaging_regressor,
}
