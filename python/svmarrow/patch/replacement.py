"""Base class of the replacements: fits by svmarrow, and by scikit-learn's own code where svmarrow refuses."""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from svmarrow._support.parameters import consistent, warn_caller
from svmarrow._support.training import weights_differ
from svmarrow.exceptions import FallbackWarning
from svmarrow.interop.convert import CONVERTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from svmarrow.expansion.kernel_expansion import KernelExpansion


__all__ = [
    "ADDED_ATTRIBUTES",
    "REPLACED",
    "Replacement",
    "like",
    "patch_sklearn",
    "unpatch_sklearn",
]

#: Attributes of a fit by svmarrow that scikit-learn's class does not have.
ADDED_ATTRIBUTES = ("certificate_", "expansion_")

#: Pairs (class, reason) that a warning has reported in this process.
_REPORTED: set[tuple[str, str]] = set()
#: Numbers, and lists of them: they do not distinguish reasons.
_NUMBERS = re.compile(r"[\[(]*-?\d[\d.e+\-,\s\[\]()]*")


def like(original: Any) -> Callable[[Any], Any]:
    """A decorator for a method: signature and documentation are those of the original class."""

    def decorate(method: Any) -> Any:
        return functools.wraps(getattr(original, method.__name__))(method)

    return decorate


class Replacement:
    """A class of scikit-learn, its original, whose fits and predictions are svmarrow's.

    Constructor, parameters and documentation are the original's, in the version that is installed. A fit
    leaves every attribute that the original's leaves, private ones included, and `ADDED_ATTRIBUTES`. So the
    original's own methods work on the same object, and do so where svmarrow's `fit` refuses: users see
    scikit-learn's errors, or its model.
    """

    #: scikit-learn's class.
    _original: ClassVar[Any]
    expansion_: KernelExpansion
    #: Whether weights differed; None where that is not known.
    _weighted: bool | None
    n_features_in_: int
    feature_names_in_: Any

    def __init_subclass__(cls, *, original: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if original is not None:
            cls._original = original
            cls.__doc__ = original.__doc__

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature for every fit, which takes as long as a small one.
        names: list[str] = super()._get_param_names()  # type: ignore[misc]
        return names

    def _keep_columns(self, trained: Any) -> None:
        """The number of columns and their names, if they have any, from a fitted estimator."""
        self.n_features_in_ = trained.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(trained, "feature_names_in_"):
            self.feature_names_in_ = trained.feature_names_in_

    def _is_ours(self) -> bool:
        """True if svmarrow has fitted the model; otherwise the original's methods are used."""
        return "expansion_" in vars(self)

    def _fit_or_fall_back(
        self, fit: Callable[[Any, Any, Any], None], X: Any, y: Any, sample_weight: Any
    ) -> Self:
        """Fits by svmarrow, or by the original where svmarrow refuses."""
        try:
            fit(X, y, sample_weight)
        except (ValueError, TypeError, MemoryError) as refusal:
            reason = str(refusal) or type(refusal).__name__
        else:
            return self
        for name in ADDED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self._original.fit(self, X, y, sample_weight=sample_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self._weighted = weights_differ(weights) or None
        name = self._original.__name__
        key = name, _NUMBERS.sub("#", reason)
        if key not in _REPORTED:
            warn_caller(
                f"scikit-learn's {name} has done what svmarrow's {name} could not: {reason}", FallbackWarning
            )
            # A warning that a filter has turned into an exception has not been reported.
            _REPORTED.add(key)
        return self

    def _get_doc_link(self) -> str:
        """The page of scikit-learn's class, whose documentation is that of this one."""
        link: str = self._original()._get_doc_link()
        return link

    @consistent
    def _as_expansion(self) -> Any:
        """The fitted model as a kernel expansion, without the training."""
        if self._is_ours():
            return self._expansion_model()
        converted = CONVERTERS[self._original.__name__](self)
        return converted.with_weighted(True) if self._weighted else converted

    def _expansion_model(self) -> Any:
        """The same for a fit by svmarrow."""
        return self.expansion_


# --- names of scikit-learn's public modules, set to svmarrow's classes and back ---


#: Names that can be patched: scikit-learn's public module that has them, and the module of the replacements.
REPLACED = {
    **dict.fromkeys(("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"), ("sklearn.svm", "svmarrow.patch.svm")),
    "KernelRidge": ("sklearn.kernel_ridge", "svmarrow.patch.ridge"),
}


def patch_sklearn(names: str | Iterable[str] | None = None) -> None:
    """Put svmarrow's classes in the place of scikit-learn's.

    `sklearn.svm.SVC` and the others are then subclasses of scikit-learn's with the same parameters,
    attributes and methods that train and predict with svmarrow. A fit adds `expansion_` and, for machines
    with support vectors, `certificate_`. What svmarrow cannot do, scikit-learn's original does, and a warning
    (`svmarrow.exceptions.FallbackWarning`) gives the reason, once for each reason. Names that were imported
    before stay as they are.

    Parameters
    ----------
    names : str, iterable of str or None, default=None
        Which of "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM" and "KernelRidge"; None is all.

    Raises
    ------
    ValueError
        For a name that cannot be patched.

    See Also
    --------
    unpatch_sklearn : Puts them back.

    Examples
    --------
    >>> import svmarrow
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> svmarrow.patch_sklearn("SVC")
    >>> from sklearn.svm import SVC
    >>> svc = SVC(C=10).fit(X, y)
    >>> svc, svc.certificate_.stop
    (SVC(C=10), 'converged')
    >>> svmarrow.unpatch_sklearn()
    """
    for name in _known(names):
        place, replacements = REPLACED[name]
        replacement = getattr(importlib.import_module(replacements), name)
        setattr(importlib.import_module(place), name, replacement)


def unpatch_sklearn(names: str | Iterable[str] | None = None) -> None:
    """Put scikit-learn's classes back.

    Parameters
    ----------
    names : str, iterable of str or None, default=None
        Which names, as in `patch_sklearn`; None is all. Those that are not patched stay as they are.

    Raises
    ------
    ValueError
        For a name that cannot be patched.
    """
    for name in _known(names):
        place, replacements = REPLACED[name]
        module: Any = importlib.import_module(place)
        now = getattr(module, name)
        if now.__module__ == replacements:
            setattr(module, name, now._original)


def _known(names: str | Iterable[str] | None) -> list[str]:
    asked = [names] if isinstance(names, str) else list(REPLACED if names is None else names)
    for name in asked:
        if name not in REPLACED:
            raise ValueError(f"names={names!r} is not allowed: {name!r} must be one of {', '.join(REPLACED)}")
    return asked
