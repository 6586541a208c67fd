"""What the extension module reads from files, as Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scipy import sparse

from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["build_expansion", "csr_or_dense"]


def build_expansion(raw: Mapping[str, Any]) -> KernelExpansion:
    """Expansion from its parts."""
    kernel, gamma, coef0, degree = raw["kernel"]
    return KernelExpansion(
        csr_or_dense(raw["vectors"]),
        raw["coefficients"],
        raw["intercepts"],
        kernel=kernel,
        gamma=gamma,
        coef0=coef0,
        degree=degree,
    )


def csr_or_dense(rows: Any) -> Any:
    """Array of the core, or its CSR parts as a sparse array."""
    if not isinstance(rows, tuple):
        return rows
    data, indices, indptr, shape = rows
    return sparse.csr_array((data, indices, indptr), shape=tuple(shape))
