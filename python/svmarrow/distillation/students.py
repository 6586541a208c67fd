"""Distillation: a kernel expansion that imitates any predictor.

A teacher is a function of the samples. A student has m vectors Z, coefficients B, intercepts b and, with
gamma, one scale s_f for each column:

    f(x) = sum_i B_i exp(-gamma sum_f (s_f (x_f - z_if) / deviation_f)^2) + b.

1. The teacher's outputs on the samples, and on samples drawn around them, are the targets.
2. Columns are standardized. Vectors start at the centers of clusters, coefficients at their least squares fit
   to the targets, with the gamma and the ridge whose fit predicts samples held out best.
3. Vectors, coefficients, intercepts and scales move by Adam on batches (`src/reduced_set/construction`) with
   the loss that fits the targets (`teachers`). The result is the state that was best on samples held out.
4. The standardization and the scales become the preparation of an ordinary model: files, exports and
   explanations need no line for it.

Invariant: a seed gives the same bits for any number of threads. Cost: the predictions of the teacher, and for
each size steps x batch x m x (2 d + 3 q + 50) multiplications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from svmarrow import _core
from svmarrow._support.parameters import boolean, check, either, integer, none, one_of, real, warn_caller
from svmarrow._support.rows import core_rows, threads
from svmarrow.distillation.teachers import numeric_rows
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.preparation import Affine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.distillation.teachers import Teacher
    from svmarrow.models.base import ExpansionModel


__all__ = [
    "N_CANDIDATES",
    "DistillationSettings",
    "Student",
    "distillation_sizes",
    "draw_samples",
    "whole_columns",
]


# --- samples drawn around given ones, on which a student is compared with its teacher ---
# A sample lies between two parents (mixup; Zhang, Cisse, Dauphin and Lopez-Paz, 2018, with neighbors for
# partners): the first is a given sample, the second the nearest of `N_CANDIDATES` others drawn at random,
# by the distance in standardized columns. With a share t drawn uniformly from [0, mixing],
#
#     x = (1 - t) first + t second + noise deviation z,        z normal in each column.
#
# Columns that hold whole numbers alone (counts, codes, switches) keep their values: each is that of the
# second parent with probability t, else that of the first, and has no noise. So no value is drawn that the
# teacher could never have seen in such a column.
#
# Invariant: a seed gives the same samples. Cost: n x candidates x d.


N_CANDIDATES = 16
"""Number of samples of which the nearest is the second parent."""

MAX_CHUNK_NUMBERS = 4_000_000
"""Maximum number of coordinates of candidates that are compared together: 32 MB."""


def whole_columns(X: NDArray[np.floating]) -> NDArray[np.bool_]:
    """True for the columns (n_features,) that hold whole numbers alone."""
    is_integer = np.empty(X.shape[1], dtype=bool)
    for column in range(X.shape[1]):
        values = X[:, column]
        is_integer[column] = bool((values == np.rint(values)).all())
    return is_integer


def draw_samples(
    X: NDArray[np.floating],
    deviations: NDArray[np.float64],
    count: int,
    *,
    mixing: float,
    noise: float,
    random: np.random.RandomState,
) -> NDArray[np.floating]:
    """Draw samples around given ones.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The given samples; their first parents are taken in turn.
    deviations : ndarray of float64 of shape (n_features,)
        Standard deviations of the columns, positive.
    count : int
        Number of samples to draw.
    mixing : float
        Maximum share of the second parent, 0 to 1.
    noise : float
        Standard deviation of the noise over that of the column.
    random : RandomState
        Source of random numbers.

    Returns
    -------
    ndarray of shape (count, n_features)
        Of the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.5], [1.0, 2.5], [0.0, 1.5]])
    >>> drawn = draw_samples(X, X.std(axis=0), 50, mixing=1.0, noise=0.0, random=np.random.RandomState(0))
    >>> np.unique(drawn[:, 0]).tolist(), bool(drawn[:, 1].min() >= 0.5)
    ([0.0, 1.0], True)
    """
    n, d = X.shape
    is_integer = whole_columns(X)
    out = np.empty((count, d), dtype=X.dtype)
    step = max(1, MAX_CHUNK_NUMBERS // (N_CANDIDATES * max(1, d)))
    for start in range(0, count, step):
        first = np.arange(start, min(count, start + step)) % n
        size = first.size
        candidates = random.randint(n, size=(size, N_CANDIDATES))
        between = (X[candidates] - X[first][:, None]) / deviations
        distances = np.einsum("ijk,ijk->ij", between, between)
        # A sample is no partner of itself unless all candidates are.
        distances[candidates == first[:, None]] = np.inf
        second = candidates[np.arange(size), distances.argmin(axis=1)]
        share = mixing * random.uniform(size=(size, 1))
        mixed = X[first] + share * (X[second] - X[first])
        mixed += noise * deviations * random.standard_normal((size, d))
        crossed = np.where(random.uniform(size=(size, d)) < share, X[second], X[first])
        out[start : start + size] = np.where(is_integer, crossed, mixed)
    return out


MAX_SIZE, MIN_SIZE = 512, 8
"""Bounds of the sizes that are tried where none is asked for; each is half of the one before."""

MAX_SAMPLES, MAX_NUMBERS = 60_000, 40_000_000
"""Maximum number of samples, given and drawn, that a student learns from, and of their coordinates."""

MIN_DRAWN, DRAWN_PER_SAMPLE = 20_000, 1.0
"""Number of drawn samples: as many as are needed for this total, and at least this multiple of the given."""

HELD_OUT_FRACTION, MAX_HELD_OUT = 0.15, 2_000
"""Fraction of the given samples on which the best state of a run is found, and the maximum of them."""

GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of gamma that are tried, times the number of columns that vary."""

