"""From outputs F (n, q) to labels and scores in ONNX's operators.

Each output gives the classes on its machine's positive side one number and those on its negative side
another (see the table of decoders in `svmarrow.multiclass`), so that scores are two products with tables of
zeros and ones, (q, k). `ArgMax` takes the first of equals, as svmarrow does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.training import pairs
from svmarrow.export.common import check_text
from svmarrow.models.calibration import MAX_LOGIT, MIN_LOGIT, MIN_PROBABILITY, TIE_LOGIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmarrow.models.calibration import Calibration
    from svmarrow.models.outputs import OutputSpec

__all__ = ["decoding"]

_LOSSES = {
    "hinge": "less = Sub (one, {f})\n{out} = Max (less, nothing)",
    "squared_hinge": "less = Sub (one, {f})\ncut = Max (less, nothing)\n{out} = Mul (cut, cut)",
    "square": "less = Sub (one, {f})\n{out} = Mul (less, less)",
    "exponential": "minus = Neg ({f})\n{out} = Exp (minus)",
    "perceptron": "minus = Neg ({f})\n{out} = Max (minus, nothing)",
    # max(0, -z) + log(1 + exp(-|z|)), which overflows nowhere.
    "logistic": """minus = Neg ({f})
        cut = Max (minus, nothing)
        size = Abs ({f})
        opposite = Neg (size)
        small = Exp (opposite)
        more = Add (small, one)
        rest = Log (more)
        {out} = Add (cut, rest)""",
}
#: L(0) of each loss.
_AT_ZERO = {"hinge": 1.0, "squared_hinge": 1.0, "square": 1.0, "exponential": 1.0, "perceptron": 0.0}
_AT_ZERO["logistic"] = float(np.log(2.0))


class _Text:
    """Statements with constants; every part has names of its own."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lines: list[str] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self.scalars: dict[str, float] = {"one": 1.0, "nothing": 0.0}
        self._made: dict[str, str] = {}

    def add(self, text: str, prefix: str = "", keep: tuple[str, ...] = ()) -> None:
        """Statements, their results named with a prefix but for those to keep."""
        rows = [line.strip() for line in text.strip().splitlines()]
        names = {row.split(" = ")[0] for row in rows} - {*keep}
        for row in rows:
            words = row.replace("(", "( ").replace(")", " )").replace(",", " ,").split(" ")
            self.lines.append(" ".join(prefix + word if word in names else word for word in words))

    def scores(self, decoder: str, matrix: NDArray[np.int8]) -> str:
        """The name of the scores (n, k) of a decoder."""
        if decoder in self._made:
            return self._made[decoder]
        name, at = f"{decoder}_scores", f"{decoder}_"
        if decoder == "dag":
            self._dag(matrix.shape[0], name)
        else:
            self._sums(decoder, matrix, name, at)
        self._made[decoder] = name
        return name

    def _sums(self, decoder: str, matrix: NDArray[np.int8], name: str, at: str) -> None:
        scale, offset = np.ones(matrix.shape[0]), 0.0
        loss = decoder.removeprefix("mean_")
        if loss in _LOSSES:
            self.add(_LOSSES[loss].format(f="F", out="lost"), at + "for_", ("lost",))
            self.lines[-1] = self.lines[-1].replace("lost", at + "lost_for", 1)
            self.add("G = Neg (F)", at)
            self.add(_LOSSES[loss].format(f=at + "G", out="lost"), at + "against_", ("lost",))
            self.lines[-1] = self.lines[-1].replace("lost", at + "lost_against", 1)
            zero = _AT_ZERO[loss]
            self.scalars[at + "at_zero"] = zero
            self.add(
                f"""positive = Sub ({at}at_zero, {at}lost_for)
                negative = Sub ({at}at_zero, {at}lost_against)""",
                at,
            )
            if decoder.startswith("mean_"):
                scale, offset = 1.0 / np.abs(matrix).sum(axis=1), zero
            else:
                offset = zero * matrix.shape[1]
        elif decoder == "hamming":
            self.scalars[at + "half"] = 0.5
            self.add(f"side = Sign (F)\npositive = Mul (side, {at}half)\nnegative = Neg (positive)", at)
            offset = 0.5 * matrix.shape[1]
        else:
            side = "Greater" if decoder == "votes" else "GreaterOrEqual"
            self.add(
                f"""yes = {side} (F, nothing)
                positive = CastLike (yes, F)
                negative = Sub (one, positive)""",
                at,
            )
        self.arrays[at + "for"] = (matrix == 1).T * scale
        self.arrays[at + "against"] = (matrix == -1).T * scale
        self.scalars[at + "offset"] = offset
        self.add(
            f"""won = MatMul (positive, {at}for)
            kept = MatMul (negative, {at}against)
            both = Add (won, kept)
            sums = Sub (both, {at}offset)""".replace("positive", at + "positive").replace(
                "negative", at + "negative"
            ),
            at,
        )
        if decoder != "confidence":
            self.lines.append(f"{name} = Identity ({at}sums)")
            return
        # The summed outputs squeezed into (-1/3, 1/3) break ties and turn no vote.
        self.arrays[at + "signs"] = matrix.T.astype(np.float64)
        self.scalars[at + "three"] = 3.0
        self.add(
            f"""total = MatMul (F, {at}signs)
            size = Abs (total)
            more = Add (size, one)
            below = Mul (more, {at}three)
            squeezed = Div (total, below)""",
            at,
        )
        self.lines.append(f"{name} = Add ({at}sums, {at}squeezed)")

    def _dag(self, k: int, name: str) -> None:
        """The first and the last class of the list meet, the loser leaves; its round is its score."""
        if k == 2:
            self.add(
                f"""yes = Greater (F, nothing)
                second = CastLike (yes, F)
                first = Sub (one, second)
                {name} = Concat <axis = 1> (first, second)""",
                "dag_",
                (name,),
            )
            return
        integers = {"i_one": 1, "i_two": 2, "i_k": k, "i_pairs": 2 * k - 1}
        self.arrays |= {name: np.array([[value]], dtype=np.int64) for name, value in integers.items()}
        self.arrays |= {"i_all": np.arange(k, dtype=np.int64)[np.newaxis], "i_column": np.array([1])}
        self.arrays["i_start"] = np.array([0, k - 1], dtype=np.int64)
        self.add(
            """top = ReduceSum <keepdims = 1> (F, i_column)
            still = Mul (top, nothing)
            zeros = Cast <to = 7> (still)
            first0 = Identity (zeros)
            last0 = Add (zeros, i_last)
            scores0 = MatMul (still, no_scores)""",
            "dag_",
        )
        self.arrays["i_last"] = np.array([[k - 1]], dtype=np.int64)
        self.arrays["no_scores"] = np.zeros((1, k))
        for at in range(k - 1):
            self.scalars[f"round{at}"] = float(at)
            # Pair (a, b) follows those of the classes before a.
            self.add(
                f"""turned = Sub (i_pairs, dag_first{at})
                product = Mul (turned, dag_first{at})
                half = Div (product, i_two)
                gap = Sub (dag_last{at}, dag_first{at})
                place = Add (half, gap)
                pair = Sub (place, i_one)
                value = GatherElements <axis = 1> (F, pair)
                yes = Greater (value, nothing)
                loser = Where (yes, dag_last{at}, dag_first{at})
                where = Equal (i_all, loser)
                dag_scores{at + 1} = Where (where, round{at}, dag_scores{at})
                lower = Sub (dag_last{at}, i_one)
                upper = Add (dag_first{at}, i_one)
                dag_last{at + 1} = Where (yes, lower, dag_last{at})
                dag_first{at + 1} = Where (yes, dag_first{at}, upper)""",
                f"dag{at}_",
                (f"dag_scores{at + 1}", f"dag_last{at + 1}", f"dag_first{at + 1}"),
            )
        self.scalars[f"round{k - 1}"] = float(k - 1)
        self.add(
            f"""winner = Equal (i_all, dag_first{k - 1})
            {name} = Where (winner, round{k - 1}, dag_scores{k - 1})""",
            "dag_end_",
            (name, f"dag_scores{k - 1}"),
        )


