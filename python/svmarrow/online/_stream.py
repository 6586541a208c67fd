"""Base class of the online learners: labels, layout, counts, state and memory of a stream.

The state ``_state`` is a dict of NumPy arrays and numbers on which later updates depend. Each call passes it
to the extension module and stores the returned one, so an interrupted call changes nothing, and a model can
be pickled between two calls. The first batch determines the layout (dense or CSR) and the precision of a
stream; later batches are converted.

A budget bounds the number of vectors. Without one every row may become a vector, though few do, and rejecting
the worst case would reject streams that need far less. So a batch is split into parts that fit into the
memory whatever their mistakes are. Learning in parts gives the same model bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative

from svmarrow import _core
from svmarrow._support.parameters import (
    ROW_KERNELS,
    THREADS,
    VERBOSE,
    InterruptedFit,
    atomic_fit,
    atomic_update,
    check,
    consistent,
    integer,
    kernel_rules,
    seed_of,
)
from svmarrow._support.progress import fitting, subtasks
from svmarrow._support.rows import in_layout_of, rows_of, validated
from svmarrow._support.saving import check_columns, check_state
from svmarrow._support.training import MIN_CHECKED_BYTES, MemoryEstimate, default_gamma, refuse_beyond_memory
from svmarrow._support.training import estimate_memory as memory_method
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.machine import KernelMachine
from svmarrow.models.outputs import ClassifierOutputMixin

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.rows import CoreRows

__all__ = ["STREAM_RULES", "Rows", "StreamClassifier", "TreeSizes", "bytes_of_pool", "rows_that_fit"]


# --- memory ---

#: Number of bytes of a panel line: two of the largest registers.
LINE = 128
#: Minimum number of rows of a part of a stream.
MIN_PART_ROWS = 1024


class Rows:
    """Sizes of samples of a stream.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, d)
        Samples.
    precise : bool, default=False
        Whether kernel values are computed in double precision whatever the type of the samples.
    """

    def __init__(self, X: Any, *, precise: bool = False) -> None:
        self.count, self.features = (int(size) for size in X.shape)
        #: Number of bytes of a stored number and of a number in computations.
        self.kept = 8 if X.dtype == np.float64 else 4
        self.single = 8 if precise else self.kept
        self.precise = precise
        self.stored: Any = None
        if sp.issparse(X):
            # Longest rows first: any vectors have at most as many entries.
            self.stored = np.cumsum(np.sort(np.diff(X.indptr).astype(np.int64))[::-1])

    def entries(self, vectors: int) -> int:
        """Returns the maximum number of entries of ``vectors`` rows."""
        if self.stored is None:
            return vectors * self.features
        if self.count == 0:
            return 0
        times, rest = divmod(vectors, self.count)
        return int(times * self.stored[-1] + (self.stored[rest - 1] if rest else 0))

    def plain(self, vectors: int, number: int) -> int:
        """Returns the bytes of stored rows with ``number`` bytes per number."""
        if self.stored is None:
            return self.entries(vectors) * number
        return self.entries(vectors) * (number + 8) + 8 * vectors

    def packed(self, vectors: int, *, pools: int = 1, replaced: bool = False) -> int:
        """Returns the bytes of pools with ``vectors`` vectors; `replaced` if vectors replace others."""
        columns = LINE // self.single
        panels = vectors // columns + pools
        if self.stored is None:
            return panels * LINE * (self.features + 2)
        entries = (3 if replaced else 1) * self.entries(vectors) + panels * columns
        lines = min(entries, panels * (self.features + 1))
        found = 4 * self.features * panels if self.features <= _core.MAX_LISTED_FEATURES else 32 * lines
        return (LINE + 4) * lines + 2 * LINE * panels + found


def bytes_of_pool(rows: Rows, known: int, vectors: int, outputs: int, policy: str) -> int:
    """Returns the bytes of a batch that extends a pool from `known` to ``vectors`` vectors."""
    scored = outputs if policy in ("margin", "tightest") else 0
    # The Gram matrix is stored in full, a factor as one triangle.
    pairs = {"tightest": 8, "projectron": 4, "projectron++": 4}.get(policy, 0)

    def state(m: int) -> int:
        return rows.plain(m, rows.kept) + 8 * m * (2 + outputs + scored) + (8 * m * m if pairs else 0)

    replaced = policy not in ("unlimited", "stop", "projectron", "projectron++")
    grown = rows.packed(vectors, replaced=replaced) + pairs * vectors * vectors
    grown += 16 * vectors * (6 + outputs + scored)
    # The previous state exists twice, in Python and as the start of the computation.
    return grown + state(vectors) + 2 * state(known)


class TreeSizes(NamedTuple):
    """Sizes that determine the memory of a tree, with its stored rows and leaves."""

    rows: Rows
    outputs: int
    budget: int
    #: Maximum number of initial vectors of a side of a split.
    children: int
    sample: int
    max_leaves: int | None
    split: str
    threads: int

    def whole(self, n: int, passes: int) -> int:
        """Returns the bytes of ``passes`` passes over n rows."""
        before, after = (self._grown((0, 1), n * passed, n) for passed in (passes - 1, passes))
        return self._bytes(before, after)

    def piece(self, known: tuple[int, int], mistakes: int, most: int) -> int:
        """Returns the bytes of a batch with ``mistakes`` mistakes, after which at most ``most`` samples are
        stored.
        """
        return self._bytes(known, self._grown(known, mistakes, most))

    def _grown(self, known: tuple[int, int], mistakes: int, most: int) -> tuple[int, int]:
        # After a split both sides need further mistakes before they overflow again.
        leaves = known[1] + mistakes // max(1, self.budget + 1 - self.children)
        leaves = max(known[1], leaves if self.max_leaves is None else min(leaves, self.max_leaves))
        return min(most, known[0] + mistakes), leaves

    def _bytes(self, known: tuple[int, int], grown: tuple[int, int]) -> int:
        rows, m = self.rows, self.budget + 1
        # Kernel values of a sample, all and by sides; both quadratic programs and their solver; its rows
        # twice.
        of_split = 8 * (3 * self.sample * m + 8 * m * m) + 2 * self.sample * (rows.plain(1, rows.single) + 64)
        # Each thread may split a leaf if their splits are small.
        of_splits = max(of_split, min(self.threads * of_split, _core.MAX_SPLIT_BYTES))
        # The previous state exists twice, in Python and as the start of the computation.
        return self._built(*grown) + self._state(*grown) + 2 * self._state(*known) + of_splits

    @property
    def _is_linear(self) -> bool:
        return self.split.startswith(("wpq", "pls", "rndw"))

    def _vectors(self, leaves: int) -> int:
        """Returns the number of vectors of leaves and rules."""
        of_rule = self.sample if self.split == "zpq" else 0 if self._is_linear else 1
        return leaves * self.budget + (leaves - 1) * of_rule

    def _state(self, stored: int, leaves: int) -> int:
        rules = (leaves - 1) * (8 * self.rows.features if self._is_linear else 0)
        members = 8 * self._vectors(leaves) * (1 + 2 * self.outputs)
        of_samples = 16 * min(leaves * self.sample, stored + leaves)
        return self.rows.plain(stored, self.rows.kept) + members + of_samples + rules + 72 * leaves

    def _built(self, stored: int, leaves: int) -> int:
        rows = self.rows
        rules = (leaves - 1) * (rows.single * rows.features if self._is_linear else 0)
        pools = leaves + (0 if self._is_linear else leaves - 1)
        packed = rows.packed(self._vectors(leaves), pools=pools)
        # Coefficients and their averages.
        packed += 16 * leaves * self.budget * self.outputs
        return rows.plain(stored, rows.single) + 120 * stored + packed + rules + 16 * leaves * self.sample


def rows_that_fit(name: str, rest: int, needed: Callable[[int], int]) -> int:
    """Returns how many of the remaining samples fit into the memory; `needed(n)` is the bytes of n samples.

    Raises
    ------
    MemoryError
        If the next 1,024 samples do not fit.
    """
    if needed(rest) < MIN_CHECKED_BYTES:
        return rest
    free = max(MIN_CHECKED_BYTES, _core.available_memory())
    if needed(rest) <= free:
        return rest
    fits, too_many = 0, rest
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if needed(middle) <= free else (fits, middle)
    if fits < MIN_PART_ROWS:
        refuse_beyond_memory(
            f"{name}.fit",
            needed(min(rest, MIN_PART_ROWS)),
            "set or lower a budget, or give rows in single precision",
        )
    return max(fits, 1)


# --- streams ---

STREAM_RULES = {
    **kernel_rules(*ROW_KERNELS),
    "n_epochs": integer(least=1),
    "n_jobs": THREADS,
    "verbose": VERBOSE,
}


class StreamClassifier(ClassifierOutputMixin, KernelMachine):
    """Base class of the classifiers that learn from a stream."""

    feature_names_in_: NDArray[np.object_]
    mistakes_: int
    n_seen_: int
    mistake_indices_: NDArray[np.int64]
    gamma_: float
    n_epochs_: int
    kernel: str
    gamma: str | float
    coef0: float
    degree: int
    n_epochs: int
    verbose: bool | int
    _state: dict[str, Any]
    _stored_as: ClassVar[dict[str, str]] = {"_state": "state_"}
    _weighted: bool | None = False
    _transient: ClassVar[tuple[str, ...]] = ("_weighted",)
    _margin_loss: ClassVar[str] = "perceptron"

    @atomic_fit
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the model from scratch to the samples in their order, ``n_epochs`` times.

        ``sample_weight`` is not supported, since a perceptron does not minimize a sum over samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, or there is a single class.
        MemoryError
            If the free memory may be too small for the vectors, see `estimate_memory`.
        KeyboardInterrupt
            On Ctrl-C; the model of the last complete pass is kept, and without one the estimator is
            unchanged.
        """
        self._check_parameters()
        with fitting(self, X, y), subtasks("epoch", int(self.n_epochs)) as epochs:
            X, y = validated(self, X, y, reset=True, with_y=True)
            check_classification_targets(y)
            self._begin(X, np.unique(y))
            labels = np.searchsorted(self.classes_, y).astype(np.int64)
            completed: dict[str, Any] | None = None
            try:
                while self.n_epochs_ < self.n_epochs and not epochs.stopped:
                    with epochs.part(self.n_epochs_, model=dict):
                        self._pass(X, labels)
                    completed = dict(vars(self))
            except KeyboardInterrupt:
                if completed is None:
                    raise
                self.__dict__ = completed
                raise InterruptedFit(self) from None
        return self

    @atomic_update
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Update the model with the next batch of the stream, in its order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples. The first batch determines the layout and the precision of the stream.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All class labels of the stream; required in the first call, the same or None in later ones.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter is outside its range, the data contain NaN or infinity, a label is unknown, or the
            number of features differs.
        MemoryError
            If the free memory may be too small for the vectors, see `estimate_memory`.
        KeyboardInterrupt
            On Ctrl-C; the estimator is then unchanged.
        """
        self._check_parameters()
        first = not hasattr(self, "_state")
        X, y = validated(self, X, y, reset=first, with_y=True)
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError(
                    "classes=None is not allowed: the first call of partial_fit must name them all"
                )
            self._begin(X, np.unique(np.asarray(classes)))
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not allowed: it must be {self.classes_.tolist()} or None"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, which is not among the classes "
                f"{self.classes_.tolist()} that the first call of partial_fit named"
            )
        self._piece(X, np.searchsorted(self.classes_, y).astype(np.int64))
        return self

    def _check_parameters(self) -> None:
        """Raises ValueError for a parameter that breaks its rule, alone or together with others."""
        check(self.get_params(deep=False), self._rules)

    def _begin(self, X: Any, classes: NDArray[Any]) -> None:
        if classes.size < 2:
            raise ValueError(
                f"y has {classes.size} class: it must have at least 2 classes, or classes must name them"
            )
        self.classes_ = classes
        self.gamma_ = default_gamma(self.gamma, X, kernel=self.kernel)
        self.mistakes_ = 0
        self.n_seen_ = 0
        self.n_epochs_ = 0
        self._state = self._empty(X, seed_of(getattr(self, "random_state", 0)))

    def _pass(self, X: Any, labels: NDArray[np.int64]) -> None:
        self._piece(X, labels)
        self.n_epochs_ += 1

    def _piece(self, X: Any, labels: NDArray[np.int64]) -> None:
        self._check_domain(X)
        rows, done = self._as_stream(X), 0
        wrong: list[NDArray[np.int64]] = []
        while done < labels.size or not wrong:
            rest = slice(done, done + self._rows_that_fit(rows[done:]))
            self._learn(rows[rest], labels[rest])
            wrong.append(self.mistake_indices_)
            done = rest.stop
        self.mistake_indices_ = np.concatenate(wrong)

    estimate_memory: ClassVar[Callable[..., MemoryEstimate]] = memory_method

    def _memory(self, rows: Any, y: Any) -> MemoryEstimate:
        self._check_parameters()
        classes = 2 if y is None else np.unique(np.asarray(y)).size
        return MemoryEstimate.of(self._bytes(rows, 1 if classes == 2 else int(classes)))

    def _bytes(self, X: Any, outputs: int) -> int:
        """Returns the maximum memory of `fit` in addition to the samples."""
        raise NotImplementedError

    def _rows_that_fit(self, X: Any) -> int:
        """Returns how many of the remaining rows fit into the memory."""
        raise NotImplementedError

    def _empty(self, X: Any, seed: int) -> dict[str, Any]:
        """Returns the initial state."""
        raise NotImplementedError

    def _learn(self, X: Any, labels: NDArray[np.int64]) -> None:
        """Learns from rows in the stream's layout, all or none."""
        raise NotImplementedError

    def _take(self, state: dict[str, Any]) -> None:
        """Sets the state and the attributes that depend on it."""
        raise NotImplementedError

    def _check_state(self, state: dict[str, Any]) -> None:
        """Checks a state from a file, as far as the extension module does not."""
        raise NotImplementedError

    def _after_load(self) -> None:
        classes, state = self.classes_, self._state
        if classes.ndim != 1 or classes.size < 2 or np.unique(classes).size != classes.size:
            raise ValueError("classes_ are not at least two distinct labels")
        if min(self.n_seen_, self.mistakes_, self.n_epochs_) < 0:
            raise ValueError("n_seen_, mistakes_ and n_epochs_ are not three counts")
        rows = rows_of(state["rows"])
        # Checks the rows and the parameters of the kernel.
        check_columns(
            self, KernelExpansion(rows, np.zeros((rows.shape[0], 1)), np.zeros(1), *self._kernel_spec)
        )
        if self.kernel == "chi2":
            check_non_negative(rows, "a model file")
        self._check_parameters()
        check_state(state, self._empty(rows, 0))
        self._check_state(state)
        self._take(state)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._outputs_of(validated(self, X, reset=False))

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        """Returns the outputs (n, q) of the current model."""
        raise NotImplementedError

    @property
    def _kernel_spec(self) -> tuple[str, float, float, int]:
        return (self.kernel, self.gamma_, float(self.coef0), int(self.degree))

    @property
    def _n_outputs(self) -> int:
        return 1 if self.classes_.size == 2 else int(self.classes_.size)

    @staticmethod
    def _no_rows(X: Any) -> CoreRows:
        """Returns an empty matrix in the layout of the stream of X; uint8 becomes single precision."""
        kind = np.float64 if X.dtype == np.float64 else np.float32
        if sp.issparse(X):
            index = np.zeros(0, dtype=np.int64)
            return (np.zeros(0, dtype=kind), index, np.zeros(1, dtype=np.int64), (0, int(X.shape[1])))
        return np.zeros((0, X.shape[1]), dtype=kind)

    def _as_stream(self, X: Any) -> Any:
        """Converts rows to the layout and the precision of the stream."""
        stream = rows_of(self._state["rows"])
        rows = in_layout_of(stream, X)
        return rows if rows.dtype in (stream.dtype, np.uint8) else rows.astype(stream.dtype)

    @property
    @consistent
    def cumulative_error_(self) -> float:
        """Share of mistakes among the samples seen, the *prequential* error.

        Each sample is predicted before it is learned from, so this is an error on new samples, without
        held-out samples.
        """
        check_is_fitted(self)
        return self.mistakes_ / max(1, self.n_seen_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")
