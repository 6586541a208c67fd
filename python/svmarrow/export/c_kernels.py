"""The outputs of an expansion in C99, in single or double precision or on vectors of bytes.

Loops run over differences, not inner products: for a few dozen vectors that costs the same and cannot cancel.
With bytes, distances of the RBF and Laplacian kernels are whole numbers, 16-bit rows against 8-bit vectors,
and

    exp(-r n) = 2^-u,  u = n round(r log2(e) 2^(16 + shift)) / 2^(16 + shift),

whose fraction is looked up in 65 entries with 15 bits and interpolated between them (error below 3e-5), and
whose whole part is a shift; a vector beyond 2^-15 adds nothing. Other kernels take the bytes as the numbers
they stand for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from svmarrow._support.parameters import MATERN_KERNELS, refuse
from svmarrow.expansion.composites import ExpansionTree
from svmarrow.export.c_steps import number, table
from svmarrow.export.common import (
    LoopOutputs,
    TreeOutputs,
    dense_vectors,
    kernel_columns,
    linear_weights,
    loop_outputs,
    matern_rate,
    tree_tables,
)
from svmarrow.reduced_set.quantization import (
    ByteCoefficients,
    ByteVectors,
    byte_coefficients,
    byte_vectors,
    tuned,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.outputs import OutputSpec

__all__ = ["Outputs", "outputs_in_bytes", "outputs_in_floats"]


#: Kernels that are functions of the difference of two rows, and whole numbers on bytes.
BY_DIFFERENCE = ("rbf", "laplacian")
PRECISIONS = {"float32": "single", "float64": "double"}
#: Largest number of a model, whose square is finite.
MAX_NUMBER = {"float32": 1e18, "float64": 1e150}
#: 2^-f in 15 bits for f = 0, 1/64, ..., 1.
POWERS = np.round(2.0 ** (15.0 - np.arange(65) / 64.0)).astype(np.int64)


#: Names of the tables and of the function of a part of a sum.
_PART_NAMES = re.compile(r"\$(intercepts|weights|coefficients|rows|vectors|part)\b")


class Outputs(NamedTuple):
    """The C text that makes outputs.

    Attributes
    ----------
    tables : str
        Constant arrays, and the functions of the parts of a sum.
    body : str
        The body of the function from a sample of the kernel's columns to its outputs.
    flash : int
        Bytes of the constant arrays.
    multiplications, exponentials : int
        Of a call.
    stack : int
        Bytes of local arrays.
    computed : callable
        From rows (n, d) to the outputs (n, q) that the text makes of them, with its rounding.
    """

    tables: str
    body: str
    flash: int
    multiplications: int
    exponentials: int
    stack: int
    computed: Callable[[Any], NDArray[Any]]

    @property
    def needs_math(self) -> bool:
        """True if the text calls expf or sqrtf."""
        text = self.tables + self.body
        return "expf(" in text or "sqrtf(" in text


def _checked(name: str, values: Any, dtype: str = "float32") -> NDArray[Any]:
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(values, dtype=dtype)
    if not np.abs(numbers).max(initial=0.0) <= MAX_NUMBER[dtype]:
        raise ValueError(
            f"{name} of the model are too large for {PRECISIONS[dtype]} precision: scale the columns"
        )
    return numbers


def _power(degree: int) -> str:
    if degree == 0:
        return "        value = 1.0f;"
    return f"""        value = 1.0f;
        for (p = 0; p < {degree}; ++p) {{
            value *= sum;
        }}"""


_ENTRY = {
    "rbf": "const float t = x[j] - {z};\n            sum += t * t;",
    "laplacian": "const float t = x[j] - {z};\n            sum += t < 0.0f ? -t : t;",
    "chi2": """const float z = {z};
            const float t = x[j] - z;
            const float both = x[j] + z;
            if (both > 0.0f) {{
                sum += t * t / both;
            }}""",
}
_ZERO = """    for (o = 0; o < $OUTPUTS; ++o) {
        out[o] = 0.0f;
    }
