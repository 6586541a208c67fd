"""How many classes of svmarrow a reader opens to know an estimator."""

from __future__ import annotations

import inspect

import pytest

import svmarrow.dask
from helpers.public import PUBLIC

#: Most classes of svmarrow in the resolution order of an estimator, itself among them.
MAX_CLASSES = 6
#: The same for estimators of Dask collections, which extend the local ones.
MAX_DASK_CLASSES = 10


def own_classes(kind: type) -> list[str]:
    return [each.__name__ for each in kind.__mro__ if each.__module__.partition(".")[0] == "svmarrow"]


@pytest.mark.parametrize("name", sorted(name for name, thing in PUBLIC.items() if inspect.isclass(thing)))
def test_public_classes_stand_on_few_others(name):
    assert len(own_classes(PUBLIC[name])) <= MAX_CLASSES


def test_estimators_of_dask_collections_add_few():
    kinds = [getattr(svmarrow.dask, name) for name in svmarrow.dask.__all__]
    counts = {kind.__name__: len(own_classes(kind)) for kind in kinds if inspect.isclass(kind)}
    assert max(counts.values()) <= MAX_DASK_CLASSES, counts


def test_the_count_sees_every_base():
    assert own_classes(svmarrow.SVC)[0] == "SVC"
    assert own_classes(svmarrow.SVC)[-1] == "Estimator"
