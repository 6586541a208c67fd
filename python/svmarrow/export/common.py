"""The shared parts of all exported programs: the model, its origin, trees as loops, rounding of outputs.

A tree of local expansions is tables: an inner node compares w'x with theta |x|, where |x| counts as 1 for a
sample of zeros. A leaf has a run of *members*: places of vectors with a coefficient for each output.

Rounding is measured on samples near the vectors of the model. A sum of large terms that cancel, as in least
squares with a small penalty, loses its digits in single precision, and so does a sample far from the origin
before it is centered. Bounds of the worst case would refuse models that work, so the exported arithmetic is
run on samples and compared with the model in double precision.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from svmarrow._support.decoding import LOSSES
from svmarrow._support.parameters import MATERN_KERNELS, UNIT_DIAGONAL_KERNELS, missing_values, warn_caller
from svmarrow._support.rows import as_rows, dense, one_blas_thread, product
from svmarrow.expansion.composites import ExpansionSum, ExpansionTree
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.interop.convert import as_expansion
from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.outputs import OutputSpec, code_scores
from svmarrow.models.preparation import Affine, Chain, Parts, PiecewiseLinear

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.models.preparation import Step

__all__ = [
    "LoopOutputs",
    "TreeOutputs",
    "TreeTables",
    "both_outputs",
    "check_rounding",
    "check_text",
    "dense_vectors",
    "kernel_columns",
    "kernel_rows",
    "linear_weights",
    "loop_outputs",
    "matern_rate",
    "output_spec_of",
    "output_spread",
    "provenance",
    "rounded_kernel_rows",
    "rows_in_precision",
    "samples_of",
    "step_in_precision",
    "tree_tables",
]

GOLDEN_RATIO = (1.0 + 5.0**0.5) / 2.0
#: 2 nu of the Matérn kernels.
_TWICE_NU = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0}


# --- the model and its origin ---


def output_spec_of(model: Any) -> OutputSpec:
    """The expansion of a model, in the order in which it is added, with the meaning of its outputs.

    Raises
    ------
    TypeError, ValueError, NotFittedError
        As `svmarrow.as_expansion`; a ValueError for a kernel that is a Python function.
    """
    converted = as_expansion(model)
    expansion = converted.expansion_
    if callable(expansion.kernel):
        raise ValueError(
            f"kernel={expansion.kernel!r} is a Python function and cannot be exported: use a built-in kernel"
        )
    if not isinstance(converted, KernelExpansion):
        spec: OutputSpec = converted._output_spec()
        preparation = spec.preparation
        if preparation is not None:
            # In any precision a program leaves short samples as they are where the fit did.
            is_single = expansion.vectors.dtype == np.float32
            preparation = preparation.with_limits_of("float32" if is_single else "float64")
        return spec._replace(expansion=_mixed(spec.expansion), preparation=preparation)
    precomputed = expansion.kernel == "precomputed"
    columns = int(expansion.vectors.max(initial=-1)) + 1 if precomputed else expansion.vectors.shape[1]
    return OutputSpec(_mixed(expansion), "outputs", columns)


def _mixed(expansion: KernelExpansion) -> KernelExpansion:
    """The expansion with its vectors in a mixed order.

    Machines order their vectors by class. A sum in that order grows to half the sum of the sizes before it
    falls, and so does its rounding; multiples of the golden ratio modulo 1 take vectors of all parts in turn.
    """
    if isinstance(expansion, ExpansionTree):
        # Leaves have few vectors.
        return expansion
    if isinstance(expansion, ExpansionSum):
        return ExpansionSum([_mixed(part) for part in expansion.parts])
    order = np.argsort(np.arange(expansion.n_vectors) * GOLDEN_RATIO % 1.0)
    return expansion.replaced(vectors=expansion.vectors[order], coefficients=expansion.coefficients[order])


def check_text(labels: NDArray[Any]) -> None:
    """Refuse labels that are no Unicode text."""
    for label in labels.tolist():
        try:
            label.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"class {label!a} cannot be exported: it must be Unicode text, without single surrogates"
            ) from None


def matern_rate(kernel: str, gamma: float) -> float:
    """The factor of the Euclidean distance in a Matérn kernel, sqrt(2 nu) gamma."""
    return float(np.sqrt(_TWICE_NU[kernel])) * gamma


def dense_vectors(expansion: KernelExpansion) -> NDArray[np.float64]:
    """The vectors, dense and in double precision, (m, d)."""
    return dense(expansion.vectors, np.float64)


def kernel_columns(spec: OutputSpec) -> int:
    """Columns of the rows that the kernel sees."""
    if spec.expansion.kernel == "precomputed":
        return spec.n_features
    return int(spec.expansion.vectors.shape[1])


def linear_weights(expansion: KernelExpansion, n_features: int) -> NDArray[np.float64] | None:
    """Weights (d, q) of the features for a linear kernel if they are fewer numbers than the vectors."""
    m, d, q = expansion.n_vectors, n_features, expansion.n_outputs
    if m == 0:
        return np.zeros((d, q))
    if expansion.kernel != "linear" or d * q > m * (d + q):
        return None
    return dense_vectors(expansion).T @ expansion.coefficients


def provenance(expansion: KernelExpansion) -> dict[str, str]:
    """The origin of a model as an exported file states it: producer, kernel, digest."""
    digest = hashlib.sha256()
    if isinstance(expansion, ExpansionTree):
        arrays = [array for name, array in sorted(expansion.state.items()) if name != "rows"]
        parts = [dense_vectors(expansion), *arrays]
    else:
        parts = [dense_vectors(expansion), expansion.coefficients, expansion.intercepts]
    for array in parts:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    kernels = []
    for part in expansion.parts:
        name, gamma, coef0, degree = part.kernel_spec
        digest.update(repr(part.kernel_spec).encode())
        kernels.append(f"{name}, gamma={gamma!r}, coef0={coef0!r}, degree={degree}")
        if isinstance(expansion, ExpansionSum):
            digest.update(repr(part.n_vectors).encode())
            kernels[-1] = f"{part.n_vectors} vectors of {kernels[-1]}"
    return {
        "producer": f"svmarrow {version('svmarrow')}",
        "kernel": "; ".join(kernels),
        "sha256": digest.hexdigest(),
    }


#: Root mean square errors of an output, relative to its spread, above which an export warns and is refused.
#: An error of 1 % changes 0.2 to 0.5 % of a classifier's labels. Bytes are for models whose loss is measured.
WARNING_ERROR = {"float32": 1e-3, "float64": 1e-3, "int8": 0.5}
MAX_ERROR = {"float32": 0.05, "float64": 0.05, "int8": 0.5}
#: Number of samples on which an export is compared with the model.
N_SAMPLES = 128
#: Kernel values of a block of rows, which stay in the cache.
BLOCK_VALUES = 10**6
#: Maximum number of kernel values, with at least `MIN_SAMPLES` samples.
MAX_KERNEL_VALUES = 10**7
MIN_SAMPLES = 16
#: Maximum number of multiplications of all kernel values, with at least as many samples.
MAX_WORK = 10**8
#: Outputs that vary by less than this, relative to their size, are constant.
CONSTANT = 1e-9


class LoopOutputs:
    """The outputs of an expansion in single or double precision, added one after the other.

    Parameters
    ----------
    expansion : KernelExpansion
        With a built-in kernel.
    n_features : int
        Columns of the rows that the kernel takes.
    dtype : {"float32", "float64"}
        The precision.
    """

    expansion: KernelExpansion
    dtype: np.dtype[Any]
    weights: NDArray[np.float64] | None

    def __init__(self, expansion: KernelExpansion, n_features: int, dtype: str = "float32") -> None:
        self.expansion, self.dtype = expansion, np.dtype(dtype)
        self.weights = linear_weights(expansion, n_features)

    def __call__(self, X: Any) -> NDArray[Any]:
        """The outputs (n, q) of rows (n, d)."""
        n_rows = max(1, BLOCK_VALUES // max(1, self.expansion.n_vectors))
        X = np.asarray(X, dtype=self.dtype)
        with np.errstate(all="ignore"):
            return np.concatenate([self._outputs(X[i : i + n_rows]) for i in range(0, len(X), n_rows)])

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        expansion = self.expansion
        if self.weights is not None:
            values, factors = X, self.weights
        elif expansion.kernel == "precomputed":
            rows = np.asarray(expansion.vectors[:, 0]).astype(np.int64)
            values, factors = X[:, rows], expansion.coefficients
        else:
            values, factors = self._kernel_values(X), expansion.coefficients
        out: NDArray[Any] = np.zeros((len(X), expansion.n_outputs), dtype=self.dtype)
        for value, factor in zip(values.T, factors.astype(self.dtype), strict=True):
            out += value[:, np.newaxis] * factor
        out += expansion.intercepts.astype(self.dtype)
        return out

    def _kernel_values(self, X: NDArray[Any]) -> NDArray[Any]:
        expansion, kernel = self.expansion, str(self.expansion.kernel)
        Z = dense_vectors(expansion).astype(self.dtype)
        total = np.zeros((len(X), len(Z)), dtype=self.dtype)
        # Columns of zeros add nothing.
        used = np.flatnonzero(X.any(axis=0) | Z.any(axis=0))
        for x, z in zip(X.T[used, :, np.newaxis], Z.T[used], strict=True):
            if kernel not in UNIT_DIAGONAL_KERNELS:
                total += x * z
            elif kernel == "laplacian":
                total += np.abs(x - z)
            elif kernel == "chi2":
                t, both = x - z, x + z
                total += np.divide(t * t, both, out=np.zeros_like(t), where=both > 0.0)
            else:
                total += np.square(x - z)
        gamma, coef0 = np.array([expansion.gamma, expansion.coef0], dtype=self.dtype)
        if kernel in MATERN_KERNELS:
            a = np.minimum(matern_rate(kernel, expansion.gamma) * np.sqrt(total), 100.0)
            rest = {"matern12": 0.0 * a, "matern32": a, "matern52": a + a * a / 3.0}[kernel]
            return np.asarray((1.0 + rest) * np.exp(-a))
        if kernel in UNIT_DIAGONAL_KERNELS:
            return np.asarray(np.exp(-gamma * total))
        if kernel == "linear":
            return total
        inner = gamma * total + coef0
        if kernel == "poly":
            return np.asarray(reduce(np.multiply, [inner] * expansion.degree, np.ones_like(inner)))
        return np.asarray(1.0 - 2.0 / (np.exp(2.0 * inner) + 1.0))


def samples_of(spec: OutputSpec) -> NDArray[np.float64] | None:
    """Samples as the model takes them: half of them are vectors, the others lie between two vectors.

    None if the model has no vectors, or only the indices of training samples (precomputed kernel).
    """
    expansion, m = spec.expansion, spec.expansion.n_vectors
    if m == 0 or expansion.kernel == "precomputed":
        return None
    rng = np.random.default_rng(0)
    work = max(MAX_KERNEL_VALUES // m, 1), max(MAX_WORK // (m * max(kernel_columns(spec), 1)), 1)
    n = int(np.clip(min(work), MIN_SAMPLES, N_SAMPLES))
    first, second = (dense(expansion.vectors[rng.integers(m, size=n)]).astype(np.float64) for _ in range(2))
    shares = rng.random((n, 1))
    shares[::2] = 0.0
    rows: NDArray[np.float64] = first + shares * (second - first)
    if any(part.kernel == "chi2" for part in expansion.parts):
        # The preimage of 0 may be mapped to a negative number, which this kernel does not take.
        rows = np.maximum(rows, 1e-6 * rows.max())
    return rows if spec.preparation is None else _preimages(spec.preparation, rows)


def _preimages(step: Step, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Samples that a step maps near the given ones."""
    match step:
        case Chain():
            return reduce(lambda found, one: _preimages(one, found), reversed(step.steps), rows)
        case Affine():
            if step.matrix is not None:
                with one_blas_thread():
                    inverse = np.linalg.pinv(step.matrix)
                rows = product(rows if step.offset is None else rows - step.offset, inverse)
            return rows * step.scale + step.centre
        case PiecewiseLinear():
            columns = zip(rows.T, step.knots, step.values, strict=True)
            return np.stack([_knot_preimages(*column) for column in columns], axis=1)
        case Parts():
            found = np.zeros((len(rows), step.n_in))
            widths = [
                taken.size if part is None else part.n_out
                for taken, part in zip(step.columns, step.steps, strict=True)
            ]
            blocks = np.split(rows, np.cumsum(widths)[:-1], axis=1)
            # Of several parts that take a column the first decides.
            for taken, part, block in reversed(list(zip(step.columns, step.steps, blocks, strict=True))):
                found[:, taken] = block if part is None else _preimages(part, block)
            return found
        case Impute() | Dates():
            return rows[:, : step.n_in]
        case Encode():
            categories, start = [], 0
            for table in step.tables:
                block = rows[:, start : start + table.numbers.shape[1]]
                labels = np.append(table.categories.astype(np.float64), np.nan)
                categories.append(labels[cdist(block, table.numbers).argmin(axis=1)])
                start += block.shape[1]
            return np.stack(categories, axis=1)
    # Clipped and normalized samples are mapped to themselves.
    return rows


