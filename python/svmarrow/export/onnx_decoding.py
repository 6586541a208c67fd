"""From outputs F (n, q) to labels and scores in ONNX's operators.

Each output gives the classes on its machine's positive side one number and those on its negative side
another (see the table of decoders in `svmarrow.multiclass`), so that scores are two products with tables of
zeros and ones, (q, k). `ArgMax` takes the first of equals, as svmarrow does.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.decoding import LOSSES
from svmarrow._support.training import pairs
from svmarrow.export.common import check_text
from svmarrow.export.onnx_kernels import INT64
from svmarrow.models.calibration import MAX_LOGIT, MIN_LOGIT, MIN_PROBABILITY, TIE_LOGIT

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ValueInfoProto

    from svmarrow.export.onnx_kernels import Graph
    from svmarrow.models.calibration import Calibration
    from svmarrow.models.outputs import OutputSpec

__all__ = ["append_decoding"]


def append_decoding(graph: Graph, spec: OutputSpec) -> list[ValueInfoProto]:
    """Append the nodes that make the results of F; return their declarations."""
    q = spec.expansion.n_outputs
    if spec.kind == "classes":
        return _labels(graph, spec)
    if spec.kind == "outputs":
        return [graph.typed(graph.Identity("F", name="scores"), "n", q)]
    if spec.kind == "inside":
        scores = graph.Squeeze("F", [1], name="scores")
        label = graph.Where(graph.GreaterOrEqual(scores, 0.0), 1, -1, name="label")
        return [graph.typed(label, "n", dtype=np.int64), graph.typed(scores, "n")]
    if spec.flat:
        return [graph.typed(graph.Squeeze("F", [1], name="prediction"), "n")]
    return [graph.typed(graph.Identity("F", name="prediction"), "n", q)]


def _labels(graph: Graph, spec: OutputSpec) -> list[ValueInfoProto]:
    assert spec.classes is not None
    labels, k = _stored_labels(np.asarray(spec.classes)), len(spec.classes)

    @cache
    def scores_of(decoder: str) -> str:
        assert spec.matrix is not None
        return _scores(graph, decoder, spec.matrix)

    winner = ""
    shape: tuple[int | str, ...] = ("n",)
    if spec.winner == "sign":
        winner = graph.Cast(graph.GreaterOrEqual(graph.Squeeze("F", [1]), 0.0), to=INT64)
    elif spec.winner != "probabilities":
        winner = graph.ArgMax("F" if spec.winner == "largest" else scores_of(spec.winner), axis=1, keepdims=0)
    if spec.scores == "outputs":
        graph.Identity("F", name="scores")
        shape = "n", spec.expansion.n_outputs
    elif spec.scores == "flat":
        graph.Squeeze("F", [1], name="scores")
    elif spec.scores == "column":
        assert spec.matrix is not None
        graph.Mul(graph.Squeeze("F", [1]), float(spec.matrix[1, 0]), name="scores")
    elif spec.one_score:
        of_two = np.array([[-1.0 if spec.one_score == "difference" else 0.0], [1.0]])
        one_score = graph.MatMul(scores_of(str(spec.score_decoder)), of_two)
        graph.Squeeze(one_score, [1], name="scores")
    else:
        graph.Identity(scores_of(spec.scores), name="scores")
        shape = "n", k
    results = [graph.typed("label", "n", dtype=labels.dtype), graph.typed("scores", *shape)]
    if spec.calibration is not None:
        logits = _probabilities(graph, spec.calibration, k)
        results.append(graph.typed("probabilities", "n", k))
        if spec.winner == "probabilities":
            winner = _most_probable(graph, spec.calibration.link, logits, k)
    graph.constants["classes"] = labels
    graph.Gather("classes", winner, name="label")
    return results


def _stored_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of a type that ONNX has."""
    if labels.dtype.kind in "iu":
        # Only what 64 bits with a sign cannot hold is without one.
        return labels.astype(np.int64 if int(labels.max(initial=0)) < 2**63 else np.uint64)
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind == "f" and (labels.astype(np.float64) == labels).all():
        return labels.astype(np.float64)
    if labels.dtype.kind != "f" and all(isinstance(label, str) for label in labels.tolist()):
        check_text(labels)
        return np.array([str(label) for label in labels.tolist()], dtype=object)
    raise ValueError(
        f"classes of type {labels.dtype} are not allowed: they must be numbers in double precision or strings"
    )


