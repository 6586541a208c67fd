"""Output codes: which classes each binary machine separates, and the decoders of its outputs.

A code is a matrix with a row for each class and a column for each machine. One-vs-one and one-vs-rest are
codes too. A decoder finds the class whose row agrees best with the outputs, by counts of signs or by a loss;
`svmarrow.models.outputs` applies it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import refuse, seed_of
from svmarrow._support.rows import threads
from svmarrow._support.schemas import savable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["CODES", "DECODERS", "LOSSES", "Code", "check_decoder", "make_code"]


#: Names of the codes that `make_code` constructs from the number of classes.
CODES = ("ovr", "ovo", "complete", "dense", "sparse", "bch")
#: Losses of the margin z = y f that decoders can use.
LOSSES = ("hinge", "squared_hinge", "square", "logistic", "exponential", "perceptron")
#: Names of the decoders; a loss is summed, or averaged over the machines that use the class.
DECODERS = ("hamming", "votes", "dag", *LOSSES, *(f"mean_{loss}" for loss in LOSSES))


@savable("code/1")
class Code:
    """A code: a matrix with a row for each class and a column for each binary machine.

    Machine i separates the classes whose entry in column i is +1 from those of -1; it is trained without
    those of 0.

    Parameters
    ----------
    matrix : array-like of int of shape (n_classes, n_columns)
        Entries -1, 0 and 1. Every column has both signs; rows are distinct and not zero.

    Attributes
    ----------
    matrix : ndarray of int8 of shape (n_classes, n_columns)
        The entries, read-only.

    Raises
    ------
    ValueError
        If the matrix is not a code; the message names the row or column.

    Examples
    --------
    >>> from svmarrow.multiclass import Code
    >>> code = Code([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    >>> code.row_distance, code.column_distance
    (2.0, 1.0)
    """

    __slots__ = ("_distances", "matrix")
    _arguments: ClassVar[tuple[str, ...]] = ("matrix",)

    matrix: NDArray[np.int8]
    _distances: tuple[float, float]

    def __init__(self, matrix: ArrayLike) -> None:
        try:
            given = np.asarray(matrix)
        except Exception:  # lists of different lengths or user-defined types  # noqa: BLE001 - the value's own methods may raise anything
            given = np.empty(0)
        if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "biuf":
            raise refuse("code", matrix, "a matrix with a row for each class and a column for each machine")
        entries = np.array(given, dtype=np.int8, order="C")
        if not np.isin(given, (-1, 0, 1)).all():
            raise refuse("code", given.tolist(), "made of -1, 0 and 1")
        self._take(entries)

    def _take(self, entries: NDArray[np.int8]) -> None:
        object.__setattr__(self, "_distances", _core.code_distances(entries, threads(None)))
        entries.flags.writeable = False
        object.__setattr__(self, "matrix", entries)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Code is immutable: create a new one to set {name}")

    @property
    def n_classes(self) -> int:
        """Number of classes N."""
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of machines F."""
        return int(self.matrix.shape[1])

    @property
    def has_zeros(self) -> bool:
        """True if some machine omits a class."""
        return not bool(self.matrix.all())

    @property
    def row_distance(self) -> float:
        """Smallest distance of two rows, where a zero counts one half (Rifkin 2002, (4.48))."""
        return float(self._distances[0])

    @property
    def column_distance(self) -> float:
        """Smallest distance of two columns, or of one and the opposite of the other; NaN for one column.

        A zero counts one half here too. For a code without zeros it is 0 if two machines are equal up to
        their sign.
        """
        return float(self._distances[1])

    @property
    def row_distances(self) -> NDArray[np.float64]:
        """Distances of all rows, (n_classes, n_classes), on the diagonal half the zeros of each."""
        entries = self.matrix.astype(np.float64)
        distances: NDArray[np.float64] = 0.5 * (self.n_columns - entries @ entries.T)
        return distances

    @property
    def largest_difference(self) -> int:
        """Maximum number G of columns in which two rows differ (Rifkin 2002, (5.33))."""
        rows = self.matrix
        return max(int((rows[a] != rows[:a]).sum(axis=1).max()) for a in range(1, self.n_classes))

    def distinct_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Find the columns that differ by more than their sign.

        Returns
        -------
        chosen : ndarray of int of shape (n_distinct,)
            Index of the first column of each kind, increasing.
        which : ndarray of int of shape (n_columns,)
            Index in `chosen` of each column.
        signs : ndarray of shape (n_columns,)
            -1 if a column is the negative of its chosen one, else 1.
        """
        columns = self.matrix.T
        first = columns[np.arange(len(columns)), (columns != 0).argmax(axis=1)]
        upright = columns * first[:, np.newaxis]
        _, index, inverse = np.unique(upright, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(index)
        chosen = index[order]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        which = place[inverse.reshape(-1)]
        signs = (first * first[chosen[which]]).astype(np.float64)
        return chosen, which, signs

    def check_classes(self, n_classes: int) -> None:
        """Raises ``ValueError`` if the code is for another number of classes."""
        if n_classes != self.n_classes:
            raise ValueError(
                f"code has {self.n_classes} rows for {n_classes} classes: it must have a row for each class"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Code) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.matrix.tobytes()))

    def __getstate__(self) -> NDArray[np.int8]:
        return self.matrix

    def __setstate__(self, state: NDArray[np.int8]) -> None:
        self._take(np.array(state, order="C"))

    def __repr__(self) -> str:
        return (
            f"<Code: {self.n_classes} classes, {self.n_columns} columns, row distance {self.row_distance:g}>"
        )


def make_code(
    code: str | Code | ArrayLike,
    n_classes: int,
    *,
    random_state: int | np.random.RandomState | None = None,
    n_draws: int = 10_000,
    min_use: float = 0.4,
    n_jobs: int | None = None,
) -> Code:
    """Construct a code by its name for a number of classes, or check a given matrix.

    Parameters
    ----------
    code : str, Code or array-like of shape (n_classes, n_columns)
        * ``"ovr"``: a machine for each class against all others;
        * ``"ovo"``: a machine for each pair of classes;
        * ``"complete"``: a machine for each of the 2^(n_classes - 1) - 1 partitions of the classes into two
          groups, for at most 15 classes;
        * ``"dense"``: ceil(10 log2 n_classes) random columns of -1 and 1, no two equal or opposite; the
          complete code if that has fewer columns;
        * ``"sparse"``: ceil(15 log2 n_classes) random columns, 0 with probability 1/2; a share of at
          least `min_use` of the machines uses every class, columns may repeat;
        * ``"bch"``: 63 columns for up to 128 classes, rows at least 31 apart: words of a BCH code, an
          algebraic error-correcting code with a known minimum distance. For more classes a larger code of
          the same length is used, with a smaller row distance.

        Dense and sparse codes are the best of `n_draws` by their row distance, ties broken by the
        largest number of machines for the least used class; BCH codes are the best by their column distance.
        For two classes every name gives the single column that is positive for the second class. A matrix is
        used unchanged.
    n_classes : int
        Number of classes.
    random_state : int, RandomState instance or None, default=None
        Seed of random codes; None uses a different one in each call.
    n_draws : int, default=10000
        Number of draws.
    min_use : float, default=0.4
        Minimum share of a sparse code's machines that use a class, between 0 and 1; other draws are rejected.
        A class that few machines use is decoded badly. 0 draws as in Rifkin (2002) [1]_: each class is
        used by at least one machine, and of draws with equal distance the first is kept. About half of the
        machines use a class, so shares above 0.45 leave few draws or none.
    n_jobs : int or None, default=None
        Number of threads; the code does not depend on it.

    Returns
    -------
    Code
        The matrix with its distances.

    Raises
    ------
    ValueError
        If the name is unknown, the matrix is not a code or is for another number of classes, there are too
        many classes for a complete code, or a share is outside its range or not reached by any draw.

    References
    ----------
    .. [1] R. Rifkin, "Everything Old Is New Again", MIT 2002, sections 4.2.2 and 4.3.

    Examples
    --------
    >>> from svmarrow.multiclass import make_code
    >>> make_code("dense", 10, random_state=0)
    <Code: 10 classes, 34 columns, row distance 14>
    """
    if isinstance(code, str):
        if code not in CODES:
            raise refuse("code", code, ", ".join(repr(name) for name in CODES) + " or a matrix")
        if n_draws < 1:
            raise refuse("n_draws", n_draws, "an integer at least 1")
        if not 0.0 <= min_use <= 1.0:
            raise refuse("min_use", min_use, "a number between 0 and 1")
        drawing = (seed_of(random_state), int(n_draws), float(min_use))
        return Code(_core.make_code(code, int(n_classes), *drawing, threads(n_jobs)))
    checked = code if isinstance(code, Code) else Code(code)
    checked.check_classes(n_classes)
    return checked


def check_decoder(decoder: str, code: Code) -> None:
    """Raises ``ValueError`` for a decoder that is unknown or not applicable to the code."""
    if decoder not in DECODERS:
        raise refuse("decoder", decoder, ", ".join(repr(name) for name in DECODERS))
    n_classes = code.matrix.shape[0]
    if decoder == "dag" and not np.array_equal(code.matrix, make_code("ovo", n_classes).matrix):
        raise refuse(
            "decoder",
            decoder,
            "used with code='ovo', whose pairs of classes it plays against each other; decoder='loss' takes "
            "every code",
        )


def loss_of(estimator: Any) -> str | None:
    """Returns the name in `LOSSES` of the loss that a binary classifier minimizes; None if it is unknown."""
    loss = getattr(estimator, "loss", None)
    if isinstance(loss, str) and loss in _LOSS_NAMES:
        return _LOSS_NAMES[loss]
    steps = getattr(estimator, "steps", None)
    if steps:
        return loss_of(steps[-1][1])
    margin_loss: str | None = getattr(estimator, "_margin_loss", None)
    names = (kind.__name__ for kind in type(estimator).__mro__)
    return margin_loss or next((_CLASS_LOSSES[name] for name in names if name in _CLASS_LOSSES), None)


#: Names of losses in scikit-learn.
_LOSS_NAMES = {
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    "squared_error": "square",
    "squared": "square",
    "square": "square",
    "log_loss": "logistic",
    "logistic": "logistic",
    "exponential": "exponential",
    "perceptron": "perceptron",
}
#: Losses of scikit-learn's estimators without a parameter for it; those of svmarrow have ``_margin_loss``.
_CLASS_LOSSES = {
    "SVC": "hinge",
    "NuSVC": "hinge",
    "LogisticRegression": "logistic",
    "LogisticRegressionCV": "logistic",
    "RidgeClassifier": "square",
    "RidgeClassifierCV": "square",
    "LinearDiscriminantAnalysis": "logistic",
    "AdaBoostClassifier": "exponential",
    "GradientBoostingClassifier": "logistic",
    "HistGradientBoostingClassifier": "logistic",
    "MLPClassifier": "logistic",
    "Perceptron": "perceptron",
}
