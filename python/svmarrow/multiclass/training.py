"""The machines of all columns of a code: together where they can share, else one by one."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils.parallel import Parallel, delayed

from svmarrow._support.estimator import check_takes_weights, of_rows
from svmarrow._support.progress import subtasks
from svmarrow._support.rows import as_rows, n_joblib_workers, threads
from svmarrow._support.schemas import savable
from svmarrow._support.training import (
    MemoryEstimate,
    any_weighted,
    bytes_of_rows,
    check_every_class,
    check_kernel_matrix,
    class_weights,
    default_gamma,
    estimate_of,
    new_threads,
    refuse_beyond_memory,
    weights_differ,
)
from svmarrow.expansion.composites import merge
from svmarrow.interop.convert import as_expansion
from svmarrow.models.expansion_models import ExpansionClassifier
from svmarrow.models.machine import Columns, ColumnTrainer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from svmarrow._support.decoding import Code
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.machine import Certificate

__all__ = ["Machines", "memory_of_machines", "refuse_machines", "train"]


@savable("machines/1")
@dataclass(eq=False, repr=False)
class Machines:
    """The trained machines: one expansion for all columns, or an estimator for each."""

    #: All outputs over one pool of vectors; None where the machines are no expansions of one kernel.
    expansion: KernelExpansion | None = None
    #: Training rows that are vectors of the expansion; None where that is not known.
    support: NDArray[np.int64] | None = None
    #: Certificate of the solutions.
    certificate: Certificate | None = None
    #: Outputs at each training row of machines that were trained without it, (n, F); None where not known.
    left_out: NDArray[np.float64] | None = None
    #: The estimator that trained them together, which can continue from its solution.
    machine: Any = None
    #: A fitted estimator for each distinct column, if each was fitted separately.
    estimators: list[Any] = field(default_factory=list)
    #: Place in `estimators` of each column, and its sign.
    which: NDArray[np.intp] | None = None
    signs: NDArray[np.float64] | None = None
    #: Training rows of each estimator, for estimators of kernel matrices.
    columns: list[NDArray[np.intp]] | None = None
    #: Whether the machines were trained with weights that differ; None where that is not known.
    weighted: bool | None = None

    def outputs(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """Outputs (n, F) of the single estimators."""
        assert self.which is not None
        assert self.signs is not None

        def of(number: int) -> NDArray[np.float64]:
            rows = X if self.columns is None else X[:, self.columns[number]]
            values = np.asarray(self.estimators[number].decision_function(rows), dtype=np.float64)
            return values.reshape(len(values), -1)[:, 0]

        if self.columns is not None:
            X = np.asarray(X)
        jobs = min(threads(n_jobs), len(self.estimators))
        with new_threads():
            values = Parallel(n_jobs=jobs, prefer="threads")(
                delayed(of)(number) for number in range(len(self.estimators))
            )
        return np.column_stack(values)[:, self.which] * self.signs


def train(
    estimator: Any,
    X: Any,
    labels: NDArray[np.int64],
    code: Code,
    *,
    classes: NDArray[Any],
    sample_weight: NDArray[np.float64] | None,
    metadata: dict[str, Any],
    class_weight: Mapping[Any, float] | Literal["balanced"] | None,
    shared: bool,
    n_jobs: int | None,
    last: Machines | None = None,
) -> Machines:
    """Train all columns.

    Parameters
    ----------
    estimator : estimator
        The binary machine, not fitted; it is cloned.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    labels : ndarray of int64 of shape (n_samples,)
        Index of each row's class.
    code : Code
        The code.
    classes : ndarray of shape (n_classes,)
        The labels of the classes, which class weights are about.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the samples.
    metadata : dict
        What else the estimator's `fit` gets.
    class_weight : dict, "balanced" or None
        Weights of the classes, which each row's own weight is multiplied by.
    shared : bool
        Whether machines share their work where they can.
    n_jobs : int or None
        Threads.
    last : Machines or None
        Those of an earlier fit of the same code, to go on from with ``warm_start=True``.
    """
    weights = None
    estimator = _of_one_kernel(clone(estimator), X, sample_weight)
    if sample_weight is not None or class_weight is not None:
        check_takes_weights(estimator)
        weights = class_weights(class_weight, sample_weight, classes, labels)[1]
        check_every_class(classes, labels, weights)
    if shared and not metadata and isinstance(estimator, ColumnTrainer):
        together = _together(estimator, X, classes[labels], code, weights, n_jobs, last)
        if together is not None:
            return together
    trained = _one_by_one(estimator, X, labels, code, weights, metadata, n_jobs)
    trained.left_out = _left_out(trained, X, labels, code)
    if weights_differ(weights):
        trained.weighted = True
    return trained


def _together(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    code: Code,
    sample_weight: NDArray[np.float64] | None,
    n_jobs: int | None,
    last: Machines | None,
) -> Machines | None:
    """Machines of a family that shares their work; None where it cannot for this code."""
    chosen, which, signs = code.distinct_columns()
    machine = estimator
    if getattr(machine, "warm_start", False) and last is not None and type(last.machine) is type(machine):
        # A copy: the last model keeps its machine.
        machine = copy.copy(last.machine).set_params(**machine.get_params(deep=False))
    if n_jobs is not None:
        machine.set_params(n_jobs=n_jobs)
    columns = machine._fit_columns(X, y, np.ascontiguousarray(code.matrix[:, chosen]), sample_weight)
    if columns is None:
        return None
    warm_machine = machine if hasattr(machine, "warm_start") else None
    spread = columns.spread(which, signs)._asdict()
    return Machines(**spread, machine=warm_machine, weighted=getattr(machine, "_weighted", None))


def _left_out(trained: Machines, X: Any, labels: NDArray[np.int64], code: Code) -> NDArray[np.float64] | None:
    """Outputs at each row without it: exact values where a machine saw the row, else its output."""
    if not all(hasattr(machine, "loo_decision_") for machine in trained.estimators):
        return None
    chosen, which, signs = code.distinct_columns()
    pairwise = bool(get_tags(trained.estimators[0]).input_tags.pairwise)
    values = np.empty((labels.size, chosen.size))
    for number, (column, machine) in enumerate(zip(chosen, trained.estimators, strict=True)):
        seen = code.matrix[labels, column] != 0
        values[seen, number] = machine.loo_decision_
        others = np.flatnonzero(~seen)
        if others.size:
            rows = X[np.ix_(others, np.flatnonzero(seen))] if pairwise else _safe_indexing(X, others)
            values[others, number] = machine.decision_function(rows)
    left_out: NDArray[np.float64] = values[:, which] * signs
    return left_out


def _one_by_one(
    estimator: Any,
    X: Any,
    labels: NDArray[np.int64],
    code: Code,
    sample_weight: NDArray[np.float64] | None,
    metadata: dict[str, Any],
    n_jobs: int | None,
) -> Machines:
    """Any binary classifier: a clone for each distinct column, on the rows of its classes."""
    pairwise = bool(get_tags(estimator).input_tags.pairwise)
    if sp.issparse(X):
        if pairwise:
            raise TypeError("sparse X is not allowed with a precomputed kernel: it must be dense")
        X = X.tocsr()
    elif pairwise:
        X = check_array(X)
        # Distances, which some estimators take, need not be symmetric.
        check_kernel_matrix(X, symmetric=False)
    jobs = n_joblib_workers(n_jobs) or threads(n_jobs)
    chosen, which, signs = code.distinct_columns()
    if jobs > 1 and chosen.size > 1 and _is_ours(estimator) and getattr(estimator, "n_jobs", 1) is None:
        # The columns are what runs in parallel.
        estimator.set_params(n_jobs=1)
    sides = [code.matrix[labels, column] for column in chosen]
    used = [np.flatnonzero(side) for side in sides]

    # Rows are arguments: joblib's backends send large ones once.
    def fit(number: int, X: Any, side: NDArray[np.int8], rows: NDArray[np.intp]) -> Any:
        every = rows.size == side.size
        part = X if every else (X[np.ix_(rows, rows)] if pairwise else _safe_indexing(X, rows))
        asked = metadata if sample_weight is None else {**metadata, "sample_weight": sample_weight}
        machine = clone(estimator)
        with columns.part(number, machine):
            return machine.fit(part, side[rows].astype(np.int64), **of_rows(X, asked, rows))

    with subtasks("column", int(chosen.size)) as columns, new_threads():
        fitted = Parallel(n_jobs=min(jobs, chosen.size), prefer="threads")(
            delayed(fit)(number, X, sides[number], used[number]) for number in range(chosen.size)
        )
    for machine in fitted:
        if not hasattr(machine, "decision_function"):
            raise TypeError(f"estimator={estimator!r} is not allowed: it must have decision_function")
        machine_classes = getattr(machine, "classes_", np.array([-1, 1]))
        if len(machine_classes) != 2:
            raise ValueError(f"{type(machine).__name__} did not see both sides of a column")
    converted = [of for of in map(_binary_expansion, fitted) if of is not None]
    if len(converted) == len(fitted):
        pool = _pooled([of.expansion for of in converted], used if pairwise else None)
        if pool is not None:
            weighted = any_weighted(of.weighted for of in converted)
            outputs = Columns(pool).spread(which, signs).expansion
            return Machines(outputs, estimators=fitted, weighted=weighted)
    seen = used if pairwise else None
    return Machines(estimators=fitted, which=which, signs=signs, columns=seen)


def _is_ours(estimator: Any) -> bool:
    return type(estimator).__module__.partition(".")[0] == "svmarrow"


def _of_one_kernel(estimator: Any, X: Any, sample_weight: NDArray[np.float64] | None) -> Any:
    """A kernel machine of svmarrow whose width follows from the rows takes it from all of them.

    The width weighs a sample by its own weight, if the family does so, but not by its class's weight.
    """
    if not _is_ours(estimator):
        return estimator
    gamma, kernel = getattr(estimator, "gamma", None), getattr(estimator, "kernel", None)
    if gamma in ("scale", "auto") and isinstance(kernel, str) and kernel != "precomputed":
        weights = sample_weight if getattr(estimator, "_weighs_gamma", True) else None
        rows = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if rows.ndim == 2 and rows.dtype.kind in "buif" and rows.size:
            with np.errstate(all="ignore"):  # rows that are not finite are the estimator's to refuse
                estimator.set_params(gamma=default_gamma(gamma, rows, kernel=kernel, weights=weights))
    return estimator


def _binary_expansion(machine: Any) -> ExpansionClassifier | None:
    """The machine as an expansion of one output on the samples themselves, where it is one."""
    try:
        converted = as_expansion(machine)
    except (TypeError, ValueError):
        return None
    if not isinstance(converted, ExpansionClassifier) or converted.decoding != "binary":
        return None
    is_plain = converted.preparation is None and not callable(converted.expansion.kernel)
    return converted if is_plain else None


def _pooled(
    expansions: list[KernelExpansion], columns: list[NDArray[np.intp]] | None
) -> KernelExpansion | None:
    """Single outputs over one pool of vectors; None where the layouts of the vectors differ."""
    kinds = {(sp.issparse(of.vectors), of.vectors.dtype) for of in expansions}
    if len(kinds) > 1:
        return None
    if columns is not None:
        # Indices among the rows of a machine to indices among all rows.
        expansions = [
            of.replaced(vectors=rows[of.vectors[:, 0].astype(np.intp)][:, np.newaxis].astype(np.float64))
            for of, rows in zip(expansions, columns, strict=True)
        ]
    return merge(expansions)


def memory_of_machines(
    estimator: Any, rows: Any, labels: NDArray[Any], code: Code, shared: bool, n_jobs: int | None
) -> MemoryEstimate:
    """Memory of all machines."""
    counts = np.bincount(labels, minlength=code.n_classes).astype(np.int64)
    matrix = np.ascontiguousarray(code.matrix[:, code.distinct_columns()[0]])
    # Coefficients, and the vectors of the pool: at most all rows, once.
    part_bytes = 16 * int(counts.sum()) * code.n_columns + bytes_of_rows(rows)
    if shared and isinstance(estimator, ColumnTrainer):
        machine: Any = clone(estimator)
        if n_jobs is not None:
            machine.set_params(n_jobs=n_jobs)
        found = machine._column_memory(rows, matrix, counts)
        if found is not None:
            return MemoryEstimate(found.total + part_bytes, found.minimum)
    sizes = np.sort(counts @ (matrix != 0))[::-1]
    # The largest machines, which may be fitted at the same time; each keeps its rows.
    part = np.linspace(0, rows.shape[0] - 1, int(sizes[0])).astype(np.intp)
    one = estimate_of(estimator, rows[part], np.arange(part.size) % 2)
    copies = 2 * bytes_of_rows(rows) * int(sizes.sum()) // max(int(counts.sum()), 1)
    at_once = min(threads(n_jobs), int(sizes.size))
    return MemoryEstimate(at_once * one.total + copies + part_bytes, one.minimum)


def refuse_machines(
    estimator: Any, X: Any, labels: NDArray[Any], code: Code, shared: bool, n_jobs: int | None
) -> None:
    """Raise a MemoryError if the machines need more memory than is available."""
    try:
        least = memory_of_machines(estimator, as_rows(X), labels, code, shared, n_jobs).minimum
    except (TypeError, ValueError):
        return  # The estimator reports what is wrong with X and the parameters.
    remedy = f"give another {type(estimator).__name__}, whose estimate_memory is less"
    refuse_beyond_memory("CodedClassifier.fit", least, remedy)
