"""Average gradient outer products of expansions.

With the outputs f_j(x) = sum_i B[i, j] k(x, z_i) + b_j of the RBF kernel,

    grad f_j(x) = 2 gamma sum_i B[i, j] k(x, z_i) (z_i - x) = 2 gamma (g_j(x) - x h_j(x)),

where g_j has the coefficients B[i, j] z_i, one column for each feature, and h_j the coefficients B[i, j].
Both are expansions with the vectors and the kernel of f, so the fused product K(X, Z) C of the evaluator
computes them without a matrix K and without an array of n x m x d numbers. Vectors and rows are taken
relative to the mean of the vectors, which changes no difference z_i - x and avoids cancellation. The linear
and the polynomial kernel have gradients of the same form. Those of Matérn kernels have the kernel with one
derivative less in place of k: with a = sqrt(2 nu) gamma ||x - z||,

    grad (1 + a) exp(-a)         = 3 gamma^2 exp(-a) (z - x)                   (nu = 3/2)
    grad (1 + a + a^2/3) exp(-a) = 5/3 gamma^2 (1 + a) exp(-a) (z - x)         (nu = 5/2)

The kernel of nu = 1/2 has no gradient at its vectors.

The average gradient outer product (AGOP) is the mean over rows of sum_j grad f_j(x) grad f_j(x)'
(Radhakrishnan, Beaglehole, Pandit and Belkin, Science 2024).

Cost: n m d q multiplications and blocks of rows; n d^2 q more for the full matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow._support.rows import dense, product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["HAS_GRADIENT", "gradient_outer_product", "gradients", "importances"]

#: Kernels whose gradients are expansions again.
HAS_GRADIENT = ("rbf", "matern32", "matern52", "linear", "poly")
#: Kernel of the gradient, the ratio of its gamma to that of the kernel, and the factor of gamma^2.
_MATERN_GRADIENTS = {
    "matern32": ("matern12", 3.0**0.5, 3.0),
    "matern52": ("matern32", (5.0 / 3.0) ** 0.5, 5.0 / 3.0),
}
#: Numbers of a block of gradients: 16 MB.
_BLOCK_NUMBERS = 1 << 21
#: Maximum number of vectors at which importances are computed.
_MAX_VECTORS = 1000
#: Columns of coefficients that one pass over the kernel values multiplies.
_MAX_COLUMNS = 512


def gradients(expansion: KernelExpansion, X: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
    """Returns the gradients of all outputs with respect to the rows, (n, q, d), in double precision."""
    parts = [block for _, block in _blocks(expansion, X, n_jobs)]
    shape = (0, expansion.n_outputs, expansion.vectors.shape[1])
    return np.concatenate(parts) if parts else np.zeros(shape)


def gradient_outer_product(
    expansion: KernelExpansion,
    X: Any,
    weights: NDArray[np.float64] | None = None,
    *,
    full: bool = False,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Returns the average gradient outer product over validated samples, or its diagonal.

    Parameters
    ----------
    expansion : KernelExpansion
        With one of the kernels `HAS_GRADIENT`.
    X : {ndarray, CSR matrix} of shape (n, d)
        Validated samples.
    weights : ndarray of shape (n,) or None
        Weights of the samples in the mean; None is 1 for each.
    full : bool
        Whether the matrix (d, d) is returned instead of its diagonal (d,).
    n_jobs : int or None
        Number of threads.
    """
    d = int(expansion.vectors.shape[1])
    total = np.zeros((d, d) if full else d)
    for rows, block in _blocks(expansion, X, n_jobs):
        scaled = block
        if weights is not None:
            scaled = block * weights[rows, np.newaxis, np.newaxis]
        if full:
            total += product(np.ascontiguousarray(scaled.reshape(-1, d).T), block.reshape(-1, d))
        else:
            total += np.einsum("nqd,nqd->d", scaled, block)
    mean: NDArray[np.float64] = total / (X.shape[0] if weights is None else weights.sum())
    return mean


