"""Several expansions as one: sums over different kernels, outputs side by side, averages, and trees."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
import scipy.sparse as sp

from svmarrow import _core
from svmarrow._support.parameters import ROW_KERNELS, refuse, seed_of
from svmarrow._support.rows import as_rows, core_rows, in_layout_of, read_only, rows_of, threads
from svmarrow._support.saving import check_state
from svmarrow._support.schemas import savable
from svmarrow.expansion.kernel_expansion import KernelExpansion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = ["ExpansionSum", "ExpansionTree", "average", "leaf_members", "merge", "sum_of"]


# --- sums ---

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


# --- trees: the path of a sample leads to an expansion of few vectors ---

#: Number of samples on which a node is split.
_SAMPLE_SIZE = 512
#: The arrays of a state, beside the vectors.
_ARRAYS = (
    "kinds",
    "children",
    "thresholds",
    "starts",
    "members",
    "weights",
    "directions",
    "intercepts",
)


@savable("tree/1")
class ExpansionTree(KernelExpansion):
    """q outputs that share a tree of kernel expansions.

    A sample passes hyperplanes from the root to a leaf, and its outputs are those of the leaf, a kernel
    expansion of at most `max_evaluations` vectors. `svmarrow.compress` makes it; models hold it as they hold
    any other expansion. It predicts, is saved, exported and compiled. Everything that needs one set of
    coefficients for all samples, as Shapley values and further compression, refuses it.

    Parameters
    ----------
    state : dict of str to ndarray
        The arrays of the tree, as `of` makes them.
    kernel : str
        As for `KernelExpansion`; not "precomputed", and no function.
    gamma, coef0 : float
        As for `KernelExpansion`.
    degree : int
        As for `KernelExpansion`.

    Attributes
    ----------
    vectors : {ndarray, CSR matrix} of shape (m, d)
        The distinct vectors of all leaves.
    n_leaves : int
        Number of leaves.
    max_evaluations : int
        Number of vectors of the largest leaf: no output takes more kernel values.
    kernel, gamma, coef0, degree
        As given.

    Raises
    ------
    ValueError
        For arrays that are no tree, and kernel parameters out of range.

    Notes
    -----
    The tree is that of Ukkonen and Arias [1]_. The hyperplane of a node is normal to the direction along
    which the samples explain the outputs best, the first one of partial least squares, and passes through
    their median. A leaf selects its vectors by matching pursuit on the outputs of the whole expansion, and is
    fitted to them by least squares, on the samples that reach it and on others near its borders.

    References
    ----------
    .. [1] A. Ukkonen and M. Arias, *Example-dependent Basis Vector Selection for Kernel-based Classifiers*,
       ECML PKDD 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import SVC
    >>> from svmarrow.models import ExpansionTree
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10.0, gamma=0.001).fit(X, y)
    >>> tree = ExpansionTree.of(svc.expansion_, X, 40, random_state=0)
    >>> tree.max_evaluations, tree.n_vectors > 40, tree.decision_function(X[:3]).shape
    (40, True, (3, 45))
    """

    __slots__ = ("_tree", "max_evaluations", "n_leaves", "state")

    _arguments: ClassVar[tuple[str, ...]] = ("state", "kernel", "gamma", "coef0", "degree")
    #: Files hold the state, not coefficients.
    _of_parts: ClassVar[None] = None  # type: ignore[assignment]

    state: dict[str, Any]
    n_leaves: int
    max_evaluations: int
    _tree: dict[str, _core.PerceptronTree]

    def __init__(
        self,
        state: Mapping[str, Any],
        kernel: str = "rbf",
        gamma: float = 1.0,
        coef0: float = 0.0,
        degree: int = 3,
    ) -> None:
        if kernel not in ROW_KERNELS:
            raise refuse("kernel", kernel, "computed from rows by svmarrow, for a tree")
        known, spec = dict(state), (kernel, float(gamma), float(coef0), int(degree))
        if known.keys() != {"rows", *_ARRAYS}:
            raise ValueError(
                f"the state has the parts {', '.join(known)}: expected rows, {', '.join(_ARRAYS)}"
            )
        rows = read_only(rows_of(known["rows"]))
        outputs = int(np.shape(known["intercepts"])[-1])
        stream = _core.perceptron_tree(core_rows(rows[:0]), outputs, 0)
        check_state(known, {name: stream[name] for name in known})
        # What a stream would go on with is empty. The extension module checks the rest: lengths, children
        # and members.
        n_nodes = known["kinds"].size
        stream |= known | {
            "accumulator": np.zeros_like(known["weights"]),
            "age": np.zeros(n_nodes, dtype=np.int64),
            "sample_starts": np.zeros(n_nodes + 1, dtype=np.int64),
            "leaf_seen": np.zeros(n_nodes, dtype=np.int64),
        }
        tree = _core.PerceptronTree(spec, stream, False)
        is_leaf, sizes = known["kinds"] == 0, np.diff(known["starts"])
        vectors = rows[np.unique(known["members"][np.repeat(is_leaf, sizes)])]
        # The kernel's parameters are checked, and have their defaults where it has none.
        parts = KernelExpansion(vectors, np.zeros((vectors.shape[0], 1)), 0.0, *spec)
        for name in ("vectors", "kernel", "gamma", "coef0", "degree"):
            object.__setattr__(self, name, getattr(parts, name))
        arrays = {name: read_only(known[name]) for name in _ARRAYS}
        object.__setattr__(self, "state", {"rows": core_rows(rows), **arrays})
        object.__setattr__(self, "n_leaves", int(is_leaf.sum()))
        object.__setattr__(self, "max_evaluations", int(sizes[is_leaf].max(initial=0)))
        object.__setattr__(self, "_tree", {"": tree})

    @classmethod
    def of(
        cls,
        expansion: KernelExpansion,
        X: Any,
        max_evaluations: int,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """The tree of an expansion.

        Parameters
        ----------
        expansion : KernelExpansion
            The expansion; its kernel is built in and computed from rows.
        X : {ndarray, CSR matrix} of shape (n_samples, n_features)
            Validated samples like those that will be predicted.
        max_evaluations : int
            Maximum number of vectors of a leaf.
        random_state : int, RandomState instance or None, default=None
            Seed of the samples on which nodes are split.
        n_jobs : int or None, default=None
            Threads.
        progress : callable or None, default=None
            Called with the progress.

        Returns
        -------
        ExpansionTree
            The tree.

        Raises
        ------
        ValueError
            For a kernel that is not computed from rows.
        """
        kernel = expansion.kernel
        if not isinstance(kernel, str) or kernel not in ROW_KERNELS:
            raise refuse("kernel", kernel, "computed from rows by svmarrow, for a tree of it")
        settings = {
            # No rule of this split looks at labels.
            "n_classes": 2,
            "split": "pls-opts",
            "budget": int(max_evaluations),
            "sample_size": _SAMPLE_SIZE,
            "keeps_samples": False,
            "n_draws": 1,
            "alpha": 0.0,
            "seed": seed_of(random_state),
        }
        rows, labels = in_layout_of(expansion.vectors, X), np.zeros(X.shape[0], dtype=np.int64)
        state = _core.perceptron_tree_of(
            expansion.core_parts, core_rows(rows), labels, settings, threads(n_jobs), progress
        )
        return cls({name: state[name] for name in ("rows", *_ARRAYS)}, *expansion.kernel_spec)

    @property
    def n_outputs(self) -> int:
        """Number of outputs q."""
        return int(self.state["intercepts"].shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that predict: the vectors, the functions of the leaves, the hyperplanes."""
        rows = self.vectors
        arrays = [rows.data, rows.indices, rows.indptr] if sp.issparse(rows) else [rows]
        arrays += [self.state[name] for name in _ARRAYS]
        return sum(int(array.nbytes) for array in arrays)

    def needs_double(self) -> bool:
        """Return True: samples are prepared in double precision; each leaf chooses its own."""
        return True

    def scaled(self, factors: NDArray[np.float64]) -> Self:
        """Returns the tree with its outputs multiplied by factors (q,)."""
        names = ("weights", "intercepts")
        state = {**self.state, **{name: self.state[name] * factors for name in names}}
        return type(self)(state, *self.kernel_spec)

    def leaf_expansion(self, leaf: int) -> KernelExpansion:
        """The expansion of a leaf.

        Parameters
        ----------
        leaf : int
            The number of its node, as `apply` returns it.

        Returns
        -------
        KernelExpansion
            The function of the samples that reach the leaf.

        Raises
        ------
        ValueError
            If it is no leaf.
        """
        members = leaf_members(self.state, leaf)
        return KernelExpansion(
            rows_of(self.state["rows"])[self.state["members"][members]],
            self.state["weights"][members],
            self.state["intercepts"][leaf],
            *self.kernel_spec,
        )

    def apply(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.int64]:
        """Find the leaf of each sample; returns the numbers of nodes, shape (n_samples,)."""
        rows = in_layout_of(self.vectors, as_rows(X))
        return self.core_expansion.routes(core_rows(rows), threads(n_jobs))[:, 0]

    @property
    def core_expansion(self) -> _core.PerceptronTree:  # type: ignore[override]
        """The tree in the extension module, shared by all predictions."""
        return self._tree[""]

    def _evaluate(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        rows = in_layout_of(self.vectors, X)
        return self.core_expansion.decision(core_rows(rows), threads(n_jobs))

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._arguments}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExpansionTree):
            return NotImplemented
        return self.kernel_spec == other.kernel_spec and _are_equal(self.state, other.state)

    __hash__: ClassVar[None] = None

    def __repr__(self) -> str:
        size = f"{self.n_leaves} leaves, {self.max_evaluations} of {self.n_vectors} vectors for an answer"
        return f"<ExpansionTree: {size}, {self.n_outputs} outputs, kernel={self.kernel!r}>"

    # --- what only a single expansion has ---

    @property
    def coefficients(self) -> NoReturn:  # type: ignore[override]
        """Each leaf has its own."""
        raise self._refusal("coefficients")

    @property
    def intercepts(self) -> NoReturn:  # type: ignore[override]
        """Each leaf has its own."""
        raise self._refusal("intercepts")

    def replaced(self, **fields: Any) -> NoReturn:  # noqa: ARG002 - the signature of an expansion
        """Refuse: a tree is not changed in parts."""
        raise self._refusal("parts to replace")

    @staticmethod
    def _refusal(what: str) -> TypeError:
        return TypeError(
            f"a tree of local expansions has no {what} of its own, as each leaf has others: this needs one "
            "expansion for all samples, as compress makes without max_evaluations"
        )


def leaf_members(state: Mapping[str, Any], leaf: int) -> slice:
    """The members of a leaf of a tree, by the number of its node; refuses other numbers."""
    if not 0 <= leaf < state["kinds"].size or state["kinds"][leaf] != 0:
        raise refuse("leaf", leaf, "the number of a leaf, as apply returns it")
    return slice(int(state["starts"][leaf]), int(state["starts"][leaf + 1]))


def _are_equal(one: Any, other: Any) -> bool:
    """Returns whether states, or parts of them, are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return bool(np.array_equal(one, other))
