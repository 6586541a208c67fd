"""A thousand fits and predictions leave no memory behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from helpers.estimators import QUICK, name_of
from helpers.programs import python

#: Bytes that may stay. A lost array or dictionary a fit takes more.
MAX_GROWTH = 110_000
#: Measured after half as many, which fill the allocator's caches: 125 kB after 5,000 fits, most of it
#: after the first 500.
FITS = 1000
#: Fits of the estimators that fit many machines at each fit. A nightly job runs a thousand of these too.
SLOW_FITS = int(os.environ.get("SVMARROW_SLOW_FITS", "200"))
SLOW = ("CV", "Tabular", "LearnedScaler", "Cascade", "CodedClassifier")
#: Counts the bytes in use, those of Python's objects too: PYTHONMALLOC gives them to malloc.
PROGRAM = """
    import ctypes, gc, sys, warnings
    from helpers.estimators import QUICK, target
    from helpers.data import STANDARD_IRIS

    class Counts(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    def bytes_in_use():
        gc.collect()
        counts = mallinfo2()
        return counts.uordblks + counts.hblkhd

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Counts
    estimator, number = QUICK[int(sys.argv[1])], int(sys.argv[2])
    X, y = STANDARD_IRIS[::3], target(estimator)[::3]
    apply = type(estimator).predict if hasattr(estimator, "predict") else type(estimator).transform
    warnings.simplefilter("ignore")

    def fits(number):
        for _ in range(number):
            apply(estimator.fit(X, y), X)

    fits(number // 2)
    before = bytes_in_use()
    fits(number)
    print(bytes_in_use() - before)
"""
#: One estimator in the quick tests.
PLACES = [
    pytest.param(place, marks=[pytest.mark.exhaustive] if place else [], id=f"{name_of(estimator)} {place}")
    for place, estimator in enumerate(QUICK)
]


@pytest.mark.skipif(sys.platform != "linux", reason="mallinfo2 is a function of glibc")
@pytest.mark.parametrize("place", PLACES)
def test_memory_is_flat(place):
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    name = name_of(QUICK[place])
    fits = SLOW_FITS if any(word in name for word in SLOW) else FITS
    growth = int(python(PROGRAM, place, fits, PYTHONPATH=path, PYTHONMALLOC="malloc"))
    assert growth <= MAX_GROWTH