RIDGES = (1e-6, 1e-4, 1e-2)
"""Ridges of the first coefficients that are tried, as shares of the mean diagonal."""

MAX_START_VECTORS = 256
"""Maximum number of vectors with which gamma and ridge are chosen."""

MAX_OPERATIONS, COST_PER_VECTOR = 4e10, 50
"""Multiplications of the steps of one size, and those for a vector and a sample beside its features."""

MIN_STEPS, MAX_STEPS = 2_000, 10_000
"""Bounds of the number of steps of a size."""

RULES = {
    "kernel": one_of("rbf", "laplacian"),
    "gamma": either(none, real(above=0.0)),
    "column_scales": boolean,
    "n_drawn": either(none, integer(least=0)),
    "mixing": real(least=0.0, most=1.0),
    "noise": real(least=0.0),
    "steps": either(none, integer(least=0)),
    "batch": integer(least=1),
    "vector_rate": real(least=0.0),
    "coefficient_rate": real(least=0.0),
    "scale_rate": real(least=0.0),
}


@dataclass(frozen=True)
class DistillationSettings:
    """Settings of `svmarrow.distil`.

    Parameters
    ----------
    kernel : {"rbf", "laplacian"}, default="rbf"
        The kernel of the student.
    gamma : float, default=None
        Its gamma in standardized columns, before they are scaled. None tries 0.03 to 3 over the number of
        columns, and takes the best on samples held out.
    column_scales : bool, default=True
        Whether each column has its own gamma: scales of the columns are learned with the vectors.
    n_drawn : int, default=None
        Number of samples drawn around those of X. None draws as many as there are, and more where X is small,
        20,000 in all.
    mixing : float, default=1.0
        A drawn sample lies between two of X, at most this share of the way from the first to the second.
        Columns of whole numbers take theirs from one of both.
    noise : float, default=0.05
        Standard deviation of the noise of drawn samples over that of each column; columns of whole numbers
        have none.
    steps : int, default=None
        Number of steps for each size. None takes 10,000, or fewer, but at least 2,000, for large sizes.
    batch : int, default=144
        Samples of a step.
    vector_rate : float, default=0.1
        Length of the first steps of a vector in each standardized column.
    coefficient_rate : float, default=0.1
        Length of the first steps of a coefficient, as a share of the root mean square of the coefficients.
    scale_rate : float, default=0.02
        Length of the first steps of the logarithms of the scales.

    Examples
    --------
    >>> import numpy as np
    >>> from svmarrow import distil
    >>> from svmarrow.distillation import DistillationSettings
    >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 1))
    >>> settings = DistillationSettings(steps=500, n_drawn=0)
    >>> small = distil(lambda X: np.sin(X[:, 0]), X, n_vectors=8, settings=settings, random_state=0)
    >>> bool(abs(small.predict([[1.0]])[0] - np.sin(1.0)) < 0.05)
    True
    """

    kernel: Literal["rbf", "laplacian"] = "rbf"
    gamma: float | None = None
    column_scales: bool = True
    n_drawn: int | None = None
    mixing: float = 1.0
    noise: float = 0.05
    steps: int | None = None
    batch: int = 144
    vector_rate: float = 0.1
    coefficient_rate: float = 0.1
    scale_rate: float = 0.02

    def __post_init__(self) -> None:
        check({name: getattr(self, name) for name in RULES}, RULES)


class Start(NamedTuple):
    """A least squares fit that a construction starts with."""

    gamma: float
    ridge: float


