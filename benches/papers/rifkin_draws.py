"""Tables 4.5 to 4.7 of Rifkin (2002) with random codes that are drawn many times.

Parts of ``rifkin_multiclass.py``. The thesis draws its random codes once. Twenty draws give the mean and the
standard deviation of what one draw shows, and the printed value is another draw. Every class takes part in at
least two fifths of the machines of a drawn code: draws without this rule vary too much to compare with (part
*drawn*).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, load
from sklearn.model_selection import StratifiedKFold, cross_val_predict

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

FIXED_CODES, RANDOM_CODES = ("ovr", "ovo", "complete"), ("dense", "sparse")
CODES = (*FIXED_CODES, *RANDOM_CODES)
N_DRAWS = 20
#: Half a unit of the last printed digit.
ROUNDING = 5e-4
EXCHANGED = {"dense": "sparse", "sparse": "dense"}


@dataclass(frozen=True)
class DrawnSet:
    """A set, its classes, the printed values, and a machine for a code by its name and seed."""

    name: str
    n_classes: int
    machine: Callable[[str, int, argparse.Namespace], Any]
    #: Errors in percent, overlaps of the pairs of codes, and the share on which all five agree.
    errors: dict[str, float]
    overlaps: tuple[float, ...]
    agreement: float


def standard_error(deviation: float, n_samples: int) -> float:
    """Return the standard error of the difference between our mean over draws and one printed draw.

    Beside the deviation over draws it has the rounding of the print and one sample, so that it is not 0 for
    codes that are not drawn.
    """
    return sqrt(deviation**2 * (1 + 1 / N_DRAWS) + ROUNDING**2 + 1 / n_samples**2)


def mean_and_deviation(values: list[float]) -> tuple[float, float]:
    """Return the mean, and the standard deviation over draws; 0 for a code that is not drawn."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def agreements(predictions: dict[str, list[np.ndarray]], codes: tuple[str, ...]) -> list[float]:
    """Return draw by draw the share of the samples on which some codes predict the same class."""
    n = max(len(predictions[code]) for code in codes)
    shares = []
    for draw in range(n):
        first, *others = (predictions[code][draw % len(predictions[code])] for code in codes)
        shares.append(float(np.all([first == other for other in others], axis=0).mean()))
    return shares


def many_draws(report: Report, options: argparse.Namespace, set_: DrawnSet) -> None:
    """Errors and overlaps over draws of the random codes, and the overlaps with their labels exchanged."""
    predict, truth = task(set_.name, options)
    predictions: dict[str, list[np.ndarray]] = {}
    for code in CODES:
        if options.quick and set_.name == "yeast" and code == "complete":
            predictions[code] = predictions["ovr"]
            continue
        draws = (2 if options.quick else N_DRAWS) if code in RANDOM_CODES else 1
        predictions[code] = [predict(set_.machine(code, seed, options)) for seed in range(draws)]
    lines = []
    for code in CODES:
        mean, deviation = mean_and_deviation([float((one != truth).mean()) for one in predictions[code]])
        z = (mean - set_.errors[code] / 100) / standard_error(deviation, len(truth))
        lines.append([code, f"{100 * mean:.2f}", f"{100 * deviation:.3f}", set_.errors[code], f"{z:.1f}"])
    report.table(
        f"Errors over draws, {set_.name}", ["code", "error %", "standard deviation", "thesis", "z"], lines
    )
    thesis = dict(zip(map(frozenset, combinations(CODES, 2)), set_.overlaps, strict=True))
    rows, totals = [], [0.0, 0.0]
    for pair in combinations(CODES, 2):
        mean, deviation = mean_and_deviation(agreements(predictions, pair))
        printed = thesis[frozenset(pair)]
        exchanged = thesis[frozenset(EXCHANGED.get(code, code) for code in pair)]
        error = standard_error(deviation, len(truth))
        z = [(mean - value) / error for value in (printed, exchanged)]
        if pair not in (("ovr", "ovo"), ("ovr", "complete"), ("ovo", "complete"), RANDOM_CODES):
            totals = [total + one**2 for total, one in zip(totals, z, strict=True)]
        cells = [f"{printed:.3f}", f"{z[0]:.1f}", f"{exchanged:.3f}", f"{z[1]:.1f}"]
        rows.append([" and ".join(pair), f"{mean:.4f}", f"{deviation:.4f}", *cells])
    mean, deviation = mean_and_deviation(agreements(predictions, CODES))
    z_all = (mean - set_.agreement / 100) / standard_error(deviation, len(truth))
    cells = [f"{set_.agreement / 100:.3f}", f"{z_all:.1f}", "", ""]
    rows.append(["all five", f"{mean:.4f}", f"{deviation:.4f}", *cells])
    report.table(
        f"Overlaps over draws, {set_.name}",
        ["codes", "overlap", "standard deviation", "thesis", "z", "dense and sparse exchanged", "z then"],
        rows,
    )
    report.say(
        f"Over the six pairs with one random code, the sum of squared z is {totals[0]:.1f} as printed and "
        f"{totals[1]:.1f} with the labels of dense and sparse exchanged."
    )
    report.numbers[f"draws {set_.name}"] = {"errors": lines, "overlaps": rows, "squared z": totals}


def task(name: str, options: argparse.Namespace) -> tuple[Callable[[Any], np.ndarray], np.ndarray]:
    """Return how the samples of a set are predicted by a model, and their labels."""
    if name == "satimage":
        rows = load("satimage", np.float32)
        step = 12 if options.quick else 1
        X, y, T, t = rows.X[::step] / 100, rows.y[::step], rows.X_test / 100, rows.y_test
        return lambda model: np.asarray(model.fit(X, y).predict(T)), t
    rows = load("yeast")
    keep = np.arange(len(rows.y))
    if options.quick:
        keep = np.concatenate([np.flatnonzero(rows.y == label)[:25] for label in np.unique(rows.y)])
    folds = StratifiedKFold(3 if options.quick else 10, shuffle=True, random_state=0)
    X, y = rows.X[keep], rows.y[keep]
    return lambda model: np.asarray(cross_val_predict(model, X, y, cv=folds)), y
