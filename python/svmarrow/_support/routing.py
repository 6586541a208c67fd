"""Metadata of a fit, weights above all, on their way to the estimator inside a meta-estimator.

scikit-learn has two ways. Without ``enable_metadata_routing`` a meta-estimator hands weights to whatever
takes a ``sample_weight``, and nothing else. With it the inner estimator says what it asks for
(``set_fit_request(sample_weight=True)``), under a name of its own if it likes, and what it has said nothing
about is an error.
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
    """Whether scikit-learn's metadata routing is on."""
    return bool(get_config()["enable_metadata_routing"])


def check_takes_weights(estimator: Any) -> None:
    """A ValueError for an estimator whose `fit` takes no weights."""
    if has_fit_parameter(estimator, "sample_weight"):
        return
    if is_routing() and get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
        return
    name = type(estimator).__name__
    raise ValueError(f"{name}.fit takes no sample_weight: leave out sample_weight and class_weight")


def of_rows(X: Any, params: dict[str, Any], rows: Any) -> dict[str, Any]:
    """The metadata of some rows of X: what has an entry for each row is cut, the rest stays as it is."""
    return dict(_check_method_params(X, params, rows))


class RoutesFit:
    """A meta-estimator whose `fit` hands on what its estimator asks for."""

    # It takes weights from whatever is around it; its estimator has to ask for them.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_weight": True}

    estimator: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """What `fit` hands on: metadata that the estimator asks for by its own ``set_fit_request``.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The routes, see scikit-learn's user guide on metadata routing.
        """
        own = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return own.add(estimator=self.estimator, method_mapping=mapping)

    def _for_estimator(self, sample_weight: Any, metadata: dict[str, Any]) -> dict[str, Any]:
        """What the estimator's `fit` gets.

        Raises
        ------
        ValueError
            For metadata other than weights while routing is off, and for weights that the estimator has said
            nothing about while it is on (`sklearn.exceptions.UnsetMetadataPassedError`).
        TypeError
            For metadata that the estimator does not know, while routing is on.
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
