"""Base classes of estimators, of models and of paths, and the classes whose conversions are known.

`Estimator`: parameters, saving, callbacks and links to the documentation. In notebooks scikit-learn shows
an estimator as HTML with its parameters and fitted attributes. If the class has a documentation page, it
adds a link and the description of each parameter.

`SizePath`: models of several sizes from one fit or one compression. It provides indexing, iteration and the
plot of the scores; a subclass creates the model of a size and scores all sizes together.

`find_kind`, `check_own`: classes that are converted by name, and subclasses of them, which may predict
something else. A conversion knows what the methods of a class compute. It holds for instances of that
class, and for instances of a subclass whose predictions are made by the same functions. A subclass may
train in another way, because a conversion reads what training has left.

`columns_of`, `metadata_of`: the facts of any fitted estimator, scikit-learn's too, that a model takes over.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from svmarrow._support.bases import BaseEstimator, CallbackSupportMixin
from svmarrow._support.displays import SizeAccuracyDisplay, new_axes
from svmarrow._support.parameters import check, integer
from svmarrow._support.rows import dense
from svmarrow._support.saving import check_columns, save_method
from svmarrow._support.schemas import savable
from svmarrow._support.training import weights_differ

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Rule

__all__ = [
    "REMEDY",
    "Estimator",
    "RoutesFit",
    "SizePath",
    "check_fitted",
    "check_overrides",
    "check_own",
    "check_takes_weights",
    "columns_of",
    "find_kind",
    "is_routing",
    "metadata_of",
    "of_rows",
    "scoring_chunks",
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


# --- paths of sizes ---

MAX_SCORING_BYTES = 64 << 20
"""Maximum number of bytes of the outputs of all sizes while scoring."""


class SizePath(ABC):
    """Models of several sizes from one run.

    ``path[n]`` is the model with n vectors for each n of ``path.sizes``, ready to predict; ``len(path)`` is
    the number of models, and iteration yields them from the smallest to the largest.

    Attributes
    ----------
    order : ndarray of int or None
        Indices of the chosen candidates in the order of the choice; a model of n vectors has the first n.
        None if every size has its own vectors.
    residual_norms : ndarray or None
        Distance of the model of each size, from 0 vectors on, to the approximated model; None if only the
        targets are approximated.
    """

    order: NDArray[np.int64] | None = None
    residual_norms: NDArray[np.float64] | None = None

    @property
    @abstractmethod
    def sizes(self) -> Sequence[int]:
        """Sizes in increasing order; a `range` if none is missing."""

    @abstractmethod
    def _model(self, size: int) -> Any:
        """Returns the model of one of the sizes."""

    @abstractmethod
    def scores(self, X: ArrayLike, y: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Returns the score of each size on the given samples; None means all sizes."""

    @abstractmethod
    def select(self, X: ArrayLike, y: ArrayLike, max_loss: float) -> Any:
        """Returns the smallest model whose score is at most `max_loss` below the reference."""

    @abstractmethod
    def _plot_arguments(self, X: ArrayLike, y: ArrayLike) -> dict[str, Any]:
        """Returns further arguments of `SizeAccuracyDisplay`."""

    save: ClassVar[Callable[..., None]] = save_method

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Any]:
        return map(self._model, self.sizes)

    def __getitem__(self, size: int) -> Any:
        """Return the model with `size` vectors.

        Parameters
        ----------
        size : int
            One of `sizes`.

        Returns
        -------
        object
            The fitted model.

        Raises
        ------
        TypeError
            If the size is not an integer.
        IndexError
            If the path does not have the size.
        """
        return self._model(self._checked_size(size))

    def _checked_size(self, size: Any) -> int:
        rule = integer()
        if not rule.holds(size):
            raise TypeError(f"size={size!r} is not allowed: it must be {rule.text}")
        if int(size) not in self.sizes:
            raise IndexError(f"size={size} is not on this path: it has the sizes {self._listed_sizes()}")
        return int(size)

    def _listed_sizes(self) -> str:
        if isinstance(self.sizes, range):
            return f"{self.sizes[0]} to {self.sizes[-1]}"
        return ", ".join(map(str, self.sizes))

    def plot(
        self,
        X: ArrayLike,
        y: ArrayLike,
        ax: Any = None,
        *,
        sizes: Sequence[int] | None = None,
        chosen: int | None = None,
        baseline: tuple[ArrayLike, ArrayLike] | None = None,
        **line_options: Any,
    ) -> SizeAccuracyDisplay:
        """Draw the error against the number of vectors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        sizes : sequence of int, default=None
            Sizes to draw; None means all.
        chosen : int, default=None
            A size to highlight.
        baseline : (array-like of int, array-like), default=None
            Sizes and scores of other models to compare with, as
            `svmarrow.reduced_set.subsample_baseline` returns them.
        **line_options : Any
            Passed to matplotlib's ``plot`` for the curve.

        Returns
        -------
        SizeAccuracyDisplay
            With ``ax_`` and ``figure_``.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If no model has a vector.
        """
        ax = new_axes(ax)
        drawn = [size for size in sorted(set(self.sizes if sizes is None else sizes)) if size > 0]
        if not drawn:
            raise ValueError("the models of this path have no vectors: there is nothing to draw")
        others = (None, None) if baseline is None else baseline
        display = SizeAccuracyDisplay(
            drawn,
            self.scores(X, y, drawn),
            chosen=chosen,
            baseline_sizes=others[0],
            baseline_scores=others[1],
            **self._plot_arguments(X, y),
        )
        return display.plot(ax=ax, **line_options)


