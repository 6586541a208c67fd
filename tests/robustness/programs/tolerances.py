"""How much two answers may differ.

Tolerances follow from the computation: the spread of the outputs, the size of the terms that are summed, and
for solvers the duality gap, which bounds the distance from the optimum. A warning of the product relaxes one
check only: fits that did not converge are not compared with other fits, and exports that warn of rounding in
single precision are not compared in it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge

import svmarrow
from helpers import reference

if TYPE_CHECKING:
    from robustness.programs.runner import Run

METHODS = ("predict", "decision_function", "predict_proba", "score_samples")
EPSILON = float(np.finfo(float).eps)
#: Relative to the spread of an output: rounding in double precision after some thousand operations.
ROUNDING = 1e-6
#: Relative to the spread of an output: .1 %.
SINGLE = 1e-3
#: Exports measure their rounding on some samples, which may be less than on others.
UNSEEN = 2.5
#: Relative range of outputs that are constant: rounding to single precision may be larger.
CONSTANT = 1e-9
#: Rounding errors of the terms of an output, in units of the machine precision.
ROUNDED_DIGITS = 1e5
#: Largest number of samples for naive computations.
MAX_NAIVE = 300


# --- answers ---


def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """The results of every prediction method that a model has."""
    found = {}
    for name in METHODS:
        method = getattr(model, name, None)
        if method is not None:
            found[name] = np.asarray(method(X))
    return found


def dense(X: Any) -> np.ndarray:
    """Samples as a matrix in double precision."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def expansion_of(model: Any) -> Any:
    """The kernel expansion of a model, or None."""
    try:
        converted = svmarrow.as_expansion(model)
    except Exception:  # noqa: BLE001 - conversions have checks of their own
        return None
    return getattr(converted, "expansion_", converted)


def magnitude(model: Any, X: Any) -> float:
    """Size of the terms that are summed for an output, times the condition of a kernel value."""
    try:
        converted = svmarrow.as_expansion(model)
        expansion = getattr(converted, "expansion_", converted)
        prepared = getattr(converted, "preparation", None)
        A = dense(X if prepared is None else prepared.rows(X))
        if expansion.kernel == "precomputed":
            return float(np.abs(A).max(initial=1.0) * np.abs(expansion.coefficients).sum() + 1.0)
        parts = [(part, dense(part.vectors)) for part in expansion.parts]
    except Exception:  # noqa: BLE001 - without an expansion there is no estimate
        return 0.0
    return sum(_magnitude_of_part(part, Z, A) for part, Z in parts)


def _magnitude_of_part(expansion: Any, Z: np.ndarray, A: np.ndarray) -> float:
    """`magnitude` of an expansion of one kernel, for its vectors Z and samples A."""
    B, b = np.abs(expansion.coefficients), np.abs(expansion.intercepts)
    name, gamma, coef0, degree = expansion.kernel_spec
    squares = float((A**2).sum(axis=1).max(initial=0.0) + (Z**2).sum(axis=1).max(initial=0.0))
    if name in ("linear", "poly"):
        scale = 1.0 if name == "linear" else gamma
        terms = (scale * np.abs(A) @ np.abs(Z).T + abs(coef0)) ** (1 if name == "linear" else degree)
        return float((terms @ B).max(initial=0.0) * max(1, degree) + b.max(initial=0.0))
    if name == "sigmoid":
        return float(B.sum() * (1.0 + gamma * squares) + b.max(initial=0.0))
    slope = gamma * np.sqrt(squares) if name != "rbf" else gamma * squares
    return float(B.sum() * (1.0 + slope) + b.max(initial=0.0))


def floor(model: Any, *samples: Any) -> float:
    """Rounding error of an output, generously, in the precision of scikit-learn's own products."""
    machine = machine_of(model)
    # Vectors of several machines may cancel in their conversion.
    eps = EPSILON
    terms = max(magnitude(member, rows) for X in samples for member, rows in members_of(model, X))
    if isinstance(machine, (KernelRidge, GaussianProcessRegressor)) and not is_arrow(machine):
        if getattr(samples[0], "dtype", None) == np.float32:
            eps = float(np.finfo(np.float32).eps)
        if hasattr(machine, "_y_train_std"):
            # The constants of the covariance are summed over all samples.
            terms += float(
                np.abs(machine.alpha_).sum() * np.max(machine._y_train_std)
            ) * magnitude_of_constants(machine)
    return ROUNDED_DIGITS * eps * terms


def members_of(model: Any, X: Any) -> list[tuple[Any, Any]]:
    """A model and the estimators in it, whatever their depth, with the samples that each of them gets."""
    found = [(model, X)]
    if hasattr(model, "steps"):
        # Without transformed samples the magnitude of the whole model remains.
        with contextlib.suppress(Exception):
            found += members_of(model.steps[-1][1], model[:-1].transform(X))
    for member in getattr(model, "estimators_", []):
        found += members_of(member, X)
    return found


