"""Model files of any format, recognized by their content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from svmarrow._support.saving import load
from svmarrow.interop.libsvm_reader import load_libsvm_model
from svmarrow.interop.svmlight_reader import load_svmlight_model

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["load_model_file", "text_format"]

_SVMLIGHT = b"svm-light version"


def text_format(path: str | PathLike[str]) -> Literal["libsvm", "svmlight"] | None:
    """The program that wrote a text model, whatever the name of the file is; None for any other content.

    A ValueError for a pipe, whose content could then not be read again.
    """
    if Path(path).is_fifo():
        raise ValueError(f"{path} is a pipe: a model must be a file, since it is read more than once")
    with Path(path).open("rb") as file:
        start = file.read(len(_SVMLIGHT))
    if start[:9] in (b"svm_type ", b"svm_type\t"):
        return "libsvm"
    return "svmlight" if start.lower() == _SVMLIGHT else None


def load_model_file(path: str | PathLike[str]) -> Any:
    """The model of a file of svmarrow, LIBSVM or SVM-light; one of SVM-light is read as a classifier."""
    match text_format(path):
        case "libsvm":
            return load_libsvm_model(path)
        case "svmlight":
            return load_svmlight_model(path)
        case _:
            return load(path)