def _scores(graph: Graph, decoder: str, matrix: NDArray[np.int8]) -> str:
    """The scores (n, k) of a decoder."""
    if decoder == "dag":
        return _dag(graph, matrix.shape[0])
    scale, offset = np.ones(matrix.shape[0]), 0.0
    loss = decoder.removeprefix("mean_")
    if loss in LOSSES:
        zero = {"perceptron": 0.0, "logistic": float(np.log(2.0))}.get(loss, 1.0)
        positive = graph.Sub(zero, _loss(graph, loss, "F"))
        negative = graph.Sub(zero, _loss(graph, loss, graph.Neg("F")))
        if decoder.startswith("mean_"):
            scale, offset = 1.0 / np.abs(matrix).sum(axis=1), zero
        else:
            offset = zero * matrix.shape[1]
    elif decoder == "hamming":
        positive = graph.Mul(graph.Sign("F"), 0.5)
        negative = graph.Neg(positive)
        offset = 0.5 * matrix.shape[1]
    else:
        is_positive = graph.Greater("F", 0.0) if decoder == "votes" else graph.GreaterOrEqual("F", 0.0)
        positive = graph.CastLike(is_positive, "F")
        negative = graph.Sub(1.0, positive)
    for_classes = graph.MatMul(positive, (matrix == 1).T * scale)
    against = graph.MatMul(negative, (matrix == -1).T * scale)
    sums = graph.Sub(graph.Add(for_classes, against), offset)
    if decoder != "confidence":
        return sums
    # The summed outputs squeezed into (-1/3, 1/3) break ties and turn no vote.
    total = graph.MatMul("F", matrix.T.astype(np.float64))
    return graph.Add(sums, graph.Div(total, graph.Mul(graph.Add(graph.Abs(total), 1.0), 3.0)))


def _loss(graph: Graph, loss: str, outputs: str) -> str:
    if loss == "exponential":
        return graph.Exp(graph.Neg(outputs))
    if loss in ("perceptron", "logistic"):
        cut = graph.Max(graph.Neg(outputs), 0.0)
        if loss == "perceptron":
            return cut
        # max(0, -z) + log(1 + exp(-|z|)), which overflows nowhere.
        return graph.Add(cut, graph.Log(graph.Add(graph.Exp(graph.Neg(graph.Abs(outputs))), 1.0)))
    less = graph.Sub(1.0, outputs)
    if loss != "square":
        less = graph.Max(less, 0.0)
    return less if loss == "hinge" else graph.Mul(less, less)


def _dag(graph: Graph, k: int) -> str:
    """The first and the last class of the list meet, the loser leaves; its round is its score."""
    if k == 2:
        second = graph.CastLike(graph.Greater("F", 0.0), "F")
        return graph.Concat(graph.Sub(1.0, second), second, axis=1)
    zeros = graph.Mul(graph.ReduceSum("F", [1], keepdims=1), 0.0)
    first = graph.Cast(zeros, to=INT64)
    last = graph.Add(first, k - 1)
    scores = graph.MatMul(zeros, np.zeros((1, k)))
    every = graph.constant("every_class", np.arange(k)[np.newaxis])
    for at in range(k - 1):
        # Pair (a, b) follows those of the classes before a.
        before = graph.Div(graph.Mul(graph.Sub(2 * k - 1, first), first), 2)
        pair = graph.Sub(graph.Add(before, graph.Sub(last, first)), 1)
        is_first = graph.Greater(graph.GatherElements("F", pair, axis=1), 0.0)
        loser = graph.Where(is_first, last, first)
        scores = graph.Where(graph.Equal(every, loser), float(at), scores)
        last = graph.Where(is_first, graph.Sub(last, 1), last)
        first = graph.Where(is_first, first, graph.Add(first, 1))
    return graph.Where(graph.Equal(every, first), float(k - 1), scores)


