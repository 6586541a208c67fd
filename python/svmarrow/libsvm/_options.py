"""The options of ``svm-train``, for `svmarrow.libsvm.svm_train` and the grid search.

The extension module has the grammar and the rules; the options pass to it as words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svmarrow import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["KERNELS", "SVM_TYPES", "svm_parameter", "words_of"]

#: Types of support vector machines, in the order of ``-s``.
SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
#: Kernels, in the order of ``-t``.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

#: Options with a number, and the attributes of `svm_parameter`.
_NUMBERS = {
    "-s": "svm_type",
    "-t": "kernel_type",
    "-d": "degree",
    "-g": "gamma",
    "-r": "coef0",
    "-n": "nu",
    "-m": "cache_size",
    "-c": "C",
    "-e": "eps",
    "-p": "p",
    "-h": "shrinking",
    "-b": "probability",
}


def words_of(options: str | Sequence[str]) -> list[str]:
    """Returns the words of an option string or list."""
    if isinstance(options, str):
        return options.split()
    if not isinstance(options, (list, tuple)):
        raise TypeError(f"options={options!r} is not allowed: it must be a string or a list of words")
    return [str(word) for word in options]


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
    weight_label: list[int]
    weight: list[float]
    cross_validation: bool
    nr_fold: int
    quiet: bool

    def __init__(self, options: str | Sequence[str] = "") -> None:
        vars(self).update(_core.libsvm_options(words_of(options)))

    def _words(self) -> list[str]:
        """Returns the options as words; a caller may have changed the attributes."""
        words: list[str] = []
        for option, name in _NUMBERS.items():
            words += [option, str(getattr(self, name) + 0)]  # a truth value becomes a number
        for label, weight in zip(self.weight_label, self.weight, strict=True):
            words += [f"-w{int(label) if label == int(label) else label}", str(weight + 0)]
        if self.cross_validation:
            words += ["-v", str(self.nr_fold)]
        return words + ["-q"] * self.quiet

    def check(self) -> None:
        """Refuses values outside their ranges, by LIBSVM's rules."""
        _core.libsvm_options(self._words())
