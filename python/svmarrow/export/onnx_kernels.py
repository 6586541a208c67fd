"""Kernel expansions, trees of them, and the preparation of a sample in ONNX's operators: text of functions.

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

A tree finds the leaves of all samples level by level, and `Loop` goes over the samples: each gathers the
vectors of its leaf, and K is the same function of the differences or the inner products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import MATERN_KERNELS, UNIT_DIAGONAL_KERNELS
from svmarrow.export.common import dense_vectors, linear_weights, matern_rate, tree_tables
from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.preparation import Affine, Chain, Clip, Normalize, Parts, PiecewiseLinear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.expansion_tree import ExpansionTree
    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.export.common import TreeTables
    from svmarrow.models.preparation import Step

__all__ = ["StepText", "kernel_function", "tree_function"]


#: What columns of samples and of vectors add to the sums.
_TERMS = {
    "laplacian": """
        difference = Sub (x_column, z_row)
        term = Abs (difference)""",
    # 0 where both are 0: their sum is then 1 below the line, which changes no other entry.
    "chi2": """
        difference = Sub (x_column, z_row)
        square = Mul (difference, difference)
        sum = Add (x_column, z_row)
        nothing = Constant <value = {kind} {{0}}> ()
        unit = Constant <value = {kind} {{1}}> ()
        none = Equal (sum, nothing)
        below = Where (none, unit, sum)
        term = Div (square, below)""",
    # Products would cancel near r = 0, and the root would turn an error of u into one of sqrt(u).
    **dict.fromkeys(
        ("rbf", *MATERN_KERNELS),
        """
        difference = Sub (x_column, z_row)
        term = Mul (difference, difference)""",
    ),
}
#: K of `near`, the distance times sqrt(2 nu) gamma, and `decay`, exp(-near).
_MATERN = {
    "matern12": """
            K = Identity (decay)""",
    "matern32": """
            factor = Add (near, one)
            K = Mul (factor, decay)""",
    "matern52": """
            curve = Mul (near, near)
            curved = Mul (curve, third)
            rising = Add (near, one)
            factor = Add (rising, curved)
            K = Mul (factor, decay)""",
}


def kernel_function(
    expansion: KernelExpansion, n_features: int, kind: str
) -> tuple[str, dict[str, NDArray[Any]], dict[str, float]]:
    """The statements that make F (n, q) of X (n, d).

    Parameters
    ----------
    expansion : KernelExpansion
        With a built-in kernel.
    n_features : int
        Columns of X.
    kind : {"float", "double"}
        Type of the numbers.

    Returns
    -------
    text : str
        Statements in the syntax of `onnx.parser`.
    arrays : dict of str to ndarray
        Constants that the statements name, in double precision but for indices.
    scalars : dict of str to float
        Constants of one number.
    """
    kernel, gamma = str(expansion.kernel), expansion.gamma
    arrays: dict[str, NDArray[Any]] = {"intercepts": expansion.intercepts}
    weights = linear_weights(expansion, n_features)
    if weights is not None:
        return "F = Gemm (X, weights, intercepts)", {"weights": weights, **arrays}, {}
    arrays["coefficients"] = expansion.coefficients
    outputs = "\nF = Gemm (K, coefficients, intercepts)"
    if kernel == "precomputed":
        rows = np.asarray(expansion.vectors[:, 0]).astype(np.int64)
        return "K = Gather <axis = 1> (X, rows)" + outputs, {"rows": rows, **arrays}, {}
    Z = dense_vectors(expansion)
    if kernel == "rbf":
        centre = Z.mean(axis=0)
        W = Z - centre
        arrays |= {
            "centre": centre,
            "twice": 2.0 * gamma * W.T,
            "lengths": -gamma * np.einsum("ij,ij->i", W, W),
            "columns": np.array([1], dtype=np.int64),
        }
        text = """
            Y = Sub (X, centre)
            squares = ReduceSumSquare <keepdims = 1> (Y, columns)
            length = Mul (squares, gamma)
            products = Gemm (Y, twice, lengths)
            exponent = Sub (products, length)
            below = Min (exponent, nothing)
            K = Exp (below)"""
        return text + outputs, arrays, {"gamma": gamma, "nothing": 0.0}
    if kernel in _TERMS:
        arrays |= {"vectors": np.ascontiguousarray(Z.T), "m": np.array([Z.shape[0]], dtype=np.int64)}
        text = f"""
            n = Shape <start = 0, end = 1> (X)
            shape = Concat <axis = 0> (n, m)
            start = ConstantOfShape <value = {kind}[1] {{0}}> (shape)
            columns = Transpose <perm = [1, 0]> (X)
            distances = Scan <num_scan_inputs = 2, body = column (
                {kind}[n, m] before, {kind}[n] x, {kind}[m] z
            ) => ({kind}[n, m] after) {{
                right = Constant <value = int64[1] {{1}}> ()
                x_column = Unsqueeze (x, right)
                z_row = Identity (z){_TERMS[kernel].format(kind=kind)}
                after = Add (before, term)
            }}> (start, columns, vectors)"""
        values, scalars = _of_distances(kernel, gamma, kind)
        return text + values + outputs, arrays, scalars
    # The constant carries gamma.
    arrays["scaled"] = (Z if kernel == "linear" else gamma * Z).T
    values, scalars = _of_products(expansion)
    return "products = MatMul (X, scaled)" + values + outputs, arrays, scalars


def _of_distances(kernel: str, gamma: float, kind: str) -> tuple[str, dict[str, float]]:
    """K of `distances`, and the constants of one number."""
    if kernel not in MATERN_KERNELS:
        text = """
            exponent = Mul (distances, rate)
            K = Exp (exponent)"""
        return text, {"rate": -gamma}
    # Far away the polynomial would grow beyond the precision.
    text = f"""
            roots = Sqrt (distances)
            scaled = Mul (roots, rate)
            near = Min (scaled, largest)
            exponent = Neg (near)
            decay = Exp (exponent){_MATERN[kernel]}"""
    scalars = {"rate": matern_rate(kernel, gamma), "largest": 700.0 if kind == "double" else 100.0}
    if kernel != "matern12":
        scalars["one"] = 1.0
    if kernel == "matern52":
        scalars["third"] = 1.0 / 3.0
    return text, scalars


def _of_products(expansion: KernelExpansion) -> tuple[str, dict[str, float]]:
    """K of `products`, gamma x'z or x'z for the linear kernel, and the constants of one number."""
    if expansion.kernel == "linear":
        return "\nK = Identity (products)", {}
    text = """
            shifted = Add (products, coef0)
            """
    if expansion.kernel == "poly":
        scalars = {"coef0": expansion.coef0, "degree": float(expansion.degree)}
        return text + "K = Pow (shifted, degree)", scalars
    return text + "K = Tanh (shifted)", {"coef0": expansion.coef0}


def tree_function(tree: ExpansionTree, kind: str) -> tuple[str, dict[str, NDArray[Any]], dict[str, float]]:
    """The statements of a tree, as `kernel_function` returns them."""
    kernel, tables = str(tree.kernel), tree_tables(tree)
    n_inner, d = tables.directions.shape
    n_leaves, q = tables.intercepts.shape
    starts, members, coefficients = _without_empty_leaves(tables)
    vectors = dense_vectors(tree)
    # A leaf is its own child, and its hyperplane is that of zeros.
    places = np.where(tables.children >= 0, tables.children, n_inner - 1 - tables.children)
    leaves = n_inner + np.arange(n_leaves)
    index = np.int64
    arrays: dict[str, NDArray[Any]] = {
        "directions": np.vstack([tables.directions, np.zeros((1, d))]),
        "thresholds": np.append(tables.thresholds, 0.0),
        "left_children": np.append(places[:, 0], leaves).astype(index),
        "right_children": np.append(places[:, 1], leaves).astype(index),
        "n_inner": np.array([n_inner], dtype=index),
        "columns": np.array([1], dtype=index),
        "root": np.array([0], dtype=index),
        "starts": starts[:-1],
        "ends": starts[1:],
        "members": members,
        "vectors": vectors if kernel in (*_TERMS, "linear") else tree.gamma * vectors,
        "coefficients": coefficients,
        "intercepts": tables.intercepts,
    }
    levels = "".join(
        f"""
            capped{level} = Min (node{level}, n_inner)
            direction{level} = Gather <axis = 0> (directions, capped{level})
            product{level} = Mul (X, direction{level})
            sum{level} = ReduceSum <keepdims = 0> (product{level}, columns)
            threshold{level} = Gather <axis = 0> (thresholds, capped{level})
            border{level} = Mul (threshold{level}, length)
            is_left{level} = Greater (sum{level}, border{level})
            left{level} = Gather <axis = 0> (left_children, node{level})
            right{level} = Gather <axis = 0> (right_children, node{level})
            node{level + 1} = Where (is_left{level}, left{level}, right{level})"""
        for level in range(tables.depth)
    )
    if kernel in UNIT_DIAGONAL_KERNELS:
        pairs = f"""
                x_column = Identity (x)
                z_row = Identity (Z){_TERMS[kernel].format(kind=kind)}
                distances = ReduceSum <keepdims = 0> (term, columns)"""
        values, scalars = _of_distances(kernel, tree.gamma, kind)
    else:
        pairs = """
                products = MatMul (Z, x)"""
        values, scalars = _of_products(tree)
    text = f"""
            n = Shape <start = 0, end = 1> (X)
            node0 = Expand (root, n)
            squares = ReduceSumSquare <keepdims = 0> (X, columns)
            norm = Sqrt (squares)
            is_zero = Equal (norm, zero_length)
            length = Where (is_zero, unit_length, norm){levels}
            leaf_place = Sub (node{tables.depth}, n_inner)
            count = Squeeze (n, root)
            always = Constant <value = bool {{1}}> ()
            F = Loop <body = sample (int64 i, bool go) => (bool goes, {kind}[{q}] line) {{
                goes = Identity (go)
                x = Gather <axis = 0> (X, i)
                place = Gather <axis = 0> (leaf_place, i)
                leaf = Unsqueeze (place, root)
                first = Gather <axis = 0> (starts, leaf)
                end = Gather <axis = 0> (ends, leaf)
                chosen = Slice (members, first, end)
                Z = Gather <axis = 0> (vectors, chosen)
                B = Slice (coefficients, first, end){pairs}{values}
                sums = MatMul (K, B)
                b = Gather <axis = 0> (intercepts, place)
                line = Add (sums, b)
            }}> (count, always)"""
    return text, arrays, scalars | {"zero_length": 0.0, "unit_length": 1.0}


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


class StepText:
    """Statements of steps for samples of a type; `arrays` are the constants that they name."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.lines: list[str] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self._count = 0

    def add(self, step: Step, rows: str) -> str:
        """The name of the rows that a step makes of the rows of a name."""
        if step.mixed:
            raise ValueError(
                "the model takes columns of text, and an exported one takes numbers alone: encode them as "
                "numbers before the pipeline"
            )
        match step:
            case Chain():
                for one in step.steps:
                    rows = self.add(one, rows)
                return rows
            case Affine():
                shifted = self._do(f"Sub ({rows}, {self._constant(step.centre)})")
                rows = self._do(f"Div ({shifted}, {self._constant(step.scale)})")
                if step.matrix is not None:
                    rows = self._do(f"MatMul ({rows}, {self._constant(step.matrix)})")
                if step.offset is not None:
                    rows = self._do(f"Add ({rows}, {self._constant(step.offset)})")
                return rows
            case Clip():
                low, high = self._constant(np.array(step.low)), self._constant(np.array(step.high))
                return self._do(f"Clip ({rows}, {low}, {high})")
            case Normalize():
                return self._normalize(step, rows)
            case PiecewiseLinear():
                return self._piecewise(step, rows)
            case Parts():
                blocks = []
                for taken, part in zip(step.columns, step.steps, strict=True):
                    block = self._do(f"Gather <axis = 1> ({rows}, {self._constant(taken)})")
                    blocks.append(block if part is None else self.add(part, block))
                return self._do(f"Concat <axis = 1> ({', '.join(blocks)})")
            case Impute():
                return self._impute(step, rows)
            case Encode():
                return self._encode(step, rows)
            case Dates():
                return self._dates(step, rows)
        raise TypeError(f"{step!r} has no counterpart in ONNX")

    def _do(self, operation: str) -> str:
        self._count += 1
        name = f"step_row{self._count}"
        self.lines.append(f"{name} = {operation}")
        return name

    def _constant(self, array: NDArray[Any]) -> str:
        name = f"step_constant{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _columns(self) -> str:
        """The name of the axis of the columns."""
        self.arrays["step_columns"] = np.array([1], dtype=np.int64)
        return "step_columns"

    def _normalize(self, step: Normalize, rows: str) -> str:
        if step.norm == "l2":
            length = self._do(f"ReduceL2 <keepdims = 1> ({rows}, {self._columns()})")
        else:
            size = self._do(f"Abs ({rows})")
            reduce = "ReduceSum" if step.norm == "l1" else "ReduceMax"
            length = self._do(f"{reduce} <keepdims = 1> ({size}, {self._columns()})")
        shortest, one = self._constant(np.array(step.shortest(self.dtype))), self._constant(np.array(1.0))
        is_short = self._do(f"Less ({length}, {shortest})")
        return self._do(f"Div ({rows}, {self._do(f'Where ({is_short}, {one}, {length})')})")

    def _piecewise(self, step: PiecewiseLinear, rows: str) -> str:
        """The value at the first knot, and slope times the part of each interval below the number."""
        column = self._do(f"Unsqueeze ({rows}, {self._constant(np.array([2]))})")
        low, high = (self._constant(part[np.newaxis]) for part in (step.knots[:, :-1], step.knots[:, 1:]))
        inside = self._do(f"Min ({self._do(f'Max ({column}, {low})')}, {high})")
        parts = self._do(
            f"Mul ({self._do(f'Sub ({inside}, {low})')}, {self._constant(step.slopes[np.newaxis])})"
        )
        sums = self._do(f"ReduceSum <keepdims = 0> ({parts}, {self._constant(np.array([2]))})")
        return self._do(f"Add ({sums}, {self._constant(step.values[:, 0])})")

    def _impute(self, step: Impute, rows: str) -> str:
        if step.missing is None:
            gap = self._do(f"IsNaN ({rows})")
        else:
            gap = self._do(f"Equal ({rows}, {self._constant(np.array(float(step.missing)))})")
        values = self._constant(np.array(step.values, dtype=np.float64))
        filled = self._do(f"Where ({gap}, {values}, {rows})")
        if step.flags is None or not step.flags.size:
            return filled
        flags = self._do(f"CastLike ({gap}, {rows})")
        flags = self._do(f"Gather <axis = 1> ({flags}, {self._constant(step.flags)})")
        return self._do(f"Concat <axis = 1> ({filled}, {flags})")

    def _dates(self, step: Dates, rows: str) -> str:
        """Dates are numbers of days."""
        gap = self._do(f"IsNaN ({rows})")
        days = self._do(f"Where ({gap}, {self._constant(step.values)}, {rows})")
        blocks = [days]
        if step.flags.size:
            flags = self._do(f"CastLike ({gap}, {rows})")
            blocks.append(self._do(f"Gather <axis = 1> ({flags}, {self._constant(step.flags)})"))
        for column, period in zip(step.columns, step.periods, strict=True):
            day = self._do(f"Gather <axis = 1> ({days}, {self._constant(np.array([column]))})")
            turns = self._do(f"Div ({day}, {self._constant(np.array(period))})")
            part = self._do(f"Sub ({turns}, {self._do(f'Floor ({turns})')})")
            angle = self._do(f"Mul ({part}, {self._constant(np.array(2.0 * np.pi))})")
            # Old versions of onnxruntime have no cosine in double precision.
            quarter = self._do(f"Add ({angle}, {self._constant(np.array(0.5 * np.pi))})")
            blocks += [self._do(f"Sin ({turned})") for turned in (angle, quarter)]
        return self._do(f"Concat <axis = 1> ({', '.join(blocks)})")

    def _encode(self, step: Encode, rows: str) -> str:
        """A row of a table is a product of zeros and a one with it; others give NaN or `unknown`."""
        blocks = []
        for number, table in enumerate(step.tables):
            place = self._constant(np.array([number]))
            column = self._do(f"Gather <axis = 1> ({rows}, {place})")
            categories = table.categories.astype(np.float64)
            same = self._do(f"Equal ({column}, {self._constant(categories[np.newaxis])})")
            same = self._do(f"CastLike ({same}, {rows})")
            found = self._do(f"MatMul ({same}, {self._constant(table.numbers[: categories.size])})")
            any_ = self._do(f"ReduceMax <keepdims = 1> ({same}, {self._columns()})")
            there = self._do(f"Greater ({any_}, {self._constant(np.array(0.0))})")
            other = np.full(table.numbers.shape[1], np.nan) if table.unknown is None else table.unknown
            block = self._do(f"Where ({there}, {found}, {self._constant(other)})")
            if len(table.numbers) > categories.size:
                # A product with the numbers of a missing value would be NaN in every row if they are NaN.
                gap = self._do(f"IsNaN ({column})")
                block = self._do(f"Where ({gap}, {self._constant(table.numbers[-1])}, {block})")
            blocks.append(block)
        return self._do(f"Concat <axis = 1> ({', '.join(blocks)})")
