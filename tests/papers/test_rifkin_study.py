"""Correlation of the errors of codes, against naive oracles."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from svmarrow import SVC, CodedClassifier
from svmarrow.papers.rifkin import (
    BinaryErrorDisplay,
    OverlapDisplay,
    binary_errors,
    overlap_matrix,
    reverse_cumulative,
)


def test_overlaps():
    matrix = overlap_matrix([["a", "b", "c"], ["a", "b", "b"], ["c", "b", "c"]])
    assert matrix == pytest.approx(np.array([[1, 2 / 3, 2 / 3], [2 / 3, 1, 1 / 3], [2 / 3, 1 / 3, 1]]))
    with pytest.raises(ValueError, match="same rows"):
        overlap_matrix([[1, 2], [1, 2, 3]])


def test_binary_errors_one_by_one(digits):
    X, y, X_test, y_test = digits
    base = CodedClassifier(SVC(C=5.0, gamma=0.02)).fit(X, y)
    reference_labels = base.predict(X_test)
    for name in ("dense", "ovo", "sparse"):
        model = CodedClassifier(SVC(C=5.0, gamma=0.02), name, random_state=0, n_draws=50).fit(X, y)
        shares = binary_errors(model, X_test, y_test, reference_labels)
        outputs, matrix = model.outputs(X_test), model.code_.matrix
        expected = []
        for row in np.flatnonzero(reference_labels != y_test):
            own, other = matrix[y_test[row]], matrix[reference_labels[row]]
            sides = [i for i in range(len(own)) if own[i] * other[i] == -1]
            wrong = [i for i in sides if outputs[row, i] * own[i] <= 0]
            expected.append(len(wrong) / len(sides) if sides else np.nan)
        assert shares == pytest.approx(np.array(expected), nan_ok=True)
        points, above = reverse_cumulative(shares)
        for point, share in zip(points, above, strict=True):
            assert share == pytest.approx((shares[~np.isnan(shares)] >= point).mean())


def test_displays(digits):
    mpl.use("Agg")
    X, y, X_test, y_test = digits
    models = {
        name: CodedClassifier(SVC(C=5.0, gamma=0.02), name, random_state=0, n_draws=20).fit(X, y)
        for name in ("ovr", "dense")
    }
    predictions = {name: model.predict(X_test) for name, model in models.items()}
    overlap = OverlapDisplay.from_predictions(predictions).plot()
    assert overlap.matrix[0, 1] == (predictions["ovr"] == predictions["dense"]).mean()
    curves = BinaryErrorDisplay.from_models(models, X_test, y_test, predictions["ovr"]).plot(
        ax=overlap.ax_.figure.add_subplot()
    )
    assert [line.get_label() for line in curves.lines_] == ["ovr", "dense"]
    assert curves.lines_[0].get_ydata()[0] == 100.0
