"""Covariance functions of scikit-learn's Gaussian processes as scale * k(x, z) + constant.

A sum with white noise is the sum without it, because rows to predict are new; a constant summand goes into
the intercept. A length scale for each column divides the columns before an isotropic kernel. Two different
kernels in one sum and Matérn kernels with other nu than 1/2, 3/2, 5/2 and infinity have no place in an
expansion, which has one kernel; they are refused by name.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.kinds import find_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Covariance", "covariance"]

#: svmarrow's names of Matérn kernels by nu.
_MATERN = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
#: The kernels of `sklearn.gaussian_process` that are read.
_KINDS = (
    "ConstantKernel",
    "DotProduct",
    "Exponentiation",
    "Matern",
    "Product",
    "RBF",
    "Sum",
    "WhiteKernel",
)


class Covariance(NamedTuple):
    """scale * k(x, z) + constant; without a kernel the scale is 0."""

    scale: float = 0.0
    constant: float = 0.0
    kernel: str | None = None
    #: One number, or one for each column.
    gammas: tuple[float, ...] = (1.0,)
    coef0: float = 0.0
    degree: int = 3

    @property
    def form(self) -> tuple[Any, ...]:
        """The kernel with its parameters."""
        return (self.kernel, self.gammas, self.coef0, self.degree)

    @property
    def gamma(self) -> float:
        """The parameter of the isotropic kernel, for columns that were divided by `length_scales`."""
        if len(self.gammas) == 1:
            return self.gammas[0]
        return 0.5 if self.kernel == "rbf" else 1.0

    @property
    def length_scales(self) -> NDArray[np.float64] | None:
        """The divisors of the columns; None if they have one scale."""
        if len(self.gammas) == 1:
            return None
        gammas = np.array(self.gammas)
        return np.sqrt(0.5 / gammas) if self.kernel == "rbf" else 1.0 / gammas


def covariance(kernel: Any) -> Covariance:
    """The fitted kernel of a Gaussian process; a ValueError with its name for one that has no place here."""
    match find_kind(kernel, _KINDS, "use the kernel itself"):
        case "ConstantKernel":
            return Covariance(constant=float(kernel.constant_value))
        case "WhiteKernel":
            return Covariance()
        case "Matern" if kernel.nu != math.inf:
            if kernel.nu not in _MATERN:
                raise _refuse(kernel, "svmarrow's Matérn kernels have nu=0.5, 1.5, 2.5 or inf")
            return Covariance(scale=1.0, kernel=_MATERN[kernel.nu], gammas=_equal(1.0 / _scales(kernel)))
        case "Matern" | "RBF":
            return Covariance(scale=1.0, kernel="rbf", gammas=_equal(0.5 / _scales(kernel) ** 2))
        case "DotProduct":
            return Covariance(scale=1.0, constant=float(kernel.sigma_0) ** 2, kernel="linear")
        case "Sum":
            return _sum(kernel, covariance(kernel.k1), covariance(kernel.k2))
        case "Product":
            return _product(kernel, covariance(kernel.k1), covariance(kernel.k2))
        case "Exponentiation":
            return _power(kernel, covariance(kernel.kernel), float(kernel.exponent))
    raise _refuse(kernel, "it is none of svmarrow's kernels")


def _refuse(kernel: Any, why: str) -> ValueError:
    return ValueError(f"kernel={kernel!r} of this Gaussian process is not an expansion in one kernel: {why}")


def _scales(kernel: Any) -> NDArray[np.float64]:
    """The length scales, (1,) or (n_features,)."""
    return np.atleast_1d(np.asarray(kernel.length_scale, dtype=np.float64))


def _equal(gammas: NDArray[np.float64]) -> tuple[float, ...]:
    """The numbers, or one of them if all are equal."""
    return tuple(gammas[:1].tolist() if (gammas == gammas[0]).all() else gammas.tolist())


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
        gammas = _equal(np.add(a.gammas, b.gammas))
        return a._replace(scale=a.scale * b.scale, gammas=gammas)
    raise _refuse(kernel, "this product is none of svmarrow's kernels")


def _power(kernel: Any, a: Covariance, exponent: float) -> Covariance:
    if a.kernel is None:
        return a._replace(constant=a.constant**exponent)
    if a.kernel == "rbf" and a.constant == 0.0:
        gammas = tuple(gamma * exponent for gamma in a.gammas)
        return a._replace(scale=a.scale**exponent, gammas=gammas)
    if a.kernel == "linear" and exponent.is_integer() and exponent >= 1.0:
        # (s x'z + c)^p is the polynomial kernel itself.
        return Covariance(scale=1.0, kernel="poly", gammas=(a.scale,), coef0=a.constant, degree=int(exponent))
    raise _refuse(kernel, "this power is none of svmarrow's kernels")