def decoding(spec: OutputSpec, kind: str) -> tuple[str, dict[str, NDArray[Any]], dict[str, float], list[str]]:
    """The statements that make the results of F.

    Returns
    -------
    text, arrays, scalars
        As `svmarrow.export.onnx_kernels.kernel_function`; the labels are the constant ``classes``.
    outputs : list of str
        Declarations of the results.
    """
    text = _Text(kind)
    text.arrays["column"] = np.array([1], dtype=np.int64)
    q = spec.expansion.n_outputs
    if spec.kind == "outputs":
        text.lines.append("scores = Identity (F)")
        return _finished(text, [f"{kind}[n, {q}] scores"])
    if spec.kind == "numbers":
        if spec.flat:
            text.lines.append("prediction = Squeeze (F, column)")
            return _finished(text, [f"{kind}[n] prediction"])
        text.lines.append("prediction = Identity (F)")
        return _finished(text, [f"{kind}[n, {q}] prediction"])
    if spec.kind == "inside":
        text.arrays |= {"inside": np.array(1, np.int64), "outside": np.array(-1, np.int64)}
        text.lines += [
            "scores = Squeeze (F, column)",
            "yes = GreaterOrEqual (scores, nothing)",
            "label = Where (yes, inside, outside)",
        ]
        return _finished(text, ["int64[n] label", f"{kind}[n] scores"])
    return _labels(text, spec, kind)


