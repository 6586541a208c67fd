"""Kernel expansions, the currency between all parts: f_j(x) = sum_i B[i, j] k(x, z_i) + b_j."""

from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["KernelExpansion"]
