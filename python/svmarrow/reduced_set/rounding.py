"""Vectors and coefficients of one byte, and coefficients tuned again after rounding.

**Vectors.** z = step (low_c + code), one step for all columns, a whole number low_c for each, code in 0, ...,
255. One step, because distances weigh all columns alike, and because a squared distance is then step^2 times
a whole number. The step has 12 bits, so that its multiples are exact in single precision as far as 4,096 of
them.

**Coefficients.** Rounded vectors want other coefficients: those whose outputs differ least from the model's,

    min |G B' - F|^2 / n + penalty |B' - B|^2,    G = K(rows, Z'), F the outputs without intercepts,

or, without rows, the same in feature space, where G'G / n and G'F / n are K(Z', Z') and K(Z', Z) B. They
are then rounded one after the other, and what each loses is taken up by those still to come: for H = R'R,
from the last,

    b_i <- round(b_i + sum_{j > i} R_ij (b_j - rounded_j) / R_ii),

the nearest-plane method of Babai (1986), known as "optimal brain" quantization for networks. Cost:
n m^2 + m^3 / 3 and m^2 q operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from svmarrow._support.blas import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["ByteCoefficients", "ByteVectors", "byte_coefficients", "byte_vectors", "tuned"]

#: Largest code.
MAX_CODE = 255
#: Bits of a step.
STEP_BITS = 12
#: Penalty on other coefficients, relative to the mean of the diagonal of H.
PENALTY = 1e-4
#: Rows that coefficients are tuned on at most.
MAX_TUNING_SAMPLES = 4096


class ByteVectors(NamedTuple):
    """Vectors as step (lows + codes)."""

    codes: NDArray[np.uint8]
    lows: NDArray[np.int64]
    step: float

    def values(self, dtype: Any = np.float64) -> NDArray[Any]:
        """The vectors as numbers."""
        numbers: NDArray[Any] = (self.step * (self.lows + self.codes)).astype(dtype)
        return numbers


class ByteCoefficients(NamedTuple):
    """Coefficients as step (code - zero), a step and a zero for each output."""

    codes: NDArray[np.uint8]
    zeros: NDArray[np.uint8]
    steps: NDArray[np.float64]

    def values(self) -> NDArray[np.float64]:
        """The coefficients as numbers."""
        codes = self.codes.astype(np.float64)
        return np.ascontiguousarray((codes - self.zeros) * self.steps + 0.0)


def byte_vectors(vectors: Any, *, from_zero: bool) -> ByteVectors:
    """The nearest vectors of bytes.

    Parameters
    ----------
    vectors : {ndarray, CSR matrix} of shape (m, d)
        Finite. Vectors of bytes are what they are.
    from_zero : bool
        Whether 0 must be one of the numbers of every column: for kernels that are no functions of
        differences.
    """
    if vectors.dtype == np.uint8:
        return ByteVectors(vectors, np.zeros(vectors.shape[1], dtype=np.int64), 1.0)
    given = vectors.toarray() if sparse.issparse(vectors) else vectors
    Z = np.asarray(given, dtype=np.float64)
    d = Z.shape[1]
    if Z.size == 0:
        return ByteVectors(np.zeros(Z.shape, np.uint8), np.zeros(d, np.int64), 1.0)
    low, high = Z.min(axis=0), Z.max(axis=0)
    if from_zero:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    widest = float((high - low).max())
    if widest == 0.0:
        # Every column holds one number.
        widest = float(np.abs(low).max()) or 1.0
    step = _short(widest / MAX_CODE)
    lows = np.round(low / step)
    codes = np.clip(np.round(Z / step) - lows, 0, MAX_CODE)
    return ByteVectors(codes.astype(np.uint8), lows.astype(np.int64), step)


def _short(step: float) -> float:
    """A step of few bits, not below the given one."""
    mantissa, exponent = np.frexp(step)
    short = np.ldexp(np.ceil(np.ldexp(mantissa, STEP_BITS)), int(exponent) - STEP_BITS)
    return float(short)


def tuned(
    expansion: KernelExpansion, vectors: Any, rows: Any = None, n_jobs: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The system of the best coefficients on other vectors.

    Parameters
    ----------
    expansion : KernelExpansion
        The model.
    vectors : ndarray of shape (m, d)
        In the place of its own.
    rows : {ndarray, CSR matrix} of shape (n_samples, n_features), default=None
        Where the outputs should agree; of many, evenly spaced ones. None: in feature space.
    n_jobs : int or None
        Threads.

    Returns
    -------
    H : ndarray of shape (m, m)
        Positive definite.
    B : ndarray of shape (m, q)
        The best coefficients, H B = what is asked for.
    """
    m = expansion.n_vectors
    kernel_values = expansion.replaced(
        vectors=vectors, coefficients=np.eye(m), intercepts=np.zeros(m)
    )._evaluate
    if rows is None:
        H = kernel_values(vectors, n_jobs)
        wanted = expansion.replaced(intercepts=np.zeros(expansion.n_outputs))._evaluate(vectors, n_jobs)
    else:
        if rows.shape[0] > MAX_TUNING_SAMPLES:
            rows = rows[np.linspace(0, rows.shape[0] - 1, MAX_TUNING_SAMPLES).astype(np.intp)]
        G = kernel_values(rows, n_jobs)
        F = expansion._evaluate(rows, n_jobs) - expansion.intercepts
        with one_blas_thread():
            H, wanted = G.T @ G / len(G), G.T @ F / len(G)
    H = 0.5 * (H + H.T)
    penalty = PENALTY * max(float(np.trace(H)) / max(m, 1), np.finfo(float).tiny)
    # A kernel matrix need not be positive definite (sigmoid): more penalty, in the end the old coefficients.
    for _ in range(8):
        shifted = H + penalty * np.eye(m)
        try:
            with one_blas_thread():
                R = cholesky(shifted)
                target = wanted + penalty * expansion.coefficients
                return shifted, solve_triangular(R, solve_triangular(R, target, trans="T"))
        except LinAlgError:
            penalty *= 100.0
    return np.eye(m), expansion.coefficients


