"""What a program does with a fitted model: copies, conversions, exports, refits, other layouts of the samples.

An operation is source text that defines `other`, a model that must answer as `model` does, and optionally `S`, the
samples on which `other` is asked in place of `T`. `accuracy` says how closely. A program is a random sequence of
operations; text that expects an error has `refused`.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import numpy as np

from robustness.programs import estimators

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustness.programs.data import Data
    from robustness.programs.estimators import Call


@dataclass(frozen=True)
class Operation:
    """One kind of step.

    Attributes
    ----------
    name : str
        Its name in reports.
    source : str
        The lines, which use `model`, `X`, `y`, `w`, `T`, `y_T`, `path` and `fit_options`.
    accuracy : {"bits", "rounding", "single", "solver", "measured"}
        "bits": equal to the last bit. "rounding": up to rounding in double precision. "single": up to .1 % of the
        spread of the outputs. "solver": up to the tolerance of both solvers. "none": only the lines themselves.
    share : float
        How often it is drawn.
    applies : callable
        From the estimator and the data set to whether the lines have a meaning.
    """

    name: str
    source: str
    accuracy: Literal["bits", "rounding", "single", "solver", "none"]
    share: float = 1.0
    applies: Callable[[Call, Data], bool] = lambda call, data: True


def _dense(call: Call, data: Data) -> bool:
    return not data.has("sparse.csr") and not data.has("pd.DataFrame") and "Tabular" not in str(call)


def _numeric(call: Call, data: Data) -> bool:
    return "Tabular" not in str(call)


def _deterministic(call: Call, data: Data) -> bool:
    """Whether a fit depends neither on the order of the samples nor on their number."""
    drawn = (
        "CV",
        "LowRank",
        "Bagging",
        "Perceptron",
        "Tabular",
        "ReducedSet",
        "KMP",
        "kmeans",
        "CodedClassifier",
    )
    return not any(name in str(call) for name in drawn) and not _is_gram(call)


def _is_gram(call: Call) -> bool:
    return call.machine.parameters.get("kernel") == "precomputed"


def _is_arrow(call: Call) -> bool:
    return call.machine.name.startswith(("svmarrow.", "FlippedArrow"))


def _peer(call: Call, data: Data) -> bool:
    # scikit-learn's kernel ridge solves for samples in single precision with a kernel matrix in single precision.
    is_rounded = "KernelRidge" in call.name and data.has("float32")
    return estimators.peer(call) is not None and not is_rounded


def _single_machine(call: Call, data: Data) -> bool:
    return call.inner is None and _is_arrow(call)


def _has_onnx(call: Call, data: Data) -> bool:
    return find_spec("onnxruntime") is not None and _dense(call, data)


def _has_compiler(call: Call, data: Data) -> bool:
    return (
        shutil.which("gcc") is not None
        and _dense(call, data)
        and data.d <= 40
        and (data.task != "numbers" or data.k == 1)
        and "quantile=[" not in str(call)
    )


def _takes_functions(call: Call, data: Data) -> bool:
    """Whether the same machine can be fitted with a Python function as its kernel."""
    takes = (
        "svmarrow.SVC",
        "svmarrow.NuSVC",
        "svmarrow.SVR",
        "svmarrow.NuSVR",
        "svmarrow.OneClassSVM",
        "svmarrow.RLS",
    )
    return (
        call.inner is None
        and call.name.startswith(takes)
        and call.parameters.get("kernel", "rbf") not in ("precomputed", "sigmoid")
        and call.parameters.get("solver") != "cg"
        and _dense(call, data)
        and data.n <= 300
    )


def _has_zero_weights(call: Call, data: Data) -> bool:
    return (
        data.has("0.0, 1.0")
        and _deterministic(call, data)
        and _is_arrow(call)
        and isinstance(call.machine.parameters.get("gamma", "scale"), float)
        and "balanced" not in str(call)
    )


def _is_file_of_numbers(call: Call, data: Data) -> bool:
    return find_spec("typer") is not None and _dense(call, data) and not _is_gram(call) and data.k <= 2


def _exact(call: Call, data: Data) -> bool:
    """Whether scikit-learn's part of a fit gives the same bits again: sums of NumPy depend on the alignment."""
    return not any(name in str(call) for name in ("temperature", "PCA"))


