"""What every estimator of svmarrow is to scikit-learn: it can be saved, told of, and looked up.

In notebooks scikit-learn draws an estimator as HTML, with its parameters and fitted attributes; where there
is a page about the class it links to it, and shows what the docstring says of each name beside it.
"""

from __future__ import annotations

from typing import ClassVar

from svmarrow._support.bases import BaseEstimator, CallbackSupportMixin
from svmarrow._support.saving import Savable

__all__ = ["Documented", "Estimator"]

#: Where the pages of the classes lie, with a slash at the end; empty while there are none.
SITE = ""


class Documented:
    """One with a page of its own, where there are pages."""

    # scikit-learn links to classes of this package alone; a name that no package has links to nothing.
    _doc_link_module: ClassVar[str] = "svmarrow" if SITE else ""
    _doc_link_template: ClassVar[str] = SITE + "svmarrow.{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": type(self).__name__}


class Estimator(CallbackSupportMixin, Documented, Savable, BaseEstimator):
    """An estimator that can be fitted."""

    #: Whether the rows or classes of the fit had weights that differ; None where that is not known.
    _weighted: bool | None = None