"""
_ENTRY |= dict.fromkeys(MATERN_KERNELS, _ENTRY["rbf"])
#: The kernel of a = sqrt(2 nu) gamma ||x - z||, which is `sum` here.
_MATERN = {
    "matern12": "expf(-sum)",
    "matern32": "(1.0f + sum) * expf(-sum)",
    "matern52": "(1.0f + sum + sum * sum / 3.0f) * expf(-sum)",
}
_INNER = "sum += x[j] * {z};"


class _Walk(NamedTuple):
    """The loop over the vectors of a sample: whole numbers that it declares, what comes before, its head."""

    names: str
    before: str
    head: str


ALL_VECTORS = _Walk("i, j, o", "", "for (i = 0; i < $VECTORS; ++i) {")
#: From the root to a leaf, whose members are gone through.
LEAF_VECTORS = _Walk(
    "node = $ROOT, m, j, o",
    """    float square = 0.0f, length;
    for (j = 0; j < $COLUMNS; ++j) {
        square += x[j] * x[j];
    }
    length = square > 0.0f ? sqrtf(square) : 1.0f;
    while (node >= 0) {
        float sum = 0.0f;
        for (j = 0; j < $COLUMNS; ++j) {
            sum += x[j] * $directions[node][j];
        }
        node = $children[node][sum > $thresholds[node] * length ? 0 : 1];
    }
    node = -1 - node;
