"""From outputs to answers in C99: ``$predict`` with the scores of the decoders, and ``$probabilities``.

In all C text ``$`` stands for the prefix, see `svmarrow.export.c_header`. Probabilities are those of
`svmarrow.models.outputs`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow.export.c_steps import number, table
from svmarrow.export.common import check_text
from svmarrow.models.outputs import MAX_LOGIT, MIN_LOGIT, MIN_PROBABILITY, TIE_LOGIT, pair_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.models.outputs import Calibration, OutputSpec

__all__ = [
    "labels_text",
    "prediction",
    "probabilities",
]

_LOSSES = {
    "hinge": "return z < 1.0f ? 1.0f - z : 0.0f;",
    "squared_hinge": "return z < 1.0f ? (1.0f - z) * (1.0f - z) : 0.0f;",
    "square": "return (1.0f - z) * (1.0f - z);",
    "exponential": "return expf(-z);",
    "perceptron": "return z < 0.0f ? -z : 0.0f;",
}
#: What an output f adds to the classes on its machine's positive side and on its negative side.
_GAINS = {
    "votes": ("f > 0.0f ? 1.0f : 0.0f", "f > 0.0f ? 0.0f : 1.0f"),
    "confidence": ("f >= 0.0f ? 1.0f : 0.0f", "f >= 0.0f ? 0.0f : 1.0f"),
    "hamming": (
        "f > 0.0f ? 0.5f : f < 0.0f ? -0.5f : 0.0f",
        "f > 0.0f ? -0.5f : f < 0.0f ? 0.5f : 0.0f",
    ),
}


def prediction(spec: OutputSpec) -> tuple[dict[str, str], str, bool]:
    """The definitions of a decoder by their names, ``$predict``, and True if one of them calls expf."""
    head = "static inline int $predict(const float *x) {\n    float out[$OUTPUTS];\n"
    call = "    $outputs(x, out);\n"
    if spec.kind == "numbers" and spec.expansion.n_outputs == 1:
        head = head.replace("inline int", "inline float")
        return {}, f"/* The prediction. */\n{head}{call}    return out[0];\n}}\n", False
    if spec.kind == "inside":
        about = "/* 1 inside the region, -1 outside. */\n"
        return {}, f"{about}{head}{call}    return out[0] >= 0.0f ? 1 : -1;\n}}\n", False
    if spec.kind != "classes":
        return {}, "", False
    about = "/* The number of the class, 0 to $CLASSES - 1; $label gives its label. */\n"
    if spec.winner == "probabilities":
        return _most_probable(spec, about)
    if spec.winner == "sign":
        return {}, f"{about}{head}{call}    return out[0] >= 0.0f ? 1 : 0;\n}}\n", False
    if spec.winner == "largest":
        return {}, f"{about}{head}    int c, best = 0;\n{call}{_largest('out')}    return best;\n}}\n", False
    assert spec.matrix is not None
    if spec.winner == "dag":
        return {}, about + head + _dag(call, spec.matrix.shape[0]), False
    parts = scores(spec.matrix, spec.winner)
    text = f"""{about}{head}    float scores[$CLASSES];
    int c, best = 0;
{call}    ${spec.winner}(out, scores);
{_largest("scores")}    return best;
}}
"""
    return parts, text, spec.winner.endswith("exponential")


def _largest(values: str) -> str:
    return f"""    for (c = 1; c < $CLASSES; ++c) {{
        if ({values}[c] > {values}[best]) {{
            best = c;
        }}
    }}
