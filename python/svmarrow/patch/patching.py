"""Names of scikit-learn's public modules, set to svmarrow's classes and back."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["REPLACED", "patch_sklearn", "unpatch_sklearn"]

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
