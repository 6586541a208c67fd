"""Model files of SVM-light are read."""

from __future__ import annotations

import numpy as np
import pytest

from svmarrow.exceptions import FormatError
from svmarrow.io import load_svmlight_model

HEADER = """\
SVM-light Version V6.02
{kernel} # kernel type
2 # kernel parameter -d{space}
0.5 # kernel parameter -g{space}
0.25 # kernel parameter -s{space}
3 # kernel parameter -r{space}
empty# kernel parameter -u{space}
4 # highest feature index{space}
10 # number of training documents{space}
3 # number of support vectors plus 1{space}
-0.75 # threshold b, each following line is a SV (starting with alpha*y)
"""
VECTORS = "0.5 1:1 3:-2 #\n-1.25 2:0.5 4:1 # a comment\n"
Z = np.array([[1.0, 0.0, -2.0, 0.0], [0.0, 0.5, 0.0, 1.0]])
COEFFICIENTS = np.array([0.5, -1.25])
X = np.random.default_rng(0).normal(size=(20, 4))

#: The formulas of SVM-light's documentation.
KERNELS = [
    lambda a, b: a @ b,
    lambda a, b: (0.25 * (a @ b) + 3.0) ** 2,
    lambda a, b: np.exp(-0.5 * ((a - b) ** 2).sum()),
    lambda a, b: np.tanh(0.25 * (a @ b) + 3.0),
]


def text(kernel=0, vectors=VECTORS, space=" "):
    return HEADER.format(kernel=kernel, space=space) + vectors


@pytest.mark.parametrize("kernel", range(4))
@pytest.mark.parametrize("space", ["", " "])
def test_outputs_follow_the_formulas(tmp_path, kernel, space):
    path = tmp_path / "model"
    path.write_text(text(kernel, space=space))
    expected = [
        sum(c * KERNELS[kernel](x, z) for c, z in zip(COEFFICIENTS, Z, strict=True)) + 0.75 for x in X
    ]
    model = load_svmlight_model(path)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)
    assert model.predict(X).tolist() == np.where(np.array(expected) > 0.0, 1, -1).tolist()
    numbers = load_svmlight_model(path, task="regression")
    np.testing.assert_allclose(numbers.predict(X), expected, rtol=1e-12)


def test_number_of_columns(tmp_path):
    path = tmp_path / "model"
    path.write_text(text())
    assert load_svmlight_model(path).n_features_in_ == 4
    assert load_svmlight_model(path, 6).n_features_in_ == 6
    with pytest.raises(FormatError, match="the model has 4 columns, n_features=3"):
        load_svmlight_model(path, 3)
    with pytest.raises(ValueError, match="n_features=0 is not allowed"):
        load_svmlight_model(path, 0)
    with pytest.raises(ValueError, match="task='ranking' is not allowed"):
        load_svmlight_model(path, task="ranking")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("svm_type c_svc\n", "line 1: expected 'SVM-light Version'"),
        ("", "line 1: expected 'SVM-light Version'"),
        (text(4), "line 2: kernel type 4 is not supported"),
        (text("x"), "line 2: kernel type 'x' is not a finite number"),
        (
            text().replace("2 # kernel", "2.5 # kernel"),
            "line 3: .* must be a count",
        ),
        (
            text(2).replace("0.5 # kernel", "-1 # kernel"),
            "line 4: the kernel parameter -1 must not be",
        ),
        (text().replace("# threshold b", "threshold"), "line 11: expected a value and '# threshold b'"),
        (text(vectors="0.5 1:1\n"), "1 support vectors, expected 2"),
        (text(vectors="0.5 1:1\n\n"), "line 13: the line is empty"),
        (text(vectors="0.5 1:1\n1 0:2\n"), "line 13: '0:2' is no feature"),
        (text(vectors="0.5 1:1\n1 2:2 2:3\n"), "line 13: index 2 does not increase"),
        (text(vectors="0.5 1:1\n1 2:nan\n"), "line 13: value 'nan' is not a finite number"),
        (text(vectors="x 1:1\n1 2:1\n"), "line 12: coefficient 'x' is not a finite number"),
    ],
)
def test_other_content_is_refused_with_the_line(tmp_path, content, message):
    (tmp_path / "model").write_text(content)
    with pytest.raises(FormatError, match=message):
        load_svmlight_model(tmp_path / "model")
