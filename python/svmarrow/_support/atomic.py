"""A fit that fails changes nothing, whatever ended it: bad input, memory, Ctrl-C."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Kept", "all_or_nothing"]


class Kept(BaseException):
    """Ctrl-C, after an estimator has kept its model as far as it is: ``Kept(estimator)``."""


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Whatever is raised inside leaves the estimator's attributes as they were before.

    Attributes are to be replaced inside, not changed in place. `Kept` leaves as a KeyboardInterrupt, and its
    own estimator as it is.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException as error:
        kept = isinstance(error, Kept)
        if not (kept and error.args[0] is estimator):
            # One assignment: another Ctrl-C finds either all or nothing.
            estimator.__dict__ = before
        if kept:
            raise KeyboardInterrupt from None
        raise
