"""The table of the public names, from which the reference is generated.

A test compares it with the `__all__` of every public module.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Section(NamedTuple):
    """A section of the reference: its heading, a sentence, the page of the guide about it, its names."""

    title: str
    about: str
    guide: str
    names: tuple[str, ...]


#: Modules whose `__all__` is public.
MODULES = (
    "svmarrow",
    "svmarrow.cascade",
    "svmarrow.dask",
    "svmarrow.distillation",
    "svmarrow.exceptions",
    "svmarrow.export",
    "svmarrow.inspection",
    "svmarrow.io",
    "svmarrow.kernels",
    "svmarrow.least_squares",
    "svmarrow.libsvm",
    "svmarrow.matching_pursuit",
    "svmarrow.model_selection",
    "svmarrow.models",
    "svmarrow.multiclass",
    "svmarrow.online",
    "svmarrow.papers.reduced_set",
    "svmarrow.papers.rifkin",
    "svmarrow.preprocessing",
    "svmarrow.reduced_set",
    "svmarrow.svm",
)


def _names(module: str, names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names.split())


SECTIONS = (
    Section(
        "Support vector machines",
        "Classification, regression and outlier detection, exact or low rank.",
        "first-model",
        _names("svmarrow", "SVC NuSVC SVR NuSVR OneClassSVM LowRankSVC")
        + _names("svmarrow.svm", "QuantileSVR"),
    ),
    Section(
        "Certificates",
        "Duality gaps of support vector machines, bounds for the error on new samples.",
        "certificates",
        _names("svmarrow.svm", "Certificate MachineCertificate LeaveOneOut"),
    ),
    Section(
        "Hyperparameter tuning",
        "Grid searches for C and gamma by cross-validation.",
        "tuning",
        _names("svmarrow", "SVCCV SVRCV")
        + _names("svmarrow.model_selection", "QuantileSVRCV GridScoresDisplay"),
    ),
    Section(
        "Kernel ridge regression",
        "The squared loss: one linear system, and exact leave-one-out errors.",
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
        "Sparse models",
        "Kernel matching pursuit.",
        "matching-pursuit",
        _names("svmarrow", "KMPClassifier KMPRegressor")
        + _names("svmarrow.matching_pursuit", "MatchingPath"),
    ),
    Section(
        "Tabular data",
        "DataFrames with categories and missing values; learned scales of features.",
        "tabular",
        _names("svmarrow", "TabularClassifier TabularRegressor")
        + _names("svmarrow.preprocessing", "LearnedScaler ScaleStep"),
    ),
    Section(
        "Output codes",
        "Multiclass classification by output codes.",
        "output-codes",
        _names("svmarrow", "CodedClassifier") + _names("svmarrow.multiclass", "Code make_code"),
    ),
    Section(
        "Model compression and quantization",
        "Fewer vectors, fewer bytes.",
        "compression",
        _names("svmarrow", "compress compression_path quantize ReducedSet")
        + _names(
            "svmarrow.reduced_set",
            "CompressionPath GradientPath GradientSettings SelectionSettings SizeAccuracyDisplay "
            "estimate_memory subsample_baseline",
        )
        + _names("svmarrow.models", "Calibration LossBound MemoryEstimate"),
    ),
    Section(
        "Knowledge distillation",
        "Any predictor as a small kernel machine.",
        "distillation",
        _names("svmarrow", "distil")
        + _names("svmarrow.distillation", "DistillationSettings")
        + _names("svmarrow.models", "Distillation"),
    ),
    Section(
        "Cascades",
        "A small model that consults the full one where it is uncertain.",
        "cascades",
        _names("svmarrow.cascade", "ExactCascade CalibratedCascade CascadeReport"),
    ),
    Section(
        "Models",
        "Kernel expansions, and the models returned by compression and by files.",
        "compression",
        _names("svmarrow", "KernelExpansion as_expansion")
        + _names(
            "svmarrow.models",
            "ExpansionClassifier ExpansionRegressor ExpansionDetector ExpansionSum ExpansionTree "
            "Quantization",
        ),
    ),
    Section(
        "Explanation",
        "Shapley values, wrong labels, support vectors, gamma and C that are far off.",
        "explaining",
        _names(
            "svmarrow.inspection",
            "shapley_values ShapleyValues ShapleyDisplay suspicious_samples SuspiciousSamples "
            "DecisionVectorsDisplay diagnose Diagnosis",
        ),
    ),
    Section(
        "Kernels of series and strings",
        "Samples that are no rows of numbers: series of vectors and strings, of any lengths.",
        "tuning",
        _names("svmarrow.kernels", "GlobalAlignment Subsequence PreparedObjects"),
    ),
    Section(
        "Files",
        "Models and data.",
        "saving",
        _names("svmarrow", "save load show_versions")
        + _names(
            "svmarrow.io",
            "info model_card save_libsvm_model load_libsvm_model load_svmlight_model save_svmlight "
            "load_svmlight",
        ),
    ),
    Section(
        "Deployment",
        "ONNX and C.",
        "serving",
        _names("svmarrow.export", "to_onnx to_c CHeader register_skl2onnx"),
    ),
    Section(
        "Online learning",
        "Kernel perceptrons and trees, with and without a budget.",
        "online-learning",
        _names("svmarrow.online", "KernelPerceptron") + _names("svmarrow", "PerceptronTreeClassifier"),
    ),
    Section(
        "Distributed training",
        "Estimators for Dask collections. The module needs the extra `dask`.",
        "out-of-core",
        _names(
            "svmarrow.dask",
            "DaskSVC DaskLowRankSVC DaskLowRankRLSClassifier DaskLowRankRLSRegressor "
            "predict decision_function predict_proba Round "
            "FitEstimate",
        ),
    ),
    Section(
        "Drop-in replacement",
        "Existing programs keep their imports.",
        "drop-in",
        _names("svmarrow", "patch_sklearn unpatch_sklearn"),
    ),
    Section(
        "LIBSVM compatibility",
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
        "Exceptions and warnings in addition to `ValueError`, `TypeError`, `OSError` and `MemoryError`.",
        "saving",
        _names(
            "svmarrow.exceptions",
            "ConvergenceWarning FallbackWarning FormatError InternalError NotFittedError SizeWarning",
        ),
    ),
    Section(
        "Experiments of the papers: selections of vectors",
        "Weston and Bakir (2004), Xu and others (2015): the selections that they compare.",
        "compression",
        _names("svmarrow.papers.reduced_set", "path PaperSettings"),
    ),
    Section(
        "Experiments of the papers: Rifkin (2002)",
        "Error bounds of coded classifiers, and the correlation of the errors of codes.",
        "output-codes",
        _names(
            "svmarrow.papers.rifkin",
            "Bound LeaveOneOutBound admissibility bagging_stability generalization leave_one_out "
            "multiclass_generalization multiclass_generalization_of ramp_loss stability training_error "
            "binary_errors overlap_matrix reverse_cumulative BinaryErrorDisplay OverlapDisplay",
        ),
    ),
)


def thing(name: str) -> Any:
    """Returns the object of a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
