"""The global alignment kernel of series."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import THREADS, check, either, none, real
from svmarrow._support.schemas import savable
from svmarrow.kernels._sequences import Packed, SequenceKernel, objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GlobalAlignment"]

#: Rules of the parameters; the square of sigma has to be a normal number.
_RULES = {
    "sigma": real(least=1e-150, most=1e150),
    "band": either(none, real(above=0.0)),
    "n_jobs": THREADS,
}
#: The name of the kind of samples.
_KIND = "series"


@savable("alignment-kernel/1")
@dataclass(frozen=True)
class GlobalAlignment(SequenceKernel):
    """Global alignment kernel of series of vectors.

    The sum over all alignments of two series, each of which is a product over the aligned pairs of steps. A
    pair of steps x and y has the factor ``g / (2 - g)`` with ``g = exp(-|x - y|**2 / (2 * sigma**2))``. The
    sum is divided by the square root of the product of the sums of each series with itself, so that equal
    series have the value 1. The kernel is positive definite, for series of any lengths.

    Parameters
    ----------
    sigma : float, default=1.0
        Bandwidth of the factors, from 1e-150 to 1e150. Cuturi proposes a multiple of the median distance of
        two steps times the square root of the median number of steps.
    band : float or None, default=None
        If it is a number, g is multiplied by ``max(0, 1 - |i - j| / band)`` for the steps i and j. The cost
        of a value is then proportional to ``band``, and two series whose numbers of steps differ by
        ``band`` or more have the value 0.
    n_jobs : int or None, default=None
        Number of threads. Values have the same bits for any number of threads. Kernels that differ only by
        it are equal.

    Notes
    -----
    A value costs about (number of steps of the first series) * (number of steps of the second) operations for
    each feature. The dynamic program works beyond the range of double precision, so that values of series
    of any length have a relative error of a few roundings for each step.

    Samples are a list of arrays of shape (n_steps, n_features) or (n_steps,), an array of such arrays, or
    numbers of shape (n_samples, n_steps, n_features) or (n_samples, n_steps). NaN and infinity are not
    allowed.

    References
    ----------
    M. Cuturi, "Fast global alignment kernels", ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow.kernels import GlobalAlignment
    >>> rising, slower, falling = [0.0, 1.0, 2.0], [0.0, 0.5, 1.0, 1.5, 2.0], [2.0, 1.0, 0.0]
    >>> kernel = GlobalAlignment(sigma=0.5)
    >>> kernel([rising], [rising, slower, falling]).round(3)
    array([[1.   , 0.271, 0.   ]])

    Series of vectors, with a band:

    >>> series = [np.ones((4, 2)), np.zeros((5, 2))]
    >>> GlobalAlignment(sigma=2.0, band=3).diagonal(series)
    array([1., 1.])
    """

    sigma: float = 1.0
    band: float | None = None
    n_jobs: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check({"sigma": self.sigma, "band": self.band, "n_jobs": self.n_jobs}, _RULES)
        object.__setattr__(self, "sigma", float(self.sigma))
        if self.band is not None:
            object.__setattr__(self, "band", float(self.band))

    def _pack(self, A: Any, name: str) -> Packed:
        values, lengths = _series(A, name)
        is_bad = ~np.isfinite(values).all(axis=1)
        if is_bad.any():
            index = int(np.searchsorted(np.cumsum(lengths), is_bad.argmax(), side="right"))
            raise ValueError(f"{name}[{index}] has NaN or infinity: series must be finite")
        return values, lengths, _KIND

    def _core_block(self, packed: Packed, n_threads: int) -> _core.SeriesBlock:
        values, lengths, _ = packed
        return _core.SeriesBlock(values, lengths, self.sigma, self.band, n_threads)


def _series(A: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns the steps of all series, (total of n_steps, n_features), and the number of steps of each."""
    if not isinstance(A, np.ndarray) and hasattr(A, "to_numpy"):
        A = A.to_numpy()
    if isinstance(A, np.ndarray) and A.ndim in (2, 3) and A.dtype.kind in "fiub":
        n_steps, n_features = A.shape[1], (A.shape[2] if A.ndim == 3 else 1)
        if A.shape[0] and not n_steps * n_features:
            raise ValueError(f"{name} has shape {A.shape}: series must not be empty")
        values = np.ascontiguousarray(A.reshape(-1, max(1, n_features)), dtype=np.float64)
        return values, np.full(A.shape[0], n_steps, dtype=np.int64)
    series = [_steps(sample, f"{name}[{index}]") for index, sample in enumerate(objects(A, name, _KIND))]
    n_features = series[0].shape[1] if series else 1
    for index, steps in enumerate(series):
        if steps.shape[1] != n_features:
            raise ValueError(
                f"{name}[{index}] has {steps.shape[1]} features and {name}[0] has {n_features}: "
                "series must have the same number of features"
            )
    values = np.concatenate(series) if series else np.empty((0, 1))
    lengths = np.array([steps.shape[0] for steps in series], dtype=np.int64)
    return np.ascontiguousarray(values, dtype=np.float64), lengths


def _steps(series: Any, name: str) -> NDArray[Any]:
    """Returns a series as an array of shape (n_steps, n_features)."""
    try:
        steps = np.asarray(series)
    except ValueError as error:
        raise TypeError(f"{name} is no array: it must be numbers of shape (n_steps, n_features)") from error
    if steps.size == 0 and steps.ndim in (1, 2):
        raise ValueError(f"{name} has shape {steps.shape}: series must not be empty")
    if steps.dtype.kind not in "fiub" or steps.ndim == 0:
        raise TypeError(
            f"{name} is of type {type(series).__name__} with items of type {steps.dtype}: "
            "it must be numbers of shape (n_steps, n_features) or (n_steps,)"
        )
    if steps.ndim > 2:
        raise ValueError(f"{name} has shape {steps.shape}: it must be (n_steps, n_features) or (n_steps,)")
    return steps[:, np.newaxis] if steps.ndim == 1 else steps
