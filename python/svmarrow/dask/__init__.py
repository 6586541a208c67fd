"""Training and prediction beyond one machine, on Dask: ``pip install 'svmarrow[dask]'``.

The classes train on the partitions of Dask collections; `predict` and `decision_function` apply any fitted
model of svmarrow to a collection, lazily.
"""

from svmarrow.dask.forecast import FitEstimate
from svmarrow.dask.least_squares import DaskLowRankRLSClassifier, DaskLowRankRLSRegressor
from svmarrow.dask.low_rank_svm import DaskLowRankSVC
from svmarrow.dask.prediction import decision_function, predict
from svmarrow.dask.rounds import Round
from svmarrow.dask.svm import DaskSVC

__all__ = [
    "DaskLowRankRLSClassifier",
    "DaskLowRankRLSRegressor",
    "DaskLowRankSVC",
    "DaskSVC",
    "FitEstimate",
    "Round",
    "decision_function",
    "predict",
]
