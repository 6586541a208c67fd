"""Exceptions and warnings of svmarrow.

Invalid parameters and data raise ``ValueError`` or ``TypeError``, files that cannot be read or written
``OSError``, matrices that are not positive definite ``numpy.linalg.LinAlgError``. Other exceptions are
defined here.
"""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "ConvergenceWarning",
    "FallbackWarning",
    "FormatError",
    "InternalError",
    "NotFittedError",
    "SizeWarning",
]


class FallbackWarning(UserWarning):
    """svmarrow does not support a request to a patched class, and scikit-learn's original class handled it.

    A reason is reported once in a process, regardless of the numbers in it.
    """


class FormatError(ValueError):
    """A file does not follow its format; the message has the file and, for text, the line."""


class InternalError(RuntimeError):
    """A fault in svmarrow itself. Please report it."""


class SizeWarning(UserWarning):
    """A size that does not fit; the message says what would be better.

    Files that are much larger than they need be, fewer vectors than a model has neighborhoods, and so few
    that a classifier gives all samples one class.
    """
