"""A builder of ONNX graphs, and with it the outputs F of samples: preparation, kernel expansions, trees.

F = K(X, Z) B + b, where K is

| kernel | entries | operators |
|---|---|---|
| linear | x'z | `Gemm`; weights of the columns where they are fewer numbers |
| poly, sigmoid | (g x'z + c)^p, tanh(g x'z + c) | `Gemm`, then `Pow` or `Tanh` |
| rbf | exp(2 g y'w - g |y|^2 - g |w|^2), y = x - mean(z), w = z - mean(z) | `Gemm`, `Exp` |
| matern12 to matern52 | polynomials of a times exp(-a), a = c ||x - z|| | `Scan` over the columns, `Sqrt` |
| laplacian, chi2 | exp(-g sum_c t(x_c, z_c)) | `Scan` over the columns: at most (n, m) is held |
| precomputed | the columns of X that are vectors | `Gather` |

Inner products of centered rows lose few digits where those of rows far from the origin would cancel; what
rounding leaves above 0 in the exponent is cut off, as svmarrow itself does it. Cost: n m d
multiplications in one `Gemm`. The operator SVMClassifier of ai.onnx.ml is not used: it has four kernels,
single precision and one coding, and takes six times as long in onnxruntime.

A tree finds the leaves of all samples level by level, and `Scan` goes over the samples: each gathers the
vectors of its leaf, and K is the same function of the differences or the inner products.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import MATERN_KERNELS, UNIT_DIAGONAL_KERNELS
from svmarrow.export.common import dense_vectors, linear_weights, matern_rate, tree_tables
from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.preparation import Affine, Chain, Clip, Normalize, Parts, PiecewiseLinear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray
    from onnx import GraphProto, NodeProto, ValueInfoProto

    from svmarrow.expansion.composites import ExpansionTree
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.export.common import TreeTables
    from svmarrow.models.preparation import Step

__all__ = ["INT64", "Graph", "append_expansion", "append_step", "append_tree", "import_onnx"]

#: ONNX's number of the type of 64-bit integers, for the attribute `to` of `Cast`.
INT64 = 7


# --- the builder ---


class Graph:
    """The nodes and constants of a graph, of a local function, or of the body of a loop.

    Every operator of ONNX is a method::

        graph.Add(graph.MatMul("X", weights), 1.0, name="scores")

    An operand is the name of a result or a constant: an array, a number, or a list of integers. Keywords are
    the attributes of the node, but for `name`, the name of its result; without it the name is made from the
    operator.

    Parameters
    ----------
    dtype : {"float32", "float64"}
        Type of the samples and of all constants that are not integers.
    outer : Graph, default=None
        The graph that will contain this function or body. No name occurs in both.
    is_body : bool, default=False
        Whether this is the body of a `Scan`. Its constants are nodes, and it uses no name of `outer`.

    Attributes
    ----------
    nodes : list of NodeProto
        The nodes in the order in which they are computed.
    constants : dict of str to ndarray
        The initializers of a graph, or the inputs of a function behind the samples.
    """

    def __init__(self, dtype: str, outer: Graph | None = None, *, is_body: bool = False) -> None:
        self.dtype = dtype
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._is_body = is_body
        self._names: Counter[str] = Counter() if outer is None else outer._names
        self._sizes: list[int] = [] if outer is None else outer._sizes
        self._numbers: dict[str, str] = {}
        self._onnx = import_onnx()

    def __getattr__(self, operator: str) -> Callable[..., str]:
        if not operator[0].isupper():
            raise AttributeError(operator)

        def append(*operands: Any, name: str | None = None, **attributes: Any) -> str:
            inputs = [self._operand(operand) for operand in operands]
            result = name or self._unused_name(operator)
            self.nodes.append(self._onnx.helper.make_node(operator, inputs, [result], **attributes))
            return result

        return append

    def constant(self, name: str, values: ArrayLike) -> str:
        """Add a constant and return its name, which has a number if `name` is in use.

        Raises
        ------
        ValueError
            If a number is too large for the type of the graph.
        """
        array, name = np.asarray(values), self._unused_name(name)
        if array.dtype.kind in "fi":
            dtype = self.dtype if array.dtype.kind == "f" else np.int64
            with np.errstate(over="ignore", invalid="ignore"):
                array = np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)
            if array.dtype.kind == "f" and np.isinf(array).any():
                raise ValueError(
                    f"{name} of the model holds numbers beyond {dtype}: export it with dtype='float64'"
                )
        self._sizes.append(array.nbytes)
        if self._is_body:
            return self.Constant(value=self._onnx.numpy_helper.from_array(array), name=name)
        self.constants[name] = array
        return name

    @property
    def n_bytes(self) -> int:
        """The number of bytes of all constants, with those of functions and bodies."""
        return sum(self._sizes)

    def typed(self, name: str, *shape: int | str, dtype: DTypeLike | None = None) -> ValueInfoProto:
        """Declare the type and the shape of an input or a result; a word is a size that varies."""
        number = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype if dtype is None else dtype))
        declared: ValueInfoProto = self._onnx.helper.make_tensor_value_info(name, number, shape)
        return declared

    def build(
        self, name: str, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]
    ) -> GraphProto:
        """Make the graph, or the body, of the nodes."""
        tensors = [self._onnx.numpy_helper.from_array(array, key) for key, array in self.constants.items()]
        graph: GraphProto = self._onnx.helper.make_graph(self.nodes, name, inputs, outputs, tensors)
        return graph

    def _operand(self, operand: Any) -> str:
        """The name of an operand; equal numbers are one constant."""
        if isinstance(operand, str):
            return operand
        if isinstance(operand, np.ndarray):
            return self.constant("constant", operand)
        value = repr(operand)
        if value not in self._numbers:
            self._numbers[value] = self.constant("number", operand)
        return self._numbers[value]

    def _unused_name(self, stem: str) -> str:
        self._names[stem] += 1
        return stem if self._names[stem] == 1 else f"{stem}_{self._names[stem]}"


def import_onnx() -> Any:
    """Import the parts of the package onnx that exports use, or raise an ImportError that names the extra."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
        import onnx.reference
    except ImportError as error:
        raise ImportError("writing ONNX needs the package onnx: pip install 'svmarrow[onnx]'") from error
    return onnx


