"""The machines of all columns of a code: together where they can share, else one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils.validation import has_fit_parameter

from svmarrow._support.rows import default_gamma, threads
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.least_squares._base import SquareLossClassifier
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.svm._classifier import KernelClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow._support.certificate import Certificate
    from svmarrow._support.codes import Code

__all__ = ["Machines", "train"]


@dataclass
class Machines:
    """What training gives: one expansion for all columns, or an estimator for each."""

    #: All outputs over one pool of vectors; None where the machines are no expansions of one kernel.
    expansion: KernelExpansion | None = None
    #: The support vector machine behind it, which can go on from where it is.
    machine: Any = None
    #: What the solver vouches for.
    certificate: Certificate | None = None
    #: Training rows that are vectors of the expansion; None where that is not known.
    support: NDArray[np.int64] | None = None
    #: Outputs at each training row of machines that were trained without it, (n, F); None where not known.
    left_out: NDArray[np.float64] | None = None
    #: A fitted estimator for each distinct column, where each was fitted by itself.
    estimators: list[Any] = field(default_factory=list)
    #: Place in `estimators` of each column, and its sign.
    which: NDArray[np.intp] | None = None
    signs: NDArray[np.float64] | None = None
    #: Training rows of each estimator, for estimators of kernel matrices.
    columns: list[NDArray[np.intp]] | None = None

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
    shared: bool,
    n_jobs: int | None,
    last: Machines | None = None,
) -> Machines:
    """Train all columns.

    Parameters
    ----------
    estimator : estimator
        The binary machine, not fitted; it is cloned.
    X : {array-like, sparse matrix} of shape (n, d)
        Rows.
    labels : ndarray of int64 of shape (n,)
        Index of each row's class.
    code : Code
        The code.
    classes : ndarray of shape (n_classes,)
        The labels of the classes, which class weights are about.
    sample_weight : ndarray of shape (n,) or None
        Weights of the rows.
    shared : bool
        Whether machines share their work where they can.
    n_jobs : int or None
        Threads.
    last : Machines or None
        Those of an earlier fit of the same code, to go on from with ``warm_start=True``.
    """
    if shared and isinstance(estimator, KernelClassifier):
        return _one_set_of_rows(estimator, X, classes[labels], code, sample_weight, n_jobs, last)
    if shared and isinstance(estimator, SquareLossClassifier) and not code.has_zeros:
        return _one_system(estimator, X, classes[labels], code, sample_weight, n_jobs)
    trained = _one_by_one(estimator, X, labels, code, sample_weight, n_jobs)
    if isinstance(estimator, SquareLossClassifier):
        trained.left_out = _left_out(trained, X, labels, code)
    return trained


def _one_set_of_rows(
    estimator: KernelClassifier,
    X: Any,
    y: NDArray[Any],
    code: Code,
    sample_weight: NDArray[np.float64] | None,
    n_jobs: int | None,
    last: Machines | None,
) -> Machines:
    """Support vector machines: one set of kernel rows serves all of them."""
    chosen, which, signs = code.distinct_columns()
    machine = clone(estimator)
    if estimator.warm_start and last is not None and type(last.machine) is type(estimator):
        machine = last.machine.set_params(**machine.get_params(deep=False))
    if n_jobs is not None:
        machine.set_params(n_jobs=n_jobs)
    machine._fit_code(X, y, np.ascontiguousarray(code.matrix[:, chosen]), sample_weight)
    return Machines(
        expansion=spread(machine.expansion_, which, signs),
        machine=machine,
        certificate=machine.certificate_,
        support=machine.support_.astype(np.int64),
    )


def _one_system(
    estimator: SquareLossClassifier,
    X: Any,
    y: NDArray[Any],
    code: Code,
    sample_weight: NDArray[np.float64] | None,
    n_jobs: int | None,
) -> Machines:
    """Least squares: solutions are linear in the targets, so those of one-vs-rest give every code's."""
    machine: Any = clone(estimator)
    if n_jobs is not None:
        machine.set_params(n_jobs=n_jobs)
    machine.fit(X, y, **_weights(machine, sample_weight))
    return recoded(machine, code)


