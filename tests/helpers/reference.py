"""Naive double-precision oracles: the formulas as printed, no blocks, no cache, no single precision."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from svmarrow import compression_path
from svmarrow.papers import reduced_set

#: Selections of vectors that `svmarrow.papers.reduced_set.path` has and `compression_path` does not.
PAPER_METHODS = ("basic", "l0", "l1", "lars")


def kernel(spec, X, Z):
    """K(X, Z) by its definition; ``spec`` is (name, gamma, coef0, degree)."""
    name, gamma, coef0, degree = spec
    X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
    difference = X[:, None, :] - Z[None, :, :]
    total = X[:, None, :] + Z[None, :, :]
    match name:
        case "linear":
            return X @ Z.T
        case "poly":
            return (gamma * (X @ Z.T) + coef0) ** degree
        case "sigmoid":
            return np.tanh(gamma * (X @ Z.T) + coef0)
        case "rbf":
            return np.exp(-gamma * (difference**2).sum(axis=2))
        case "laplacian":
            return np.exp(-gamma * np.abs(difference).sum(axis=2))
        case "chi2":
            terms = np.divide(difference**2, total, out=np.zeros_like(total), where=total > 0)
            return np.exp(-gamma * terms.sum(axis=2))
        case "matern12" | "matern32" | "matern52":
            twice_nu = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0}[name]
            a = np.sqrt(twice_nu) * gamma * np.sqrt((difference**2).sum(axis=2))
            return {1.0: 1.0, 3.0: 1.0 + a, 5.0: 1.0 + a + a**2 / 3.0}[twice_nu] * np.exp(-a)
    raise ValueError(name)


def decision(spec, X, Z, coefficients, intercepts):
    """K(X, Z) B + b."""
    return kernel(spec, X, Z) @ coefficients + intercepts


# --- construction: vectors moved by the slope of a loss ---


def construction_loss(spec, Z, B, b, X, loss, targets=None, sharpness=1.0, signs=None):
    """Mean loss over the rows: "matching" and "agreement" (softmax) to ``targets``, hinges to ``signs``."""
    F = decision(spec, X, Z, B, b)
    if loss == "matching":
        return float((0.5 * (F - targets) ** 2).sum(axis=1).mean())
    if loss == "agreement":
        logits, shares = sharpness * F, np.exp(sharpness * targets)
        shares /= shares.sum(axis=1, keepdims=True)
        logarithms = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return float(-(shares * logarithms).sum(axis=1).mean() / sharpness)
    lacking = np.maximum(0.0, 1.0 - signs * F)
    return float((lacking if loss == "hinge" else 0.5 * lacking**2).sum(axis=1).mean())


def slope(value, at, step=1e-6):
    """Central differences of a function of an array."""
    out = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        out[index] = (value(up) - value(down)) / (2 * step)
    return out


# --- support vector machines ---


def dual_objective(K, signs, beta):
    """sum alpha - 1/2 alpha'Q alpha for signed coefficients beta = y alpha."""
    return float(signs @ beta - 0.5 * beta @ K @ beta)


def violation(K, signs, upper, beta):
    """How far beta is from optimal: the largest gradient difference along a feasible pair."""
    rise = np.where(signs > 0, beta < upper, beta < 0)
    fall = np.where(signs > 0, beta > 0, beta > -upper)
    steepest = signs - K @ beta
    return float(max(0.0, steepest[rise].max() - steepest[fall].min()))


def feasible(signs, upper, beta, atol):
    """Whether 0 <= y beta <= C and sum beta = 0."""
    alpha = signs * beta
    return bool(
        (alpha >= -atol).all() and (alpha <= upper + atol).all() and abs(beta.sum()) <= atol * len(beta)
    )


