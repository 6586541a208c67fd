"""Any fitted kernel machine as a kernel expansion."""

from __future__ import annotations

import os
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.rows import any_weighted, weights_differ
from svmarrow._support.saving import load
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.expansion.pooling import merge
from svmarrow.interop.covariance import covariance
from svmarrow.interop.libsvm_reader import is_libsvm_model, load_libsvm_model
from svmarrow.interop.pipeline import preparation
from svmarrow.models.base import ExpansionModel
from svmarrow.models.calibration import Calibration
from svmarrow.models.classifier import ExpansionClassifier, n_outputs
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.preparation import chain
from svmarrow.models.regressor import ExpansionRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.decoding import Decoding

__all__ = ["as_expansion", "bare_expansion"]

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
#: Of scikit-learn's pairwise kernels, those that an expansion has, by svmarrow's names.
PAIRWISE = {
    "linear": "linear",
    "poly": "poly",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "laplacian": "laplacian",
    "chi2": "chi2",
    "precomputed": "precomputed",
}
TAKEN = (
    "a svmarrow estimator, a KernelExpansion, a model file, (vectors, coefficients, kernel), or a fitted "
    "SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, GaussianProcessRegressor, OneVsRestClassifier, "
    "OneVsOneClassifier or CalibratedClassifierCV of scikit-learn, or a Pipeline that ends in one of these"
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
        * its ``OneVsRestClassifier`` or ``OneVsOneClassifier`` over any of these with one and the same
          kernel;
        * its ``CalibratedClassifierCV`` of one of these (``ensemble=False``, or a ``FrozenEstimator``) by
          sigmoids or temperature: the model then has probabilities, as ``SVC(probability=True)`` has;
        * a ``FrozenEstimator`` around any of these;
        * its ``Pipeline`` that ends in any of these, after scalers, ``PCA``, ``Normalizer``, imputers,
          encoders and a ``ColumnTransformer`` of them, see `svmarrow.models.preparation`;
        * a path to a model file, svmarrow's or LIBSVM's;
        * ``(vectors, coefficients, kernel)``, where kernel is a name or a dict of `KernelExpansion`'s
          parameters.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        The latter where nothing says what the outputs mean. Predictions are those of the model; the vectors
        are shared where their layout allows it.

    Raises
    ------
    TypeError
        If the model, or a step of a pipeline, is of a kind that is not listed above.
    ValueError
        If its kernel is a Python function or none of svmarrow's, or its machines have different kernels.
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
    if isinstance(model, (KernelExpansion, ExpansionModel)):
        return model
    if isinstance(model, type):
        raise TypeError(f"model={model.__name__} is a class: pass a fitted instance")
    if isinstance(model, (str, os.PathLike)):
        return as_expansion(load_libsvm_model(model) if is_libsvm_model(model) else load(model))
    if isinstance(model, (tuple, list)):
        return _bare(model)
    # The replacements of scikit-learn's classes have scikit-learn's public names alone.
    own = getattr(model, "as_expansion", None) or getattr(model, "_as_expansion", None)
    if own is not None:
        _fitted(model)
        return _with_manners(model, own())
    for kind in type(model).__mro__:
        if kind.__module__.startswith("sklearn.") and kind.__name__ in CONVERTERS:
            return CONVERTERS[kind.__name__](model)
    if isinstance(getattr(model, "expansion_", None), KernelExpansion):
        return _with_manners(model, model.expansion_)
    raise TypeError(f"model of type {type(model).__name__} is not a kernel expansion: expected {TAKEN}")


def bare_expansion(model: ExpansionModel | KernelExpansion) -> Any:
    """The expansion of what predicts numbers, a classifier as it is: what the reducers tell apart."""
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


def _with_manners(model: Any, converted: Any) -> Any:
    """What an estimator has given, with the kind of the estimator around it."""
    if not isinstance(converted, KernelExpansion):
        if isinstance(converted, ExpansionModel):
            return converted
        raise TypeError(
            f"{type(model).__name__}.as_expansion() gave {type(converted).__name__}, not an expansion"
        )
    about = _about(model)
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
                f"{type(model).__name__} does not say what its {converted.n_outputs} outputs mean for "
                f"{classes.size} classes: it needs a method as_expansion"
            )
        return ExpansionClassifier(converted, classes, fitting[0], **about)
    return converted