"""


def _most_probable(spec: OutputSpec, about: str) -> tuple[dict[str, str], str, bool]:
    """``$predict`` of a model whose label is the most probable class."""
    calibration = spec.calibration
    assert calibration is not None
    assert spec.classes is not None
    head = "static inline int $predict(const float *x) {\n"
    if calibration.link == "pairs" and len(spec.classes) > 2:
        text = f"    float p[$CLASSES];\n    int c, best = 0;\n    $probabilities(x, p);\n{_largest('p')}"
        return {}, f"{about}{head}{text}    return best;\n}}\n", False
    # Logits need no exponentials, and differ where sigmoids of single precision are all 1.
    parts, declared, call = score_values(spec)
    text = f"    float out[$OUTPUTS];\n{declared}"
    body = f"    $outputs(x, out);\n{call}"
    if len(spec.classes) == 2:
        logit = "$slopes[0] * values[0] + $offsets[0]"
        text += f"{body}    return {logit} > {number(TIE_LOGIT)} ? 1 : 0;\n"
        return parts, f"{about}{head}{text}}}\n", False
    clip = ""
    if calibration.link == "classes":
        low, high = number(MIN_LOGIT), number(MAX_LOGIT)
        clip = f"        logits[c] = logits[c] < {low} ? {low} : logits[c] > {high} ? {high} : logits[c];\n"
    at = "0" if calibration.link == "softmax" else "c"
    text += f"""    float logits[$CLASSES];
    int c, best = 0;
{body}    for (c = 0; c < $CLASSES; ++c) {{
        logits[c] = $slopes[{at}] * values[c] + $offsets[{at}];
{clip}    }}
{_largest("logits")}    return best;
}}
"""
    return parts, about + head + text, False


def score_values(spec: OutputSpec) -> tuple[dict[str, str], str, str]:
    """Definitions, and how the values that sigmoids take are declared and computed from ``out``."""
    same = "    const float *values = out;\n"
    decoder = spec.score_decoder
    if spec.calibrates_outputs or (decoder is None and spec.scores != "column"):
        return {}, same, ""
    assert spec.matrix is not None
    if decoder is None:
        return {}, same, f"    out[0] *= {number(float(spec.matrix[1, 0]))};\n"
    if decoder == "dag":
        raise ValueError(
            "the scores of decoder='dag' are rounds of a knock-out, which an exported C header does not turn "
            "into probabilities: decode by votes, or export without (model.with_calibration(None))"
        )
    call = f"    ${decoder}(out, values);\n"
    shift = base(spec.matrix.shape[1], decoder)
    if spec.one_score:
        less = " - values[0]" if spec.one_score == "difference" else ""
        call += f"    values[0] = values[1]{less};\n"
    elif shift:
        call += f"    for (c = 0; c < $CLASSES; ++c) {{\n        values[c] -= {number(shift)};\n    }}\n"
    return scores(spec.matrix, decoder), "    float values[$CLASSES];\n", call


def _dag(call: str, k: int) -> str:
    if k == 2:
        # The one machine is positive for the second class.
        return f"{call}    return out[0] > 0.0f ? 1 : 0;\n}}\n"
    return f"""    int first = 0, last = $CLASSES - 1;
{call}    /* The first and the last class of the list meet, the loser leaves. */
    while (first < last) {{
        const int pair = first * (2 * $CLASSES - first - 1) / 2 + last - first - 1;
        if (out[pair] > 0.0f) {{
            --last;
        }} else {{
            ++first;
        }}
    }}
    return first;
}}
"""


def scores(matrix: NDArray[np.int8], decoder: str) -> dict[str, str]:
    """Definitions by their names: tables, and last ``$decoder``, the scores of outputs."""
    k, columns = matrix.shape
    pairwise = k > 2 and np.array_equal(matrix, pair_matrix(k))
    loss = decoder.removeprefix("mean_")
    if loss == "logistic":
        raise ValueError(
            f"decoder={decoder!r} needs logarithms, which an exported C header does not call: "
            "decode by another loss"
        )
    parts: dict[str, str] = {}
    if decoder.startswith("mean_"):
        shares = 1.0 / np.abs(matrix).sum(axis=1)
        parts["shares"] = table("float", "$shares", (k,), shares) + "\n"
    if not pairwise:
        parts["code"] = table("int8_t", "$code", (k, columns), matrix.ravel()) + "\n"
    if loss in _LOSSES:
        name = f"${loss}_loss"
        parts[name] = f"static inline float {name}(float z) {{\n    {_LOSSES[loss]}\n}}\n\n"
        zero = number(0.0 if loss == "perceptron" else 1.0)
        gains = (f"{zero} - {name}(f)", f"{zero} - {name}(-f)")
    else:
        gains = _GAINS[decoder]
    both = decoder == "confidence"
    text = f"""/* The scores of the classes. */
