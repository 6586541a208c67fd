"""Data files, and model files of LIBSVM.

| format | write | read | holds |
|---|---|---|---|
| safetensors | `svmarrow.save` | `svmarrow.load` | whatever svmarrow has fitted, exactly |
| LIBSVM model text | `save_libsvm_model` | `load_libsvm_model` | LIBSVM's kernels, integer labels |
| SVM-light model text | | `load_svmlight_model` | SVM-light's kernels |
| svmlight text | `save_svmlight` | `load_svmlight` | sparse rows and targets |

`info` reports the content of a model file, and `model_card` describes a fitted model in Markdown. Files
contain no code: a file from a stranger can be wrong, and is then refused, but it cannot run anything. Saving
is all or nothing: if it fails, an existing file is unchanged.
"""

from svmarrow.interop.convert import load_libsvm_model, load_svmlight_model
from svmarrow.io.files import info, load_svmlight, model_card, save_libsvm_model, save_svmlight

__all__ = [
    "info",
    "load_libsvm_model",
    "load_svmlight",
    "load_svmlight_model",
    "model_card",
    "save_libsvm_model",
    "save_svmlight",
]
