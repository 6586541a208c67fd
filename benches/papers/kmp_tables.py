"""Tables 2 and 3 of Vincent and Bengio (2002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, load
from scipy import stats
from sklearn.model_selection import StratifiedKFold

from svmarrow import SVC, KMPClassifier

if TYPE_CHECKING:
    import argparse

#: Table 2: KMP error, SVM error (percent), KMP vectors, SVM vectors, p-value.
TABLE_2 = {
    64: (6.28, 4.54, 17, 63, 0.24),
    128: (2.51, 2.61, 28, 105, 0.82),
    256: (1.09, 1.14, 41, 244, 0.81),
    512: (0.20, 0.30, 70, 443, 0.35),
    1024: (0.05, 0.07, 127, 483, 0.39),
}
#: Table 3: sigma, errors in percent (SVM, mse, tanh), vectors (SVM, mse, tanh), p-values (mse, tanh).
TABLE_3 = {
    "breast_cancer_wisconsin": (4.0, (3.41, 3.40, 3.49), (42, 7, 21), (0.49, 0.45)),
    "sonar": (2.0, (20.6, 21.0, 26.6), (46, 39, 14), (0.45, 0.16)),
    "pima_diabetes": (6.0, (24.1, 23.9, 24.0), (146, 7, 27), (0.44, 0.49)),
    "ionosphere": (2.0, (6.51, 6.87, 6.85), (68, 50, 41), (0.41, 0.40)),
}
#: Note 12 of the paper.
COSTS = (0.02, 0.05, 0.07, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 100.0)


#: Values of gamma with which the SVM is trained on Mushrooms, and its C: the classes are separable.
WIDTHS = (0.03, 0.05, 0.1, 0.15, 0.2, 0.3)
MUSHROOM_COST = 100.0


def mushroom_sets(size: int, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Disjoint training sets and disjoint test sets, as the paper's note 10 has them."""
    count, held = (8, 503) if size < 1024 else (4, 1007)
    order = np.random.default_rng(2002).permutation(len(y))
    tests = np.split(order[: count * held], count)
    rest = order[count * held :]
    return [(rest[i * size : (i + 1) * size], tests[i]) for i in range(count)]


def mushrooms() -> tuple[np.ndarray, np.ndarray]:
    """Return the set of table 2."""
    data = load("mushrooms")
    return np.ascontiguousarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X), data.y


