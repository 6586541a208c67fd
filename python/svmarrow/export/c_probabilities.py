"""From outputs to probabilities in C99: ``PREFIX_probabilities``, see `svmarrow.models.calibration`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from svmarrow.export.c_decoding import base, scores
from svmarrow.export.c_kernels import number, table
from svmarrow.models.calibration import MIN_PROBABILITY

if TYPE_CHECKING:
    from svmarrow.models.calibration import Calibration
    from svmarrow.models.output_spec import OutputSpec

__all__ = ["probabilities"]


def probabilities(spec: OutputSpec, prefix: str, known: str) -> tuple[str, int]:
    """The text, and the bytes of its tables; nothing where the model has no probabilities.

    Parameters
    ----------
    spec : OutputSpec
        The model.
    prefix : str
        What all names begin with.
    known : str
        The text before, whose definitions are not repeated.

    Raises
    ------
    ValueError
        If they are of scores that need logarithms or are rounds of a knock-out.
    """
    calibration = spec.calibration
    if calibration is None:
        return "", 0
    assert spec.classes is not None
    big, k = prefix.upper(), len(spec.classes)
    parts, score = _values(spec, calibration, prefix, k)
    size = calibration.slopes.size
    tables = table("float", f"{prefix}_slopes", (size,), calibration.slopes)
    tables += table("float", f"{prefix}_offsets", (size,), calibration.offsets)
    link = {"classes": _of_classes, "softmax": _of_softmax, "pairs": _of_pairs}[calibration.link]
    body = _of_two(calibration) if k == 2 else link(big)
    text = "".join(part for part in parts.values() if part not in known)
    text += f"""{tables}
static inline float {prefix}_sigmoid(int number, float f) {{
    return 1.0f / (1.0f + expf(-({prefix}_slopes[number] * f + {prefix}_offsets[number])));
}}

/* The probabilities of the classes of a row: {big}_CLASSES numbers. */
static inline void {prefix}_probabilities(const float *x, float *p) {{
    float out[{big}_OUTPUTS];
{_joined(body, score, prefix)}}}

"""
    if calibration.link == "softmax" and k > 2:
        text = text.replace(_sigmoid_of(text, prefix), "")
    return text, 8 * size


def _sigmoid_of(text: str, prefix: str) -> str:
    """The definition of the sigmoid, for what has no use for it."""
    start = text.index(f"static inline float {prefix}_sigmoid")
    return text[start : text.index("/* The probabilities")]


def _values(
    spec: OutputSpec, calibration: Calibration, prefix: str, k: int
) -> tuple[dict[str, str], tuple[str, str, str]]:
    """Definitions, and how values are declared, computed and named."""
    big = prefix.upper()
    if spec.scores in ("flat", "outputs") or (calibration.link == "pairs" and k > 2):
        return {}, ("", "", "out")
    assert spec.matrix is not None
    if spec.scores == "column":
        sign = number(float(spec.matrix[1, 0]))
        return {}, ("", f"    out[0] *= {sign};\n", "out")
    decoder = spec.winner if spec.scores == "difference" else spec.scores
    if decoder == "dag":
        raise ValueError(
            "the scores of decoder='dag' are rounds of a knock-out, which an exported C header does not turn "
            "into probabilities: decode by votes, or export without (model.with_calibration(None))"
        )
    declare = f"    float values[{big}_CLASSES];\n"
    call = f"    {prefix}_{decoder}(out, values);\n"
    if spec.scores == "difference":
        call += "    values[0] = values[1] - values[0];\n"
    elif base(spec.matrix.shape[1], decoder):
        shift = number(base(spec.matrix.shape[1], decoder))
        call += f"    for (c = 0; c < {big}_CLASSES; ++c) {{\n        values[c] -= {shift};\n    }}\n"
    return scores(spec.matrix, decoder, prefix), (declare, call, "values")


def _joined(body: tuple[str, str], score: tuple[str, str, str], prefix: str) -> str:
    """Declarations first, as C89 has it, then the outputs, then what is made of them."""
    declared, statements = body
    declare, call, name = score
    filled = statements.replace("VALUES", name).replace("PREFIX", prefix)
    return f"{declare}{declared}    {prefix}_outputs(x, out);\n{call}{filled}"


def _of_two(calibration: Calibration) -> tuple[str, str]:
    text = "    p[1] = PREFIX_sigmoid(0, VALUES[0]);\n"
    if calibration.link == "pairs":
        least, most = number(MIN_PROBABILITY), number(1.0 - MIN_PROBABILITY)
        text += f"    p[1] = p[1] < {least} ? {least} : p[1] > {most} ? {most} : p[1];\n"
    return "", text + "    p[0] = 1.0f - p[1];\n"


def _of_classes(big: str) -> tuple[str, str]:
    return (
        "    float sum = 0.0f;\n    int c;\n",
        f"""    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] = PREFIX_sigmoid(c, VALUES[c]);
        sum += p[c];
    }}
    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] = sum > 0.0f ? p[c] / sum : 1.0f / (float){big}_CLASSES;
    }}
""",
    )


def _of_softmax(big: str) -> tuple[str, str]:
    return (
        "    float sum = 0.0f, most;\n    int c;\n",
        f"""    most = PREFIX_slopes[0] * VALUES[0];
    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] = PREFIX_slopes[0] * VALUES[c];
        most = p[c] > most ? p[c] : most;
    }}
    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] = expf(p[c] - most);
        sum += p[c];
    }}
    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] /= sum;
    }}
""",
    )


def _of_pairs(big: str) -> tuple[str, str]:
    least, most = number(MIN_PROBABILITY), number(float(np.float64(1.0 - MIN_PROBABILITY)))
    declared = f"    float system[{big}_CLASSES][{big}_CLASSES + 1], sum = 0.0f;\n    int a, b, c, o = 0;\n"
    return (
        declared,
        f"""    for (a = 0; a < {big}_CLASSES; ++a) {{
        system[a][a] = 1.0f;
        system[a][{big}_CLASSES] = 1.0f;
    }}
    for (a = 0; a < {big}_CLASSES; ++a) {{
        for (b = a + 1; b < {big}_CLASSES; ++b, ++o) {{
            float r = PREFIX_sigmoid(o, VALUES[o]);
            r = r < {least} ? {least} : r > {most} ? {most} : r;
            system[a][b] = 1.0f - r * (1.0f - r);
            system[b][a] = system[a][b];
            system[a][a] += (1.0f - r) * (1.0f - r);
            system[b][b] += r * r;
        }}
    }}
    /* The pairs' common distribution, by elimination: the matrix is positive definite. */
    for (a = 0; a < {big}_CLASSES; ++a) {{
        for (b = a + 1; b < {big}_CLASSES; ++b) {{
            const float factor = system[b][a] / system[a][a];
            for (c = a + 1; c <= {big}_CLASSES; ++c) {{
                system[b][c] -= factor * system[a][c];
            }}
        }}
    }}
    for (a = {big}_CLASSES - 1; a >= 0; --a) {{
        p[a] = system[a][{big}_CLASSES];
        for (c = a + 1; c < {big}_CLASSES; ++c) {{
            p[a] -= system[a][c] * p[c];
        }}
        p[a] /= system[a][a];
    }}
    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] = p[c] > 0.0f ? p[c] : 0.0f;
        sum += p[c];
    }}
    for (c = 0; c < {big}_CLASSES; ++c) {{
        p[c] /= sum;
    }}
""",
    )
