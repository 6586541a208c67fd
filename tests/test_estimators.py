"""scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from helpers.estimators import CONTRACT, EXPANSION_MODELS, name_of
from helpers.public import PUBLIC
from svmarrow import SVC, LowRankSVC, NuSVC


def contract():
    """Yields a case for each estimator and check; array_api input is not accepted, so its check would skip.

    Of the settings of a class the first is quick.
    """
    seen = set()
    for estimator, failing in CONTRACT:
        further = [pytest.mark.exhaustive] if name_of(estimator) in seen else []
        seen.add(name_of(estimator))
        checks = estimator_checks_generator(estimator, expected_failed_checks=failing, mark="xfail")
        for case in checks:
            of, check = getattr(case, "values", case)
            if "array_api" not in _check_name(check):
                marks = [*getattr(case, "marks", ()), *further]
                yield pytest.param(
                    of, check, marks=marks, id=" ".join(f"{of!r}-{_check_name(check)}".split())
                )


def _check_name(check):
    return getattr(check, "func", check).__name__


@pytest.mark.parametrize(("estimator", "check"), list(contract()))
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = {name for name in PUBLIC if hasattr(PUBLIC[name], "get_params")}
    assert public == {name_of(estimator) for estimator, _ in CONTRACT} | EXPANSION_MODELS


def test_in_pipelines_and_searches(datasets):
    X, y = datasets["iris"]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 10.0]}, cv=3, n_jobs=2)
    assert search.fit(X, y).best_score_ > 0.9
    pairwise = GridSearchCV(SVC(kernel="precomputed"), {"C": [1.0, 10.0]}, cv=3)
    assert pairwise.fit(X @ X.T, y).best_score_ > 0.9


def test_probabilities_by_calibration(datasets):
    X, y = datasets["iris"]
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(y)))


@pytest.mark.parametrize("kind", [SVC, NuSVC, LowRankSVC])
@pytest.mark.parametrize("name", ["predict_proba", "predict_log_proba"])
def test_missing_probabilities_name_the_calibrator(kind, name):
    model = kind()
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=rf"{kind.__name__} has no {name}: use CalibratedClassifierCV"):
        getattr(model, name)


def test_feature_names(datasets):
    X, y = datasets["iris"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    svc = SVC().fit(frame, y)
    assert svc.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        svc.predict(frame[["b", "a", "c", "d"]])
