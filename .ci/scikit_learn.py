"""Runs scikit-learn's own tests of the classes that svmarrow replaces, on the replacements.

The version is that which is installed beside svmarrow. A test that differs is named in DIFFERENT with its
reason, and one that is not named must pass. From NEWEST on, one that is named must fail, or it is in OPEN:
older versions of the same test ask for less.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

import svmarrow

#: The version of scikit-learn that DIFFERENT was written for.
NEWEST = "1.9"
#: Tests that fail on the replacements, and why that is as it should be.
DIFFERENT = {
    "test_svm.py::test_tweak_params": "it writes the private `_dual_coef_`; `expansion_` predicts",
    "test_svm.py::test_svc_raises_error_internal_representation": (
        "it writes the private `_n_support`, which no code of ours reads beyond its bounds"
    ),
    "test_svm.py::test_libsvm_convergence_warnings": "it expects a third step; ours is done after one",
    "test_svm.py::test_precomputed": (
        "it compares the linear kernel with its matrix beyond `tol`; ours trains about the mean of the rows"
    ),
    "test_svm.py::test_svc_clone_with_callable_kernel": (
        "it compares the linear kernel with its function beyond `tol`; ours trains about the mean of the rows"
    ),
    "test_sparse.py::test_timeout": "it expects more than one step; ours is done after one",
}
#: Tests that last digits decide, so that they may pass or fail.
OPEN = {
    "test_svm.py::test_svc_ovr_tie_breaking[NuSVC]": (
        "rows that do not see each other (gamma=1e6) leave nu's solution open, and with it whether votes tie"
    ),
    "test_sparse.py::test_unsorted_indices": (
        "it compares seven digits of weights that are 0 but for rounding, summed by BLAS and by SciPy"
    ),
}
FILES = ("svm/tests/test_svm.py", "svm/tests/test_sparse.py", "tests/test_kernel_ridge.py")


class Outcomes:
    """What became of every test."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep it, pytest's hook."""
        # Newer versions have their one seed, 42, among the parameters.
        name = report.nodeid.rsplit("/", 1)[-1].replace("[42-", "[").replace("[42]", "")
        if report.failed:
            self.failed[name] = report.longreprtext
        elif report.when == "call" and report.passed:
            self.passed.add(name)


def named(test: str) -> str | None:
    """The entry that a test, or all tests of its function, has among the different ones."""
    return next((name for name in (test, test.split("[", 1)[0]) if name in DIFFERENT | OPEN), None)


def main() -> int:
    """Run the tests, tell the differences; 1 where they are not those that are known."""
    print(f"scikit-learn {sklearn.__version__}, svmarrow {svmarrow.__version__}", flush=True)
    folder = Path(sklearn.__file__).parent
    outcomes = Outcomes()
    svmarrow.patch_sklearn()
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore"]
    pytest.main(
        [*options, "-c", os.devnull, f"--rootdir={folder}", *(str(folder / file) for file in FILES)],
        plugins=[outcomes],
    )
    new = {test: text for test, text in outcomes.failed.items() if not named(test)}
    for test, text in new.items():
        print(f"\n{test} must pass on the replacements:\n{text}")
    known = {named(test) for test in outcomes.failed}
    old: set[str | None] = set()
    if parse_version(sklearn.__version__) >= parse_version(NEWEST):
        old = {named(test) for test in outcomes.passed} - known - {None} - OPEN.keys()
    for test in old:
        print(f"\n{test} passes: DIFFERENT must not name it")
    for name in sorted(known - {None}):
        print(f"different: {name}: {(DIFFERENT | OPEN)[name]}")
    print(
        f"{len(outcomes.passed)} passed, {len(outcomes.failed) - len(new)} differ for a reason, "
        f"{len(new)} failed"
    )
    return int(bool(new or old) or len(outcomes.passed) < 200)


if __name__ == "__main__":
    sys.exit(main())
