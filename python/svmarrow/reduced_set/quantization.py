"""A model in fewer bytes: vectors in single precision or eight bits, coefficients in eight; what it costs.

Each output's coefficients become multiples of one step, at most 256 different ones with 0 among them, so
that zero coefficients stay zero. Vectors of eight bits are multiples of one step, at most 256 neighbors in a
column. The model stays an ordinary one; files keep such numbers as bytes.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from svmarrow import _core
from svmarrow._support.parameters import check, either, none, one_of, refuse
from svmarrow._support.rows import dense, one_blas_thread
from svmarrow.expansion.composites import ExpansionSum
from svmarrow.interop.convert import as_expansion
from svmarrow.models.base import ExpansionModel, Quantization
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.reduced_set.score import MIN_DEVIATION, Score, rows_for, wrap_like

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.base import KernelModel


__all__ = [
    "ByteCoefficients",
    "ByteVectors",
    "byte_coefficients",
    "byte_vectors",
    "n_byte_vectors",
    "preparation_bytes",
    "quantize",
    "rounded",
    "stored_bytes",
    "tuned",
]


# --- vectors and coefficients of one byte, and coefficients tuned again after rounding ---
# **Vectors.** z = step (low_c + code), one step for all columns, a whole number low_c for each, code in 0,
# ..., 255. One step, because distances weigh all columns alike, and because a squared distance is then
# step^2 times a whole number. The step has 12 bits, so that its multiples are exact in single precision as
# far as 4,096 of them.
#
# **Coefficients.** Rounded vectors want other coefficients: those whose outputs differ least from the
# model's,
#
#     min |G B' - F|^2 / n + penalty |B' - B|^2,    G = K(rows, Z'), F the outputs without intercepts,
#
# or, without rows, the same in feature space, where G'G / n and G'F / n are K(Z', Z') and K(Z', Z) B. They
# are then rounded one after the other, and what each loses is taken up by those still to come: for H = R'R,
# from the last,
#
#     b_i <- round(b_i + sum_{j > i} R_ij (b_j - rounded_j) / R_ii),
#
# the nearest-plane method of Babai (1986), known as "optimal brain" quantization for networks. Cost:
# n m^2 + m^3 / 3 and m^2 q operations.


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
    Z: NDArray[np.float64] = dense(vectors, np.float64)
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
        products = expansion.replaced(intercepts=np.zeros(expansion.n_outputs))._evaluate(vectors, n_jobs)
    else:
        if rows.shape[0] > MAX_TUNING_SAMPLES:
            rows = rows[np.linspace(0, rows.shape[0] - 1, MAX_TUNING_SAMPLES).astype(np.intp)]
        G = kernel_values(rows, n_jobs)
        F = expansion._evaluate(rows, n_jobs) - expansion.intercepts
        with one_blas_thread():
            H, products = G.T @ G / len(G), G.T @ F / len(G)
    H = 0.5 * (H + H.T)
    penalty = PENALTY * max(float(np.trace(H)) / max(m, 1), np.finfo(float).tiny)
    # A kernel matrix need not be positive definite (sigmoid): more penalty, in the end the old coefficients.
    for _ in range(8):
        shifted = H + penalty * np.eye(m)
        try:
            with one_blas_thread():
                R = cholesky(shifted)
                target = products + penalty * expansion.coefficients
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


RULES = {
    "vectors": one_of("float32", "uint8", "same"),
    "coefficients": one_of("uint8", "same"),
    "dtype": either(none, one_of("int8")),
}
#: Kernels that are functions of the difference of two rows.
BY_DIFFERENCE = ("rbf", "laplacian")


def quantize(
    model: Any,
    *,
    vectors: Literal["float32", "uint8", "same"] = "float32",
    coefficients: Literal["uint8", "same"] = "uint8",
    dtype: Literal["int8"] | None = None,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> KernelModel:
    """Keep a model in fewer bytes, and measure what that costs.

    Parameters
    ----------
    model : object
        As for `svmarrow.compress`.
    vectors : {"float32", "uint8", "same"}, default="float32"
        Round float64 vectors to single precision, round dense ones to numbers of one byte, on one step for
        all columns, or leave them. Vectors of bytes stay bytes. After "uint8" the coefficients are tuned
        again, so that outputs differ least on the samples of X, or without X in feature space.
    coefficients : {"uint8", "same"}, default="uint8"
        Round each output's coefficients to at most 256 equally spaced numbers, or leave them.
    dtype : {"int8"}, default=None
        "int8" is short for ``vectors="uint8", coefficients="uint8"``, as in `svmarrow.export.to_c`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples on which both are compared, best some that training has not seen. None takes the vectors. With
        ``vectors="uint8"`` coefficients are tuned on every other sample, and the others compared.
    y : array-like of shape (n_samples,) or (n_samples, q), default=None
        Their labels, or numbers for a bare expansion: scores are measured too.
    n_jobs : int, default=None
        Threads. None means all cores that this process may use.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor, ExpansionDetector or KernelExpansion
        A model of the kind of `model`, ready to predict, whose ``quantization_``
        (`svmarrow.models.Quantization`) is the measured loss; a bare `KernelExpansion` has no place for it.

    Raises
    ------
    ValueError
        If a parameter is out of its range, ``dtype="int8"`` comes with "same", `y` comes without `X`, X does
        not fit the model, or the kernel is precomputed and X is missing.
    TypeError
        If `model` is of another kind.
    OverflowError
        If a vector does not fit single precision.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, compress
    >>> from svmarrow import quantize
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:1000], y[:1000])
    >>> small = compress(svc, X[:1000], y[:1000], n_vectors=100, method="backfit")
    >>> quantized = quantize(small, X=X[1000:], y=y[1000:])
    >>> measured = quantized.quantization_
    >>> measured.bytes_after < 0.6 * measured.bytes_before, measured.disagreement < 0.02
    (True, True)
    """
    check({"vectors": vectors, "coefficients": coefficients, "dtype": dtype}, RULES)
    if dtype == "int8":
        for name, rounding in (("vectors", vectors), ("coefficients", coefficients)):
            if rounding == "same":
                raise refuse(name, rounding, 'left out with dtype="int8", which rounds both to one byte')
        vectors = coefficients = "uint8"
    source = as_expansion(model)
    full = source.expansion_
    if X is None and y is not None:
        raise ValueError("y is given without X")
    if X is None and full.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' needs X: the kernel values of the vectors are not in the model"
        )
    rows = None if X is None else rows_for(source, X)
    targets = None if y is None else np.asarray(y)
    tuning, compared = (None if rows is None else rows[::2]), slice(None)
    if vectors == "uint8" and rows is not None and rows.shape[0] > 1:
        compared = slice(1, None, 2)
    small = rounded(full, vectors, coefficients, tuning, n_jobs)
    rows = full.vectors if rows is None else rows[compared]
    y = None if targets is None else targets[compared]
    before, after = full._evaluate(rows, n_jobs), small._evaluate(rows, n_jobs)
    relative = 0.0
    if before.size:
        deviation, size = before.std(axis=0), np.abs(before).max(axis=0)
        spread = np.where(deviation > MIN_DEVIATION * size, deviation, np.where(size > 0.0, size, 1.0))
        relative = float(np.sqrt(((after - before) ** 2 / spread**2).mean()))
    score_before = score_after = disagreement = None
    if y is not None:
        score = Score(source, rows, y, 2)
        score.add(slice(0, rows.shape[0]), np.stack([before, after]))
        score_before, score_after = (float(value) for value in score.result())
    if isinstance(source, ExpansionClassifier) and before.size:
        disagreement = float((source.decode(before) != source.decode(after)).mean())
    made: KernelModel = wrap_like(source, small)
    if not isinstance(made, ExpansionModel):
        return made
    made.quantization_ = Quantization(
        bytes_before=stored_bytes(full),
        bytes_after=stored_bytes(small),
        largest_difference=float(np.abs(after - before).max(initial=0.0)),
        relative_difference=relative,
        disagreement=disagreement,
        score_before=score_before,
        score_after=score_after,
    )
    return made


#: Bytes of the table of powers in a C header of bytes.
POWER_BYTES = 130


def n_byte_vectors(model: Any, max_bytes: int) -> int:
    """The number of vectors that fit into some bytes together with coefficients of one byte each.

    Both in a file and in a C header, with the numbers of the preparation.
    """
    expansion = model.expansion_
    d, q = int(expansion.vectors.shape[1]), expansion.n_outputs
    # File: intercepts, steps and zeros of the coefficients; the step and the offsets of the columns. The
    # numbers of a C header have half as many bytes, but for the offsets.
    fixed = max(17 * q + 8 + 2 * d, 9 * q + 4 * d + POWER_BYTES) + preparation_bytes(model)
    if max_bytes < fixed + d + q:
        raise refuse("max_bytes", max_bytes, f"at least {fixed + d + q}, which one vector of bytes takes")
    return int((max_bytes - fixed) // (d + q))


def preparation_bytes(model: Any) -> int:
    """Bytes of the numbers of a model's preparation in single precision, as a C header holds them."""

    def count(part: Any) -> int:
        if isinstance(part, np.ndarray):
            size: int = part.size
            return size
        if isinstance(part, tuple):
            return sum(map(count, part))
        if is_dataclass(part):
            return sum(count(getattr(part, field.name)) for field in fields(part))
        return int(isinstance(part, Real) and not isinstance(part, bool))

    return 4 * count(getattr(model, "preparation", None))


