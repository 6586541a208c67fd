"""Rows and targets of the registry of estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.preprocessing import StandardScaler

IRIS, KIND = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[KIND]
TWO, SIDE = make_moons(90, noise=0.2, random_state=0)
SIDES = np.array(["left", "ri\u00dfht"], dtype=object)[SIDE]
NUMBERS = np.sin(IRIS[:, 0])
PAIRS = np.column_stack([NUMBERS, IRIS[:, 1]])
SPARSE = sparse.csr_array(IRIS * (IRIS > 1.0))
SINGLE = IRIS.astype(np.float32)
FRAME = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])
WEIGHTS = np.linspace(0.0, 2.0, len(KIND))
GRAM = IRIS @ IRIS.T
CODE = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]

STANDARD_IRIS = StandardScaler().fit_transform(IRIS)
TARGET = STANDARD_IRIS[:, 0] - np.sin(STANDARD_IRIS[:, 1])
POINTS = STANDARD_IRIS[::10] + 0.01


def _wide():
    """Enough rows for several threads in every loop, and enough columns that kernel rows are kept."""
    random = np.random.default_rng(1)
    labels = np.arange(700) % 4
    X = random.standard_normal((700, 80)) + 1.5 * random.standard_normal((4, 80))[labels]
    return X, labels, X @ random.standard_normal((80, 2)) + random.standard_normal((700, 2))


WIDE, WIDE_LABELS, WIDE_TARGETS = _wide()
WIDE_SINGLE = WIDE.astype(np.float32)
WIDE_SPARSE = sparse.csr_array(WIDE * (WIDE > 1.0))
