"""Perceptron trees: different vectors in different parts of the space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.atomic import consistent
from svmarrow._support.parameters import (
    RANDOM_STATE,
    ROW_KERNELS,
    Rule,
    boolean,
    check,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
    seed_of,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import as_rows, core_rows, rows_of, threads, validated
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.models.classifier import ExpansionClassifier, n_outputs
from svmarrow.online._memory import Rows, TreeSizes, rows_that_fit
from svmarrow.online._ready import Ready
from svmarrow.online._stream import STREAM_RULES, StreamClassifier

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.decoding import Decoding

__all__ = ["PerceptronTreeClassifier"]

#: The split strategies by the paper's names.
SPLITS = (
    "wpq",
    "zpq",
    *(f"{part}-{chosen}" for part in ("rndw", "bal", "ent") for chosen in ("rnds", "inds", "opts")),
)
_TREE_RULES: dict[str, Rule] = {
    "budget": integer(least=1, most=2**31 - 1),
    "split": one_of(*SPLITS),
    "sample_size": integer(least=2, most=2**31 - 1),
    "draws": integer(least=1, most=2**31 - 1),
    "random_state": RANDOM_STATE,
}


class PerceptronTreeClassifier(StreamClassifier):
    """A tree whose leaves are kernel perceptrons over few vectors each.

    An inner node sends a row left or right; the leaf that it reaches answers with at most `budget` kernel
    values, however many vectors the tree has. A leaf that a mistake brings above its budget is split: a
    branching rule is found that divides the rows it has seen in halves, and each side begins with those of
    the leaf's vectors that keep its answers best.

    Parameters
    ----------
    budget : int, default=100
        B: most vectors of a leaf.
    split : str, default="wpq"
        How a leaf is split, by the paper's names. Two are named after the unknowns that they find together,
        so that both sides answer like the leaf before: p and q, the vectors of the two sides, and "wpq" the
        normal w of a hyperplane that divides the rows, "zpq" the side z of each row, which new rows learn
        from their nearest neighbour. The others divide first and select then, as in "bal-opts". Partitions:
        "rndw", by a random hyperplane; "bal", by the kernel values of one vector, that of the best split;
        "ent", of the vector with the purest side (least entropy of the labels). Selections: "rnds", random
        vectors; "inds", the vectors that the rule sends to a side (of too many, the newest); "opts", those
        that keep the answers best.
    child_budget : int or None, default=None
        C: most vectors that a side begins with; None is half of `budget`. At most `budget`.
    max_leaves : int or None, default=None
        Most leaves; None is no limit. Where there are so many, a leaf whose budget is spent takes up no new
        vectors (with 1 the tree is one perceptron of the policy "stop").
    prediction : {"last", "averaged"}, default="last"
        Who answers at prediction: the last hypothesis of the row's leaf, as in the paper; or the average of
        all hypotheses that the leaf had since it began, each weighted by the rows that it saw. What is learnt
        is the same, and so are `mistakes_`, which the last hypotheses make. Averages are worth a try where
        rows are noisy: on a9a they took the error on test rows from 0.211 to 0.171. A leaf that has learnt
        nothing yet answers by what it began with.
    sample_size : int, default=512
        Rows that a leaf remembers for its split: a uniform sample of those it has seen.
    draws : int, default=100
        Draws when a fractional selection is rounded; the best is kept.
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2"}, default="rbf"
        The kernel; "precomputed" is not among them, since a stream has no fixed rows to refer to.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient. "auto" is 1 / n_features. "scale" is 1 / (n_features * X.var()) of the first
        piece, so that the model depends on where the stream was cut.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    n_epochs : int, default=1
        Passes of `fit` over its rows; `partial_fit` makes one.
    random_state : int, RandomState instance or None, default=None
        Seed of samples and draws; None draws one.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. `fit` uses them for the "bal" partitions alone.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    mistakes_ : int
        Rows that were answered wrongly, or with a score of exactly 0, before they were learnt from.
    cumulative_error_ : float
        `mistakes_` / `n_seen_`.
    mistake_rows_ : ndarray of int64
        Where along the stream the mistakes of the last piece (of `partial_fit`, or pass of `fit`) were.
    n_seen_ : int
        Rows seen.
    n_epochs_ : int
        Passes over its rows that `fit` completed; 0 where `partial_fit` alone taught.
    n_leaves_ : int
        Leaves of the tree.
    n_vectors_ : int
        Distinct vectors of all leaves.
    gamma_ : float
        Kernel coefficient in use.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Notes
    -----
    Ukkonen and Arias, Example-dependent basis vector selection for kernel-based classifiers, 2010. All
    outputs of a multiclass tree share partitions and vectors: costs are summed over the outputs. A mistake on
    a row that is a vector of its leaf already adds to that vector's coefficients, and rows that the tree
    remembers are stored once. A leaf whose rows no rule divides stays a leaf and keeps its best
    `child_budget` vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import PerceptronTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> tree = PerceptronTreeClassifier(budget=50, gamma=0.001, random_state=0).fit(X, y)
    >>> int(tree.kernel_values(X).max()) <= 50
    True
    """

    n_leaves_: int
    n_vectors_: int
    _ready: Ready
    _made_anew = ("_ready",)
    _coding: Decoding
    _rules: ClassVar[dict[str, Rule]] = {
        **_TREE_RULES,
        "child_budget": either(none, integer(least=1)),
        "max_leaves": either(none, integer(least=1, most=2**31 - 1)),
        "prediction": one_of("last", "averaged"),
        **STREAM_RULES,
    }
    mistake_rows_: NDArray[np.int64]
    n_seen_: int
    mistakes_: int

    def __init__(
        self,
        *,
        budget: int = 100,
        split: str = "wpq",
        child_budget: int | None = None,
        max_leaves: int | None = None,
        prediction: Literal["last", "averaged"] = "last",
        sample_size: int = 512,
        draws: int = 100,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        coef0: float = 0.0,
        degree: int = 3,
        n_epochs: int = 1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.budget = budget
        self.split = split
        self.child_budget = child_budget
        self.max_leaves = max_leaves
        self.prediction = prediction
        self.sample_size = sample_size
        self.draws = draws
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _empty(self, X: Any, seed: int) -> dict[str, Any]:
        self._coding = "binary" if self.classes_.size == 2 else "ovr"
        return _core.perceptron_tree(self._no_rows(X), self._n_outputs, seed)

    def _learn(self, X: Any, labels: NDArray[np.int64]) -> None:
        if self._coding == "ovo":
            raise ValueError(
                "this tree was made of one-vs-one machines and cannot learn: only trees with one output, or "
                "one a class, can"
            )
        child_budget = self._children()
        settings = {
            "n_classes": int(self.classes_.size),
            "kernel": self._kernel_spec,
            "split": self.split,
            "budget": int(self.budget),
            "child_budget": int(child_budget),
            "sample_size": int(self.sample_size),
            "draws": int(self.draws),
            "max_leaves": 2**62 if self.max_leaves is None else int(self.max_leaves),
        }
        n_jobs = threads(self.n_jobs) if self.split.startswith("bal") else 1
        with progress(self.verbose) as told:
            state, wrong = _core.perceptron_tree_stream(
                core_rows(X), labels, settings, self._state, n_jobs, told.callback
            )
        self.mistake_rows_ = wrong + self.n_seen_
        self._take(state)

    def _children(self) -> int:
        """Most vectors that a side of a split begins with."""
        return max(1, int(self.budget) // 2) if self.child_budget is None else int(self.child_budget)

    def _bytes(self, X: Any, outputs: int) -> int:
        return self._sizes(X, outputs).whole(int(X.shape[0]), self.n_epochs)

    def _rows_that_fit(self, X: Any) -> int:
        state, n, sizes = self._state, int(X.shape[0]), self._sizes(X, self._n_outputs)
        known = (int(rows_of(state["rows"]).shape[0]), int((state["kinds"] == 0).sum()))
        return rows_that_fit(
            type(self).__name__, n, lambda count: sizes.piece(known, count, known[0] + count)
        )

    def _sizes(self, X: Any, outputs: int) -> TreeSizes:
        leaves = None if self.max_leaves is None else int(self.max_leaves)
        own = (int(self.budget), self._children(), int(self.sample_size), leaves, self.split)
        return TreeSizes(Rows(X), outputs, *own)

    def _after_load(self) -> None:
        coding = self._coding  # An empty state takes one of its own.
        known = self._state.keys()
        if known >= {"weights", "leaf_seen"} and not known & {"early", "lived"}:
            # A file of before there were averages: they begin with the next row.
            self._state["early"] = np.zeros_like(self._state["weights"])
            self._state["lived"] = np.zeros_like(self._state["leaf_seen"])
        super()._after_load()
        self._coding = coding

    def _check_state(self, state: dict[str, Any]) -> None:
        coding = self._coding
        if coding not in ("binary", "ovo", "ovr") or (coding == "binary") != (self.classes_.size == 2):
            raise ValueError(f"coding is {coding!r}, which does not fit {self.classes_.size} classes")
        outputs = n_outputs(coding, self.classes_.size)
        if state["intercepts"].shape[1] != outputs:
            raise ValueError(f"the tree has {state['intercepts'].shape[1]} outputs, expected {outputs}")
        if state["sample_labels"].size and state["sample_labels"].max() >= self.classes_.size:
            raise ValueError("the samples of the tree have classes that are not there")
        if state["counters"] != (self.n_seen_, self.mistakes_):
            raise ValueError("the tree has seen another number of rows")
        # The core checks all that is left: lengths, ways and members.
        _core.PerceptronTree(self._kernel_spec, state, False)

    def _take(self, state: dict[str, Any]) -> None:
        self._state = state
        self._ready = Ready(self._kernel_spec, state, self.prediction == "averaged")
        self.n_seen_, self.mistakes_ = state["counters"]
        leaves = np.flatnonzero(state["kinds"] == 0)
        self.n_leaves_ = leaves.size
        of_leaf = np.repeat(state["kinds"] == 0, np.diff(state["starts"]))
        self.n_vectors_ = np.unique(state["members"][of_leaf]).size

    @property
    def _decoding(self) -> Decoding:
        return self._coding

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        return self._ready.tree.decision(core_rows(self._as_stream(rows)), threads(self.n_jobs))

    @consistent
    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """The leaf of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features_in_)
            Rows.

        Returns
        -------
        ndarray of int64 of shape (n,)
            Indices of nodes, as `leaf_expansion` takes them.
        """
        return self._routes(X)[:, 0]

    @consistent
    def kernel_values(self, X: ArrayLike) -> NDArray[np.int64]:
        """How many kernel values the answer for each row costs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features_in_)
            Rows.

        Returns
        -------
        ndarray of int64 of shape (n,)
            The vectors of the row's leaf, and one for each inner node on its path whose rule is a kernel
            value (the partitions "bal" and "ent"). The distances of "zpq" are not among them.
        """
        return self._routes(X)[:, 2]

    @consistent
    def decision_depth(self, X: ArrayLike) -> NDArray[np.int64]:
        """How many inner nodes are on the path of each row of X, (n,)."""
        return self._routes(X)[:, 1]

    def _routes(self, X: ArrayLike) -> NDArray[np.int64]:
        check_is_fitted(self)
        rows = self._as_stream(validated(self, X, reset=False))
        return self._ready.tree.routes(core_rows(rows), threads(self.n_jobs))

    @consistent
    def leaf_expansion(self, leaf: int) -> KernelExpansion:
        """The local expansion of a leaf.

        Parameters
        ----------
        leaf : int
            Index of its node, as `apply` gives it.

        Returns
        -------
        KernelExpansion
            The functions of the leaf, as it answers: see `prediction`.

        Raises
        ------
        ValueError
            If there is no such leaf.
        """
        state = self._state
        if not 0 <= leaf < state["kinds"].size or state["kinds"][leaf] != 0:
            raise ValueError(
                f"leaf={leaf!r} is not allowed: it must be the index of a leaf, as apply gives it"
            )
        members = slice(state["starts"][leaf], state["starts"][leaf + 1])
        return KernelExpansion(
            rows_of(state["rows"])[state["members"][members]],
            self._ready.coefficients(leaf),
            state["intercepts"][leaf],
            *self._kernel_spec,
        )

    @classmethod
    def from_expansion(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        budget: int = 100,
        split: str = "wpq",
        refit: bool = True,
        alpha: float = 0.0,
        sample_size: int = 512,
        draws: int = 100,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> Self:
        """Turn a fitted kernel classifier into a tree of local expansions.

        Nodes above the budget are split where the rows are, each side keeping at most half of the vectors,
        until all are within it. With `refit` each leaf then chooses among all vectors those that explain the
        outputs of the whole model best on the rows that reach it, and fits their coefficients to them.

        Parameters
        ----------
        model : object
            A fitted classifier of svmarrow or scikit-learn that is a kernel expansion, as `svmarrow.compress`
            takes it, with at most 16,384 vectors. All its outputs share partitions and vectors.
        X : {array-like, sparse matrix} of shape (n, d)
            Rows like those that will be predicted, the training rows for example.
        budget : int, default=100
            Most vectors of a leaf.
        split : str, default="wpq"
            As in the class.
        refit : bool, default=True
            Whether to fit each leaf by least squares; else the vectors are those that the splits kept, with
            the coefficients of the model.
        alpha : float, default=0.0
            Weight of the squared norm of a leaf's expansion in its fit, for each row.
        sample_size : int, default=512
            Rows on which a node is split.
        draws : int, default=100
            As in the class.
        random_state : int, RandomState instance or None, default=None
            As in the class.
        n_jobs : int or None, default=None
            Threads.
        verbose : bool or int, default=False
            Whether to show the progress on stderr.

        Returns
        -------
        PerceptronTreeClassifier
            Fitted. It can learn on by `partial_fit`, unless the model has one-vs-one machines.

        Raises
        ------
        TypeError
            If the model is not a kernel expansion with labels.
        ValueError
            For parameters outside their rules, rows that do not fit the model, too many vectors, a
            precomputed kernel.
        """
        given: dict[str, Any] = {
            "budget": budget,
            "split": split,
            "sample_size": sample_size,
            "draws": draws,
            "random_state": random_state,
        }
        rules = {**_TREE_RULES, "refit": boolean, "alpha": real(least=0.0)}
        check({**given, "refit": refit, "alpha": alpha}, rules)
        source = as_expansion(model)
        if not isinstance(source, ExpansionClassifier):
            raise TypeError("model is an expansion without labels: wrap it in an ExpansionClassifier")
        if source.decoding == "code" or source.preparation:
            raise ValueError("a tree has no place for codes (decoding='code'), nor for steps of a pipeline")
        f = source.expansion_
        if callable(f.kernel) or f.kernel not in ROW_KERNELS:
            raise refuse("kernel", f.kernel, "computed from rows by svmarrow, for a tree of it")
        rows = _like(as_rows(X), f.vectors)
        labels = source.decode(f._evaluate(rows, n_jobs)).astype(np.int64)
        tree = cls(
            **given,
            kernel=f.kernel,
            gamma=f.gamma,
            coef0=f.coef0,
            degree=f.degree,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        expansion = (core_rows(f.vectors), f.coefficients, f.intercepts, f.kernel_spec)
        settings = {
            "n_classes": len(source.classes_),
            "split": split,
            "budget": int(budget),
            "sample_size": int(sample_size),
            "draws": int(draws),
            "alpha": float(alpha) if refit else None,
            "seed": seed_of(random_state),
        }
        with progress(verbose) as told:
            state = _core.perceptron_tree_of(
                expansion, core_rows(rows), labels, settings, threads(n_jobs), told.callback
            )
        tree.classes_ = source.classes_
        tree.gamma_ = f.gamma
        tree.n_features_in_ = int(f.vectors.shape[1])
        if source.feature_names is not None:
            tree.feature_names_in_ = source.feature_names_in_
        tree._coding = source.decoding
        tree.n_epochs_ = 0
        tree.mistake_rows_ = np.zeros(0, dtype=np.int64)
        tree._take(state)
        return tree


def _like(X: Any, vectors: Any) -> Any:
    """Rows in the layout of the vectors."""
    if sp.issparse(vectors):
        return X if sp.issparse(X) else sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X
