"""The table of the public names: what the reference is made of.

A test compares it with the `__all__` of every public module, so no name is missing and none is left over.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Section(NamedTuple):
    """A heading of the reference, a sentence about it, the page of the guide that leads to it, its names."""

    title: str
    about: str
    guide: str
    names: tuple[str, ...]


#: Modules whose `__all__` is public.
MODULES = (
    "svmarrow",
    "svmarrow.cascade",
    "svmarrow.dask",
    "svmarrow.exceptions",
    "svmarrow.export",
    "svmarrow.inspection",
    "svmarrow.io",
    "svmarrow.least_squares",
    "svmarrow.libsvm",
    "svmarrow.matching_pursuit",
    "svmarrow.model_selection",
    "svmarrow.models",
    "svmarrow.multiclass",
    "svmarrow.multiclass.bounds",
    "svmarrow.online",
    "svmarrow.preprocessing",
    "svmarrow.reduced_set",
    "svmarrow.svm",
)


def _names(module: str, names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names.split())


SECTIONS = (
    Section(
        "Support vector machines",
        "Classes, numbers and outliers, by the exact solver or with few points.",
        "first-model",
        _names("svmarrow", "SVC NuSVC SVR NuSVR OneClassSVM LowRankSVC")
        + _names("svmarrow.svm", "QuantileSVR"),
    ),
    Section(
        "What a fit vouches for",
        "Certificates of support vector machines, bounds for errors on new rows, memory before the fit.",
        "certificates",
        _names("svmarrow.svm", "Certificate MachineCertificate LeaveOneOut"),
    ),
    Section(
        "C and gamma by cross-validation",
        "A grid over folds as one job.",
        "tuning",
        _names("svmarrow", "SVCCV SVRCV")
        + _names("svmarrow.model_selection", "QuantileSVRCV GridScoresDisplay"),
    ),
    Section(
        "Least squares",
        "The square loss: one linear system, and exact leave-one-out errors.",
        "least-squares",
        _names(
            "svmarrow",
            "RLSClassifier RLSRegressor",
        )
        + _names(
            "svmarrow.least_squares",
            "LowRankRLSClassifier LowRankRLSRegressor LinearRLSClassifier LinearRLSRegressor "
            "fit_targets TargetFit",
        ),
    ),
    Section(
        "Few functions from the start",
        "Kernel matching pursuit.",
        "few-functions",
        _names("svmarrow", "KMPClassifier KMPRegressor")
        + _names("svmarrow.matching_pursuit", "MatchingPath"),
    ),
    Section(
        "Tabular data",
        "Tables as they are; scales and shapes of features, learned from the target.",
        "tabular",
        _names("svmarrow", "TabularClassifier TabularRegressor")
        + _names("svmarrow.preprocessing", "LearnedScaler ScaleStep"),
    ),
    Section(
        "Several classes",
        "Codes, decoders, and what can be said about them.",
        "several-classes",
        _names("svmarrow", "CodedClassifier")
        + _names(
            "svmarrow.multiclass",
            "Code make_code binary_errors overlap_matrix reverse_cumulative BinaryErrorDisplay "
            "OverlapDisplay",
        )
        + _names(
            "svmarrow.multiclass.bounds",
            "Bound LeaveOneOutBound admissibility bagging_stability generalization leave_one_out "
            "multiclass_generalization multiclass_generalization_of ramp_loss stability training_error",
        ),
    ),
    Section(
        "Shrinking",
        "From many vectors to few.",
        "shrinking",
        _names("svmarrow", "compress compression_path quantize ReducedSet")
        + _names(
            "svmarrow.reduced_set",
            "CompressionPath GradientPath GradientSettings SelectionSettings DistillationSettings "
            "SizeAccuracyDisplay "
            "Quantization estimate_memory subsample_baseline",
        )
        + _names("svmarrow.models", "Calibration Distillation LossBound MemoryEstimate"),
    ),
    Section(
        "Answers that are safe",
        "A small model in front, the full one behind it.",
        "certified-answers",
        _names("svmarrow.cascade", "ExactCascade CalibratedCascade CascadeReport"),
    ),
    Section(
        "Models",
        "What all fits end in, and what compression and files give back.",
        "shrinking",
        _names("svmarrow", "KernelExpansion as_expansion")
        + _names("svmarrow.models", "ExpansionClassifier ExpansionRegressor ExpansionDetector"),
    ),
    Section(
        "Explanations",
        "What each feature adds to a prediction, and which labels look wrong.",
        "explaining",
        _names(
            "svmarrow.inspection",
            "shapley_values ShapleyValues ShapleyDisplay suspicious_rows SuspiciousRows "
            "DecisionVectorsDisplay",
        ),
    ),
    Section(
        "Files",
        "Models and data, written and read.",
        "files",
        _names("svmarrow", "save load")
        + _names(
            "svmarrow.io",
            "info save_libsvm_model load_libsvm_model load_svmlight_model save_svmlight load_svmlight",
        ),
    ),
    Section(
        "Serving without Python",
        "ONNX and C.",
        "serving",
        _names("svmarrow.export", "to_onnx to_c CHeader register_skl2onnx"),
    ),
    Section(
        "Streams",
        "Online learners, with and without a budget.",
        "streams",
        _names("svmarrow.online", "KernelPerceptron") + _names("svmarrow", "PerceptronTreeClassifier"),
    ),
    Section(
        "Beyond one machine",
        "Partitions of Dask collections. The module needs the extra `dask`.",
        "larger-than-memory",
        _names(
            "svmarrow.dask",
            "DaskSVC DaskLowRankSVC DaskLowRankRLSClassifier DaskLowRankRLSRegressor "
            "predict decision_function Round "
            "FitEstimate",
        ),
    ),
    Section(
        "In the place of scikit-learn's",
        "Programs keep their imports.",
        "drop-in",
        _names("svmarrow", "patch_sklearn unpatch_sklearn"),
    ),
    Section(
        "LIBSVM's functions",
        "`from libsvm.svmutil import *` becomes `from svmarrow.libsvm import *`.",
        "libsvm",
        _names(
            "svmarrow.libsvm",
            "svm_train svm_predict svm_load_model svm_save_model svm_read_problem evaluations svm_model "
            "svm_parameter svm_problem",
        ),
    ),
    Section(
        "Errors and warnings",
        "What is raised beside Python's own `ValueError`, `TypeError`, `OSError` and `MemoryError`.",
        "files",
        _names(
            "svmarrow.exceptions",
            "ConvergenceWarning FallbackWarning FormatError InternalError NotFittedError SizeWarning",
        ),
    ),
)

#: Public names that are modules; the sections above have what is in them.
IN_SECTIONS = ("svmarrow.multiclass.bounds",)


def thing(name: str) -> Any:
    """What a dotted name names."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
