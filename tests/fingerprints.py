"""Digests of everything that is fitted: ``python tests/fingerprints.py N_JOBS`` prints them as JSON, by name.

It runs in a process of its own, so that a number of threads, an instruction set and an environment can be
chosen from the start. Times and counts of cache rows are left out: they are about the machine.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

import svmarrow
from examples import EXAMPLES, answers, public
from public import PUBLIC
from svmarrow import KernelExpansion, compress, compression_path
from svmarrow.multiclass import Code
from svmarrow.reduced_set import GradientSettings

#: Parts that are about the machine or about threads.
_APART = {"seconds", "kernel_values", "cache_hits", "cache_misses", "n_jobs"} | {
    f"{of}_{part}_time" for of in ("mean", "std") for part in ("fit", "score")
}


def set_default_jobs(n_jobs):
    """Makes ``n_jobs`` the default of every public class and function that has it."""
    for name in PUBLIC:
        thing = PUBLIC[name]
        if inspect.ismodule(thing):
            continue
        function = thing.__init__ if inspect.isclass(thing) else thing
        parameters = inspect.signature(function).parameters
        if "n_jobs" not in parameters:
            continue
        if function.__kwdefaults__ and "n_jobs" in function.__kwdefaults__:
            function.__kwdefaults__["n_jobs"] = n_jobs
        else:
            given = [key for key, value in parameters.items() if value.default is not value.empty]
            values = dict(zip(given, function.__defaults__, strict=True)) | {"n_jobs": n_jobs}
            function.__defaults__ = tuple(values[key] for key in given)


def digest(value):
    """A hash of all numbers and words in a value, to the last bit."""
    hashed = hashlib.sha256()
    _add(hashed, value)
    return hashed.hexdigest()[:16]


def _add(hashed, value):
    hashed.update(type(value).__name__.encode())
    if isinstance(value, KernelExpansion):
        _add(hashed, [value.vectors, value.coefficients, value.intercepts, value.kernel, value.gamma])
    elif sparse.issparse(value):
        _add(hashed, [value.data, value.indices, value.indptr])
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        hashed.update(f"{array.dtype}{array.shape}".encode())
        hashed.update(repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes())
    elif isinstance(value, float):
        hashed.update(value.hex().encode())
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            if key not in _APART:
                hashed.update(str(key).encode())
                _add(hashed, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _add(hashed, item)
    elif is_dataclass(value) and not isinstance(value, type):
        _add(hashed, {field.name: getattr(value, field.name) for field in fields(value)})
    elif value is None or isinstance(value, (bool, int, str, range)):
        hashed.update(repr(value).encode())
    elif isinstance(value, Code):
        _add(hashed, value.matrix)
    elif isinstance(value, BaseEstimator) or hasattr(value, "sizes"):
        _add(hashed, public(value))
    else:
        raise TypeError(f"no digest of a {type(value)}")


def _wide():
    """More rows than one thread's share of any loop, and so many columns that kernel rows are kept."""
    random = np.random.default_rng(1)
    labels = np.arange(700) % 4
    X = random.standard_normal((700, 80)) + 1.5 * random.standard_normal((4, 80))[labels]
    return X, labels, X @ random.standard_normal((80, 2)) + random.standard_normal((700, 2))


WIDE, LABELS, TARGETS = _wide()
SINGLE = WIDE.astype(np.float32)
SPARSE = sparse.csr_array(WIDE * (WIDE > 1.0))


def _of(name, X=WIDE, y=LABELS, inside=None, **parameters):
    """A fit and rows to ask about; ``inside`` makes the estimator of those that take one, in the fit."""

    def fit():
        own = parameters if inside is None else {"estimator": inside()} | parameters
        return PUBLIC[name](**own).fit(X, y), X[::7]

    return fit


def _machine():
    return svmarrow.SVC(C=0.1).fit(SINGLE, LABELS)


def _small(method, **options):
    return lambda: (compress(_machine(), n_vectors=30, method=method, random_state=0, **options), SINGLE[::7])


