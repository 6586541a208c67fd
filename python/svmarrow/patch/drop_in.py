"""What the replacements share: scikit-learn's constructor, and the original where svmarrow refuses."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from svmarrow._support.atomic import consistent, forget, snapshot
from svmarrow._support.rows import weights_differ
from svmarrow._support.warn import warn_caller
from svmarrow.interop import as_expansion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from svmarrow._support.parameters import Rule

__all__ = ["DropIn", "HandedOver"]

#: Methods that the original answers where it has fitted.
_ANSWERS = frozenset({"decision_function", "predict", "predict_log_proba", "predict_proba", "score_samples"})


class HandedOver(UserWarning):
    """svmarrow could not do what was asked for, scikit-learn's original class has done it."""


class DropIn:
    """A class of svmarrow and its original of scikit-learn as one: svmarrow's where both have a name.

    A subclass names svmarrow's class and then the original among its bases. Its constructor, parameters,
    rules and documentation are those of the original, in the version that is installed.

    Whatever svmarrow's `fit` refuses is handed to an object of the original class. So users see
    scikit-learn's own errors; where the original has no objection, it stands behind all methods and
    attributes.
    """

    #: scikit-learn's class.
    original: ClassVar[Any]
    _rules: ClassVar[Mapping[str, Rule]]
    _handed_to: Any

    def __init_subclass__(cls, *, original: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options if original is None else {**options, "stored": False})
        if original is not None:
            cls.original = original
            cls.__init__ = original.__init__  # type: ignore[method-assign]
            cls.__doc__ = original.__doc__
        if hasattr(cls, "original"):
            taken = inspect.signature(cls).parameters
            cls._rules = {name: rule for name, rule in cls._rules.items() if name in taken}

    def __getattribute__(self, name: str) -> Any:
        if name in _ANSWERS or (name[-1] == "_" and name[0] != "_"):
            # Both are asked of one model, whatever another thread fits meanwhile.
            view = snapshot(self)
            handed = vars(view).get("_handed_to")
            return object.__getattribute__(view, name) if handed is None else getattr(handed, name)
        return object.__getattribute__(self, name)

    def _fit_or_hand_over(
        self, fit: Callable[[Any, Any, Any], Any], X: Any, y: Any, sample_weight: Any
    ) -> Self:
        """Fits by svmarrow; what it refuses, the original does, or refuses in its own words."""
        try:
            fit(X, y, sample_weight)
        except (ValueError, TypeError, MemoryError) as refusal:
            reason = str(refusal) or type(refusal).__name__
        else:
            return self
        names = self.original._get_param_names()
        original = self.original(**{name: getattr(self, name) for name in names})
        original.fit(X, y, sample_weight=sample_weight)
        own = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        forget(self)
        self._weighted = weights_differ(own) or None
        self._handed_to = original
        name = self.original.__name__
        warn_caller(f"scikit-learn's {name} has done what svmarrow's {name} could not: {reason}", HandedOver)
        return self

    def _get_doc_link(self) -> str:
        """The page of scikit-learn's class, whose documentation is that of this one."""
        link: str = self.original()._get_doc_link()
        return link

    def __sklearn_is_fitted__(self) -> bool:
        return {"_handed_to", "expansion_"} & vars(self).keys() != set()

    @consistent
    def as_expansion(self) -> Any:
        """The fitted model as a kernel expansion, without the training."""
        handed = vars(self).get("_handed_to")
        if handed is None:
            return super().as_expansion()  # type: ignore[misc]
        converted = as_expansion(handed)
        return converted.with_weighted(True) if vars(self).get("_weighted") else converted