def scoring_chunks(n_rows: int, numbers_per_row: int) -> Iterator[slice]:
    """Yields slices of rows so small that the outputs of all sizes fit into `MAX_SCORING_BYTES`."""
    step = max(1, MAX_SCORING_BYTES // (8 * max(1, numbers_per_row)))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


# --- classes that are converted, and subclasses that predict in another way ---

#: What to do with a subclass that predicts in its own way.
REMEDY = "fit the class itself, or give the subclass a method as_expansion that returns what it predicts"

#: Special methods of which a prediction may depend; no other does.
_SPECIAL = ("__call__", "__getattr__", "__getattribute__")
#: Attributes of which no prediction depends, and beginnings of their names.
_HARMLESS = frozenset(
    {
        "fit",
        "fit_predict",
        "fit_transform",
        "partial_fit",
        "score",
        "get_params",
        "set_params",
        "set_output",
        "get_feature_names_out",
        "get_metadata_routing",
        "inverse_transform",
        "estimate_memory",
        "save",
        "_abc_impl",
        "_get_param_names",
        "_estimator_type",
        "_more_tags",
        "_parameter_constraints",
        "_repr_html_",
        "_repr_html_inner",
        "_repr_mimebundle_",
        "_required_parameters",
        "_rules",
        "_sklearn_auto_wrap_output_keys",
        "_validate_params",
    }
)
_HARMLESS_BEGINNINGS = ("_fit", "_doc_link", "_get_doc_link", "_build_request", "_get_default_requests")
#: What every selector of features must define, and its conversion calls.
_DEFINED_BY_SUBCLASSES = {"SelectorMixin": ("get_support", "_get_support_mask")}


def package_of(kind: type) -> str:
    """Returns the name of the package of a class."""
    return kind.__module__.partition(".")[0]


def find_kind(value: object, names: Collection[str], remedy: str) -> str | None:
    """Returns the name among `names` of the class of scikit-learn that a value is an instance of.

    None for any other value. A TypeError for an instance of a subclass that overrides what predicts.
    """
    for kind in type(value).__mro__:
        if package_of(kind) == "sklearn" and kind.__name__ in names:
            check_overrides(value, kind, remedy)
            return kind.__name__
    return None


def check_own(model: object, name: str = "as_expansion") -> None:
    """Raises ``TypeError`` for an instance of a subclass that predicts in another way than its conversion.

    The class that defines the method of this `name`, which converts, answers for itself. So do the classes of
    svmarrow for what they inherit.
    """
    definer = next((kind for kind in type(model).__mro__ if name in vars(kind)), None)
    if definer is not None:
        check_overrides(model, definer, REMEDY)


def check_overrides(value: object, known: type, remedy: str) -> None:
    """Raises ``TypeError`` if a value predicts by other functions than the class that is known.

    Parameters
    ----------
    value : object
        An instance of a subclass of `known`.
    known : type
        The class. Subclasses of it in its own package are known too.
    remedy : str
        The end of the message.
    """
    package = package_of(known)
    kinds = (k for k in type(value).__mro__ if issubclass(k, known) and package_of(k) == package)
    base = next(kinds, known)
    changed = _changed(value, base)
    if changed:
        raise TypeError(
            f"{type(value).__name__} is a subclass of {base.__name__} with another {', '.join(changed[:4])}, "
            f"and is not converted as a {base.__name__}, which may predict something else: {remedy}"
        )


def _changed(value: object, base: type) -> list[str]:
    """Returns the names of the functions and attributes of `base` that a value has in another form."""
    kind, inherited = type(value), _DEFINED_BY_SUBCLASSES.get(base.__name__, ())
    names = {*dir(base), "__getattr__"} if kind is not base else set()
    changed = {name for name in names if name not in inherited and _differs(kind, base, name)}
    # A function that was set on the instance hides the method of its class.
    attributes = getattr(value, "__dict__", {})
    changed |= {
        name
        for name in attributes
        if callable(attributes[name]) and inspect.isroutine(getattr(base, name, None))
    }
    return sorted(name for name in changed if _matters(name))


def _matters(name: str) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name in _SPECIAL
    is_request = name.startswith("set_") and name.endswith("_request")
    return not (is_request or name in _HARMLESS or name.startswith(_HARMLESS_BEGINNINGS))


def _differs(kind: type, base: type, name: str) -> bool:
    """Returns whether a subclass has another attribute of this name, from outside of ``sklearn.base``."""
    missing = object()
    attribute = inspect.getattr_static(kind, name, missing)
    if attribute is inspect.getattr_static(base, name, missing):
        return False
    definer = next((each for each in kind.__mro__ if name in vars(each)), object)
    return definer.__module__ != "sklearn.base"


def check_fitted(model: Any) -> None:
    """Raise NotFittedError, which names the class, for an estimator that is not fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit first") from None


def columns_of(model: Any) -> dict[str, Any]:
    """Names and number of the features, as parameters of an `ExpansionModel`."""
    return {
        "feature_names": getattr(model, "feature_names_in_", None),
        "n_features": getattr(model, "n_features_in_", None),
    }


def metadata_of(model: Any) -> dict[str, Any]:
    """`columns_of`, and whether the model was fitted with weights that differ."""
    return {**columns_of(model), "weighted": _weighted(model)}


def _weighted(model: Any) -> bool | None:
    """True if the model was fitted with weights that differ; None if that is not known.

    scikit-learn's machines keep the weights of classes. Those of rows show where coefficients exceed C, and
    are not known otherwise.
    """
    if hasattr(model, "_weighted"):
        known: bool | None = model._weighted
        return known
    if weights_differ(getattr(model, "class_weight_", None)):
        return True
    dual, C = getattr(model, "dual_coef_", None), getattr(model, "C", None)
    if isinstance(C, Real) and dual is not None and np.abs(dense(dual)).max(initial=0.0) > 1.000001 * C:
        return True
    return None
