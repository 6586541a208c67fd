"""Classes that are converted by name, and subclasses of them, which may predict something else.

A conversion knows what the methods of a class compute. It holds for instances of that class, and for
instances of a subclass whose predictions are made by the same functions. A subclass may train in another way,
because a conversion reads what training has left.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["REMEDY", "check_overrides", "check_own", "find_kind", "package_of"]

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