def solve(K, signs, upper, tolerance=1e-10, most=1_000_000):
    """The dual by pair steps on the whole gradient, first-order pair choice: (beta, b)."""
    beta = np.zeros(len(signs))
    steepest = signs.astype(np.float64)
    low, high = np.where(signs > 0, 0.0, -upper), np.where(signs > 0, upper, 0.0)
    for _ in range(most):
        up = np.where(beta < high, steepest, -np.inf)
        down = np.where(beta > low, steepest, np.inf)
        i, j = int(np.argmax(up)), int(np.argmin(down))
        if up[i] - down[j] <= tolerance:
            free = (beta > low) & (beta < high)
            b = steepest[free].mean() if free.any() else 0.5 * (up[i] + down[j])
            return beta, float(b)
        curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        step = min((steepest[i] - steepest[j]) / curvature, high[i] - beta[i], beta[j] - low[j])
        beta[i] = high[i] if step == high[i] - beta[i] else beta[i] + step
        beta[j] = low[j] if step == beta[j] - low[j] else beta[j] - step
        steepest -= step * (K[i] - K[j])
    raise AssertionError("the oracle did not converge")


def solve_one_class(K, weights, nu, tolerance=1e-9, most=1_000_000):
    """The one-class dual by pair steps, in units of nu W: (beta, lowest and highest offset of an optimum)."""
    total = nu * weights.sum()
    upper = weights / total
    beta = np.clip(1.0 - (np.cumsum(upper) - upper), 0.0, upper)
    outputs = K @ beta
    for _ in range(most):
        up, down = (
            np.where(free, outputs, bad) for free, bad in ((beta < upper, np.inf), (beta > 0, -np.inf))
        )
        i, j = int(np.argmin(up)), int(np.argmax(down))
        if down[j] - up[i] <= tolerance:
            return total * beta, total * down[j], total * up[i]
        curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        step = min((outputs[j] - outputs[i]) / curvature, upper[i] - beta[i], beta[j])
        beta[i] = upper[i] if step == upper[i] - beta[i] else beta[i] + step
        beta[j] = 0.0 if step == beta[j] else beta[j] - step
        outputs += step * (K[i] - K[j])
    raise AssertionError("the oracle did not converge")


def machines(model, y):
    """(output, rows, signs, beta) of each binary machine of a fitted SVC, ours or scikit-learn's ovo."""
    classes, labels = np.unique(y, return_inverse=True)
    k, n = len(classes), len(y)
    if hasattr(model, "expansion_"):
        coefficients = model.expansion_.coefficients
    else:
        coefficients = pairwise(np.asarray(model.dual_coef_), model.n_support_)
    for output in range(coefficients.shape[1]):
        beta = np.zeros(n)
        beta[model.support_] = coefficients[:, output]
        if k == 2:
            rows, positive = np.arange(n), labels == 1
        elif coefficients.shape[1] == k and getattr(model, "multi_class", "ovo") == "ovr":
            rows, positive = np.arange(n), labels == output
        else:
            a, b = [(a, b) for a in range(k) for b in range(a + 1, k)][output]
            rows = np.flatnonzero((labels == a) | (labels == b))
            positive = labels == a
        yield output, rows, np.where(positive[rows], 1.0, -1.0), beta[rows]


def pairwise(dual_coef, counts):
    """LIBSVM's (k - 1, m) coefficients spread to (m, k (k - 1) / 2)."""
    k = len(counts)
    if k == 2:
        return dual_coef.T
    own = np.repeat(np.arange(k), counts)
    pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
    return np.column_stack(
        [np.where(own == a, dual_coef[b - 1], 0) + np.where(own == b, dual_coef[a], 0) for a, b in pairs]
    )


def least_squares(K, Y, alpha, *, intercept=False):
    """(K + alpha I) c + b = y as one dense system, bordered by ones for an intercept: (c, b)."""
    n = len(K)
    A = K + alpha * np.eye(n)
    if not intercept:
        return np.linalg.solve(A, Y), np.zeros(Y.shape[1])
    A = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(A, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:n], solution[n]