def loses_distances(model: Any, X: Any) -> bool:
    """Whether squared distances from products, as scikit-learn's are, have no digit for a Gaussian."""
    expansion = expansion_of(model)
    parts = [] if expansion is None else [part for part in expansion.parts if part.kernel == "rbf"]
    squares = [float((dense(part.vectors) ** 2).sum(axis=1).max(initial=0.0)) for part in parts]
    return any(EPSILON * part.gamma * size > 1e-2 for part, size in zip(parts, squares, strict=True))


def magnitude_of_constants(machine: Any) -> float:
    """Largest covariance of two training samples of a Gaussian process."""
    return float(np.abs(machine.kernel_(machine.X_train_)).max())


def machine_of(model: Any) -> Any:
    """The innermost fitted estimator."""
    for name in ("best_estimator_", "estimators_", "calibrated_classifiers_", "estimator"):
        inner = getattr(model, name, None)
        if inner is not None and not isinstance(inner, (str, type)):
            return machine_of(inner[0] if isinstance(inner, (list, np.ndarray)) and len(inner) else inner)
    return machine_of(model.steps[-1][1]) if hasattr(model, "steps") else model


def columns_of(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1).astype(np.float64)


def spread(values: np.ndarray) -> float:
    """Largest range of a column."""
    columns = columns_of(values)
    return float(np.ptp(columns, axis=0).max(initial=0.0)) if len(columns) else 0.0


def raw_outputs(model: Any, X: Any) -> list[np.ndarray]:
    """Numbers whose signs or order decide the labels."""
    if hasattr(model, "steps"):
        return raw_outputs(model.steps[-1][1], model[:-1].transform(X))
    if hasattr(model, "best_estimator_"):
        return raw_outputs(model.best_estimator_, X)
    found = []
    converted = expansion_of(model)
    if hasattr(model, "estimators_") and not hasattr(model, "expansion_"):
        members = model.estimators_
        features = getattr(model, "estimators_features_", [None] * len(members))
        for member, columns in zip(members, features, strict=True):
            if hasattr(member, "predict") and type(member).__name__ != "_ConstantPredictor":
                found += raw_outputs(member, X if columns is None or hasattr(X, "columns") else X[:, columns])
    elif converted is not None and getattr(model, "_matrix", None) is None:
        # Without an expansion the scores below remain.
        with contextlib.suppress(Exception):
            found.append(columns_of(np.asarray(svmarrow.as_expansion(model).outputs(X))))
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            try:
                found.append(columns_of(np.asarray(getattr(model, name)(X))))
            except Exception:  # noqa: BLE001 - a method that fails is reported elsewhere
                continue
    return found


def undecided(model: Any, X: Any, relative: float, absolute: float) -> np.ndarray:
    """Whether a change of the outputs within the tolerance may change the label of a sample."""
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    unclear = np.zeros(rows, dtype=bool)
    for values in raw_outputs(model, X):
        limit = 4.0 * (relative * np.maximum(np.ptp(values, axis=0), 0.0) + absolute)
        unclear |= (np.abs(values) <= limit).any(axis=1)
        if values.shape[1] > 1:
            best = np.sort(values, axis=1)
            unclear |= best[:, -1] - best[:, -2] <= limit.max()
    return unclear


# --- tolerances ---


def tolerance(run: Run, other: Any, T: Any, S: Any, accuracy: str) -> tuple[float | None, float]:
    """Relative (to the spread) and absolute tolerance of an output; None for no comparison."""
    if not (is_arrow(run.model) or is_arrow(other)) and expansion_of(run.model) is None:
        # Two answers of one model of scikit-learn, in which svmarrow has no part.
        return None, 0.0
    if not (is_arrow(run.model) and is_arrow(other)) and loses_distances(run.model, T):
        return None, 0.0
    base = floor(run.model, T, run.names["X"]) + preparation_noise(run, S if hasattr(S, "astype") else T)
    if "OneClassSVM" in str(run.program.call):
        # All samples may lie on the boundary: scores are accurate relative to the spread between them.
        single = getattr(S, "dtype", None) == np.float32 or getattr(T, "dtype", None) == np.float32
        base += (4.0 * float(np.finfo(np.float32).eps) if single else 0.0) * magnitude(run.model, T)
    single_rows = has_narrow_rows(run)
    if accuracy == "rounding":
        return (SINGLE if single_rows else ROUNDING), base
    if accuracy == "single":
        # Exports and conversions measure their rounding and warn.
        warned = any("rounding" in str(w.message) or "single precision" in str(w.message) for w in run.log)
        largest = max(
            (float(np.abs(values).max(initial=0.0)) for values in raw_outputs(run.model, T)), default=0.0
        )
        return (None if warned else UNSEEN * SINGLE), base + float(np.finfo(np.float32).eps) * largest
    if any(issubclass(w.category, ConvergenceWarning) for w in run.log):
        return None, 0.0
    error = solver_error(run, run.model)
    error_of_other = solver_error(run, other)
    if error is None or error_of_other is None:
        return None, 0.0
    return (SINGLE if single_rows else 1e-5), base + error + error_of_other


