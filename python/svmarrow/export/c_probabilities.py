"""From outputs to probabilities in C99: ``$probabilities``, see `svmarrow.models.calibration`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from svmarrow.export.c_decoding import score_values
from svmarrow.export.c_kernels import number, table
from svmarrow.models.calibration import MIN_PROBABILITY

if TYPE_CHECKING:
    from svmarrow.models.calibration import Calibration
    from svmarrow.models.outputs import OutputSpec

__all__ = ["probabilities"]


def probabilities(spec: OutputSpec) -> tuple[dict[str, str], str, int]:
    """The definitions of scores by their names, ``$probabilities``, and the number of its constants.

    All are empty if the model has no probabilities. A ValueError if the scores need logarithms or are rounds
    of a knock-out.
    """
    calibration = spec.calibration
    if calibration is None:
        return {}, "", 0
    assert spec.classes is not None
    k, size = len(spec.classes), calibration.slopes.size
    parts, declared, call = score_values(spec)
    link = {"classes": _of_classes, "softmax": _of_softmax, "pairs": _of_pairs}[calibration.link]
    locals_, statements = _of_two(calibration) if k == 2 else link()
    text = table("float", "$slopes", (size,), calibration.slopes)
    text += table("float", "$offsets", (size,), calibration.offsets) + "\n"
    if calibration.link != "softmax" or k == 2:
        text += SIGMOID
    text += f"""/* The probabilities of the classes of a row: $CLASSES numbers. */
static inline void $probabilities(const float *x, float *p) {{
    float out[$OUTPUTS];
{declared}{locals_}    $outputs(x, out);
{call}{statements}}}

"""
    return parts, text, 2 * size


SIGMOID = """static inline float $sigmoid(int number, float f) {
    return 1.0f / (1.0f + expf(-($slopes[number] * f + $offsets[number])));
}

"""


def _of_two(calibration: Calibration) -> tuple[str, str]:
    text = "    p[1] = $sigmoid(0, values[0]);\n"
    if calibration.link == "pairs":
        least, most = number(MIN_PROBABILITY), number(1.0 - MIN_PROBABILITY)
        text += f"    p[1] = p[1] < {least} ? {least} : p[1] > {most} ? {most} : p[1];\n"
    return "", text + "    p[0] = 1.0f - p[1];\n"


def _of_classes() -> tuple[str, str]:
    return (
        "    float sum = 0.0f;\n    int c;\n",
        """    for (c = 0; c < $CLASSES; ++c) {
        p[c] = $sigmoid(c, values[c]);
        sum += p[c];
    }
    for (c = 0; c < $CLASSES; ++c) {
        p[c] = sum > 0.0f ? p[c] / sum : 1.0f / (float)$CLASSES;
    }
""",
    )


def _of_softmax() -> tuple[str, str]:
    return (
        "    float sum = 0.0f, most;\n    int c;\n",
        """    most = $slopes[0] * values[0];
    for (c = 0; c < $CLASSES; ++c) {
        p[c] = $slopes[0] * values[c];
        most = p[c] > most ? p[c] : most;
    }
    for (c = 0; c < $CLASSES; ++c) {
        p[c] = expf(p[c] - most);
        sum += p[c];
    }
    for (c = 0; c < $CLASSES; ++c) {
        p[c] /= sum;
    }
""",
    )


def _of_pairs() -> tuple[str, str]:
    least, most = number(MIN_PROBABILITY), number(float(np.float64(1.0 - MIN_PROBABILITY)))
    declared = "    float system[$CLASSES][$CLASSES + 1], sum = 0.0f;\n    int a, b, c, o = 0;\n"
    return (
        declared,
        f"""    for (a = 0; a < $CLASSES; ++a) {{
        system[a][a] = 1.0f;
        system[a][$CLASSES] = 1.0f;
    }}
    for (a = 0; a < $CLASSES; ++a) {{
        for (b = a + 1; b < $CLASSES; ++b, ++o) {{
            float r = $sigmoid(o, values[o]);
            r = r < {least} ? {least} : r > {most} ? {most} : r;
            system[a][b] = 1.0f - r * (1.0f - r);
            system[b][a] = system[a][b];
            system[a][a] += (1.0f - r) * (1.0f - r);
            system[b][b] += r * r;
        }}
    }}
    /* The pairs' common distribution, by elimination: the matrix is positive definite. */
    for (a = 0; a < $CLASSES; ++a) {{
        for (b = a + 1; b < $CLASSES; ++b) {{
            const float factor = system[b][a] / system[a][a];
            for (c = a + 1; c <= $CLASSES; ++c) {{
                system[b][c] -= factor * system[a][c];
            }}
        }}
    }}
    for (a = $CLASSES - 1; a >= 0; --a) {{
        p[a] = system[a][$CLASSES];
        for (c = a + 1; c < $CLASSES; ++c) {{
            p[a] -= system[a][c] * p[c];
        }}
        p[a] /= system[a][a];
    }}
    for (c = 0; c < $CLASSES; ++c) {{
        p[c] = p[c] > 0.0f ? p[c] : 0.0f;
        sum += p[c];
    }}
    for (c = 0; c < $CLASSES; ++c) {{
        p[c] /= sum;
    }}
""",
    )
