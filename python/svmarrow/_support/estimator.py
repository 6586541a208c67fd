"""Base class of all estimators: saving, callbacks and links to the documentation.

In notebooks scikit-learn shows an estimator as HTML with its parameters and fitted attributes. If the class
has a documentation page, it adds a link and the description of each parameter.
"""

from __future__ import annotations

from typing import ClassVar

from svmarrow._support.bases import BaseEstimator, CallbackSupportMixin
from svmarrow._support.saving import Savable

__all__ = ["Documented", "Estimator"]

#: URL of the documentation pages with a slash at the end; empty while there are none.
SITE = ""


class Documented:
    """A class with a documentation page."""

    # scikit-learn links only to classes of this package; an empty name disables links.
    _doc_link_module: ClassVar[str] = "svmarrow" if SITE else ""
    _doc_link_template: ClassVar[str] = SITE + "svmarrow.{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": type(self).__name__}


class Estimator(CallbackSupportMixin, Documented, Savable, BaseEstimator):
    """An estimator that can be fitted."""

    #: Whether the samples or classes of the fit had different weights; None if that is unknown.
    _weighted: bool | None = None
