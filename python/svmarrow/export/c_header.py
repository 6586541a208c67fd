"""Models as one C99 header for machines without an operating system: constant tables and three functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from svmarrow._support.parameters import Rule, check, one_of
from svmarrow._support.system import write_text
from svmarrow.expansion.composites import ExpansionTree
from svmarrow.export.c_decoding import labels_text, prediction, probabilities
from svmarrow.export.c_kernels import Outputs, outputs_in_bytes, outputs_in_floats
from svmarrow.export.c_steps import StepText, in_precision, number
from svmarrow.export.common import (
    TreeOutputs,
    both_outputs,
    check_rounding,
    kernel_columns,
    kernel_rows,
    output_spec_of,
    output_spread,
    provenance,
    rounded_kernel_rows,
    rows_in_precision,
    samples_of,
)

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray

    from svmarrow.expansion.kernel_expansion import KernelExpansion
    from svmarrow.models.outputs import OutputSpec

__all__ = ["CHeader", "to_c"]

#: Words of C and C++ need no care: every name has something after the prefix.
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RULES = {
    "prefix": Rule(
        "letters, digits and underscores, a letter first",
        lambda value: isinstance(value, str) and IDENTIFIER.fullmatch(value) is not None,
    ),
    "dtype": one_of("float32", "float64", "int8"),
}
#: What the self-test allows for, relative to the sum of the terms' sizes.
TOLERANCES = {"float32": 1e-4, "float64": 1e-12}
#: Units of the last digit that it always allows for.
N_UNITS = 16


@dataclass(frozen=True)
class CHeader:
    """A C header and what it costs.

    Attributes
    ----------
    text : str
        The header.
    flash : int
        Bytes of its constant tables.
    stack : int
        Bytes of local arrays of a prediction.
    multiplications, exponentials : int
        Of a prediction.
    disagreement : float or None
        Fraction of the samples that get another label than from the model; None without X, and for numbers.
    score_before, score_after : float or None
        Accuracy of labels, R^2 of numbers: of the model and of the header. None without X and y.
    """

    text: str
    flash: int
    stack: int
    multiplications: int
    exponentials: int
    disagreement: float | None = None
    score_before: float | None = None
    score_after: float | None = None

    def __repr__(self) -> str:
        about = f"{self.flash:,} bytes of tables, {self.multiplications:,} multiplications and "
        return f"<CHeader: {about}{self.exponentials:,} exponentials a row>"


def to_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    prefix: str = "svmarrow",
    dtype: Literal["float32", "float64", "int8"] = "float32",
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
) -> CHeader:
    """Write a fitted model as one C header.

    The header has constant tables and, with the prefix ``p``,

    * ``void p_outputs(const float *x, float *out)``: the P_OUTPUTS outputs of a row of P_FEATURES numbers;
    * ``int p_predict(const float *x)``: the number of the class, 1 or -1 for an outlier detector, and a float
      for a regressor of one target (there is none for several targets or a bare expansion);
    * ``p_label(int)``: the label of a class;
    * ``void p_probabilities(const float *x, float *p)``: the probabilities of the P_CLASSES classes,
      where the model has some;
    * ``int p_self_test(void)``: 1 where a stored row gives the stored outputs.

    It allocates no memory and changes none, and of the C library it calls ``expf`` and
    ``sqrtf`` alone; for dates, which are days since 1970-01-01, ``sinf``, ``cosf`` and ``floorf`` too.
    It compiles as C99 and as C++11 without a warning. With ``dtype="float64"`` every ``float`` is a
    ``double``, and the calls are ``exp`` and ``sqrt``.

    Parameters
    ----------
    model : object
        What `svmarrow.as_expansion` takes, with a built-in kernel. Compress it first.
    path : str or path-like, default=None
        File to write, all or nothing. None writes none.
    prefix : str, default="svmarrow"
        What all names begin with: letters, digits and underscores, a letter first.
    dtype : {"float32", "float64", "int8"}, default="float32"
        Numbers of samples, tables and outputs. "float64" is for models that need double precision, see Notes.
        "int8" keeps vectors and coefficients in one byte each. Distances of the RBF and Laplacian kernels
        are then whole numbers and exponentials come from a table of 65 entries: no ``expf``. Coefficients
        are tuned again on the rounded vectors, on the rows of X where there are some; samples and outputs
        are in single precision.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Samples to tune "int8" on and to compare on, the training samples for example.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Their labels or numbers: scores are measured too.

    Returns
    -------
    CHeader
        The text, its bytes and operations, and the cost of rounding on X, of which single precision is a
        part.

    Raises
    ------
    ValueError
        If the prefix is no name, the kernel is a Python function, a number does not fit `dtype`, rounding
        changes the outputs too much (see Notes), the decoder is a logistic loss, which needs logarithms,
        probabilities are of scores that are rounds of a knock-out (dag), or ``dtype="int8"`` has nothing
        to round.
    TypeError, sklearn.exceptions.NotFittedError
        As `svmarrow.as_expansion`.
    OSError
        If the system cannot write the file.

    Warns
    -----
    UserWarning
        If single precision changes the outputs, but by less than what is refused (see Notes).

    Notes
    -----
    Large coefficients that cancel, as those of least squares with a small penalty, and features far from
    0, such as time stamps, need double precision. The outputs, computed as the header does, are therefore
    compared with those of the model on X, or without X on at most 128 samples: vectors of the model, and
    points between two of them. A root mean square difference above 0.1 % of the spread of an output is a
    warning, one above 5 % an error ("int8": an error above 50 %). The spread is the standard deviation of
    predictions, and the root mean square of outputs whose sign or order is a label, on X or at vectors.
    Without X, models with a precomputed kernel are not compared.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC, compress
    >>> from svmarrow.export import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> small = compress(SVC(multi_class="ovr").fit(X, y), n_vectors=10)
    >>> to_c(small, prefix="iris")
    <CHeader: 292 bytes of tables, 80 multiplications and 10 exponentials a row>
    >>> to_c(small, prefix="iris", dtype="int8", X=X).disagreement < 0.02
    True
    """
    check({"prefix": prefix, "dtype": dtype}, RULES)
    if X is None and y is not None:
        raise ValueError("y is given without X")
    spec = output_spec_of(model)
    if dtype == "int8":
        made = outputs_in_bytes(spec, None if X is None else kernel_rows(X, spec))
    else:
        made = outputs_in_floats(spec, dtype)
    precision = "float32" if dtype == "int8" else dtype
    n_bytes = np.dtype(precision).itemsize
    definitions, predict, more = prediction(spec)
    others, chances, n_constants = probabilities(spec)
    after = "".join((definitions | others).values()) + chances + predict
    steps = StepText(precision)
    before = "" if spec.preparation is None else steps.text(spec.preparation)
    made = made._replace(
        flash=made.flash + steps.flash + n_bytes * n_constants,
        stack=made.stack + steps.stack,
        multiplications=made.multiplications + steps.multiplications,
    )
    needs_math = made.needs_math or more or steps.needs_math or bool(chances)
    samples = samples_of(spec) if X is None else X
    outputs = None if samples is None else both_outputs(spec, made.computed, samples, precision)
    spread = np.full(spec.expansion.n_outputs, np.inf)
    if outputs is not None:
        spread = output_spread(spec, outputs[0][::2] if X is None else outputs[0])
        check_rounding(*outputs, spread, dtype)
    text = _header(spec, made, spread, dtype, precision, before, after, needs_math=needs_math)
    # Text has $name and $NAME for every name of its own: p_name and P_NAME with the prefix p.
    text = re.sub(r"\$(?=[A-Z])", f"{prefix.upper()}_", text).replace("$", f"{prefix}_")
    if path is not None:
        write_text(path, text)
    calls = made.exponentials + (2 * spec.expansion.n_outputs if more else 0)
    cost = {"flash": made.flash, "stack": made.stack + n_bytes * spec.expansion.n_outputs}
    cost |= {"multiplications": made.multiplications, "exponentials": calls}
    if X is None or outputs is None:
        return CHeader(text, **cost)
    return CHeader(text, **cost, **_losses(spec, *outputs, y))


def _losses(
    spec: OutputSpec, full: NDArray[np.float64], small: NDArray[np.float64], y: ArrayLike | None
) -> dict[str, Any]:
    if spec.kind in ("numbers", "outputs"):
        if y is None:
            return {}
        targets = np.asarray(y, dtype=np.float64).reshape(len(full), -1)
        scores = [float(r2_score(targets, outputs)) for outputs in (full, small)]
        return {"score_before": scores[0], "score_after": scores[1]}
    if spec.kind == "inside":
        labels = [np.where(outputs[:, 0] >= 0.0, 1, -1) for outputs in (full, small)]
    else:
        assert spec.classes is not None
        labels = [spec.classes[spec.winners_of(outputs)] for outputs in (full, small)]
    found: dict[str, Any] = {"disagreement": float((labels[0] != labels[1]).mean())}
    if y is not None:
        scores = [float(accuracy_score(np.asarray(y), label)) for label in labels]
        found |= {"score_before": scores[0], "score_after": scores[1]}
    return found


def _header(
    spec: OutputSpec,
    made: Outputs,
    spread: NDArray[np.float64],
    dtype: str,
    precision: str,
    before: str,
    after: str,
    *,
    needs_math: bool,
) -> str:
    expansion, origin = spec.expansion, provenance(spec.expansion)
    sizes = {"FEATURES": spec.n_features, "COLUMNS": kernel_columns(spec), "OUTPUTS": expansion.n_outputs}
    sizes["VECTORS"] = expansion.n_vectors
    label = ""
    if spec.classes is not None:
        sizes["CLASSES"] = len(spec.classes)
        label = labels_text(np.asarray(spec.classes)) + "\n"
    name = "kernel_outputs" if before else "outputs"
    outputs = f"static inline void ${name}(const float *x, float *out) {{\n{made.body}\n}}\n"
    if before:
        outputs += """
