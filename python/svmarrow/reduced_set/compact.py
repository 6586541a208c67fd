"""A model in fewer bytes: vectors in single precision, coefficients rounded to eight bits, and what it costs.

Each output's coefficients become multiples of one step, at most 256 different ones with 0 among them, so that
zero coefficients stay zero. The model stays an ordinary one; files keep such coefficients as bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from svmarrow._support.parameters import check, one_of
from svmarrow.interop.convert import as_expansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.reduced_set.score import Score, of_kind, rows_for, without_kind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["Compaction", "compact"]

RULES = {
    "vectors": one_of("float32", "same"),
    "coefficients": one_of("uint8", "same"),
}


@dataclass(frozen=True)
class Compaction:
    """A model in fewer bytes and what was lost.

    Attributes
    ----------
    model : ExpansionClassifier or KernelExpansion
        The model in its new form.
    bytes_before, bytes_after : int
        Bytes of vectors, coefficients and intercepts as a file of `svmarrow.save` holds them.
    largest_difference : float
        Of an output, over the rows it was measured on.
    relative_difference : float
        Root mean square of the difference of the outputs, divided by that of the outputs' deviation from
        their means.
    disagreement : float or None
        Share of the rows that get another label; None for a bare expansion.
    score_before, score_after : float or None
        Accuracy, or R^2 of a bare expansion; None without `y`.
    """

    model: Any
    bytes_before: int
    bytes_after: int
    largest_difference: float
    relative_difference: float
    disagreement: float | None
    score_before: float | None
    score_after: float | None


def compact(
    model: Any,
    *,
    vectors: Literal["float32", "same"] = "float32",
    coefficients: Literal["uint8", "same"] = "uint8",
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Compaction:
    """Keep a model in fewer bytes, and measure what that costs.

    Parameters
    ----------
    model : object
        As for `svmarrow.compress`.
    vectors : {"float32", "same"}, default="float32"
        Round float64 vectors to single precision, or leave them. Vectors of bytes stay bytes.
    coefficients : {"uint8", "same"}, default="uint8"
        Round each output's coefficients to at most 256 equally spaced numbers, or leave them.
    X : {array-like, sparse matrix} of shape (n, n_features), default=None
        Rows on which both are compared, best some that training has not seen. None takes the vectors.
    y : array-like of shape (n,) or (n, q), default=None
        Their labels, or numbers for a bare expansion: scores are measured too.
    n_jobs : int, default=None
        Threads. None means all cores that this process may use.

    Returns
    -------
    Compaction
        The model with the measured loss.

    Raises
    ------
    ValueError
        If a parameter is out of its range, `y` comes without `X`, X does not fit the model, or the kernel is
        precomputed and X is missing.
    TypeError
        If `model` is of another kind.
    OverflowError
        If a vector does not fit single precision.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC, compress
    >>> from svmarrow.reduced_set import compact
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10, gamma=0.001, multi_class="ovr").fit(X[:1000], y[:1000])
    >>> small = compress(svc, 100, X[:1000], y[:1000])
    >>> compaction = compact(small, X=X[1000:], y=y[1000:])
    >>> compaction.bytes_after < 0.5 * compaction.bytes_before, compaction.disagreement < 0.02
    (True, True)
    """
    check({"vectors": vectors, "coefficients": coefficients}, RULES)
    source = as_expansion(model)
    full = without_kind(source)
    if X is None and y is not None:
        raise ValueError("y is given without X")
    if X is None and full.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' needs X: the kernel values of the vectors are not in the model"
        )
    fewer: dict[str, Any] = {}
    if vectors == "float32" and full.kernel != "precomputed":
        fewer["vectors"] = _single(full.vectors)
    if coefficients == "uint8":
        fewer["coefficients"] = rounded(full.coefficients)
    small = full.replaced(**fewer)
    rows = full.vectors if X is None else rows_for(source, X)
    before, after = full._evaluate(rows, n_jobs), small._evaluate(rows, n_jobs)
    spread = float(np.sqrt(((before - before.mean(axis=0)) ** 2).mean())) if before.size else 0.0
    error = float(np.sqrt(((after - before) ** 2).mean())) if before.size else 0.0
    score_before = score_after = disagreement = None
    if y is not None:
        score = Score(source, rows, y, 2)
        score.add(slice(0, rows.shape[0]), np.stack([before, after]))
        score_before, score_after = (float(value) for value in score.result())
    if isinstance(source, ExpansionClassifier) and before.size:
        disagreement = float((source.decode(before) != source.decode(after)).mean())
    # A byte a coefficient; a step and the place of zero for each output.
    coded = full.coefficients.size + 9 * full.n_outputs
    held = full.coefficients.nbytes
    return Compaction(
        model=of_kind(source, small),
        bytes_before=stored_bytes(full, held),
        bytes_after=stored_bytes(small, min(coded, held) if coefficients == "uint8" else held),
        largest_difference=float(np.abs(after - before).max(initial=0.0)),
        relative_difference=error / spread if spread > 0 else error,
        disagreement=disagreement,
        score_before=score_before,
        score_after=score_after,
    )


def rounded(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column rounded to multiples of a step, at most 256 different ones with 0 among them.

    The step has 24 bits, so that its multiples are exact and a file of bytes gives them back to the last
    digit.
    """
    low = np.minimum(coefficients.min(axis=0, initial=0.0), 0.0)
    high = np.maximum(coefficients.max(axis=0, initial=0.0), 0.0)
    step = ((high - low) / 255).astype(np.float32)
    # The rounded step must not be too small for the range.
    step = np.where(step * np.float64(255) < high - low, np.nextafter(step, np.float32(np.inf)), step)
    step = step.astype(np.float64)
    safe = np.where(step > 0, step, 1.0)
    zero = np.round(-low / safe)
    codes = np.clip(np.round(coefficients / safe), -zero, 255 - zero)
    return np.ascontiguousarray(codes * step + 0.0)


def stored_bytes(expansion: KernelExpansion, coefficients: int) -> int:
    """Bytes of an expansion in a file, its coefficients taking so many."""
    rows = expansion.vectors
    if sparse.issparse(rows):
        # Files have indices of eight bytes.
        held = rows.data.nbytes + 8 * (rows.indices.size + rows.indptr.size)
    else:
        held = rows.nbytes
    return int(held + coefficients + expansion.intercepts.nbytes)


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