class Task(NamedTuple):
    """The training data of all sizes: standardized rows, those held out last, and their targets."""

    rows: NDArray[np.float32]
    targets: NDArray[np.float64]
    groups: NDArray[np.int64] | None
    held_out: int


class Student:
    """Students of one teacher, of any size.

    Parameters
    ----------
    teacher : Teacher
        The teacher.
    X : array-like of shape (n_samples, n_features)
        Samples as the teacher takes them.
    settings : DistillationSettings
        The settings.
    random_state : int, RandomState instance or None
        Seed of everything that is random.
    n_jobs : int or None
        Threads; no result depends on them.
    progress : callable or None
        Called with the progress.
    """

    def __init__(
        self,
        teacher: Teacher,
        X: Any,
        settings: DistillationSettings,
        random_state: Any,
        n_jobs: int | None,
        progress: ProgressCallback | None,
    ) -> None:
        self.teacher: Teacher = teacher
        self.settings: DistillationSettings = settings
        self._n_jobs, self._progress = n_jobs, progress
        random = check_random_state(random_state)
        self._seed = int(random.randint(2**31 - 1))
        most = max(2, min(MAX_SAMPLES, MAX_NUMBERS // max(1, int(np.shape(X)[1]))))
        given = np.arange(_num_samples(X))
        if given.size > most:
            given = np.sort(random.permutation(given.size)[:most])
        X = _safe_indexing(X, given)
        rows = numeric_rows(X)
        is_sparse = sparse.issparse(rows)
        samples = rows.toarray() if is_sparse else rows
        n = len(samples)
        self.n_given = n
        count = settings.n_drawn
        if count is None:
            count = min(max(int(DRAWN_PER_SAMPLE * n), MIN_DRAWN - n), most - n)
        self.n_drawn = count
        # Sparse rows cannot be centered at prediction.
        self._centre = np.zeros(samples.shape[1])
        if not is_sparse:
            self._centre = samples.mean(axis=0, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = samples.std(axis=0, dtype=np.float64)
        if not np.isfinite(deviations).all():
            columns = np.flatnonzero(~np.isfinite(deviations)).tolist()
            raise ValueError(f"X has columns whose variance overflows ({columns[:5]}): scale them first")
        varies = deviations > 1e-12 * np.abs(samples).max(axis=0, initial=0.0)
        self._deviations = np.where(varies, deviations, 1.0)
        self._n_varying = max(1, int(varies.sum()))
        outputs = teacher.outputs(X, progress)
        if count:
            drawn = draw_samples(
                samples,
                np.where(varies, deviations, 0.0) + ~varies,
                count,
                mixing=settings.mixing,
                noise=settings.noise,
                random=random,
            )
            if not varies.all():
                drawn[:, ~varies] = samples[0, ~varies]
            samples = np.vstack([drawn, samples])
            outputs = np.vstack([teacher.outputs(drawn, progress), outputs])
        self._task = self._standardised(samples, outputs, n, random)
        self._models: dict[int, ExpansionModel] = {}

    def _standardised(
        self, samples: NDArray[Any], outputs: NDArray[np.float64], n: int, random: np.random.RandomState
    ) -> Task:
        total = len(samples)
        held_out = min(MAX_HELD_OUT, int(HELD_OUT_FRACTION * n))
        order = np.arange(total)
        order[total - n :] = total - n + random.permutation(n)
        rows = np.empty(samples.shape, dtype=np.float32)
        for start in range(0, total, 4096):
            part = order[start : start + 4096]
            rows[start : start + 4096] = (samples[part] - self._centre) / self._deviations
        targets = outputs[order]
        self._shift, self._spread = np.zeros(targets.shape[1]), np.ones(targets.shape[1])
        groups = None
        if self.teacher.loss == "matching":
            with np.errstate(over="ignore", invalid="ignore"):
                self._shift, spread = targets.mean(axis=0), targets.std(axis=0)
            if not np.isfinite(spread).all():
                raise ValueError(
                    f"{self.teacher.name} predicts numbers whose variance overflows: scale its outputs"
                )
            self._spread = np.where(spread > 0.0, spread, 1.0)
            targets = (targets - self._shift) / self._spread
        template = self.teacher.template
        if isinstance(template, ExpansionClassifier):
            groups = template.decode(outputs[order]).astype(np.int64)
        return Task(rows, targets, groups, held_out)

    @property
    def max_size(self) -> int:
        """Maximum number of vectors."""
        return len(self._task.rows)

    def _construct(self, size: int, start: Start, steps: int) -> dict[str, Any]:
        """Construct the vectors of a size, see `svmarrow._core`."""
        rows, targets, groups, held_out = self._task
        settings, n_threads = self.settings, threads(self._n_jobs)
        d, q = rows.shape[1], targets.shape[1]
        # Given rows are last; drawn ones lie between clusters too.
        part = slice(-self.n_given, None) if size <= self.n_given else slice(None)
        of_classes = None if groups is None else groups[part]
        centres = _core.centres(core_rows(rows[part]), of_classes, size, self._seed, None, n_threads)
        empty = KernelExpansion(
            np.zeros((0, d)), np.zeros((0, q)), np.zeros(q), settings.kernel, gamma=start.gamma
        )
        given = {
            "starts": [centres],
            "loss": self.teacher.loss,
            "coding": self.teacher.coding,
            "sharpness": 1.0,
            "label_weight": 0.0,
            "steps": steps,
            "batch": settings.batch,
            "vector_rate": settings.vector_rate,
            "coefficient_rate": settings.coefficient_rate,
            "noise": 0.0,
            "mixing": 0.0,
            "places": 0,
            "seed": self._seed,
            "scale_rate": settings.scale_rate if settings.column_scales else 0.0,
            "start_ridge": start.ridge,
            "held_out": held_out,
            "known_outputs": True,
            "max_time": None,
        }
        made = _core.gradient_vectors(
            empty.core_parts, core_rows(rows), targets, given, self._progress, n_threads
        )[0]
        return dict(made)

    def _chosen_start(self, size: int) -> Start:
        """The least squares fit with the smallest error on the rows held out."""
        rows, targets, _, held_out = self._task
        gammas = [value / self._n_varying for value in GAMMAS]
        if self.settings.gamma is not None:
            gammas = [self.settings.gamma]
        if held_out == 0:
            return Start(gammas[len(gammas) // 2], RIDGES[0])
        size = min(size, MAX_START_VECTORS)
        errors = []
        for start in (Start(gamma, ridge) for gamma in gammas for ridge in RIDGES):
            made = self._construct(size, start, 0)
            predicted = self._expansion(made, start.gamma)._evaluate(rows[-held_out:], self._n_jobs)
            errors.append((float(((predicted - targets[-held_out:]) ** 2).sum()), start))
        return min(errors)[1]

    def _expansion(self, made: dict[str, Any], gamma: float) -> KernelExpansion:
        return KernelExpansion(
            made["vectors"], made["coefficients"], made["intercepts"], self.settings.kernel, gamma=gamma
        )

    def model(self, size: int) -> ExpansionModel:
        """The student with a number of vectors.

        Parameters
        ----------
        size : int
            At most `max_size`.

        Returns
        -------
        ExpansionModel
            Of the kind of the teacher.
        """
        if size not in self._models:
            self._models[size] = self._fitted(size)
        return self._models[size]

    def _fitted(self, size: int) -> ExpansionModel:
        start = self._chosen_start(size)
        steps = self.settings.steps
        d, q = self._task.rows.shape[1], self._task.targets.shape[1]
        if steps is None:
            cost = self.settings.batch * size * (2 * d + 3 * q + COST_PER_VECTOR)
            steps = int(np.clip(MAX_OPERATIONS / cost, MIN_STEPS, MAX_STEPS))
        made = self._construct(size, start, steps)
        if made["stop"] != "converged":
            warn_caller(
                f"the vectors were still moving when distillation ended early ({made['stop']})",
                ConvergenceWarning,
            )
        made["coefficients"] = made["coefficients"] * self._spread
        made["intercepts"] = made["intercepts"] * self._spread + self._shift
        preparation = Affine(self._centre, self._deviations / made["scales"])
        changes: dict[str, Any] = {
            "expansion": self._expansion(made, start.gamma),
            "preparation": preparation,
        }
        template = self.teacher.template
        if isinstance(template, ExpansionClassifier):
            changes["calibration"] = self.teacher.calibration()
        return template._replace(**changes)

    def size_within(self, max_bytes: int) -> int:
        """The number of vectors whose model's arrays have at most some bytes."""
        d, q = self._task.rows.shape[1], self._task.targets.shape[1]
        size = (max_bytes - 8 * q - 16 * d) // (4 * d + 8 * q)
        if size < 1:
            raise ValueError(
                f"max_bytes={max_bytes} is not allowed: it must be at least {20 * d + 16 * q}, which one "
                "vector and the scales of the columns take"
            )
        return min(int(size), self.max_size)


def distillation_sizes(max_size: int) -> list[int]:
    """Decreasing sizes to try."""
    sizes = [min(MAX_SIZE, max_size)]
    while sizes[-1] >= 2 * MIN_SIZE:
        sizes.append(sizes[-1] // 2)
    return sizes
