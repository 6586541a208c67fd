"""A model in fewer bytes: vectors in single precision or eight bits, coefficients in eight; what it costs.

Each output's coefficients become multiples of one step, at most 256 different ones with 0 among them, so
that zero coefficients stay zero. Vectors of eight bits are multiples of one step, at most 256 neighbors in a
column. The model stays an ordinary one; files keep such numbers as bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import check, either, none, one_of, refuse
from svmarrow.interop.convert import as_expansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.reduced_set.output_scale import MIN_DEVIATION
from svmarrow.reduced_set.rounding import byte_coefficients, byte_vectors, tuned
from svmarrow.reduced_set.score import Score, rows_for, wrap_like

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["Quantization", "n_byte_vectors", "quantize", "rounded", "stored_bytes"]

RULES = {
    "vectors": one_of("float32", "uint8", "same"),
    "coefficients": one_of("uint8", "same"),
    "dtype": either(none, one_of("int8")),
}
#: Kernels that are functions of the difference of two rows.
BY_DIFFERENCE = ("rbf", "laplacian")


@dataclass(frozen=True)
class Quantization:
    """A model in fewer bytes and what was lost.

    Attributes
    ----------
    model : ExpansionClassifier or KernelExpansion
        The model in its new form.
    bytes_before, bytes_after : int
        Bytes of vectors, coefficients and intercepts as a file of `svmarrow.save` holds them.
    largest_difference : float
        Of an output, over the samples it was measured on.
    relative_difference : float
        Root mean square of the difference of the outputs, each in units of its standard deviation on the
        samples, a constant one in units of its size.
    disagreement : float or None
        Fraction of the samples that get another label; None for a bare expansion.
    score_before, score_after : float or None
        Accuracy, or R^2 of numbers averaged over the outputs; None without `y`.
    """

    model: Any
    bytes_before: int
    bytes_after: int
    largest_difference: float
    relative_difference: float
    disagreement: float | None
    score_before: float | None
    score_after: float | None


def quantize(
    model: Any,
    *,
    vectors: Literal["float32", "uint8", "same"] = "float32",
    coefficients: Literal["uint8", "same"] = "uint8",
    dtype: Literal["int8"] | None = None,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Quantization:
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
    Quantization
        The model with the measured loss.

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
    >>> quantized.bytes_after < 0.6 * quantized.bytes_before, quantized.disagreement < 0.02
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
    return Quantization(
        model=wrap_like(source, small),
        bytes_before=stored_bytes(full),
        bytes_after=stored_bytes(small),
        largest_difference=float(np.abs(after - before).max(initial=0.0)),
        relative_difference=relative,
        disagreement=disagreement,
        score_before=score_before,
        score_after=score_after,
    )


def n_byte_vectors(expansion: KernelExpansion, max_bytes: int) -> int:
    """The number of vectors that fit into some bytes together with coefficients of one byte each."""
    d, q = int(expansion.vectors.shape[1]), expansion.n_outputs
    # Intercepts, steps and zeros of the coefficients; the step and the offsets of the columns.
    fixed = 17 * q + 8 + 2 * d
    if max_bytes < fixed + d + q:
        raise refuse("max_bytes", max_bytes, f"at least {fixed + d + q}, which one vector of bytes takes")
    return (max_bytes - fixed) // (d + q)


def stored_bytes(expansion: KernelExpansion) -> int:
    """Bytes of the numbers of an expansion in a file of `svmarrow.save`."""
    return _core.stored_bytes(expansion.core_parts)


def rounded(
    full: KernelExpansion, vectors: str, coefficients: str, rows: Any, n_jobs: int | None
) -> KernelExpansion:
    """The expansion with numbers of fewer bits."""
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
