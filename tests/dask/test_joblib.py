"""What joblib spreads: under ``parallel_config(backend="dask")`` parts run on the workers, same bits."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from distributed import get_task_stream
from sklearn.model_selection import GridSearchCV

from svmarrow import SVC, SVCCV, SVRCV, CodedClassifier, RLSClassifier


def searched(model):
    """All that a search has found."""
    return [
        model.cv_results_["mean_test_score"],
        model.Cs_,
        model.gammas_,
        model.dual_coef_,
        model.intercept_,
    ]


@pytest.mark.quick_every(3)
@pytest.mark.parametrize(
    ("model", "found", "parts"),
    [
        (SVCCV(Cs=3, gammas=4, cv=3), searched, 4),
        (SVCCV(Cs=3, gammas=4, cv=3, search="racing", scoring="f1_macro"), searched, 4),
        (SVRCV(Cs=2, gammas=[0.01, 0.1], cv=3), searched, 2),
        (
            GridSearchCV(SVC(n_jobs=1), {"C": [0.1, 10.0], "gamma": [0.02, 0.1]}, cv=3),
            lambda search: [search.cv_results_["mean_test_score"], search.best_estimator_.dual_coef_],
            12,
        ),
        # Machines that do not share their work.
        (
            CodedClassifier(SVC(), "dense", shared=False, random_state=0),
            lambda model: [model.decision_function(np.eye(64))],
            5,
        ),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_parts_run_on_the_workers(client, digits, model, found, parts):
    X, y = digits[:2]
    near = found(model.fit(X, y))
    with joblib.parallel_config(backend="dask"), get_task_stream(client) as stream:
        far = found(model.fit(X, y))
    for a, b in zip(near, far, strict=True):
        np.testing.assert_array_equal(a, b)
    # joblib may put quick parts together; those of other fits are not in this time.
    assert len(stream.data) >= min(parts, 2)
    assert {each["worker"] for each in stream.data} <= set(client.nthreads())


def test_both_workers_take_part(client, digits):
    X, y = digits[:2]
    with joblib.parallel_config(backend="dask"), get_task_stream(client) as stream:
        CodedClassifier(RLSClassifier(), "dense", shared=False, random_state=0).fit(X, y)
    assert len({each["worker"] for each in stream.data}) == 2


def test_limits_and_mistakes_reach_the_caller(client, digits):
    X, y = digits[:2]
    with joblib.parallel_config(backend="dask"):
        with pytest.raises(ValueError, match="max_time=0 is not allowed"):
            SVCCV(Cs=2, gammas=3, cv=3, max_time=0).fit(X, y)
        with pytest.raises(ValueError, match="told by the scorer"):
            SVCCV(Cs=2, gammas=3, cv=3, scoring=bad).fit(X, y)


def bad(*_):
    raise ValueError("told by the scorer")
