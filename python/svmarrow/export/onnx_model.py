"""Models as ONNX files, which onnxruntime and others run without Python or svmarrow.

A model is one graph of plain operators (opset 18): the local function ``svmarrow.KernelExpansion`` makes
outputs of rows, so that viewers show one box, and what follows makes labels and scores of them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.decoding import LOSSES
from svmarrow._support.parameters import refuse
from svmarrow._support.schemas import kinds
from svmarrow._support.system import write_bytes
from svmarrow._support.training import pairs
from svmarrow.expansion.composites import ExpansionTree
from svmarrow.export.common import (
    both_outputs,
    check_rounding,
    check_text,
    kernel_columns,
    loop_outputs,
    output_spec_of,
    output_spread,
    provenance,
    rows_in_precision,
    samples_of,
)
from svmarrow.export.onnx_kernels import INT64, Graph, append_expansion, append_step, append_tree, import_onnx
from svmarrow.models.outputs import MAX_LOGIT, MIN_LOGIT, MIN_PROBABILITY, TIE_LOGIT

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from onnx import ModelProto, ValueInfoProto

    from svmarrow.models.outputs import Calibration, OutputSpec

__all__ = ["append_decoding", "register_skl2onnx", "to_onnx"]


OPSET, IR_VERSION, DOMAIN = 18, 9, "svmarrow"
#: Bytes of the largest file that ONNX's container can be.
MAX_FILE_BYTES = 2**31 - 1


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: Literal["float32", "float64"] | None = None,
) -> ModelProto:
    """Make an ONNX model of a fitted model.

    Parameters
    ----------
    model : object
        What `svmarrow.as_expansion` takes: an estimator, a compressed model, a file, a machine of
        scikit-learn, a pipeline. Every built-in kernel, every way to decode outputs and every preparation of
        rows of numbers is expressed; a category that is not known, where the pipeline raises, gives NaN.
    path : str or path-like, default=None
        File to write, all or nothing. None writes none.
    dtype : {"float32", "float64"}, default=None
        Type of the input and of the arithmetic. None takes float64 where the vectors are float64, else
        float32.

    Returns
    -------
    onnx.ModelProto
        One input ``X`` (n, n_features); for the precomputed kernel (n, n_train). Its results are

        * of a classifier ``label`` (n,), of the type of the classes, and ``scores``, what
          `decision_function` gives, in its shape; ``probabilities`` (n, n_classes) where the model has some;
        * of an outlier detector ``label`` (n,), 1 or -1, and ``scores`` (n,);
        * of a regressor ``prediction``, in the shape of `predict`;
        * of a bare expansion ``scores`` (n, q).

        `metadata_props` has the version of svmarrow, the kernel and a sha256 of the model.

    Raises
    ------
    ImportError
        If the package onnx is not installed: the extra ``svmarrow[onnx]``.
    ValueError
        If the kernel is a Python function, a number of the model does not fit `dtype`, the rounding of
        single precision changes the outputs too much (see Notes), or the file would be larger than the 2
        GB that ONNX allows.
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
    0, such as time stamps, need double precision. In single precision the outputs, computed by
    ``onnx.reference`` and once more in loops over the vectors, are therefore compared with those of the
    model on at most 128 samples: vectors of the model, and points between two of them. A root mean square
    difference above 0.1 % of the spread of an output is a warning, one above 5 % an error. The spread is
    the standard deviation of predictions, and the root mean square of outputs whose sign or order is a
    label, at the vectors. Models with a precomputed kernel, which have no vectors, are not compared.

    Where a score is within rounding of a tie, the label in single precision may be another one. Opset 18, IR
    version 9.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from svmarrow import SVC
    >>> from svmarrow.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = to_onnx(SVC().fit(X, y))
    >>> [result.name for result in model.graph.output]
    ['label', 'scores']
    """
    if dtype not in (None, "float32", "float64"):
        raise refuse("dtype", dtype, "'float32', 'float64' or None")
    spec = output_spec_of(model)
    expansion = spec.expansion
    if dtype is None:
        dtype = "float64" if expansion.vectors.dtype == np.float64 else "float32"
    onnx = import_onnx()
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(DOMAIN, 1)]
    graph, functions, outputs = Graph(dtype), [], []
    rows = "X" if spec.preparation is None else append_step(graph, spec.preparation, "X")
    for number, part in enumerate(expansion.parts):
        function = Graph(dtype, graph)
        if isinstance(part, ExpansionTree):
            append_tree(function, part)
        else:
            append_expansion(function, part, kernel_columns(spec))
        graph.constants |= function.constants
        # Each part of a sum has a function of its own.
        mark = "" if len(expansion.parts) == 1 else str(number)
        name, names = f"KernelExpansion{mark}", [*function.constants]
        functions.append(
            onnx.helper.make_function(DOMAIN, name, ["X", *names], ["F"], function.nodes, opsets[:1])
        )
        outputs.append(getattr(graph, name)(rows, *names, name=f"F{mark}", domain=DOMAIN))
    if len(outputs) > 1:
        graph.Sum(*outputs, name="F")
    results = append_decoding(graph, spec)
    size = graph.n_bytes
    if size > MAX_FILE_BYTES:
        raise ValueError(
            f"the model takes {size} bytes: an ONNX file has at most {MAX_FILE_BYTES}; compress it"
        )
    about = provenance(expansion)
    made: ModelProto = onnx.helper.make_model(
        graph.build("svmarrow", [graph.typed("X", "n", spec.n_features)], results),
        functions=functions,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="svmarrow",
        producer_version=about["producer"].split()[-1],
    )
    onnx.helper.set_model_props(made, about)
    onnx.checker.check_model(made, full_check=True)
    samples = samples_of(spec) if dtype == "float32" else None
    if samples is not None:
        loops = loop_outputs(expansion, kernel_columns(spec), dtype)
        expected, in_loops = both_outputs(spec, loops, samples, dtype)
        with np.errstate(all="ignore"):
            evaluator = onnx.reference.ReferenceEvaluator(made)
            (by_graph,) = evaluator.run(["F"], {"X": rows_in_precision(samples, dtype)})
            # Runtimes add in an order of their own, which may lose more digits than NumPy's.
            is_less = np.abs(by_graph - expected) < np.abs(in_loops - expected)
        computed = np.where(is_less, in_loops, by_graph)
        check_rounding(expected, computed, output_spread(spec, expected[::2]), dtype)
    if path is not None:
        write_bytes(path, made.SerializeToString(deterministic=True))
    return made


# --- svmarrow's estimators inside pipelines that skl2onnx converts ---


def register_skl2onnx() -> None:
    """Teach skl2onnx the estimators of svmarrow, so that it converts pipelines that hold them.

    Each becomes the graph of `svmarrow.export.to_onnx`, of the type of its input: float32 or float64. Call it
    once in a program. What `svmarrow.export.to_onnx` takes by itself, pipelines of numbers among it, needs no
    skl2onnx. The second result, which skl2onnx calls "probabilities", holds those of a model that has some,
    else scores in the shape of `decision_function`. Where `to_onnx` refuses single precision, the conversion
    raises its ValueError: pass samples or a type in double precision to skl2onnx.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("register_skl2onnx needs the package skl2onnx: pip install skl2onnx") from error
    for kind in _kinds():
        update_registered_converter(kind, f"Svmarrow{kind.__name__}", _shapes, _convert, overwrite=True)


