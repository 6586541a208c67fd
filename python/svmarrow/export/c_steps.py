"""Numbers and tables in C99, and the preparation of a sample: ``$prepare``.

All text is written in single precision with all digits of its constants; `in_precision` shortens them, or
makes the text one of double precision.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.preparation import Affine, Chain, Clip, Normalize, Parts, PiecewiseLinear

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from svmarrow.models.preparation import Step

__all__ = ["StepText", "in_precision", "number", "table"]

#: A constant without its sign.
CONSTANT = re.compile(r"(?<![\w.])(\d+\.?\d*(?:e[-+]?\d+)?)f\b")


def number(value: float) -> str:
    """A constant, exactly, as `in_precision` takes it; NaN needs ``math.h``."""
    if value != value:
        return "NAN"
    text = f"{float(value):.17g}"
    return f"{text}f" if any(sign in text for sign in ".e") else f"{text}.0f"


def in_precision(text: str, dtype: str) -> str:
    """C text, which is written in single precision with all digits of its constants, in a precision."""
    if dtype == "float64":
        text = re.sub(r"\b(cos|exp|floor|sin|sqrt)f\(", r"\1(", re.sub(r"\bfloat\b", "double", text))
        return CONSTANT.sub(lambda found: found[1], text)
    return CONSTANT.sub(lambda found: _shortest(float(found[1])), text)


def _shortest(value: float) -> str:
    """A constant in single precision with the digits that it needs."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if any(sign in text for sign in ".e") else f"{text}.0f"


def table(kind: str, name: str, shape: tuple[int, ...], values: Iterable[Any]) -> str:
    """A constant array."""
    sizes = "".join(f"[{size}]" for size in shape)
    texts = [number(value) if kind == "float" else str(int(value)) for value in values]
    lines, line = [], "   "
    for text in texts:
        if len(line) + len(text) > 108:
            lines.append(line)
            line = "   "
        line += f" {text},"
    row = "\n".join([*lines, line]).rstrip(",")
    if len(shape) == 2:
        # Rows have their braces, which compilers ask for.
        width = shape[1]
        rows = (", ".join(texts[start : start + width]) for start in range(0, len(texts), width))
        row = ",\n".join(f"    {{{row}}}" for row in rows)
    return f"static const {kind} {name}{sizes} = {{\n{row}\n}};\n"