""",
    """for (m = $starts[node]; m < $starts[node + 1]; ++m) {
        const int i = (int)$members[m];""",
)
#: Multiplications of an entry.
_COST = {"laplacian": 0, "chi2": 2}


def _value(expansion: KernelExpansion) -> str:
    """The kernel's value of a sum over the columns."""
    gamma, coef0 = number(expansion.gamma), number(expansion.coef0)
    kernel = str(expansion.kernel)
    if kernel in MATERN_KERNELS:
        rate = number(matern_rate(kernel, expansion.gamma))
        # Far away the polynomial would grow beyond single precision.
        return f"""        sum = {rate} * sqrtf(sum);
        sum = sum > 100.0f ? 100.0f : sum;
        value = {_MATERN[kernel]};"""
    if expansion.kernel in _ENTRY:
        return f"        value = expf(-{gamma} * sum);"
    if expansion.kernel == "linear":
        return "        value = sum;"
    inner = f"        sum = {gamma} * sum + ({coef0});\n"
    if expansion.kernel == "poly":
        return inner + _power(expansion.degree)
    # tanh(t) = 1 - 2 / (exp(2 t) + 1), right at both ends.
    return inner + "        value = 1.0f - 2.0f / (expf(2.0f * sum) + 1.0f);"


def _loop(expansion: KernelExpansion, entry: str, coefficient: str, walk: _Walk = ALL_VECTORS) -> str:
    power = expansion.kernel == "poly" and expansion.degree > 0
    return f"""    int {walk.names}{", p" if power else ""};
{walk.before}{_ZERO}    {walk.head}
        float sum = 0.0f, value;
        for (j = 0; j < $COLUMNS; ++j) {{
            {entry}
        }}
{_value(expansion)}
        for (o = 0; o < $OUTPUTS; ++o) {{
            out[o] += value * {coefficient};
        }}
    }}"""


def _calls(expansion: KernelExpansion, n_vectors: int) -> int:
    return n_vectors if expansion.kernel in (*_ENTRY, "sigmoid") else 0


def _multiplications(expansion: KernelExpansion, n_vectors: int) -> int:
    each = expansion.vectors.shape[1] * _COST.get(str(expansion.kernel), 1) + expansion.n_outputs + 1
    extra = expansion.degree if expansion.kernel == "poly" else 0
    return int(n_vectors * (each + extra))


def outputs_in_floats(spec: OutputSpec, dtype: str = "float32") -> Outputs:
    """Everything in single or double precision."""
    expansion, d = spec.expansion, kernel_columns(spec)
    if isinstance(expansion, ExpansionTree):
        return _tree_in_floats(expansion, dtype)
    if len(expansion.parts) > 1:
        return _sum_in_floats(expansion, d, dtype)
    return _part_in_floats(expansion, d, dtype)


def _sum_in_floats(expansion: KernelExpansion, d: int, dtype: str) -> Outputs:
    """A function for each part, whose outputs are added."""
    made = [_part_in_floats(part, d, dtype) for part in expansion.parts]
    texts, lines = [], ["    float part[$OUTPUTS];", "    int o;", "    $part0(x, out);"]
    for i, (part, outputs) in enumerate(zip(expansion.parts, made, strict=True)):
        body = outputs.body.replace("$VECTORS", str(part.n_vectors))
        text = f"{outputs.tables}\nstatic inline void $part(const float *x, float *out) {{\n{body}\n}}\n"
        texts.append(_PART_NAMES.sub(rf"$\g<1>{i}", text))
        if i:
            lines.append(f"    $part{i}(x, part);")
            lines.append("    for (o = 0; o < $OUTPUTS; ++o) {\n        out[o] += part[o];\n    }")
    return Outputs(
        "\n".join(texts),
        "\n".join(lines),
        sum(outputs.flash for outputs in made),
        sum(outputs.multiplications for outputs in made),
        sum(outputs.exponentials for outputs in made),
        np.dtype(dtype).itemsize * expansion.n_outputs,
        loop_outputs(expansion, d, dtype),
    )


def _part_in_floats(expansion: KernelExpansion, d: int, dtype: str) -> Outputs:
    """An expansion of one kernel."""
    q = expansion.n_outputs
    b = _checked("intercepts", expansion.intercepts, dtype)
    end = """    for (o = 0; o < $OUTPUTS; ++o) {
        out[o] += $intercepts[o];
    }"""
    tables = table("float", "$intercepts", (q,), b)
    weights = linear_weights(expansion, d)
    if weights is not None:
        W = _checked("weights", weights, dtype)
        tables += table("float", "$weights", (d, q), W.ravel())
        body = f"""    int j, o;
{_ZERO}    for (j = 0; j < $COLUMNS; ++j) {{
        for (o = 0; o < $OUTPUTS; ++o) {{
            out[o] += x[j] * $weights[j][o];
        }}
    }}
{end}"""
        computed = LoopOutputs(expansion, d, dtype)
        return Outputs(tables, body, W.nbytes + b.nbytes, W.size, 0, 0, computed)
    B = _checked("coefficients", expansion.coefficients, dtype)
    tables += table("float", "$coefficients", B.shape, B.ravel())
    if expansion.kernel == "precomputed":
        rows = np.asarray(expansion.vectors[:, 0]).astype(np.int32)
        tables += table("int32_t", "$rows", rows.shape, rows)
        body = f"""    int i, o;
{_ZERO}    for (i = 0; i < $VECTORS; ++i) {{
        for (o = 0; o < $OUTPUTS; ++o) {{
            out[o] += x[$rows[i]] * $coefficients[i][o];
        }}
    }}
{end}"""
        flash = B.nbytes + b.nbytes + rows.nbytes
        computed = LoopOutputs(expansion, d, dtype)
        return Outputs(tables, body, flash, B.size, 0, 0, computed)
    Z = _checked("vectors", dense_vectors(expansion), dtype)
    _checked("gamma", np.array([expansion.gamma, expansion.coef0]), dtype)
    tables += table("float", "$vectors", Z.shape, Z.ravel())
    entry = _ENTRY.get(str(expansion.kernel), _INNER).format(z="$vectors[i][j]")
    body = _loop(expansion, entry, "$coefficients[i][o]") + "\n" + end
    flash = Z.nbytes + B.nbytes + b.nbytes
    calls = _calls(expansion, expansion.n_vectors)
    cost = _multiplications(expansion, expansion.n_vectors)
    return Outputs(tables, body, flash, cost, calls, 0, LoopOutputs(expansion, d, dtype))


def _tree_in_floats(tree: ExpansionTree, dtype: str) -> Outputs:
    """The tables of a tree; those without entries have one, since C has no arrays of none."""
    tables, d = tree_tables(tree), tree.vectors.shape[1]
    n_inner, numbers = len(tables.thresholds), {}
    for name, values in (
        ("directions", tables.directions),
        ("thresholds", tables.thresholds),
        ("coefficients", tables.coefficients),
        ("intercepts", tables.intercepts),
        ("vectors", dense_vectors(tree)),
    ):
        numbers[name] = _checked(name, values if len(values) else np.zeros((1, *values.shape[1:])), dtype)
    _checked("gamma", np.array([tree.gamma, tree.coef0]), dtype)
    texts = [table("float", f"${name}", array.shape, array.ravel()) for name, array in numbers.items()]
    kind = "uint16_t" if tree.n_vectors < 2**16 else "uint32_t"
    children = tables.children if n_inner else np.full((1, 2), -1)
    members = tables.members if tables.members.size else np.zeros(1, dtype=np.int64)
    for name, c_type, array in (
        ("children", "int32_t", children),
        ("starts", "int32_t", tables.starts),
        ("members", kind, members),
    ):
        texts.append(table(c_type, f"${name}", array.shape, array.ravel()))
    flash = sum(array.nbytes for array in numbers.values()) + 4 * (children.size + tables.starts.size)
    flash += members.size * (2 if kind == "uint16_t" else 4)
    entry = _ENTRY.get(str(tree.kernel), _INNER).format(z="$vectors[i][j]")
    end = """
    for (o = 0; o < $OUTPUTS; ++o) {
        out[o] += $intercepts[node][o];
    }"""
    body = _loop(tree, entry, "$coefficients[m][o]", LEAF_VECTORS) + end
    body = body.replace("$ROOT", "0" if n_inner else "-1")
    cost = _multiplications(tree, tree.max_evaluations) + d * (1 + tables.depth)
    calls = _calls(tree, tree.max_evaluations)
    return Outputs("".join(texts), body, flash, cost, calls, 0, TreeOutputs(tree, d, dtype))


def outputs_in_bytes(spec: OutputSpec, rows: Any = None) -> Outputs:
    """Vectors and coefficients of one byte; `rows` tune the coefficients again."""
    expansion, q = spec.expansion, spec.expansion.n_outputs
    kernel = str(expansion.kernel)
    if isinstance(expansion, ExpansionTree):
        raise refuse("dtype", "int8", "'float32' or 'float64' for a tree of local expansions")
    if len(expansion.parts) > 1:
        raise refuse("dtype", "int8", "'float32' or 'float64' for a sum of several kernels")
    if kernel == "precomputed" or expansion.n_vectors == 0:
        raise ValueError(
            f"dtype='int8' is not allowed for {expansion.n_vectors} vectors of kernel={kernel!r}: there is "
            "nothing to round, use 'float32'"
        )
    b = _checked("intercepts", expansion.intercepts)
    Z = byte_vectors(expansion.vectors, from_zero=kernel not in BY_DIFFERENCE)
    H, best = tuned(expansion, Z.values(), rows)
    B = byte_coefficients(best, H)
    _checked("numbers", np.concatenate([Z.step * (np.abs(Z.lows) + 510.0), B.steps]))
    tables = table("float", "$intercepts", (q,), b)
    tables += table("float", "$steps", (q,), B.steps)
    tables += table("uint8_t", "$zeros", (q,), B.zeros)
    tables += table("uint8_t", "$coefficients", B.codes.shape, B.codes.ravel())
    tables += table("uint8_t", "$vectors", Z.codes.shape, Z.codes.ravel())
    flash = b.nbytes + 4 * q + q + B.codes.nbytes + Z.codes.nbytes
    same = bool((Z.lows == Z.lows[0]).all())
    if not same:
        tables += table("int32_t", "$lows", Z.lows.shape, Z.lows)
        flash += 4 * Z.lows.size
    low = str(int(Z.lows[0])) if same else "$lows[j]"
    rounded = expansion.replaced(vectors=Z.values(), coefficients=B.values())
    if kernel in BY_DIFFERENCE:
        whole, more = _whole_numbers(expansion, Z, B, low)
        return Outputs(
            tables + table("uint16_t", "$powers", POWERS.shape, POWERS),
            whole,
            flash + 2 * POWERS.size,
            _multiplications(expansion, expansion.n_vectors) + Z.codes.shape[1] + 2 * expansion.n_vectors,
            0,
            2 * Z.codes.shape[1] + more * (q + 1),
            _IntegerOutputs(expansion, Z, B),
        )
    z = f"{number(Z.step)} * (float)({low} + (int)$vectors[i][j])"
    coefficient = "(float)((int)$coefficients[i][o] - (int)$zeros[o])"
    entry = _ENTRY.get(kernel, _INNER).format(z=z)
    end = """    for (o = 0; o < $OUTPUTS; ++o) {
        out[o] = out[o] * $steps[o] + $intercepts[o];
    }"""
    body = _loop(expansion, entry, coefficient) + "\n" + end
    cost = _multiplications(expansion, expansion.n_vectors) + Z.codes.size + q
    computed = LoopOutputs(rounded, kernel_columns(spec))
    return Outputs(tables, body, flash, cost, _calls(expansion, expansion.n_vectors), 0, computed)


def _rate(expansion: KernelExpansion, Z: ByteVectors) -> tuple[int, int]:
    """The multiple of 2^-(16 + shift) that a distance of 1 adds to u, at most 32 bits, and the shift."""
    square = Z.step * Z.step if expansion.kernel == "rbf" else Z.step
    exact = expansion.gamma * square / np.log(2.0)
    shift = int(np.clip(31 - 16 - np.ceil(np.log2(max(exact, 1e-12))), 0, 32))
    rate = round(exact * 2.0 ** (16 + shift))
    return min(max(rate, 0), 2**32 - 1), shift


def _bounds(expansion: KernelExpansion, Z: ByteVectors, B: ByteCoefficients) -> tuple[str, str]:
    """Types that hold a distance and a sum over the vectors."""
    most = 510 * 510 if expansion.kernel == "rbf" else 510
    distance = "uint32_t" if Z.codes.shape[1] * most < 2**32 else "uint64_t"
    total = "int32_t" if len(B.codes) * 32768 * 255 < 2**31 else "int64_t"
    return distance, total


def _whole_numbers(
    expansion: KernelExpansion, Z: ByteVectors, B: ByteCoefficients, low: str
) -> tuple[str, int]:
    rate, shift = _rate(expansion, Z)
    distance, total = _bounds(expansion, Z, B)
    entry = "t * t" if expansion.kernel == "rbf" else "t < 0 ? -t : t"
    beyond = (2**64 - 1) // max(rate, 1)
    # A product of 64 bits must not overflow: distances beyond are too far to count.
    guard = f"if (far > {beyond}u) {{ continue; }}\n        " if distance == "uint64_t" else ""
    body = f"""    int16_t row[$COLUMNS];
    {total} sums[$OUTPUTS] = {{0}}, whole = 0;
    int i, j, o;
    for (j = 0; j < $COLUMNS; ++j) {{
        /* In steps from the lowest number of a column, cut off one range of bytes around the vectors'. */
        float t = x[j] * {number(1.0 / Z.step)} - (float)({low});
        t = t < -255.0f ? -255.0f : t > 510.0f ? 510.0f : t;
        row[j] = (int16_t)(t < 0.0f ? t - 0.5f : t + 0.5f);
    }}
    for (i = 0; i < $VECTORS; ++i) {{
        {distance} far = 0;
        uint64_t u;
        uint32_t above, part, value, place;
        for (j = 0; j < $COLUMNS; ++j) {{
            const int32_t t = (int32_t)row[j] - (int32_t)$vectors[i][j];
            far += ({distance})({entry});
        }}
        {guard}/* 2^-u with 16 bits behind the point. */
        u = ((uint64_t)far * {rate}u) >> {shift};
        if (u >= ((uint64_t)16 << 16)) {{
            continue;
        }}
        above = (uint32_t)(u >> 16);
        place = (uint32_t)(u >> 10) & 63u;
        part = (uint32_t)u & 1023u;
        value = ((uint32_t)$powers[place] << 10)
            - ((uint32_t)$powers[place] - (uint32_t)$powers[place + 1]) * part;
        value = (value + (512u << above)) >> (10 + above);
        whole += ({total})value;
        for (o = 0; o < $OUTPUTS; ++o) {{
            sums[o] += ({total})value * ({total})$coefficients[i][o];
        }}
    }}
    for (o = 0; o < $OUTPUTS; ++o) {{
        const {total} sum = sums[o] - whole * ({total})$zeros[o];
        out[o] = $intercepts[o] + $steps[o] * ((float)sum * 3.05175781e-05f);
    }}"""
    return body, 4 if total == "int32_t" else 8


class _IntegerOutputs:
    """The outputs of the integer arithmetic, by NumPy."""

    def __init__(self, expansion: KernelExpansion, Z: ByteVectors, B: ByteCoefficients) -> None:
        self.kernel, self.intercepts = expansion.kernel, expansion.intercepts.astype(np.float32)
        self.Z, self.B, (self.rate, self.shift) = Z, B, _rate(expansion, Z)

    def __call__(self, X: Any) -> NDArray[np.float64]:
        Z, B = self.Z, self.B
        scaled = np.asarray(X, np.float32) * np.float32(1.0 / Z.step) - Z.lows.astype(np.float32)
        scaled = np.clip(scaled, np.float32(-255), np.float32(510))
        half = np.float32(0.5)
        row = np.trunc(np.where(scaled < 0, scaled - half, scaled + half)).astype(np.int64)
        codes = Z.codes.astype(np.int64)
        out = np.empty((len(row), B.codes.shape[1]))
        for i, x in enumerate(row):
            t = x - codes
            far = (t * t if self.kernel == "rbf" else np.abs(t)).sum(axis=1)
            # Python's whole numbers have no end, where 64 bits would.
            u = np.array([(int(n) * self.rate) >> self.shift for n in far], dtype=object)
            u = np.minimum(u, 16 << 16).astype(np.int64)
            above, place, part = u >> 16, (u >> 10) & 63, u & 1023
            value = (POWERS[place] << 10) - (POWERS[place] - POWERS[place + 1]) * part
            value = np.where(u < 16 << 16, (value + (512 << above)) >> (10 + above), 0)
            sums = value @ B.codes.astype(np.int64) - value.sum() * B.zeros.astype(np.int64)
            out[i] = self.intercepts + B.steps * (sums * 2.0**-15)
        return out
