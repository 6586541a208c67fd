"""The kernel perceptron, and the policies that limit the number of its vectors.

Every mistake adds a sample to the expansion. A policy limits the expansion in one of two ways: a budget on
the number of vectors decides what happens when a mistake finds the budget spent, or a sample that is close
to the span of the vectors is projected onto them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from svmarrow import _core
from svmarrow._support.parameters import (
    RANDOM_STATE,
    Rule,
    consistent,
    either,
    integer,
    none,
    one_of,
    real,
    refuse,
)
from svmarrow._support.progress import progress
from svmarrow._support.rows import core_rows, rows_of, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.online._stream import STREAM_RULES, Rows, StreamClassifier, bytes_of_pool, rows_that_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.models.expansion_models import ExpansionClassifier

__all__ = ["KernelPerceptron"]

#: The maximum number of vectors without a budget: more than any memory holds.
_UNLIMITED = 2**62
#: Policies that decide what happens when a mistake finds the budget spent.
_BUDGET_POLICIES = ("stop", "oldest", "margin", "random", "tightest", "forgetron")
#: Policies that project samples onto the span of the vectors.
_PROJECTIONS = ("projectron", "projectron++")


class KernelPerceptron(StreamClassifier, schema="kernel-perceptron/1"):
    """A kernel perceptron, with or without a limit on the number of its vectors.

    Each sample is predicted and then learned from if the prediction was wrong. Without a limit every mistake
    becomes a vector, and a prediction costs one kernel value for each vector.

    Parameters
    ----------
    policy : {"unlimited", "stop", "oldest", "margin", "random", "tightest", "forgetron", "projectron", \
            "projectron++"}, default="unlimited"
        How the number of vectors is limited.

        * "unlimited": every mistake becomes a vector.
        * "stop": when the budget is spent, nothing more is learned (Stoptron).
        * "oldest", "margin", "random", "tightest": when the budget is spent, a mistake replaces a vector:
          the oldest; the one that is classified with the largest margin without itself; a random one; the
          one without which the fewest vectors of the expansion are misclassified.
        * "forgetron": when the budget is spent, all coefficients shrink and the oldest vector is removed.
        * "projectron": a mistake within the distance `eta` of the span of the vectors is projected onto
          them and adds no vector.
        * "projectron++": the same, and samples that are classified correctly with a margin below 1 are
          learned from by projection.
    budget : int or None, default=None
        The maximum number of vectors, at least 1: required by "stop", "oldest", "margin", "random",
        "tightest" and "forgetron", not allowed with the others. During a stream it may grow but not fall
        below the number of vectors.
    eta : float, default=0.1
        The maximum distance, in feature space, at which "projectron" (at least 0) and "projectron++"
        (positive) project a sample; ignored by the other policies. The larger, the fewer vectors.
    prediction : {"last", "averaged", "voted"}, default="last"
        The hypothesis that predicts: the last one; the average of all hypotheses of the stream, each
        weighted by the number of samples that it saw; or the votes of all of them, with the same weights.
        "averaged" and "voted" need ``policy="unlimited"``. What is learned is the same.
    kernel : str, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "matern12", "matern32" or "matern52";
        `KernelExpansion` has the formulas. "precomputed" is not supported, because a stream has no fixed
        samples to refer to.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient. "scale" is 1 / (n_features * X.var()) of the first batch, so that the model
        depends on the size of that batch. "auto" is 1 / n_features. Matérn kernels have the square
        roots.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly"; ignored by the other kernels.
    n_epochs : int, default=1
        The number of passes of `fit` over its samples; `partial_fit` makes one.
    random_state : int, RandomState instance or None, default=None
        Seed of the choices of "random"; None draws one.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``. Learning from a stream uses one.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    expansion_ : KernelExpansion
        The model: its vectors are samples of the stream.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Coefficients of `expansion_`.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the outputs: zeros.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Shares of the features in the squared derivatives of the outputs, times the variances of the features;
        for the kernels "rbf", "matern32", "matern52", "poly" and "linear".
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
    gamma_ : float
        Kernel coefficient in use.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    Notes
    -----
    "unlimited" is algorithm 1 of Ukkonen and Arias (2010); averages and votes are those of Freund and
    Schapire, Machine Learning 37, 1999. With more than two classes a mistake adds the sample to its class and
    subtracts it from the best other one (Crammer and Singer, JMLR 3, 2003). A sample costs one kernel value
    for each vector.

    "stop" is the baseline of Ukkonen and Arias (2010), section 5; mistakes are still counted after it
    stopped. "margin": Crammer, Kandola and Singer, NIPS 16, 2004. "random": Cavallanti, Cesa-Bianchi and
    Gentile, Machine Learning 69, 2007. "tightest": Weston, Bordes and Bottou, AISTATS 2005. A mistake with m
    vectors costs O(m) more kernel values for "margin", and O(m^2) additions and m^2 numbers for "tightest".

    "forgetron": the self-tuned Forgetron of Dekel, Shalev-Shwartz and Singer, SIAM Journal on Computing 37,
    2008. Its bound on the number of mistakes holds for k(x, x) <= 1: the kernels "rbf", "laplacian", "chi2"
    and the Matérn kernels.

    "projectron" and "projectron++": Orabona, Keshet and Caputo, JMLR 10, 2009. Kernel values are computed in
    double precision, and a factor of their matrix is stored: m^2 numbers for m vectors, and O(m^2) work at a
    mistake; for "projectron++" at every sample with a margin below 1. These steps never add a vector and are
    not counted as mistakes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow.online import KernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelPerceptron(gamma=0.5, n_epochs=5).fit(X, y).score(X, y) > 0.9
    True
    >>> model = KernelPerceptron(policy="margin", budget=50, gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.expansion_.n_vectors <= 50, model.score(X, y) > 0.9
    (True, True)
    >>> model = KernelPerceptron(policy="projectron", eta=0.3, gamma=0.5, n_epochs=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "policy": one_of("unlimited", *_BUDGET_POLICIES, *_PROJECTIONS),
        "budget": either(none, integer(least=1, most=_UNLIMITED)),
        "eta": real(least=0.0),
        "prediction": one_of("last", "averaged", "voted"),
        **STREAM_RULES,
        "random_state": RANDOM_STATE,
    }
    mistake_indices_: NDArray[np.int64]
    n_seen_: int
    mistakes_: int
    expansion_: KernelExpansion

    def __init__(
        self,
        *,
        policy: Literal[
            "unlimited",
            "stop",
            "oldest",
            "margin",
            "random",
            "tightest",
            "forgetron",
            "projectron",
            "projectron++",
        ] = "unlimited",
        budget: int | None = None,
        eta: float = 0.1,
        prediction: Literal["last", "averaged", "voted"] = "last",
        kernel: str = "rbf",
        gamma: str | float = "scale",
        coef0: float = 0.0,
        degree: int = 3,
        n_epochs: int = 1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.policy = policy
        self.budget = budget
        self.eta = eta
        self.prediction = prediction
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        has_budget = self.policy in _BUDGET_POLICIES
        if has_budget and self.budget is None:
            raise refuse("budget", None, f"an integer of at least 1 for policy={self.policy!r}")
        if not has_budget and self.budget is not None:
            policies = ", ".join(map(repr, _BUDGET_POLICIES))
            raise refuse("budget", self.budget, f"None for policy={self.policy!r}; {policies} have a budget")
        if self.policy == "projectron++" and self.eta == 0:
            raise refuse("eta", self.eta, "above 0 for policy='projectron++'")
        if self.prediction != "last" and self.policy != "unlimited":
            raise refuse("prediction", self.prediction, f"'last' for policy={self.policy!r}")

    @property
    def _max_vectors(self) -> int:
        return _UNLIMITED if self.budget is None else int(self.budget)

    def _empty(self, X: Any, seed: int) -> dict[str, Any]:
        return {
            "rows": self._no_rows(X),
            "coefficients": np.zeros((0, self._n_outputs)),
            "born": np.zeros(0, dtype=np.int64),
            "matrix": np.zeros((0, 0)),
            "scores": np.zeros((0, self._n_outputs)),
            "deviation": 0.0,
            "random": seed if self.policy == "random" else 0,
        }

    def _learn(self, X: Any, labels: NDArray[np.int64]) -> None:
        settings = {
            "n_classes": int(self.classes_.size),
            "kernel": self._kernel_spec,
            "policy": self.policy,
            "budget": self._max_vectors,
            "eta": float(self.eta),
        }
        before = {**self._state, "counters": (self.n_seen_, self.mistakes_)}
        with progress(self.verbose) as reporter:
            state, wrong = _core.perceptron_stream(core_rows(X), labels, settings, before, reporter.callback)
        self.mistake_indices_ = wrong + self.n_seen_
        self.n_seen_, self.mistakes_ = state.pop("counters")
        self._take(state)

    def _bytes(self, X: Any, outputs: int) -> int:
        n, sizes = int(X.shape[0]), self._sizes(X)
        # A vector is in the span, so that no later pass adds it to a factor again.
        passes = (min(1, self.n_epochs - 1), 1) if sizes.precise else (self.n_epochs - 1, self.n_epochs)
        before, after = (self._max_vectors_after(n * passed) for passed in passes)
        return bytes_of_pool(sizes, before, after, outputs, self.policy)

    def _rows_that_fit(self, X: Any) -> int:
        sizes, known = self._sizes(X), self._state["born"].size

        def needed(count: int) -> int:
            grown = max(known, self._max_vectors_after(known + count))
            return bytes_of_pool(sizes, known, grown, self._n_outputs, self.policy)

        return rows_that_fit(type(self).__name__, int(X.shape[0]), needed)

    def _max_vectors_after(self, mistakes: int) -> int:
        return min(mistakes, self._max_vectors)

    def _sizes(self, X: Any) -> Rows:
        # A factor needs kernel values in double precision.
        return Rows(X, precise=self.policy in _PROJECTIONS)

    def _after_load(self) -> None:
        stored = self.expansion_
        super()._after_load()
        if stored != self.expansion_:
            raise ValueError("expansion_ differs from the state")

    def _check_state(self, state: dict[str, Any]) -> None:
        m, q = state["coefficients"].shape
        scores = self.policy in ("margin", "tightest")
        matrix = self.policy in ("tightest", *_PROJECTIONS)
        shapes = {
            "coefficients": (m, self._n_outputs),
            "born": (m,),
            "scores": (m if scores else 0, q),
            "matrix": (m, m) if matrix else (0, 0),
        }
        for key, shape in shapes.items():
            if state[key].shape != shape:
                raise ValueError(f"array {key!r} has shape {state[key].shape}, expected {shape}")
        if state["born"].size and state["born"].max() >= self.n_seen_:
            raise ValueError("array 'born' has rows that were never seen")

    def _take(self, state: dict[str, Any]) -> None:
        self._state = state
        self.expansion_ = KernelExpansion(
            rows_of(self._state["rows"]),
            self._coefficients(),
            np.zeros(self._n_outputs),
            *self._kernel_spec,
        )

    def _coefficients(self) -> NDArray[np.float64]:
        coefficients: NDArray[np.float64] = self._state["coefficients"]
        if self.prediction != "averaged":
            return coefficients
        ages = (self.n_seen_ - self._state["born"]) / max(1, self.n_seen_)
        averaged: NDArray[np.float64] = coefficients * ages[:, None]
        return averaged

    def _outputs_of(self, rows: Any) -> NDArray[np.float64]:
        if self.prediction != "voted":
            return self.expansion_._evaluate(rows, self.n_jobs)
        f = self.expansion_
        expansion = (core_rows(f.vectors), f.coefficients, f.intercepts, f.kernel_spec)
        born, n_classes = self._state["born"], int(self.classes_.size)
        votes = _core.voted(expansion, born, self.n_seen_, n_classes, core_rows(rows), threads(self.n_jobs))
        return votes if self.classes_.size > 2 else votes[:, 1:] - votes[:, :1]

    @consistent
    def as_expansion(self) -> ExpansionClassifier:
        """Get the model as an expansion with labels, as `svmarrow.compress` takes it.

        Returns
        -------
        ExpansionClassifier
            A model with the same predictions.

        Raises
        ------
        TypeError
            If ``prediction="voted"``, since votes are not an expansion.
        """
        if self.prediction == "voted":
            raise TypeError("prediction='voted' is not a kernel expansion: use 'last' or 'averaged'")
        model: ExpansionClassifier = super().as_expansion()
        return model