# --- kernel expansions and trees of them ---


def append_expansion(graph: Graph, expansion: KernelExpansion, n_features: int) -> None:
    """Append the nodes that make F (n, q) of X (n, n_features)."""
    weights = linear_weights(expansion, n_features)
    if weights is not None:
        values, factors = "X", graph.constant("weights", weights)
    else:
        values = _kernel_values(graph, expansion)
        factors = graph.constant("coefficients", expansion.coefficients)
    graph.Gemm(values, factors, graph.constant("intercepts", expansion.intercepts), name="F")


def _kernel_values(graph: Graph, expansion: KernelExpansion) -> str:
    """K (n, m)."""
    kernel, gamma = str(expansion.kernel), expansion.gamma
    if kernel == "precomputed":
        rows = np.asarray(expansion.vectors[:, 0]).astype(np.int64)
        return graph.Gather("X", graph.constant("rows", rows), axis=1)
    Z = dense_vectors(expansion)
    if kernel == "rbf":
        centre = Z.mean(axis=0)
        W = Z - centre
        Y = graph.Sub("X", graph.constant("centre", centre))
        squares = graph.ReduceSumSquare(Y, [1], keepdims=1)
        length = graph.Mul(squares, graph.constant("gamma", gamma))
        lengths = graph.constant("lengths", -gamma * np.einsum("ij,ij->i", W, W))
        products = graph.Gemm(Y, graph.constant("twice", 2.0 * gamma * W.T), lengths)
        return graph.Exp(graph.Min(graph.Sub(products, length), 0.0))
    if kernel in UNIT_DIAGONAL_KERNELS:
        column = Graph(graph.dtype, graph, is_body=True)
        term = _term(column, kernel, column.Unsqueeze("x", [1]), "z")
        after = column.Add("before", term)
        body = column.build(
            "column",
            [column.typed("before", "n", "m"), column.typed("x", "n"), column.typed("z", "m")],
            [column.typed(after, "n", "m")],
        )
        start = graph.Expand(0.0, graph.Concat(graph.Shape("X", start=0, end=1), [len(Z)], axis=0))
        columns, vectors = graph.Transpose("X", perm=[1, 0]), graph.constant("vectors", Z.T)
        distances = graph.Scan(start, columns, vectors, num_scan_inputs=2, body=body)
        return _of_distances(graph, distances, kernel, gamma)
    # The constant carries gamma.
    scaled = graph.constant("scaled", (Z if kernel == "linear" else gamma * Z).T)
    return _of_products(graph, graph.MatMul("X", scaled), expansion)


