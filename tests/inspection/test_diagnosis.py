"""What a fit says about gamma and C."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVCCV, SVR, NuSVC, RLSClassifier
from svmarrow.inspection import diagnose

RAW, Y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(RAW)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"gamma": 10.0}, "gamma=10 is too large: nearly every sample"),
        ({"gamma": 10.0, "kernel": "laplacian"}, "gamma=10 is too large"),
        ({"C": 1e-3}, r"C=0.001 is too small: nearly all support vectors are at C. Try C=0.1, or gamma="),
        ({"gamma": 1e-6, "C": 20.0}, "gamma=1e-06 is too small for C=20"),
        ({"kernel": "linear", "C": 1e-8}, "C=1e-08 is too small"),
        ({}, "^$"),
        ({"C": 10.0}, "^$"),
        ({"kernel": "linear"}, "^$"),
        ({"kernel": "poly", "degree": 2}, "^$"),
    ],
)
def test_what_is_far_off(parameters, words):
    svc = SVC(**parameters).fit(X, Y)
    found = diagnose(svc, X, Y)
    assert re.search(words, found.finding), found
    assert found.training_error == pytest.approx(1.0 - svc.score(X, Y))
    assert found.vectors == len(svc.support_) / len(X)
    machine = svc.certificate_.machines[0]
    assert found.unbounded == pytest.approx(1.0 - machine.bounded / machine.support)
    assert (found.finding or "Nothing shows that gamma or C is far off") in str(found)


def test_a_training_error_of_the_largest_class_needs_samples():
    digits, labels = load_digits(return_X_y=True)
    rare = labels == 8
    svc = SVC(C=0.02, gamma=0.003).fit(digits[:900], rare[:900])
    assert svc.predict(digits[:900]).mean() < 0.01
    assert diagnose(svc).training_error is None
    words = "the training error is close to that of the most frequent class"
    assert words in diagnose(svc, digits[:900], rare[:900]).finding


def test_the_advice_helps():
    svc = SVC(gamma=10.0).fit(X[:400], Y[:400])
    assert "Try gamma=0.1." in diagnose(svc).finding
    assert SVC(gamma=0.1).fit(X[:400], Y[:400]).score(X[400:], Y[400:]) > svc.score(X[400:], Y[400:]) + 0.1


def test_searches_and_several_classes():
    search = SVCCV(Cs=[1e-4, 1e-3], gammas=[1e-3], cv=3).fit(X, Y)
    assert diagnose(search).finding.startswith(f"C={search.best_params_['C']:.3g} is too small")
    digits, labels = load_digits(return_X_y=True)
    for coding in ("ovr", "ovo"):
        svc = SVC(gamma=0.05, multi_class=coding).fit(digits, labels)
        shares = [
            of.support / (of.leave_one_out.positive + of.leave_one_out.negative)
            for of in svc.certificate_.machines
        ]
        assert diagnose(svc).vectors == pytest.approx(np.mean(shares))
        assert "too large" in diagnose(svc).finding


def test_what_has_no_bound_c_is_refused():
    for model in (SVR().fit(X, Y), NuSVC().fit(X, Y), RLSClassifier().fit(X, Y)):
        with pytest.raises(TypeError, match="no coefficients that C bounds"):
            diagnose(model)
    with pytest.raises(NotFittedError):
        diagnose(SVC())
    svc = SVC().fit(X, Y)
    with pytest.raises(ValueError, match="X and y belong together"):
        diagnose(svc, X)
    with pytest.raises(ValueError, match="one label for each of 569 samples"):
        diagnose(svc, X, Y[:5])
