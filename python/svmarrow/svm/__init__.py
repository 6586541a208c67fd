"""Support vector machines: scikit-learn's family on one solver, and the certificates of their fits.

| estimator | problem |
|---|---|
| `svmarrow.SVC` | classification, hinge or squared hinge loss, with or without intercept |
| `svmarrow.NuSVC` | classification, nu bounds the share of rows inside the margin |
| `svmarrow.SVR` | regression, deviations below epsilon cost nothing |
| `svmarrow.NuSVR` | regression, nu bounds the share of rows outside the tube |
| `QuantileSVR` | regression, functions below which given shares of the targets lie |
| `svmarrow.OneClassSVM` | where most of the rows lie |
| `svmarrow.LowRankSVC` | classification with coefficients at a few points |
"""

from svmarrow._support.certificate import Certificate, LeaveOneOut, MachineCertificate
from svmarrow.svm._base import MemoryEstimate
from svmarrow.svm.quantile import QuantileSVR

__all__ = ["Certificate", "LeaveOneOut", "MachineCertificate", "MemoryEstimate", "QuantileSVR"]
