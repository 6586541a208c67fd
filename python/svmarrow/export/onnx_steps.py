"""The preparation of a sample in ONNX's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.models.categories import Dates, Encode, Impute
from svmarrow.models.preparation import Affine, Chain, Clip, Normalize, Parts, PiecewiseLinear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.models.preparation import Step


__all__ = ["StepText"]


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