static inline void ${decoder}(const float *out, float *scores) {{
    int {"a, b, o = 0" if pairwise else "o"}, c;
"""
    text += "    float sums[$CLASSES];\n" if both else ""
    text += f"""    for (c = 0; c < $CLASSES; ++c) {{
        scores[c] = 0.0f;
{"        sums[c] = 0.0f;" + chr(10) if both else ""}    }}
"""
    gain = f"const float f = out[o], yes = {gains[0]}, no = {gains[1]};"
    if pairwise:
        sums = "\n            sums[a] += f;\n            sums[b] -= f;" if both else ""
        text += f"""    for (a = 0; a < $CLASSES; ++a) {{
        for (b = a + 1; b < $CLASSES; ++b, ++o) {{
            {gain}
            scores[a] += yes;
            scores[b] += no;{sums}
        }}
    }}
"""
    else:
        side = "$code[c][o]"
        sums = f"\n            sums[c] += (float){side} * f;" if both else ""
        text += f"""    for (o = 0; o < $OUTPUTS; ++o) {{
        {gain}
        for (c = 0; c < $CLASSES; ++c) {{
            scores[c] += {side} > 0 ? yes : {side} < 0 ? no : 0.0f;{sums}
        }}
    }}
"""
    if decoder.startswith("mean_"):
        text += """    for (c = 0; c < $CLASSES; ++c) {
        scores[c] *= $shares[c];
    }
"""
    if both:
        text += """    for (c = 0; c < $CLASSES; ++c) {
        const float size = sums[c] < 0.0f ? -sums[c] : sums[c];
        scores[c] += sums[c] / (3.0f * (size + 1.0f));
    }
"""
    return parts | {decoder: text + "}\n\n"}


def base(columns: int, decoder: str) -> float:
    """The constant by which the scores of `scores` exceed those of `decision_function`."""
    if decoder == "hamming":
        return 0.5 * columns
    loss = decoder.removeprefix("mean_")
    if loss not in _LOSSES or loss == "perceptron":
        return 0.0
    return 1.0 if decoder != loss else float(columns)


def labels_text(labels: NDArray[Any]) -> str:
    """``$label``: from the number of a class to its label."""
    k, values = len(labels), labels.tolist()
    if labels.dtype.kind in "iub":
        whole = [int(value) for value in values]
        if max(whole) >= 2**63:
            kind, texts = "unsigned long long", [f"{value}ULL" for value in whole]
        elif any(not -(2**31) < value < 2**31 for value in whole):
            # C has no literal of the least one: a sign is an operator.
            kind = "long long"
            texts = [f"{value}LL" if value > -(2**63) else f"(-{2**63 - 1}LL - 1)" for value in whole]
        else:
            kind, texts = "long", [str(value) for value in whole]
    elif labels.dtype.kind == "f" and (labels.astype(np.float64) == labels).all():
        kind, texts = "double", [repr(float(value)) for value in values]
    elif labels.dtype.kind != "f" and all(isinstance(value, str) for value in values):
        check_text(labels)
        kind, texts = "const char *", [_quoted(value) for value in values]
    else:
        raise ValueError(
            f"classes of type {labels.dtype} cannot be exported: they must be numbers in double precision or "
            "strings"
        )
    held = kind if kind.endswith("*") else f"{kind} "
    rows = ",\n".join(f"        {text}" for text in texts)
    return f"""/* The label of a class. */
static inline {held}$label(int number) {{
    static const {kind.removeprefix("const ") if kind != "const char *" else "char *const"} labels[{k}] = {{
{rows}
    }};
    return labels[number];
}}
"""


def _quoted(text: str) -> str:
    """A C string: bytes beyond ASCII, and ``$``, in octal, which ends after three digits."""
    out = ""
    for byte in text.encode("utf-8"):
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?$'
        out += chr(byte) if plain else f"\\{byte:03o}"
    if "\x00" in text:
        raise ValueError(f"the label {json.dumps(text)} holds a zero byte, which ends a C string")
    return f'"{out}"'


# --- probabilities ---


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
