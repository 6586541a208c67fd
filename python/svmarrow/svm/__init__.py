"""Support vector machines: scikit-learn's family on one solver.

| estimator | problem |
|---|---|
| `SVC` | classification, hinge or squared hinge loss, with or without intercept |
| `NuSVC` | classification, nu bounds the share of rows inside the margin |
| `SVR` | regression, deviations below epsilon cost nothing |
| `NuSVR` | regression, nu bounds the share of rows outside the tube |
| `OneClassSVM` | where most of the rows lie |
| `LowRankSVC` | classification with coefficients at a few points |
"""

from svmarrow._support.certificate import Certificate, LeaveOneOut, MachineCertificate
from svmarrow.svm._base import MemoryEstimate
from svmarrow.svm.classification import SVC, NuSVC
from svmarrow.svm.low_rank import LowRankSVC
from svmarrow.svm.one_class import OneClassSVM
from svmarrow.svm.regression import SVR, NuSVR

__all__ = [
    "SVC",
    "SVR",
    "Certificate",
    "LeaveOneOut",
    "LowRankSVC",
    "MachineCertificate",
    "MemoryEstimate",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
]
