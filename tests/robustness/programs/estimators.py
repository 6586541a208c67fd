"""Random estimators as source text: svmarrow's, scikit-learn's, their replacements, subclasses and wrappers.

An estimator is a tree of calls. Its text is evaluated, printed in reports, and simplified by removing parameters and
wrappers. `FAMILIES` lists the classes with values of their parameters; `WRAPPERS` the compositions.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import decomposition, kernel_ridge, preprocessing, svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm._base import BaseLibSVM

import svmarrow
import svmarrow.least_squares
import svmarrow.model_selection
import svmarrow.online
import svmarrow.patch.ridge
import svmarrow.patch.svm
import svmarrow.svm
from robustness.programs.data import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# --- users' subclasses ---


class TrivialSVC(svm.SVC):
    """Overrides nothing."""


class TrivialScaler(preprocessing.StandardScaler):
    """Overrides nothing."""


class FlippedSVC(svm.SVC):
    """Predicts the labels in the opposite order."""

    def predict(self, X):
        labels = super().predict(X)
        return self.classes_[::-1][np.searchsorted(self.classes_, labels)]


class ShiftedSVR(svm.SVR):
    """Adds 1 to predictions."""

    def predict(self, X):
        return super().predict(X) + 1.0


class ShiftedScaler(preprocessing.StandardScaler):
    """Adds 1 to scaled samples."""

    def transform(self, X, copy=None):
        return super().transform(X, copy=copy) + 1.0


class FlippedArrowSVC(svmarrow.SVC):
    """A subclass of svmarrow's class that predicts the labels in the opposite order."""

    def predict(self, X):
        labels = super().predict(X)
        return self.classes_[::-1][np.searchsorted(self.classes_, labels)]


SUBCLASSES = {
    kind.__name__: kind
    for kind in (TrivialSVC, TrivialScaler, FlippedSVC, ShiftedSVR, ShiftedScaler, FlippedArrowSVC)
}
#: Names that the text of an estimator uses.
NAMES: dict[str, Any] = {
    "np": np,
    "svmarrow": svmarrow,
    "svm": svm,
    "preprocessing": preprocessing,
    "decomposition": decomposition,
    "kernel_ridge": kernel_ridge,
    "kernels": kernels,
    **{
        kind.__name__: kind
        for kind in (
            CalibratedClassifierCV, BaggingClassifier, BaggingRegressor, VotingClassifier, VotingRegressor,
            FrozenEstimator, GaussianProcessRegressor, GridSearchCV, OneVsOneClassifier, OneVsRestClassifier,
            make_pipeline,
        )
    },
    **SUBCLASSES,
}  # fmt: skip
#: Import lines of scikit-learn's compositions.
IMPORTS = {
    name: f"from {value.__module__.partition('._')[0]} import {name}"
    for name, value in NAMES.items()
    if callable(value) and name not in SUBCLASSES
}


# --- trees of calls ---


