"""Around the rounds of an exact machine: its code, whether the driver can hold it, the model that comes
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from svmarrow import _core
from svmarrow._support.certificate import Certificate
from svmarrow._support.decoding import check_shape, pairs
from svmarrow._support.memory import refuse_beyond_memory
from svmarrow._support.progress import progress
from svmarrow._support.rows import threads
from svmarrow._support.warn import warn_caller
from svmarrow.dask.blocks import aligned, remember_columns
from svmarrow.dask.parts import numbers_of
from svmarrow.dask.rounds import Rounds
from svmarrow.dask.summary import balance, check_span, classes_of, offsets, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from svmarrow._support.decoding import Decoding
    from svmarrow.dask.cluster import Cluster
    from svmarrow.dask.partition import Found, Machines
    from svmarrow.dask.rounds import Round
    from svmarrow.dask.summary import Summary

__all__ = [
    "INSTEAD",
    "Collected",
    "Prepared",
    "bytes_of_driver",
    "bytes_to_solve",
    "code_of",
    "prepare",
    "solve",
]

#: What to do where the driver cannot hold the support vectors.
INSTEAD = "train DaskLowRankRLSClassifier, whose memory does not grow with the rows"


@dataclass(frozen=True, eq=False)
class Collected:
    """A model as the plain estimator keeps it: support vectors by class, then by row."""

    vectors: Any
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    support: NDArray[np.int64]
    counts: NDArray[np.int64]
    certificate: Certificate


def code_of(decoding: Decoding, n_classes: int) -> NDArray[np.int8]:
    """The code whose machines a decoding reads (n_classes, outputs)."""
    if decoding == "binary":
        return np.array([[-1], [1]], dtype=np.int8)
    if decoding == "ovr":
        return (2 * np.eye(n_classes) - 1).astype(np.int8)
    matrix = np.zeros((n_classes, n_classes * (n_classes - 1) // 2), dtype=np.int8)
    for output, (a, b) in enumerate(pairs(n_classes)):
        matrix[a, output], matrix[b, output] = 1, -1
    return matrix


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a fit of labels knows before its machines are trained."""

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
        """Rows of all partitions."""
        return sum(each.rows for each in self.summaries)


def prepare(estimator: Any, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> Prepared:
    """Partitions on the workers, and what is the matter with them all."""
    remember_columns(estimator, X)
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    blocks = cluster.load(aligned(X, y, sample_weight))
    told = [cluster.submit(summary_of, block, True, estimator.gamma == "scale") for block in blocks]
    summaries: list[Summary] = cluster.gather(told, "the rows")
    if not sum(each.rows for each in summaries):
        raise ValueError("X has no rows: all of its partitions are empty")
    check_span(estimator, summaries)
    classes, totals, counts = classes_of(summaries)
    by_class = balance(estimator.class_weight, counts.astype(np.float64), classes)
    if not (totals * by_class).all():
        raise ValueError(
            f"the weights of class {classes[int(np.argmin(totals * by_class))]} are all zero: every class "
            f"needs a "
            "row of positive weight (sample_weight times class_weight)"
        )
    decoding = estimator._decoding_of(classes.size)
    check_shape(decoding, estimator.decision_function_shape, estimator.break_ties)
    return Prepared(blocks, summaries, classes, by_class, decoding)


def solve(
    estimator: Any,
    cluster: Cluster,
    parts: Sequence[Any],
    prepared: Prepared,
    machines: Machines,
    start: Found | None = None,
) -> tuple[Collected, list[Round], bool]:
    """The machines over all parts, the rounds they took, and whether Ctrl-C has ended them early."""
    jobs, interrupted = threads(estimator.n_jobs), False
    keeps = bool(getattr(estimator, "warm_start", False))
    with progress(estimator.verbose) as told:
        rounds = Rounds(
            cluster,
            parts,
            machines,
            jobs=jobs,
            max_iter=None if estimator.max_iter == -1 else int(estimator.max_iter),
            max_time=estimator.max_time,
            told=told,
        )
        try:
            check = _fits(type(estimator).__name__, machines, jobs)
            rounds.run(rounds.first(check) if start is None else start)
        except KeyboardInterrupt:
            if not keeps or rounds.solved is None:
                raise
            rounds.end("interrupted")
            interrupted = True
        found = _collected(cluster, parts, rounds, offsets(prepared.summaries), prepared.classes.size)
    if found.certificate.stop != "converged" and not rounds.stopped:
        warn_caller(_ended_early(estimator, found.certificate), ConvergenceWarning)
    return found, rounds.log, interrupted


def _ended_early(estimator: Any, certificate: Certificate) -> str:
    """The warning of a fit that did not converge."""
    return (
        f"{type(estimator).__name__} ended before the tolerance was reached ({certificate.stop}): the "
        f"violation is "
        f"{certificate.violation:.3g} for tol={estimator.tol:g}, the duality gap {certificate.gap:.3g} of "
        f"{certificate.primal:.6g}. The model is usable; raise max_iter or max_time, or scale the data"
    )


def bytes_to_solve(machines: Machines, rows: int, held: int, jobs: int) -> int:
    """What a process cannot do without that solves the machines on so many rows of so many bytes."""
    # A few in the place of the rows that are not here yet.
    like = np.ones((min(max(1, rows), 512), max(1, held // max(1, 8 * rows))))
    kernel: Any = machines.kernel if isinstance(machines.kernel[0], str) else machines.kernel[0]
    sizes = [rows] * int(machines.matrix.shape[1])
    return int(_core.estimate_svm_memory(like, rows, kernel, sizes, 0, jobs)["least"])


def bytes_of_driver(machines: Machines, rows: int, held: int, jobs: int) -> int:
    """What the driver cannot do without where its rows are so many, of so many bytes; rows lie there as they
    come, as they are held, and as they are put in order.
    """
    return bytes_to_solve(machines, rows, held, jobs) + 3 * held


def _fits(name: str, machines: Machines, jobs: int) -> Callable[[int, int], None]:
    """What refuses support vectors that the driver cannot hold, before they are sent."""

    def look(rows: int, held: int) -> None:
        refuse_beyond_memory(
            f"{name}.fit found {rows} support vectors in the partitions, which the driver must hold; it",
            bytes_of_driver(machines, rows, held, jobs),
            INSTEAD,
        )

    return look


def _collected(
    cluster: Cluster, parts: Sequence[Any], rounds: Rounds, first: NDArray[np.int64], n_classes: int
) -> Collected:
    """The model of the last round."""
    assert rounds.solved is not None
    solved = rounds.solved
    rows = solved.rows.take(solved.rows.beta.any(axis=1))
    local = [rows.local[rows.part == number] for number in range(len(parts))]
    own = cluster.gather(cluster.each(numbers_of, parts, local), "the rows")
    # Rows of the driver lie by partition.
    support = np.concatenate([numbers + first[part] for part, numbers in enumerate(own)])
    order = np.lexsort((support, rows.labels))
    return Collected(
        rows.X[order],
        np.ascontiguousarray(rows.beta[order]),
        solved.intercepts,
        support[order],
        np.bincount(rows.labels, minlength=n_classes),
        Certificate(machines=solved.certificates, **rounds.effort),
    )