def _term(graph: Graph, kernel: str, x: str, z: str) -> str:
    """What columns x of samples and z of vectors add to the distances."""
    difference = graph.Sub(x, z)
    if kernel == "laplacian":
        return graph.Abs(difference)
    # Products would cancel near r = 0, and the root would turn an error of u into one of sqrt(u).
    square = graph.Mul(difference, difference)
    if kernel != "chi2":
        return square
    # 0 where both are 0: their sum is then 1 below the line, which changes no other entry.
    both = graph.Add(x, z)
    return graph.Div(square, graph.Where(graph.Equal(both, 0.0), 1.0, both))


def _of_distances(graph: Graph, distances: str, kernel: str, gamma: float) -> str:
    """K of distances."""
    if kernel not in MATERN_KERNELS:
        return graph.Exp(graph.Mul(distances, graph.constant("rate", -gamma)))
    # Far away the polynomial would grow beyond the precision.
    largest = 700.0 if graph.dtype == "float64" else 100.0
    rate = graph.constant("rate", matern_rate(kernel, gamma))
    a = graph.Min(graph.Mul(graph.Sqrt(distances), rate), largest)
    decay = graph.Exp(graph.Neg(a))
    if kernel == "matern12":
        return decay
    factor = graph.Add(a, 1.0)
    if kernel == "matern52":
        factor = graph.Add(factor, graph.Mul(graph.Mul(a, a), 1.0 / 3.0))
    return graph.Mul(factor, decay)


def _of_products(graph: Graph, products: str, expansion: KernelExpansion) -> str:
    """K of gamma x'z, or of x'z for the linear kernel."""
    if expansion.kernel == "linear":
        return products
    shifted = graph.Add(products, graph.constant("coef0", expansion.coef0))
    return graph.Pow(shifted, float(expansion.degree)) if expansion.kernel == "poly" else graph.Tanh(shifted)


