"""Base class of all estimators and models: parameters, saving, callbacks and links to the documentation.

In notebooks scikit-learn shows an estimator as HTML with its parameters and fitted attributes. If the class
has a documentation page, it adds a link and the description of each parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from svmarrow._support.bases import BaseEstimator, CallbackSupportMixin
from svmarrow._support.parameters import check
from svmarrow._support.saving import check_columns, savable, save_method

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from svmarrow._support.parameters import Rule

__all__ = ["Estimator"]

#: URL of the documentation pages with a slash at the end; empty while there are none.
SITE = ""


class Estimator(CallbackSupportMixin, BaseEstimator):
    """An object with parameters that can be saved; concrete classes of svmarrow are registered for files.

    ``class Name(..., stored=False)`` leaves out a class whose files hold another one.
    """

    # scikit-learn links only to classes of this package; an empty name disables links.
    _doc_link_module: ClassVar[str] = "svmarrow" if SITE else ""
    _doc_link_template: ClassVar[str] = SITE + "svmarrow.{name}.html"

    #: Rules of the parameters.
    _rules: ClassVar[Mapping[str, Rule]] = {}
    #: Attributes that are not stored because `_after_load` or a method computes them again.
    _transient: ClassVar[tuple[str, ...]] = ()
    #: Whether the samples or classes of the fit had different weights; None if that is unknown.
    _weighted: bool | None = None

    def __init_subclass__(cls, *, stored: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Base classes have no constructor or a private name; files can only name classes of svmarrow.
        is_concrete = stored and cls.__init__ is not object.__init__ and not cls.__name__.startswith("_")
        if is_concrete and cls.__module__.startswith("svmarrow."):
            savable(cls)

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