#: Fits whose work is cut into pieces for several threads: what makes one, by name.
LARGE = {
    "SVC": _of("SVC"),
    "SVC cheap kernel": _of("SVC", np.ascontiguousarray(WIDE[:, :5]), C=100.0, kernel="laplacian"),
    "SVC sparse, ovr": _of("SVC", SPARSE, multi_class="ovr", kernel="poly", coef0=1.0),
    "SVC squared hinge": _of("SVC", SINGLE, loss="squared_hinge", fit_intercept=False),
    "NuSVC": _of("NuSVC", SINGLE, nu=0.2),
    "SVR": _of("SVR", y=TARGETS[:, 0]),
    "NuSVR": _of("NuSVR", SPARSE, TARGETS[:, 0]),
    "QuantileSVR": _of("QuantileSVR", y=TARGETS[:, 0], quantile=[0.1, 0.5, 0.9]),
    "OneClassSVM": _of("OneClassSVM", nu=0.2),
    "LowRankSVC": _of("LowRankSVC", n_vectors=150, random_state=0),
    "LowRankSVC kmeans": _of("LowRankSVC", SINGLE, n_vectors=60, selection="kmeans", random_state=0),
    "RLSClassifier": _of("RLSClassifier", leave_one_out=True),
    "RLSRegressor path": _of("RLSRegressor", y=TARGETS, alphas=(0.1, 1.0, 10.0)),
    "RLSRegressor cg": _of("RLSRegressor", SPARSE, TARGETS, solver="cg", fit_intercept=True),
    "LinearRLSRegressor": _of("LinearRLSRegressor", y=TARGETS, leave_one_out=True),
    "LinearRLSRegressor cg": _of("LinearRLSRegressor", SPARSE, TARGETS, solver="cg"),
    "LinearRLSClassifier dual": _of("LinearRLSClassifier", SPARSE, solver="dual"),
    "LowRankRLSRegressor": _of("LowRankRLSRegressor", y=TARGETS, n_vectors=150, random_state=0),
    "LowRankRLSClassifier ic": _of("LowRankRLSClassifier", n_vectors=60, selection="ic", method="nystrom"),
    "BaggedKernelClassifier": _of("BaggedKernelClassifier", n_estimators=3, random_state=0),
    "KMPClassifier": _of("KMPClassifier", n_vectors=40),
    "KMPClassifier logistic": _of("KMPClassifier", SPARSE, n_vectors=12, loss="logistic"),
    "KMPRegressor": _of("KMPRegressor", y=TARGETS, n_vectors=40, precision="double"),
    "KernelPerceptron": _of("KernelPerceptron", prediction="averaged"),
    "KernelPerceptron projectron++": _of("KernelPerceptron", SPARSE, policy="projectron++", gamma=0.01),
    "KernelPerceptron margin": _of("KernelPerceptron", policy="margin", budget=60, random_state=0),
    "PerceptronTreeClassifier": _of("PerceptronTreeClassifier", budget=40, n_epochs=3, random_state=0),
    "CodedClassifier": _of(
        "CodedClassifier", inside=svmarrow.SVC, code="sparse", n_draws=500, random_state=0
    ),
    "CodedClassifier each": _of("CodedClassifier", inside=svmarrow.SVC, shared=False),
    "ExactCascade": _of("ExactCascade", inside=lambda: svmarrow.SVC(C=0.1), n_vectors=60),
    "CalibratedCascade": _of(
        "CalibratedCascade", inside=lambda: svmarrow.SVC(C=0.1), n_vectors=30, epsilon=0.3, random_state=0
    ),
    "pursuit": _small("pursuit"),
    "pursuit, thresholds": _small("pursuit", X=SINGLE, y=LABELS),
    "basic": _small("basic"),
    "rank": _small("rank"),
    "l0": _small("l0"),
    "l1": _small("l1"),
    "lars": _small("lars"),
    "gradient": _small("gradient", X=SINGLE, settings=GradientSettings(steps=30)),
    "every size": lambda: (compression_path(_machine(), n_vectors=40), SINGLE[::7]),
}


def fingerprint(name):
    """The digest of an example: what `fit` left and what the model says of rows."""
    np.random.seed(0)  # noqa: NPY002 - what random_state=None draws from
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in EXAMPLES:
            model, X = EXAMPLES[name][0](), EXAMPLES[name][1]
        else:
            model, X = LARGE[name.removeprefix("large ")]()
        return digest([public(model), answers(model, X)])


NAMES = [*EXAMPLES, *(f"large {name}" for name in LARGE)]

if __name__ == "__main__":
    set_default_jobs(None if sys.argv[1] == "None" else int(sys.argv[1]))
    print(json.dumps({name: fingerprint(name) for name in NAMES}))
