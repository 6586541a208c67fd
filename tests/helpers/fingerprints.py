"""Digests of all fits; ``python tests/fingerprints.py N_JOBS`` prints them as JSON, by name.

The program runs in its own process, so that the number of threads, the instruction set and the environment
can be chosen from the start. Times and counts of cache rows are left out: they depend on the machine.
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

from helpers.comparison import fitted_attributes, predictions
from helpers.data import WIDE_LABELS, WIDE_SINGLE
from helpers.estimators import EXAMPLES, LARGE
from helpers.public import PUBLIC
from helpers.reference import largest
from svmarrow import SVC, KernelExpansion, compression_path
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
        _add(hashed, value.__getstate__())
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
    elif type(value).__module__ == "sklearn.metrics._scorer":
        hashed.update(repr(value).encode())
    elif isinstance(value, BaseEstimator) or hasattr(value, "sizes"):
        _add(hashed, fitted_attributes(value))
    else:
        raise TypeError(f"no digest of a {type(value)}")


def _machine():
    return SVC(C=0.1).fit(WIDE_SINGLE, WIDE_LABELS)


def _small(method, **options):
    return lambda: (
        largest(_machine(), n_vectors=30, method=method, random_state=0, **options),
        WIDE_SINGLE[::7],
    )


#: Reductions whose work is cut into pieces for several threads, by name.
REDUCTIONS = {
    "pursuit": _small("backfit"),
    "pursuit, thresholds": _small("backfit", X=WIDE_SINGLE, y=WIDE_LABELS),
    "basic": _small("basic"),
    "rank": _small("rank"),
    "l0": _small("l0"),
    "l1": _small("l1"),
    "lars": _small("lars"),
    "gradient": _small("gradient", X=WIDE_SINGLE, settings=GradientSettings(steps=30, sizes=(30,))),
    "every size": lambda: (compression_path(_machine(), n_vectors=40), WIDE_SINGLE[::7]),
}


def fingerprint(name):
    """Returns the digest of an example: its fitted attributes and its predictions."""
    np.random.seed(0)  # noqa: NPY002 - what random_state=None draws from
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in EXAMPLES:
            model, X = EXAMPLES[name][0](), EXAMPLES[name][1]
        else:
            model, X = FITS[name]()
        return digest([fitted_attributes(model), predictions(model, X)])


FITS = {f"large {name}": fit for name, fit in (LARGE | REDUCTIONS).items()}
NAMES = [*EXAMPLES, *FITS]


def main():
    set_default_jobs(None if sys.argv[1] == "None" else int(sys.argv[1]))
    print(json.dumps({name: fingerprint(name) for name in NAMES}))
