"""What the estimators on Dask share: the client, lazy prediction, scores, and the plain estimator inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from svmarrow._support.atomic import consistent
from svmarrow.dask.blocks import is_lazy
from svmarrow.dask.cluster import connected, some_client
from svmarrow.dask.prediction import lazily
from svmarrow.dask.scores import score

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from svmarrow.dask.cluster import Cluster

__all__ = ["DaskClassifier", "DaskEstimator"]


class DaskEstimator:
    """In front of the plain estimator, whose parameters and fitted attributes it has."""

    #: The plain estimator.
    _plain: ClassVar[type[Any]]
    #: What a fit leaves beside the attributes of the plain estimator.
    _beside: ClassVar[tuple[str, ...]] = ()

    @property
    def client(self) -> Any:
        """The client of the cluster; without one of its own, the current one of the process or task.

        It is no parameter: copies and pickles are without it.
        """
        return some_client(self.__dict__.get("_client"))

    @client.setter
    def client(self, client: Any) -> None:
        self.__dict__["_client"] = client

    def _connected(self) -> AbstractContextManager[Cluster]:
        return connected(self.__dict__.get("_client"))

    @consistent
    def to_local(self) -> Any:
        """The fitted model as the plain estimator, which needs no Dask."""
        check_is_fitted(self)
        plain: Any = self
        local = self._plain(**plain.get_params(deep=False))
        left_out = {"_client", *self._beside}
        local.__dict__ |= {name: value for name, value in vars(self).items() if name not in left_out}
        return local

    def _to_save(self) -> Any:
        return self.to_local()

    @consistent
    def predict(self, X: Any) -> Any:
        """Predictions: of a Dask collection lazily, of anything else at once, as the plain estimator.

        Parameters
        ----------
        X : dask array, dask frame or {array-like, sparse matrix} of shape (n, n_features_in_)
            Rows.

        Returns
        -------
        dask array, dask series or frame, or ndarray
            An array for an array; a series, or a frame for several targets, with the index of a frame.
        """
        if not is_lazy(X):
            plain: Any = super()
            return plain.predict(X)
        return self._lazily(X, "predict")

    def _lazily(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        return lazily(self, X, method, self.client)

    @consistent
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R^2 of a regressor, as scikit-learn has them.

        Parameters
        ----------
        X, y : dask collections in the same chunks, or arrays
            Rows, and what is true of them.
        sample_weight : dask collection, array or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            Computed at once, a partition at a time.
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
    """One with a decision function."""

    @consistent
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes: of a Dask collection lazily, of anything else at once.

        Parameters
        ----------
        X : dask array, dask frame or {array-like, sparse matrix} of shape (n, n_features_in_)
            Rows.

        Returns
        -------
        dask array, dask series or frame, or ndarray
            In the shape of the plain estimator's.
        """
        if not is_lazy(X):
            plain: Any = super()
            return plain.decision_function(X)
        return self._lazily(X, "decision_function")
