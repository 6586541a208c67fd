"""Data sets, split, and machines on them."""

import pytest

from svmarrow import SVC


@pytest.fixture(scope="session", params=["ovr", pytest.param("ovo", marks=pytest.mark.exhaustive)])
def digits_svc(request, pixels):
    return SVC(C=10, gamma=0.001, multi_class=request.param).fit(*pixels[:2])


@pytest.fixture(scope="session")
def digits_ovr(pixels):
    return SVC(C=10, gamma=0.001, multi_class="ovr").fit(*pixels[:2])


@pytest.fixture(scope="session")
def cancer_svc(cancer):
    return SVC(C=10, gamma=0.01).fit(*cancer[:2])