def has_narrow_rows(run: Run) -> bool:
    """Whether rows are of a narrow type: they may be evaluated in single precision."""
    return any(run.program.data.has(kind) for kind in ("float32", "uint8", "bool"))


def preparation_noise(run: Run, S: Any) -> float:
    """Change of the scores that rounding in transformers may cause: scikit-learn's keep single precision."""
    types = [S.dtype] if hasattr(S, "dtype") else list(getattr(S, "dtypes", []))
    if not types or any(dtype.kind != "f" for dtype in types):
        return 0.0
    if sparse.issparse(S) or not prepares_samples(run):
        return 0.0
    if hasattr(S, "columns"):
        # scikit-learn's transformers take columns in the order of the fit alone.
        S = S[list(run.names["T"].columns)]
    exact = S.astype(np.float64)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=exact.shape)
    moved = exact * (1.0 + max(float(np.finfo(dtype).eps) for dtype in types) * signs)
    changes = [0.0]
    for samples in (moved, S):
        # A method may refuse moved samples.
        for a, b in zip(raw_outputs(run.model, exact), raw_outputs(run.model, samples), strict=False):
            changes.append(float(np.abs(a - b).max(initial=0.0)))
    return 10.0 * max(changes)


def prepares_samples(run: Run) -> bool:
    """Whether the model, or its conversion, transforms its samples."""
    if run.program.call.inner is not None:
        return True
    try:
        return svmarrow.as_expansion(run.model).preparation is not None
    except Exception:  # noqa: BLE001 - conversions have checks of their own
        return False


def is_arrow(model: Any) -> bool:
    """Whether svmarrow has fitted a model: a replacement may have left the fit to scikit-learn."""
    is_ours = getattr(model, "_is_ours", None)
    return type(model).__module__.startswith("svmarrow") if is_ours is None else is_ours()


def solver_error(run: Run, model: Any) -> float | None:
    """Bound of the difference of an output from that at the optimum; None if not known."""
    X, y = run.names["X"], np.asarray(run.names["y"])
    if hasattr(model, "steps"):
        return None
    kind = type(model).__name__
    kernel = getattr(model, "kernel", None)
    n = X.shape[0]
    if n > MAX_NAIVE or kernel == "sigmoid" or kernel == "precomputed":
        return None
    expansion = expansion_of(model)
    if expansion is None or len(expansion.parts) > 1:
        return None
    A = dense(X)
    K = (
        expansion.kernel(A, A)
        if callable(expansion.kernel)
        else reference.kernel(expansion.kernel_spec, A, A)
    )
    if not np.isfinite(K).all():
        return None
    norm = float(np.sqrt(max(np.diag(K).max(), 0.0)))
    if kind in ("RLSRegressor", "RLSClassifier", "KernelRidge"):
        alpha = float(getattr(model, "alpha_", getattr(model, "alpha", 1.0)))
        weight = run.names["w"]
        least = 1.0 if weight is None else float(weight.max())
        targets = np.abs(y).max() if y.dtype.kind == "f" else 1.0
        is_single = kind == "KernelRidge" and getattr(X, "dtype", None) == np.float32 and not is_arrow(model)
        eps = float(np.finfo(np.float32).eps) if is_single else EPSILON
        error = 1e2 * eps * n * (1.0 + norm**2 * n * least / alpha) * targets
        if getattr(model, "solver", "") == "cg":
            error += n * norm**2 * model.tol * np.sqrt(n) * targets / alpha
        return error
    if kind not in ("SVC", "SVR") or getattr(model, "nu", None) not in (None, 0.0):
        return None
    if hasattr(model, "certificate_"):
        machines = model.certificate_.machines
        gap = max(max(machine.gap, 0.0) for machine in machines)
        violation = max(machine.violation + machine.intercept_range for machine in machines)
        return 2.0 * float(np.sqrt(2.0 * gap)) * norm + violation
    if kind == "SVR":
        beta = np.zeros(n)
        beta[model.support_] = dense(model.dual_coef_).ravel()
        weights = np.ones(n) if run.names["w"] is None else run.names["w"]
        f = K @ beta + model.intercept_
        quadratic = beta @ K @ beta
        losses = np.maximum(np.abs(y - f) - model.epsilon, 0.0)
        gap = quadratic + model.C * weights @ losses - y @ beta + model.epsilon * np.abs(beta).sum()
        return 2.0 * float(np.sqrt(2.0 * max(gap, 0.0))) * norm + model.tol
    if run.names["w"] is not None or len(model.classes_) > 2 or model.class_weight is not None:
        return None
    beta = np.zeros(n)
    beta[model.support_] = dense(model.dual_coef_).ravel()
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    f = K @ beta + model.intercept_
    losses = np.maximum(1.0 - signs * f, 0.0)
    gap = beta @ K @ beta + model.C * losses.sum() - np.abs(beta).sum()
    bounded = bool((np.abs(beta[model.support_]) >= model.C * (1 - 1e-9)).all())
    if bounded:
        return None
    return 2.0 * float(np.sqrt(2.0 * max(gap, 0.0))) * norm + model.tol
