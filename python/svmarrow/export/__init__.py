"""Models for places without Python: ONNX files and C headers.

| format | write | holds |
|---|---|---|
| ONNX, opset 18 | `to_onnx` | every kernel and decoder, in single or double precision |
| C99, one header | `to_c` | every kernel; decoders but the logistic losses; single precision or bytes |
"""

from svmarrow.export.c_header import CHeader, to_c
from svmarrow.export.onnx_model import to_onnx

__all__ = ["CHeader", "to_c", "to_onnx"]