def _labels(
    text: _Text, spec: OutputSpec, kind: str
) -> tuple[str, dict[str, NDArray[Any]], dict[str, float], list[str]]:
    assert spec.classes is not None
    labels, q, k = np.asarray(spec.classes), spec.expansion.n_outputs, len(spec.classes)
    if spec.winner == "sign":
        text.lines += [
            "side = Squeeze (F, column)",
            "yes = GreaterOrEqual (side, nothing)",
            "winner = Cast <to = 7> (yes)",
        ]
    elif spec.winner != "probabilities":
        values = "F"
        if spec.winner != "largest":
            assert spec.matrix is not None
            values = text.scores(spec.winner, spec.matrix)
        text.lines.append(f"winner = ArgMax <axis = 1, keepdims = 0> ({values})")
    shape = "n"
    if spec.scores == "outputs":
        text.lines.append("scores = Identity (F)")
        shape = f"n, {q}"
    elif spec.scores == "flat":
        text.lines.append("scores = Squeeze (F, column)")
    elif spec.scores == "column":
        assert spec.matrix is not None
        text.scalars["sign"] = float(spec.matrix[1, 0])
        text.lines += ["flat = Squeeze (F, column)", "scores = Mul (flat, sign)"]
    elif spec.one_score:
        assert spec.matrix is not None
        text.arrays["of_two"] = np.array([[-1.0 if spec.one_score == "difference" else 0.0], [1.0]])
        values = text.scores(str(spec.score_decoder), spec.matrix)
        text.lines += [f"one_score = MatMul ({values}, of_two)", "scores = Squeeze (one_score, column)"]
    else:
        assert spec.matrix is not None
        text.lines.append(f"scores = Identity ({text.scores(spec.scores, spec.matrix)})")
        shape = f"n, {k}"
    outputs = [f"{label_type(labels)}[n] label", f"{kind}[{shape}] scores"]
    if spec.calibration is not None:
        _probabilities(text, spec.calibration, k)
        outputs.append(f"{kind}[n, {k}] probabilities")
        if spec.winner == "probabilities":
            _most_probable(text, spec.calibration, k)
    text.arrays["classes"] = labels
    text.lines.append("label = Gather (classes, winner)")
    return _finished(text, outputs)


def _probabilities(text: _Text, calibration: Calibration, k: int) -> None:
    """Sigmoids and what makes one distribution of them, see `svmarrow.models.calibration`."""
    text.arrays |= {"slopes": calibration.slopes, "offsets": calibration.offsets}
    pairwise = calibration.link == "pairs"
    if k == 2:
        values = "two_scores"
        text.lines.append("two_scores = Unsqueeze (scores, column)")
    else:
        values = "F" if pairwise else "scores"
    text.lines += [f"steep = Mul ({values}, slopes)", "logits = Add (steep, offsets)"]
    if calibration.link == "softmax" and k > 2:
        text.lines.append("probabilities = Softmax <axis = 1> (logits)")
        return
    text.lines.append("sure = Sigmoid (logits)")
    if pairwise:
        text.scalars |= {"least": MIN_PROBABILITY, "most": 1.0 - MIN_PROBABILITY}
        text.lines += ["above = Max (sure, least)", "sure_pairs = Min (above, most)"]
    if k == 2:
        second = "sure_pairs" if pairwise else "sure"
        text.lines += [f"first = Sub (one, {second})", f"probabilities = Concat <axis = 1> (first, {second})"]
    elif pairwise:
        _coupled(text, k)
    else:
        text.scalars["equal_share"] = 1.0 / k
        text.lines += [
            "total = ReduceSum <keepdims = 1> (sure, column)",
            "unknown = Equal (total, nothing)",
            "not_zero = Where (unknown, one, total)",
            "shares = Div (sure, not_zero)",
            "probabilities = Where (unknown, equal_share, shares)",
        ]