def refits(K, Y, alpha, *, intercept=False):
    """f^(-i)(x_i) by n fits."""
    out = np.empty_like(Y)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        c, b = least_squares(K[np.ix_(rest, rest)], Y[rest], alpha, intercept=intercept)
        out[i] = K[i, rest] @ c + b
    return out


# Matching pursuit (Vincent and Bengio, 2002)


def matching_pursuit(D, y, n, variant, constant=False, weights=None):
    """Figures 1 and 3 and section 2.2 as printed, several targets together: (order, coefficients a step).

    Pre-fitting keeps the residual dictionary and the coefficients of its part inside the span, as the figure.
    """
    s = np.ones(len(D)) if weights is None else np.sqrt(weights)
    D, Y = D * s[:, None], np.asarray(y, dtype=np.float64).reshape(len(D), -1) * s[:, None]
    if constant:
        D = np.column_stack([s, D])
    outside, inside = D.copy(), np.zeros((0, D.shape[1]))
    R, order, steps, alpha = Y.copy(), [], [], np.zeros((0, Y.shape[1]))
    own = np.sqrt((D**2).sum(axis=0))
    while len(order) < n + constant:
        candidates = outside if variant == "prefit" else D
        length = np.sqrt((outside**2).sum(axis=0)) if variant == "prefit" else own
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.sqrt(((candidates.T @ R) ** 2).sum(axis=1)) / length
        if variant != "basic":
            score[(outside**2).sum(axis=0) <= 1e-10 * own**2] = -np.inf
        best = 0 if constant and not order else int(np.nanargmax(score))
        if variant == "basic":
            step = D[:, best] @ R / own[best] ** 2
            R = R - np.outer(D[:, best], step)
            order.append(best)
            steps.append(step)
            continue
        g = outside[:, best].copy()
        a = g @ R / (g @ g)
        R = R - np.outer(g, a)
        alpha = np.vstack([alpha - np.outer(inside[:, best], a), a])
        beta = g @ outside / (g @ g)
        outside = outside - np.outer(g, beta)
        inside = inside - np.outer(inside[:, best], beta)
        outside[:, best], inside[:, best], beta[best] = 0.0, 0.0, 1.0
        inside = np.vstack([inside, beta])
        order.append(best)
        steps.append(alpha.copy())
    shift = int(constant)
    return np.array(order[shift:]) - shift, steps


# Codes: naive oracles of the multiclass module.

LOSSES = {
    "hinge": lambda z: np.maximum(0.0, 1.0 - z),
    "squared_hinge": lambda z: np.maximum(0.0, 1.0 - z) ** 2,
    "square": lambda z: (1.0 - z) ** 2,
    "logistic": lambda z: np.logaddexp(0.0, -z),
    "exponential": lambda z: np.exp(-z),
    "perceptron": lambda z: np.maximum(0.0, -z),
}


def code_scores(outputs, matrix, decoder):
    """Scores (n, N) of outputs (n, F), term by term (thesis (4.42), (4.43))."""
    scores = np.zeros((len(outputs), len(matrix)))
    for row, f in enumerate(outputs):
        for r, entries in enumerate(matrix):
            z = entries * f
            if decoder == "hamming":
                scores[row, r] = -sum((1.0 - np.sign(v)) / 2.0 for v in z)
            elif decoder == "votes":
                sides = np.where(f > 0, 1, -1)
                scores[row, r] = np.count_nonzero(entries == sides)
            elif decoder.startswith("mean_"):
                scores[row, r] = -LOSSES[decoder.removeprefix("mean_")](z[entries != 0]).mean()
            else:
                scores[row, r] = -LOSSES[decoder](z).sum()
    return scores


def knock_out(outputs, n_classes):
    """The class that is left of a list whose ends meet (Platt's DAG); pairs a < b, positive for a."""
    pairs = [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]
    winners = []
    for f in outputs:
        left = list(range(n_classes))
        while len(left) > 1:
            first, last = left[0], left[-1]
            left.remove(last if f[pairs.index((first, last))] > 0 else first)
        winners.append(left[0])
    return np.array(winners)


