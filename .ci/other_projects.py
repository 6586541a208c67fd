"""Runs the tests of other projects with and without `svmarrow.patch_sklearn()` and compares the outcomes.

``python .ci/other_projects.py NAME ...`` runs the named suites in the environment of this interpreter. A test
that fails without the patch is the project's own failure and is ignored. A test that passes without the patch
must pass with it, or the suite's table names it with the reason. A test that is named must fail with the
patch, unless its reason begins with OPEN.

No source archive of pyod on PyPI contains tests; aeon's detector of outliers is the suite for `OneClassSVM`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from sklearn.utils.fixes import parse_version

#: Why probabilities differ from an ONNX model in the fourth digit (at most 0.0016 on iris).
COUPLING = (
    "onnxruntime and LIBSVM stop the coupling of pairwise probabilities at a residual of 0.005 / n_classes; "
    "ours solves its equations"
)
#: The start of the reason for a test that rounding decides, so that it may pass or fail.
OPEN = "open: "
HERE = Path(__file__).resolve().parent
#: The folder into which `.ci/run` unpacks source archives.
SOURCES = HERE.parent / "target" / "other-projects"


@dataclass(frozen=True)
class Suite:
    """The tests of a project that train or convert support vector machines or kernel ridge regression."""

    #: The files, relative to the installed package `package`, or to `folder` of the source archive.
    files: tuple[str, ...]
    package: str = ""
    folder: str = ""
    #: Tests, or functions for all their parameters, that fail with the patch only, and why.
    different: dict[str, str] = field(default_factory=dict)
    #: The version that `different` was written for. Tests of older versions may ask for less.
    newest: str = "0"

    def root(self, name: str) -> Path:
        """Return the folder of the tests."""
        if self.package:
            spec = importlib.util.find_spec(self.package)
            if spec is None or spec.origin is None:
                sys.exit(f"{self.package} is not installed")
            return Path(spec.origin).resolve().parent
        return (SOURCES / f"{name}-{version(name)}" / self.folder).resolve()


SUITES = {
    "scikit-learn": Suite(
        files=("svm/tests/test_svm.py", "svm/tests/test_sparse.py", "tests/test_kernel_ridge.py"),
        package="sklearn",
        newest="1.9",
        different={
            "test_svm.py::test_tweak_params": "it writes the private `_dual_coef_`; `expansion_` predicts",
            "test_svm.py::test_svc_raises_error_internal_representation": (
                "it writes the private `_n_support`, which no code of ours reads beyond its bounds"
            ),
            "test_svm.py::test_libsvm_convergence_warnings": (
                "it expects a third step; ours is done after one"
            ),
            "test_svm.py::test_precomputed": (
                "it compares the linear kernel with its matrix beyond `tol`; "
                "ours trains about the mean of the rows"
            ),
            "test_svm.py::test_svc_clone_with_callable_kernel": (
                "it compares the linear kernel with its function beyond `tol`; "
                "ours trains about the mean of the rows"
            ),
            "test_sparse.py::test_timeout": "it expects more than one step; ours is done after one",
            "test_svm.py::test_svc_ovr_tie_breaking[NuSVC]": (
                OPEN + "rows that do not see each other (gamma=1e6) leave nu's solution open, "
                "and with it whether votes tie"
            ),
            "test_sparse.py::test_unsorted_indices": (
                OPEN + "it compares seven digits of weights that are 0 but for rounding, "
                "summed by BLAS and by SciPy"
            ),
        },
    ),
    "pyriemann": Suite(
        files=("test_classification.py", "test_regression.py"),
        folder="tests",
    ),
    "imbalanced-learn": Suite(
        files=(
            "over_sampling/_smote/tests/test_svm_smote.py",
            "ensemble/tests/test_bagging.py",
            "tests/test_pipeline.py",
        ),
        package="imblearn",
    ),
    "skl2onnx": Suite(
        files=(
            "test_sklearn_svm_converters.py",
            "test_sklearn_calibrated_classifier_cv_converter.py",
            "test_sklearn_grid_search_cv_converter.py",
            "test_sklearn_double_tensor_type_cls.py",
        ),
        folder="tests",
        different={
            **{
                f"test_sklearn_svm_converters.py::TestSklearnSVM::{test}": COUPLING
                for test in (
                    "test_convert_nusvc_binary_ptrue",
                    "test_convert_nusvc_multi_ptrue",
                    "test_convert_svc_binary_linear_ptrue",
                    "test_convert_svc_multi_pfalse_4_break_ties",
                    "test_convert_svc_multi_ptrue_4",
                    "test_model_nusvc_binary_class_true",
                    "test_model_nusvc_multi_class_true",
                    "test_model_svc_binary_class_true",
                    "test_model_svc_multi_class_true",
                )
            },
            "test_sklearn_grid_search_cv_converter.py::TestSklearnGridSearchCVModels"
            "::test_grid_search_multiclass_float": COUPLING,
            "test_sklearn_svm_converters.py::TestSklearnSVM::test_convert_nusvc_multi_pfalse": (
                OPEN + "the margin of two of its classes is nearly zero: coefficients reach a million, "
                "of which the file's single precision keeps one digit of an output"
            ),
        },
    ),
    "aeon": Suite(
        files=("anomaly_detection/series/outlier_detection/tests/test_one_class_svm.py",),
        package="aeon",
    ),
    "tslearn": Suite(files=("test_svm.py", "test_variablelength.py"), folder="tests"),
}


def outcomes(suite: Suite, name: str, *, patched: bool) -> dict[str, str]:
    """Run the suite; return the text of each test's failure, empty for a test that passed."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "outcomes.json"
        launcher = ["-m", "svmarrow.patch"] if patched else []
        options = ["-q", "--tb=short", "-W", "ignore", "-c", os.devnull]
        options += ["-p", "no:cacheprovider", "-p", "other_projects_plugin"]
        root = suite.root(name)
        path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, *launcher, "-m", "pytest", *options, f"--rootdir={root}", *suite.files],
            cwd=root,
            env=os.environ
            | {"PYTHONPATH": path, "OUTCOMES": str(written), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        # 0: all passed, 1: some failed, 2: a file could not be imported.
        if done.returncode > 2 or not written.is_file():
            sys.exit(f"the tests of {name} could not run:\n{done.stdout}\n{done.stderr}")
        found = json.loads(written.read_text(encoding="utf-8"))
    return {test.rsplit("/", 1)[-1]: text for test, text in found.items()}


def compare(suite: Suite, name: str) -> bool:
    """Run the suite without and with the patch and print the differences; return whether all are known."""
    print(f"{name} {version(name)}, svmarrow {version('svmarrow')}", flush=True)
    plain = outcomes(suite, name, patched=False)
    passed = {test for test, text in plain.items() if not text}
    for file in suite.files:
        if not any(test.startswith(Path(file).name) for test in passed):
            print(f"\n{name}: no test of {file} passes without the patch:\n{plain.get(Path(file).name, '')}")
            return False
    patched = outcomes(suite, name, patched=True)
    lost = {test: patched.get(test, "it did not run") for test in sorted(passed)}
    lost = {test: text for test, text in lost.items() if text}

    known: set[str] = set()
    new = []
    for test, text in lost.items():
        # The ids of newer versions of scikit-learn contain the one seed, 42, among the parameters.
        seedless = test.replace("[42-", "[").replace("[42]", "")
        entry = next((key for key in (seedless, test.split("[", 1)[0]) if key in suite.different), None)
        if entry is None:
            new.append(test)
            print(f"\n{test} passes without the patch and must pass with it:\n{text}")
        else:
            known.add(entry)
    old = {entry for entry, reason in suite.different.items() if not reason.startswith(OPEN)} - known
    if parse_version(version(name)) < parse_version(suite.newest):
        old = set()
    for entry in sorted(old):
        print(f"\n{entry} does not differ: the table of {name} must not name it")
    for entry in sorted(known):
        print(f"different: {entry}: {suite.different[entry]}")
    print(
        f"{len(passed) - len(lost)} passed, {len(lost) - len(new)} differ for a reason, "
        f"{len(new)} must not differ, {len(plain) - len(passed)} fail without the patch"
    )
    return not new and not old


def main() -> int:
    """Compare the suites that the command line names; 1 where a difference is not the one that is known."""
    names = sys.argv[1:]
    if not names or not set(names) <= SUITES.keys():
        sys.exit(f"usage: {sys.argv[0]} NAME ..., of {', '.join(SUITES)}")
    # A list: each suite runs, also after one that differs.
    known = [compare(SUITES[name], name) for name in names]
    return int(not all(known))


if __name__ == "__main__":
    sys.exit(main())