def _fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted yet: call fit before compressing it"
        ) from None


def _dense(matrix: Any) -> NDArray[np.float64]:
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    return np.asarray(dense, dtype=np.float64)


def _columns(model: Any) -> dict[str, Any]:
    return {
        "feature_names": getattr(model, "feature_names_in_", None),
        "n_features": getattr(model, "n_features_in_", None),
    }


def _about(model: Any) -> dict[str, Any]:
    return {**_columns(model), "weighted": _weighted(model)}


def _weighted(model: Any) -> bool | None:
    """Whether weights that differ were given to a fit.

    scikit-learn's machines keep the weights of classes. Those of rows show where coefficients exceed C, and
    are not known otherwise.
    """
    if hasattr(model, "_weighted"):
        known: bool | None = model._weighted
        return known
    if weights_differ(getattr(model, "class_weight_", None)):
        return True
    dual, C = getattr(model, "dual_coef_", None), getattr(model, "C", None)
    if isinstance(C, Real) and dual is not None and np.abs(_dense(dual)).max(initial=0.0) > 1.000001 * C:
        return True
    return None


def _frozen(model: Any) -> Any:
    return as_expansion(model.estimator)


def _of_pipeline(model: Any) -> ExpansionModel:
    _fitted(model)
    last = as_expansion(model.steps[-1][1])
    if not isinstance(last, ExpansionModel):
        raise TypeError(f"this pipeline ends in {model.steps[-1][1]!r}, which says nothing of its outputs")
    about = _columns(model)
    steps = [step for step in model.steps[:-1] if step[1] not in (None, "passthrough")]
    if about["n_features"] is None and steps:
        about = _columns(steps[0][1])
    before = preparation(steps, about["n_features"] or last.n_features_in_)
    return last.with_preparation(chain([before, last.preparation]), **about)


def _classifier_from_sklearn(model: Any) -> ExpansionClassifier:
    _fitted(model)
    n_classes = len(model.classes_)
    dual = _dense(model.dual_coef_)
    coefficients = dual if n_classes == 2 else spread_pairs(dual, np.asarray(model.n_support_))
    return ExpansionClassifier(
        _expansion_from_sklearn(model, coefficients),
        model.classes_,
        "binary" if n_classes == 2 else "ovo",
        decision_function_shape=model.decision_function_shape,
        break_ties=bool(model.break_ties),
        calibration=_platt(model, n_classes),
        **_about(model),
    )


def _platt(model: Any, n_classes: int) -> Calibration | None:
    """The sigmoids of ``SVC(probability=True)``; its outputs are positive for the first class."""
    A, B = np.asarray(getattr(model, "_probA", ())), np.asarray(getattr(model, "_probB", ()))
    return Calibration("pairs", -A, B if n_classes == 2 else -B) if A.size else None


def _calibrated(model: Any) -> ExpansionClassifier:
    """A ``CalibratedClassifierCV`` of one machine."""
    _fitted(model)
    if len(model.calibrated_classifiers_) != 1:
        raise ValueError(
            f"this CalibratedClassifierCV is a mean of {len(model.calibrated_classifiers_)} machines: fit it "
            "with ensemble=False, which has one"
        )
    one = model.calibrated_classifiers_[0]
    converted = as_expansion(one.estimator)
    if not isinstance(converted, ExpansionClassifier):
        raise TypeError(f"{one.estimator!r} says nothing of its outputs: it cannot have probabilities")
    if one.method == "sigmoid":
        slopes = np.array([-float(each.a_) for each in one.calibrators])
        offsets = np.array([-float(each.b_) for each in one.calibrators])
        return converted.with_calibration(Calibration("classes", slopes, offsets))
    if one.method == "temperature":
        slope = float(one.calibrators[0].beta_)
        if len(converted.classes_) == 2:
            # The softmax of (-f, f).
            slope *= 2.0
        return converted.with_calibration(Calibration("softmax", np.array([slope]), np.zeros(1)))
    raise ValueError(f"method={one.method!r} of this CalibratedClassifierCV is no sigmoid: use 'sigmoid'")


