"""Models do not follow what a caller writes to the training samples after a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from svmarrow import LowRankSVC, RLSClassifier, RLSRegressor
from svmarrow.least_squares import LowRankRLSRegressor

X, _ = np.random.default_rng(0).normal(size=(2, 60, 4))
Y = X[:, 0] * X[:, 1]


@pytest.mark.parametrize("predicts_before", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    "make",
    [
        lambda _: RLSRegressor(0.1, gamma=0.3),
        lambda _: RLSRegressor(0.1, gamma=0.3, solver="cg"),
        lambda _: RLSClassifier(0.1, gamma=0.3),
        lambda _: LowRankRLSRegressor(30, alpha=0.1, gamma=0.3, method="nystrom", random_state=0),
        lambda points: LowRankRLSRegressor(20, alpha=0.1, gamma=0.3, selection=points),
        lambda points: LowRankSVC(20, gamma=0.3, selection=points),
    ],
)
def test_models_own_their_samples(make, layout, dtype, predicts_before):
    # Samples that differ in precision from the training samples are computed from the vectors themselves.
    other = np.float32 if dtype == np.float64 else np.float64
    given, samples = layout(X.astype(dtype)), [layout(X[:9].astype(kind)) for kind in (dtype, other)]
    points = layout(X[:20].astype(dtype))
    model = make(points)
    y = Y > 0 if hasattr(model, "classes_") or "class_weight" in model.get_params() else Y
    model.fit(given, y)
    fresh = make(layout(X[:20].astype(dtype))).fit(layout(X.astype(dtype)), y)
    if predicts_before:
        model.predict(samples[0])
    for written in (given, points):
        (written.data if sparse.issparse(written) else written)[:] = 7.0
    outputs = [getattr(each, "decision_function", each.predict) for each in (model, fresh)]
    for rows in samples:
        np.testing.assert_array_equal(outputs[0](rows), outputs[1](rows))