@dataclass(frozen=True)
class Call:
    """A call of a class: name, positional arguments and parameters, which may be calls themselves."""

    name: str
    arguments: tuple[Any, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    #: Source text after the call.
    suffix: str = ""

    def __str__(self) -> str:
        parts = [_text(value) for value in self.arguments]
        parts += [f"{name}={_text(value)}" for name, value in self.parameters.items()]
        return f"{self.name}({', '.join(parts)}){self.suffix}"

    __repr__ = __str__

    @property
    def inner(self) -> Call | None:
        """The estimator in a composition."""
        for value in (*reversed(self.arguments), *self.parameters.values()):
            while isinstance(value, (list, tuple)) and value:
                value = value[-1]
            if isinstance(value, Call) and value.is_estimator:
                return value
        return None

    @property
    def is_estimator(self) -> bool:
        return not self.name.startswith(("preprocessing.", "decomposition.", "kernels.", "np."))

    @property
    def machine(self) -> Call:
        """The innermost estimator."""
        return self if self.inner is None else self.inner.machine

    @property
    def chain(self) -> list[str]:
        """Class names from the outermost composition to the machine."""
        return [self.name, *([] if self.inner is None else self.inner.chain)]

    def map_machine(self, change: Callable[[Call], Call]) -> Call:
        """The tree with another innermost estimator."""
        inner = self.inner
        if inner is None:
            return change(self)
        return self.substituted(inner, inner.map_machine(change))

    def substituted(self, old: Call, new: Call) -> Call:
        return replace(
            self,
            arguments=tuple(_substituted(value, old, new) for value in self.arguments),
            parameters={name: _substituted(value, old, new) for name, value in self.parameters.items()},
        )

    def build(self, names: dict[str, Any]) -> Any:
        """Evaluates the text."""
        return eval(str(self), {**NAMES, **names})

    def simpler(self) -> Iterator[Call]:
        """Trees with one thing less."""
        if self.inner is not None:
            yield self.inner
        for name, value in self.parameters.items():
            if name not in ("kernel", "random_state", "ensemble") or value != "precomputed":
                yield replace(self, parameters={k: v for k, v in self.parameters.items() if k != name})
        if self.name == "make_pipeline" and len(self.arguments) > 2:
            yield replace(self, arguments=self.arguments[1:])
        if self.inner is not None:
            for other in self.inner.simpler():
                yield self.substituted(self.inner, other)


class Text(str):
    """Source text of a value that depends on the data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(_text(item) + ", " for item in value) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, np.generic):
        return repr(value.item())
    return str(value) if isinstance(value, Call) else repr(value)


def _substituted(value: Any, old: Call, new: Call) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_substituted(item, old, new) for item in value)
    if isinstance(value, Call):
        return new if value is old else value.substituted(old, new) if value.inner is not None else value
    return value


def subclasses_of(text: str) -> str:
    """Source text of the subclasses that a script needs."""
    return "".join(
        "\n\n" + inspect.getsource(kind) for name, kind in SUBCLASSES.items() if name + "(" in text
    )


# --- classes and their parameters ---


def log(low: float, high: float) -> Callable[[np.random.Generator], float]:
    """Numbers of two digits, uniform in their logarithm."""
    return lambda rng: float(f"{10 ** rng.uniform(np.log10(low), np.log10(high)):.2g}")


KERNEL = {
    "kernel": {"rbf": 5, "linear": 2, "poly": 2, "sigmoid": 0.5},
    "gamma": log(1e-4, 1e2),
    "coef0": [0.0, 1.0, 0.5],
    "degree": [2, 3, 4],
}
ARROW_KERNEL = KERNEL | {
    "kernel": {"rbf": 5, "linear": 2, "poly": 2, "sigmoid": 0.5, "laplacian": 1, "matern12": 0.5,
               "matern32": 0.5, "matern52": 0.5, "chi2": 0.5},
}  # fmt: skip
SOLVER = {"tol": [1e-3, 1e-5, 1e-7, 0.1], "shrinking": [False], "max_iter": {3: 1, 100: 1, -1: 3}}
SVC = {
    "C": log(1e-3, 1e5),
    "class_weight": ["balanced"],
    "decision_function_shape": ["ovo", "ovr"],
    "break_ties": [True],
}
ARROW_SVC = {"multi_class": ["ovr", "ovo"], "loss": ["squared_hinge", "hinge"], "fit_intercept": [False]}
SVR = {"C": log(1e-3, 1e5), "epsilon": log(1e-4, 1.0)}
RLS = {
    "alpha": log(1e-9, 1e3),
    "fit_intercept": [True],
    "solver": ["cg", "cholesky"],
    "leave_one_out": [True],
}
RIDGE = {
    "kernel": {"rbf": 4, "poly": 3, "linear": 1, "laplacian": 1},
    "alpha": log(1e-6, 1e2),
    "degree": [2, 3, 2.5],
}
NU = {"nu": [0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-6, 0.9]}
LOW_RANK = {"selection": ["random", "kmeans", "pivoted_cholesky"]}


@dataclass(frozen=True)
class Family:
    """A class, its frequency, its task, and values of its parameters."""

    name: str
    share: float
    task: str
    parameters: dict[str, Any]
    #: Parameters with one value.
    fixed: dict[str, Any] = field(default_factory=dict)
    #: Parameters that are always drawn.
    always: tuple[str, ...] = ()


FAMILIES = [
    Family("svmarrow.SVC", 4, "classes", ARROW_KERNEL | SOLVER | SVC | ARROW_SVC),
    Family("svmarrow.NuSVC", 1, "classes", ARROW_KERNEL | SOLVER | {"nu": [0.5, 0.2, 0.05], "class_weight": ["balanced"]}),
    Family("svmarrow.SVR", 2, "numbers", ARROW_KERNEL | SOLVER | SVR),
    Family("svmarrow.NuSVR", 1, "numbers", ARROW_KERNEL | SOLVER | NU | {"C": log(1e-2, 1e4)}),
    Family("svmarrow.svm.QuantileSVR", 1, "numbers", ARROW_KERNEL | {"C": log(1e-2, 1e4), "quantile": [0.1, 0.9, [0.2, 0.8]]}),
    Family("svmarrow.OneClassSVM", 2, "samples", ARROW_KERNEL | SOLVER | NU),
    Family("svmarrow.LowRankSVC", 1, "classes", KERNEL | SVC | LOW_RANK, {"n_vectors": 15, "random_state": 0}),
    Family("svmarrow.RLSClassifier", 3, "classes", ARROW_KERNEL | RLS | {"class_weight": ["balanced"]}),
    Family("svmarrow.RLSRegressor", 3, "numbers", ARROW_KERNEL | RLS | {"alphas": [[0.1, 1.0, 10.0]]}),
    Family("svmarrow.least_squares.LinearRLSClassifier", 0.7, "classes", {"alpha": log(1e-6, 1e3), "fit_intercept": [True], "solver": ["primal", "dual", "cg"]}),
    Family("svmarrow.least_squares.LinearRLSRegressor", 0.7, "numbers", {"alpha": log(1e-6, 1e3), "fit_intercept": [True], "solver": ["primal", "dual", "cg"]}),
    Family("svmarrow.least_squares.LowRankRLSClassifier", 0.7, "classes", KERNEL | LOW_RANK | {"alpha": log(1e-6, 1e2), "fit_intercept": [True], "leave_one_out": [True], "solver": ["cholesky", "cg"]}, {"n_vectors": 15, "random_state": 0}),
    Family("svmarrow.least_squares.LowRankRLSRegressor", 0.7, "numbers", KERNEL | LOW_RANK | {"alpha": log(1e-6, 1e2), "fit_intercept": [True], "leave_one_out": [True], "solver": ["cholesky", "cg"]}, {"n_vectors": 15, "random_state": 0}),
    Family("svmarrow.KMPClassifier", 1.5, "classes", {"gamma": {"scale": 2, 0.3: 2, (0.1, 1.0): 2}, "kernel": {"rbf": 5, ("rbf", "linear"): 1, ("laplacian", "rbf"): 1}, "variant": ["auto", "basic", "prefit"], "fit_intercept": [False], "class_weight": ["balanced"]}, {"n_vectors": 12, "random_state": 0}),
    Family("svmarrow.KMPRegressor", 1.5, "numbers", {"gamma": {"scale": 2, 0.3: 2, (0.1, 1.0): 2}, "kernel": {"rbf": 5, ("rbf", "linear"): 1, ("laplacian", "rbf"): 1}, "variant": ["auto", "basic", "prefit"], "fit_intercept": [False]}, {"n_vectors": 12, "random_state": 0}),
    Family("svmarrow.online.KernelPerceptron", 1, "classes", KERNEL | {"policy": ["forgetron", "projectron", "random", "stop", "oldest"], "budget": [8], "prediction": ["last", "averaged"], "n_epochs": [2]}, {"random_state": 0}),
    Family("svmarrow.PerceptronTreeClassifier", 0.5, "classes", {"budget": [8, 20], "gamma": log(1e-2, 10), "n_epochs": [2]}, {"random_state": 0}),
    Family("svmarrow.TabularClassifier", 2, "classes", {"class_weight": ["balanced"]}),
    Family("svmarrow.TabularRegressor", 0.5, "numbers", {}),
    Family("svmarrow.SVCCV", 0.7, "classes", {"kernel": ["rbf", "linear"], "class_weight": ["balanced"], "search": ["racing"], "multi_class": ["ovr"]}, {"Cs": [0.1, 10.0], "gammas": [0.1, 1.0], "cv": 2}),
    Family("svmarrow.SVRCV", 0.5, "numbers", {"search": ["racing"]}, {"Cs": [0.1, 10.0], "gammas": [0.1, 1.0], "cv": 2}),
    Family("svm.SVC", 4, "classes", KERNEL | SOLVER | SVC | {"probability": {True: 1, False: 3}}),
    Family("svm.NuSVC", 1, "classes", KERNEL | {"nu": [0.5, 0.2, 0.05], "class_weight": ["balanced"]}),
    Family("svm.SVR", 1.5, "numbers", KERNEL | SOLVER | SVR),
    Family("svm.NuSVR", 0.7, "numbers", KERNEL | NU),
    Family("svm.OneClassSVM", 1, "samples", KERNEL | NU),
    Family("kernel_ridge.KernelRidge", 3, "numbers", KERNEL | RIDGE, {}, ("kernel", "gamma")),
    Family("GaussianProcessRegressor", 1, "numbers", {"alpha": log(1e-8, 1.0), "normalize_y": [True]}),
    Family("TrivialSVC", 0.4, "classes", {"C": log(1e-2, 1e3)}),
    Family("FlippedSVC", 0.4, "classes", {"C": log(1e-2, 1e3)}),
    Family("FlippedArrowSVC", 0.3, "classes", {"C": log(1e-2, 1e3)}),
    Family("ShiftedSVR", 0.4, "numbers", SVR),
    Family("svmarrow.patch.svm.SVC", 1.5, "classes", KERNEL | SVC),
    Family("svmarrow.patch.svm.NuSVC", 0.4, "classes", KERNEL | {"nu": [0.5, 0.2, 0.05]}),
    Family("svmarrow.patch.svm.SVR", 0.7, "numbers", KERNEL | SVR),
    Family("svmarrow.patch.svm.NuSVR", 0.3, "numbers", KERNEL | NU),
    Family("svmarrow.patch.svm.OneClassSVM", 0.5, "samples", KERNEL | NU),
    Family("svmarrow.patch.ridge.KernelRidge", 0.7, "numbers", KERNEL | RIDGE, {}, ("kernel", "gamma")),
]  # fmt: skip
#: Limit for LIBSVM, which does not end in reasonable time on features of very different units.
MAX_ITERATIONS = 100_000
#: Largest C for many samples: noise with a larger C takes minutes with any solver.
MAX_C = 100.0
#: Share of the optional parameters that are set.
MAX_SHARE = 0.5


def _parameters_of(name: str) -> dict[str, Any]:
    return next(family.parameters for family in FAMILIES if family.name == name)


def _drawn(rng: np.random.Generator, values: Any) -> Any:
    return values(rng) if callable(values) else choose(rng, values)


def draw_machine(rng: np.random.Generator, task: str | None = None) -> tuple[Call, str]:
    """An estimator without a composition, and its task."""
    families = [family for family in FAMILIES if task in (None, family.task)]
    family = families[choose(rng, {place: family.share for place, family in enumerate(families)})]
    share = rng.uniform(0.1, MAX_SHARE)
    parameters = dict(family.fixed)
    for name, values in family.parameters.items():
        if rng.random() < share or name in family.always:
            parameters[name] = _drawn(rng, values)
    if parameters.get("kernel") == "poly" and "degree" in family.parameters:
        parameters["degree"] = _drawn(rng, family.parameters["degree"])
    if parameters.get("kernel", "rbf") not in ("poly", "sigmoid"):
        parameters.pop("coef0", None)
    if parameters.get("kernel", "rbf") != "poly":
        parameters.pop("degree", None)
    if parameters.get("multi_class") == "ovr":
        parameters.pop("decision_function_shape", None)
    if parameters.get("decision_function_shape") == "ovo":
        parameters.pop("break_ties", None)
    if parameters.get("solver") == "cg":
        for name in ("leave_one_out", "alphas"):
            parameters.pop(name, None)
    elif family.name in ("svmarrow.RLSClassifier", "svmarrow.RLSRegressor") and rng.random() < 0.1:
        has_width = parameters.get("kernel", "rbf") not in ("linear", "poly", "sigmoid")
        parameters |= {"gamma": "loo"} if has_width else {}
    if parameters.get("probability"):
        parameters["random_state"] = 0
    if family.name == "GaussianProcessRegressor":
        parameters["kernel"] = choose(rng, [
            Call("kernels.RBF", (0.7,)),
            Call("kernels.ConstantKernel", (2.0,), suffix=" * kernels.RBF(1.5) + kernels.WhiteKernel(0.1)"),
            Call("kernels.DotProduct", (0.5,)),
            Call("kernels.RBF", (Text("np.linspace(0.5, 1.5, X.shape[1])"),)),
        ])  # fmt: skip
        parameters["optimizer"] = None
    if family.name.startswith("svm.") or ("SVC" in family.name and "svmarrow" not in family.name):
        limit_iterations(parameters)
    return Call(family.name, (), parameters), family.task


def limit_iterations(parameters: dict[str, Any]) -> None:
    """Limits scikit-learn's solver, which may turn in circles where kernel values have no digits."""
    if parameters.get("max_iter", -1) == -1:
        parameters["max_iter"] = MAX_ITERATIONS


@contextlib.contextmanager
def limited_fallbacks() -> Iterator[None]:
    """Limits scikit-learn's solver in patched classes too, which use it for what svmarrow refuses."""
    originals = {name: getattr(BaseLibSVM, name) for name in ("_dense_fit", "_sparse_fit")}
    for name, fit in originals.items():
        setattr(BaseLibSVM, name, _limited(fit))
    try:
        yield
    finally:
        for name, fit in originals.items():
            setattr(BaseLibSVM, name, fit)


def _limited(fit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fit)
    def wrapper(self: BaseLibSVM, *args: Any, **options: Any) -> Any:
        max_iter = self.max_iter
        self.max_iter = MAX_ITERATIONS if max_iter == -1 else max_iter
        try:
            return fit(self, *args, **options)
        finally:
            self.max_iter = max_iter

    return wrapper


# --- compositions ---

SCALERS = {
    "preprocessing.StandardScaler": 4,
    "preprocessing.MinMaxScaler": 1,
    "preprocessing.MaxAbsScaler": 1,
    "preprocessing.RobustScaler": 1,
    "preprocessing.Normalizer": 1,
    "preprocessing.PowerTransformer": 0.3,
    "decomposition.PCA": 1,
    "TrivialScaler": 0.5,
    "ShiftedScaler": 0.7,
}


def _scaled(rng: np.random.Generator, call: Call) -> Call:
    name = choose(rng, SCALERS)
    parameters = {"decomposition.PCA": {"n_components": 1, "whiten": True}}.get(name, {})
    if name == "preprocessing.MinMaxScaler" and call.machine.parameters.get("kernel") == "chi2":
        # Fresh samples would be negative.
        parameters = {"clip": True}
    return Call("make_pipeline", (Call(name, (), parameters), call))


def _calibrated(rng: np.random.Generator, call: Call) -> Call:
    method = choose(rng, {"sigmoid": 2, "temperature": 1, "isotonic": 0.2})
    if rng.random() < 0.3:
        frozen = Call("FrozenEstimator", (replace(call, suffix=".fit(X, y)"),))
        return Call("CalibratedClassifierCV", (frozen,), {"method": method})
    ensemble = bool(rng.random() < 0.15)
    return Call("CalibratedClassifierCV", (call,), {"method": method, "ensemble": ensemble, "cv": 3})


def _bagging(task: str) -> Callable[[np.random.Generator, Call], Call]:
    name = "BaggingClassifier" if task == "classes" else "BaggingRegressor"
    return lambda rng, call: Call(
        name, (call,), {"n_estimators": int(choose(rng, [1, 3, 8])), "random_state": 0}
    )


def _voting(task: str) -> Callable[[np.random.Generator, Call], Call]:
    name = "VotingClassifier" if task == "classes" else "VotingRegressor"

    def make(rng: np.random.Generator, call: Call) -> Call:
        call = _of_one_target(call)
        other = replace(call, parameters=call.parameters | ({"C": 0.3} if "C" in call.parameters else {}))
        return Call(name, ([("a", other), ("b", call)],))

    return make


def _of_one_target(call: Any) -> Any:
    """The call with one quantile: scikit-learn's averages are of one target."""
    if isinstance(call, (list, tuple)):
        return type(call)(map(_of_one_target, call))
    if not isinstance(call, Call):
        return call
    parameters = call.parameters
    if isinstance(parameters.get("quantile"), list):
        parameters = parameters | {"quantile": 0.9}
    return replace(call, arguments=tuple(map(_of_one_target, call.arguments)), parameters=parameters)


def _search(rng: np.random.Generator, call: Call) -> Call:
    name = next((name for name in ("C", "alpha", "nu") if name in call.parameters), None)
    return call if name is None else Call("GridSearchCV", (call, {name: [0.1, 0.3]}), {"cv": 2})


WRAPPERS: dict[str, dict[Any, float]] = {
    "classes": {
        _scaled: 4,
        _calibrated: 3,
        (lambda rng, call: Call("OneVsRestClassifier", (call,))): 1,
        (lambda rng, call: Call("OneVsOneClassifier", (call,))): 1,
        _bagging("classes"): 2,
        _voting("classes"): 0.7,
        _search: 0.7,
        (
            lambda rng, call: Call(
                "svmarrow.CodedClassifier",
                (call,),
                {"code": choose(rng, ["ovr", "ovo", "dense"]), "random_state": 0},
            )
        ): 0.6,
        (lambda rng, call: Call("svmarrow.ReducedSet", (call, 8))): 0.4,
    },
    "numbers": {_scaled: 4, _bagging("numbers"): 1, _voting("numbers"): 1, _search: 0.7},
    "samples": {_scaled: 1},
}


def draw(rng: np.random.Generator) -> tuple[Call, str]:
    """An estimator, in none to three compositions, and its task."""
    call, task = draw_machine(rng)
    wrappers = list(WRAPPERS[task])
    shares = dict(enumerate(WRAPPERS[task].values()))
    drawn = [wrappers[choose(rng, shares)] for _ in range(choose(rng, {0: 5, 1: 3, 2: 1, 3: 0.2}))]
    if rng.random() < 0.8:
        # Machines of an ensemble must share one kernel to be converted: scaling goes in front of all of them.
        drawn.sort(key=lambda wrapper: wrapper is _scaled)
        if any(wrapper is not _scaled for wrapper in drawn) and "gamma" in _parameters_of(call.name):
            call = replace(call, parameters={"gamma": 0.5} | call.parameters)
    for wrapper in drawn:
        call = wrapper(rng, call)
    if task != "samples" and not call.inner and rng.random() < 0.08 and "kernel" in call.parameters:
        parameters = {name: value for name, value in call.parameters.items() if name != "solver"}
        call = replace(call, parameters=parameters | {"kernel": "precomputed"})
    return call, task


# --- the same estimator of scikit-learn ---

_PEERS = {
    "svmarrow.SVC": ("svm.SVC", {*KERNEL, *SVC, "tol"}),
    "svmarrow.NuSVC": ("svm.NuSVC", {*KERNEL, "nu", "class_weight", "tol"}),
    "svmarrow.SVR": ("svm.SVR", {*KERNEL, *SVR, "tol"}),
    "svmarrow.NuSVR": ("svm.NuSVR", {*KERNEL, "nu", "C", "tol"}),
    "svmarrow.OneClassSVM": ("svm.OneClassSVM", {*KERNEL, "nu", "tol"}),
    "svmarrow.RLSRegressor": ("kernel_ridge.KernelRidge", {*KERNEL, "alpha"}),
    "svmarrow.patch.svm.SVC": ("svm.SVC", {*KERNEL, *SVC, "tol"}),
    "svmarrow.patch.svm.NuSVC": ("svm.NuSVC", {*KERNEL, "nu", "tol"}),
    "svmarrow.patch.svm.SVR": ("svm.SVR", {*KERNEL, *SVR, "tol"}),
    "svmarrow.patch.svm.NuSVR": ("svm.NuSVR", {*KERNEL, "nu", "tol"}),
    "svmarrow.patch.svm.OneClassSVM": ("svm.OneClassSVM", {*KERNEL, "nu", "tol"}),
    "svmarrow.patch.ridge.KernelRidge": ("kernel_ridge.KernelRidge", {*KERNEL, "alpha"}),
}
#: Parameters without influence on the optimum.
_EFFORT = {"shrinking", "solver", "leave_one_out"}
#: Parameters of svmarrow that scikit-learn lacks, with the value that scikit-learn's classes have.
_FIXED = {"multi_class": "ovo", "loss": "hinge", "max_iter": -1}


def peer(call: Call, *, is_equal: bool = True) -> Call | None:
    """The same estimator over scikit-learn's machine, or None if scikit-learn has none.

    Without `is_equal`, parameters that scikit-learn lacks are left out: what svmarrow fits is another machine.
    """
    machine = call.machine
    if machine.name not in _PEERS or any(name.startswith("svmarrow.") for name in call.chain[:-1]):
        return None
    name, known = _PEERS[machine.name]
    parameters = {}
    for key, value in machine.parameters.items():
        if key in known:
            parameters[key] = value
        elif is_equal and key not in _EFFORT and _FIXED.get(key) != value:
            return None
    if parameters.get("kernel") in ("matern12", "matern32", "matern52"):
        return None
    if name.startswith("svm.") and parameters.get("kernel") in ("laplacian", "chi2"):
        return None
    if name.startswith("kernel_ridge"):
        parameters.setdefault("kernel", "rbf" if machine.name == "svmarrow.RLSRegressor" else "linear")
        if machine.name == "svmarrow.RLSRegressor" and parameters["kernel"] not in ("linear", "precomputed"):
            if "gamma" not in parameters:
                return None
            parameters.setdefault("coef0", 0.0)
    if name.startswith("svm."):
        limit_iterations(parameters)
    return call.map_machine(lambda _: Call(name, (), parameters))


def easier(call: Call) -> Call:
    """The estimator with a moderate C and tolerance, for many samples."""

    def change(machine: Call) -> Call:
        parameters = dict(machine.parameters)
        if "C" in parameters:
            parameters["C"] = min(parameters["C"], MAX_C)
        if "tol" in parameters:
            parameters["tol"] = max(parameters["tol"], 1e-3)
        return replace(machine, parameters=parameters)

    return call.map_machine(change)


def takes_several_targets(call: Call) -> bool:
    """Whether a regressor takes several targets."""
    names = ("RLSRegressor", "KMPRegressor", "KernelRidge", "GaussianProcess", "TabularRegressor")
    return (
        any(name in call.machine.name for name in names)
        and "Voting" not in str(call)
        and "Bagging" not in str(call)
    )


def takes_sparse(call: Call) -> bool:
    """Whether sparse samples are taken by every part."""
    return not any(
        name in str(call) for name in ("preprocessing.", "decomposition.", "Scaler", "Gaussian", "Tabular")
    )
