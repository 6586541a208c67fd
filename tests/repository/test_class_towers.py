"""How many classes of svmarrow a reader opens to know an estimator."""

from __future__ import annotations

import inspect

import pytest

import svmarrow.dask
from helpers.public import PUBLIC

#: Most classes of svmarrow in the resolution order of an estimator, itself among them.
MAX_CLASSES = 6
KINDS = {
    **{name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)},
    **{name: thing for name, thing in vars(svmarrow.dask).items() if inspect.isclass(thing)},
}


def own_classes(kind: type) -> list[str]:
    return [each.__name__ for each in kind.__mro__ if each.__module__.partition(".")[0] == "svmarrow"]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_public_classes_stand_on_few_others(name):
    assert len(own_classes(KINDS[name])) <= MAX_CLASSES


def test_estimators_of_dask_collections_are_none_of_the_local_ones():
    assert own_classes(svmarrow.dask.DaskSVC) == ["DaskSVC", "DaskEstimator", "Estimator"]


def test_the_count_sees_every_base():
    assert own_classes(svmarrow.SVC)[0] == "SVC"
    assert own_classes(svmarrow.SVC)[-1] == "Estimator"
