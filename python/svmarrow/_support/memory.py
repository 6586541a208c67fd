"""Memory estimates, checked before a computation begins."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.rows import as_samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

__all__ = [
    "MemoryEstimate",
    "bytes_of_rows",
    "estimate_memory",
    "estimate_of",
    "new_threads",
    "refuse_beyond_memory",
]

#: Minimum number of bytes for which the free memory is looked up.
MIN_CHECKED_BYTES = 64 << 20


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a computation needs in addition to its data.

    Parameters
    ----------
    total : int
        Maximum, with caches as large as the parameters allow.
    minimum : int
        Minimum, with the smallest caches. A MemoryError is raised before the computation begins if this
        process cannot allocate it.
    parts : dict of str to int
        The components of the total if known: for a support vector machine the training samples in
        the solver's layout (``"packed"``), kernel rows (``"cache"``), kernel matrices of the largest blocks
        (``"blocks"``) and coefficients, gradients and bounds of all machines (``"variables"``).

    Examples
    --------
    >>> from svmarrow.models import MemoryEstimate
    >>> MemoryEstimate(2_500_000, minimum=1_000_000)
    MemoryEstimate(total=2500000, minimum=1000000, parts={})
    """

    total: int
    minimum: int
    parts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, needed: int) -> Self:
        """Creates the estimate of a computation without caches."""
        return cls(int(needed), int(needed))


def estimate_memory(self: Any, X: Any, y: Any = None) -> MemoryEstimate:
    """Estimate the memory that `fit` needs.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples; they are not counted.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Labels or targets, which determine the number and size of the machines. None assumes one machine
        of all samples.

    Returns
    -------
    MemoryEstimate
        Approximate numbers of bytes. Online learners without a budget count every sample as a vector,
        cascades and reduced sets every sample as a vector of the full model. A nested estimator is
        included if it has an `estimate_memory`.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, RLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> RLSClassifier().estimate_memory(X, y).total > 4 * 1797**2
    True
    >>> estimate = SVC().estimate_memory(X, y)
    >>> estimate.minimum < estimate.total == sum(estimate.parts.values())
    True
    """
    self._check_parameters()
    estimate: MemoryEstimate = self._memory(as_samples(X, getattr(self, "kernel", None)), y)
    return estimate


def refuse_beyond_memory(what: str, needed: int, remedy: str) -> None:
    """Raise a MemoryError if `what` needs more bytes than this process can allocate."""
    if needed < MIN_CHECKED_BYTES:
        return
    free = _core.available_memory()
    if needed > free:
        raise MemoryError(
            f"{what} needs about {needed / 1e9:.2f} GB in addition to the data, and "
            f"{free / 1e9:.2f} GB are free: {remedy}"
        )


def bytes_of_rows(X: Any) -> int:
    """Returns the number of bytes of one copy of the rows."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes)


def estimate_of(estimator: Any, X: Any, y: Any) -> MemoryEstimate:
    """Returns the estimate of an estimator; 0 if it has none."""
    if not hasattr(estimator, "_memory"):
        return MemoryEstimate.of(0)
    return estimate_memory(estimator, X, y)


@contextmanager
def new_threads() -> Iterator[None]:
    """Raises MemoryError instead of RuntimeError if a Python thread cannot be started."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise MemoryError("no thread could be started, since memory is short: lower n_jobs") from error
