"""Models as ONNX files, which onnxruntime and others run without Python or svmarrow.

A model is one graph of plain operators (opset 18): the local function ``svmarrow.KernelExpansion`` makes
outputs of rows, so that viewers show one box, and what follows makes labels and scores of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.parameters import refuse
from svmarrow._support.schemas import kinds
from svmarrow._support.system import write_bytes
from svmarrow.expansion.expansion_tree import ExpansionTree
from svmarrow.export.common import (
    both_outputs,
    check_rounding,
    kernel_columns,
    loop_outputs,
    output_spec_of,
    output_spread,
    provenance,
    rows_in_precision,
    samples_of,
)
from svmarrow.export.onnx_decoding import append_decoding
from svmarrow.export.onnx_kernels import Graph, append_expansion, append_step, append_tree, import_onnx

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from onnx import ModelProto


__all__ = [
    "register_skl2onnx",
    "to_onnx",
]

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
