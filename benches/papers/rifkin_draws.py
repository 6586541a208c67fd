"""Tables 4.5 to 4.7 of Rifkin (2002) with random codes that are drawn many times.

A part of ``rifkin_multiclass.py``. The thesis draws its random codes once. Twelve draws give the mean and the
standard deviation of what one draw shows, and the printed value is another draw.
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, load
from sklearn.model_selection import StratifiedKFold, cross_val_predict

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

RANDOM_CODES = ("dense", "sparse")
FIXED_CODES = ("ovr", "ovo", "complete")


#: Half a unit of the last printed digit.
ROUNDING = 5e-4


def standard_error(deviation: float, samples: int, draws: int) -> float:
    """Return the standard error of the difference between our mean over draws and one printed draw.

    Beside the deviation over draws it has the rounding of the print and one sample, so that it is not 0 for
    codes that are not drawn.
    """
    return sqrt(deviation**2 * (1 + 1 / draws) + ROUNDING**2 + 1 / samples**2)


def overlaps_over_draws(
    predictions: dict[str, list[np.ndarray]],
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return for each pair of codes the mean and the standard deviation over draws of their overlap.

    Two random codes are compared draw by draw.
    """
    overlaps = {}
    for first, second in combinations((*FIXED_CODES, *RANDOM_CODES), 2):
        a, b = predictions[first], predictions[second]
        n = max(len(a), len(b))
        values = [float((a[i % len(a)] == b[i % len(b)]).mean()) for i in range(n)]
        overlaps[first, second] = (float(np.mean(values)), float(np.std(values, ddof=1)) if n > 1 else 0.0)
    return overlaps


def many_draws(
    report: Report,
    options: argparse.Namespace,
    machine: Callable[[Any, float, float], Any],
    code_of: Callable[..., Any],
    tuned: dict[str, tuple[float, float]],
    printed: dict[str, dict[str, float]],
    printed_overlaps: dict[str, tuple[float, ...]],
) -> None:
    """Overlaps and errors of satimage at C = 1 and of yeast by ten folds, over draws of the random codes.

    ``tuned`` has sigma and C of yeast, ``printed`` the errors in percent.
    """
    draws = 2 if options.quick else 12
    for name in ("satimage", "yeast"):
        predict, truth, n_classes = tasks(name, options)
        settings = tuned if name == "yeast" else dict.fromkeys((*FIXED_CODES, *RANDOM_CODES), (0.25, 1.0))
        predictions: dict[str, list[np.ndarray]] = {}
        for code in (*FIXED_CODES, *RANDOM_CODES):
            if options.quick and name == "yeast" and code == "complete":
                predictions[code] = predictions["ovr"]
                continue
            predictions[code] = [
                predict(machine(code_of(code, n_classes, options, seed=seed), *settings[code]))
                for seed in range(draws if code in RANDOM_CODES else 1)
            ]
        errors = {
            code: [100 * float((one != truth).mean()) for one in each] for code, each in predictions.items()
        }
        report.table(
            f"Errors over draws, {name}",
            ["code", "draws", "error %", "standard deviation", "thesis's error %"],
            [
                [
                    code,
                    len(each),
                    f"{np.mean(each):.2f}",
                    f"{np.std(each, ddof=1):.3f}" if len(each) > 1 else "",
                    printed[name][code],
                ]
                for code, each in errors.items()
            ],
        )
        thesis = dict(
            zip(combinations((*FIXED_CODES, *RANDOM_CODES), 2), printed_overlaps[name], strict=True)
        )
        exchange = {"dense": "sparse", "sparse": "dense"}
        rows = []
        totals = [0.0, 0.0]
        for pair, (mean, deviation) in overlaps_over_draws(predictions).items():
            other = [exchange.get(code, code) for code in pair]
            exchanged = thesis.get((other[0], other[1]), thesis.get((other[1], other[0]), 0.0))
            error = standard_error(deviation, len(truth), draws)
            z = [(mean - value) / error for value in (thesis[pair], exchanged)]
            if thesis[pair] != exchanged:
                totals = [total + one**2 for total, one in zip(totals, z, strict=True)]
            rows.append(
                [
                    " and ".join(pair),
                    f"{mean:.4f}",
                    f"{deviation:.4f}",
                    f"{thesis[pair]:.3f}",
                    f"{z[0]:.1f}",
                    f"{exchanged:.3f}",
                    f"{z[1]:.1f}",
                ]
            )
        report.table(
            f"Overlaps over draws, {name}",
            [
                "codes",
                "overlap",
                "standard deviation",
                "thesis",
                "z",
                "with dense and sparse exchanged",
                "z then",
            ],
            rows,
        )
        report.say(
            f"{name}: over the pairs that the exchange of dense and sparse concerns, the sum of squared z is "
            f"{totals[0]:.1f} as printed and {totals[1]:.1f} with the labels exchanged."
        )
        report.numbers[f"draws {name}"] = {"errors": errors, "overlaps": rows, "squared z": totals}


def tasks(name: str, options: argparse.Namespace) -> tuple[Callable[[Any], np.ndarray], np.ndarray, int]:
    """Return how a set is predicted by a model, its labels and its number of classes."""
    if name == "satimage":
        rows = load("satimage", np.float32)
        step = 12 if options.quick else 1
        X, y, T, t = rows.X[::step] / 100, rows.y[::step], rows.X_test / 100, rows.y_test
        return lambda model: np.asarray(model.fit(X, y).predict(T)), t, 6
    rows = load("yeast")
    keep = np.arange(len(rows.y))
    if options.quick:
        keep = np.concatenate([np.flatnonzero(rows.y == label)[:25] for label in np.unique(rows.y)])
    folds = StratifiedKFold(10 if not options.quick else 3, shuffle=True, random_state=0)
    X, y = rows.X[keep], rows.y[keep]
    return lambda model: np.asarray(cross_val_predict(model, X, y, cv=folds)), y, 10
