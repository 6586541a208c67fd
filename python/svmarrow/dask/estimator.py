"""Base classes of the Dask estimators: the client, lazy prediction, scores, and the local estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import consistent
from svmarrow.dask.blocks import is_lazy
from svmarrow.dask.cluster import cluster_of, some_client
from svmarrow.dask.prediction import predict_lazily
from svmarrow.dask.scores import score

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from svmarrow.dask.cluster import Cluster

__all__ = ["DaskClassifier", "DaskEstimator"]


class DaskEstimator:
    """Base class; the local estimator, whose parameters and attributes are the same, is a second base."""

    #: Class of the local estimator.
    _local_class: ClassVar[type[Any]]
    #: Fitted attributes that the local estimator does not have.
    _dask_attributes: ClassVar[tuple[str, ...]] = ()

    @property
    def client(self) -> Any:
        """The client of the cluster; the current one of the process or task if none was set.

        It is not a parameter: clones and pickles do not have it.
        """
        return some_client(self.__dict__.get("_client"))

    @client.setter
    def client(self, client: Any) -> None:
        self.__dict__["_client"] = client

    def _connected(self) -> AbstractContextManager[Cluster]:
        return cluster_of(self.__dict__.get("_client"))

    @consistent
    def to_local(self) -> Any:
        """Get the fitted model as the local estimator, which does not need Dask."""
        check_is_fitted(self)
        plain: Any = self
        local = self._local_class(**plain.get_params(deep=False))
        excluded = {"_client", *self._dask_attributes}
        local.__dict__ |= {name: value for name, value in vars(self).items() if name not in excluded}
        return local

    def _to_save(self) -> Any:
        return self.to_local()

    @consistent
    def predict(self, X: Any) -> Any:
        """Predict a Dask collection lazily, or other samples immediately as the local estimator does.

        Parameters
        ----------
        X : dask array, dask frame or {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array, dask series or frame, or ndarray
            An array for an array; for a frame a series, or a frame if there are several targets, with its
            index.
        """
        if not is_lazy(X):
            plain: Any = super()
            return plain.predict(X)
        return self._lazily(X, "predict")

    def _lazily(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        return predict_lazily(self, X, method, self.client)

    @consistent
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier or R^2 of a regressor, as in scikit-learn.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Samples, and their labels or targets.
        sample_weight : dask collection, array or None, default=None
            Weights of the samples.

        Returns
        -------
        float
            The score, computed immediately.
        """
        plain: Any = self
        if not is_lazy(X):
            own: Any = super()
            return float(own.score(X, y, sample_weight))
        check_is_fitted(plain)
        with self._connected() as cluster:
            return score(cluster, self, X, y, sample_weight, accuracy=is_classifier(self))

    def __getstate__(self) -> dict[str, Any]:
        plain: Any = super()
        state = plain.__getstate__()
        return {name: value for name, value in state.items() if name != "_client"}


class DaskClassifier(DaskEstimator):
    """Base class of the classifiers."""

    @consistent
    def decision_function(self, X: Any) -> Any:
        """Compute decision values of a Dask collection lazily, or of other samples immediately.

        Parameters
        ----------
        X : dask array, dask frame or {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array, dask series or frame, or ndarray
            Decision values in the shape of the local estimator's.
        """
        if not is_lazy(X):
            plain: Any = super()
            return plain.decision_function(X)
        return self._lazily(X, "decision_function")
