"""skops keeps estimators without code; the types to trust are those of the estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import svmarrow

skops = pytest.importorskip("skops.io")
X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "estimator", [svmarrow.SVC(), svmarrow.RLSRegressor(gamma=0.1), svmarrow.OneClassSVM(gamma=0.1)], ids=repr
)
def test_an_estimator_comes_back_with_its_bits(estimator):
    estimator.fit(X, y)
    data = skops.dumps(estimator)
    types = skops.get_untrusted_types(data=data)
    assert types
    assert all(name.startswith("svmarrow.") for name in types), types
    back = skops.loads(data, trusted=types)
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    assert np.array_equal(getattr(back, method)(X), getattr(estimator, method)(X))
    with pytest.raises(Exception, match="Untrusted"):
        skops.loads(data)
