"""Any fitted kernel machine as a kernel expansion."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import __version__ as sklearn_version
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from svmarrow._support.kinds import REMEDY, check_overrides, check_own, find_kind
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.ensembles import ENSEMBLES
from svmarrow.interop.model_files import load_model_file
from svmarrow.interop.sklearn_models import MODELS, check_fitted, metadata_of
from svmarrow.models.base import ExpansionModel
from svmarrow.models.classifier import ExpansionClassifier, n_outputs
from svmarrow.models.regressor import ExpansionDetector, ExpansionRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

    from svmarrow._support.parameters import Decoding

__all__ = ["as_expansion", "bare_expansion", "is_predictor"]

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
