"""Support vector machines with scikit-learn's interface, and the certificates of their fits.

| estimator | problem |
|---|---|
| `svmarrow.SVC` | classification, hinge or squared hinge loss, with or without intercept |
| `svmarrow.NuSVC` | classification, nu bounds the share of samples inside the margin |
| `svmarrow.SVR` | regression, deviations below epsilon cost nothing |
| `svmarrow.NuSVR` | regression, nu bounds the share of samples outside the tube |
| `QuantileSVR` | regression, functions below which given shares of the targets lie |
| `svmarrow.OneClassSVM` | novelty detection |
| `svmarrow.LowRankSVC` | classification with a fixed number of vectors |
"""

from svmarrow.models.machine import Certificate, LeaveOneOut, MachineCertificate
from svmarrow.svm.regression import QuantileSVR

__all__ = ["Certificate", "LeaveOneOut", "MachineCertificate", "QuantileSVR"]