def code_distances(matrix):
    """Smallest distance of rows, and of columns or their opposites (thesis (4.48))."""
    matrix = np.asarray(matrix, dtype=np.int64)
    n, f = matrix.shape
    rows = min((f - matrix[a] @ matrix[b]) / 2 for a in range(n) for b in range(a))
    inner = [abs(matrix[:, a] @ matrix[:, b]) for a in range(f) for b in range(a)]
    return rows, (n - max(inner)) / 2 if inner else np.nan


def leave_one_out_suspects(outputs, moves, labels, matrix, decoder, slack):
    """Rows that some corner of the intervals [f, f - moves] turns (thesis 4.4.1), by all corners."""
    suspects = np.zeros(len(labels), dtype=bool)
    f = outputs.shape[1]
    for j, y in enumerate(labels):
        low = np.minimum(outputs[j], outputs[j] - moves[j]) - slack
        high = np.maximum(outputs[j], outputs[j] - moves[j]) + slack
        corners = np.array([np.where([(c >> i) & 1 for i in range(f)], high, low) for c in range(2**f)])
        suspects[j] = (np.argmax(code_scores(corners, matrix, decoder), axis=1) != y).any()
    return suspects


def projection_bounds(expansion, kept, X):
    """||w_j - w^_j|| sqrt(k(x, x) - k_S(x)' K_S^-1 k_S(x)), S the vectors `kept`, (n, q)."""
    spec = expansion.kernel_spec
    Z, B = np.asarray(expansion.vectors, dtype=np.float64), expansion.coefficients
    kept, X = np.asarray(kept, dtype=np.float64), np.asarray(X, dtype=np.float64)
    K = kernel(spec, kept, kept)
    of_w = kernel(spec, kept, Z) @ B
    norms = (B * (kernel(spec, Z, Z) @ B)).sum(axis=0) - (of_w * np.linalg.solve(K, of_w)).sum(axis=0)
    k = kernel(spec, kept, X)
    own = np.array([kernel(spec, x[None], x[None])[0, 0] for x in X])
    distances = own - (k * np.linalg.solve(K, k)).sum(axis=0)
    return np.sqrt(np.maximum(distances, 0))[:, None] * np.sqrt(np.maximum(norms, 0))[None]


def margin_losses():
    """Losses of Vincent and Bengio, 3.2, with their derivatives in f, for targets -1 and 1."""
    t = np.tanh
    return {
        "squared_error": (lambda y, f: 0.5 * (f - y) ** 2, lambda y, f: f - y),
        "squared_tanh": (
            lambda y, f: (t(f) - 0.65 * y) ** 2,
            lambda y, f: 2 * (t(f) - 0.65 * y) * (1 - t(f) ** 2),
        ),
        "logistic": (
            lambda y, f: np.log2(1 + np.exp(-2 * y * f)),
            lambda y, f: -2 * y / (1 + np.exp(2 * y * f)) / np.log(2),
        ),
        "exponential": (lambda y, f: np.exp(-y * f), lambda y, f: -y * np.exp(-y * f)),
        "one_minus_tanh": (lambda y, f: 1 - t(y * f), lambda y, f: -y * (1 - t(y * f) ** 2)),
        "squared_hinge": (
            lambda y, f: np.maximum(0, 1 - y * f) ** 2,
            lambda y, f: -2 * y * np.maximum(0, 1 - y * f),
        ),
        "soft_margin": (
            lambda y, f: np.where(y * f > 0.9, 5 * np.maximum(0, 1 - y * f) ** 2, 0.95 - y * f),
            lambda y, f: -y * np.clip(10 * (1 - y * f), 0, 1),
        ),
        "huber": (
            lambda y, f: np.where(abs(f - y) <= 1, 0.5 * (f - y) ** 2, abs(f - y) - 0.5),
            lambda y, f: np.clip(f - y, -1, 1),
        ),
    }