def importances(expansion: KernelExpansion, n_jobs: int | None = None) -> NDArray[np.float64]:
    """Returns shares of the columns in the mean squared gradient at the vectors, times their variance."""
    Z = expansion.vectors
    count = min(int(Z.shape[0]), _MAX_VECTORS)
    if not count:
        return np.zeros(Z.shape[1])
    rows = Z[np.linspace(0, Z.shape[0] - 1, count).round().astype(np.intp)]
    squares = gradient_outer_product(expansion, rows, n_jobs=n_jobs)
    wide = _double(rows)
    if sp.issparse(wide):
        mean = np.asarray(wide.mean(axis=0)).ravel()
        variance = np.maximum(np.asarray(wide.multiply(wide).mean(axis=0)).ravel() - mean**2, 0.0)
    else:
        variance = wide.var(axis=0)
    sizes = squares * variance
    total = sizes.sum()
    shares: NDArray[np.float64] = sizes / total if total > 0.0 else np.zeros(sizes.size)
    return shares


def _blocks(
    expansion: KernelExpansion, X: Any, n_jobs: int | None
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yields the gradients of blocks of rows, (rows, q, d)."""
    q, d = expansion.n_outputs, int(expansion.vectors.shape[1])
    size = max(1, _BLOCK_NUMBERS // max(1, q * d))
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        yield rows, _gradients(expansion, X[rows], n_jobs)


def _gradients(expansion: KernelExpansion, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
    """Returns the gradients at some rows, (n, q, d)."""
    total = _part_gradients(expansion.parts[0], X, n_jobs)
    for part in expansion.parts[1:]:
        total += _part_gradients(part, X, n_jobs)
    return total


def _part_gradients(expansion: KernelExpansion, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
    """Returns the gradients of an expansion of one kernel."""
    kernel, gamma, _, degree = expansion.kernel_spec
    if kernel not in HAS_GRADIENT:
        names = ", ".join(HAS_GRADIENT)
        raise ValueError(f"kernel={kernel!r} has no gradient here: it must be one of {names}")
    B, Z = expansion.coefficients, expansion.vectors
    q, d, n = expansion.n_outputs, int(Z.shape[1]), int(X.shape[0])
    if kernel == "linear" or (kernel == "poly" and degree <= 1):
        # Constant: a polynomial of degree 0 has gradient 0.
        factor = 1.0 if kernel == "linear" else gamma * degree
        sums = (sp.csr_array(Z).T @ B).T if sp.issparse(Z) else product(np.ascontiguousarray(B.T), _double(Z))
        slope = factor * np.asarray(sums, dtype=np.float64)
        return np.broadcast_to(slope, (n, q, d)).copy()
    X, Z = _double(X), _double(Z)
    fields: dict[str, Any] = {"vectors": Z}
    centre = np.zeros(d)
    if kernel == "poly":
        fields["degree"] = degree - 1
    elif not sp.issparse(Z) and Z.shape[0]:
        centre = Z.mean(axis=0)
    factor = 2.0 * gamma
    if kernel in _MATERN_GRADIENTS:
        fields["kernel"], ratio, factor = _MATERN_GRADIENTS[kernel]
        fields["gamma"], factor = ratio * gamma, factor * gamma**2
    base = expansion.replaced(**fields)
    out = np.empty((n, q, d))
    width = max(1, _MAX_COLUMNS // q)
    for first in range(0, d, width):
        columns = slice(first, min(first + width, d))
        block = dense(Z[:, columns]) - centre[columns]
        coefficients = (B[:, :, np.newaxis] * block[:, np.newaxis, :]).reshape(len(B), -1)
        values = base.replaced(coefficients=coefficients, intercepts=np.zeros(coefficients.shape[1]))
        out[:, :, columns] = values._evaluate(X, n_jobs).reshape(n, q, -1)
    if kernel == "poly":
        out *= gamma * degree
        return out
    sums = base.replaced(intercepts=np.zeros(q))._evaluate(X, n_jobs)
    for j in range(q):
        out[:, j] -= (dense(X) - centre) * sums[:, j, np.newaxis]
    out *= factor
    return out


def _double(X: Any) -> Any:
    return X.astype(np.float64) if X.dtype != np.float64 else X