def _knot_preimages(
    values: NDArray[np.float64], knots: NDArray[np.float64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Numbers that a piecewise linear function, with values `at` its knots, maps to the given ones."""
    low, high = np.minimum(at[:-1], at[1:]), np.maximum(at[:-1], at[1:])
    within = (low <= values[:, np.newaxis]) & (values[:, np.newaxis] <= high)
    k = within.argmax(axis=1)
    rise = at[k + 1] - at[k]
    share = np.divide(values - at[k], rise, out=np.zeros_like(values), where=rise != 0.0)
    found: NDArray[np.float64] = knots[k] + np.clip(share, 0.0, 1.0) * (knots[k + 1] - knots[k])
    return found


def rows_in_precision(X: ArrayLike, dtype: str) -> NDArray[Any]:
    """Samples as a program in a precision takes them, with NaN for gaps."""
    rows = dense(X)
    with np.errstate(over="ignore"):
        return (np.where(missing_values(rows), np.nan, rows) if rows.dtype == object else rows).astype(dtype)


def step_in_precision(part: Any, dtype: str) -> Any:
    """A step, or a part of one, with its numbers in a precision."""
    if isinstance(part, tuple):
        return tuple(step_in_precision(one, dtype) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        values = {field.name: step_in_precision(getattr(part, field.name), dtype) for field in fields(part)}
        return replace(part, **values)
    return part.astype(dtype) if getattr(part, "dtype", None) == np.float64 else part


def kernel_rows(X: ArrayLike, spec: OutputSpec) -> NDArray[Any]:
    """Rows as the kernel sees them, dense.

    Raises
    ------
    ValueError
        For a wrong number of features and values that the preparation does not take.
    """
    rows = as_rows(X) if spec.preparation is None else spec.preparation.rows(X)
    if rows.shape[1] != kernel_columns(spec):
        raise ValueError(f"X has {rows.shape[1]} columns, the model has {kernel_columns(spec)}")
    return dense(rows).astype(np.float64)


def rounded_kernel_rows(X: ArrayLike, spec: OutputSpec, dtype: str) -> NDArray[Any]:
    """Rows as the kernel sees them in a program in a precision."""
    rounded = spec._replace(preparation=step_in_precision(spec.preparation, dtype))
    return kernel_rows(rows_in_precision(X, dtype), rounded)


def both_outputs(
    spec: OutputSpec,
    computed: Callable[[NDArray[np.float64]], NDArray[Any]],
    samples: ArrayLike,
    dtype: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The outputs of the model, and those that are computed of samples and prepared rows in a precision."""
    outputs = spec.expansion.decision_function(kernel_rows(samples, spec))
    return outputs, computed(rounded_kernel_rows(samples, spec, dtype)).astype(np.float64)


def output_spread(spec: OutputSpec, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The size of each output's differences that matter.

    The standard deviation of predictions; the root mean square of constant predictions, of outputs whose sign
    is a label, and of the distances from the mean of all outputs where the largest one decides: with small
    samples or a large penalty all outputs are close to equal intercepts. Where the largest sum of losses
    decides, these are as close, and their distances are the size if that is smaller. Sigmoids are steep where
    outputs hardly differ: then the size is that of the distances from where the probabilities are equal.
    Where the samples are those of `samples_of`, pass the outputs of every second one: those of vectors, since
    outputs may be of another size between them.
    """
    size: NDArray[np.float64] = np.sqrt((outputs**2).mean(axis=0))
    if spec.winner == "largest":
        size = np.maximum(CONSTANT * size, _apart(outputs))
    elif spec.winner.removeprefix("mean_") in LOSSES and spec.matrix is not None:
        losses = code_scores(outputs, spec.matrix, spec.winner, 1)
        size = np.maximum(CONSTANT * size, np.minimum(size, _apart(losses)))
    if spec.calibration is not None and spec.calibration.link != "softmax":
        size = np.maximum(CONSTANT * size, np.minimum(size, _from_thresholds(spec, outputs)))
    if spec.kind in ("classes", "inside"):
        return size
    deviation: NDArray[np.float64] = outputs.std(axis=0)
    return np.where(deviation > CONSTANT * size, deviation, size)


def _from_thresholds(spec: OutputSpec, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root mean square distances from the values at which sigmoids are 1/2, for each output."""
    calibration = spec.calibration
    assert calibration is not None
    is_steep = calibration.slopes != 0.0
    if not is_steep.any():
        return np.full(outputs.shape[1], np.inf)
    thresholds = -calibration.offsets[is_steep] / calibration.slopes[is_steep]
    values = spec._calibrated_values(outputs)
    distances = np.sqrt(((values[:, is_steep] - thresholds) ** 2).mean(axis=0))
    if values.shape[1] != outputs.shape[1] or not is_steep.all():
        # Scores mix outputs.
        return np.full(outputs.shape[1], distances.min())
    return np.asarray(distances)


def _apart(scores: NDArray[np.float64]) -> float:
    """The size of the distances of scores from their mean, the largest of all classes."""
    return float(np.sqrt(((scores - scores.mean(axis=1, keepdims=True)) ** 2).mean(axis=0)).max())


def check_rounding(
    outputs: NDArray[np.float64], computed: NDArray[Any], spread: NDArray[np.float64], dtype: str
) -> None:
    """Refuse an export whose outputs differ too much from the model's, and warn of smaller differences.

    Parameters
    ----------
    outputs : ndarray of shape (n_samples, n_outputs)
        The model's, in double precision.
    computed : ndarray of shape (n_samples, n_outputs)
        The export's.
    spread : ndarray of shape (n_outputs,)
        The size of each output's differences that matter.
    dtype : {"float32", "float64", "int8"}
        The numbers of the export.

    Raises
    ------
    ValueError
        If the root mean square error of an output exceeds its spread times ``MAX_ERROR[dtype]``.

    Warns
    -----
    UserWarning
        If it exceeds the spread times ``WARNING_ERROR[dtype]``.
    """
    with np.errstate(all="ignore"):
        error = np.sqrt(((computed - outputs) ** 2).mean(axis=0))
        shares = np.where(error > 0.0, error / spread, 0.0)
    # NaN, of a sum that overflows, counts as infinite.
    shares = np.nan_to_num(np.where(np.isnan(error), np.inf, shares), nan=np.inf, posinf=np.inf)
    worst = int(shares.argmax())
    if shares[worst] <= WARNING_ERROR[dtype]:
        return
    message = (
        f"dtype={dtype!r}: its rounding changes output {worst} by {100.0 * shares[worst]:.3g} % of its "
        f"spread, where {100.0 * MAX_ERROR[dtype]:g} % is the maximum: use dtype='float64'"
    )
    if shares[worst] > MAX_ERROR[dtype]:
        raise ValueError(message)
    warn_caller(message, UserWarning)


# --- trees ---

_LEAF, _LINEAR = 0, 1


@dataclass(frozen=True)
class TreeTables:
    """The arrays of a program.

    Attributes
    ----------
    directions : ndarray of shape (n_inner, n_columns)
        w of each inner node.
    thresholds : ndarray of shape (n_inner,)
        theta of each inner node.
    children : ndarray of int64 of shape (n_inner, 2)
        Left child, where w'x > theta |x|, and right child: an inner node i is i, a leaf l is -1 - l.
    depth : int
        Maximum number of inner nodes of a path.
    starts : ndarray of int64 of shape (n_leaves + 1,)
        First member of each leaf.
    members : ndarray of int64 of shape (n_members,)
        Places of vectors.
    coefficients : ndarray of shape (n_members, n_outputs)
        Coefficients of the members.
    intercepts : ndarray of shape (n_leaves, n_outputs)
        Intercepts of the leaves.
    nodes : ndarray of int64 of shape (n_leaves,)
        The leaves' nodes in the tree.
    """

    directions: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    children: NDArray[np.int64]
    depth: int
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    nodes: NDArray[np.int64]


def tree_tables(tree: ExpansionTree) -> TreeTables:
    """The arrays of a tree; its members are places in `tree.vectors`.

    Raises
    ------
    ValueError
        For a tree with other rules than hyperplanes.
    """
    state = tree.state
    kinds, counts = state["kinds"], np.diff(state["starts"]).astype(np.int64)
    if not np.isin(kinds, (_LEAF, _LINEAR)).all():
        raise ValueError(
            "the tree compares samples with stored ones, and an exported tree has hyperplanes alone: make it "
            "by compress(model, X, y, max_evaluations=...)"
        )
    inner, leaves = np.flatnonzero(kinds == _LINEAR), np.flatnonzero(kinds == _LEAF)
    numbers = np.empty(kinds.size, dtype=np.int64)
    numbers[inner], numbers[leaves] = np.arange(inner.size), -1 - np.arange(leaves.size)
    children = state["children"].astype(np.int64)
    # A child has a larger number than its parent.
    depths = np.zeros(kinds.size, dtype=np.int64)
    for node in inner:
        depths[children[node]] = depths[node] + 1
    in_leaves = np.repeat(kinds == _LEAF, counts)
    places = np.unique(state["members"][in_leaves], return_inverse=True)[1]
    return TreeTables(
        directions=state["directions"],
        thresholds=state["thresholds"][inner],
        children=numbers[children[inner]],
        depth=int(depths.max(initial=0)),
        starts=np.append(0, np.cumsum(counts[leaves])),
        members=places.reshape(-1).astype(np.int64),
        coefficients=state["weights"][in_leaves],
        intercepts=state["intercepts"][leaves],
        nodes=leaves,
    )


class TreeOutputs:
    """The outputs of a tree in single or double precision, those of each leaf as `LoopOutputs` adds them.

    Parameters
    ----------
    tree : ExpansionTree
        With hyperplanes alone.
    n_features : int
        Columns of the rows that the kernel takes.
    dtype : {"float32", "float64"}
        The precision.
    """

    def __init__(self, tree: ExpansionTree, n_features: int, dtype: str = "float32") -> None:
        self.tables: TreeTables = tree_tables(tree)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.leaves: list[LoopOutputs] = [
            LoopOutputs(tree.leaf_expansion(int(node)), n_features, dtype) for node in self.tables.nodes
        ]

    def __call__(self, X: Any) -> NDArray[Any]:
        """The outputs (n, q) of rows (n, d)."""
        X = np.asarray(X, dtype=self.dtype)
        out = np.zeros((len(X), self.tables.intercepts.shape[1]), dtype=self.dtype)
        leaves = self.routes(X)[0]
        for leaf in np.unique(leaves):
            out[leaves == leaf] = self.leaves[leaf](X[leaves == leaf])
        return out

    def routes(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The leaves of rows, and the smallest distance from a hyperplane on the path, relative to |x|."""
        tables = self.tables
        directions, thresholds = tables.directions.astype(self.dtype), tables.thresholds.astype(self.dtype)
        at = np.full(len(X), 0 if len(thresholds) else -1, dtype=np.int64)
        margins = np.full(len(X), np.inf)
        with np.errstate(all="ignore"):
            lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
            lengths[lengths == 0.0] = 1.0
            while (inside := np.flatnonzero(at >= 0)).size:
                node, length = at[inside], lengths[inside]
                excess = np.einsum("ij,ij->i", X[inside], directions[node]) - thresholds[node] * length
                margins[inside] = np.fmin(margins[inside], np.abs(excess) / length)
                at[inside] = tables.children[node, np.where(excess > 0.0, 0, 1)]
        return -1 - at, margins


def loop_outputs(expansion: KernelExpansion, n_features: int, dtype: str) -> Callable[[Any], NDArray[Any]]:
    """The outputs of an expansion or a tree in a precision, added one after the other."""
    if isinstance(expansion, ExpansionTree):
        return TreeOutputs(expansion, n_features, dtype)
    functions = [LoopOutputs(part, n_features, dtype) for part in expansion.parts]
    return lambda X: reduce(np.add, [function(X) for function in functions])
