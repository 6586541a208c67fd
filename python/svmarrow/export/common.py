"""The model that is exported, and the origin that a file states."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from svmarrow.expansion.expansion_sum import ExpansionSum
from svmarrow.expansion.expansion_tree import ExpansionTree
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.models.outputs import OutputSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "check_text",
    "dense_vectors",
    "kernel_columns",
    "linear_weights",
    "matern_rate",
    "output_spec_of",
    "provenance",
]

GOLDEN_RATIO = (1.0 + 5.0**0.5) / 2.0
#: 2 nu of the Matérn kernels.
_TWICE_NU = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0}


def output_spec_of(model: Any) -> OutputSpec:
    """The expansion of a model, in the order in which it is added, with the meaning of its outputs.

    Raises
    ------
    TypeError, ValueError, NotFittedError
        As `svmarrow.as_expansion`; a ValueError for a kernel that is a Python function.
    """
    converted = as_expansion(model)
    expansion = converted.expansion_
    if callable(expansion.kernel):
        raise ValueError(
            f"kernel={expansion.kernel!r} is a Python function and cannot be exported: use a built-in kernel"
        )
    if not isinstance(converted, KernelExpansion):
        spec: OutputSpec = converted._output_spec()
        preparation = spec.preparation
        if preparation is not None:
            # In any precision a program leaves short samples as they are where the fit did.
            is_single = expansion.vectors.dtype == np.float32
            preparation = preparation.with_limits_of("float32" if is_single else "float64")
        return spec._replace(expansion=_mixed(spec.expansion), preparation=preparation)
    precomputed = expansion.kernel == "precomputed"
    columns = int(expansion.vectors.max(initial=-1)) + 1 if precomputed else expansion.vectors.shape[1]
    return OutputSpec(_mixed(expansion), "outputs", columns)


def _mixed(expansion: KernelExpansion) -> KernelExpansion:
    """The expansion with its vectors in a mixed order.

    Machines order their vectors by class. A sum in that order grows to half the sum of the sizes before it
    falls, and so does its rounding; multiples of the golden ratio modulo 1 take vectors of all parts in turn.
    """
    if isinstance(expansion, ExpansionTree):
        # Leaves have few vectors.
        return expansion
    if isinstance(expansion, ExpansionSum):
        return ExpansionSum([_mixed(part) for part in expansion.parts])
    order = np.argsort(np.arange(expansion.n_vectors) * GOLDEN_RATIO % 1.0)
    return expansion.replaced(vectors=expansion.vectors[order], coefficients=expansion.coefficients[order])


def check_text(labels: NDArray[Any]) -> None:
    """Refuse labels that are no Unicode text."""
    for label in labels.tolist():
        try:
            label.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"class {label!a} cannot be exported: it must be Unicode text, without single surrogates"
            ) from None


def matern_rate(kernel: str, gamma: float) -> float:
    """The factor of the Euclidean distance in a Matérn kernel, sqrt(2 nu) gamma."""
    return float(np.sqrt(_TWICE_NU[kernel])) * gamma


def dense_vectors(expansion: KernelExpansion) -> NDArray[np.float64]:
    """The vectors, dense and in double precision, (m, d)."""
    rows = expansion.vectors
    dense: NDArray[np.float64] = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    return dense


def kernel_columns(spec: OutputSpec) -> int:
    """Columns of the rows that the kernel sees."""
    if spec.expansion.kernel == "precomputed":
        return spec.n_features
    return int(spec.expansion.vectors.shape[1])


def linear_weights(expansion: KernelExpansion, n_features: int) -> NDArray[np.float64] | None:
    """Weights (d, q) of the features for a linear kernel if they are fewer numbers than the vectors."""
    m, d, q = expansion.n_vectors, n_features, expansion.n_outputs
    if m == 0:
        return np.zeros((d, q))
    if expansion.kernel != "linear" or d * q > m * (d + q):
        return None
    return dense_vectors(expansion).T @ expansion.coefficients


def provenance(expansion: KernelExpansion) -> dict[str, str]:
    """The origin of a model as an exported file states it: producer, kernel, digest."""
    digest = hashlib.sha256()
    if isinstance(expansion, ExpansionTree):
        arrays = [array for name, array in sorted(expansion.state.items()) if name != "rows"]
        parts = [dense_vectors(expansion), *arrays]
    else:
        parts = [dense_vectors(expansion), expansion.coefficients, expansion.intercepts]
    for array in parts:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    kernels = []
    for part in expansion.parts:
        name, gamma, coef0, degree = part.kernel_spec
        digest.update(repr(part.kernel_spec).encode())
        kernels.append(f"{name}, gamma={gamma!r}, coef0={coef0!r}, degree={degree}")
        if isinstance(expansion, ExpansionSum):
            digest.update(repr(part.n_vectors).encode())
            kernels[-1] = f"{part.n_vectors} vectors of {kernels[-1]}"
    return {
        "producer": f"svmarrow {version('svmarrow')}",
        "kernel": "; ".join(kernels),
        "sha256": digest.hexdigest(),
    }
