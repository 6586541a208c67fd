"""Several expansions as one: sums over different kernels, outputs side by side, averages."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
import scipy.sparse as sp

from svmarrow._support.parameters import ROW_KERNELS, refuse
from svmarrow._support.rows import read_only
from svmarrow._support.schemas import savable
from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow import _core

__all__ = ["ExpansionSum", "average", "merge", "sum_of"]

#: What stands for the kernel of a sum, and for the parameters that it does not have.
_KERNEL = {"kernel": "sum", "gamma": 1.0, "coef0": 0.0, "degree": 3}


@savable("sum/1")
class ExpansionSum(KernelExpansion):
    """q outputs that are sums of kernel expansions with different kernels.

    ``f_j(x) = sum_p sum_i B_p[i, j] k_p(x, z_i) + b_j``. `KMPClassifier` and `KMPRegressor` with a list of
    widths or kernels make it; models hold it as they hold any other expansion. It predicts, is saved,
    exported, compiled, explained, rounded and compressed by selection. What needs one kernel, as trees of
    local expansions and constructed vectors, refuses it.

    Parameters
    ----------
    parts : sequence of KernelExpansion
        At least two expansions, of different kernels computed from rows, with vectors of equally many columns
        and with equally many outputs.

    Attributes
    ----------
    parts : tuple of KernelExpansion
        The expansions; the intercepts of all are those of the first.
    vectors : {ndarray, CSR matrix} of shape (m, d)
        The vectors of all parts, one part after the other.
    coefficients : ndarray of shape (m, q)
        Their coefficients.
    intercepts : ndarray of shape (q,)
        The sum of the intercepts.
    kernel : str
        "sum"; each part has its own. `gamma`, `coef0` and `degree` have no meaning.

    Raises
    ------
    ValueError
        For fewer than two parts, equal kernels, kernels that are precomputed or Python functions, and parts
        of different shapes.

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002, section 4: a dictionary
    that mixes kernel types and widths.

    Examples
    --------
    >>> from svmarrow import KernelExpansion
    >>> from svmarrow.models import ExpansionSum
    >>> wide = KernelExpansion([[0.0]], [1.0], 0.5, gamma=0.1)
    >>> narrow = KernelExpansion([[0.0], [1.0]], [1.0, -2.0], 0.0, gamma=10.0)
    >>> both = ExpansionSum([wide, narrow])
    >>> both
    <ExpansionSum: 3 vectors, 1 outputs, kernels rbf (1 vectors), rbf (2 vectors)>
    >>> f = both.decision_function([[0.0]]) - wide.decision_function([[0.0]])
    >>> bool((f == narrow.decision_function([[0.0]])).all())
    True
    """

    __slots__ = ("parts",)

    _arguments: ClassVar[tuple[str, ...]] = ("parts",)
    #: Files hold the parts.
    _of_parts: ClassVar[None] = None  # type: ignore[assignment]

    parts: tuple[KernelExpansion, ...]

    def __init__(self, parts: Sequence[KernelExpansion]) -> None:
        parts = tuple(parts)
        _check(parts)
        vectors = _stacked([part.vectors for part in parts])
        coefficients = np.vstack([part.coefficients for part in parts])
        intercepts = np.sum([part.intercepts for part in parts], axis=0)
        views, start = [], 0
        for part in parts:
            rows = slice(start, start + part.n_vectors)
            start = rows.stop
            # The parts share the memory of the sum where it has their layout.
            is_view = isinstance(vectors, np.ndarray) and vectors.dtype == part.vectors.dtype
            views.append(
                part.replaced(
                    vectors=vectors[rows] if is_view else part.vectors,
                    coefficients=coefficients[rows],
                    intercepts=intercepts if rows.start == 0 else np.zeros(intercepts.size),
                )
            )
        arrays = {"vectors": vectors, "coefficients": coefficients, "intercepts": intercepts}
        values = {**{name: read_only(array) for name, array in arrays.items()}, **_KERNEL}
        for name, value in {**values, "parts": tuple(views), "_handle": {}}.items():
            object.__setattr__(self, name, value)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the parts."""
        return sum(part.nbytes for part in self.parts)

    @property
    def kernel_spec(self) -> NoReturn:
        """Each part has its own."""
        raise TypeError(
            "a sum of expansions has several kernels: this needs an expansion of one kernel, as each of its "
            "parts is"
        )

    @property
    def core_expansion(self) -> list[_core.Expansion]:  # type: ignore[override]
        """The parts in the extension module."""
        return [part.core_expansion for part in self.parts]

    def needs_double(self) -> bool:
        """Return True: the parts may cancel, and each knows its own rounding alone."""
        return True

    def replaced(self, **fields: Any) -> Self:
        """The sum with other ``coefficients`` (m, q) or ``intercepts``; a TypeError for another part."""
        others = fields.keys() - {"coefficients", "intercepts"}
        if others:
            raise TypeError(f"{', '.join(sorted(others))} of a sum of expansions cannot be replaced")
        coefficients = np.asarray(fields.get("coefficients", self.coefficients), dtype=np.float64)
        intercepts = np.atleast_1d(np.asarray(fields.get("intercepts", self.intercepts), dtype=np.float64))
        if coefficients.ndim == 1:
            coefficients = coefficients[:, np.newaxis]
        if coefficients.shape != (self.n_vectors, intercepts.size):
            raise ValueError(
                f"coefficients have shape {coefficients.shape}: for these vectors and intercepts it must be "
                f"{(self.n_vectors, intercepts.size)}"
            )
        ends = np.cumsum([part.n_vectors for part in self.parts])[:-1]
        blocks = np.split(coefficients, ends)
        offsets = [intercepts, *[np.zeros(intercepts.size)] * (len(self.parts) - 1)]
        return type(self)(
            [
                part.replaced(coefficients=block, intercepts=offset)
                for part, block, offset in zip(self.parts, blocks, offsets, strict=True)
            ]
        )

    def _selected(self, places: NDArray[np.intp], coefficients: NDArray[np.float64]) -> KernelExpansion:
        """The expansion of some vectors, in the order of the parts, with coefficients (s, q) for `places`."""
        ends = np.cumsum([part.n_vectors for part in self.parts])
        owners = np.searchsorted(ends, places, side="right")
        chosen = [
            part._selected(places[owners == p] - (ends[p] - part.n_vectors), coefficients[owners == p])
            for p, part in enumerate(self.parts)
        ]
        return sum_of(chosen)

    def _kernel_values(
        self, X: Any, places: NDArray[np.intp], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Kernel values (n, s) of validated samples and some vectors, each with the kernel of its part."""
        ends = np.cumsum([part.n_vectors for part in self.parts])
        owners = np.searchsorted(ends, places, side="right")
        out = np.empty((X.shape[0], places.size))
        for p, part in enumerate(self.parts):
            columns = np.flatnonzero(owners == p)
            if columns.size:
                out[:, columns] = part._kernel_values(X, places[columns] - (ends[p] - part.n_vectors), n_jobs)
        return out

    def _evaluate(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        rows = X.astype(np.float64, copy=False)
        total = self.parts[0]._evaluate(rows, n_jobs)
        for part in self.parts[1:]:
            total = total + part._evaluate(rows, n_jobs)
        return total

    def __getstate__(self) -> dict[str, Any]:
        return {"parts": self.parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return self.parts == other.parts if isinstance(other, ExpansionSum) else NotImplemented

    __hash__: ClassVar[None] = None

    def __repr__(self) -> str:
        kernels = ", ".join(f"{part.kernel} ({part.n_vectors} vectors)" for part in self.parts)
        return f"<ExpansionSum: {self.n_vectors} vectors, {self.n_outputs} outputs, kernels {kernels}>"


# --- several expansions as one ---


def sum_of(expansions: Iterable[KernelExpansion]) -> KernelExpansion:
    """The sum of expansions of any kernels: those of one kernel are joined, those without vectors left out.

    Parameters
    ----------
    expansions : iterable of KernelExpansion
        At least one; all with equally many outputs and columns.

    Returns
    -------
    KernelExpansion
        An `ExpansionSum` where at least two kernels have vectors. Vectors are in their order, repeated ones
        too.
    """
    terms = list(expansions)
    by_kernel: dict[Any, list[KernelExpansion]] = {}
    for expansion in terms:
        for part in expansion.parts:
            if part.n_vectors:
                by_kernel.setdefault(part.kernel_spec, []).append(part)
    joined = [
        parts[0].replaced(
            vectors=parts[0].vectors if len(parts) == 1 else _stacked([part.vectors for part in parts]),
            coefficients=np.vstack([part.coefficients for part in parts]),
        )
        for parts in by_kernel.values()
    ]
    intercepts = np.sum([expansion.intercepts for expansion in terms], axis=0)
    return _added(joined, intercepts, terms[0])


def merge(expansions: Sequence[KernelExpansion]) -> KernelExpansion:
    """All outputs side by side.

    Parameters
    ----------
    expansions : sequence of KernelExpansion
        Those without vectors are constants and fit to any kernel.

    Returns
    -------
    KernelExpansion
        Output j belongs to the j-th output of the sequence; the vectors of a kernel in the order of their
        first occurrence. An `ExpansionSum` if there are several kernels.

    Raises
    ------
    ValueError
        If they differ in the number of columns, or have several kernels that are not computed from rows.
    """
    ends = np.cumsum([expansion.n_outputs for expansion in expansions])
    columns = [slice(end - expansion.n_outputs, end) for expansion, end in zip(expansions, ends, strict=True)]
    return _combined(expansions, columns, np.ones(len(expansions)), int(ends[-1]))


def average(expansions: Sequence[KernelExpansion], weights: ArrayLike | None = None) -> KernelExpansion:
    """The weighted mean of the outputs.

    Parameters
    ----------
    expansions : sequence of KernelExpansion
        As for `merge`, all with the same number of outputs.
    weights : array-like of shape (len(expansions),), default=None
        None counts all alike.

    Returns
    -------
    KernelExpansion
        Output j is the mean of the outputs j; vectors as for `merge`.

    Raises
    ------
    ValueError
        As for `merge`, and if they differ in the number of outputs.
    """
    outputs = expansions[0].n_outputs
    for other in expansions:
        if other.n_outputs != outputs:
            raise ValueError(
                f"the machines have {outputs} and {other.n_outputs} outputs: an average needs the same number"
            )
    shares = np.ones(len(expansions)) if weights is None else np.asarray(weights, dtype=np.float64)
    return _combined(expansions, [slice(None)] * len(expansions), shares / shares.sum(), outputs)


def _combined(
    expansions: Sequence[KernelExpansion], columns: list[slice], shares: NDArray[np.float64], n_outputs: int
) -> KernelExpansion:
    """Outputs to which each expansion adds its share in some columns."""
    by_kernel: dict[Any, list[tuple[KernelExpansion, slice, float]]] = {}
    intercepts = np.zeros(n_outputs)
    for expansion, place, share in zip(expansions, columns, shares, strict=True):
        intercepts[place] += share * expansion.intercepts
        for part in expansion.parts:
            if part.n_vectors:
                by_kernel.setdefault(part.kernel_spec, []).append((part, place, share))
    widths = {part.vectors.shape[1] for terms in by_kernel.values() for part, _, _ in terms}
    if len(widths) > 1:
        raise ValueError(f"the machines have different numbers of columns: {sorted(widths)}")
    pooled = []
    for terms in by_kernel.values():
        vectors, places = _distinct([part.vectors for part, _, _ in terms])
        coefficients = np.zeros((vectors.shape[0], n_outputs))
        for (part, place, share), rows in zip(terms, places, strict=True):
            np.add.at(coefficients[:, place], rows, share * part.coefficients)
        pooled.append(
            terms[0][0].replaced(vectors=vectors, coefficients=coefficients, intercepts=np.zeros(n_outputs))
        )
    return _added(pooled, intercepts, expansions[0])


def _added(
    parts: list[KernelExpansion], intercepts: NDArray[np.float64], first: KernelExpansion
) -> KernelExpansion:
    """Expansions of different kernels as one with these intercepts; without any, a constant like `first`."""
    if not parts:
        constant = first.parts[0]
        nothing = np.zeros((0, intercepts.size))
        return constant.replaced(vectors=constant.vectors[:0], coefficients=nothing, intercepts=intercepts)
    zeros = np.zeros(intercepts.size)
    parts = [part.replaced(intercepts=zeros if i else intercepts) for i, part in enumerate(parts)]
    return parts[0] if len(parts) == 1 else ExpansionSum(parts)


def _distinct(blocks: list[Any]) -> tuple[Any, list[NDArray[np.intp]]]:
    """The distinct vectors in the order of their first occurrence, and the place of each among them."""
    known: dict[bytes, int] = {}
    places = [
        np.array([known.setdefault(key, len(known)) for key in _keys(block)], dtype=np.intp)
        for block in blocks
    ]
    _, where = np.unique(np.concatenate(places), return_index=True)
    return _stacked(blocks)[where], places


def _stacked(blocks: list[Any]) -> Any:
    """Vectors one below the other, sparse if any are."""
    if any(map(sp.issparse, blocks)):
        return sp.csr_array(sp.vstack([sp.csr_array(block) for block in blocks]))
    return np.vstack(blocks)


def _keys(vectors: Any) -> list[bytes]:
    """Rows as bytes: equal where the rows are."""
    if sp.issparse(vectors):
        ends = vectors.indptr
        return [
            vectors.indices[a:b].astype(np.int64).tobytes() + vectors.data[a:b].tobytes()
            for a, b in pairwise(ends)
        ]
    return [row.tobytes() for row in np.ascontiguousarray(vectors)]


def _check(parts: tuple[Any, ...]) -> None:
    """Refuse parts that are no sum."""
    if len(parts) < 2:
        raise refuse("parts", parts, "at least two expansions")
    for part in parts:
        if type(part) is not KernelExpansion:
            raise refuse("parts", part, "expansions of one kernel each")
        if not isinstance(part.kernel, str) or part.kernel not in ROW_KERNELS:
            raise refuse("kernel", part.kernel, "computed from rows by svmarrow, for a sum of expansions")
    if len({part.kernel_spec for part in parts}) < len(parts):
        raise refuse("parts", parts, "of different kernels: vectors of one kernel are one expansion")
    shapes = {(part.vectors.shape[1], part.n_outputs) for part in parts}
    if len(shapes) > 1:
        raise refuse("parts", parts, f"of equally many columns and outputs, these have {sorted(shapes)}")
