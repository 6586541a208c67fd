"""Training on a file larger than memory: coefficients at a few points, least squares over all rows.

The file is read three times: for its labels and columns, for scales and points, and for the fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmarrow._support.rows import default_gamma
from svmarrow.cli.pieces import read_pieces, sample, survey
from svmarrow.least_squares import LowRankRLSClassifier, LowRankRLSRegressor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from svmarrow._support.progress import ProgressCallback
    from svmarrow.cli.data import DataOptions
    from svmarrow.cli.pieces import Survey

__all__ = ["fit_low_rank"]


def fit_low_rank(
    path: Path,
    options: DataOptions,
    most: int,
    settings: dict[str, Any],
    scaler_for: Callable[[bool], Any],
    *,
    classification: bool,
    random_state: int,
    progress: ProgressCallback | None,
) -> tuple[LowRankRLSClassifier | LowRankRLSRegressor, Any, Survey]:
    """Fit a low-rank machine to a file, at most `most` rows in memory.

    Parameters
    ----------
    path : Path
        Labeled rows.
    options : DataOptions
        How to read them.
    most : int
        Rows of a piece.
    settings : dict
        Parameters of the machine; ``gamma="scale"`` goes by the variance of the points.
    scaler_for : callable
        Makes a scikit-learn scaler with ``partial_fit``, or None, for rows that are sparse or not.
    classification : bool
        Labels, or numbers.
    random_state : int
        Seed of the points.
    progress : callable or None
        Called with the number of processed rows.

    Returns
    -------
    model : LowRankRLSClassifier or LowRankRLSRegressor
        Fitted to scaled rows.
    scaler : object or None
        The fitted scaler.
    known : Survey
        Summary of the file.
    """
    known = survey(path, options, most, classes=classification)
    scaler = scaler_for(known.is_sparse)
    random = np.random.default_rng(random_state)
    points = sample(path, known.options, most, settings["n_vectors"], random, scaler)
    settings = settings | {"selection": points, "fit_intercept": True}
    if isinstance(settings["gamma"], str):
        settings["gamma"] = default_gamma(settings["gamma"], points, kernel=settings["kernel"])
    kind = LowRankRLSClassifier if classification else LowRankRLSRegressor
    machine: Any = kind(**settings)
    first: dict[str, Any] = {"classes": known.classes} if classification else {}
    done = 0
    for piece in read_pieces(path, known.options, most):
        X = piece.X if scaler is None else scaler.transform(piece.X)
        machine.partial_fit(X, piece.labels, **first)
        done, first = done + X.shape[0], {}
        if progress is not None:
            progress("rows", done, known.rows, float("nan"), 0)
    return machine, scaler, known