def recoded(machine: Any, code: Code) -> Machines:
    """The machines of a code without zeros from a fitted one-vs-rest classifier of square loss."""
    mixing = _mixing_matrix(code)
    full = machine.expansion_
    left_out = getattr(machine, "loo_decision_", None)
    if left_out is not None:
        left_out = left_out.reshape(len(left_out), -1) @ mixing
    expansion = KernelExpansion(
        full.vectors,
        full.coefficients @ mixing,
        full.intercepts @ mixing,
        full.kernel,
        full.gamma,
        full.coef0,
        full.degree,
    )
    return Machines(expansion=expansion, left_out=left_out)


def _mixing_matrix(code: Code) -> NDArray[np.float64]:
    """What takes one-vs-rest outputs of square loss to those of a code without zeros (thesis (4.67)).

    With u_j the solution for the targets [class is j], one-vs-rest has g_j = 2 u_j - s, where s = sum_j u_j,
    and a column of the code sum_j M_ji u_j. From sum_j g_j = (2 - N) s follows u_j = (g_j - sum_i g_i /
    (N - 2)) / 2. Two classes have one output g = u_1 - u_0.
    """
    matrix = code.matrix.astype(np.float64)
    n = code.n_classes
    if n == 2:
        return matrix[1:]
    mixing: NDArray[np.float64] = 0.5 * (matrix - matrix.sum(axis=0) / (n - 2))
    return mixing


def _left_out(trained: Machines, X: Any, labels: NDArray[np.int64], code: Code) -> NDArray[np.float64] | None:
    """Outputs at each row without it: exact values where a machine saw the row, else its output."""
    if any(not hasattr(machine, "loo_decision_") for machine in trained.estimators):
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


def spread(
    expansion: KernelExpansion, which: NDArray[np.intp], signs: NDArray[np.float64]
) -> KernelExpansion:
    """The outputs of all columns from those of the distinct ones."""
    if np.array_equal(which, np.arange(expansion.n_outputs)) and (signs > 0).all():
        return expansion
    return KernelExpansion(
        expansion.vectors,
        expansion.coefficients[:, which] * signs,
        expansion.intercepts[which] * signs,
        expansion.kernel,
        expansion.gamma,
        expansion.coef0,
        expansion.degree,
    )


def _one_by_one(
    estimator: Any,
    X: Any,
    labels: NDArray[np.int64],
    code: Code,
    sample_weight: NDArray[np.float64] | None,
    n_jobs: int | None,
) -> Machines:
    """Any binary classifier: a clone for each distinct column, on the rows of its classes."""
    _weights(estimator, sample_weight)
    pairwise = bool(get_tags(estimator).input_tags.pairwise)
    if sp.issparse(X):
        if pairwise:
            raise TypeError("sparse X is not allowed with a precomputed kernel: it must be dense")
        X = X.tocsr()
    elif pairwise:
        X = check_array(X)
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"X has shape {X.shape}: a precomputed kernel matrix must be square")
    base = _of_one_kernel(clone(estimator), X, pairwise)
    jobs = threads(n_jobs)
    chosen, which, signs = code.distinct_columns()
    if jobs > 1 and chosen.size > 1 and _is_ours(base) and getattr(base, "n_jobs", 1) is None:
        # The columns are what runs in parallel.
        base.set_params(n_jobs=1)
    sides = [code.matrix[labels, column] for column in chosen]
    used = [np.flatnonzero(side) for side in sides]

    def fit(number: int) -> Any:
        side, rows = sides[number], used[number]
        every = rows.size == side.size
        part = X if every else (X[np.ix_(rows, rows)] if pairwise else _safe_indexing(X, rows))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
        return clone(base).fit(part, side[rows].astype(np.int64), **weights)

    fitted = Parallel(n_jobs=min(jobs, chosen.size), prefer="threads")(
        delayed(fit)(number) for number in range(chosen.size)
    )
    for machine in fitted:
        if not hasattr(machine, "decision_function"):
            raise TypeError(f"estimator={estimator!r} is not allowed: it must have decision_function")
        machine_classes = getattr(machine, "classes_", np.array([-1, 1]))
        if len(machine_classes) != 2:
            raise ValueError(f"{type(machine).__name__} did not see both sides of a column")
    expansions = [_binary_expansion(machine) for machine in fitted]
    if expansions and all(expansion is not None for expansion in expansions):
        pool = _pooled(expansions, used if pairwise else None)
        if pool is not None:
            return Machines(expansion=spread(pool, which, signs), estimators=fitted)
    columns = used if pairwise else None
    return Machines(estimators=fitted, which=which, signs=signs, columns=columns)


