"""A function in pieces: the path of a sample through a tree leads to a kernel expansion of few vectors."""

from __future__ import annotations

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
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = ["ExpansionTree", "leaf_members"]

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