class StepText:
    """Tables and statements of steps.

    Every step reads a local array of numbers and writes another; the compiler keeps what it needs of them.
    """

    tables: str
    statements: str
    flash: int
    multiplications: int
    stack: int
    needs_math: bool

    def __init__(self, dtype: str = "float32") -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.tables = ""
        self.statements = ""
        self.flash = self.multiplications = self.stack = 0
        self.needs_math = False
        self._count = self._n_tables = 0

    def text(self, step: Step) -> str:
        """``$prepare`` with its tables."""
        last = self._add(step, "row")
        return f"""{self.tables}
/* What happens to a row before the kernel sees it. */
static inline void $prepare(const float *row, float *x) {{
    int j;
{self.statements}    for (j = 0; j < {step.n_out}; ++j) {{
        x[j] = {last}[j];
    }}
}}
"""

    def _add(self, step: Step, rows: str) -> str:
        match step:
            case Chain():
                for one in step.steps:
                    rows = self._add(one, rows)
                return rows
            case Affine():
                return self._affine(step, rows)
            case Clip():
                low, high, of = number(step.low), number(step.high), f"{rows}[j]"
                return self._loop(step.n_in, f"{of} < {low} ? {low} : {of} > {high} ? {high} : {of}")
            case Normalize():
                return self._normalize(step, rows)
            case PiecewiseLinear():
                return self._piecewise(step, rows)
            case Parts():
                return self._parts(step, rows)
            case Impute() if not step.mixed:
                return self._impute(step, rows)
            case Encode() if not step.mixed:
                return self._encode(step, rows)
            case Dates():
                return self._dates(step, rows)
        raise ValueError(f"{step!r} is not written as C: encode texts as numbers before the pipeline")

    def _new(self, size: int) -> str:
        self._count += 1
        self.stack += self.dtype.itemsize * size
        name = f"r{self._count}"
        self.statements += f"    float {name}[{size}];\n"
        return name

    def _constants(self, values: NDArray[np.float64]) -> str:
        with np.errstate(over="ignore"):
            constants = values.astype(self.dtype)
        self.needs_math |= bool(np.isnan(constants).any())
        if np.isinf(constants).any():
            raise ValueError(f"the preparation holds numbers beyond {self.dtype}: scale the columns")
        return self._table("float", constants)

    def _table(self, kind: str, values: NDArray[Any]) -> str:
        self._n_tables += 1
        name = f"$table{self._n_tables}"
        self.tables += table(kind, name, values.shape, values.ravel())
        self.flash += (self.dtype.itemsize if kind == "float" else 4) * values.size
        return name

    def _loop(self, size: int, value: str) -> str:
        name = self._new(size)
        self.statements += f"    for (j = 0; j < {size}; ++j) {{\n        {name}[j] = {value};\n    }}\n"
        return name

    def _affine(self, step: Affine, rows: str) -> str:
        centre, scale = self._constants(step.centre), self._constants(1.0 / step.scale)
        scaled = self._loop(step.n_in, f"({rows}[j] - {centre}[j]) * {scale}[j]")
        self.multiplications += step.n_in
        if step.matrix is None:
            return scaled
        matrix, size = self._constants(step.matrix), step.n_out
        start = "0.0f" if step.offset is None else f"{self._constants(step.offset)}[j]"
        mapped = self._loop(size, start)
        self.multiplications += step.n_in * size
        self.statements += f"""    for (j = 0; j < {step.n_in}; ++j) {{
        int i;
        for (i = 0; i < {size}; ++i) {{
            {mapped}[i] += {scaled}[j] * {matrix}[j][i];
        }}
    }}
"""
        return mapped

    def _normalize(self, step: Normalize, rows: str) -> str:
        self._count += 1
        length, size = f"length{self._count}", f"({rows}[j] < 0.0f ? -{rows}[j] : {rows}[j])"
        grow = {
            "l1": f"{length} += {size};",
            "l2": f"{length} += {rows}[j] * {rows}[j];",
            "max": f"{length} = {size} > {length} ? {size} : {length};",
        }[step.norm]
        self.statements += f"""    float {length} = 0.0f;
    for (j = 0; j < {step.n_in}; ++j) {{
        {grow}
    }}
"""
        if step.norm == "l2":
            self.needs_math = True
            self.statements += f"    {length} = sqrtf({length});\n"
        shortest = number(step.shortest(self.dtype))
        self.statements += f"    {length} = {length} < {shortest} ? 1.0f : 1.0f / {length};\n"
        self.multiplications += 2 * step.n_in
        return self._loop(step.n_in, f"{rows}[j] * {length}")

    def _piecewise(self, step: PiecewiseLinear, rows: str) -> str:
        knots, values, slopes = map(self._constants, (step.knots, step.values, step.slopes))
        name, size = self._new(step.n_in), step.knots.shape[1]
        self.multiplications += step.n_in
        self.statements += f"""    for (j = 0; j < {step.n_in}; ++j) {{
        const float *at = {knots}[j];
        int i = 0;
        while (i < {size - 2} && {rows}[j] > at[i + 1]) {{
            ++i;
        }}
        {name}[j] = {rows}[j] <= at[0] ? {values}[j][0]
            : {rows}[j] >= at[i + 1] ? {values}[j][i + 1]
            : {values}[j][i] + ({rows}[j] - at[i]) * {slopes}[j][i];
    }}
"""
        return name

    def _parts(self, step: Parts, rows: str) -> str:
        blocks = []
        for taken, one in zip(step.columns, step.steps, strict=True):
            block = self._loop(taken.size, f"{rows}[{self._table('int32_t', taken)}[j]]")
            blocks.append(
                (taken.size if one is None else one.n_out, block if one is None else self._add(one, block))
            )
        whole, start = self._new(step.n_out), 0
        for size, block in blocks:
            self.statements += (
                f"    for (j = 0; j < {size}; ++j) {{\n        {whole}[{start} + j] = {block}[j];\n    }}\n"
            )
            start += size
        return whole

    def _impute(self, step: Impute, rows: str) -> str:
        values = self._constants(np.array(step.values, dtype=np.float64))
        gap = "{0} != {0}" if step.missing is None else "{0} == " + number(float(step.missing))
        filled = self._loop(step.n_in, f"{gap.format(f'{rows}[j]')} ? {values}[j] : {rows}[j]")
        if step.flags is None:
            return filled
        flag = gap.format(f"{rows}[{self._table('int32_t', step.flags)}[j]]")
        whole, n = self._new(step.n_out), step.n_in
        self.statements += f"""    for (j = 0; j < {n}; ++j) {{
        {whole}[j] = {filled}[j];
    }}
    for (j = 0; j < {step.flags.size}; ++j) {{
        {whole}[{n} + j] = {flag} ? 1.0f : 0.0f;
    }}
"""
        return whole

    def _dates(self, step: Dates, rows: str) -> str:
        """Dates are numbers of days."""
        values = self._constants(step.values)
        days = self._loop(step.n_in, f"{rows}[j] != {rows}[j] ? {values}[j] : {rows}[j]")
        whole, n = self._new(step.n_out), step.n_in
        self.statements += f"    for (j = 0; j < {n}; ++j) {{\n        {whole}[j] = {days}[j];\n    }}\n"
        for place, column in enumerate(step.flags):
            self.statements += (
                f"    {whole}[{n + place}] = {rows}[{column}] != {rows}[{column}] ? 1.0f : 0.0f;\n"
            )
        start = n + step.flags.size
        for place, (column, period) in enumerate(zip(step.columns, step.periods, strict=True)):
            self.needs_math = True
            turns = f"{days}[{column}] / {number(period)}"
            angle = f"{number(2.0 * np.pi)} * ({turns} - floorf({turns}))"
            for shift, function in enumerate(("sinf", "cosf")):
                self.statements += f"    {whole}[{start + 2 * place + shift}] = {function}({angle});\n"
            self.multiplications += 4
        return whole

    def _encode(self, step: Encode, rows: str) -> str:
        whole, start = self._new(step.n_out), 0
        for j, one in enumerate(step.tables):
            if one.unknown is None:
                raise ValueError(
                    f"column {j} of {step!r} refuses unknown categories, which C code cannot: fit the "
                    "encoder with handle_unknown='ignore' or 'infrequent_if_exist'"
                )
            n, size = one.categories.size, one.numbers.shape[1]
            values = one.categories.astype(np.float64)
            if not np.array_equal(values, values.astype(self.dtype), equal_nan=True):
                raise ValueError(
                    f"column {j} of {step!r} has categories that are not exact in single precision: "
                    "use dtype='float64'"
                )
            categories, numbers = self._constants(values), self._constants(one.rows)
            # The row after the categories is that of NaN if there is one; the last is that of unknown values.
            gap, unknown = min(n, one.numbers.shape[0]), one.numbers.shape[0]
            self.statements += f"""    {{
        int i = 0;
        while (i < {n} && {rows}[{j}] != {categories}[i]) {{
            ++i;
        }}
        if (i == {n}) {{
            i = {rows}[{j}] != {rows}[{j}] ? {gap} : {unknown};
        }}
        for (j = 0; j < {size}; ++j) {{
            {whole}[{start} + j] = {numbers}[i][j];
        }}
    }}
"""
            start += size
        return whole
