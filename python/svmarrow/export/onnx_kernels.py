"""Kernel expansions in ONNX's operators, as the text of a function.

F = K(X, Z) B + b, where K is

| kernel | entries | operators |
|---|---|---|
| linear | x'z | `Gemm`; weights of the columns where they are fewer numbers |
| poly, sigmoid | (g x'z + c)^p, tanh(g x'z + c) | `Gemm`, then `Pow` or `Tanh` |
| rbf | exp(2 g y'w - g |y|^2 - g |w|^2), y = x - mean(z), w = z - mean(z) | `Gemm`, `Exp` |
| matern12 to matern52 | polynomials of a times exp(-a), a = c ||x - z|| | `Scan` over the columns, `Sqrt` |
| laplacian, chi2 | exp(-g sum_c t(x_c, z_c)) | `Scan` over the columns, so that no more than (n, m) is held |
| precomputed | the columns of X that are vectors | `Gather` |

Inner products of centered rows lose few digits where those of rows far from the origin would cancel; what
rounding leaves above 0 in the exponent is cut off, as svmarrow itself does it. Cost: n m d multiplications in
one `Gemm`. The operator SVMClassifier of ai.onnx.ml is not used: it has four kernels, single precision and
one coding, and takes six times as long in onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.parameters import MATERN_KERNELS
from svmarrow.export.common import dense_vectors, linear_weights, matern_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion

__all__ = ["kernel_function"]

#: One step of `Scan`: what a column of the rows (n) and of the vectors (m) adds to all sums (n, m).
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
        MATERN_KERNELS,
        """
        difference = Sub (x_column, z_row)
        term = Mul (difference, difference)""",
    ),
}
#: K of the distances.
_VALUES = {
    "matern12": """
            K = Identity (decay)""",
    "matern32": """
            factor = Add (near, one)
            K = Mul (factor, decay)""",
    "matern52": """
            square = Mul (near, near)
            curved = Mul (square, third)
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
    kernel, gamma = expansion.kernel, expansion.gamma
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
                z_row = Identity (z){_TERMS[str(kernel)].format(kind=kind)}
                after = Add (before, term)
            }}> (start, columns, vectors)"""
        if kernel in MATERN_KERNELS:
            # Far away the polynomial would grow beyond the precision.
            text += f"""
            lengths = Sqrt (distances)
            scaled = Mul (lengths, rate)
            near = Min (scaled, largest)
            exponent = Neg (near)
            decay = Exp (exponent){_VALUES[str(kernel)]}"""
            scalars = {
                "rate": matern_rate(str(kernel), gamma),
                "largest": 700.0 if kind == "double" else 100.0,
            }
            if kernel != "matern12":
                scalars["one"] = 1.0
            if kernel == "matern52":
                scalars["third"] = 1.0 / 3.0
            return text + outputs, arrays, scalars
        text += """
            exponent = Mul (distances, rate)
            K = Exp (exponent)"""
        return text + outputs, arrays, {"rate": -gamma}
    arrays["scaled"] = (Z if kernel == "linear" else gamma * Z).T
    if kernel == "linear":
        return "K = MatMul (X, scaled)" + outputs, arrays, {}
    text = """
            products = MatMul (X, scaled)
            shifted = Add (products, coef0)
            """
    if kernel == "poly":
        scalars = {"coef0": expansion.coef0, "degree": float(expansion.degree)}
        return text + "K = Pow (shifted, degree)" + outputs, arrays, scalars
    return text + "K = Tanh (shifted)" + outputs, arrays, {"coef0": expansion.coef0}
