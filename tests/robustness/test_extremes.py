"""Numbers at the ends of their range: an answer that is finite, or words; powers of 2 change no digit.

The first part takes some of the cases of ``benches/robustness/extremes.py``, the same every time.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from helpers.estimators import SCALING
from helpers.public import PUBLIC
from helpers.scripts import robustness_script

#: One case of so many; without a divisor in common with the lengths of the lists of cases.
EVERY = 29


EXTREMES = robustness_script("extremes")
CASES = list(EXTREMES.cases())[::EVERY]


@pytest.mark.quick_every(4)
@pytest.mark.parametrize("part", range(20))
def test_extreme_numbers_end_in_an_answer_or_in_words(part):
    found = [(case, *EXTREMES.outcome(case)) for case in CASES[part::20]]
    assert [(str(case), *said) for case, *said in found if said[0] not in EXTREMES.FINE] == []
    # Most are no refusals, else this would say little about the numbers.
    assert sum(said[0] in ("answer", "warned") for _, *said in found) > len(found) / 3


def test_every_learner_and_every_way_of_reduction_is_among_the_cases():
    names = {case.learner.split()[0] for case in EXTREMES.cases()}
    ways = {case.work for case in EXTREMES.cases()}
    learners = {name for name in PUBLIC if hasattr(PUBLIC[name], "fit")}
    wrapped = {"CodedClassifier", "ReducedSet"}
    assert {name for name in learners if not name.startswith("Expansion")} <= names | wrapped | ways
    assert set(EXTREMES.METHODS) <= ways


# --- powers of 2 ---

SIDES = np.arange(60) % 3
ROWS = np.round(np.random.default_rng(0).standard_normal((60, 3)) * 64.0) / 64.0 + 2.0 * np.eye(3)[SIDES]
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr64": sparse.csr_array,
    "csr32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


def decisions(name, X, **kernel):
    model = PUBLIC[name.split()[0]](**SCALING[name], **kernel)
    model.fit(X, np.sin(np.arange(60.0)) if name.endswith(("SVR", "Regressor")) else SIDES)
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


@pytest.mark.quick_every(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SCALING)
def test_powers_of_two_change_no_bit_of_a_fit(name, form):
    """From 1e-150 to 1e150, as far as the rows themselves have their digits."""
    powers = (-500, -330, -130, -70, 62, 66, 120, 500)
    if "32" in form:
        powers = (-120, -70, -10, 10, 62, 66, 110)
    exact = decisions(name, FORMS[form](ROWS), gamma="scale").tobytes()
    laplace = decisions(name, FORMS[form](ROWS), kernel="laplacian", gamma=0.3).tobytes()
    matern = decisions(name, FORMS[form](ROWS), kernel="matern32", gamma=0.3).tobytes()
    for power in powers:
        X = FORMS[form](np.ldexp(ROWS, power))
        assert decisions(name, X, gamma="scale").tobytes() == exact, power
        inverse = float(np.ldexp(0.3, -power))
        assert decisions(name, X, kernel="laplacian", gamma=inverse).tobytes() == laplace, power
        assert decisions(name, X, kernel="matern32", gamma=inverse).tobytes() == matern, power


@pytest.mark.parametrize("name", sorted(SCALING.keys() - {"PerceptronTreeClassifier"}))
def test_a_shift_changes_little(name):
    """Dense rows are moved back before they are packed; trees split by inner products."""
    shift = 2.0**27
    plain = decisions(name, ROWS, gamma=0.3)
    assert decisions(name, ROWS + shift, gamma=0.3) == pytest.approx(plain, abs=1e-3)
