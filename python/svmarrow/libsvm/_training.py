"""Training and cross-validation by LIBSVM's rules on svmarrow's estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.decoding import pairs
from svmarrow.libsvm._model import svm_model
from svmarrow.libsvm._options import KERNELS
from svmarrow.libsvm._problem import GlibcRandom, Samples, group_classes, plain_folds, stratified_folds
from svmarrow.models.calibration import sigmoid
from svmarrow.svm.classification import SVC, NuSVC
from svmarrow.svm.one_class import OneClassSVM
from svmarrow.svm.regression import SVR, NuSVR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.libsvm._options import svm_parameter
    from svmarrow.libsvm._problem import svm_problem

__all__ = ["check_problem", "cross_validate", "folds_of", "train_model"]

#: Folds of the cross-validation by which ``-b 1`` fits probabilities.
_PROBABILITY_FOLDS = 5


def check_problem(problem: svm_problem, parameter: svm_parameter) -> None:
    """Refuses a problem that the parameters do not fit."""
    if problem.l == 0:
        raise ValueError("the training data has no rows: at least one is needed")
    if problem.isKernel != (parameter.kernel_type == 4):
        raise ValueError(
            "-t 4 needs rows of kernel values (isKernel=True), the other kernels rows of features"
        )
    if problem.isKernel:
        problem.samples.columns()
    elif problem.n == 0:
        raise ValueError("the training data has no features: at least one value must not be 0")
    if parameter.svm_type == 1:
        classes = group_classes(problem.y)[1]
        counts = np.bincount(classes)
        for a, b in pairs(counts.size):
            if parameter.nu * (counts[a] + counts[b]) / 2.0 > min(counts[a], counts[b]):
                raise ValueError(
                    f"-n {parameter.nu}: the specified nu is infeasible, since two classes have {counts[a]} "
                    f"and {counts[b]} samples: lower it"
                )


def _settings(parameter: svm_parameter, n_features: int) -> dict[str, Any]:
    """Parameters that all estimators share."""
    return {
        "kernel": KERNELS[parameter.kernel_type],
        "degree": parameter.degree,
        "gamma": parameter.gamma or 1.0 / max(1, n_features),
        "coef0": parameter.coef0,
        "tol": parameter.eps,
        "cache_size": parameter.cache_size,
        "shrinking": bool(parameter.shrinking),
    }


def _fit(
    problem: svm_problem,
    parameter: svm_parameter,
    train: NDArray[np.int64],
    target: NDArray[Any] | None,
    weights: dict[int, float],
) -> Any:
    """Fits an estimator of the type to some samples; weights of classes are by their numbers."""
    shared = _settings(parameter, problem.n)
    machine: Any
    if parameter.svm_type == 0:
        machine = SVC(C=parameter.C, class_weight=weights or None, **shared)
    elif parameter.svm_type == 1:
        assert target is not None
        counts = np.bincount(target)
        # A subset may have fewer samples of the smaller class than nu needs.
        largest = min(
            2.0 * min(counts[a], counts[b]) / (counts[a] + counts[b]) for a, b in pairs(counts.size)
        )
        machine = NuSVC(nu=min(parameter.nu, largest), **shared)
    elif parameter.svm_type == 2:
        machine = OneClassSVM(nu=parameter.nu, **shared)
    elif parameter.svm_type == 3:
        machine = SVR(C=parameter.C, epsilon=parameter.p, **shared)
    else:
        machine = NuSVR(C=parameter.C, nu=parameter.nu, **shared)
    return machine.fit(problem._rows(train), target)


def _expansion(
    machine: Any, problem: svm_problem, train: NDArray[np.int64], n_classes: int
) -> KernelExpansion:
    """The expansion in LIBSVM's direction, over the serial numbers of a precomputed kernel."""
    expansion: KernelExpansion = machine.expansion_
    if n_classes == 2:  # the estimator is positive for the second class, LIBSVM for the first
        expansion = expansion.replaced(
            coefficients=-expansion.coefficients, intercepts=0.0 - expansion.intercepts
        )
    if problem.isKernel:
        columns = problem.samples.columns()[train[machine.support_]]
        expansion = expansion.replaced(vectors=columns[:, np.newaxis].astype(np.float64))
    return expansion


