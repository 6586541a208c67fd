"""LIBSVM's model text, read.

A file has one output for each pair of labels a < b in its own order, positive for a. So the second class of a
binary model comes first in its file; the labels of other files keep their order.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from svmarrow import _core
from svmarrow.expansion.kernel_expansion import KernelExpansion
from svmarrow.models.classifier import ExpansionClassifier
from svmarrow.models.detector import ExpansionDetector
from svmarrow.models.regressor import ExpansionRegressor

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["load_libsvm_model", "model_and_base"]


def load_libsvm_model(
    path: str | PathLike[str],
    n_features: int | None = None,
    *,
    zero_based: bool | Literal["auto"] = False,
) -> ExpansionClassifier | ExpansionRegressor | ExpansionDetector:
    """Read a LIBSVM model, from ``svm-train`` or `save_libsvm_model`.

    Files that ``svm-predict`` would read as something else are refused: indices that do not increase,
    tokens that are no numbers, blank lines between the vectors, lines after the last one, and a last line
    without a line feed, which may be cut off.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, default=None
        Number of columns of the data. The file does not contain it; None takes the last column in which a
        vector has a value, and samples to predict must then have as many.
    zero_based : bool or "auto", default=False
        Whether columns count from 0; a file with the index 0 is refused unless they do. ``"auto"``: if the
        index 0 occurs. Give `load_svmlight` the same, or columns of the data are not those of the model.
        The precomputed kernel has no columns to count and does not take True.

    Returns
    -------
    ExpansionClassifier, ExpansionRegressor or ExpansionDetector
        For ``c_svc`` and ``nu_svc``, ``epsilon_svr`` and ``nu_svr``, ``one_class``. The `classes_` of a
        classifier are in the order of the file, so that tied votes are broken as ``svm-predict`` does.
        Probability parameters (``svm-train -b 1``) are not taken. The format does not state whether classes
        or rows had weights: ``weighted`` is None, which `svmarrow.compress` takes for possible.

    Raises
    ------
    OSError
        If the system cannot read the file.
    svmarrow.exceptions.FormatError
        A ValueError that names the line which does not follow the format.
    """
    return model_and_base(path, n_features, zero_based)[0]


def model_and_base(
    path: str | PathLike[str], n_features: int | None, zero_based: bool | Literal["auto"]
) -> tuple[ExpansionClassifier | ExpansionRegressor | ExpansionDetector, bool]:
    """The model of `load_libsvm_model`, and whether its columns count from 0."""
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features!r} is not allowed: it must be at least 1")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is not allowed: it must be True, False or 'auto'")
    base = None if zero_based == "auto" else bool(zero_based)
    raw = _core.read_libsvm_model(os.fspath(path), n_features, base)
    if raw["kernel"][0] == "precomputed" and base:
        raise ValueError(
            "zero_based=True is not allowed for the precomputed kernel: it has no columns to count"
        )
    return _with_meaning(raw), bool(raw["zero_based"])


def _with_meaning(raw: dict[str, Any]) -> ExpansionClassifier | ExpansionRegressor | ExpansionDetector:
    labels = np.asarray(raw["labels"])
    expansion = KernelExpansion._of_parts(raw)
    if labels.size == 0:
        if raw["svm_type"] == "one_class":
            return ExpansionDetector(expansion)
        return ExpansionRegressor(expansion)
    if labels.size == 2:
        # A positive output votes for the first label of the file, here it is the second class.
        return ExpansionClassifier(expansion, labels[::-1].copy(), "binary")
    return ExpansionClassifier(expansion, labels, "ovo")
