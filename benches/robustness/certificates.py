"""Certified intervals against the dual objective of the solution, evaluated in extended precision.

    python benches/robustness/certificates.py                   # the whole grid: 3,920 fits, a table
    python benches/robustness/certificates.py rbf --part 1/10   # a tenth of the cases named with a word
    python benches/robustness/certificates.py --output docs/reliability/certificates.json

C is a power of ten from 1e-3 to 1e10 and gamma one from 1e-9 to 1e3, so kernel values differ by far less than
single precision resolves, or not at all. For every machine of a fit:

- ``dual`` of its certificate is at most the dual objective of its coefficients in extended precision;
- ``primal`` is at least that objective, and at least the one of LIBSVM's coefficients for the same machine
  (scikit-learn's `SVC` and `SVR` with a precomputed kernel matrix of double precision, tol=1e-6), whether
  or not LIBSVM came to its end within its limit of steps;
- a fit whose gap is above a hundredth of its objective because of rounding is not called converged.

A part of the cases, the same every time, runs in ``tests/robustness/test_certificates.py``.
"""

from __future__ import annotations

import collections
import itertools
import math
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_regression
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parent))

from reports import arguments, keep

import svmarrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

COSTS = [10.0**power for power in range(-3, 11)]
GAMMAS = [10.0**power for power in range(-9, 4)]
KERNELS = ("rbf", "poly", "laplacian", "linear")
#: Steps of a fit, ours and LIBSVM's: the intervals must hold wherever it ends.
MOST_STEPS = 200_000
DEGREE, COEF0, EPSILON = 2, 1.0, 0.1
#: Number of monomials of a polynomial kernel up to which its machines have weights.
MAX_MONOMIALS = 512


class Case(NamedTuple):
    """A fit."""

    data: str
    kernel: str
    C: float
    gamma: float

    @property
    def name(self) -> str:
        return f"{self.data} {self.kernel} C={self.C:g} gamma={self.gamma:g}"


def _iris(classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_iris(return_X_y=True)
    # Two classes that overlap.
    return (X[y > 0], y[y > 0]) if classes == 2 else (X, y)


def _scaled() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def _digits() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:300], y[:300]


SETS = {
    "iris, two classes": lambda: _iris(2),
    "iris, three classes": lambda: _iris(3),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "breast cancer, scaled": _scaled,
    "wine": lambda: load_wine(return_X_y=True),
    "digits": _digits,
    "regression": lambda: make_regression(150, 5, noise=5.0, random_state=0),
}


def cases() -> Iterator[Case]:
    """The whole grid."""
    for data, kernel, C, gamma in itertools.product(SETS, KERNELS, COSTS, GAMMAS):
        if kernel != "linear" or gamma == 1.0:
            yield Case(data, kernel, C, gamma)


def matrix(case: Case, X: NDArray[Any], kind: type[np.floating[Any]]) -> NDArray[Any]:
    """All kernel values, by their formulas."""
    X = X.astype(kind)
    if case.kernel == "linear":
        centred = X - X.mean(axis=0)
        return np.asarray(centred @ centred.T)
    if case.kernel == "poly":
        return (kind(case.gamma) * (X @ X.T) + kind(COEF0)) ** DEGREE
    total = np.zeros((len(X), len(X)), dtype=kind)
    for column in X.T:
        apart = np.abs(column[:, np.newaxis] - column)
        total += apart * apart if case.kernel == "rbf" else apart
    return np.exp(-kind(case.gamma) * total)


def monomials(case: Case, X: NDArray[Any]) -> NDArray[Any] | None:
    """Columns whose inner products are the values of a polynomial kernel, if there are not too many."""
    if case.kernel != "poly" or math.comb(X.shape[1] + DEGREE, DEGREE) > MAX_MONOMIALS:
        return None
    X = np.column_stack([X.astype(np.longdouble), np.ones(len(X))])
    factors = np.sqrt(np.append(np.full(X.shape[1] - 1, case.gamma), COEF0).astype(np.longdouble))
    columns = []
    for places in itertools.combinations_with_replacement(range(X.shape[1]), DEGREE):
        orders = math.factorial(DEGREE)
        for count in collections.Counter(places).values():
            orders //= math.factorial(count)
        columns.append(np.sqrt(np.longdouble(orders)) * (X * factors)[:, list(places)].prod(axis=1))
    return np.column_stack(columns)


