"""Stability and bounds beside the thesis (Rifkin, MIT 2002, chapter 5, and the bounds of 4.3 and 4.4.1).

The chapter has theorems and no experiment. Here each of them is met by real refits.

Parts:

* ``codes``: every bound of a coded model on one page, code by code: (4.51), (4.60), (5.34), beside the truth;
* ``lambda``: where (5.34) begins to say something;
* ``stability``: (5.8), how far a loss moves when a row leaves, beside refits without the row;
* ``bagging``: (5.25)-(5.27), a row replaced in disjoint chunks, beside one machine of all rows;
* ``ivanov``: the counterexample of section 5.2, and what an unregularized b does to stability.

A full run takes about five minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, arguments, chunk_average, load, plain_ticks, run
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVR, CodedClassifier, RLSClassifier, RLSRegressor, as_expansion
from svmarrow.papers import rifkin

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

PARTS = ("codes", "lambda", "stability", "bagging", "ivanov")
CODES = ("ovr", "complete", "dense", "ovo", "sparse")
DELTA = 0.05


def satimage(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The set of tables 4.5 and 4.6, divided by 100 as there."""
    rows = load("satimage")
    size = 600 if options.quick else None
    return rows.X[:size] / 100, rows.y[:size], rows.X_test / 100, rows.y_test


def slopes(x: Any, values: Any) -> float:
    """The power of x that values go with."""
    return float(np.polyfit(np.log(x), np.log(values), 1)[0])


def codes(report: Report, options: argparse.Namespace) -> None:
    """All bounds, code by code."""
    X, y, T, t = satimage(options)
    n = len(y)
    report.say(f"{n} training and {len(t)} test samples. Codes with zeros have no G.")
    table = []
    for name in CODES:
        for what, machine in (
            ("SVM", SVC(C=2.0, gamma=8.0, fit_intercept=False)),
            ("RLS", RLSClassifier(0.25, gamma=8.0, leave_one_out=True)),
        ):
            model = CodedClassifier(machine, code=name, random_state=0).fit(X, y)
            code = model.code_
            labels = np.searchsorted(model.classes_, y)
            outputs = np.asarray(model.expansion_.decision_function(X)).reshape(n, -1)
            own = "hinge" if what == "SVM" else "square"
            training = rifkin.training_error(code, outputs, labels, loss=own)
            left_out = rifkin.leave_one_out(model, X, y)
            zeros = code.has_zeros
            expected = (
                None if zeros else rifkin.multiclass_generalization_of(model, X, y, delta=DELTA, gamma=1.0)
            )
            table.append(
                [
                    name,
                    what,
                    code.n_columns,
                    "zeros" if zeros else code.largest_difference,
                    1 - model.score(X, y),
                    training.value,
                    float(model.loo_error_) if what == "RLS" else "not computed",
                    left_out.value,
                    1 - model.score(T, t),
                    "none" if expected is None else expected.terms["machine_beta"],
                    "none" if expected is None else expected.value,
                ]
            )
    report.table(
        "Bounds of a coded model and what they bound",
        [
            "code",
            "machine",
            "columns",
            "G",
            "training error",
            "(4.51)",
            "leave-one-out",
            "(4.60)",
            "test error",
            "beta of a machine",
            "(5.34)",
        ],
        table,
    )
    below = [row for row in table if row[4] > row[5] or (row[1] == "RLS" and row[6] > row[7])]
    report.say(
        f"{len(below)} of {len(table)} rows have a bound below the value it bounds. (5.34) is nearly "
        f"proportional to G: "
        + ", ".join(f"{row[0]} {row[10] / row[3]:.3g} times G" for row in table[::2] if row[10] != "none")
        + " (SVM)."
    )
    report.numbers["codes"] = table


