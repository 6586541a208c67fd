"""Wrong parameters of an estimator inside another, whose memory is estimated before it is fitted."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from helpers.data import IRIS, KIND
from helpers.estimators import QUICK, name_of
from svmarrow import SVC, CodedClassifier, ReducedSet, RLSClassifier

WITH_CACHE = [
    of for of in QUICK if hasattr(of, "estimate_memory") and "cache_size" in of.get_params(deep=False)
]


@pytest.mark.parametrize("estimator", WITH_CACHE, ids=name_of)
def test_an_estimate_checks_parameters(estimator):
    with pytest.raises(ValueError, match="cache_size=-1 is not allowed"):
        clone(estimator).set_params(cache_size=-1).estimate_memory(IRIS, KIND)


@pytest.mark.parametrize(
    "wrapper",
    [CodedClassifier(SVC()), CodedClassifier(SVC(), shared=False), ReducedSet(SVC(), n_vectors=5)],
    ids=str,
)
def test_wrappers_name_the_parameter(wrapper):
    wrapper = clone(wrapper).set_params(estimator__cache_size=-1)
    for call in (wrapper.fit, wrapper.estimate_memory):
        with pytest.raises(ValueError, match="cache_size=-1 is not allowed: it must be"):
            call(IRIS, KIND)
    with pytest.raises(ValueError, match="alpha=-1 is not allowed"):
        CodedClassifier(RLSClassifier(-1)).estimate_memory(IRIS, KIND)