def table_2(report: Report, options: argparse.Namespace) -> None:
    """Mushrooms by the number of training rows."""
    quick = options.quick
    X, y = mushrooms()
    rows, without, ties = [], [], []
    by_gamma: dict[float, dict[int, list[tuple[int, float]]]] = {
        gamma: {size: [] for size in TABLE_2} for gamma in WIDTHS
    }
    for size, printed in TABLE_2.items():
        if quick and size > 64:
            continue
        errors, vectors = [], []
        for train, test in mushroom_sets(size, y)[: 2 if quick else None]:
            folds = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X[train], y[train]))
            models = (
                *choose_kmp(X[train], y[train], folds),
                choose_svm(X[train], y[train], folds),
                *choose_kmp(X[train], y[train], folds, fit_intercept=False),
            )
            for gamma in WIDTHS:
                svm = SVC(C=MUSHROOM_COST, gamma=gamma, n_jobs=1).fit(X[train], y[train])
                wrong = 100 * float((svm.predict(X[test]) != y[test]).mean())
                by_gamma[gamma][size].append((svm.expansion_.n_vectors, wrong))
            errors.append([(m.predict(X[test]) != y[test]).mean() * 100 for m in models])
            vectors.append([m.expansion_.n_vectors for m in models])
        error, vector, each = np.mean(errors, axis=0), np.mean(vectors, axis=0), np.array(errors)
        # Columns: KMP by errors, by loss, by errors with the largest of tied sizes, SVM.
        p = [paired(each[:, k] - each[:, 3]) for k in (0, 1)]
        spread = each.std(axis=0, ddof=1) / np.sqrt(len(each))
        ends = f"{vector[0]:.0f} to {vector[2]:.0f}"
        ties.append((size, printed[2], ends, f"{printed[0]:.2f}", f"{error[0]:.2f}, {error[2]:.2f}"))
        rows.append(
            (
                size,
                f"{printed[0]:.2f} / {error[0]:.2f}, {error[1]:.2f}",
                f"{printed[1]:.2f} / {error[3]:.2f}",
                f"{printed[4]:.2f} / {p[0]:.2f}, {p[1]:.2f}",
                f"{printed[2]} / {vector[0]:.0f}, {vector[1]:.0f}",
                f"{printed[3]} / {vector[3]:.0f}",
                ", ".join(f"{one:.2f}" for one in spread[[0, 1, 3]]),
            )
        )
        difference = each[:, 4] - each[:, 0]
        without.append((size, *against_no_intercept(printed[0], each[:, [0, 4]], vector[[0, 4]])))
        report.numbers[f"table2 {size}"] = {
            "errors": error[:4].tolist(),
            "vectors": vector[:4].tolist(),
            "p": p,
            "without_intercept": {"errors": error[4:].tolist(), "p": paired(difference)},
        }
    report.table(
        "Table 2: errors in percent on Mushrooms, paper / ours; KMP by cross-validated errors, by loss",
        (
            "training samples",
            "KMP",
            "SVM",
            "p",
            "KMP vectors",
            "SVM vectors",
            "standard errors of ours: KMP by errors, by loss, SVM",
        ),
        rows,
    )
    report.table(
        "Mushrooms: KMP by cross-validated errors, smallest and largest of the sizes with the lowest error",
        ("training samples", "paper's vectors", "vectors", "paper, %", "%"),
        ties,
    )
    sizes = [size for size in TABLE_2 if by_gamma[WIDTHS[0]][size]]
    means = {gamma: {size: np.mean(by_gamma[gamma][size], axis=0) for size in sizes} for gamma in WIDTHS}
    distances = {
        gamma: sum(np.log(means[gamma][size][0] / TABLE_2[size][3]) ** 2 for size in sizes)
        for gamma in WIDTHS
    }
    nearest = min(distances, key=lambda gamma: distances[gamma])
    report.table(
        f"Mushrooms: vectors and errors in percent of the SVM by gamma, C = {MUSHROOM_COST:g}",
        ("training samples", "paper", *(f"gamma {gamma:g}" for gamma in WIDTHS)),
        [
            (
                size,
                f"{TABLE_2[size][3]}, {TABLE_2[size][1]:.2f}",
                *("{:.0f}, {:.2f}".format(*means[gamma][size]) for gamma in WIDTHS),
            )
            for size in sizes
        ],
    )
    report.say(
        f"The numbers of support vectors, which depend on the training samples alone, are nearest to the "
        f"printed ones at gamma = {nearest:g}: a search over a parameter that is not printed."
    )
    report.table(
        "Mushrooms: KMP by cross-validated errors, with and without the constant function",
        ("training samples", *NO_INTERCEPT),
        without,
    )


#: Columns of `against_no_intercept`.
NO_INTERCEPT = ("paper, %", "with, %", "without, %", "standard error of difference", "vectors with, without")


def against_no_intercept(printed: float, errors: np.ndarray, vectors: np.ndarray) -> tuple[str, ...]:
    """Cells: the paper's error, ours with and without an intercept, their paired difference, vectors."""
    difference = errors[:, 1] - errors[:, 0]
    return (
        f"{printed:.2f}",
        *(f"{mean:.2f}" for mean in errors.mean(axis=0)),
        f"{difference.std(ddof=1) / np.sqrt(len(difference)):.2f}",
        f"{vectors[0]:.0f}, {vectors[1]:.0f}",
    )


def choose_kmp(
    X: np.ndarray, y: np.ndarray, folds: list[Any], *, fit_intercept: bool = True
) -> tuple[KMPClassifier, ...]:
    """Width and size by cross-validation: the smallest of the least errors, the least loss, the largest.

    The third, the largest size with the least errors at the width of the first, is left out without an
    intercept.
    """
    # Value, size, gamma.
    best = [(np.inf, 0, 0.0), (np.inf, 0, 0.0)]
    largest = 0
    for gamma in (0.01, 0.03, 0.1, 0.3):
        curves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for train, test in folds:
            model = KMPClassifier(min(200, len(train)), gamma=gamma, fit_intercept=fit_intercept)
            path = model.fit(X[train], y[train], X_val=X[test], y_val=y[test]).path_
            loss = np.asarray(path.validation_loss)
            wrong = 1 - np.asarray(path.scores(X[test], y[test], range(1, len(loss))))
            for own, curve in zip(curves, (np.concatenate([[1.0], wrong]), loss), strict=True):
                own.append(np.concatenate([curve, np.full(201 - len(curve), curve[-1])]))
        for k, own in enumerate(curves):
            mean = np.mean(own, axis=0).round(12)
            candidate = (float(mean.min()), max(1, int(mean.argmin())), gamma)
            if candidate < best[k]:
                best[k] = candidate
                if k == 0:
                    largest = len(mean) - 1 - int(mean[::-1].argmin())
    choices = [(size, gamma) for _, size, gamma in best]
    if fit_intercept:
        choices.append((largest, best[0][2]))
    return tuple(
        KMPClassifier(size, gamma=gamma, fit_intercept=fit_intercept).fit(X, y) for size, gamma in choices
    )