def append_tree(graph: Graph, tree: ExpansionTree) -> None:
    """Append the nodes of a tree that make F (n, q) of X. The body of `Scan` uses no name of the graph."""
    kernel, tables = str(tree.kernel), tree_tables(tree)
    n_inner, d = tables.directions.shape
    # A leaf is its own child, and its hyperplane is that of zeros.
    places = np.where(tables.children >= 0, tables.children, n_inner - 1 - tables.children)
    leaves = n_inner + np.arange(len(tables.intercepts))
    left = graph.constant("left_children", np.append(places[:, 0], leaves))
    right = graph.constant("right_children", np.append(places[:, 1], leaves))
    directions = graph.constant("directions", np.vstack([tables.directions, np.zeros((1, d))]))
    thresholds = graph.constant("thresholds", np.append(tables.thresholds, 0.0))
    # onnxruntime's `Scan` takes no empty sequence, so a sample of zeros follows the others.
    X = graph.Concat("X", np.zeros((1, d)), axis=0)
    norm = graph.Sqrt(graph.ReduceSumSquare(X, [1], keepdims=0))
    length = graph.Where(graph.Equal(norm, 0.0), 1.0, norm)
    node = graph.Expand([0], graph.Shape(X, start=0, end=1))
    for _ in range(tables.depth):
        inner = graph.Min(node, [n_inner])
        products = graph.Mul(X, graph.Gather(directions, inner))
        border = graph.Mul(graph.Gather(thresholds, inner), length)
        is_left = graph.Greater(graph.ReduceSum(products, [1], keepdims=0), border)
        children = [graph.Gather(side, node) for side in (left, right)]
        node = graph.Where(is_left, *children)
    leaf_places = graph.Sub(node, [n_inner])

    starts, members, coefficients = _without_empty_leaves(tables)
    vectors = dense_vectors(tree)
    if kernel not in (*UNIT_DIAGONAL_KERNELS, "linear"):
        # The constant carries gamma.
        vectors = tree.gamma * vectors
    sample = Graph(graph.dtype, graph, is_body=True)
    x, place = "x", "place"
    leaf = sample.Unsqueeze(place, [0])
    first = sample.Gather(sample.constant("starts", starts[:-1]), leaf)
    end = sample.Gather(sample.constant("ends", starts[1:]), leaf)
    leaf_members = sample.Slice(sample.constant("members", members), first, end)
    Z = sample.Gather(sample.constant("vectors", vectors), leaf_members)
    B = sample.Slice(sample.constant("coefficients", coefficients), first, end)
    if kernel in UNIT_DIAGONAL_KERNELS:
        distances = sample.ReduceSum(_term(sample, kernel, x, Z), [1], keepdims=0)
        K = _of_distances(sample, distances, kernel, tree.gamma)
    else:
        K = _of_products(sample, sample.MatMul(Z, x), tree)
    b = sample.Gather(sample.constant("intercepts", tables.intercepts), place)
    line = sample.Add(sample.MatMul(K, B), b)
    body = sample.build(
        "sample",
        [sample.typed(x, d), sample.typed(place, dtype=np.int64)],
        [sample.typed(line, tables.intercepts.shape[1])],
    )
    lines = graph.Scan(X, leaf_places, num_scan_inputs=2, body=body)
    graph.Slice(lines, [0], graph.Shape("X", start=0, end=1), name="F")