static inline void $outputs(const float *row, float *out) {
    float x[$COLUMNS];
    $prepare(row, x);
    $kernel_outputs(x, out);
}
"""
    macros = "\n".join(f"#define ${name} {size}" for name, size in sizes.items())
    whole = "_t " in made.tables + made.body + before + after
    includes = [*(["#include <math.h>"] if needs_math else []), *(["#include <stdint.h>"] if whole else [])]
    lines = "\n".join(includes)
    text = f"{made.tables}{before}\n/* The outputs of a row. */\n{outputs}\n{after}"
    return f"""/* A kernel machine, written by {origin["producer"]}.
 *
 * Kernel: {origin["kernel"]}
 * Numbers: {dtype}; {made.flash} bytes of constant tables
 * A row: {made.multiplications} multiplications, {made.exponentials} exponentials,
 *     {made.stack} bytes of local arrays
 * Model: sha256 {origin["sha256"]}
 */
#ifndef $H
#define $H

{lines}

#ifdef __cplusplus
extern "C" {{
#endif

{macros}

{in_precision(text, precision)}
{label}{in_precision(_self_test(spec, made, spread, precision), precision)}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _self_test(spec: OutputSpec, made: Outputs, spread: NDArray[np.float64], precision: str) -> str:
    """A row, its outputs, and the function that compares them."""
    expansion = spec.expansion
    samples = samples_of(spec)
    complete = samples if samples is None else samples[~np.isnan(samples).any(axis=1)]
    # Between two vectors, so that several count; without vectors, any numbers.
    row = 1.0 / (1.0 + np.arange(spec.n_features))
    if complete is not None and len(complete) > 1:
        row = complete[1]
        if isinstance(made.computed, TreeOutputs):
            # No rounding may send it to another leaf.
            margins = made.computed.routes(kernel_rows(complete[1::2], spec))[1]
            row = complete[1 + 2 * int(margins.argmax())]
    row = rows_in_precision(row[np.newaxis], precision)
    seen = rounded_kernel_rows(row, spec, precision)
    if isinstance(expansion, ExpansionTree):
        expansion = expansion.leaf_expansion(int(expansion.apply(seen)[0]))
    if any(part.kernel == "chi2" for part in expansion.parts):
        # Rounding of a row may make a prepared 0 negative, which this kernel does not take.
        seen = np.maximum(seen, 0.0)
    # With the rounding that the text has: how much it changes the outputs is measured before.
    outputs = np.asarray(made.computed(seen), dtype=np.float64)[0]
    # What rounding may lose of the sum of the terms' sizes: at most a tenth of the spread, which is 0 where
    # all vectors are on the margin, but not less than some units of its last digit.
    sizes = (
        np.abs(expansion.coefficients).sum(axis=0) * _largest_value(expansion, seen) + np.abs(outputs) + 1e-30
    )
    units = N_UNITS * float(np.finfo(precision).eps) * sizes
    near = np.minimum(TOLERANCES[precision] * sizes, np.maximum(0.1 * spread, units))
    # Another order of operations before the kernel may change the last digit of what it sees.
    seen = seen.astype(precision)
    moved = [made.computed(np.nextafter(seen, seen.dtype.type(end)))[0] for end in (-np.inf, np.inf)]
    near += 4.0 * np.abs(np.asarray(moved, dtype=np.float64) - outputs).max(axis=0)
    shown = ", ".join(number(value) for value in row[0])
    expected = ", ".join(number(value) for value in outputs)
    allowed = ", ".join(number(value) for value in near)
    return f"""/* 1 where a stored row gives the stored outputs, else 0. */
static inline int $self_test(void) {{
    static const float row[$FEATURES] = {{{shown}}};
    static const float expected[$OUTPUTS] = {{{expected}}};
    static const float allowed[$OUTPUTS] = {{{allowed}}};
    float out[$OUTPUTS];
    int o;
    $outputs(row, out);
    for (o = 0; o < $OUTPUTS; ++o) {{
        const float off = out[o] - expected[o];
        if (!((off < 0.0f ? -off : off) <= allowed[o])) {{
            return 0;
        }}
    }}
    return 1;
}}
"""


def _largest_value(expansion: KernelExpansion, row: NDArray[np.float64]) -> float:
    """The largest kernel value at a row."""
    if expansion.n_vectors == 0:
        return 0.0
    m = expansion.n_vectors
    values = expansion.replaced(coefficients=np.eye(m), intercepts=np.zeros(m))
    return float(np.abs(values.decision_function(row)).max())