def _machine_from_sklearn(model: Any) -> ExpansionRegressor | ExpansionDetector:
    _fitted(model)
    kind = ExpansionDetector if is_outlier_detector(model) else ExpansionRegressor
    return kind(_expansion_from_sklearn(model, _dense(model.dual_coef_)), **_about(model))


def _kernel_ridge(model: Any) -> ExpansionRegressor:
    _fitted(model)
    if callable(model.kernel) or model.kernel not in PAIRWISE:
        raise ValueError(
            f"kernel={model.kernel!r} of this KernelRidge is not one that an expansion has: expected one of "
            + ", ".join(PAIRWISE)
        )
    kernel = PAIRWISE[model.kernel]
    n_features = int(model.n_features_in_)
    gamma = 1.0 / n_features if model.gamma is None else model.gamma
    rows = model.X_fit_
    if kernel == "precomputed":
        rows = np.arange(rows.shape[0], dtype=np.float64)[:, None]
    elif sparse.issparse(rows):
        rows = sparse.csr_array(rows)
    dual = _dense(model.dual_coef_)
    return ExpansionRegressor(
        KernelExpansion(
            rows,
            dual,
            np.zeros(1 if dual.ndim == 1 else dual.shape[1]),
            kernel=kernel,
            gamma=float(gamma),
            coef0=float(model.coef0),
            degree=int(model.degree),
        ),
        flat=dual.ndim == 1,
        **_about(model),
    )


def _gaussian_process(model: Any) -> ExpansionRegressor:
    if not hasattr(model, "X_train_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit before compressing it")
    rows = np.asarray(model.X_train_)
    if rows.dtype.kind not in "fiub" or rows.ndim != 2:
        raise ValueError("this Gaussian process has no numbers as rows")
    form = covariance(model.kernel_)
    alpha = np.asarray(model.alpha_, dtype=np.float64)
    alpha = alpha.reshape(rows.shape[0], -1) * np.atleast_1d(model._y_train_std)
    intercepts = np.atleast_1d(model._y_train_mean) + form.constant * alpha.sum(axis=0)
    if form.kernel is None:
        rows, alpha = rows[:0], alpha[:0]
    return ExpansionRegressor(
        KernelExpansion(
            rows,
            form.scale * alpha,
            np.broadcast_to(intercepts, (alpha.shape[1],)),
            kernel=form.kernel or "linear",
            gamma=form.gamma,
            coef0=form.coef0,
            degree=form.degree,
        ),
        feature_names=getattr(model, "feature_names_in_", None),
        weighted=False,
    )


class _Part(NamedTuple):
    """One machine of a multiclass wrapper, as one output."""

    expansion: KernelExpansion
    weighted: bool | None


def _part(estimator: Any, columns: int) -> _Part:
    if type(estimator).__name__ == "_ConstantPredictor":
        value = [float(np.ravel(estimator.y_)[0])]
        return _Part(KernelExpansion(np.empty((0, columns)), np.empty((0, 1)), value), weighted=False)
    converted = as_expansion(estimator)
    if getattr(converted, "preparation", None) is not None:
        raise ValueError(
            f"{estimator!r} cannot be one machine of several: put what it does before its kernel machine in "
            "front of all of them"
        )
    expansion = converted if isinstance(converted, KernelExpansion) else converted.expansion_
    if expansion.n_outputs != 1 or (expansion.kernel == "precomputed" and is_classifier(estimator)):
        raise ValueError(
            f"{estimator!r} cannot be one machine of several: it has {expansion.n_outputs} outputs and "
            f"kernel={expansion.kernel!r}"
        )
    return _Part(expansion, getattr(converted, "weighted", None))


def _with_intercept(expansion: KernelExpansion, sign: float, shift: float) -> KernelExpansion:
    return expansion.replaced(
        coefficients=sign * expansion.coefficients, intercepts=sign * expansion.intercepts + shift
    )


