"""The engines, each behind the same few lines: make one, hand it rows in its layout, read its attributes.

Every engine solves the same problem: C-SVC, RBF kernel, one-vs-one, equal tolerance, equal cache. Each gets
the rows in the precision named after the dash, and sparse workloads as CSR unless the workload says that the
engine is faster on dense rows.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

THUNDERSVM_VARIABLE = "SVMARROW_THUNDERSVM"
EARLIER_VARIABLE = "SVMARROW_EARLIER"


class EngineMissingError(Exception):
    """The engine is not installed here."""


def _import(module: str, hint: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A package that is here and broken is a failure, not an absence.
        if error.name != module.split(".")[0]:
            raise
        raise EngineMissingError(f"{module} is not installed: {hint}") from error


class Engine:
    """An engine in one precision.

    Attributes
    ----------
    name : str
        As on the command line.
    dtype : type
        Precision of the rows that it is given.
    by_class : bool
        Whether rows must come sorted by class, because it numbers classes in the order of their first row.
    """

    name = ""
    dtype: type = np.float64
    by_class = False

    def __init__(self) -> None:
        self.version = ""

    def rows(self, X: Any, *, dense: bool) -> Any:
        """Rows in the layout and precision of this engine; not timed."""
        if sp.issparse(X):
            return np.ascontiguousarray(X.toarray(), self.dtype) if dense else X.astype(self.dtype)
        return np.ascontiguousarray(X, self.dtype)

    def new(self, *, C: float, gamma: float, tolerance: float, cache_megabytes: int) -> Any:
        """An unfitted estimator."""
        raise NotImplementedError

    def check(self, model: Any) -> None:
        """Raise where the fitted model did not come from this engine."""

    def bound_seconds(self, model: Any, X: Any, gamma: float) -> float | None:  # noqa: ARG002
        """Time of k(x, z) for all rows x and support vectors z, once; None where it has no tiles for that."""
        return None


class ScikitLearn(Engine):
    """LIBSVM as scikit-learn builds it: the reference."""

    name = "sklearn"

    def __init__(self) -> None:
        super().__init__()
        self.version = _import("sklearn", "pip install scikit-learn").__version__

    def new(self, *, C: float, gamma: float, tolerance: float, cache_megabytes: int) -> Any:
        """An unfitted estimator."""
        from sklearn.svm import SVC

        return SVC(C=C, gamma=gamma, tol=tolerance, cache_size=cache_megabytes)


class Svmarrow(Engine):
    """svmarrow itself."""

    name = "svmarrow-f64"

    def __init__(self) -> None:
        super().__init__()
        self.module = _import("svmarrow", "pip install '.[bench]'")
        self.version = getattr(self.module, "__version__", "")

    def new(self, *, C: float, gamma: float, tolerance: float, cache_megabytes: int) -> Any:
        """An unfitted estimator."""
        return self.module.SVC(C=C, gamma=gamma, tol=tolerance, cache_size=cache_megabytes)

    def bound_seconds(self, model: Any, X: Any, gamma: float) -> float | None:
        """The fused product with one output: kernel values and next to nothing else."""
        vectors = model.support_vectors_
        if X.shape[1] < 4:
            # Columns of zeros change no distance; with four columns every kernel value is computed.
            vectors, X = (np.pad(rows, ((0, 0), (0, 4 - rows.shape[1]))) for rows in (vectors, X))
        values = self.module.KernelExpansion(vectors, np.ones(vectors.shape[0]), 0.0, "rbf", gamma)
        values.decision_function(X[:100])
        start = time.perf_counter()
        values.decision_function(X)
        return time.perf_counter() - start


class SvmarrowSingle(Svmarrow):
    """svmarrow on single-precision rows."""

    name = "svmarrow-f32"
    dtype = np.float32


class Earlier(Svmarrow):
    """Another build of svmarrow, in the folder that SVMARROW_EARLIER names (``pip install --target``)."""

    name = "earlier-f64"

    def __init__(self) -> None:
        where = os.environ.get(EARLIER_VARIABLE)
        if not where:
            raise EngineMissingError(f"{EARLIER_VARIABLE} does not name the folder of another build")
        sys.path.insert(0, where)
        super().__init__()


class EarlierSingle(Earlier):
    """Another build of svmarrow on single-precision rows."""

    name = "earlier-f32"
    dtype = np.float32


class Intelex(Engine):
    """oneDAL through scikit-learn-intelex, imported directly, nothing patched."""

    name = "intelex-f64"

    def __init__(self) -> None:
        super().__init__()
        self.module = _import("sklearnex.svm", "pip install '.[bench]'")
        from importlib.metadata import version

        self.version = version("scikit-learn-intelex")

    def new(self, *, C: float, gamma: float, tolerance: float, cache_megabytes: int) -> Any:
        """An unfitted estimator."""
        # Every processor of this process, said aloud: no default decides what the peer may use.
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return self.module.SVC(C=C, gamma=gamma, tol=tolerance, cache_size=cache_megabytes, n_jobs=processors)

    def check(self, model: Any) -> None:
        """Raise where it fell back to scikit-learn."""
        if not hasattr(model, "_onedal_estimator"):
            raise RuntimeError("scikit-learn-intelex fell back to scikit-learn: nothing to compare")


class IntelexSingle(Intelex):
    """oneDAL on single-precision rows."""

    name = "intelex-f32"
    dtype = np.float32


class ThunderSvm(Engine):
    """ThunderSVM built from source; SVMARROW_THUNDERSVM names the folder that holds its Python package."""

    name = "thundersvm"
    by_class = True

    def __init__(self) -> None:
        super().__init__()
        where = os.environ.get(THUNDERSVM_VARIABLE)
        if not where:
            raise EngineMissingError(f"{THUNDERSVM_VARIABLE} does not name the folder of its Python package")
        sys.path.insert(0, where)
        self.module = _import("thundersvm", f"{THUNDERSVM_VARIABLE}={where}")

    def new(self, *, C: float, gamma: float, tolerance: float, cache_megabytes: int) -> Any:
        """An unfitted estimator."""
        return self.module.SVC(C=C, gamma=gamma, tol=tolerance, max_mem_size=cache_megabytes)


# In the order of running. The first peer that solves a workload is its reference: LIBSVM, then double
# precision before single.
ENGINES: dict[str, type[Engine]] = {
    engine.name: engine
    for engine in (
        ScikitLearn,
        Intelex,
        IntelexSingle,
        ThunderSvm,
        Earlier,
        EarlierSingle,
        Svmarrow,
        SvmarrowSingle,
    )
}
