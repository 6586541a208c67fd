"""Base class of all estimators and models: parameters, saving, callbacks and links to the documentation.

In notebooks scikit-learn shows an estimator as HTML with its parameters and fitted attributes. If the class
has a documentation page, it adds a link and the description of each parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn import get_config
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from svmarrow._support.bases import BaseEstimator, CallbackSupportMixin
from svmarrow._support.parameters import check
from svmarrow._support.saving import check_columns, save_method
from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from svmarrow._support.parameters import Rule


__all__ = [
    "Estimator",
    "RoutesFit",
    "check_takes_weights",
    "is_routing",
    "of_rows",
]


# --- routing of metadata, such as sample weights, from a meta-estimator to its estimator ---
# Without ``enable_metadata_routing`` a meta-estimator passes weights to estimators that accept a
# ``sample_weight``, and no other metadata. With it the inner estimator requests its metadata
# (``set_fit_request(sample_weight=True)``), possibly under another name, and metadata without a request is
# an error.


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
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=mapping)

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


#: URL of the documentation pages with a slash at the end; empty while there are none.
SITE = ""


class Estimator(CallbackSupportMixin, BaseEstimator):
    """An object with parameters; ``class Name(..., schema="name/1")`` can be saved."""

    # scikit-learn links only to classes of this package; an empty name disables links.
    _doc_link_module: ClassVar[str] = "svmarrow" if SITE else ""
    _doc_link_template: ClassVar[str] = SITE + "svmarrow.{name}.html"

    #: Rules of the parameters.
    _rules: ClassVar[Mapping[str, Rule]] = {}
    #: The fields of private attributes in files; public ones are fields under their own names.
    _stored_as: ClassVar[dict[str, str]] = {}
    #: Attributes without a field: `_after_load` or a method computes them again, or the class has none.
    _transient: ClassVar[tuple[str, ...]] = ()
    #: Whether the samples or classes of the fit had different weights; None if that is unknown.
    _weighted: bool | None = None

    def __init_subclass__(cls, *, schema: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if schema is not None:
            savable(schema)(cls)

    save: ClassVar[Callable[..., None]] = save_method

    def _check_parameters(self) -> None:
        """Raises ``ValueError`` for a parameter outside its rule."""
        check({name: getattr(self, name) for name in self._rules}, self._rules)

    def _stored(self) -> dict[str, Any]:
        """Returns the attributes to store, including the arguments of the constructor."""
        return vars(self)

    def _after_load(self) -> None:
        """Checks that the attributes are consistent, and computes transient ones."""
        as_expansion = getattr(self, "as_expansion", None)
        if as_expansion is not None:
            # Creating the expansion checks labels, decoding and outputs.
            check_columns(self, as_expansion().expansion_)

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": type(self).__name__}