def _one_vs_rest(model: Any) -> ExpansionClassifier:
    _fitted(model)
    if model.multilabel_:
        raise ValueError("this OneVsRestClassifier gives several labels to a row: that is not one decision")
    machines = [_part(estimator, int(model.n_features_in_)) for estimator in model.estimators_]
    parts = [machine.expansion for machine in machines]
    about = {**_columns(model), "weighted": any_weighted(machine.weighted for machine in machines)}
    if len(parts) == 1:
        shift = 0.0 if is_classifier(model.estimators_[0]) else -0.5
        return ExpansionClassifier(_with_intercept(parts[0], 1.0, shift), model.classes_, "binary", **about)
    return ExpansionClassifier(merge(parts), model.classes_, "ovr", **about)


def _one_vs_one(model: Any) -> ExpansionClassifier:
    _fitted(model)
    if getattr(model, "pairwise_indices_", None) is not None:
        raise ValueError("this OneVsOneClassifier has a precomputed kernel: its machines share no vectors")
    if not all(is_classifier(estimator) for estimator in model.estimators_):
        raise TypeError("the machines of this OneVsOneClassifier are no classifiers: they cast no votes")
    machines = [_part(estimator, int(model.n_features_in_)) for estimator in model.estimators_]
    parts = [machine.expansion for machine in machines]
    about = {**_columns(model), "weighted": any_weighted(machine.weighted for machine in machines)}
    if len(parts) == 1:
        return ExpansionClassifier(parts[0], model.classes_, "binary", **about)
    # scikit-learn's pair machines are positive for the second class, and ties are broken by the sums.
    merged = merge([_with_intercept(part, -1.0, 0.0) for part in parts])
    return ExpansionClassifier(merged, model.classes_, "ovo", break_ties=True, **about)


def spread_pairs(dual: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
    """One row of coefficients a pair of classes, (k (k - 1) / 2, m), from LIBSVM's ``dual_coef_`` (k - 1, m).

    Parameters
    ----------
    dual : ndarray of shape (k - 1, m)
        Coefficients, the vectors class after class.
    counts : ndarray of int of shape (k,)
        How many vectors each class has.
    """
    n_classes = len(counts)
    ends = np.cumsum(counts)
    of_class = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    pairs = [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]
    spread = np.zeros((len(pairs), dual.shape[1]))
    for row, (a, b) in zip(spread, pairs, strict=True):
        row[of_class[a]] = dual[b - 1, of_class[a]]
        row[of_class[b]] = dual[a, of_class[b]]
    return spread


def _expansion_from_sklearn(model: Any, coefficients: NDArray[np.float64]) -> KernelExpansion:
    name = type(model).__name__
    if callable(model.kernel) or model.kernel not in KERNELS:
        raise ValueError(
            f"kernel={model.kernel!r} of this {name} cannot be evaluated outside Python: expected one of "
            + ", ".join(KERNELS)
        )
    if model.kernel == "precomputed":
        vectors: Any = np.asarray(model.support_, dtype=np.float64)[:, None]
    else:
        vectors = model.support_vectors_
        if sparse.issparse(vectors):
            vectors = sparse.csr_array(vectors)
    return KernelExpansion(
        vectors,
        np.ascontiguousarray(coefficients.T),
        np.asarray(model.intercept_, dtype=np.float64),
        kernel=model.kernel,
        gamma=float(model._gamma),
        coef0=float(model.coef0),
        degree=int(model.degree),
    )


#: scikit-learn's classes by their names: none of their modules is imported for it.
CONVERTERS = {
    "SVC": _classifier_from_sklearn,
    "NuSVC": _classifier_from_sklearn,
    "SVR": _machine_from_sklearn,
    "NuSVR": _machine_from_sklearn,
    "OneClassSVM": _machine_from_sklearn,
    "KernelRidge": _kernel_ridge,
    "GaussianProcessRegressor": _gaussian_process,
    "CalibratedClassifierCV": _calibrated,
    "OneVsRestClassifier": _one_vs_rest,
    "OneVsOneClassifier": _one_vs_one,
    "FrozenEstimator": _frozen,
    "Pipeline": _of_pipeline,
}