def _most_probable(text: _Text, calibration: Calibration, k: int) -> None:
    """The first class of the largest probability, by logits where sigmoids of single precision are all 1."""
    if k == 2:
        text.lines += [
            "logit = Squeeze (logits, column)",
            "yes = Greater (logit, tie)",
            "winner = Cast <to = 7> (yes)",
        ]
        text.scalars["tie"] = TIE_LOGIT
        return
    values = {"pairs": "probabilities", "softmax": "logits", "classes": "distinct"}[calibration.link]
    if calibration.link == "classes":
        text.scalars |= {"low": MIN_LOGIT, "high": MAX_LOGIT}
        text.lines += ["not_low = Max (logits, low)", "distinct = Min (not_low, high)"]
    text.lines.append(f"winner = ArgMax <axis = 1, keepdims = 0> ({values})")


def _coupled(text: _Text, k: int) -> None:
    """The system (Q + 1 1') x = 1 of each row by elimination without pivots: it is positive definite."""
    first, second = np.array(pairs(k)).T
    table, base = np.zeros((len(first), k, k)), np.zeros((k, k))
    every = np.arange(len(first))
    table[every, first, second], table[every, second, first], base[second, first] = 1.0, -1.0, 1.0
    text.arrays |= {
        "of_pairs": table.reshape(-1, k * k),
        "without_pairs": base.reshape(-1),
        "square": np.array([-1, k, k], dtype=np.int64),
        "third": np.array([2], dtype=np.int64),
        "eye": np.eye(k),
    }
    text.lines += [
        "spread = MatMul (sure_pairs, of_pairs)",
        "entries = Add (spread, without_pairs)",
        "r = Reshape (entries, square)",
        "r_turned = Transpose <perm = [0, 2, 1]> (r)",
        "products = Mul (r, r_turned)",
        "squares = Mul (r, r)",
        "sums_of_squares = ReduceSum <keepdims = 1> (squares, column)",
        "diagonal = Mul (sums_of_squares, eye)",
        "less = Sub (diagonal, products)",
        "system = Add (less, one)",
        "of_rows = ReduceSum <keepdims = 1> (r, third)",
        "no_rows = Mul (of_rows, nothing)",
        "right_side = Add (no_rows, one)",
        "eliminated0 = Concat <axis = 2> (system, right_side)",
    ]
    for at in range(k):
        text.arrays |= {f"at{at}": np.array([at], dtype=np.int64), f"unit{at}": np.eye(k)[:, [at]]}
        text.lines += [
            f"line{at} = Gather <axis = 1> (eliminated{at}, at{at})",
            f"pivot{at} = Gather <axis = 2> (line{at}, at{at})",
            f"scaled{at} = Div (line{at}, pivot{at})",
            f"entry{at} = Gather <axis = 2> (eliminated{at}, at{at})",
            # The pivot's own line is to become the scaled one.
            f"factor{at} = Sub (entry{at}, unit{at})",
            f"change{at} = Mul (factor{at}, scaled{at})",
            f"eliminated{at + 1} = Sub (eliminated{at}, change{at})",
        ]
    text.arrays["behind"] = np.array([k], dtype=np.int64)
    text.lines += [
        f"solution = Gather <axis = 2> (eliminated{k}, behind)",
        "flat_solution = Squeeze (solution, third)",
        "not_negative = Max (flat_solution, nothing)",
        "whole = ReduceSum <keepdims = 1> (not_negative, column)",
        "probabilities = Div (not_negative, whole)",
    ]


def label_type(labels: NDArray[Any]) -> str:
    """ONNX's name of the type of labels."""
    if labels.dtype.kind in "iu":
        # Only what 64 bits with a sign cannot hold is without one.
        return "int64" if int(labels.max(initial=0)) < 2**63 else "uint64"
    if labels.dtype.kind == "b":
        return "bool"
    if labels.dtype.kind == "f" and (labels.astype(np.float64) == labels).all():
        return "double"
    if labels.dtype.kind != "f" and all(isinstance(label, str) for label in labels.tolist()):
        check_text(labels)
        return "string"
    raise ValueError(
        f"classes of type {labels.dtype} are not allowed: they must be numbers in double precision or strings"
    )


def _finished(
    text: _Text, outputs: list[str]
) -> tuple[str, dict[str, NDArray[Any]], dict[str, float], list[str]]:
    lines = "\n".join(text.lines)
    used = set(lines.replace(",", " ").replace("(", " ").replace(")", " ").split())
    arrays = {name: value for name, value in text.arrays.items() if name in used}
    return lines, arrays, {name: value for name, value in text.scalars.items() if name in used}, outputs