def stored_bytes(expansion: KernelExpansion) -> int:
    """Bytes of the numbers of an expansion in a file of `svmarrow.save`."""
    return sum(_core.stored_bytes(part.core_parts) for part in expansion.parts)


def rounded(
    full: KernelExpansion, vectors: str, coefficients: str, rows: Any, n_jobs: int | None
) -> KernelExpansion:
    """The expansion with numbers of fewer bits."""
    if len(full.parts) > 1:
        return ExpansionSum([rounded(part, vectors, coefficients, rows, n_jobs) for part in full.parts])
    fewer: dict[str, Any] = {}
    best, H = full.coefficients, None
    if vectors == "uint8" and full.kernel != "precomputed" and full.n_vectors:
        if hasattr(full.vectors, "toarray"):
            raise refuse(
                "vectors", vectors, "'float32' or 'same' for sparse vectors; dtype='int8' asks for bytes too"
            )
        kind = np.uint8 if full.vectors.dtype == np.uint8 else np.float32
        new = byte_vectors(full.vectors, from_zero=full.kernel not in BY_DIFFERENCE)
        fewer["vectors"] = new.values(kind)
        H, best = tuned(full, fewer["vectors"], rows, n_jobs)
        fewer["coefficients"] = best
    elif vectors == "float32" and full.kernel != "precomputed":
        fewer["vectors"] = _single(full.vectors)
    if coefficients == "uint8":
        fewer["coefficients"] = byte_coefficients(best, H).values()
    return full.replaced(**fewer)


def _single(vectors: Any) -> Any:
    if vectors.dtype != np.float64:
        return vectors
    with np.errstate(over="raise"):
        try:
            return vectors.astype(np.float32)
        except FloatingPointError:
            raise OverflowError(
                "vectors hold numbers beyond single precision: use vectors='same', or scale the columns"
            ) from None