def _probabilities(graph: Graph, calibration: Calibration, k: int) -> str:
    """Sigmoids and what makes one distribution of them, see `svmarrow.models.calibration`; returns logits."""
    is_pairwise = calibration.link == "pairs"
    values = "F" if is_pairwise else "scores"
    if k == 2:
        values = graph.Unsqueeze("scores", [1])
    steep = graph.Mul(values, graph.constant("slopes", calibration.slopes))
    logits = graph.Add(steep, graph.constant("offsets", calibration.offsets))
    if calibration.link == "softmax" and k > 2:
        graph.Softmax(logits, axis=1, name="probabilities")
        return logits
    shares = graph.Sigmoid(logits)
    if is_pairwise:
        shares = graph.Min(graph.Max(shares, MIN_PROBABILITY), 1.0 - MIN_PROBABILITY)
    if k == 2:
        graph.Concat(graph.Sub(1.0, shares), shares, axis=1, name="probabilities")
    elif is_pairwise:
        _coupled(graph, shares, k)
    else:
        total = graph.ReduceSum(shares, [1], keepdims=1)
        is_unknown = graph.Equal(total, 0.0)
        shares = graph.Div(shares, graph.Where(is_unknown, 1.0, total))
        graph.Where(is_unknown, 1.0 / k, shares, name="probabilities")
    return logits


def _most_probable(graph: Graph, link: str, logits: str, k: int) -> str:
    """The first class of the largest probability, by logits where sigmoids of single precision are all 1."""
    if k == 2:
        return graph.Cast(graph.Greater(graph.Squeeze(logits, [1]), TIE_LOGIT), to=INT64)
    if link == "classes":
        logits = graph.Min(graph.Max(logits, MIN_LOGIT), MAX_LOGIT)
    return graph.ArgMax("probabilities" if link == "pairs" else logits, axis=1, keepdims=0)


def _coupled(graph: Graph, shares: str, k: int) -> None:
    """The system (Q + 1 1') x = 1 of each row by elimination without pivots: it is positive definite."""
    first, second = np.array(pairs(k)).T
    table, base = np.zeros((len(first), k, k)), np.zeros((k, k))
    every = np.arange(len(first))
    table[every, first, second], table[every, second, first], base[second, first] = 1.0, -1.0, 1.0
    entries = graph.Add(graph.MatMul(shares, table.reshape(-1, k * k)), base.reshape(-1))
    r = graph.Reshape(entries, [-1, k, k])
    products = graph.Mul(r, graph.Transpose(r, perm=[0, 2, 1]))
    diagonal = graph.Mul(graph.ReduceSum(graph.Mul(r, r), [1], keepdims=1), np.eye(k))
    system = graph.Add(graph.Sub(diagonal, products), 1.0)
    right_side = graph.Add(graph.Mul(graph.ReduceSum(r, [2], keepdims=1), 0.0), 1.0)
    eliminated = graph.Concat(system, right_side, axis=2)
    for at in range(k):
        line = graph.Gather(eliminated, [at], axis=1)
        scaled = graph.Div(line, graph.Gather(line, [at], axis=2))
        # The pivot's own line is to become the scaled one.
        factor = graph.Sub(graph.Gather(eliminated, [at], axis=2), np.eye(k)[:, [at]])
        eliminated = graph.Sub(eliminated, graph.Mul(factor, scaled))
    solution = graph.Max(graph.Squeeze(graph.Gather(eliminated, [k], axis=2), [2]), 0.0)
    graph.Div(solution, graph.ReduceSum(solution, [1], keepdims=1), name="probabilities")