def along_lambda(report: Report, options: argparse.Namespace) -> None:
    """Where the bound for rows to come begins to say something."""
    table = []
    for name, (X, y, T, t), gamma in (
        ("satimage", satimage(options), 0.5),
        ("letter", _letter(options), 1 / 32),
    ):
        n = len(y)
        for lam in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
            machine = SVC(C=1 / (2 * lam * n), gamma=gamma, fit_intercept=False)
            model = CodedClassifier(machine, code="ovr").fit(X, y)
            for width in (0.1, 1.0):
                bound = rifkin.multiclass_generalization_of(model, X, y, delta=DELTA, gamma=width)
                table.append(
                    [name, n, lam, width, 1 - model.score(T, t), bound.terms["empirical"], bound.value]
                )
    report.table(
        "One-vs-rest, SVM without intercept",
        ["set", "samples", "lambda", "gamma", "test error", "ramp loss on training samples", "(5.34)"],
        table,
    )
    best = {name: min((row[6], row[4]) for row in table if row[0] == name) for name in ("satimage", "letter")}
    report.say(
        "The lowest values are "
        + " and ".join(f"{v:.3g} ({name}, error rate of the model {e:.3g})" for name, (v, e) in best.items())
        + ": the bound is below 1 "
        + ("somewhere" if min(best.values())[0] < 1 else "nowhere")
        + ". It can compare codes and losses; its value is of no use."
    )
    report.numbers["lambda"] = table


def _letter(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rows = load("letter")
    size = 1500 if options.quick else 4000
    return rows.X[:size], rows.y[:size], rows.X_test, rows.y_test


def stability(report: Report, options: argparse.Namespace) -> None:
    """(5.8) beside refits."""
    from matplotlib.figure import Figure

    rows = load("usps")
    y, T = np.where(rows.y == 4, 1, -1), rows.X_test
    sizes = (125, 250) if options.quick else (250, 500, 1000, 2000)
    losses: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "hinge": lambda m: np.maximum(0, 1 - m),
        "square": lambda m: (1 - m) ** 2,
    }
    page = Figure(figsize=(10, 4.5))
    table, fits = [], []
    for axis, (loss, value) in zip(page.subplots(1, 2), losses.items(), strict=True):
        for lam, colour in ((1e-3, "tab:blue"), (0.1, "tab:orange")):
            own = []
            for n in sizes:
                machine: Any = RLSClassifier(lam * n, gamma=0.02)
                if loss == "hinge":
                    machine = SVC(C=1 / (2 * lam * n), gamma=0.02, fit_intercept=False, tol=1e-6)
                X, every = rows.X[:n], np.arange(n)
                whole = clone(machine).fit(X, y[:n])
                sizes_of = np.zeros(n)
                support = getattr(whole, "support_", None)
                sizes_of[every if support is None else support] = np.abs(whole.expansion_.coefficients[:, 0])
                drawn = np.random.default_rng(n).permutation(n)[:12]
                left = np.unique(np.concatenate([np.argsort(-sizes_of)[:12], drawn]))
                before = whole.decision_function(T)
                moved = 0.0
                for i in left:
                    kept = np.delete(every, i)
                    after = machine.fit(X[kept], y[kept]).decision_function(T)
                    for sign in (1, -1):
                        moved = max(moved, float(np.abs(value(sign * before) - value(sign * after)).max()))
                beta = rifkin.stability(loss, n=n, lam=lam, kappa=1.0).value
                own.append((n, moved, beta))
                table.append([loss, lam, n, moved, beta, beta / moved])
            line = np.array(own)
            axis.loglog(line[:, 0], line[:, 1], "o-", color=colour, label=f"refits, lambda {lam:g}")
            axis.loglog(line[:, 0], line[:, 2], "--", color=colour, label=f"(5.8), lambda {lam:g}")
            fits.append((loss, lam, slopes(line[:, 0], line[:, 1])))
        axis.set(title=loss, xlabel="samples", ylabel="movement of the loss")
        plain_ticks(axis.xaxis, sizes)
        axis.legend()
    page.tight_layout()
    report.figure(page, "stability")
    report.table(
        "(5.8) and refits", ["loss", "lambda", "samples", "refits", "(5.8)", "bound / refits"], table
    )
    report.say(
        f"The bound holds in {sum(row[3] <= row[4] for row in table)} of {len(table)} lines. The observed "
        f"change falls as n to the power "
        + ", ".join(f"{slope:.2f} ({loss}, lambda {lam:g})" for loss, lam, slope in fits)
        + "; the bound has -1."
    )
    report.numbers["stability"] = table


