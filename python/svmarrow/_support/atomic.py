"""Fits that are published as a whole, and methods that read one model, whatever other threads fit meanwhile.

A fit works on a draft: another object of the estimator's class, with its parameters and nothing that an
earlier fit left. When everything is computed, one assignment to ``__dict__`` gives the estimator the
attributes of the draft. A fit that fails, for whatever reason, therefore changes nothing; a refit keeps
nothing of the earlier fit; and a thread that reads finds the earlier model or the new one.

A method that reads several attributes takes a snapshot at its entrance: an object that shares the
``__dict__`` of that moment. A later fit replaces the estimator's ``__dict__`` and leaves the shared one as it
is.

Attributes of a fit are those that the classes of svmarrow declare by annotations, with an underscore in front
or at the end. Whatever else an instance has (parameters, attributes of a subclass of the user) is kept by a
refit.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Kept",
    "atomic_fit",
    "atomic_update",
    "consistent",
    "fitted_names",
    "forget",
    "keeps_last_fit",
    "snapshot",
]

Model = TypeVar("Model")
Method = TypeVar("Method", bound="Callable[..., Any]")

#: Attributes of a fit by class.
_NAMES: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


class Kept(BaseException):
    """Ctrl-C, after an estimator has kept its model as far as it is: ``Kept(estimator)``."""


def fitted_names(kind: type) -> frozenset[str]:
    """The names of the attributes that fits of a class set."""
    names = _NAMES.get(kind)
    if names is None:
        declared = {
            name
            for base in kind.__mro__
            if base.__module__.partition(".")[0] == "svmarrow"
            for name, text in inspect.get_annotations(base).items()
            if (name[0] == "_" or name[-1] == "_") and not str(text).startswith("ClassVar")
        }
        names = frozenset(declared | {"n_features_in_", "feature_names_in_"})
        _NAMES[kind] = names
    return names


def keeps_last_fit(estimator: Any) -> bool:
    """Whether a fit begins from what the last one left."""
    own = getattr(estimator, "_keeps_last_fit", None)
    return bool(getattr(estimator, "warm_start", False) if own is None else own())


def forget(estimator: Any) -> None:
    """Deletes everything that a fit left."""
    for name in fitted_names(type(estimator)) & vars(estimator).keys():
        del vars(estimator)[name]


def snapshot(estimator: Model) -> Model:
    """An object that keeps the model that the estimator has now; parameters and caches are shared."""
    view = object.__new__(type(estimator))
    view.__dict__ = estimator.__dict__
    return view


def consistent(method: Method) -> Method:
    """For methods that read several attributes of a fit: all of one fit."""

    @functools.wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(snapshot(self), *args, **kwargs)

    return cast("Method", read)


def atomic_fit(method: Method) -> Method:
    """For `fit`: runs it on a draft without anything of an earlier fit, and returns the estimator.

    An estimator with ``warm_start=True``, or whose ``_keeps_last_fit()`` is true, begins from the last fit.
    """

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        forgotten = frozenset[str]() if keeps_last_fit(self) else fitted_names(type(self))
        return _on_draft(self, forgotten, method, args, kwargs)

    return cast("Method", fit)


def atomic_update(method: Method) -> Method:
    """For `partial_fit` and whatever else goes on from the last fit: runs it on a draft that has that fit."""

    @functools.wraps(method)
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _on_draft(self, frozenset(), method, args, kwargs)

    return cast("Method", update)


def _on_draft(
    estimator: Any, forgotten: frozenset[str], method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    before = dict(vars(estimator))
    draft = object.__new__(type(estimator))
    draft.__dict__ = {name: value for name, value in before.items() if name not in forgotten}
    try:
        method(draft, *args, **kwargs)
    except Kept as kept:
        if kept.args[0] is draft:
            _publish(estimator, draft, before)
        raise KeyboardInterrupt from None
    _publish(estimator, draft, before)
    return estimator


def _publish(estimator: Any, draft: Any, before: dict[str, Any]) -> None:
    """Gives the estimator what the draft has; of what is no attribute of a fit only what the draft changed.

    So parameters that were set during the fit stay set.
    """
    names, made, absent = fitted_names(type(estimator)), vars(draft), object()
    now = dict(vars(estimator)).items()
    state = {name: value for name, value in now if name not in names and (name in made or name not in before)}
    state |= {
        name: value for name, value in made.items() if name in names or before.get(name, absent) is not value
    }
    # One assignment: another thread, and Ctrl-C, find all of it or nothing.
    estimator.__dict__ = state
