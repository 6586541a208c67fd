"""The cases of `extremes.py`: every learner and reducer with numbers at the ends of their range.

A new learner, kernel, weight or kind of rows is one more entry of a table here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow.reduced_set import GradientSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

N, D = 48, 3

# --- rows ---

_random = np.random.default_rng(0)
LABELS = np.arange(N) % 3
TARGETS = np.sin(np.arange(N))
BASE = _random.standard_normal((N, D)) + 2.0 * np.eye(3)[LABELS]


def _scaled(power: float) -> Callable[[], Any]:
    return lambda: BASE * 10.0**power


def _rows() -> dict[str, Callable[[], Any]]:
    """Name to a dense float64 matrix."""
    powers = (
        -300,
        -200,
        -155,
        -100,
        -45,
        -38,
        -25,
        -10,
        5,
        10,
        15,
        20,
        25,
        38,
        60,
        100,
        150,
        154,
        200,
        300,
        307,
    )
    rows: dict[str, Callable[[], Any]] = {f"times 1e{power}": _scaled(power) for power in powers}
    rows |= {
        f"plus 1e{power}": lambda power=power: BASE + 10.0**power for power in (4, 8, 12, 17, 30, 100, 200)
    }
    outlier = BASE.copy()
    outlier[5, 1] = 1e200
    far = BASE.copy()
    far[7] = 1e30
    wide = BASE * np.array([1e-200, 1.0, 1e200])
    return rows | {
        "ordinary": lambda: BASE,
        "zero": lambda: np.zeros((N, D)),
        "equal rows": lambda: np.full((N, D), 3.7),
        "equal rows, 1e200": lambda: np.full((N, D), 1e200),
        "subnormal": lambda: np.round(BASE * 7) * 5e-324,
        "subnormal, single": lambda: np.round(BASE * 7) * 1.4e-45,
        "one column": lambda: BASE[:, :1],
        "one column times 1e100": lambda: BASE[:, :1] * 1e100,
        "outlier 1e200": lambda: outlier,
        "a row at 1e30": lambda: far,
        "columns 1e-200 to 1e200": lambda: wide,
        "repeated rows": lambda: np.repeat(BASE[:4], N // 4, axis=0),
        "largest": lambda: np.sign(BASE) * np.finfo(np.float64).max,
        "largest, single": lambda: np.sign(BASE) * float(np.finfo(np.float32).max),
    }


ROWS = _rows()
FORMS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr64": lambda X: sp.csr_array(np.where(np.abs(BASE[:, : X.shape[1]]) > 0.3, X, 0.0)),
    "csr32": lambda X: sp.csr_array(np.where(np.abs(BASE[:, : X.shape[1]]) > 0.3, X, 0.0).astype(np.float32)),
}


def rows(name: str, form: str) -> Any:
    """Rows by name, or None where the form cannot hold them."""
    with np.errstate(all="ignore"):
        X = FORMS[form](ROWS[name]())
    values = X.data if sp.issparse(X) else X
    lost = not np.isfinite(values).all() or (name not in ("zero", "subnormal") and not values.any())
    return None if lost else X


# --- kernels that the caller gives ---


def inner(X: Any, Z: Any) -> Any:
    """An honest one."""
    return np.asarray(X @ Z.T)


def negative(X: Any, Z: Any) -> Any:
    """Negative definite."""
    return -np.asarray(X @ Z.T)


def lopsided(X: Any, Z: Any) -> Any:
    """k(x, z) is not k(z, x)."""
    return np.asarray(X[:, :1] - 2.0 * Z[:, 0])


def random_like(X: Any, Z: Any) -> Any:
    """Indefinite: another sign for every pair."""
    return np.sign(np.sin(1e4 * (X @ Z.T)))


def not_a_number(X: Any, Z: Any) -> Any:
    return np.full((X.shape[0], Z.shape[0]), np.nan)


def sometimes_nan(X: Any, Z: Any) -> Any:
    K = np.array(X @ Z.T)
    K[K > 5.0] = np.nan
    return K


def infinite(X: Any, Z: Any) -> Any:
    return np.full((X.shape[0], Z.shape[0]), np.inf)


def huge(X: Any, Z: Any) -> Any:
    return np.asarray(X @ Z.T) * 1e300


def large(X: Any, Z: Any) -> Any:
    return np.asarray(X @ Z.T) * 1e37


def tiny(X: Any, Z: Any) -> Any:
    return np.asarray(X @ Z.T) * 1e-300


def turned(X: Any, Z: Any) -> Any:
    return np.zeros((Z.shape[0] + 1, X.shape[0]))


def flat(X: Any, _: Any) -> Any:
    return np.zeros(X.shape[0])


def words(X: Any, Z: Any) -> Any:
    return np.full((X.shape[0], Z.shape[0]), "a")


def nothing(*_: Any) -> Any:
    return None


def raises(*_: Any) -> Any:
    raise ZeroDivisionError("the caller's own")


FUNCTIONS = (
    *(
        inner,
        negative,
        lopsided,
        random_like,
        not_a_number,
        sometimes_nan,
        infinite,
        huge,
        large,
        tiny,
        turned,
    ),
    *(flat, words, nothing, raises),
)
MATRICES: dict[str, Callable[[Any], Any]] = {
    "times 1e300": lambda K: K * 1e300,
    "times 1e37": lambda K: K * 1e37,
    "times 1e-300": lambda K: K * 1e-300,
    "negative": lambda K: -K,
    "asymmetric": lambda K: K + 5.0 * np.triu(np.ones_like(K), 1),
    "indefinite": lambda K: np.sign(np.sin(1e4 * K)),
    "zero": lambda K: K * 0.0,
    "ones": lambda K: np.ones_like(K),
    "asymmetric, huge": lambda K: K + 1e200 * np.triu(np.ones_like(K), 1),
    "NaN": lambda K: np.where(K > 5.0, np.nan, K),
    "infinite": lambda K: np.where(K > 5.0, np.inf, K),
    "largest": lambda K: np.sign(K) * np.finfo(np.float64).max,
    "single": lambda K: K.astype(np.float32),
    "single, large": lambda K: (K * 1e36).astype(np.float32),
}

# --- learners ---

_PAIR = {"max_iter": 20_000}
#: Learners with a kernel by name; what keeps a case short.
KERNEL_LEARNERS: dict[str, dict[str, Any]] = {
    "SVC": _PAIR,
    "NuSVC": _PAIR | {"nu": 0.2},
    "SVR": _PAIR,
    "NuSVR": _PAIR,
    "QuantileSVR": _PAIR | {"quantile": (0.1, 0.9)},
    "OneClassSVM": _PAIR,
    "LowRankSVC": {"n_vectors": 12, "random_state": 0, "max_iter": 2_000},
    "RLSClassifier": {},
    "RLSRegressor": {},
    "LowRankRLSClassifier": {"n_vectors": 12, "random_state": 0},
    "LowRankRLSRegressor": {"n_vectors": 12, "random_state": 0},
    "KMPClassifier": {"n_vectors": 6},
    "KMPRegressor": {"n_vectors": 6},
    "KernelPerceptron": {},
    "KernelPerceptron oldest": {"policy": "oldest", "budget": 8, "random_state": 0},
    "KernelPerceptron forgetron": {"policy": "forgetron", "budget": 8},
    "KernelPerceptron stop": {"policy": "stop", "budget": 8},
    "KernelPerceptron projectron": {"policy": "projectron"},
    "KernelPerceptron projectron++": {"policy": "projectron++"},
    "PerceptronTreeClassifier": {"budget": 8, "random_state": 0},
}
#: Searches, which have gammas of their own.
SEARCHES: dict[str, dict[str, Any]] = {
    name: {"Cs": 2, "gammas": 2, "cv": 2, "max_iter": 20_000} for name in ("SVCCV", "SVRCV", "QuantileSVRCV")
}
#: Settings of transformers.
TRANSFORMERS: tuple[dict[str, Any], ...] = (
    {"max_iter": 1, "shape": "auto"},
    {"max_iter": 1, "metric": "full", "shape": "both"},
)
#: Forms of them that have code of their own.
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("SVC", {"loss": "squared_hinge"}), ("SVC", {"fit_intercept": False}), ("SVC", {"multi_class": "ovr"})),
    *(("RLSClassifier", {"fit_intercept": True}), ("RLSRegressor", {"solver": "cg", "max_iter": 200})),
    *(("RLSRegressor", {"leave_one_out": True}), ("RLSRegressor", {"alphas": (0.1, 1.0, 10.0)})),
    *(("LowRankRLSRegressor", {"method": "subset"}), ("LowRankRLSRegressor", {"method": "nystrom"})),
    *(
        ("LowRankRLSRegressor", {"selection": "pivoted_cholesky"}),
        ("LowRankRLSRegressor", {"fit_intercept": True}),
    ),
    *(("KMPRegressor", {"loss": "huber"}), ("KMPClassifier", {"loss": "logistic"})),
    *(("KMPRegressor", {"variant": "basic"}), ("KMPRegressor", {"variant": "backfit"})),
    *(("KMPRegressor", {"precision": "double"}), ("KMPClassifier", {"loss": "squared_hinge"})),
    *(("KernelPerceptron", {"prediction": "averaged"}), ("KernelPerceptron", {"prediction": "voted"})),
    *(("KernelPerceptron oldest", {"policy": policy}) for policy in ("margin", "tightest")),
    *(("PerceptronTreeClassifier", {"split": "zpq"}), ("LowRankSVC", {"selection": "kmeans"})),
)
LINEAR_LEARNERS: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    (name, {"solver": solver, "fit_intercept": intercept})
    for name in ("LinearRLSClassifier", "LinearRLSRegressor")
    for solver in ("primal", "dual", "cg")
    for intercept in (False, True)
)
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "coef0": 1.0},
    "laplacian": {"kernel": "laplacian"},
    "matern12": {"kernel": "matern12"},
    "matern52": {"kernel": "matern52"},
    "sigmoid": {"kernel": "sigmoid"},
    "chi2": {"kernel": "chi2"},
}
_GAMMAS: tuple[dict[str, Any], ...] = tuple(
    {"gamma": gamma} for gamma in (0.0, 1e-300, 1e-30, 1e30, 1e300, "scale")
)
KERNEL_PARAMETERS: tuple[dict[str, Any], ...] = (
    *(kernel | gamma for kernel in KERNELS.values() for gamma in _GAMMAS),
    *({"kernel": "poly", "degree": 20, "gamma": gamma} for gamma in ("scale", 1.0, 1e20)),
    *({"kernel": "poly", "degree": degree, "coef0": 1.0} for degree in (0, 1, 20, 400, 2**31 - 1)),
    *({"kernel": "poly", "coef0": coef0} for coef0 in (-1e300, -3.0, 1e30, 1e100, 1e300)),
    *({"kernel": "sigmoid", "coef0": coef0} for coef0 in (-1e300, -3.0, 1e30, 1e300)),
)
_SIZES = (1e-300, 1e-30, 1e-12, 1e12, 1e30, 1e300)
OWN_PARAMETERS: dict[str, tuple[dict[str, Any], ...]] = {
    "SVC": (
        *({"C": C} for C in _SIZES),
        {"tol": 1e-300},
        {"tol": 1e300},
        {"C": 1e12, "loss": "squared_hinge"},
    ),
    "NuSVC": ({"nu": 1e-300}, {"nu": 1e-12}, {"nu": 0.999}),
    "SVR": tuple({"C": C, "epsilon": e} for C in _SIZES for e in (0.0, 1e-300, 1e300)),
    "NuSVR": tuple({"C": C, "nu": nu} for C in _SIZES for nu in (1e-300, 0.5, 1.0)),
    "QuantileSVR": tuple({"C": C, "quantile": q} for C in _SIZES for q in (1e-300, 0.5, 1.0 - 1e-12)),
    "OneClassSVM": ({"nu": 1e-300}, {"nu": 1e-12}, {"nu": 1.0}),
    "LowRankSVC": tuple({"C": C} for C in _SIZES),
    "RLSClassifier": tuple({"alpha": a, "fit_intercept": b} for a in _SIZES for b in (False, True)),
    "RLSRegressor": tuple(
        {"alpha": a, "solver": s, "max_iter": 200} for a in _SIZES for s in ("cholesky", "cg")
    ),
    "LowRankRLSClassifier": tuple(
        {"alpha": a, "method": m} for a in _SIZES for m in ("subset_of_regressors", "nystrom")
    ),
    "LowRankRLSRegressor": tuple({"alpha": a, "method": m} for a in _SIZES for m in ("subset", "nystrom")),
    "LinearRLSClassifier": tuple({"alpha": a} for a in _SIZES),
    "LinearRLSRegressor": tuple({"alpha": a, "solver": s} for a in _SIZES for s in ("primal", "dual", "cg")),
    "KMPRegressor": tuple({"loss": "huber", "delta": d} for d in _SIZES),
    "KernelPerceptron projectron": tuple({"eta": e} for e in _SIZES),
    "KernelPerceptron projectron++": tuple({"eta": e} for e in _SIZES),
}
WEIGHTS: dict[str, Any] = {
    "half of them 0": np.arange(N) // 3 % 2 * 1.0,
    "1e300": np.full(N, 1e300),
    "1e-300": np.full(N, 1e-300),
    "largest": np.full(N, np.finfo(np.float64).max),
    "subnormal": np.full(N, 5e-324),
    "1e-300 to 1e300": 10.0 ** np.linspace(-300, 300, N),
    "one of 1e300": np.where(np.arange(N) == 5, 1e300, 1.0),
    "one of 1e15": np.where(np.arange(N) == 5, 1e15, 1.0),
}
AIMS: dict[str, Any] = {
    "1e300": TARGETS * 1e300,
    "largest": np.sign(TARGETS) * np.finfo(np.float64).max,
    "1e155": TARGETS * 1e155,
    "1e20": TARGETS * 1e20,
    "1e-300": TARGETS * 1e-300,
    "subnormal": np.round(TARGETS * 9) * 5e-324,
    "plus 1e15": TARGETS + 1e15,
    "equal": np.full(N, 3.7),
}
#: Selections of `svmarrow.papers.reduced_set`.
PAPER_METHODS = ("basic", "l0", "l1", "lars")
METHODS: dict[str, dict[str, Any]] = {
    **{method: {} for method in ("backfit", "rank", *PAPER_METHODS)},
    "gradient": {"settings": GradientSettings(steps=10), "random_state": 0},
}


@dataclass(frozen=True)
class Case:
    """What is fitted on what."""

    learner: str
    parameters: dict[str, Any] = field(default_factory=dict)
    rows: str = "ordinary"
    form: str = "float64"
    weights: str | None = None
    targets: str | None = None
    matrix: str | None = None
    function: int | None = None
    #: "fit", "predict" (fitted on ordinary rows, asked for these), or a method of compression.
    work: str = "fit"

    def __str__(self) -> str:
        own = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items() if key not in QUIET)
        parts = [f"{self.learner}({own})", self.rows, self.form]
        said = {name: getattr(self, name) for name in ("weights", "targets", "matrix")}
        parts += [f"{name} {value}" for name, value in said.items() if value is not None]
        if self.function is not None:
            parts.append(f"function {FUNCTIONS[self.function].__name__}")
        if self.work != "fit":
            parts.append(self.work)
        return " | ".join(parts)


QUIET = {"max_iter", "random_state", "n_vectors", "budget"}


def cases() -> Iterator[Case]:
    """All cases, in the same order every time."""
    both = {name: {**KERNEL_LEARNERS.get(name, {})} for name in KERNEL_LEARNERS}
    # Rows against kernels.
    for name, quick in both.items():
        for kernel in KERNELS.values():
            for row in ROWS:
                for form in FORMS:
                    yield Case(name, quick | kernel, row, form)
    for name, own in VARIANTS:
        for kernel in (KERNELS["rbf"], KERNELS["linear"], KERNELS["poly"]):
            for row in ROWS:
                for form in ("float64", "float32"):
                    yield Case(name, both[name] | own | kernel, row, form)
    for name, own in LINEAR_LEARNERS:
        for row in ROWS:
            for form in FORMS:
                yield Case(name, own, row, form)
    # Parameters.
    for name, quick in both.items():
        for kernel in KERNEL_PARAMETERS:
            for form in ("float64", "float32", "csr64"):
                yield Case(name, quick | kernel, form=form)
    for name, choices in OWN_PARAMETERS.items():
        for own in choices:
            for kernel in ({},) if name.startswith("Linear") else ({}, {"kernel": "linear"}):
                for row in ("ordinary", "times 1e100", "times 1e-100", "times 1e15"):
                    yield Case(name, both.get(name, {}) | own | kernel, row)
    # Weights and targets.
    for name in (*both, "LinearRLSClassifier", "LinearRLSRegressor"):
        quick = both.get(name, {})
        if name in _WEIGHTED:
            for weight in WEIGHTS:
                for kernel in ({},) if name.startswith("Linear") else ({}, {"kernel": "linear"}):
                    for row in ("ordinary", "times 1e100"):
                        yield Case(name, quick | kernel, row, weights=weight)
        if name.endswith(("Regressor", "SVR")):
            for aim in AIMS:
                for kernel in ({},) if name.startswith("Linear") else ({}, {"kernel": "linear"}):
                    yield Case(name, quick | kernel, targets=aim)
    # The caller's kernels.
    for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "RLSClassifier", "RLSRegressor", *_PURSUIT):
        for number in range(len(FUNCTIONS)):
            for row in ("ordinary", "times 1e100"):
                yield Case(name, both[name] | {"kernel": "function"}, row, function=number)
        for matrix in MATRICES:
            yield Case(name, both[name] | {"kernel": "precomputed"}, matrix=matrix)
    # Prediction of extreme rows by an ordinary model, and reduction of models on extreme rows.
    for name, quick in both.items():
        for kernel in KERNELS.values():
            for row in ROWS:
                for form in ("float64", "float32"):
                    yield Case(name, quick | kernel, row, form, work="predict")
    for learner in ("SVC", "SVR"):
        for method in METHODS:
            for kernel in (KERNELS["rbf"], KERNELS["linear"], KERNELS["poly"]):
                for row in ROWS:
                    for form in ("float64", "float32"):
                        yield Case(learner, _PAIR | kernel, row, form, work=method)
    for learner, own in SEARCHES.items():
        for kernel in ("rbf", "linear", "poly"):
            for row in ROWS:
                for form in FORMS:
                    yield Case(learner, own | {"kernel": kernel}, row, form)
    # Transformers, of rows, weights and targets; "predict" transforms extreme rows.
    for own in TRANSFORMERS:
        for row in ROWS:
            for form in FORMS:
                if form.startswith("float") or own.get("shape") == "auto":
                    yield Case("LearnedScaler", own, row, form)
            yield Case("LearnedScaler", own, row, work="predict")
        for weight in WEIGHTS:
            yield Case("LearnedScaler", own, weights=weight)
        for aim in AIMS:
            yield Case("LearnedScaler", own | {"task": "regression"}, targets=aim)
    # Tables: rows, weights and targets.
    for name in ("TabularClassifier", "TabularRegressor"):
        for row in ROWS:
            yield Case(name, {"n_samples": 30}, row)
            yield Case(name, {"n_samples": 30}, row, work="predict")
        for weight in WEIGHTS:
            yield Case(name, {"n_samples": 30}, weights=weight)
    for aim in AIMS:
        yield Case("TabularRegressor", {"n_samples": 30}, targets=aim)
    for work in ("compact", "expansion", "ExactCascade", "CalibratedCascade", "CodedClassifier"):
        for kernel in KERNELS.values():
            for row in ROWS:
                for form in ("float64", "float32"):
                    yield Case("SVC", _PAIR | kernel, row, form, work=work)


_PURSUIT = ("KMPClassifier", "KMPRegressor")
_WEIGHTED = {
    *("SVC", "NuSVC", "SVR", "NuSVR", "QuantileSVR", "OneClassSVM", "LowRankSVC"),
    *("RLSClassifier", "RLSRegressor"),
    *("LowRankRLSClassifier", "LowRankRLSRegressor", "LinearRLSClassifier", "LinearRLSRegressor", *_PURSUIT),
}
