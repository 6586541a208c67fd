"""Preparation and result of an exact fit: the code, the memory of the driver, the collected model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from svmarrow import _core
from svmarrow._support.certificate import Certificate
from svmarrow._support.parameters import check_shape, warn_caller
from svmarrow._support.progress import progress
from svmarrow._support.rows import as_rows, threads
from svmarrow._support.training import refuse_beyond_memory
from svmarrow.dask.blocks import (
    balanced_weights,
    check_features,
    check_span,
    classes_of,
    delayed_blocks,
    offsets,
    partition_indices,
    rows_by_part,
    rows_with_indices,
    summary_of,
)
from svmarrow.dask.rounds import Rounds
from svmarrow.expansion.points import choose_points
from svmarrow.models.outputs import pair_matrix
from svmarrow.svm._base import decoding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from svmarrow._support.parameters import Decoding
    from svmarrow.dask.blocks import Summary
    from svmarrow.dask.estimator import Cluster
    from svmarrow.dask.partition import Machines, RowSubset
    from svmarrow.dask.rounds import Round


__all__ = [
    "ALTERNATIVE",
    "CollectedModel",
    "PreparedFit",
    "bytes_of_driver",
    "bytes_to_solve",
    "choose_distributed_points",
    "code_of",
    "prepare_fit",
    "train_machines",
]


# --- choice of the points of a low-rank model from distributed rows: drawn, or chosen from a sample ---


#: Size of the sample from which points are chosen: rows per point, and the minimum number of rows.
_SAMPLE_ROWS_PER_POINT, _MIN_SAMPLE_ROWS = 20, 10_000


def choose_distributed_points(
    cluster: Cluster,
    parts: Sequence[Any],
    counts: Sequence[int],
    first: NDArray[np.int64],
    model: Any,
    spec: tuple[str, float, float, int],
    alpha: float,
) -> tuple[Any, NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Returns the points, the indices of their samples and the remaining trace, as `choose_points` does.

    ``parts`` are delayed or futures with ``counts`` samples; ``first`` is the index of the first sample of
    each.
    """
    if not isinstance(model.selection, str):
        points = as_rows(model.selection, "selection")
        if points.shape[1] != model.n_features_in_:
            raise ValueError(f"selection has {points.shape[1]} columns: X has {model.n_features_in_}")
        return points, None, None
    random = check_random_state(model.random_state)
    total, m = int(sum(counts)), int(model.n_vectors)
    size = m if model.selection == "random" else max(_SAMPLE_ROWS_PER_POINT * m, _MIN_SAMPLE_ROWS)
    drawn = np.sort(sample_without_replacement(total, min(total, size), random_state=random)).astype(np.int64)
    asked = rows_by_part(counts, drawn)
    futures = [cluster.task(rows_with_indices, parts[number], local) for number, local in asked.items()]
    samples = cluster.gather(futures, "the points")
    X = [rows for rows, _ in samples]
    sample = as_rows(sp.csr_array(sp.vstack(X)) if sp.issparse(X[0]) else np.concatenate(X))
    numbers = np.concatenate([own + first[number] for number, (_, own) in zip(asked, samples, strict=True)])
    points, rows, remaining = choose_points(
        sample,
        m,
        spec,
        selection=model.selection,
        alpha=alpha,
        random_state=random,
        n_jobs=model.n_jobs,
        verbose=model.verbose,
    )
    return points, None if rows is None else numbers[rows], remaining


#: Remedy if the driver cannot store the support vectors.
ALTERNATIVE = "train DaskLowRankRLSClassifier, whose memory does not grow with the samples"


@dataclass(frozen=True, eq=False)
class CollectedModel:
    """A model as the local estimator stores it: support vectors by class, then by row."""

    vectors: Any
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    support: NDArray[np.int64]
    counts: NDArray[np.int64]
    certificate: Certificate


def code_of(decoding: Decoding, n_classes: int) -> NDArray[np.int8]:
    """Returns the code (n_classes, n_outputs) of the machines of a decoding."""
    if decoding == "binary":
        return np.array([[-1], [1]], dtype=np.int8)
    if decoding == "ovr":
        return (2 * np.eye(n_classes) - 1).astype(np.int8)
    return pair_matrix(n_classes)


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """Partitions, summaries and classes of a fit before its machines are trained."""

    #: Futures of the partitions.
    blocks: list[Any]
    summaries: list[Summary]
    classes: NDArray[Any]
    by_class: NDArray[np.float64]
    decoding: Decoding

    @property
    def matrix(self) -> NDArray[np.int8]:
        """The code of the machines."""
        return code_of(self.decoding, self.classes.size)

    @property
    def rows(self) -> int:
        """Number of rows of all partitions."""
        return sum(each.rows for each in self.summaries)


