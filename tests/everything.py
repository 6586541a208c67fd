"""Every public estimator that is fitted, in one small setting, with rows and targets for all of them."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from svmarrow import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CodedClassifier,
    KMPClassifier,
    KMPRegressor,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PerceptronTreeClassifier,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.least_squares import (
    BaggedKernelClassifier,
    BaggedKernelRegressor,
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
)
from svmarrow.model_selection import QuantileSVRCV
from svmarrow.online import KernelPerceptron
from svmarrow.svm import QuantileSVR

X, KIND = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
NUMBER = X[:, 0] - np.sin(X[:, 1])
EVERY = [
    SVC(),
    NuSVC(nu=0.2),
    SVR(),
    SVCCV(Cs=3, gammas=3, cv=3),
    SVRCV(Cs=3, gammas=3, cv=3),
    NuSVR(),
    QuantileSVR([0.1, 0.9]),
    QuantileSVRCV(0.9, Cs=3, gammas=3, cv=3),
    OneClassSVM(),
    LowRankSVC(20),
    RLSClassifier(),
    RLSRegressor(),
    LinearRLSClassifier(),
    LinearRLSRegressor(),
    LowRankRLSClassifier(20),
    LowRankRLSRegressor(20),
    BaggedKernelClassifier(n_estimators=2, random_state=0),
    BaggedKernelRegressor(n_estimators=2, random_state=0),
    KMPClassifier(n_vectors=5),
    KMPRegressor(n_vectors=5),
    KernelPerceptron(),
    KernelPerceptron(policy="stop", budget=100),
    KernelPerceptron(policy="oldest", budget=100),
    KernelPerceptron(policy="forgetron", budget=100),
    KernelPerceptron(policy="projectron"),
    KernelPerceptron(policy="projectron++"),
    PerceptronTreeClassifier(),
    CodedClassifier(SVC(), shared=False),
    ReducedSet(SVC(), 8),
    ExactCascade(SVC()),
    CalibratedCascade(SVC(), random_state=0),
]
#: Models of a finished expansion, which nothing fits.
FINISHED = {"ExpansionClassifier", "ExpansionDetector", "ExpansionRegressor"}


def target(estimator):
    return NUMBER if "SVR" in type(estimator).__name__ or "Regressor" in type(estimator).__name__ else KIND
