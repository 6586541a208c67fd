"""Sparse attributes are arrays or matrices as scikit-learn's ``sparse_interface`` (from 1.9) says."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import svm as originals
from sklearn.datasets import load_iris

from svmarrow import SVC, SVR, NuSVC, OneClassSVM
from svmarrow.patch import svm

X, KIND = load_iris(return_X_y=True)

pytestmark = pytest.mark.skipif(
    "sparse_interface" not in sklearn.get_config(),
    reason="new in scikit-learn 1.9",
)


@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, OneClassSVM, svm.SVC], ids=repr)
@pytest.mark.parametrize("given", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("interface", ["spmatrix", "sparray"])
def test_attributes_are_of_the_kind_that_is_set(kind, given, interface):
    with sklearn.config_context(sparse_interface=interface):
        model = kind(kernel="linear").fit(given(X), KIND)
        theirs = getattr(originals, kind.__name__)(kernel="linear").fit(given(X), KIND)
        for name in ("support_vectors_", "dual_coef_", "coef_"):
            assert type(getattr(model, name)) is type(getattr(theirs, name)), name
        assert not model.coef_.data.flags.writeable
    dense = kind(kernel="linear").fit(X, KIND)
    assert type(dense.dual_coef_) is type(dense.coef_) is np.ndarray
