"""What svmarrow raises and warns of.

Wrong parameters and wrong data are plain ``ValueError`` or ``TypeError``, files that cannot be opened or
written are ``OSError``, matrices that are not positive definite are ``numpy.linalg.LinAlgError``. The rest is
here.
"""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = ["ConvergenceWarning", "FormatError", "InternalError", "NotFittedError", "SizeWarning"]


class FormatError(ValueError):
    """A file does not follow its format; the message has the file and, for text, the line."""


class InternalError(RuntimeError):
    """A fault in svmarrow itself. Please report it."""


class SizeWarning(UserWarning):
    """A file is much larger than it need be; the message says what would be smaller."""