def prepare_fit(estimator: Any, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> PreparedFit:
    """Loads the partitions on the workers and summarizes them."""
    check_features(estimator, X)
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    blocks = cluster.load(delayed_blocks(X, y, sample_weight))
    futures = [cluster.submit(summary_of, block, True, estimator.gamma == "scale") for block in blocks]
    summaries: list[Summary] = cluster.gather(futures, "the rows")
    if not sum(each.rows for each in summaries):
        raise ValueError("X has no rows: all of its partitions are empty")
    check_span(estimator, summaries)
    classes, totals, counts = classes_of(summaries)
    by_class = balanced_weights(estimator.class_weight, counts.astype(np.float64), classes)
    if not (totals * by_class).all():
        raise ValueError(
            f"the weights of class {classes[int(np.argmin(totals * by_class))]} are all zero: every class "
            "needs a sample of positive weight (sample_weight times class_weight)"
        )
    decoding = decoding_of(estimator, classes.size)
    check_shape(decoding, estimator.decision_function_shape, estimator.break_ties)
    return PreparedFit(blocks, summaries, classes, by_class, decoding)


def train_machines(
    estimator: Any,
    cluster: Cluster,
    parts: Sequence[Any],
    prepared: PreparedFit,
    machines: Machines,
    start: RowSubset | None = None,
) -> tuple[CollectedModel, list[Round], bool]:
    """Trains the machines; returns the model, the rounds, and whether Ctrl-C ended the fit."""
    jobs, interrupted = threads(estimator.n_jobs), False
    keeps = bool(getattr(estimator, "warm_start", False))
    with progress(estimator.verbose) as reporter:
        rounds = Rounds(
            cluster,
            parts,
            machines,
            jobs=jobs,
            max_iter=None if estimator.max_iter == -1 else int(estimator.max_iter),
            max_time=estimator.max_time,
            reporter=reporter,
        )
        try:
            check = _memory_check(type(estimator).__name__, machines, jobs)
            rounds.run(rounds.first(check) if start is None else start)
        except KeyboardInterrupt:
            if not keeps or rounds.solved is None:
                raise
            rounds.end("interrupted")
            interrupted = True
        model = _collect(cluster, parts, rounds, offsets(prepared.summaries), prepared.classes.size)
    if model.certificate.stop != "converged" and not rounds.stopped:
        warn_caller(_convergence_message(estimator, model.certificate), ConvergenceWarning)
    return model, rounds.log, interrupted


def _convergence_message(estimator: Any, certificate: Certificate) -> str:
    """Returns the warning of a fit that did not converge."""
    return (
        f"{type(estimator).__name__} ended before the tolerance was reached ({certificate.stop}): the "
        f"violation is {certificate.violation:.3g} for tol={estimator.tol:g}, the duality gap "
        f"{certificate.gap:.3g} of {certificate.primal:.6g}. The model is usable; raise max_iter or "
        "max_time, or scale the data"
    )


def bytes_to_solve(machines: Machines, rows: int, held: int, jobs: int) -> int:
    """Returns the memory that a process needs at least to train the machines on ``rows`` samples of ``held``
    bytes.
    """
    # A few rows stand for those that are not loaded yet.
    sample = np.ones((min(max(1, rows), 512), max(1, held // max(1, 8 * rows))))
    kernel: Any = machines.kernel if isinstance(machines.kernel[0], str) else machines.kernel[0]
    sizes = [rows] * int(machines.matrix.shape[1])
    return int(_core.estimate_svm_memory(sample, rows, kernel, sizes, 0, jobs)["least"])


def bytes_of_driver(machines: Machines, rows: int, held: int, jobs: int) -> int:
    """Returns the memory that the driver needs at least, which stores three copies of its rows: as received,
    as concatenated and as sorted.
    """
    return bytes_to_solve(machines, rows, held, jobs) + 3 * held


def _memory_check(name: str, machines: Machines, jobs: int) -> Callable[[int, int], None]:
    """Returns a function that raises MemoryError before support vectors are sent that the driver cannot
    store.
    """

    def check_memory(rows: int, held: int) -> None:
        refuse_beyond_memory(
            f"{name}.fit found {rows} support vectors in the partitions, which the driver must store; it",
            bytes_of_driver(machines, rows, held, jobs),
            ALTERNATIVE,
        )

    return check_memory


def _collect(
    cluster: Cluster, parts: Sequence[Any], rounds: Rounds, first: NDArray[np.int64], n_classes: int
) -> CollectedModel:
    """Collects the model of the last round."""
    assert rounds.solved is not None
    solved = rounds.solved
    rows = solved.rows.take(solved.rows.beta.any(axis=1))
    local = [rows.local[rows.part == number] for number in range(len(parts))]
    indices = cluster.gather(cluster.each(partition_indices, parts, local), "the rows")
    # The driver's rows are sorted by partition.
    support = np.concatenate([own + first[part] for part, own in enumerate(indices)])
    order = np.lexsort((support, rows.labels))
    return CollectedModel(
        rows.X[order],
        np.ascontiguousarray(rows.beta[order]),
        solved.intercepts,
        support[order],
        np.bincount(rows.labels, minlength=n_classes),
        Certificate(machines=solved.certificates, **rounds.effort),
    )