def dual(
    case: Case,
    data: tuple[NDArray[Any], NDArray[Any]],
    targets: NDArray[Any],
    beta: NDArray[Any],
    *,
    regression: bool,
) -> float:
    """The dual objective of signed coefficients of samples and kernel values, in extended precision."""
    X, K = data
    beta, y = beta.astype(np.longdouble), targets.astype(np.longdouble)
    linear = y @ beta - np.longdouble(EPSILON) * np.abs(beta).sum() if regression else np.abs(beta).sum()
    columns = X if case.kernel == "linear" else monomials(case, X)
    if columns is not None:
        # Kernel values of columns of very different scales cancel: the weights do not.
        weights = beta @ columns.astype(np.longdouble)
        return float(linear - weights @ weights / 2)
    return float(linear - beta @ (K @ beta) / 2)


def machines(model: Any, y: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Rows of each machine, their targets and all their coefficients."""
    coefficients = np.zeros((len(y), model.expansion_.coefficients.shape[1]))
    coefficients[model.support_] = model.expansion_.coefficients
    if isinstance(model, svmarrow.SVR):
        yield np.arange(len(y)), y, coefficients[:, 0]
        return
    for j, (a, b) in enumerate(itertools.combinations(model.classes_, 2)):
        rows = np.flatnonzero((y == a) | (y == b))
        # Two classes: positive for the second; a pair of several: for the first.
        positive = b if len(model.classes_) == 2 else a
        yield rows, np.where(y[rows] == positive, 1.0, -1.0), coefficients[rows, j]


def libsvm(case: Case, K: NDArray[Any], y: NDArray[Any], *, regression: bool) -> NDArray[Any]:
    """LIBSVM's coefficients of a machine."""
    options: dict[str, Any] = {"kernel": "precomputed", "C": case.C, "tol": 1e-6, "max_iter": MOST_STEPS}
    model = svm.SVR(epsilon=EPSILON, **options) if regression else svm.SVC(**options)
    beta = np.zeros(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(K, y)
    beta[model.support_] = np.asarray(model.dual_coef_)[0]
    return beta


def outcome(case: Case) -> tuple[str, str]:
    """What came of a fit, and what is wrong with it, if anything."""
    X, y = SETS[case.data]()
    regression = case.data == "regression"
    options: dict[str, Any] = {"kernel": case.kernel, "C": case.C, "gamma": case.gamma}
    options |= {"max_iter": MOST_STEPS, "n_jobs": 1}
    if case.kernel == "poly":
        options |= {"degree": DEGREE, "coef0": COEF0}
    model = svmarrow.SVR(epsilon=EPSILON, **options) if regression else svmarrow.SVC(**options)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except ValueError as error:
            return "refused", "" if "must be" in str(error) else str(error)
    exact, double = matrix(case, X, np.longdouble), matrix(case, X, np.float64)
    found: list[str] = []
    for (rows, targets, beta), certificate in zip(
        machines(model, y), model.certificate_.machines, strict=True
    ):
        block = np.ix_(rows, rows)
        data = X[rows], exact[block]
        own = dual(case, data, targets, beta, regression=regression)
        other = dual(
            case,
            data,
            targets,
            libsvm(case, double[block], targets, regression=regression),
            regression=regression,
        )
        interval = f"[{certificate.dual!r}, {certificate.primal!r}]"
        if not certificate.dual <= own <= certificate.primal:
            found.append(f"{interval} without its own dual objective {own!r}")
        if not other <= certificate.primal:
            found.append(f"{interval} below LIBSVM's dual objective {other!r}")
        close = certificate.gap <= 1e-2 * abs(certificate.primal)
        if certificate.stop == "converged" and not close and certificate.rounding > model.tol:
            found.append(f"converged with the gap {certificate.gap!r} of {certificate.primal!r}")
    stop = model.certificate_.stop
    if (stop != "converged") != any("ended before" in str(each.message) for each in told):
        found.append(f"{stop}, and {len(told)} warnings")
    return stop, "; ".join(found)


def main() -> None:
    given = arguments(__doc__.split("\n", maxsplit=1)[0])
    part, parts = map(int, given.part.split("/"))
    wanted = [case for case in cases() if not given.words or any(word in case.name for word in given.words)]
    counts: collections.Counter[str] = collections.Counter()
    faults = []
    for case in wanted[part - 1 :: parts]:
        stop, fault = outcome(case)
        counts[f"{case.kernel}: {stop}"] += 1
        if fault:
            faults.append({"case": case.name, "fault": fault})
            print(f"{case.name}: {fault}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name:24} {count:6,}")
    print(f"{sum(counts.values()):,} fits, {len(faults)} faults")
    keep(
        given.output,
        {"fits": sum(counts.values()), "outcomes": dict(sorted(counts.items())), "faults": faults},
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
