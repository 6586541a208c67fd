"""The curve of error against size."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn import svm as peer
from sklearn.datasets import make_blobs

from helpers.programs import python
from svmarrow import SVC, SVR, compress, compression_path
from svmarrow._support.displays import image_axes
from svmarrow.inspection import DecisionVectorsDisplay
from svmarrow.reduced_set import SizeAccuracyDisplay, subsample_baseline

mpl.use("Agg")


@pytest.fixture(scope="module")
def path(cancer):
    X, y, _, _ = cancer
    return compression_path(SVC(gamma=0.01).fit(X, y), n_vectors=40)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_the_curve_holds_the_errors_of_the_path(path, cancer):
    _, _, X_test, y_test = cancer
    display = path.plot(X_test, y_test, chosen=10)
    np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(1, 41))
    np.testing.assert_allclose(display.line_.get_ydata(), 1 - path.scores(X_test, y_test), atol=1e-12)
    assert display.full_score == path.full_score(X_test, y_test)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[1].startswith(f"full model, {path.expansion.n_vectors} vectors: ")
    assert texts[2].startswith("chosen, 10 vectors: ")
    assert display.figure_ is display.ax_.figure


def test_it_draws_into_given_axes_and_takes_options(path, cancer):
    _, _, X_test, y_test = cancer
    _, ax = plt.subplots()
    display = path.plot(X_test, y_test, ax=ax, sizes=[1, 5, 20], color="black", label="mine")
    assert display.ax_ is ax
    assert display.line_.get_color() == "black"
    assert ax.get_legend().get_texts()[0].get_text() == "mine"
    assert len(display.line_.get_xdata()) == 3


def test_errors_of_zero_need_a_linear_axis(tmp_path):
    before = plt.get_fignums()
    display = SizeAccuracyDisplay([1, 2, 3], [0.5, 1.0, 1.0], full_score=1.0).plot(ax=image_axes())
    assert display.ax_.get_yscale() == "linear"
    display.figure_.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert plt.get_fignums() == before, "a figure for a file is not pyplot's"


def test_positive_errors_get_a_logarithmic_axis_with_percent_ticks():
    display = SizeAccuracyDisplay([1, 10, 100], [0.2, 0.9, 0.98]).plot()
    assert display.ax_.get_yscale() == "log"
    display.figure_.canvas.draw()
    labels = [text.get_text() for text in display.ax_.yaxis.get_ticklabels(which="both")]
    assert {"10 %", "20 %", "50 %", "2 %", "5 %"} <= set(labels)


def test_bare_expansions_are_drawn_by_r2(path, cancer):
    _, _, X_test, _ = cancer
    bare = compression_path(path.expansion, n_vectors=20)
    targets = path.expansion.decision_function(X_test)
    display = bare.plot(X_test, targets)
    assert display.ax_.get_ylabel() == "1 - R^2"
    assert display.full_score == pytest.approx(1.0)


def test_without_matplotlib_the_message_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from svmarrow.reduced_set import SizeAccuracyDisplay\n"
        "try:\n    SizeAccuracyDisplay([1], [0.5]).plot()\n"
        "except ImportError as error:\n    print(error)"
    )
    assert python(code).strip() == "drawing needs matplotlib: pip install 'svmarrow[plot]'"


def test_importing_svmarrow_imports_nothing_optional():
    # Some releases of scikit-learn bring rich and pandas where they are installed.
    code = (
        "import sys, sklearn.gaussian_process, sklearn.model_selection, sklearn.multiclass, sklearn.svm\n"
        "before = set(sys.modules)\n"
        "import svmarrow, svmarrow.cli\n"
        "print(*{'matplotlib', 'rich', 'typer', 'pandas'} & (sys.modules.keys() - before))"
    )
    assert python(code).strip() == ""


def test_a_path_is_drawn_with_machines_on_fewer_rows(cancer):
    X, y, X_test, y_test = cancer
    svc = SVC(gamma=0.01).fit(X, y)
    sizes, scores = subsample_baseline(
        svc, X, y, X_test, y_test, sizes=np.geomspace(2, 30, 4), random_state=0
    )
    assert (sizes < 3 * 30).all()
    assert (np.diff(sizes) >= 0).all()
    display = compression_path(svc, n_vectors=30).plot(X_test, y_test, baseline=(sizes, scores))
    drawn, errors = display.baseline_line_.get_data()
    np.testing.assert_array_equal(drawn, sizes)
    np.testing.assert_allclose(errors, 1 - scores, atol=1e-12)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels[:2] == ["compressed", "trained on fewer samples"]
    assert compression_path(svc, n_vectors=5).plot(X_test, y_test).baseline_line_ is None


def test_regressors_are_drawn_with_their_baseline(cancer):
    X, y, X_test, y_test = cancer
    svr = SVR(gamma=0.01).fit(X, y.astype(float))
    found = subsample_baseline(svr, X, y.astype(float), X_test, y_test, sizes=[5, 10, 20], random_state=0)
    display = compression_path(svr, n_vectors=20).plot(X_test, y_test, baseline=found)
    assert display.ax_.get_ylabel() == "1 - R^2"
    assert len(display.baseline_line_.get_xdata()) == 3


@pytest.mark.parametrize("classes", [2, 4])
def test_boundaries_show_regions_and_vectors(classes, tmp_path):
    X, y = make_blobs(200, centers=classes, random_state=1)
    names = np.array(["a", "b", "c", "d"])[y]
    svc = SVC(gamma=0.2).fit(X, names)
    small = compress(svc, n_vectors=7)
    display = DecisionVectorsDisplay.from_estimator(small, X, names, full=svc, grid_resolution=40)
    points = np.column_stack([display.boundary.xx0.ravel(), display.boundary.xx1.ravel()])
    np.testing.assert_array_equal(small.classes_[display.boundary.response.ravel()], small.predict(points))
    np.testing.assert_array_equal(small.classes_[display.full_boundary.response.ravel()], svc.predict(points))
    np.testing.assert_allclose(display.vectors_.get_offsets(), small.expansion_.vectors)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"boundary", "full model", "7 vectors", "a", "b"} <= set(labels)
    ax = image_axes()
    again = DecisionVectorsDisplay.from_estimator(small, X, ax=ax, grid_resolution=20)
    assert again.ax_ is ax
    ax.figure.savefig(tmp_path / "boundary.png")


def test_boundaries_need_two_columns_and_classes(cancer):
    X, y, _, _ = cancer
    with pytest.raises(ValueError, match="30 features: a plot needs 2"):
        DecisionVectorsDisplay.from_estimator(SVC().fit(X, y), X)
    with pytest.raises(TypeError, match="must be a fitted classifier with vectors"):
        DecisionVectorsDisplay.from_estimator(SVR().fit(X[:, :2], y.astype(float)), X[:, :2])
    svc = SVC().fit(X[:, :2], y)
    with pytest.raises(TypeError, match=r"full=<KernelExpansion.* must be a fitted classifier"):
        DecisionVectorsDisplay.from_estimator(svc, X[:, :2], full=svc.expansion_)


def test_boundaries_of_scikit_learns_machines_and_frames():
    X, y = make_blobs(60, centers=2, random_state=1)
    frame = pd.DataFrame(X, columns=["width", "height"])
    machine = peer.SVC(gamma=0.2).fit(frame, y)
    display = DecisionVectorsDisplay.from_estimator(machine, frame, y, grid_resolution=10)
    np.testing.assert_array_equal(display.vectors, machine.support_vectors_)
    grid = (
        frame.iloc[:0]
        .reindex(range(100))
        .assign(width=display.boundary.xx0.ravel(), height=display.boundary.xx1.ravel())
    )
    np.testing.assert_array_equal(display.boundary.response.ravel(), machine.predict(grid))
