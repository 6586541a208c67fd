"""What must hold: invariants of a fitted model, and the comparison of two models that must answer alike.

A check raises `CheckError` with the kind of the failure, which stays the same while a program is simplified,
and a message. `robustness.programs.tolerances` has the tolerances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

import svmarrow
from helpers import reference
from robustness.programs.tolerances import (
    CONSTANT,
    EPSILON,
    MAX_NAIVE,
    ROUNDING,
    SINGLE,
    answers,
    columns_of,
    dense,
    floor,
    has_narrow_rows,
    is_arrow,
    machine_of,
    raw_outputs,
    solver_error,
    spread,
    tolerance,
    undecided,
)
from svmarrow._support.parameters import UNIT_DIAGONAL_KERNELS
from svmarrow.models import ExpansionTree

if TYPE_CHECKING:
    from robustness.programs.runner import Run


class CheckError(Exception):
    """A check does not hold."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message


# --- comparison ---


def compare(run: Run, other: Any, T: Any, S: Any, accuracy: str) -> None:
    """`other` on `S` must answer as the model on `T`."""
    model = run.model
    expected, found = answers(model, T), answers(other, S)
    where = run.step
    if accuracy == "bits" and "svmarrow" not in str(run.program.call):
        # BLAS may sum arrays at other addresses in another order.
        accuracy = "rounding"
    if accuracy == "bits":
        for name in expected.keys() & found.keys():
            if (
                expected[name].tobytes() != found[name].tobytes()
                and expected[name].tolist() != found[name].tolist()
            ):
                raise CheckError(f"{name} differs: {where}", _difference(expected[name], found[name]))
        return
    try:
        relative, absolute = tolerance(run, other, T, S, accuracy)
    except (TypeError, ValueError, AttributeError) as error:
        # It would count as a refusal of the program.
        raise CheckError("fault of the check: its tolerance", repr(error)) from error
    if relative is None:
        return
    single = relative >= SINGLE
    if "BaggingClassifier" in run.program.call.chain:
        # Documented: scores of the conversion count votes, those of scikit-learn's class are averages.
        expected.pop("decision_function", None)
    is_classifier = run.program.data.task != "numbers"
    for name in ("decision_function", "score_samples", "predict_proba", "predict"):
        if name not in expected or name not in found:
            continue
        a, b = expected[name], found[name]
        if a.shape != b.shape and a.reshape(-1).shape != b.reshape(-1).shape:
            raise CheckError(f"{name} has another shape: {where}", f"{a.shape} and {b.shape}")
        b = b.reshape(a.shape)
        if a.dtype.kind == "f":
            # scikit-learn's machines answer NaN for fractional powers of negative numbers.
            without_answer = np.isnan(a) & np.isnan(b)
            a, b = np.where(without_answer, 0.0, a), np.where(without_answer, 0.0, b)
        # The last digits of answers.
        eps = np.finfo(b.dtype if b.dtype == np.float32 else np.float64).eps
        digits = 4.0 * eps * np.abs(a).max(initial=0.0) if a.dtype.kind == "f" else 0.0
        if name == "predict" and is_classifier:
            wrong = (a != b) & ~undecided(model, T, relative, absolute)
            if wrong.any():
                raise CheckError(
                    f"labels differ: {where}",
                    f"{wrong.mean():.1%} of {len(a)} fresh samples, {a[wrong][:3]} and {b[wrong][:3]}",
                )
            continue
        differences = np.abs(columns_of(a) - columns_of(b))
        pairs = any(part.endswith(("SVC", "OneVsOneClassifier")) for part in run.program.call.chain)
        if (
            name == "decision_function" and (a.ndim == 2 or "OneVsOneClassifier" in run.program.call.chain)
        ) or (
            name == "predict_proba"
            and pairs
            and (a.shape[-1] > 2 or "OneVsOneClassifier" in run.program.call.chain)
        ):
            # Votes that rounding changes are whole numbers off, and so are probabilities of votes.
            differences = differences[~undecided(model, T, relative, absolute)]
        if spread(a) <= CONSTANT * np.abs(a).max(initial=0.0) and b.dtype.kind == "f":
            # A constant column that was divided by its rounding error.
            digits = max(digits, CONSTANT * np.abs(a).max(initial=0.0))
        if name == "predict_proba":
            limit = max(10.0 * relative, 1e-6) + (0.0 if accuracy == "rounding" else 0.05)
            if run.program.call.machine.parameters.get("probability"):
                # LIBSVM's coupling of pairs is an iteration that stops early.
                limit += 0.01
            if absolute > 1e-6 * max(spread(v) for v in raw_outputs(model, T)):
                continue
        elif single and _is_constant(np.asarray(getattr(model, name)(run.names["X"]))):
            continue
        elif name == "decision_function" and a.ndim == 2:
            # Scores of classes are sums over pairs.
            limit = relative * max(map(spread, [a, *raw_outputs(model, T)])) + absolute + digits
        else:
            limit = relative * spread(a) + absolute + digits
        if single and differences.size and not differences.max() <= limit and name != "predict_proba":
            # The spread is that at the vectors, which fresh samples need not have.
            seen = np.asarray(getattr(model, name)(run.names["X"]))
            scale = spread(seen)
            if is_classifier:
                # As exports measure it: what matters are signs.
                scale = max(scale, float(np.sqrt(np.square(seen).mean())))
            limit = max(limit, relative * scale + absolute + digits)
        if differences.size and not differences.max() <= limit:
            raise CheckError(
                f"{name} differs: {where}",
                f"by {differences.max():.3g}, allowed {limit:.3g}, spread {spread(a):.3g}; "
                f"{_difference(a, b)}",
            )