FIT = "other = clone(model).fit(X, y, **fit_options(w))"
OPERATIONS = [
    # Copies.
    Operation("pickle", "other = pickle.loads(pickle.dumps(model))", "bits", 1),
    Operation("deepcopy", "other = copy.deepcopy(model)", "bits", 0.4),
    Operation("clone and fit", FIT, "bits", 1, _exact),
    Operation("refit", "before = copy.deepcopy(model)\nmodel.fit(X, y, **fit_options(w))\nother, model = model, before", "bits", 1, _exact),
    Operation(
        "fit something else, then refit",
        "other = clone(model)\n"
        "half = np.r_[np.arange(n // 2), np.unique(y, return_index=True)[1] if hasattr(model, 'classes_') else n // 2]\n"
        "other.fit(X.iloc[half] if hasattr(X, 'iloc') else X[half], y[half])\n"
        "other.fit(X, y, **fit_options(w))",
        "bits", 0.7, lambda call, data: not _is_gram(call) and _exact(call, data) and "FrozenEstimator" not in str(call),
    ),
    Operation(
        "two threads", "other = clone(model).set_params(n_jobs=2).fit(X, y, **fit_options(w))", "bits", 0.4,
        lambda call, data: _single_machine(call, data) and "patch" not in call.name,
    ),
    Operation(
        "failed fit",
        "other, bad = copy.deepcopy(model), np.array(X, dtype=float)\n"
        "bad[-1, 0] = np.nan\n"
        "try:\n    other.fit(bad, y)\nexcept (ValueError, TypeError):\n    pass\n"
        "else:\n    raise AssertionError('a fit on NaN is accepted')",
        "bits", 0.5, lambda call, data: _single_machine(call, data) and _dense(call, data),
    ),
    # Conversions.
    Operation("as_expansion", "other = svmarrow.as_expansion(model)", "rounding", 3),
    Operation("save and load", "svmarrow.save(model, path)\nother = svmarrow.load(path)", "rounding", 3),
    Operation(
        "copies of a conversion",
        "other = pickle.loads(pickle.dumps(svmarrow.as_expansion(copy.deepcopy(svmarrow.as_expansion(model)))))",
        "rounding", 0.5,
    ),
    Operation("compiled", "other = OneRow(svmarrow.as_expansion(model).compiled())", "rounding", 1, _dense),
    Operation("to_onnx", "other = OnnxProgram(svmarrow.export.to_onnx(model, dtype='float64'))", "rounding", 1.5, _has_onnx),
    Operation("to_onnx in single precision", "other = OnnxProgram(svmarrow.export.to_onnx(model))", "single", 0.5, _has_onnx),
    Operation("to_c", "other = CProgram(svmarrow.export.to_c(model), model, path + '-c')", "single", 0.15, _has_compiler),
    Operation(
        "clone of a conversion",
        "before = svmarrow.as_expansion(model)\nother = clone(before)\n"
        "other.set_params(n_jobs=1)\n"
        "assert before.n_jobs is None, 'set_params of a clone changes the original'",
        "rounding", 0.5,
    ),
    Operation(
        "set_params of a conversion",
        "other = pickle.loads(pickle.dumps(svmarrow.as_expansion(model)))\n"
        "same = [other.classes_[0]] * len(other.classes_)\n"
        "try:\n"
        "    other.set_params(classes=same).predict(T)\n"
        "except (ValueError, TypeError):\n"
        "    other = model\n"
        "else:\n"
        "    raise AssertionError('set_params(classes=...) with equal labels is accepted')",
        "none", 0.4, lambda call, data: data.task == "classes",
    ),
    Operation(
        "calibrated conversion",
        "other = svmarrow.as_expansion(model).calibrated(T, y_T)\n"
        "svmarrow.save(other, path)\nfirst = other.predict_proba(T)\nother = svmarrow.load(path)\n"
        "assert (first == other.predict_proba(T)).all(), 'probabilities of a saved model differ'\n"
        "check_order(other, T)",
        "none", 0.7, lambda call, data: data.task == "classes",
    ),
    Operation(
        "columns in another order",
        "other = svmarrow.as_expansion(model)\ntry:\n    other.predict(T[T.columns[::-1]])\n"
        "except ValueError as refused:\n    assert 'must be in the same order' in str(refused)\n"
        "else:\n    raise AssertionError('columns in another order are accepted')",
        "rounding", 2, lambda call, data: data.has("pd.DataFrame") and data.d > 1,
    ),
    # Reductions.
    Operation(
        "compress with a bound",
        "other = svmarrow.compress(model, X, y, n_vectors=8, validation=(T, y_T), method='backfit')\n"
        "check_loss_bound(model, other, T, y_T)",
        "none", 1, lambda call, data: data.task != "samples" and _numeric(call, data),
    ),
    Operation(
        "compress to kernel values",
        "other = svmarrow.compress(model, X, y, max_evaluations=6, validation=(T, y_T), random_state=0)\n"
        "check_loss_bound(model, other, T, y_T)\ncheck_programs_of_a_tree(other, T)\nother.save(path + '-tree')\n"
        "again = svmarrow.load(path + '-tree')\nassert np.array_equal(again.predict(T), other.predict(T))",
        "none", 1, lambda call, data: data.task != "samples" and data.n < 200 and _numeric(call, data),
    ),
    Operation("compress", "other = svmarrow.compress(model, n_vectors=8, method='prefit')\nother.predict(T)", "none", 0.7),
    Operation(
        "compress by gradients", "other = svmarrow.compress(model, X, y, n_vectors=3, random_state=0)\nother.predict(T)",
        "none", 0.1, lambda call, data: data.n < 60 and data.d < 10,
    ),
    Operation(
        "quantize",
        "other = svmarrow.quantize(model, X=T, y=y_T)\ncheck_quantization(model, other, T, y_T)",
        "none", 1, lambda call, data: data.task != "samples",
    ),
    Operation(
        "distil",
        "settings = svmarrow.distillation.DistillationSettings(steps=50, n_drawn=50)\n"
        "other = svmarrow.distil(model, X, y, n_vectors=5, validation=(np.asarray(T, dtype=float), y_T), settings=settings, random_state=0)\n"
        "check_loss_bound(model, other, T, y_T)",
        "none", 0.3, lambda call, data: _dense(call, data) and data.task != "samples" and not _is_gram(call) and data.d <= 10,
    ),
    Operation(
        "sizes",
        "path_of_sizes = svmarrow.compression_path(model, n_vectors=5)\n"
        "other = path_of_sizes[path_of_sizes.sizes[-1]]\nother.predict(T)",
        "none", 0.4,
    ),
    Operation("memory", "svmarrow.reduced_set.estimate_memory(model, 5)\nother = model", "none", 0.3),
    Operation(
        "command line", "svmarrow.save(svmarrow.as_expansion(model), path + '.safetensors')\nother = CommandLine(path + '.safetensors')",
        "rounding", 0.05, _is_file_of_numbers,
    ),
    # Samples in other layouts.
    Operation(
        "polars frame", "import polars\nother, S = model, polars.from_pandas(T)", "rounding", 2,
        # scikit-learn's own classes lose the names of such frames.
        lambda call, data: find_spec("polars") is not None and data.has("pd.DataFrame") and all(name.startswith("svmarrow.") for name in call.chain),
    ),
    Operation("Fortran order", "other, S = model, np.asfortranarray(T)", "rounding", 0.4, _dense),
    Operation("strided samples", "other, S = model, np.repeat(T, 2, axis=0)[::2]", "rounding", 0.4, _dense),
    Operation("nested lists", "other, S = model, T.tolist()", "rounding", 0.2, _dense),
    Operation(
        "sparse samples",
        # What a replacement has left to scikit-learn is scikit-learn's.
        "other, S = model, sparse.csr_array(T) if getattr(model, '_is_ours', lambda: True)() else T",
        "rounding", 0.6,
        lambda call, data: _dense(call, data) and call.name.startswith("svmarrow.") and data.task != "samples" and not data.has("bool") and call.inner is None and not _is_gram(call)
        and call.name != "GaussianProcessRegressor",
    ),
    Operation("samples in single precision",
        "T = T.astype(np.float32).astype(np.float64)\n"
        # What a replacement has left to scikit-learn is predicted by scikit-learn.
        "ours = getattr(model, '_is_ours', lambda: type(model).__module__.startswith('svmarrow'))\n"
        "other = model if ours() else svmarrow.as_expansion(model)\n"
        "S = T.astype(np.float32)",
        "single", 2, _dense,
    ),
    Operation("some of the samples", "T, S = T[::3], T[::3].copy()\nother = OneRow(model, size=7)", "rounding", 0.3, _dense),
    # Equivalent fits.
    Operation(
        "scikit-learn", "other = PEER.fit(X, y, **fit_options(w))", "solver", 2,
        lambda call, data: _peer(call, data),
    ),
    Operation(
        "other order", "order = np.random.default_rng(1).permutation(n)\n"
        "other = clone(model).fit(X.iloc[order] if hasattr(X, 'iloc') else X[order], y[order], "
        "**fit_options(None if w is None else w[order]))",
        "solver", 1, lambda call, data: _deterministic(call, data),
    ),
    Operation(
        "repeated samples", "index = np.repeat(np.arange(n), w)\n"
        "other = clone(model).fit(X.iloc[index] if hasattr(X, 'iloc') else X[index], y[index])\n"
        "if len(np.unique(y[index])) < len(np.unique(y)):\n"
        "    other = model  # a class of weight 0",
        "solver", 3, lambda call, data: _deterministic(call, data) and data.has("w = rng.integers")
        and call.inner is None and isinstance(call.machine.parameters.get("gamma", "scale"), float)
        and "balanced" not in str(call) and "nu" not in call.parameters and _is_arrow(call)
        # A choice by leave-one-out leaves out a sample, not one of its copies.
        and "alphas" not in call.parameters,
    ),
    Operation(
        "other labels", "other = Relabelled(clone(model).fit(X, np.searchsorted(np.unique(y), y) + Relabelled.SHIFT, **fit_options(w)), np.unique(y))",
        "bits", 0.7, lambda call, data: data.task == "classes" and all(name.startswith("svmarrow.") for name in call.chain),
    ),
    Operation("single precision fit", "other = clone(model).fit(X.astype(np.float32), y, **fit_options(w))", "none", 0.3, _dense),
    Operation(
        "bags without a class",
        "labels = np.where(np.arange(n) == 0, 'rare', np.asarray(y).astype(str))\n"
        "try:\n"
        "    other = BaggingClassifier(clone(model), n_estimators=5, random_state=0).fit(X, labels)\n"
        "except ValueError as error:\n"
        # A bag of one class has no machine, neither here nor there.
        # The solution of another bag is not in the range of numbers.
        "    if 'at least 2 classes' in str(error) or 'stays within double precision' in str(error):\n"
        "        raise\n"
        "    raise AssertionError('a bag without a class is refused, scikit-learn drops the class') from None\n"
        "other.predict(T)",
        "none", 0.7, lambda call, data: call.name == "svmarrow.SVC" and not _is_gram(call)
        and not isinstance(call.parameters.get("class_weight"), dict),
    ),
    Operation(
        "a function as kernel",
        "other = clone(model).set_params(kernel=KernelFunction(model.expansion_)).fit(X, y, **fit_options(w))",
        "solver", 1, _takes_functions,
    ),
    Operation(
        "samples that are objects",
        "other = clone(model).set_params(kernel=KernelFunction(model.expansion_))\n"
        "other.fit(series_of(X), y, **fit_options(w))\n"
        "other = pickle.loads(pickle.dumps(svmarrow.as_expansion(other)))\n"
        "S = series_of(T)",
        "solver", 1, lambda call, data: _takes_functions(call, data) and _dense(call, data),
    ),
    Operation(
        "few vectors of objects",
        "other = clone(model).set_params(kernel=KernelFunction(model.expansion_))\n"
        "other.fit(series_of(X), y, **fit_options(w))\n"
        "other = svmarrow.compress(other, n_vectors=3)\n"
        "other.predict(series_of(T))",
        "none", 0.5, lambda call, data: _takes_functions(call, data) and _dense(call, data),
    ),
    Operation(
        "without samples of weight zero",
        "kept = np.flatnonzero(w)\n"
        "other = clone(model).fit(X.iloc[kept] if hasattr(X, 'iloc') else X[kept], y[kept], **fit_options(np.asarray(w)[kept]))\n"
        "if hasattr(model, 'classes_') and len(other.classes_) < len(model.classes_):\n"
        "    other = model  # a class of weight 0",
        "solver", 8, _has_zero_weights,
    ),
    # Learning in pieces.
    Operation(
        "partial_fit", "other = clone(model)\n"
        "other.partial_fit(X, y, **({'classes': np.unique(y)} if hasattr(model, 'classes_') else {}))",
        "none", 1, lambda call, data: call.inner is None and ("Perceptron" in call.name or "LowRankRLS" in call.name),
    ),
    # Wrong input must be refused.
    # A class that is never or always meant has no machine in scikit-learn's one-vs-rest.
    Operation(
        "NaN", "S = np.array(T, dtype=float)\nS[0, 0] = np.nan\n"
        "try:\n    model.predict(S)\nexcept ValueError:\n    other = model\n"
        "else:\n    raise AssertionError('NaN is accepted')",
        "none", 0.2,
        lambda call, data: _dense(call, data) and _is_arrow(call) and not any("OneVsRest" in name for name in call.chain),
    ),
]  # fmt: skip
BY_NAME = {operation.name: operation for operation in OPERATIONS}


def draw(rng: np.random.Generator, call: Call, data: Data) -> tuple[str, ...]:
    """Names of one to five operations, each at most once."""
    options = [operation for operation in OPERATIONS if operation.applies(call, data)]
    shares = np.array([operation.share for operation in options])
    count = min(int(rng.integers(2, 6)), len(options))
    drawn = rng.choice(len(options), size=count, replace=False, p=shares / shares.sum())
    return tuple(options[place].name for place in drawn)