def train_model(
    problem: svm_problem,
    parameter: svm_parameter,
    random: GlibcRandom,
    train: NDArray[np.int64] | None = None,
    report: Any = None,
) -> svm_model:
    """Trains on all samples or on some, in their order; ``report`` is called with lines of text."""
    train = np.arange(problem.l) if train is None else train
    y = problem.y[train]
    if parameter.svm_type >= 2:
        prob_a = [_laplace_scale(problem, parameter, random, train)] if parameter.probability else []
        machine = _fit(problem, parameter, train, None if parameter.svm_type == 2 else y, {})
        if report is not None:
            _report(machine, parameter, [train.size], report)
        support = train[machine.support_] + 1
        return svm_model(
            parameter.svm_type, _expansion(machine, problem, train, 0), [], [], prob_a, [], support.tolist()
        )
    labels, classes = group_classes(y)
    k = len(labels)
    if k < 2:
        raise ValueError(
            f"the training data has only one class, {labels[0]}: at least two are needed, or -s 2 for "
            "one-class SVM"
        )
    by_label = dict(zip(parameter.weight_label, parameter.weight, strict=True))
    weights = {c: by_label[label] for c, label in enumerate(labels) if label in by_label}
    found = [
        _sigmoid_of_pair(problem, parameter, random, train, classes, pair, weights)
        for pair in (pairs(k) if parameter.probability else ())
    ]
    machine = _fit(problem, parameter, train, classes, weights)
    if report is not None:
        counts = np.bincount(classes)
        _report(machine, parameter, [int(counts[a] + counts[b]) for a, b in pairs(k)], report, weights)
    return svm_model(
        parameter.svm_type,
        _expansion(machine, problem, train, k),
        labels,
        machine.n_support_.tolist(),
        [a for a, _ in found],
        [b for _, b in found],
        (train[machine.support_] + 1).tolist(),
    )


def _sigmoid_of_pair(
    problem: svm_problem,
    parameter: svm_parameter,
    random: GlibcRandom,
    train: NDArray[np.int64],
    classes: NDArray[np.intp],
    pair: tuple[int, int],
    weights: dict[int, float],
) -> tuple[float, float]:
    """Fits probA and probB of a pair of classes to outputs of five-fold cross-validation."""
    a, b = pair
    first, second = np.flatnonzero(classes == a), np.flatnonzero(classes == b)
    members = train[np.concatenate([first, second])]
    is_second = np.concatenate([np.zeros(first.size, dtype=np.intp), np.ones(second.size, dtype=np.intp)])
    of_pair = {side: weights[c] for side, c in ((0, a), (1, b)) if c in weights}
    outputs = np.empty(members.size)
    folds = plain_folds(members.size, _PROBABILITY_FOLDS, random)
    for i, held in enumerate(folds):
        rest = np.concatenate([*folds[:i], *folds[i + 1 :]])
        sides = is_second[rest]
        if not sides.size or sides.min() == sides.max():
            outputs[held] = 0.0 if not sides.size else (1.0, -1.0)[int(sides[0])]
            continue
        if not held.size:
            continue
        subset = members[rest]
        machine = _fit(problem, parameter, subset, sides, of_pair)
        model = svm_model(parameter.svm_type, _expansion(machine, problem, subset, 2), [0, 1], [], [], [])
        outputs[held] = model._decision_values(_subset(problem, members[held]))[:, 0]
    return sigmoid(outputs, is_second == 0, np.ones(members.size), as_libsvm=True)


