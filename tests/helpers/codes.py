"""What the tests of codes share: any small code, and leaving out each row by real refits."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from helpers import reference
from svmarrow import CodedClassifier
from svmarrow.multiclass import Code

NAMES = ["ovr", "ovo", "complete", "dense", "sparse", "bch"]
LOSSES = list(reference.LOSSES)


@st.composite
def codes(draw, most_classes=5, most_columns=6):
    """Any code of a few classes and columns, with zeros."""
    n = draw(st.integers(2, most_classes))
    f = draw(st.integers(max(1, n - 1), most_columns))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    zeros = draw(st.booleans())
    while True:
        matrix = rng.choice([-1, 0, 1] if zeros else [-1, 1], size=(n, f))
        try:
            return Code(matrix)
        except ValueError:
            f = min(f + 1, most_columns)


def refits(estimator, code, decoder, X, y):
    """The leave-one-out errors by training again without each row."""
    wrong = np.zeros(len(y), dtype=bool)
    for j in range(len(y)):
        rows = np.arange(len(y)) != j
        model = CodedClassifier(estimator, code, decoder).fit(X[rows], y[rows])
        wrong[j] = model.predict(X[j : j + 1])[0] != y[j]
    return wrong
