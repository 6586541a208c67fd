"""Preprocessing that the papers do not print and that work they cite describes."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

#: Width and height of the images of USPS, and the value of their background.
SIDE, BACKGROUND = 16, -1.0
#: Standard deviation of the Gaussian in pixels, after Schoelkopf and others (1997, 1999).
SMOOTHING_WIDTH = 0.75
#: Digits of the values of USPS. Files in other precisions and other formats agree in these.
DECIMALS = 3


def smoothed(images: np.ndarray, width: float = SMOOTHING_WIDTH) -> np.ndarray:
    """Return images of USPS, one in each row, after a Gaussian filter; the background continues outside."""
    rounded = np.round(np.asarray(images, dtype=np.float64), DECIMALS).reshape(-1, SIDE, SIDE)
    filtered: np.ndarray = gaussian_filter(
        rounded, sigma=(0.0, width, width), mode="constant", cval=BACKGROUND
    )
    return np.ascontiguousarray(filtered.reshape(len(rounded), -1))


def without_header(document: str) -> str:
    """Return a message of 20newsgroups without its header, which ends at the first empty line."""
    _, _, body = document.partition("\n\n")
    return body
