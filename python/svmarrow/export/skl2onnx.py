"""svmarrow's estimators inside pipelines that skl2onnx converts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from svmarrow._support.bases import BaseEstimator
from svmarrow._support.saving import KINDS
from svmarrow.export.onnx_model import to_onnx

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["register_skl2onnx"]


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
    for kind in KINDS.values():
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
    from skl2onnx.common.data_types import (
        BooleanTensorType,
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
        UInt64TensorType,
    )

    kinds = {1: FloatTensorType, 7: Int64TensorType, 8: StringTensorType, 9: BooleanTensorType}
    kinds |= {11: DoubleTensorType, 13: UInt64TensorType}
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
        names[tensor.name] = scope.get_unique_variable_name(f"svmarrow_{tensor.name}")
        kept = onnx.TensorProto()
        kept.CopyFrom(tensor)
        kept.name = names[tensor.name]
        container.initializers.append(kept)
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