def _laplace_scale(
    problem: svm_problem, parameter: svm_parameter, random: GlibcRandom, train: NDArray[np.int64]
) -> float:
    """Estimates the scale of the errors of a regression by five-fold cross-validation."""
    plain = _without_probability(parameter)
    errors = problem.y[train] - _out_of_fold(problem, plain, _PROBABILITY_FOLDS, random, train)
    return _core.laplace_scale(errors)


def _without_probability(parameter: svm_parameter) -> svm_parameter:
    plain = type(parameter)()
    vars(plain).update(vars(parameter) | {"probability": 0})
    return plain


def _subset(problem: svm_problem, rows: NDArray[np.int64]) -> Samples:
    serials = problem.samples.serials
    return Samples(problem.samples.X[rows], None if serials is None else serials[rows])


def folds_of(
    problem: svm_problem,
    parameter: svm_parameter,
    n_folds: int,
    random: GlibcRandom,
    train: NDArray[np.int64],
) -> list[NDArray[np.int64]]:
    """Samples of each fold of a cross-validation, as ``svm-train -v`` draws them."""
    n_folds = min(n_folds, train.size)
    if parameter.svm_type < 2 and n_folds < train.size:
        labels, classes = group_classes(problem.y[train])
        return [train[fold] for fold in stratified_folds(classes, len(labels), n_folds, random)]
    return [train[fold] for fold in plain_folds(train.size, n_folds, random)]


def _out_of_fold(
    problem: svm_problem,
    parameter: svm_parameter,
    n_folds: int,
    random: GlibcRandom,
    train: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Predictions (len(train),) by models that are trained without the fold of the sample."""
    predictions = np.empty(problem.l)
    folds = folds_of(problem, parameter, n_folds, random, train)
    for i, held in enumerate(folds):
        if not held.size:
            continue
        subset = np.concatenate([*folds[:i], *folds[i + 1 :]])
        if not subset.size:
            raise ValueError("cross-validation needs at least two rows")
        if parameter.svm_type < 2 and len(set(problem.y[subset].astype(np.int64).tolist())) == 1:
            predictions[held] = np.trunc(problem.y[subset[0]])
            continue
        model = train_model(problem, parameter, random, subset)
        outputs = model._decision_values(_subset(problem, held))
        if parameter.probability and parameter.svm_type < 2:
            predictions[held] = model._most_probable(model._probabilities_of(outputs))
        else:
            predictions[held] = model._labels_of(outputs)
    return predictions[train]


def cross_validate(
    problem: svm_problem, parameter: svm_parameter, random: GlibcRandom
) -> NDArray[np.float64]:
    """Predictions (n_samples,) of the cross-validation of ``-v``."""
    return _out_of_fold(problem, parameter, parameter.nr_fold, random, np.arange(problem.l))


def _report(
    machine: Any,
    parameter: svm_parameter,
    sizes: list[int],
    report: Any,
    weights: dict[int, float] | None = None,
) -> None:
    """The lines of ``svm-train`` about each machine."""
    expansion = machine.expansion_
    sign = -1.0 if len(getattr(machine, "classes_", ())) == 2 else 1.0
    for j, (found, size) in enumerate(zip(machine.certificate_.machines, sizes, strict=True)):
        total = float(np.abs(expansion.coefficients[:, j]).sum())
        objective = -found.dual
        report("*")
        report(f"optimization finished, #iter = {found.iterations}")
        if parameter.svm_type in (0, 3) and not weights:
            report(f"nu = {total / (parameter.C * size):f}")
        elif parameter.svm_type == 1:
            C = total / (machine.nu * size)
            report(f"C = {C:f}")
            objective *= C * C
        elif parameter.svm_type == 4:
            report(f"epsilon = {machine.epsilon_:f}")
        report(f"obj = {objective:f}, rho = {-sign * expansion.intercepts[j]:f}")
        report(f"nSV = {found.support}, nBSV = {found.bounded}")
    if parameter.svm_type != 2:
        report(f"Total nSV = {expansion.n_vectors}")
