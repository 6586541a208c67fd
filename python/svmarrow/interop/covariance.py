"""Covariance functions of scikit-learn's Gaussian processes as scale * k(x, z) + constant.

A sum with white noise is the sum without it, because rows to predict are new; a constant summand goes into
the intercept. Two different kernels in one sum, a length scale for each column and Matérn kernels with other
nu than 1/2, 3/2, 5/2 and infinity have no place in an expansion, which has one kernel; they are refused by
name.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process import kernels

__all__ = ["Covariance", "covariance"]

#: svmarrow's names of Matérn kernels by nu.
_MATERN = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}


class Covariance(NamedTuple):
    """scale * k(x, z) + constant; without a kernel the scale is 0."""

    scale: float = 0.0
    constant: float = 0.0
    kernel: str | None = None
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def form(self) -> tuple[Any, ...]:
        """The kernel with its parameters."""
        return (self.kernel, self.gamma, self.coef0, self.degree)


def covariance(kernel: Any) -> Covariance:
    """The fitted kernel of a Gaussian process; a ValueError with its name for one that has no place here."""
    if isinstance(kernel, kernels.ConstantKernel):
        return Covariance(constant=float(kernel.constant_value))
    if isinstance(kernel, kernels.WhiteKernel):
        return Covariance()
    # Matern is a subclass of RBF.
    if isinstance(kernel, kernels.Matern):
        if kernel.nu == math.inf:
            return _gauss(kernel)
        if kernel.nu not in _MATERN:
            raise _refuse(kernel, "svmarrow's Matérn kernels have nu=0.5, 1.5, 2.5 or inf")
        return Covariance(scale=1.0, kernel=_MATERN[kernel.nu], gamma=1.0 / _length_scale(kernel))
    if isinstance(kernel, kernels.RBF):
        return _gauss(kernel)
    if isinstance(kernel, kernels.DotProduct):
        return Covariance(scale=1.0, constant=float(kernel.sigma_0) ** 2, kernel="linear")
    if isinstance(kernel, kernels.Sum):
        return _sum(kernel, covariance(kernel.k1), covariance(kernel.k2))
    if isinstance(kernel, kernels.Product):
        return _product(kernel, covariance(kernel.k1), covariance(kernel.k2))
    if isinstance(kernel, kernels.Exponentiation):
        return _power(kernel, covariance(kernel.kernel), float(kernel.exponent))
    raise _refuse(kernel, "it is none of svmarrow's kernels")


def _refuse(kernel: Any, why: str) -> ValueError:
    return ValueError(f"kernel={kernel!r} of this Gaussian process is not an expansion in one kernel: {why}")


def _gauss(kernel: Any) -> Covariance:
    return Covariance(scale=1.0, kernel="rbf", gamma=0.5 / _length_scale(kernel) ** 2)


def _length_scale(kernel: Any) -> float:
    scales = np.atleast_1d(np.asarray(kernel.length_scale, dtype=np.float64))
    if (scales != scales[0]).any():
        raise _refuse(
            kernel, "every column has its own length scale; divide the columns by them before the fit"
        )
    return float(scales[0])


def _sum(kernel: Any, a: Covariance, b: Covariance) -> Covariance:
    constant = a.constant + b.constant
    if b.kernel is None:
        return a._replace(constant=constant)
    if a.kernel is None or a.form == b.form:
        return b._replace(scale=a.scale + b.scale, constant=constant)
    raise _refuse(kernel, "it sums different kernels")


def _product(kernel: Any, a: Covariance, b: Covariance) -> Covariance:
    for one, other in ((a, b), (b, a)):
        if one.kernel is None:
            factor = one.constant
            return other._replace(scale=factor * other.scale, constant=factor * other.constant)
    if a.kernel == b.kernel == "rbf" and a.constant == b.constant == 0.0:
        return a._replace(scale=a.scale * b.scale, gamma=a.gamma + b.gamma)
    raise _refuse(kernel, "this product is none of svmarrow's kernels")


def _power(kernel: Any, a: Covariance, exponent: float) -> Covariance:
    if a.kernel is None:
        return a._replace(constant=a.constant**exponent)
    if a.kernel == "rbf" and a.constant == 0.0:
        return a._replace(scale=a.scale**exponent, gamma=a.gamma * exponent)
    if a.kernel == "linear" and exponent.is_integer() and exponent >= 1.0:
        # (s x'z + c)^p is the polynomial kernel itself.
        return Covariance(scale=1.0, kernel="poly", gamma=a.scale, coef0=a.constant, degree=int(exponent))
    raise _refuse(kernel, "this power is none of svmarrow's kernels")