def choose_svm(X: np.ndarray, y: np.ndarray, folds: list[Any]) -> SVC:
    """Width and C by cross-validation."""
    scores = {}
    for gamma in (0.01, 0.03, 0.1, 0.3):
        for C in (1.0, 10.0, 100.0):
            wrong = [
                (SVC(C=C, gamma=gamma, n_jobs=1).fit(X[a], y[a]).predict(X[b]) != y[b]).mean()
                for a, b in folds
            ]
            scores[C, gamma] = float(np.mean(wrong))
    C, gamma = min(scores, key=lambda key: scores[key])
    return SVC(C=C, gamma=gamma).fit(X, y)


def paired(differences: np.ndarray) -> float:
    """p-value of the paired t-test."""
    if np.ptp(differences) == 0:
        return 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def resampled(differences: np.ndarray, share: float) -> float:
    """One-sided p-value of Nadeau and Bengio's resampled t-test, `share` = test rows / training rows."""
    n, variance = len(differences), differences.var(ddof=1)
    if variance == 0:
        return 0.5
    t = differences.mean() / np.sqrt((1 / n + share) * variance)
    return float(stats.t.sf(abs(t), n - 1))


def repository_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a set of table 3; the features of two of them are standardised."""
    data = load(name)
    X = data.X
    if name in ("breast_cancer_wisconsin", "pima_diabetes"):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, data.y


def thirds(split: int, n: int) -> list[np.ndarray]:
    """Return the training, validation and test samples of a random split."""
    return np.array_split(np.random.default_rng(split).permutation(n), 3)


#: Largest number of functions of table 3.
MAX_FUNCTIONS = 100


def stopped_kmp(gamma: float, n: int, n_iter_no_change: int = 40, **parameters: Any) -> KMPClassifier:
    """Return a matching pursuit that is stopped by the accuracy on validation samples."""
    return KMPClassifier(
        min(MAX_FUNCTIONS, n),
        gamma=gamma,
        early_stopping=True,
        scoring="accuracy",
        n_iter_no_change=n_iter_no_change,
        n_jobs=1,
        **parameters,
    )


def largest_tie(path: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Return the largest model of a path with the highest accuracy on validation samples."""
    sizes = [size for size in path.sizes if size > 0]
    scores = path.scores(X, y, sizes)
    return path[sizes[len(sizes) - 1 - int(scores[::-1].argmax())]]


#: Numbers of functions without a gain on the validation samples after which a pursuit stops.
PATIENCES = (3, 10, 20)


def stopped_after(scores: np.ndarray, patience: int) -> int:
    """Return the place of the best score before the first `patience` scores without a gain."""
    best = 0
    for place, score in enumerate(scores):
        if score > scores[best]:
            best = place
        elif place - best >= patience:
            break
    return best


def stops(path: Any, size: int, valid: tuple[Any, Any], test: tuple[Any, Any]) -> list[float]:
    """Return the test error in percent at a size, then the size and the error at each patience."""
    sizes = np.array([number for number in path.sizes if number > 0])
    chosen, wrong = np.asarray(path.scores(*valid, sizes)), 100 * (1 - np.asarray(path.scores(*test, sizes)))
    places = [stopped_after(chosen, patience) for patience in PATIENCES]
    at_size = wrong[int(np.abs(sizes - size).argmin())]
    return [float(at_size), *(float(value[place]) for place in places for value in (sizes, wrong))]


def stop_line(name: str, model: str, printed: float, size: int, found: list[list[float]]) -> tuple[Any, ...]:
    """Return a line of the table of early stops: means over the splits."""
    means, n_splits = np.mean(found, axis=0), len(found)
    error = np.std([values[0] for values in found], ddof=1) / np.sqrt(n_splits)
    cells = [f"{size:.0f}, {wrong:.2f}" for size, wrong in zip(means[1::2], means[2::2], strict=True)]
    return (name, model, size, f"{printed:.2f}", f"{means[0]:.2f}", f"{error:.2f}", *cells)