def bagging(report: Report, options: argparse.Namespace) -> None:
    """(5.25)-(5.27) beside refits."""
    from matplotlib.figure import Figure

    p = 100 if options.quick else 200
    counts = (1, 2, 4) if options.quick else (1, 2, 4, 8, 16)
    report.say(
        "scikit-learn's `VotingRegressor` averages over disjoint chunks of 200 samples, n = 200 J, and "
        "`as_expansion` makes one expansion of it. *alpha* is "
        "the largest change of the output over 2,000 other samples; *alpha of a chunk* is that of the"
        " machine which had the sample. The machines are SVR with C = 10 and an intercept, RLS with "
        "alpha = .01, and RLS with lambda = .01 held, alone on all n samples and as an average."
    )
    X, y = load("kin8nm").all()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = StandardScaler().fit_transform(X)[order], ((y - y.mean()) / y.std())[order]
    T, t = X[-2000:], y[-2000:]
    machines: dict[str, Any] = {
        "SVR, C = 10": SVR(C=10.0, epsilon=0.1, gamma=0.1, tol=1e-5),
        "RLS, alpha = .01": RLSRegressor(0.01, gamma=0.1),
        "RLS, lambda = .01": None,
    }
    page = Figure(figsize=(6, 4.5))
    axis, table, powers = page.subplots(), [], []
    for name, base in machines.items():
        line = []
        for J in counts:
            n = p * J
            machine = RLSRegressor(0.01 * p, gamma=0.1) if base is None else base
            single = RLSRegressor(0.01 * n, gamma=0.1) if base is None else base
            where = [np.arange(chunk, n, J) for chunk in range(J)]

            def averaged(
                targets: np.ndarray, machine: Any = machine, where: Any = where
            ) -> tuple[np.ndarray, Any]:
                ensemble = chunk_average(machine, X, targets, where)
                return as_expansion(ensemble).predict(T), ensemble.estimators_

            def alone_on_all(targets: np.ndarray, single: Any = single, n: int = n) -> np.ndarray:
                return single.fit(X[:n], targets).predict(T)

            targets = y[:n].copy()
            f, parts = averaged(targets)
            pieces = [part.predict(T) for part in parts]
            g = alone_on_all(targets)
            errors = [float(((values - t) ** 2).mean()) for values in (f, g)]
            moved = chunk = alone = equal = 0.0
            for i in range(6):
                other = targets.copy()
                other[i] = -3.0 if targets[i] > 0 else 3.0
                after, changed = averaged(other)
                d = next(k for k, rows in enumerate(where) if i in rows)
                own = float(np.abs(changed[d].predict(T) - pieces[d]).max())
                step = float(np.abs(after - f).max())
                moved, chunk = max(moved, step), max(chunk, own)
                equal = max(equal, abs(step - own / J))
                alone = max(alone, float(np.abs(alone_on_all(other) - g).max()))
            bound = rifkin.bagging_stability(chunk, chunk=p, n=n).value
            line.append((n, moved, alone))
            table.append([name, J, n, chunk, moved, bound, equal, alone, *errors])
        values = np.array(line)
        powers.append((name, slopes(values[:, 0], values[:, 1]), slopes(values[:, 0], values[:, 2])))
        (drawn,) = axis.loglog(values[:, 0], values[:, 1], "o-", label=f"{name}, chunks")
        axis.loglog(values[:, 0], values[:, 2], "--", color=drawn.get_color(), label=f"{name}, one machine")
    axis.set(xlabel="samples", ylabel="largest change of an output", title="a sample replaced")
    plain_ticks(axis.xaxis, [p * J for J in counts])
    axis.legend(fontsize=8)
    report.figure(page, "bagging")
    report.table(
        "(5.27) and refits",
        [
            "machine",
            "J",
            "samples",
            "alpha of a chunk",
            "alpha of the average",
            "(5.27)",
            "off (5.25) by",
            "alpha of one machine on all samples",
            "squared error, chunks",
            "squared error, one machine",
        ],
        table,
    )
    report.say(
        f"(5.27) holds in {sum(row[4] <= row[5] * (1 + 1e-6) for row in table)} of {len(table)} lines; "
        f"(5.25) holds with equality up to the values of its column. The change falls as n to the power "
        + ", ".join(f"{a:.2f} with chunks and {b:.2f} with one machine ({name})" for name, a, b in powers)
        + "."
    )
    report.numbers["bagging"] = table


