"""Perceptron trees: different vectors in different parts of the space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.parameters import (
    RANDOM_STATE,
    ROW_KERNELS,
    Rule,
    boolean,
    check,
    consistent,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
    seed_of,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import as_rows, core_rows, in_layout_of, rows_of, threads, validated
from svmarrow.expansion.composites import leaf_members
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.models.expansion_models import ExpansionClassifier, n_outputs
from svmarrow.models.outputs import UnavailableMethod
from svmarrow.online._stream import STREAM_RULES, Rows, StreamClassifier, TreeSizes, rows_that_fit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from svmarrow._support.parameters import Decoding


__all__ = [
    "PackedTree",
    "PerceptronTreeClassifier",
]


# --- A fitted tree, packed for prediction ---


class PackedTree:
    """A tree that is packed at its first prediction; only its arrays are pickled.

    With `averaged` leaves predict by the average of their hypotheses.
    """

    __slots__ = ("averaged", "kernel", "state", "tree_")

    def __init__(
        self, kernel: tuple[str, float, float, int], state: dict[str, Any], averaged: bool = False
    ) -> None:
        self.kernel: tuple[str, float, float, int] = kernel
        self.state: dict[str, Any] = state
        self.averaged: bool = averaged
        self.tree_: _core.PerceptronTree | None = None

    @property
    def tree(self) -> _core.PerceptronTree:
        """The tree, packed at the first call."""
        tree = self.tree_
        if tree is None:
            tree = _core.PerceptronTree(self.kernel, self.state, self.averaged)
            self.tree_ = tree
        return tree

    def coefficients(self, leaf: int) -> NDArray[np.float64]:
        """Returns the coefficients with which a leaf predicts, (n_vectors, q)."""
        state, members = self.state, leaf_members(self.state, leaf)
        last: NDArray[np.float64] = state["weights"][members]
        if not self.averaged or state["age"][leaf] == 0:
            return last
        return np.asarray(last - state["accumulator"][members] / state["age"][leaf])

    def __getstate__(self) -> tuple[Any, ...]:
        return self.kernel, self.state, self.averaged

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]


#: The split strategies by the paper's names.
SPLITS = (
    "wpq",
    "zpq",
    *(f"{part}-{chosen}" for part in ("pls", "rndw", "bal", "ent") for chosen in ("rnds", "inds", "opts")),
)
_TREE_RULES: dict[str, Rule] = {
    "budget": integer(least=1, most=2**31 - 1),
    "split": one_of(*SPLITS),
    "sample_size": integer(least=2, most=2**31 - 1),
    "n_draws": integer(least=1, most=2**31 - 1),
    "random_state": RANDOM_STATE,
}


_PROBABILITIES = "use CalibratedClassifierCV({kind}(...), ensemble=False) of sklearn.calibration"


class PerceptronTreeClassifier(StreamClassifier, schema="perceptron-tree/1"):
    """A tree whose leaves are kernel perceptrons over few vectors each.

    A sample passes from the root to a leaf, which predicts with at most `budget` kernel values, whatever the
    number of vectors of the tree. A leaf that exceeds its budget after a mistake is split: a branching rule
    divides the samples that it has seen in halves, and each side starts with those of the leaf's vectors that
    preserve its outputs best.

    Parameters
    ----------
    budget : int, default=100
        Maximum number of vectors of a leaf (B).
    split : str, default="wpq"
        The split strategy; all but "pls" are the paper's. Two optimize partition and selection together, so
        that both sides preserve the outputs of the leaf: "wpq" finds the normal w of a hyperplane, "zpq" the
        side z of each sample, which new samples take from their nearest neighbor; p and q are the vectors of
        the two sides. The others combine a partition and a selection, as in "bal-opts". Partitions: "pls", by
        a hyperplane normal to the direction along which the samples explain the outputs best (the first one
        of partial least squares); "rndw", by a random hyperplane; "bal", by the kernel values of the vector
        with the most balanced split; "ent", of the vector with the purest side (minimum entropy of the
        labels). Selections: "rnds", random vectors; "inds", the vectors on the same side (the newest if there
        are too many); "opts", those that preserve the outputs best.
    child_budget : int or None, default=None
        Maximum number of initial vectors of a side (C), at most `budget`; None is half of `budget`.
    max_leaves : int or None, default=None
        Maximum number of leaves; None is no limit. When it is reached, a full leaf adds no more vectors (with
        1 the tree is one perceptron with the policy "stop").
    prediction : {"last", "averaged"}, default="last"
        The hypothesis that predicts: the last one of the leaf, as in the paper; or the average of all
        hypotheses of the leaf, each weighted by the number of samples that it saw. What is learned is the
        same, and so are `mistakes_`, which count those of the last hypotheses. Averages may help with noisy
        labels: on a9a they reduced the test error from 0.211 to 0.171. A new leaf predicts with its initial
        hypothesis.
    sample_size : int, default=512
        Number of samples that a leaf stores for its split, drawn uniformly from those it has seen.
    n_draws : int, default=100
        Number of random roundings of a fractional selection; the best is kept.
    kernel : str, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32" or "matern52";
        `KernelExpansion` has the formulas. "precomputed" is not supported, because a stream has no fixed
        samples to refer to.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient. "auto" is 1 / n_features. "scale" is 1 / (n_features * X.var()) of the first
        batch, so that the model depends on the size of that batch. Matérn kernels have the square roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    n_epochs : int, default=1
        The number of passes of `fit` over its samples; `partial_fit` makes one.
    random_state : int, RandomState instance or None, default=None
        Seed of samples and draws; None draws one.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. The fitted tree does not depend on it.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    mistakes_ : int
        The number of samples that were misclassified, or had a score of exactly 0, before they were learned
        from.
    cumulative_error_ : float
        `mistakes_` / `n_seen_`.
    mistake_indices_ : ndarray of int64
        Positions along the stream of the mistakes of the last batch (of `partial_fit`, or pass of `fit`).
    n_seen_ : int
        The number of samples seen.
    n_epochs_ : int
        The number of passes that `fit` completed; 0 if only `partial_fit` was called.
    n_leaves_ : int
        Number of leaves.
    n_vectors_ : int
        Number of distinct vectors of all leaves.
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
    a sample that is a vector of its leaf changes that vector's coefficients, and stored samples are shared. A
    leaf whose samples no rule divides remains a leaf with its best `child_budget` vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from svmarrow import PerceptronTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> tree = PerceptronTreeClassifier(budget=50, gamma=0.001, random_state=0).fit(X, y)
    >>> int(tree.kernel_values(X).max()) <= 50
    True
    """

    predict_proba: Any = UnavailableMethod(_PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(_PROBABILITIES)
    n_leaves_: int
    n_vectors_: int
    _ready: PackedTree
    _transient = ("_ready", "_weighted", "expansion_")
    _coding: Decoding
    _stored_as: ClassVar[dict[str, str]] = {"_coding": "decoding_"}
    _rules: ClassVar[dict[str, Rule]] = {
        **_TREE_RULES,
        "child_budget": either(none, integer(least=1)),
        "max_leaves": either(none, integer(least=1, most=2**31 - 1)),
        "prediction": one_of("last", "averaged"),
        **STREAM_RULES,
    }
    mistake_indices_: NDArray[np.int64]
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
        n_draws: int = 100,
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
        self.n_draws = n_draws
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
                "this tree was converted from one-vs-one machines and cannot learn: only trees with one "
                "output, or one per class, can"
            )
        child_budget = self._children()
        settings = {
            "n_classes": int(self.classes_.size),
            "kernel": self._kernel_spec,
            "split": self.split,
            "budget": int(self.budget),
            "child_budget": int(child_budget),
            "sample_size": int(self.sample_size),
            "n_draws": int(self.n_draws),
            "max_leaves": 2**62 if self.max_leaves is None else int(self.max_leaves),
        }
        with progress(self.verbose) as reporter:
            state, wrong = _core.perceptron_tree_stream(
                core_rows(X), labels, settings, self._state, threads(self.n_jobs), reporter.callback
            )
        self.mistake_indices_ = wrong + self.n_seen_
        self._take(state)

    def _children(self) -> int:
        """Returns the maximum number of initial vectors of a side of a split."""
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
        settings = (int(self.budget), self._children(), int(self.sample_size), leaves, self.split)
        return TreeSizes(Rows(X), outputs, *settings, threads(self.n_jobs))

    def _after_load(self) -> None:
        coding = self._coding  # creating an empty state changes it
        known = self._state.keys()
        if known >= {"weights", "leaf_seen"} and not known & {"accumulator", "age"}:
            # A file of before there were averages: they begin with the next row.
            self._state["accumulator"] = np.zeros_like(self._state["weights"])
            self._state["age"] = np.zeros_like(self._state["leaf_seen"])
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
            raise ValueError("the samples of the tree have unknown classes")
        if state["counters"] != (self.n_seen_, self.mistakes_):
            raise ValueError("the tree has seen another number of rows")
        # The core checks the rest: lengths, children and members.
        _core.PerceptronTree(self._kernel_spec, state, False)

    def _take(self, state: dict[str, Any]) -> None:
        self._state = state
        self._ready = PackedTree(self._kernel_spec, state, self.prediction == "averaged")
        self.n_seen_, self.mistakes_ = state["counters"]
        leaves = np.flatnonzero(state["kinds"] == 0)
        self.n_leaves_ = leaves.size
        of_leaf = np.repeat(state["kinds"] == 0, np.diff(state["starts"]))
        self.n_vectors_ = np.unique(state["members"][of_leaf]).size

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        return self._ready.tree.decision(core_rows(self._as_stream(rows)), threads(self.n_jobs))

    @consistent
    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Find the leaf of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of int64 of shape (n_samples,)
            Indices of nodes, as `leaf_expansion` takes them.
        """
        return self._routes(X)[:, 0]

    @consistent
    def kernel_values(self, X: ArrayLike) -> NDArray[np.int64]:
        """Count the kernel values of each prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of int64 of shape (n_samples,)
            The number of vectors of the leaf, plus one for each inner node on the path whose rule is a kernel
            value (the partitions "bal" and "ent"). The distances of "zpq" are not counted.
        """
        return self._routes(X)[:, 2]

    @consistent
    def decision_depth(self, X: ArrayLike) -> NDArray[np.int64]:
        """Count the inner nodes on the path of each sample of X; returns shape (n_samples,)."""
        return self._routes(X)[:, 1]

    def _routes(self, X: ArrayLike) -> NDArray[np.int64]:
        check_is_fitted(self)
        rows = self._as_stream(validated(self, X, reset=False))
        return self._ready.tree.routes(core_rows(rows), threads(self.n_jobs))

    @consistent
    def leaf_expansion(self, leaf: int) -> KernelExpansion:
        """Get the local expansion of a leaf.

        Parameters
        ----------
        leaf : int
            Index of its node, as `apply` returns it.

        Returns
        -------
        KernelExpansion
            The functions with which the leaf predicts, see `prediction`.

        Raises
        ------
        ValueError
            If the index is not a leaf.
        """
        state = self._state
        members = leaf_members(state, leaf)
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
        split: str = "pls-opts",
        refit: bool = True,
        alpha: float = 0.0,
        sample_size: int = 512,
        n_draws: int = 100,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> Self:
        """Turn a fitted kernel classifier into a tree of local expansions.

        Nodes above the budget are split, each side keeping at most half of the vectors, until all are within
        it. With `refit` each leaf then selects the vectors that approximate the outputs of the whole model
        best on the samples that reach it, and fits their coefficients. Where these samples are few, those of
        neighboring leaves that are close to the hyperplane are added.

        Parameters
        ----------
        model : object
            A fitted classifier of svmarrow or scikit-learn that is a kernel expansion, as `svmarrow.compress`
            takes it, with at most 16,384 vectors if the split needs them. All its outputs share partitions
            and vectors.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples like those that will be predicted, such as the training samples.
        budget : int, default=100
            Maximum number of vectors of a leaf.
        split : str, default="pls-opts"
            As in the class. With `refit` the partitions "pls" and "rndw" ignore the selection, since each
            leaf selects its own vectors, and take a small part of the time of the others.
        refit : bool, default=True
            Whether to fit each leaf by least squares; else its vectors keep the coefficients of the model.
        alpha : float, default=0.0
            Weight of the squared norm of a leaf's expansion in its fit, per sample.
        sample_size : int, default=512
            Number of samples on which a node is split.
        n_draws : int, default=100
            As in the class.
        random_state : int, RandomState instance or None, default=None
            As in the class.
        n_jobs : int or None, default=None
            Number of threads.
        verbose : bool or int, default=False
            Whether to show the progress on stderr.

        Returns
        -------
        PerceptronTreeClassifier
            The fitted tree. It can be updated by `partial_fit`, unless the model has one-vs-one machines.

        Raises
        ------
        TypeError
            If the model is not a kernel expansion with labels.
        ValueError
            If a parameter is outside its range, X does not fit the model, there are too many vectors, or the
            kernel is precomputed.
        """
        given: dict[str, Any] = {
            "budget": budget,
            "split": split,
            "sample_size": sample_size,
            "n_draws": n_draws,
            "random_state": random_state,
        }
        rules = {**_TREE_RULES, "refit": boolean, "alpha": real(least=0.0)}
        check({**given, "refit": refit, "alpha": alpha}, rules)
        source = as_expansion(model)
        if not isinstance(source, ExpansionClassifier):
            raise TypeError("model is an expansion without labels: wrap it in an ExpansionClassifier")
        if source.decoding == "code" or source.preparation:
            raise ValueError("trees do not support codes (decoding='code') or steps of a pipeline")
        if source.predict_by != "scores" or (source.break_ties and len(source.classes_) > 2):
            raise ValueError(
                "trees predict by the votes of their machines: a model with predict_by='probabilities' or "
                "break_ties=True has no tree; model.with_predict_by('scores') has one"
            )
        f = source.expansion_
        if callable(f.kernel) or f.kernel not in ROW_KERNELS:
            raise refuse("kernel", f.kernel, "computed from rows by svmarrow, for a tree of it")
        rows = in_layout_of(f.vectors, as_rows(X))
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
            "keeps_samples": True,
            "n_draws": int(n_draws),
            "alpha": float(alpha) if refit else None,
            "seed": seed_of(random_state),
        }
        with progress(verbose) as reporter:
            state = _core.perceptron_tree_of(
                expansion, core_rows(rows), labels, settings, threads(n_jobs), reporter.callback
            )
        tree.classes_ = source.classes_
        tree.gamma_ = f.gamma
        tree.n_features_in_ = int(f.vectors.shape[1])
        if source.feature_names is not None:
            tree.feature_names_in_ = source.feature_names_in_
        tree._coding = source.decoding
        tree.n_epochs_ = 0
        tree.mistake_indices_ = np.zeros(0, dtype=np.int64)
        tree._take(state)
        return tree
