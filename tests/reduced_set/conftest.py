"""Data sets, split, and machines on them."""

import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC


@pytest.fixture(scope="session")
def digits():
    """Handwritten digits, 0 to 16: 900 rows and their labels, the others and theirs."""
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:], y[900:]


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X[:350], y[:350], X[350:], y[350:]


@pytest.fixture(scope="session", params=["ovr", "ovo"])
def digits_svc(request, digits):
    return SVC(C=10, gamma=0.001, multi_class=request.param).fit(*digits[:2])


@pytest.fixture(scope="session")
def digits_ovr(digits):
    return SVC(C=10, gamma=0.001, multi_class="ovr").fit(*digits[:2])


@pytest.fixture(scope="session")
def cancer_svc(cancer):
    return SVC(C=10, gamma=0.01).fit(*cancer[:2])
