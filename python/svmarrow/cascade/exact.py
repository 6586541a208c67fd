"""The base class of the cascades, and `ExactCascade`.

In a cascade a small model answers where that is safe, the full model elsewhere. The small model of an exact
cascade answers where its label is certainly the full model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from svmarrow import _core
from svmarrow._support.bases import ClassifierMixin
from svmarrow._support.parameters import THREADS, Rule, check, consistent, integer, one_of, refuse
from svmarrow._support.rows import core_rows, threads
from svmarrow._support.training import bytes_of_rows
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.outputs import UnavailableMethod
from svmarrow.reduced_set.estimator import ModelWrapper
from svmarrow.reduced_set.path import CompressionPath
from svmarrow.reduced_set.paths import METHODS, RULES, ConstantModelError, bytes_of_work, compression_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.reduced_set.paths import Method

__all__ = ["Cascade", "CascadeReport", "ExactCascade", "Work", "cheapest", "ladder"]


# --- the base class and its report ---


@dataclass(frozen=True)
class CascadeReport:
    """The number of samples that each stage of a cascade answers.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    sizes : tuple of int
        Vectors that have been used when a stage answers, stage after stage; the last is the full model after
        all stages.
    answered : tuple of int
        Samples that each stage answered, the full model last.
    full_size : int
        Vectors of the full model.
    share_small : float
        Fraction of the samples that did not need the full model; 1 for no samples.
    mean_kernel_values : float
        Kernel values a sample, on average; the full model alone needs `full_size`.
    """

    n_samples: int
    sizes: tuple[int, ...]
    answered: tuple[int, ...]
    full_size: int

    @property
    def share_small(self) -> float:
        """Fraction of the samples that did not need the full model."""
        return 1.0 - self.answered[-1] / self.n_samples if self.n_samples else 1.0

    @property
    def mean_kernel_values(self) -> float:
        """Kernel values a sample."""
        total = sum(size * count for size, count in zip(self.sizes, self.answered, strict=True))
        return total / self.n_samples if self.n_samples else 0.0

    def __str__(self) -> str:
        share = f"{100 * self.share_small:.1f} % of {self.n_samples:,} samples answered small"
        return f"{share}, {self.mean_kernel_values:,.0f} of {self.full_size:,} kernel values a sample"


_PROBABILITIES = (
    "its stages agree on labels, and are not calibrated on the samples that each of them answers; use the "
    "full model, cascade.model_.calibrated(X, y), or a small one, compress(model, ...).calibrated(X, y)"
)


class Cascade(ClassifierMixin, ModelWrapper):
    """Base class of the cascades: a full model, `predict` by stages, and the report."""

    predict_proba: Any = UnavailableMethod(_PROBABILITIES)
    predict_log_proba: Any = UnavailableMethod(_PROBABILITIES)
    n_jobs: int | None
    model_: ExpansionClassifier
    _kinds = (ExpansionClassifier,)
    _kind_text = "a classifier"

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, (n_classes,)."""
        check_is_fitted(self, "model_")
        return self.model_.classes_

    def _answers(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Class indices (n,), -1 where the full model has to answer, and the stages (n,) that answered."""
        raise NotImplementedError

    def _sizes(self) -> list[int]:
        """Kernel values of a sample that ends at each stage, the full model last."""
        raise NotImplementedError

    @consistent
    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples; (n_samples, n_train) kernel values for the precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
            Elements of `classes_`.

        Raises
        ------
        ValueError
            If X has NaN, infinities or another number of features.
        """
        check_is_fitted(self, "model_")
        rows = self.model_.validated(X)
        classes, _ = self._answers(rows)
        rest = np.flatnonzero(classes < 0)
        if rest.size:
            left = rows if rest.size == rows.shape[0] else rows[rest]
            outputs = self.model_.expansion_._evaluate(left, self.n_jobs)
            classes[rest] = self.model_.decode(outputs)
        labels: NDArray[Any] = self.classes_[classes]
        return labels

    @consistent
    def route(self, X: ArrayLike) -> NDArray[np.int64]:
        """The stage that answers each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples.

        Returns
        -------
        ndarray of int64 of shape (n_samples,)
            0 for the first stage; the number of stages for the full model.
        """
        check_is_fitted(self, "model_")
        return self._answers(self.model_.validated(X))[1]

    @consistent
    def report(self, X: ArrayLike) -> CascadeReport:
        """The number of samples that each stage answers, and the cost.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples.

        Returns
        -------
        CascadeReport
            Share answered small and mean number of kernel values.
        """
        stages = self.route(X)
        sizes = self._sizes()
        return CascadeReport(
            n_samples=len(stages),
            sizes=tuple(sizes),
            answered=tuple(np.bincount(stages, minlength=len(sizes)).tolist()),
            full_size=self.model_.expansion_.n_vectors,
        )


# --- which stages a cascade should have, by a model of the work ---
# Units are multiply-adds of a kernel value, which are made in register tiles. What the other parts cost in
# them was fitted to the time of 250 stages and eleven full models; ``benches/papers/cascades.py --only work``
# does it again.


#: The full model: an output's coefficient with its share of the exponential, an output, a row.
COEFFICIENT, OUTPUT, ROW = 17.5, 380.0, 3700.0
#: A stage, each row alone: a kernel value beside its features, a multiply-add of the triangular solve, a
#: direction of it, a multiply-add of an output, an output, a feature of the row, the stage itself.
VALUE, SOLVE, DIRECTION, PRODUCT, BOUND, FEATURE, STAGE = 26.0, 3.3, 146.0, 3.1, 450.0, 119.0, 3100.0
#: Stages must be expected to save so much of the full model's work, or there are none.
MIN_SAVING = 0.1


def ladder(most: int) -> list[int]:
    """Sizes a factor of 1.3 to 1.5 apart, whole panels of vectors, up to all."""
    sizes = [16 * step for power in range(26) for step in (2**power, 3 * 2**power // 2) if step]
    return [size for size in sorted(set(sizes)) if size < most] + [most]


class Work(NamedTuple):
    """Multiply-adds a sample, from measured ratios: the time of a cascade beside the full model's."""

    features: float
    outputs: int
    full: float

    @classmethod
    def of(cls, expansion: Any, rows: Any) -> Work:
        """Work of a model on samples like these."""
        vectors = expansion.vectors
        sparse = sp.issparse(vectors)
        features = vectors.nnz / max(1, vectors.shape[0]) if sparse else float(vectors.shape[1])
        used = float(np.count_nonzero(expansion.coefficients))
        full = expansion.n_vectors * features + COEFFICIENT * used + OUTPUT * expansion.n_outputs + ROW
        # The full model takes rows that are not in double precision at twice the speed; stages never do.
        return cls(features, expansion.n_outputs, full if rows.dtype == np.float64 else full / 2.0)

    def step(self, size: tuple[int, int], before: tuple[int, int]) -> float:
        """Work of a stage after another."""
        vectors, directions = size
        return (
            (self.features + VALUE) * (vectors - before[0])
            + SOLVE * (directions**2 - before[1] ** 2) / 2.0
            + DIRECTION * (directions - before[1])
            + self.outputs * (PRODUCT * vectors + directions + BOUND)
            + FEATURE * self.features
            + STAGE
        )


def cheapest(left: NDArray[np.float64], sizes: list[int], work: Work) -> list[tuple[int, int]]:
    """The chain of stages with the least expected work a sample; none where the full model is about as cheap.

    `left[i, j]` is the share of samples that stage (sizes[i] vectors, sizes[j] directions) leaves open.
    Dynamic programming over all pairs, from the last to the first: the least work of what comes after a
    stage.
    """
    nodes = [(i, j) for i in range(len(sizes)) for j in range(i + 1)]
    value: dict[tuple[int, int], float] = {}
    following: dict[tuple[int, int], tuple[int, int] | None] = {}

    def size(node: tuple[int, int]) -> tuple[int, int]:
        return sizes[node[0]], sizes[node[1]]

    def best(share: float, at: tuple[int, int], later: list[tuple[int, int]]) -> tuple[float, Any]:
        goes_on = ((share * work.step(size(node), at) + value[node], node) for node in later)
        return min(((share * work.full, None), *goes_on), key=lambda option: option[0])

    for node in reversed(nodes):
        later = [other for other in nodes if other[0] > node[0] and other[1] >= node[1]]
        value[node], following[node] = best(float(left[node]), size(node), later)
    expected, chosen = best(1.0, (0, 0), nodes)
    if expected > (1.0 - MIN_SAVING) * work.full:
        return []
    stages = []
    while chosen is not None:
        stages.append(size(chosen))
        chosen = following[chosen]
    return stages


#: Rows on which the stages are chosen, at most.
MAX_STAGE_SAMPLES = 1500


def _stages_text(value: object) -> bool:
    if isinstance(value, str):
        return value == "auto"
    if not isinstance(value, (list, tuple, range, np.ndarray)) or (
        isinstance(value, np.ndarray) and value.ndim != 1
    ):
        return False
    return all(
        integer(least=1).holds(stage) or (isinstance(stage, tuple) and len(stage) == 2) for stage in value
    )


STAGES = Rule('"auto", or a sequence of sizes or of pairs (vectors, directions)', _stages_text)


class ExactCascade(Cascade, schema="exact-cascade/1"):
    """A compressed classifier that answers where it is certain of the full model's label.

    It works in *stages*: each computes some more vectors, answers the samples whose label is certain by then,
    and leaves the others to the next; the full model is the last.

    The vectors of a compression path span a subspace, and the compressed model is the projection of the full
    one on it. What is missing is orthogonal to the subspace, so by the Cauchy-Schwarz inequality

        ``|f(x) - f^(x)| <= ||w - w^|| sqrt(k(x, x) - k_s(x)' K_s^-1 k_s(x))``.

    Where this bound, with the rounding errors of all parts, is smaller than what would change the decision,
    the label of the projection is the label of the full model. Samples that are not certain after one stage
    go on to the next with what has been computed so far, and the full model takes those that are left. So
    `predict` gives *the same labels* as the full model, at less cost where the bound is good: for wide
    kernels, few features and smooth boundaries. For narrow kernels nearly all vectors are needed before
    anything is certain, and ``stages="auto"`` then leaves everything to the full model; `CalibratedCascade`
    trades certainty for speed.

    Parameters
    ----------
    estimator : estimator
        What `fit` fits: a classifier of svmarrow, or of scikit-learn if `as_expansion` takes it. For a model
        that is fitted already use `from_path`, or wrap it in scikit-learn's ``FrozenEstimator``.
    n_vectors : int, default=None
        Largest number of vectors of the path. None means all, at most 1000.
    stages : "auto", or sequence of int or of (int, int), default="auto"
        Numbers of vectors after which certain samples leave, increasing; with pairs, the second number says
        with how many of the vectors the distance from the subspace is computed, at most as many as the first
        (its cost grows with the square). "auto" chooses both by a model of the cost on the training samples.
    method : str, default="backfit"
        See `svmarrow.compress`; any but ``"gradient"``, which does not project.
    tol : float, default=1e-5
        End of the path, see `svmarrow.compression_path`.
    n_jobs : int or None, default=None
        Number of threads. None means all cores that this process may use, within the limits of joblib and
        ``OMP_NUM_THREADS``.
    verbose : bool or int, default=False
        Whether to show the progress on stderr.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, after `fit`.
    model_ : ExpansionClassifier
        The full model.
    stages_ : list of (int, int)
        Vectors and directions of each stage; empty where the full model alone costs less.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the features, if X had names that are all strings.

    See Also
    --------
    CalibratedCascade : Bounds the rate of disagreements instead of excluding them.
    svmarrow.compression_path : The path.

    Notes
    -----
    The bound on rounding errors is rigorous for samples in double precision. For float32 and uint8 samples,
    which the full model evaluates in single precision, rounding errors are taken as independent, and more
    than ten standard deviations are allowed for them.

    There is no `predict_proba`. The labels of a stage are those of the full model, its outputs are not. The
    full model answers the samples that no stage could decide, and sigmoids that are calibrated on all samples
    are not calibrated on these. Call ``cascade.model_.calibrated(X, y)`` for probabilities of the full model,
    or ``compress(model, ...).calibrated(X, y)`` for those of a small model.

    Kernels without a feature space (sigmoid, poly with a negative coef0) and precomputed ones are refused.
    Thresholds that are tuned for the compressed model are not used here: the label is the full model's, with
    its own.

    References
    ----------
    .. [1] J. Weston and G. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", technical report
       TR-132, Max Planck Institute for Biological Cybernetics, 2004: the projection.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from svmarrow import SVC, compression_path
    >>> from svmarrow.cascade import ExactCascade
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svc = SVC(C=100, gamma=0.001).fit(X[:400], y[:400])
    >>> cascade = ExactCascade.from_path(compression_path(svc, n_vectors=40, tol=0), stages=[10, 20, 30])
    >>> bool((cascade.predict(X) == svc.predict(X)).all())
    True
    >>> cascade.report(X).share_small > 0.9
    True
    """

    stages_: list[tuple[int, int]]
    _parts: dict[str, Any] | None
    _handle: _core.Cascade | None = None
    _path: dict[str, Any]
    _transient = ("_handle", "_path")
    _stored_as: ClassVar[dict[str, str]] = {"_parts": "parts_"}
    _rules: ClassVar[Mapping[str, Rule]] = {
        "method": one_of(*(name for name in METHODS if name != "gradient")),
        "tol": RULES["tol"],
        "n_vectors": RULES["n_vectors"],
        "stages": STAGES,
        "n_jobs": THREADS,
    }
    model_: ExpansionClassifier

    def __init__(
        self,
        estimator: Any,
        n_vectors: int | None = None,
        *,
        stages: Literal["auto"] | Sequence[int] | Sequence[tuple[int, int]] = "auto",
        method: Method = "backfit",
        tol: float = 1e-5,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_vectors = n_vectors
        self.stages = stages
        self.method = method
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: ArrayLike, y: ArrayLike, metadata: dict[str, Any]) -> None:
        self.model_ = self._fit_full(X, y, metadata)
        most = self.n_vectors and max(1, min(self.n_vectors, self.model_.expansion_.n_vectors))
        options: dict[str, Any] = {"method": self.method, "tol": self.tol}
        try:
            path: Any = compression_path(
                self.model_, n_vectors=most, **options, n_jobs=self.n_jobs, verbose=self.verbose
            )
        except ConstantModelError:
            self._prepare(None, [])
            return
        self._build(path, X)

    def _bytes_after(self, rows: Any, outputs: int) -> int:
        n = int(rows.shape[0])
        size = n if self.n_vectors is None else max(1, min(int(self.n_vectors), n))
        # The path and what the stages keep of it: factor, projections, products with the vectors.
        model_bytes = 8 * size * (2 * size + 4 * outputs) + 2 * bytes_of_rows(rows) * size // max(n, 1)
        return model_bytes + bytes_of_work(outputs, rows, size, None, self.method)

    @classmethod
    def from_path(
        cls,
        path: CompressionPath,
        X: ArrayLike | None = None,
        *,
        stages: Literal["auto"] | Sequence[int] | Sequence[tuple[int, int]] = "auto",
        n_jobs: int | None = None,
    ) -> ExactCascade:
        """Make a cascade of a model that is fitted and compressed.

        Parameters
        ----------
        path : CompressionPath
            What `svmarrow.compression_path` gave for a classifier.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Typical samples, on which ``stages="auto"`` chooses. Without them it takes the model's own
            vectors, which are harder than most samples.
        stages : "auto", or sequence of int or of (int, int), default="auto"
            See the class.
        n_jobs : int, default=None
            Threads.

        Returns
        -------
        ExactCascade
            Ready to predict.

        Raises
        ------
        ValueError
            If the stages do not increase or are not on the path, or the kernel has no feature space.
        TypeError
            If the path is not of a classifier.
        """
        if not isinstance(path, CompressionPath):
            raise TypeError(f"path={path!r} is not allowed: it must be a CompressionPath")
        if not path.orthogonal:
            raise ValueError(
                f"path={path!r} is not allowed: its sizes must be orthogonal projections of the model, which "
                "those of method='gradient' and 'basic' and of criterion='predictions' are not"
            )
        cascade = cls(path.model, len(path), stages=stages, n_jobs=n_jobs)
        check({"stages": stages}, {"stages": STAGES})
        cascade.model_ = cascade._full(path.model)
        cascade._build(path, X)
        return cascade

    def _full(self, model: Any) -> Any:
        full = super()._full(model)
        if full.predict_by != "scores":
            raise ValueError(
                f"a model with predict_by={full.predict_by!r} has no exact cascade, which bounds the votes "
                "of its machines: use CalibratedCascade, or model.with_predict_by('scores')"
            )
        return full

    def _build(self, path: CompressionPath, X: ArrayLike | None) -> None:
        expansion = self.model_.expansion_
        self._path = {
            "kept": path.vectors,
            "factor": path._factor,
            "projections": path._projections,
        }
        self._path["products"], self._path["at_kept"], self._path["masses"] = _core.expansion_moments(
            expansion.core_parts, core_rows(path.vectors), threads(self.n_jobs)
        )
        if not isinstance(self.stages, str):
            self._prepare(self._path, _as_pairs(self.stages))
            return
        sizes = ladder(len(path))
        self._prepare(self._path, [(size, size) for size in sizes])
        rows = expansion.vectors if X is None else self.model_.validated(X)
        if rows.shape[0] > MAX_STAGE_SAMPLES:
            rows = rows[np.linspace(0, rows.shape[0] - 1, MAX_STAGE_SAMPLES).astype(np.intp)]
        counts = self._ready().survey(core_rows(rows), threads(self.n_jobs))
        left = 1.0 - counts / max(1, rows.shape[0])
        self._prepare(self._path, cheapest(left, sizes, Work.of(expansion, rows)))

    def _prepare(self, path: dict[str, Any] | None, stages: list[tuple[int, int]]) -> None:
        """Keep what the stages need, and no more of the path."""
        self.stages_ = stages
        self._handle = None
        if path is None or not stages:
            self._parts = None
            return
        size = stages[-1][0]
        available = path["kept"].shape[0]
        if size > available:
            raise ValueError(f"stages={stages!r} is not allowed: the path has {available} vectors")
        self._parts = {
            "kept": path["kept"][:size],
            "factor": np.ascontiguousarray(path["factor"][:size, :size]),
            "projections": np.ascontiguousarray(path["projections"][:size]),
            "products": path["products"],
            "at_kept": np.ascontiguousarray(path["at_kept"][:size]),
            "masses": path["masses"],
        }
        self._ready()

    def _ready(self) -> _core.Cascade:
        if self._handle is None:
            assert self._parts is not None
            expansion = self.model_.expansion_
            self._handle = _core.Cascade(
                expansion.core_parts,
                {**self._parts, "kept": core_rows(self._parts["kept"])},
                self.stages_,
                self.model_.decoding,
                bool(self.model_.break_ties),
                threads(self.n_jobs),
            )
        return self._handle

    def _answers(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        n = rows.shape[0]
        if not self.stages_:
            return np.full(n, -1), np.zeros(n, dtype=np.int64)
        return self._ready().answer(core_rows(rows), threads(self.n_jobs))

    def _sizes(self) -> list[int]:
        small = [vectors for vectors, _ in self.stages_]
        return [*small, (small[-1] if small else 0) + self.model_.expansion_.n_vectors]

    @consistent
    def outputs_with_bounds(
        self, X: ArrayLike, stage: int = -1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Outputs of the projection and how far each can be from the full model's.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Samples.
        stage : int, default=-1
            Which stage, as an index into `stages_`.

        Returns
        -------
        outputs : ndarray of shape (n_samples, n_outputs)
            f^, one column a binary machine, as ``model_.outputs`` has them.
        bounds : ndarray of shape (n_samples, n_outputs)
            ``|f - f^|`` is at most this.

        Raises
        ------
        IndexError
            If there is no such stage.
        """
        check_is_fitted(self, "model_")
        count = len(self.stages_)
        if not (integer().holds(stage) and -count <= stage < count):
            raise IndexError(f"stage={stage!r} is not one of the {count} stages")
        rows = self.model_.validated(X)
        return self._ready().outputs_with_bounds(core_rows(rows), int(stage) % count, threads(self.n_jobs))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._transient}

    def _after_load(self) -> None:
        if self.stages_ != _as_pairs(self.stages_):
            raise ValueError(f"stages_ are {self.stages_!r}, expected pairs of sizes")
        if self.stages_:
            self._ready()


def _as_pairs(stages: Any) -> list[tuple[int, int]]:
    pairs = [
        (int(stage[0]), int(stage[1])) if isinstance(stage, tuple) else (int(stage), int(stage))
        for stage in stages
    ]
    for (a, p), (b, r) in pairwise(pairs):
        if a >= b or p > r:
            raise refuse("stages", stages, "increasing")
    if any(vectors < 1 or not 0 <= directions <= vectors for vectors, directions in pairs):
        raise refuse("stages", stages, "positive, with at most as many directions as vectors")
    return pairs
