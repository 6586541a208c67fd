"""The options of ``svm-train``, for the program and for `svmarrow.libsvm.svm_train`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["KERNELS", "SVM_TYPES", "check_flag", "svm_parameter", "take_options", "to_float", "to_int"]

#: Types of support vector machines, in the order of ``-s``.
SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
#: Kernels, in the order of ``-t``.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def to_int(option: str, value: str) -> int:
    """Converts the value of an option to an integer."""
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{option} {value}: the value must be an integer") from None


def to_float(option: str, value: str) -> float:
    """Converts the value of an option to a finite number."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{option} {value}: the value must be a finite number")
    return number


def check_flag(option: str, value: int) -> int:
    """Refuses the value of a switch that is neither 0 nor 1."""
    if value not in (0, 1):
        raise ValueError(f"{option} {value}: the value must be 0 or 1")
    return value


def take_options(arguments: Sequence[str], handle: Callable[[str, list[str]], int]) -> int:
    """Processes the leading options and returns the number of arguments that they occupy.

    ``handle(option, following)`` processes one option and returns the number of values that it takes from the
    arguments that follow; it raises a ValueError for an unknown option.
    """
    position = 0
    while position < len(arguments) and arguments[position].startswith("-"):
        position += 1 + handle(arguments[position], list(arguments[position + 1 :]))
    return position


#: Options with one value: the attribute of `svm_parameter` and the type.
_VALUES: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "-s": ("svm_type", to_int),
    "-t": ("kernel_type", to_int),
    "-d": ("degree", to_int),
    "-g": ("gamma", to_float),
    "-r": ("coef0", to_float),
    "-n": ("nu", to_float),
    "-m": ("cache_size", to_float),
    "-c": ("C", to_float),
    "-e": ("eps", to_float),
    "-p": ("p", to_float),
    "-h": ("shrinking", to_int),
    "-b": ("probability", to_int),
    "-v": ("nr_fold", to_int),
}


class svm_parameter:  # noqa: N801 - LIBSVM's name
    """Training parameters, read from LIBSVM's option string.

    Parameters
    ----------
    options : str or list of str, default=""
        Options of ``svm-train``: ``-s -t -d -g -r -c -n -p -m -e -h -b -wi -v -q``.

    Attributes
    ----------
    svm_type, kernel_type, degree, gamma, coef0, cache_size, eps, C, nu, p, shrinking, probability : number
        LIBSVM's fields. ``gamma=0`` means 1 / n_features.
    weight_label, weight : list
        Labels and factors of C of ``-wi``.
    cross_validation : bool
        Whether ``-v`` is given.
    nr_fold : int
        Its number of folds.
    quiet : bool
        Whether ``-q`` is given.

    Raises
    ------
    ValueError
        For an unknown option, a missing value, and a value outside its range.
    """

    svm_type: int
    kernel_type: int
    degree: int
    gamma: float
    coef0: float
    nu: float
    cache_size: float
    C: float
    eps: float
    p: float
    shrinking: int
    probability: int
    cross_validation: bool
    nr_fold: int
    quiet: bool

    def __init__(self, options: str | Sequence[str] = "") -> None:
        self.svm_type, self.kernel_type = 0, 2
        self.degree, self.gamma, self.coef0 = 3, 0.0, 0.0
        self.nu, self.cache_size, self.C, self.eps, self.p = 0.5, 100.0, 1.0, 0.001, 0.1
        self.shrinking, self.probability = 1, 0
        self.weight_label: list[int] = []
        self.weight: list[float] = []
        self.cross_validation, self.nr_fold, self.quiet = False, 0, False
        if isinstance(options, str):
            options = options.split()
        elif not isinstance(options, (list, tuple)):
            raise TypeError(f"options={options!r} is not allowed: it must be a string or a list of strings")
        used = take_options(options, self._set)
        if used < len(options):
            raise ValueError(f"{options[used]} is no option of svm-train: an option begins with '-'")
        self.check()

    @classmethod
    def _leading(cls, arguments: Sequence[str]) -> tuple[svm_parameter, list[str]]:
        """Reads the options before the first positional argument; returns the other arguments too."""
        parameter = cls()
        used = take_options(arguments, parameter._set)
        parameter.check()
        return parameter, list(arguments[used:])

    def _set(self, option: str, following: list[str]) -> int:
        if option == "-q":
            self.quiet = True
            return 0
        if option not in _VALUES and not option.startswith("-w"):
            raise ValueError(f"unknown option: {option}")
        if not following:
            raise ValueError(f"{option} needs a value")
        value = following[0]
        if option.startswith("-w"):
            label = to_int("-wi", option[2:])
            if label in self.weight_label:
                raise ValueError(f"{option} appears twice")
            self.weight_label.append(label)
            self.weight.append(to_float(option, value))
            return 1
        name, convert = _VALUES[option]
        setattr(self, name, convert(option, value))
        self.cross_validation |= option == "-v"
        return 1

    def check(self) -> None:
        """Refuses values outside their ranges, by LIBSVM's rules."""
        classifies, one_class = self.svm_type in (0, 1), self.svm_type == 2
        rules = [
            ("-s", self.svm_type, 0 <= self.svm_type < len(SVM_TYPES), "an integer from 0 to 4"),
            ("-t", self.kernel_type, 0 <= self.kernel_type < len(KERNELS), "an integer from 0 to 4"),
            ("-d", self.degree, 0 <= self.degree < 2**31, "at least 0"),
            ("-g", self.gamma, self.gamma >= 0.0, "at least 0; 0 means 1 / n_features"),
            ("-m", self.cache_size, self.cache_size > 0.0, "above 0"),
            ("-e", self.eps, self.eps > 0.0, "above 0"),
            ("-c", self.C, self.C > 0.0 or self.svm_type in (1, 2), "above 0"),
            ("-n", self.nu, 0.0 < self.nu <= 1.0 or self.svm_type in (0, 3), "above 0 and at most 1"),
            ("-p", self.p, self.p >= 0.0 or self.svm_type != 3, "at least 0"),
            ("-v", self.nr_fold, not self.cross_validation or self.nr_fold >= 2, "at least 2"),
        ]
        for option, value, is_allowed, rule in rules:
            if not is_allowed:
                raise ValueError(f"{option} {value}: the value must be {rule}")
        check_flag("-h", self.shrinking)
        if check_flag("-b", self.probability) and one_class:
            raise ValueError("-b 1 is not supported for one-class SVM (-s 2)")
        for label, weight in zip(self.weight_label, self.weight, strict=True):
            if weight <= 0.0 and classifies:
                raise ValueError(f"-w{label} {weight}: the weight must be above 0")