def _weights(estimator: Any, sample_weight: NDArray[np.float64] | None) -> dict[str, Any]:
    if sample_weight is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(f"{type(estimator).__name__}.fit takes no sample_weight: leave it out")
    return {"sample_weight": sample_weight}


def _is_ours(estimator: Any) -> bool:
    return type(estimator).__module__.partition(".")[0] == "svmarrow"


def _of_one_kernel(estimator: Any, X: Any, pairwise: bool) -> Any:
    """A kernel machine of svmarrow whose width follows from the rows takes it from all of them."""
    if not _is_ours(estimator):
        return estimator
    gamma = getattr(estimator, "gamma", None)
    kernel = getattr(estimator, "kernel", None)
    if isinstance(gamma, str) and isinstance(kernel, str) and not pairwise:
        rows = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if rows.ndim == 2 and rows.dtype.kind in "buif" and rows.size:
            estimator.set_params(gamma=default_gamma(gamma, rows, precomputed=False))
    return estimator


def _binary_expansion(machine: Any) -> KernelExpansion | None:
    """The machine as an expansion of one output, where it is one."""
    try:
        converted = as_expansion(machine)
    except (TypeError, ValueError):
        return None
    if isinstance(converted, ExpansionClassifier) and converted.expansion.n_outputs == 1:
        expansion = converted.expansion
        return None if callable(expansion.kernel) else expansion
    return None


def _pooled(expansions: list[Any], columns: list[NDArray[np.intp]] | None) -> KernelExpansion | None:
    """Single outputs over one pool of vectors; None where the kernels differ."""
    first = expansions[0]
    kinds = {(sp.issparse(expansion.vectors), str(expansion.vectors.dtype)) for expansion in expansions}
    if len(kinds) > 1 or any(expansion.kernel_spec != first.kernel_spec for expansion in expansions):
        return None
    vectors = [expansion.vectors for expansion in expansions]
    if columns is not None:
        # Indices among the rows of a machine to indices among all rows.
        vectors = [
            of[part[:, 0].astype(np.intp)][:, np.newaxis].astype(np.float64)
            for part, of in zip(vectors, columns, strict=True)
        ]
    everything = sp.vstack(vectors, format="csr") if sp.issparse(vectors[0]) else np.concatenate(vectors)
    if sp.issparse(everything):
        everything = sp.csr_array(everything)
    kept, place = _distinct_rows(everything)
    coefficients = np.zeros((kept.size, len(expansions)))
    start = 0
    for output, expansion in enumerate(expansions):
        end = start + expansion.n_vectors
        np.add.at(coefficients[:, output], place[start:end], expansion.coefficients[:, 0])
        start = end
    return KernelExpansion(
        everything[kept],
        coefficients,
        np.concatenate([expansion.intercepts for expansion in expansions]),
        first.kernel,
        first.gamma,
        first.coef0,
        first.degree,
    )


def _distinct_rows(rows: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of each kind of row, rising, and for each row its place among them."""
    keys: Any
    if sp.issparse(rows):
        bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        parts = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in bounds]
        keys = np.array(parts, dtype=object)
        numbers: dict[bytes, int] = {}
        ids = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
    else:
        whole = np.ascontiguousarray(rows)
        keys = whole.view(np.dtype((np.void, whole.dtype.itemsize * max(1, whole.shape[1])))).reshape(-1)
        ids = np.unique(keys, return_inverse=True)[1].reshape(-1)
    _, kept, place = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(kept)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return kept[order], rank[place.reshape(-1)]