def _kinds() -> Iterator[type]:
    for kind in kinds():
        if issubclass(kind, BaseEstimator) and hasattr(kind, "predict"):
            yield kind


def _dtype(operator: Any) -> Literal["float32", "float64"]:
    from skl2onnx.common.data_types import DoubleTensorType

    return "float64" if isinstance(operator.inputs[0].type, DoubleTensorType) else "float32"


def _results(graph: Any) -> list[Any]:
    """The two results that skl2onnx expects: label, and probabilities or else scores."""
    results = list(graph.output)
    return [results[0], results[2]] if len(results) == 3 else results


def _shapes(operator: Any) -> None:
    """The types of the results."""
    from skl2onnx.common import data_types as types

    kinds = {1: types.FloatTensorType, 7: types.Int64TensorType, 8: types.StringTensorType}
    kinds |= {9: types.BooleanTensorType, 11: types.DoubleTensorType, 13: types.UInt64TensorType}
    made = to_onnx(operator.raw_operator, dtype=_dtype(operator))
    for output, result in zip(operator.outputs, _results(made.graph), strict=False):
        tensor = result.type.tensor_type
        shape = [one.dim_value if one.HasField("dim_value") else None for one in tensor.shape.dim]
        output.type = kinds[tensor.elem_type](shape)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The graph, with names of its own."""
    import onnx
    import onnx.inliner

    made = onnx.inliner.inline_local_functions(to_onnx(operator.raw_operator, dtype=_dtype(operator)))
    graph = made.graph
    names = {"X": operator.inputs[0].full_name, "": ""}
    names |= {
        result.name: output.full_name
        for result, output in zip(_results(graph), operator.outputs, strict=False)
    }
    for tensor in graph.initializer:
        name = scope.get_unique_variable_name(f"svmarrow_{tensor.name}")
        names[tensor.name] = tensor.name = name
        container.initializers.append(tensor)
    for node in graph.node:
        for name in node.output:
            names.setdefault(name, scope.get_unique_variable_name(f"svmarrow_{name}"))
        container.add_node(
            node.op_type,
            [names[name] for name in node.input],
            [names[name] for name in node.output],
            op_version=18,
            name=scope.get_unique_operator_name(f"svmarrow_{node.op_type}"),
            **{one.name: onnx.helper.get_attribute_value(one) for one in node.attribute},
        )


# --- from outputs F (n, q) to labels and scores in ONNX's operators ---
# Each output gives the classes on its machine's positive side one number and those on its negative side
# another (see the table of decoders in `svmarrow.multiclass`), so that scores are two products with tables of
# zeros and ones, (q, k). `ArgMax` takes the first of equals, as svmarrow does.


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
    """Sigmoids and what makes one distribution of them, see `svmarrow.models.outputs`; returns logits."""
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
