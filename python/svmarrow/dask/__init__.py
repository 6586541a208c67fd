"""Training and prediction on Dask clusters: ``pip install 'svmarrow[dask]'``.

The estimators train on the partitions of Dask collections; `predict`, `decision_function` and `predict_proba`
apply any fitted model of svmarrow lazily to a collection.
"""

from svmarrow.dask.estimator import decision_function, predict, predict_proba
from svmarrow.dask.least_squares import DaskLowRankRLSClassifier, DaskLowRankRLSRegressor
from svmarrow.dask.partition import FitEstimate
from svmarrow.dask.rounds import Round
from svmarrow.dask.svm import DaskLowRankSVC, DaskSVC

__all__ = [
    "DaskLowRankRLSClassifier",
    "DaskLowRankRLSRegressor",
    "DaskLowRankSVC",
    "DaskSVC",
    "FitEstimate",
    "Round",
    "decision_function",
    "predict",
    "predict_proba",
]
