"""Atomic fits, and methods that read one consistent model while other threads fit.

A fit works on a draft: another object of the estimator's class with its parameters and without the attributes
of an earlier fit. After the last computation, one assignment to ``__dict__`` gives the estimator the
attributes of the draft. So a fit that fails changes nothing, a refit keeps nothing of the earlier fit, and
another thread reads either the earlier model or the new one.

A method that reads several attributes first takes a snapshot: an object that shares the current ``__dict__``.
A later fit replaces the estimator's ``__dict__`` and leaves the shared one unchanged.

Fitted attributes are those that the classes of svmarrow annotate and whose names begin or end with an
underscore. A refit keeps all others (parameters, attributes of user-defined subclasses).
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "InterruptedFit",
    "atomic_fit",
    "atomic_update",
    "consistent",
    "fitted_attribute_names",
    "snapshot",
    "starts_from_last_fit",
    "warn_caller",
]

Model = TypeVar("Model")
Method = TypeVar("Method", bound="Callable[..., Any]")

#: Fitted attributes by class.
_FITTED_ATTRIBUTES: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


class InterruptedFit(BaseException):
    """Raised on Ctrl-C after an estimator has stored its model so far: ``InterruptedFit(estimator)``."""


def fitted_attribute_names(kind: type) -> frozenset[str]:
    """Returns the names of the fitted attributes of a class."""
    names = _FITTED_ATTRIBUTES.get(kind)
    if names is None:
        declared = {
            name
            for base in kind.__mro__
            if base.__module__.partition(".")[0] == "svmarrow"
            for name, text in inspect.get_annotations(base).items()
            if (name[0] == "_" or name[-1] == "_") and not str(text).startswith("ClassVar")
        }
        names = frozenset(declared | {"n_features_in_", "feature_names_in_"})
        _FITTED_ATTRIBUTES[kind] = names
    return names


def starts_from_last_fit(estimator: Any) -> bool:
    """Returns whether a fit starts from the previous one."""
    continues = getattr(estimator, "_starts_from_last_fit", None)
    return bool(getattr(estimator, "warm_start", False) if continues is None else continues())


def snapshot(estimator: Model) -> Model:
    """Returns an object that keeps the current model; parameters and caches are shared."""
    view = object.__new__(type(estimator))
    view.__dict__ = estimator.__dict__
    return view


def consistent(method: Method) -> Method:
    """Decorates a method that reads several fitted attributes, so that all are of one fit."""

    @functools.wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(snapshot(self), *args, **kwargs)

    return cast("Method", read)


def atomic_fit(method: Method) -> Method:
    """Decorates `fit` so that it runs on a draft without fitted attributes and returns the estimator.

    An estimator with ``warm_start=True``, or whose ``_starts_from_last_fit()`` is true, starts from the
    previous fit.
    """

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        dropped = frozenset[str]() if starts_from_last_fit(self) else fitted_attribute_names(type(self))
        return _on_draft(self, dropped, method, args, kwargs)

    return cast("Method", fit)


def atomic_update(method: Method) -> Method:
    """Decorates `partial_fit` and other updates so that they run on a draft with the previous fit."""

    @functools.wraps(method)
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _on_draft(self, frozenset(), method, args, kwargs)

    return cast("Method", update)


def _on_draft(
    estimator: Any, dropped: frozenset[str], method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    before = dict(vars(estimator))
    draft = object.__new__(type(estimator))
    draft.__dict__ = {name: value for name, value in before.items() if name not in dropped}
    try:
        method(draft, *args, **kwargs)
    except InterruptedFit as interruption:
        if interruption.args[0] is draft:
            _publish(estimator, draft, before)
        raise KeyboardInterrupt from None
    _publish(estimator, draft, before)
    return estimator


def _publish(estimator: Any, draft: Any, before: dict[str, Any]) -> None:
    """Gives the estimator the fitted attributes of the draft, and other attributes that the draft changed.

    So parameters that another thread sets during the fit stay set.
    """
    names, new, absent = fitted_attribute_names(type(estimator)), vars(draft), object()
    now = dict(vars(estimator)).items()
    state = {name: value for name, value in now if name not in names and (name in new or name not in before)}
    state |= {
        name: value for name, value in new.items() if name in names or before.get(name, absent) is not value
    }
    # One assignment, so that neither another thread nor Ctrl-C can see a part of it.
    estimator.__dict__ = state


# --- warnings that point to the line of the user's code ---


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warns with the line of the first caller outside svmarrow and scikit-learn's wrapper of `fit`."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_between(module: str) -> bool:
    return module.partition(".")[0] == "svmarrow" or module == "sklearn.base"