def byte_coefficients(
    coefficients: NDArray[np.float64], H: NDArray[np.float64] | None = None
) -> ByteCoefficients:
    """Each column rounded to multiples of a step, at most 256 different ones with 0 among them.

    The step has 24 bits, so that its multiples are exact and a file of bytes gives them back to the last
    digit.

    Parameters
    ----------
    coefficients : ndarray of shape (m, q)
        The best coefficients.
    H : ndarray of shape (m, m), default=None
        Positive definite: what a change of coefficients costs. None rounds each to the nearest.
    """
    low = np.minimum(coefficients.min(axis=0, initial=0.0), 0.0)
    high = np.maximum(coefficients.max(axis=0, initial=0.0), 0.0)
    step = ((high - low) / MAX_CODE).astype(np.float32)
    # The rounded step must not be too small for the range.
    step = np.where(step * np.float64(MAX_CODE) < high - low, np.nextafter(step, np.float32(np.inf)), step)
    steps = step.astype(np.float64)
    safe = np.where(steps > 0, steps, 1.0)
    zeros = np.round(-low / safe)
    in_steps = coefficients / safe
    codes = np.empty_like(in_steps)
    if H is None:
        codes = np.clip(np.round(in_steps), -zeros, MAX_CODE - zeros)
    else:
        with one_blas_thread():
            R = cholesky(H)
            rows = R / np.diag(R)[:, np.newaxis]
            lost = np.zeros_like(in_steps)
            for i in reversed(range(len(rows))):
                best = in_steps[i] + rows[i, i + 1 :] @ lost[i + 1 :]
                codes[i] = np.clip(np.round(best), -zeros, MAX_CODE - zeros)
                lost[i] = in_steps[i] - codes[i]
    return ByteCoefficients((codes + zeros).astype(np.uint8), zeros.astype(np.uint8), steps)