def table_3(report: Report, options: argparse.Namespace) -> None:
    """Four sets, random splits into thirds."""
    quick = options.quick
    rows, without, ties, stopped = [], [], [], []
    for name, (sigma, printed, sizes, values) in TABLE_3.items():
        X, y = repository_set(name)
        gamma = 1 / sigma**2
        errors, vectors = [], []
        tied: dict[str, list[Any]] = {"smallest": [], "largest": []}
        found: dict[str, list[list[float]]] = {"mse": [], "tanh": []}
        for split in range(2 if quick else 50):
            train, valid, test = thirds(split, len(y))
            held = {"X_val": X[valid], "y_val": y[valid]}
            machines = [SVC(C=C, gamma=gamma, n_jobs=1).fit(X[train], y[train]) for C in COSTS]
            scores = np.array([m.score(X[valid], y[valid]) for m in machines])
            models: list[Any] = [machines[int(scores.argmax())]]
            models += [
                stopped_kmp(gamma, len(train), loss=loss, fit_intercept=fit_intercept).fit(
                    X[train], y[train], **held
                )
                for fit_intercept in (True, False)
                for loss in ("squared_error", "squared_tanh")
            ]
            errors.append([100 * (m.predict(X[test]) != y[test]).mean() for m in models])
            vectors.append([m.expansion_.n_vectors for m in models])
            # Both ends of the ties: of C, and of the sizes of a path that is not stopped.
            last = machines[len(machines) - 1 - int(scores[::-1].argmax())]
            whole = [
                stopped_kmp(gamma, len(train), MAX_FUNCTIONS, loss=loss).fit(X[train], y[train], **held)
                for loss in ("squared_error", "squared_tanh")
            ]
            for several, machine, size in zip(found.values(), whole, sizes[1:], strict=True):
                several.append(stops(machine.path_, size, (X[valid], y[valid]), (X[test], y[test])))
            for end, of_end in (
                ("smallest", [models[0], *whole]),
                ("largest", [last, *(largest_tie(m.path_, X[valid], y[valid]) for m in whole)]),
            ):
                wrong = [100 * (m.predict(X[test]) != y[test]).mean() for m in of_end]
                tied[end].append((wrong, [m.expansion_.n_vectors for m in of_end]))
        table = np.array(errors)
        ends = {end: np.mean(of_end, axis=0) for end, of_end in tied.items()}
        mean, kept = table.mean(axis=0), np.mean(vectors, axis=0)
        p = [resampled(table[:, k] - table[:, 0], len(test) / len(train)) for k in (1, 2)]
        spread = table.std(axis=0, ddof=1) / np.sqrt(len(table))
        rows.append(
            (
                name,
                f"{printed[0]:.2f} / {mean[0]:.2f}",
                f"{printed[1]:.2f} / {mean[1]:.2f} ({values[0]:.2f} / {p[0]:.2f})",
                f"{printed[2]:.2f} / {mean[2]:.2f} ({values[1]:.2f} / {p[1]:.2f})",
                f"{sizes[0]} / {kept[0]:.0f}",
                f"{sizes[1]} / {kept[1]:.0f}",
                f"{sizes[2]} / {kept[2]:.0f}",
                ", ".join(f"{one:.2f}" for one in spread[:3]),
            )
        )
        for k, model in enumerate(("SVM", "mse", "tanh")):
            counts, percent = ([of_end[which][k] for of_end in ends.values()] for which in (1, 0))
            ties.append((name, model, sizes[k], *(f"{count:.0f}" for count in counts)))
            ties[-1] += (f"{printed[k]:.2f}", *(f"{value:.2f}" for value in percent))
        for k, loss in ((1, "mse"), (2, "tanh")):
            stopped.append(stop_line(name, loss, printed[k], sizes[k], found[loss]))
            cells = against_no_intercept(printed[k], table[:, [k, k + 2]], kept[[k, k + 2]])
            without.append((name, loss, *cells))
        report.numbers[f"table3 {name}"] = {
            "errors": mean[:3].tolist(),
            "vectors": kept[:3].tolist(),
            "without_intercept": {"errors": mean[3:].tolist(), "vectors": kept[3:].tolist()},
        }
    report.table(
        "Table 3: test errors in percent, paper / ours (p-values against the SVM), and vectors",
        (
            "set",
            "SVM",
            "KMP-mse",
            "KMP-tanh",
            "SVM vectors",
            "mse vectors",
            "tanh vectors",
            "standard errors of ours: SVM, mse, tanh",
        ),
        rows,
    )
    report.table(
        "Both ends of the ties of the validation error: smallest and largest C of the SVM, size of KMP",
        ("set", "model", "paper's vectors", "smallest", "largest", "paper, %", "smallest, %", "largest, %"),
        ties,
    )
    report.table(
        "KMP at the paper's number of vectors, and stopped after several functions without a gain",
        (
            *("set", "model", "paper's vectors", "paper, %", "% with as many", "standard error"),
            *(f"vectors, % after {patience}" for patience in PATIENCES),
        ),
        stopped,
    )
    report.table("KMP with and without the constant function", ("set", "loss", *NO_INTERCEPT), without)
