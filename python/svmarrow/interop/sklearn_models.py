"""scikit-learn's kernel machines as expansions."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import is_outlier_detector
from sklearn.exceptions import NotFittedError

from svmarrow._support.estimator import check_fitted, find_kind, metadata_of
from svmarrow._support.parameters import refuse
from svmarrow._support.rows import dense
from svmarrow._support.training import pairs
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.expansion_models import ExpansionClassifier, ExpansionDetector, ExpansionRegressor
from svmarrow.models.outputs import Calibration
from svmarrow.models.preparation import Affine

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MODELS", "Covariance", "covariance"]


# --- covariance functions of scikit-learn's Gaussian processes as scale * k(x, z) + constant ---
# A sum with white noise is the sum without it, because rows to predict are new; a constant summand goes
# into the intercept. A length scale for each column divides the columns before an isotropic kernel. Two
# different kernels in one sum and Matérn kernels with other nu than 1/2, 3/2, 5/2 and infinity have no
# place in an expansion, which has one kernel; they are refused by name.


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


KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
#: Of scikit-learn's pairwise kernels, those that an expansion has, by svmarrow's names.
PAIRWISE = {name: name for name in (*KERNELS, "laplacian", "chi2")} | {"polynomial": "poly"}


def _classifier_from_sklearn(model: Any) -> ExpansionClassifier:
    check_fitted(model)
    n_classes = len(model.classes_)
    dual = dense(model.dual_coef_, np.float64)
    coefficients = dual if n_classes == 2 else spread_pairs(dual, np.asarray(_fitted(model, "_n_support")))
    return ExpansionClassifier(
        _expansion_from_sklearn(model, coefficients),
        model.classes_,
        "binary" if n_classes == 2 else "ovo",
        decision_function_shape=model.decision_function_shape,
        # scikit-learn before 0.22 has no such parameter.
        break_ties=bool(getattr(model, "break_ties", False)),
        calibration=_platt(model, n_classes),
        **metadata_of(model),
    )


def _fitted(model: Any, name: str, otherwise: Any = None) -> Any:
    """A private attribute of a machine, which older versions of scikit-learn keep as a public one."""
    attributes = vars(model)
    return attributes.get(name, attributes.get(f"{name[1:]}_", otherwise))


def _platt(model: Any, n_classes: int) -> Calibration | None:
    """The sigmoids of ``SVC(probability=True)``; its outputs are positive for the first class."""
    A, B = np.asarray(_fitted(model, "_probA", ())), np.asarray(_fitted(model, "_probB", ()))
    return Calibration("pairs", -A, B if n_classes == 2 else -B) if A.size else None


def _machine_from_sklearn(model: Any) -> ExpansionRegressor | ExpansionDetector:
    check_fitted(model)
    kind = ExpansionDetector if is_outlier_detector(model) else ExpansionRegressor
    return kind(_expansion_from_sklearn(model, dense(model.dual_coef_, np.float64)), **metadata_of(model))


def _kernel_ridge(model: Any) -> ExpansionRegressor:
    check_fitted(model)
    if callable(model.kernel) or model.kernel not in PAIRWISE:
        raise ValueError(
            f"kernel={model.kernel!r} of this KernelRidge is not one that an expansion has: expected one of "
            + ", ".join(PAIRWISE)
        )
    kernel = PAIRWISE[model.kernel]
    rows = model.X_fit_
    gamma = 1.0 / rows.shape[1] if model.gamma is None else model.gamma
    if kernel == "precomputed":
        rows = np.arange(rows.shape[0], dtype=np.float64)[:, None]
    elif sparse.issparse(rows):
        rows = sparse.csr_array(rows)
    dual = dense(model.dual_coef_, np.float64)
    return ExpansionRegressor(
        KernelExpansion(
            rows,
            dual,
            np.zeros(1 if dual.ndim == 1 else dual.shape[1]),
            kernel=kernel,
            gamma=float(gamma),
            coef0=float(model.coef0),
            degree=_degree(model),
        ),
        flat=dual.ndim == 1,
        **metadata_of(model),
    )


def _gaussian_process(model: Any) -> ExpansionRegressor:
    if not hasattr(model, "X_train_"):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit first")
    rows = np.asarray(model.X_train_)
    if rows.dtype.kind not in "fiub" or rows.ndim != 2:
        raise ValueError("this Gaussian process has no numbers as rows")
    form = covariance(model.kernel_)
    if form.kernel in ("linear", "poly") and rows.dtype.kind in "iub" and rows.dtype.itemsize < 8:
        # Sums of products are logical for truth values, and narrow integers overflow.
        raise ValueError(
            f"this Gaussian process was fitted to samples of type {rows.dtype}, in which its DotProduct is "
            "computed: fit it to samples of type float64"
        )
    alpha = np.asarray(model.alpha_, dtype=np.float64)
    # scikit-learn before 0.23 does not divide targets.
    alpha = alpha.reshape(rows.shape[0], -1) * np.atleast_1d(getattr(model, "_y_train_std", 1.0))
    intercepts = np.atleast_1d(model._y_train_mean) + form.constant * alpha.sum(axis=0)
    columns, scales = rows.shape[1], form.length_scales
    preparation = None if scales is None else Affine(np.zeros(columns), scales)
    if form.kernel is None:
        rows, alpha = rows[:0], alpha[:0]
    return ExpansionRegressor(
        KernelExpansion(
            rows if scales is None else rows / scales,
            form.scale * alpha,
            np.broadcast_to(intercepts, (alpha.shape[1],)),
            kernel=form.kernel or "linear",
            gamma=form.gamma,
            coef0=form.coef0,
            degree=form.degree,
        ),
        feature_names=getattr(model, "feature_names_in_", None),
        preparation=preparation,
        weighted=False,
    )


def spread_pairs(dual: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
    """One row of coefficients a pair of classes, (k (k - 1) / 2, m), from LIBSVM's ``dual_coef_`` (k - 1, m).

    Parameters
    ----------
    dual : ndarray of shape (k - 1, m)
        Coefficients, the vectors class after class.
    counts : ndarray of int of shape (k,)
        How many vectors each class has.
    """
    n_classes = len(counts)
    ends = np.cumsum(counts)
    of_class = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    spread = np.zeros((len(pairs(n_classes)), dual.shape[1]))
    for row, (a, b) in zip(spread, pairs(n_classes), strict=True):
        row[of_class[a]] = dual[b - 1, of_class[a]]
        row[of_class[b]] = dual[a, of_class[b]]
    return spread


def _expansion_from_sklearn(model: Any, coefficients: NDArray[np.float64]) -> KernelExpansion:
    name = type(model).__name__
    if callable(model.kernel) or model.kernel not in KERNELS:
        raise ValueError(
            f"kernel={model.kernel!r} of this {name} cannot be evaluated outside Python: expected one of "
            + ", ".join(KERNELS)
        )
    if model.kernel == "precomputed":
        vectors: Any = np.asarray(model.support_, dtype=np.float64)[:, None]
    else:
        vectors = model.support_vectors_
        if sparse.issparse(vectors):
            vectors = sparse.csr_array(vectors)
    return KernelExpansion(
        vectors,
        np.ascontiguousarray(coefficients.T),
        np.asarray(model.intercept_, dtype=np.float64),
        kernel=model.kernel,
        gamma=float(model._gamma),
        coef0=float(model.coef0),
        degree=_degree(model),
    )


def _degree(model: Any) -> int:
    """The degree of a polynomial kernel; a ValueError for one that is not whole."""
    if model.kernel not in ("poly", "polynomial"):
        return 3
    if not isinstance(model.degree, Real) or not float(model.degree).is_integer():
        raise refuse(
            "degree",
            model.degree,
            f"a whole number to convert this {type(model).__name__}: svmarrow's polynomial kernel has no "
            "other; fit it with such a degree",
        )
    return int(float(model.degree))


#: scikit-learn's classes by their names: none of their modules is imported for it.
MODELS = {
    "SVC": _classifier_from_sklearn,
    "NuSVC": _classifier_from_sklearn,
    "SVR": _machine_from_sklearn,
    "NuSVR": _machine_from_sklearn,
    "OneClassSVM": _machine_from_sklearn,
    "KernelRidge": _kernel_ridge,
    "GaussianProcessRegressor": _gaussian_process,
}