def loss_pursuit(D, y, n, loss, every=None):
    """Figure 4 as printed: (order of the steps, coefficients by candidate after each step)."""
    value, slope = loss
    a, order, steps = np.zeros(D.shape[1]), [], []
    for step in range(1, n + 1):
        f = D @ a
        best = int(np.argmax(np.abs(D.T @ slope(y, f)) / np.linalg.norm(D, axis=0)))
        order.append(best)
        if every is None or step % every:
            g = D[:, best]
            a[best] += minimize_scalar(lambda x, f=f, g=g: value(y, f + x * g).sum(), tol=1e-12).x
        else:
            chosen = sorted(set(order))
            S = D[:, chosen]
            a[chosen] = minimize(
                lambda c, S=S: value(y, S @ c).sum(),
                a[chosen],
                jac=lambda c, S=S: S.T @ slope(y, S @ c),
                method="BFGS",
                options={"gtol": 1e-9, "maxiter": 5000},
            ).x
        steps.append(a.copy())
    return order, steps


def subset_of_regressors(K_lm, K_mm, Y, alpha, *, intercept=False):
    """(c, b, H) of equation 3.86, dense; H turns targets into fitted values."""
    P = np.hstack([K_lm, np.ones((len(K_lm), 1))]) if intercept else K_lm
    R = np.zeros((P.shape[1], P.shape[1]))
    R[: len(K_mm), : len(K_mm)] = alpha * K_mm
    G = np.linalg.inv(P.T @ P + R)
    solution = G @ P.T @ Y
    b = solution[-1] if intercept else np.zeros(Y.shape[1])
    return solution[: len(K_mm)], b, P @ G @ P.T


# Reduced sets


def greedy(inner, aligned, norm2, rule, steps):
    """A pursuit by its definition (Weston & Bakir, TR-132, Alg. 3.2, eq. 6, 7, 12 and 13).

    ``inner`` (m, m) are the inner products of the candidates, ``aligned`` (m, q) those with the target, and
    ``norm2`` is the target's squared norm. Returns a list of (candidates, coefficients, residual norm), one
    after each step; basic steps may come back to a candidate.
    """
    m, q = aligned.shape
    own = np.diag(inner)
    chosen, B, path = [], np.zeros((0, q)), []
    for _ in range(steps):
        missing = aligned - inner[:, chosen] @ B
        gain = (missing**2).sum(axis=1) / own
        if rule != "basic":
            gain[chosen] = -1.0
        if rule == "prefit":
            gain = np.full(m, -1.0)
            for p in set(range(m)) - set(chosen):
                S = [*chosen, p]
                gain[p] = (aligned[S] * np.linalg.solve(inner[np.ix_(S, S)], aligned[S])).sum()
        best = int(gain.argmax())
        if rule == "basic":
            if best not in chosen:
                chosen, B = [*chosen, best], np.vstack([B, np.zeros((1, q))])
            B[chosen.index(best)] += missing[best] / own[best]
        else:
            chosen = [*chosen, best]
            B = np.linalg.solve(inner[np.ix_(chosen, chosen)], aligned[chosen])
        rest2 = norm2 - 2 * (B * aligned[chosen]).sum() + (B * (inner[np.ix_(chosen, chosen)] @ B)).sum()
        path.append((list(chosen), B.copy(), np.sqrt(max(rest2, 0.0))))
    return path


def path_by(method, model, *arguments, **options):
    """The path by a method, of `compression_path` or of `svmarrow.papers.reduced_set.path`."""
    run = reduced_set.path if method in PAPER_METHODS else compression_path
    return run(model, *arguments, method=method, **options)


def largest(model, *arguments, method="backfit", **options):
    """The largest model of a `path_by` a method."""
    path = path_by(method, model, *arguments, **options)
    return path[path.sizes[-1]]