def _is_constant(values: np.ndarray) -> bool:
    """Whether exports in single precision count outputs as constant."""
    return bool((values.std(axis=0) <= CONSTANT * np.sqrt(np.square(values).mean(axis=0))).all())


def _difference(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    rows = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
    return f"{len(rows)} of {len(a)} rows, first {a[rows[:1]].tolist()} and {b[rows[:1]].tolist()}"


# --- invariants ---


def finite(run: Run) -> None:
    """Predictions are finite numbers, one row a sample."""
    is_ours = is_arrow(machine_of(run.model))
    for name, values in answers(run.model, run.names["T"]).items():
        if values.shape[:1] != (run.names["T"].shape[0],):
            raise CheckError(f"{name} has another number of rows", str(values.shape))
        # scikit-learn's machines answer NaN for fractional powers of negative numbers.
        if is_ours and values.dtype.kind == "f" and not np.isfinite(values).all():
            raise CheckError(f"{name} is not finite", str(values[:5]))


def classes(run: Run) -> None:
    """`classes_` are the labels of the samples, and predictions are among them."""
    if not hasattr(run.model, "classes_"):
        return
    y = np.asarray(run.names["y"])
    if not np.isin(run.model.classes_, np.unique(y)).all():
        raise CheckError("classes_ has labels that y has not", f"{run.model.classes_}")
    labels = np.asarray(run.model.predict(run.names["T"]))
    if not np.isin(labels, run.model.classes_).all():
        raise CheckError("a predicted label is not in classes_", str(labels[:5]))


def probabilities(run: Run) -> None:
    """Probabilities are in [0, 1], sum to 1, and do not decrease in the score of two classes."""
    model, T = run.model, run.names["T"]
    if not hasattr(model, "predict_proba") or not is_arrow(run.model):
        return
    values = np.asarray(model.predict_proba(T))
    if (
        (values < -1e-12).any()
        or (values > 1.0 + 1e-12).any()
        or np.abs(values.sum(axis=1) - 1.0).max() > 1e-9
    ):
        raise CheckError("probabilities are not a distribution", str(values[:3]))
    if hasattr(model, "decision_function") and not decreases(getattr(model, "estimator_", None), T):
        check_order(model, T)


def decreases(estimator: Any, T: Any) -> bool:
    """Whether the probabilities of the estimator decrease: those of scikit-learn may on a few samples."""
    if not hasattr(estimator, "predict_proba") or not hasattr(estimator, "decision_function"):
        # A calibrated classifier has no scores: those of its machine.
        machines = getattr(estimator, "calibrated_classifiers_", ())
        return any(
            sigmoid.a_ > 0.0
            for machine in machines
            for sigmoid in machine.calibrators
            if hasattr(sigmoid, "a_")
        )
    try:
        check_order(estimator, T)
    except CheckError:
        return True
    return False


def check_order(model: Any, T: Any) -> None:
    """The probability of the second of two classes does not decrease in the score."""
    values, scores = np.asarray(model.predict_proba(T)), np.asarray(model.decision_function(T))
    if values.shape[1] != 2 or scores.ndim != 1:
        return
    order = np.argsort(scores)
    if np.diff(values[order, 1]).min(initial=0.0) < -1e-9:
        text = f"from {values[order[0], 1]:.3g} to {values[order[-1], 1]:.3g}"
        raise CheckError("a probability decreases in the score", text)


def certificates(run: Run) -> None:
    """dual <= primal, and a fit that converged has a gap that is small compared with its objective."""
    certificate = getattr(run.model, "certificate_", None)
    if certificate is None:
        return
    for machine in certificate.machines:
        if not np.isfinite([machine.dual, machine.primal, machine.gap, machine.violation]).all():
            raise CheckError("a certificate is not finite", str(machine))
        scale = max(abs(machine.primal), abs(machine.dual))
        if machine.dual > machine.primal + 1e-9 * scale or machine.gap < -1e-9 * scale:
            raise CheckError("the dual objective is above the primal one", str(machine))
        # The objectives contain the possible rounding error, which may be all of a small gap.
        is_rounded = machine.violation <= 2.0 * machine.rounding
        # As documented: where the vectors of a nu machine cancel, the optimum is zero, and a small share of
        # the objective of orthogonal vectors suffices.
        scale = max(scale, _negligible(run))
        if machine.stop == "converged" and machine.gap > 0.5 * scale and scale > 1e-12 and not is_rounded:
            raise CheckError("converged with a gap that is a large share of the objective", str(machine))


def _negligible(run: Run) -> float:
    """An objective of a nu machine that counts as zero: of orthogonal or of equal vectors; 0 for others."""
    expansion = getattr(run.model, "expansion_", None)
    is_nu = run.program.call.machine.name.endswith(("OneClassSVM", "NuSVC"))
    if not is_nu or expansion is None:
        return 0.0
    X = dense(run.names["X"])
    if expansion.kernel == "precomputed":
        diagonal = np.abs(np.diag(X))
    else:
        diagonal = np.abs([reference.kernel(expansion.kernel_spec, x[None], x[None])[0, 0] for x in X])
    B = dense(expansion.coefficients)
    orthogonal = 0.5 * (B**2).sum(axis=1) @ diagonal[run.model.support_]
    equal = 0.5 * np.abs(B).sum() ** 2 * diagonal.mean()
    return float(max(1e-3 * orthogonal, 1e-9 * equal))


def exponent_rounding(spec: Any, A: np.ndarray) -> float:
    """Relative rounding of a kernel value in single precision by that of its exponent."""
    name, gamma, _, _ = spec
    if name in ("linear", "poly"):
        return 0.0
    squares = 2.0 * float((A**2).sum(axis=1).max(initial=0.0))
    return float(np.finfo(np.float32).eps) * gamma * (squares if name == "rbf" else np.sqrt(squares))


def objectives(run: Run) -> None:
    """The objectives of a binary or regression machine are those of its coefficients, computed naively."""
    model, X, w = run.model, run.names["X"], run.names["w"]
    n = X.shape[0]
    if (
        type(model) not in (svmarrow.SVC, svmarrow.SVR)
        or n > MAX_NAIVE
        or model.kernel in ("precomputed", "sigmoid")
    ):
        return
    if len(getattr(model, "classes_", "01")) > 2 or getattr(model, "loss", "hinge") != "hinge":
        return
    spec, A, y = model.expansion_.kernel_spec, dense(X), np.asarray(run.names["y"])
    K = reference.kernel(spec, A, A)
    beta = np.zeros(n)
    beta[model.support_] = dense(model.expansion_.coefficients).ravel()
    f = K @ beta + model.expansion_.intercepts
    weights = np.ones(n) if w is None else np.asarray(w, dtype=float)
    if isinstance(model, svmarrow.SVC):
        signs = np.where(y == model.classes_[1], 1.0, -1.0)
        factors = np.asarray(model.class_weight_)[(signs > 0).astype(int)]
        losses, linear = np.maximum(1.0 - signs * f, 0.0), np.abs(beta).sum()
        if (signs * beta < -1e-9 * np.abs(beta).max(initial=0.0)).any():
            raise CheckError("a coefficient has the wrong sign", str((signs * beta).min()))
    else:
        factors = np.ones(n)
        losses, linear = (
            np.maximum(np.abs(y - f) - model.epsilon, 0.0),
            y @ beta - model.epsilon * np.abs(beta).sum(),
        )
    upper = model.C * weights * factors
    if (np.abs(beta) > upper * (1.0 + 1e-9)).any():
        raise CheckError(
            "a coefficient is above its bound", str((np.abs(beta) / np.maximum(upper, 1e-300)).max())
        )
    quadratic = beta @ K @ beta
    machine = model.certificate_.machines[0]
    found = {"primal": 0.5 * quadratic + upper @ losses, "dual": linear - 0.5 * quadratic}
    sizes = (
        np.abs(beta) @ np.abs(K) @ np.abs(beta) + np.abs(y).max() * np.abs(beta).sum()
        if y.dtype.kind == "f"
        else np.abs(beta) @ np.abs(K) @ np.abs(beta) + np.abs(beta).sum()
    )
    slack = 1e-9 * (sizes + upper.sum()) + (machine.rounding + floor(model, X)) * (
        upper.sum() + np.abs(beta).sum()
    )
    for name, value in found.items():
        reported = getattr(machine, name)
        gap = found["primal"] - found["dual"]
        if name == "primal" and gap > 0.1 * found["primal"] - slack and machine.dual <= reported <= value:
            # As documented: where losses within the tolerance exceed a tenth of the objective, a smaller
            # upper bound of the optimum. `optimum` compares it with a naive solution.
            continue
        # A certificate counts its rounding outwards, that of single precision where kernel values are in it.
        outwards = reported - value if name == "primal" else value - reported
        single = (1e-8 + exponent_rounding(spec, A)) * sizes if outwards > 0.0 else 0.0
        if abs(value - reported) > 4.0 * (slack + single) + 1e-6 * abs(value):
            raise CheckError(
                f"the {name} objective is not that of the coefficients",
                f"{reported:.9g}, computed naively {value:.9g}, allowed {slack:.3g}",
            )


def optimum(run: Run) -> None:
    """dual <= optimum <= primal, with the optimum of a naive solver."""
    model, X, w = run.model, run.names["X"], run.names["w"]
    n = X.shape[0]
    if (
        type(model) is not svmarrow.SVC
        or n > 60
        or model.kernel in ("precomputed", "sigmoid")
        or w is not None
    ):
        return
    if (
        len(model.classes_) > 2
        or model.loss != "hinge"
        or not model.fit_intercept
        or model.class_weight is not None
    ):
        return
    y = np.asarray(run.names["y"])
    K = reference.kernel(model.expansion_.kernel_spec, dense(X), dense(X))
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    try:
        beta, _ = reference.solve(K, signs, np.full(n, float(model.C)), 1e-6, most=3000)
    except AssertionError:
        return
    best, machine = reference.dual_objective(K, signs, beta), model.certificate_.machines[0]
    # Products of samples far from the origin have few digits; the product's are about their center.
    rounding = n * EPSILON * np.abs(K).max() * np.abs(beta).sum() ** 2
    slack = 1e-5 * abs(best) + 1e-6 * model.C * n + rounding
    if machine.dual > best + slack or machine.primal < best - slack:
        raise CheckError(
            "the optimum is not between the objectives",
            f"{machine.dual:.9g} <= {best:.9g} <= {machine.primal:.9g}",
        )


def quantiles(run: Run) -> None:
    """At most the quantile's share of the targets lies below it, and at most the rest above."""
    model, X, w = run.model, run.names["X"], run.names["w"]
    if type(model) is not svmarrow.svm.QuantileSVR or w is not None or model.certificate_.stop != "converged":
        return
    y = np.asarray(run.names["y"], dtype=float)
    values = np.asarray(model.predict(X)).reshape(len(y), -1)
    for value, q, machine in zip(
        values.T, np.atleast_1d(model.quantile), model.certificate_.machines, strict=True
    ):
        slack = 2.0 * (machine.violation + machine.rounding) + machine.intercept_range + floor(model, X)
        slack += SINGLE * np.ptp(value)
        below, above = float(np.mean(y < value - slack)), float(np.mean(y > value + slack))
        if below > q + 1e-9 or above > 1.0 - q + 1e-9:
            raise CheckError(
                "a quantile has a larger share of the targets on one side",
                f"{q}: {below:.3g} below, {above:.3g} above",
            )


def refitted_leave_one_out(run: Run) -> None:
    """Leave-one-out predictions of least squares are those of n fits."""
    model, X, y = run.model, run.names["X"], np.asarray(run.names["y"])
    n = X.shape[0]
    if (
        type(model) is not svmarrow.RLSRegressor
        or n > 60
        or run.names["w"] is not None
        or model.kernel == "precomputed"
    ):
        return
    found, error = getattr(model, "loo_prediction_", None), solver_error(run, model)
    if found is None or error is None:
        return
    A, Y = dense(X), y.reshape(n, -1).astype(float)
    K = reference.kernel(model.expansion_.kernel_spec, A, A)
    expected = reference.refits(K, Y, model.alpha_, intercept=model.fit_intercept)
    worst = float(np.abs(found.reshape(expected.shape) - expected).max())
    condition = 1.0 + float(np.linalg.eigvalsh(K)[-1]) / model.alpha_
    # A leave-one-out residual is divided by the entry of the inverse, which cancels for a small penalty.
    limit = SINGLE * spread(expected) + condition * (error + floor(model, X))
    if not worst <= limit:
        raise CheckError(
            "leave-one-out predictions differ from those of n fits", f"by {worst:.3g}, allowed {limit:.3g}"
        )


def one_class_share(run: Run) -> None:
    """At most nu of the training samples are outside."""
    model, X, w = run.model, run.names["X"], run.names["w"]
    if type(model) is not svmarrow.OneClassSVM or model.certificate_.stop != "converged":
        return
    outside = np.asarray(model.predict(X)) == -1
    share = float(outside.mean() if w is None else outside @ w / np.sum(w))
    if share > model.nu * (1.0 + 1e-9):
        raise CheckError(
            "more than nu of the training samples are outside",
            f"nu = {model.nu}, {share:.3g} outside of {len(outside)}",
        )


def leave_one_out(run: Run) -> None:
    """Leave-one-out outputs and error bounds hold when the fit is repeated without a sample."""
    model, X, y = run.model, run.names["X"], np.asarray(run.names["y"])
    n = X.shape[0]
    if run.program.call.inner is not None or run.names["w"] is not None or n > 30 or hasattr(X, "columns"):
        return
    if type(model) is svmarrow.SVC and len(model.classes_) == 2 and model.certificate_.stop == "converged":
        if (
            model.kernel in ("precomputed", "sigmoid")
            or model.class_weight is not None
            or not isinstance(model.gamma, float)
        ):
            return
        wrong = 0
        for i in range(n):
            rows = np.delete(np.arange(n), i)
            if len(np.unique(y[rows])) < 2:
                return
            one = type(model)(**model.get_params()).fit(X[rows], y[rows])
            sign = 1.0 if y[i] == model.classes_[1] else -1.0
            wrong += bool(sign * one.decision_function(X[[i]])[0] < -10 * model.tol)
        found = model.certificate_.machines[0].leave_one_out
        if found is None:
            return
        for name, bound in (
            ("xi-alpha", found.missed + found.false_alarms if found.stable else None),
            ("loo_error_bound_", found.bound),
        ):
            if bound is not None and wrong > bound:
                raise CheckError(f"more leave-one-out errors than {name} allows", f"{wrong} > {bound} of {n}")


def least_squares(run: Run) -> None:
    """Kernel least squares solves its system of equations."""
    model, X, y, w = run.model, run.names["X"], np.asarray(run.names["y"]), run.names["w"]
    n = X.shape[0]
    if type(model) is not svmarrow.RLSRegressor or n > MAX_NAIVE or w is not None:
        return
    if model.kernel == "precomputed" or model.alphas is not None or model.solver == "cg":
        return
    error = solver_error(run, model)
    if error is None:
        return
    spec, A, T = model.expansion_.kernel_spec, dense(X), run.names["T"]
    K = reference.kernel(spec, A, A)
    Y = y.reshape(n, -1).astype(float)
    c, b = reference.least_squares(K, Y, model.alpha, intercept=model.fit_intercept)
    expected = reference.kernel(spec, dense(T), A) @ c + b
    found = np.asarray(model.predict(T)).reshape(expected.shape)
    relative = SINGLE if has_narrow_rows(run) else 1e-5
    limit = relative * spread(expected) + error + floor(model, T, X)
    worst = float(np.abs(found - expected).max())
    if not worst <= limit:
        raise CheckError(
            "the solution differs from that of the naive system",
            f"by {worst:.3g}, allowed {limit:.3g}, spread {spread(expected):.3g}",
        )


def precomputed(run: Run) -> None:
    """An unsymmetric kernel matrix is refused."""
    model = run.model
    machine = run.program.call.machine
    if machine.parameters.get("kernel") != "precomputed" or not is_arrow(run.model):
        return
    if ".KMP" in machine.name:
        # A dictionary of functions, whose kernels need not be symmetric.
        return
    X = dense(run.names["X"])
    if (
        run.program.call.inner is None
        and X.shape[0] == X.shape[1]
        and np.abs(X - X.T).max() > 1e-3 * np.abs(X).max()
    ):
        raise CheckError("an unsymmetric precomputed matrix is accepted", type(model).__name__)


INVARIANTS = [
    precomputed,
    finite,
    classes,
    probabilities,
    certificates,
    objectives,
    optimum,
    one_class_share,
    quantiles,
    leave_one_out,
    least_squares,
    refitted_leave_one_out,
]


# --- figures that the product reports ---


def check_programs_of_a_tree(model: Any, T: Any) -> None:
    """A compiled tree answers as the tree, but for the rounding of its sums."""
    tree = model.expansion_
    if not isinstance(tree, ExpansionTree) or not isinstance(T, np.ndarray) or T.dtype == object:
        return
    if tree.kernel not in UNIT_DIAGONAL_KERNELS or len(T) == 0:
        return
    T = T.astype(np.float64)
    method = "predict" if model.compiled().decision_function is None else "decision_function"
    expected = np.asarray(getattr(model, method)(T))
    found = np.array([getattr(model.compiled(), method)(row) for row in T.tolist()])
    sizes = np.abs(tree.state["weights"]).sum() + np.abs(tree.state["intercepts"]).max()
    # The sums of the leaf are in single precision where that is enough.
    limit = 1e3 * np.finfo(np.float32 if tree.vectors.dtype == np.float32 else float).eps * sizes
    off = np.abs(found.reshape(expected.shape) - expected).max()
    if not off <= limit + 1e-9 * np.abs(expected).max():
        raise CheckError("a compiled tree", f"is {off} off, where {limit} is allowed")


def check_loss_bound(model: Any, small: Any, T: Any, y_T: Any) -> None:
    """The loss on the validation samples is the difference of the scores."""
    bound = getattr(small, "loss_bound_", None)
    if bound is None or bound.loss is None or bound.measure not in ("accuracy", "r2"):
        return
    # Rounding of labels near the boundary.
    limit = 1.5 / len(y_T) if bound.measure == "accuracy" else 5e-3
    if not is_arrow(model):
        # scikit-learn's products of rows in single precision may have no digit left. A Normalizer leaves
        # other samples as they are in double precision.
        is_single = getattr(T, "dtype", None) == np.float32 and "Normalizer" not in str(model)
        T = T.astype(np.float64) if is_single else T
        rounding = floor(model, T)
        if bound.measure == "accuracy":
            limit += float(undecided(model, T, ROUNDING, rounding).mean())
        elif rounding > SINGLE * spread(np.asarray(model.predict(T))):
            # Its sums of huge kernel values have no digit left either.
            return
    loss = _score(model, T, y_T) - _score(small, T, y_T)
    if bound.measure == "r2":
        limit *= 1.0 + abs(_score(model, T, y_T))
    if bound.n_samples == len(y_T) and abs(bound.loss - loss) > limit:
        raise CheckError(
            "loss_bound_.loss is not the loss",
            f"{bound.loss:.3g}, the scores differ by {loss:.3g} ({bound.measure})",
        )
    if bound.upper is not None and bound.upper < bound.loss - 1e-9:
        raise CheckError("loss_bound_.upper is below the loss", str(bound))


def check_quantization(model: Any, quantized: Any, T: Any, y_T: Any) -> None:
    """The measured disagreement and scores are those of the models."""
    measured = getattr(quantized, "quantization_", None)
    if measured is None:
        # A bare expansion has no place for the record.
        return
    if not is_arrow(model):
        # scikit-learn's machines compute samples in single precision with kernel values in single precision.
        model = svmarrow.as_expansion(model)
    if measured.disagreement is not None and hasattr(model, "classes_"):
        found = float(np.mean(np.asarray(model.predict(T)) != np.asarray(quantized.predict(T))))
        if abs(found - measured.disagreement) > 1.5 / len(y_T):
            raise CheckError(
                "quantize reports another disagreement", f"{measured.disagreement:.3g}, found {found:.3g}"
            )
    if measured.score_before is not None:
        found = _score(model, T, y_T)
        limit = 1.5 / len(y_T) if hasattr(model, "classes_") else 5e-3 * (1.0 + abs(found))
        if abs(found - measured.score_before) > limit:
            raise CheckError(
                "quantize reports another score", f"{measured.score_before:.6g}, found {found:.6g}"
            )


def _score(model: Any, T: Any, y_T: Any) -> float:
    predictions = np.asarray(model.predict(T))
    if not hasattr(model, "classes_"):
        return float(r2_score(y_T, predictions))
    return float(accuracy_score(np.asarray(y_T).astype(str), predictions.astype(str)))
