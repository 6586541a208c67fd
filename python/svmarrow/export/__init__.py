"""Models for places without Python: ONNX files and C headers.

| format | write | holds |
|---|---|---|
| ONNX, opset 18 | `to_onnx` | every kernel and decoder, in single or double precision |
| C99, one header | `to_c` | every kernel; decoders but the logistic losses; either precision, or bytes |

`register_skl2onnx` teaches skl2onnx svmarrow's estimators, for pipelines with steps of other packages.
"""

from svmarrow.export.c_header import CHeader, to_c
from svmarrow.export.onnx_model import register_skl2onnx, to_onnx

__all__ = ["CHeader", "register_skl2onnx", "to_c", "to_onnx"]
