"""Models for places without Python: ONNX files and C headers.

| format | write | holds |
|---|---|---|
| ONNX, opset 18 | `to_onnx` | every kernel and decoder, in single or double precision |
"""

from svmarrow.export.onnx_model import to_onnx

__all__ = ["to_onnx"]
