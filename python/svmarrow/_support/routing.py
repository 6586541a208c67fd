"""Routing of metadata, such as sample weights, from a meta-estimator to its estimator.

Without ``enable_metadata_routing`` a meta-estimator passes weights to estimators that accept a
``sample_weight``, and no other metadata. With it the inner estimator requests its metadata
(``set_fit_request(sample_weight=True)``), possibly under another name, and metadata without a request is an
error.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn import get_config
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _check_method_params, has_fit_parameter

__all__ = ["RoutesFit", "check_takes_weights", "is_routing", "of_rows"]


def is_routing() -> bool:
    """Returns whether scikit-learn's metadata routing is enabled."""
    return bool(get_config()["enable_metadata_routing"])


def check_takes_weights(estimator: Any) -> None:
    """Raises ValueError for an estimator whose `fit` does not accept weights."""
    if has_fit_parameter(estimator, "sample_weight"):
        return
    if is_routing() and get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
        return
    name = type(estimator).__name__
    raise ValueError(f"{name}.fit takes no sample_weight: leave out sample_weight and class_weight")


def of_rows(X: Any, params: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Selects the metadata of some rows of X; metadata that is not per row is returned unchanged."""
    return dict(_check_method_params(X, params, rows))


class RoutesFit:
    """A meta-estimator whose `fit` passes on the metadata that its estimator requests."""

    # The meta-estimator requests weights itself; its estimator has to request them too.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_weight": True}

    estimator: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing: `fit` passes on what the estimator requests by ``set_fit_request``.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The routing, see scikit-learn's user guide on metadata routing.
        """
        own = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return own.add(estimator=self.estimator, method_mapping=mapping)

    def _for_estimator(self, sample_weight: Any, metadata: dict[str, Any]) -> dict[str, Any]:
        """Returns the metadata for the estimator's `fit`.

        Raises
        ------
        ValueError
            For metadata other than weights if routing is disabled, and for weights without a request if it is
            enabled (`sklearn.exceptions.UnsetMetadataPassedError`).
        TypeError
            For metadata that is unknown to the estimator, if routing is enabled.
        """
        given = metadata if sample_weight is None else {**metadata, "sample_weight": sample_weight}
        if given and is_routing():
            return dict(process_routing(self, "fit", **given)["estimator"]["fit"])
        if metadata:
            raise ValueError(
                f"{', '.join(sorted(metadata))} cannot be passed to {type(self).__name__}.fit: first enable "
                "metadata routing, sklearn.set_config(enable_metadata_routing=True)"
            )
        return given