def _without_empty_leaves(
    tables: TreeTables,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Starts, members and coefficients with a member of coefficient 0 in each leaf that has none."""
    counts = np.diff(tables.starts)
    empty = tables.starts[:-1][counts == 0]
    members = np.insert(tables.members, empty, 0)
    coefficients = np.insert(tables.coefficients, empty, 0.0, axis=0)
    return np.append(0, np.cumsum(np.maximum(counts, 1))), members, coefficients


# --- the preparation of a sample ---


def append_step(graph: Graph, step: Step, rows: str) -> str:
    """Append the nodes of a step, which must not take text; return the name of the rows that it makes."""
    if step.mixed:
        raise ValueError(
            "the model takes columns of text, and an exported one takes numbers alone: encode them as "
            "numbers before the pipeline"
        )
    match step:
        case Chain():
            for one in step.steps:
                rows = append_step(graph, one, rows)
            return rows
        case Affine():
            shifted = graph.Sub(rows, graph.constant("centre", step.centre))
            rows = graph.Div(shifted, graph.constant("scale", step.scale))
            if step.matrix is not None:
                rows = graph.MatMul(rows, graph.constant("matrix", step.matrix))
            if step.offset is not None:
                rows = graph.Add(rows, graph.constant("offset", step.offset))
            return rows
        case Clip():
            return graph.Clip(rows, graph.constant("low", step.low), graph.constant("high", step.high))
        case Normalize():
            return _normalize(graph, step, rows)
        case PiecewiseLinear():
            return _piecewise(graph, step, rows)
        case Parts():
            blocks = []
            for columns, part in zip(step.columns, step.steps, strict=True):
                block = graph.Gather(rows, columns, axis=1)
                blocks.append(block if part is None else append_step(graph, part, block))
            return graph.Concat(*blocks, axis=1)
        case Impute():
            return _impute(graph, step, rows)
        case Encode():
            return graph.Concat(*[_encode(graph, step, rows, i) for i in range(len(step.tables))], axis=1)
        case Dates():
            return _dates(graph, step, rows)
    raise TypeError(f"{step!r} has no counterpart in ONNX")


def _normalize(graph: Graph, step: Normalize, rows: str) -> str:
    if step.norm == "l2":
        length = graph.ReduceL2(rows, [1], keepdims=1)
    elif step.norm == "l1":
        length = graph.ReduceSum(graph.Abs(rows), [1], keepdims=1)
    else:
        length = graph.ReduceMax(graph.Abs(rows), [1], keepdims=1)
    is_short = graph.Less(length, step.shortest(graph.dtype))
    return graph.Div(rows, graph.Where(is_short, 1.0, length))


def _piecewise(graph: Graph, step: PiecewiseLinear, rows: str) -> str:
    """The value at the first knot, and slope times the part of each interval below the number."""
    low, high = (
        graph.constant("knots", part[np.newaxis]) for part in (step.knots[:, :-1], step.knots[:, 1:])
    )
    inside = graph.Min(graph.Max(graph.Unsqueeze(rows, [2]), low), high)
    parts = graph.Mul(graph.Sub(inside, low), graph.constant("slopes", step.slopes[np.newaxis]))
    return graph.Add(graph.ReduceSum(parts, [2], keepdims=0), graph.constant("values", step.values[:, 0]))


def _impute(graph: Graph, step: Impute, rows: str) -> str:
    if step.missing is None:
        is_missing = graph.IsNaN(rows)
    else:
        is_missing = graph.Equal(rows, graph.constant("missing", float(step.missing)))
    values = np.array(step.values, dtype=np.float64)
    filled = graph.Where(is_missing, graph.constant("values", values), rows)
    if step.flags is None or not step.flags.size:
        return filled
    flags = graph.Gather(graph.CastLike(is_missing, rows), step.flags, axis=1)
    return graph.Concat(filled, flags, axis=1)


def _dates(graph: Graph, step: Dates, rows: str) -> str:
    """Dates are numbers of days."""
    is_missing = graph.IsNaN(rows)
    days = graph.Where(is_missing, graph.constant("values", step.values), rows)
    blocks = [days]
    if step.flags.size:
        blocks.append(graph.Gather(graph.CastLike(is_missing, rows), step.flags, axis=1))
    for column, period in zip(step.columns, step.periods, strict=True):
        turns = graph.Div(graph.Gather(days, [int(column)], axis=1), float(period))
        angle = graph.Mul(graph.Sub(turns, graph.Floor(turns)), 2.0 * np.pi)
        # Old versions of onnxruntime have no cosine in double precision.
        blocks += [graph.Sin(angle), graph.Sin(graph.Add(angle, 0.5 * np.pi))]
    return graph.Concat(*blocks, axis=1)


def _encode(graph: Graph, step: Encode, rows: str, number: int) -> str:
    """A row of a table is a product of zeros and a one with it; others give NaN or `unknown`."""
    table = step.tables[number]
    column = graph.Gather(rows, [number], axis=1)
    categories = table.categories.astype(np.float64)
    same = graph.Equal(column, graph.constant("categories", categories[np.newaxis]))
    same = graph.CastLike(same, rows)
    block = graph.MatMul(same, graph.constant("table", table.numbers[: categories.size]))
    is_known = graph.Greater(graph.ReduceMax(same, [1], keepdims=1), 0.0)
    other = np.full(table.numbers.shape[1], np.nan) if table.unknown is None else table.unknown
    block = graph.Where(is_known, block, graph.constant("unknown", other))
    if len(table.numbers) > categories.size:
        # A product with the numbers of a missing value would be NaN in every row if they are NaN.
        block = graph.Where(graph.IsNaN(column), graph.constant("missing", table.numbers[-1]), block)
    return block