def ivanov(report: Report, options: argparse.Namespace) -> None:
    """The counterexample of section 5.2."""
    report.say(
        "The functions are lines through the origin, with the square loss. n - 1 samples are at (0, "
        "0) and one at (1, 0), which is replaced by (1, 1). Ivanov: the slope within [-1, 1] of the "
        "smallest squared error, in closed form. Tikhonov: `RLSRegressor` with the linear kernel, no "
        "intercept, alpha = lambda n, lambda = .1. The table has the change of the loss at (1, 0), "
        "and twice (5.8), since a replacement is two removals."
    )
    sizes = (10, 100) if options.quick else (10, 30, 100, 300, 1000, 3000)
    table = []
    for n in sizes:
        x = np.zeros((n, 1))
        x[-1] = 1.0
        slope = {}
        for target in (0.0, 1.0):
            y = np.zeros(n)
            y[-1] = target
            free = float(x[:, 0] @ y / (x[:, 0] @ x[:, 0]))
            ridge = RLSRegressor(0.1 * n, kernel="linear").fit(x, y)
            slope[target] = (min(max(free, -1.0), 1.0), float(ridge.predict([[1.0]])[0]))
        change = [abs(slope[1.0][k] ** 2 - slope[0.0][k] ** 2) for k in (0, 1)]
        bound = 2 * rifkin.stability("square", n=n, lam=0.1, kappa=1.0).value
        table.append([n, *change, bound])
    report.table("The counterexample", ["samples", "Ivanov", "Tikhonov", "2 beta (5.8)"], table)
    constant = np.ptp([row[1] for row in table]) == 0
    power = slopes([row[0] for row in table], [row[2] for row in table])
    report.say(
        f"The change of the Ivanov solution is {'the same at every n' if constant else 'not the same'}; "
        f"that of the Tikhonov solution falls as n to the power {power:.2f}."
    )
    report.say(
        "The second table has `SVC` with gamma = .1 and lambda = .1 on samples within .1 of the "
        "origin; the change is that of the output at the origin."
    )
    lines = []
    for half in [size // 2 for size in sizes]:
        n = 2 * half + 1
        X = 0.1 * np.random.default_rng(half).normal(size=(n, 2))
        change = []
        for intercept in (True, False):
            values = []
            for last in (1, -1):
                y = np.concatenate([np.ones(half), -np.ones(half), [last]])
                machine = SVC(C=1 / (0.2 * n), gamma=0.1, fit_intercept=intercept, tol=1e-6).fit(X, y)
                values.append(float(machine.decision_function(np.zeros((1, 2)))[0]))
            change.append(abs(values[0] - values[1]))
        lines.append([n, *change, 2 * rifkin.stability("hinge", n=n, lam=0.1, kappa=1.0).value])
    report.table("A label is changed", ["samples", "SVC with b", "SVC without b", "2 beta (5.8)"], lines)
    report.say(
        f"The change goes from {lines[0][1]:.3g} to {lines[-1][1]:.3g} with b and from {lines[0][2]:.3g} to "
        f"{lines[-1][2]:.3g} without b."
    )
    report.numbers["ivanov"] = {"counterexample": table, "intercept": lines}


def main() -> int:
    """Run the parts that were asked for."""
    options = arguments(__doc__, PARTS).parse_args()
    report = Report("rifkin_bounds", "Stability and bounds (Rifkin 2002, chapter 5)", options)
    works = (codes, along_lambda, stability, bagging, ivanov)
    return report.run(dict(zip(PARTS, works, strict=True)))


if __name__ == "__main__":
    run(main)
