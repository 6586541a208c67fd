"""LIBSVM's Python functions against LIBSVM's programs."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from svmarrow.exceptions import FormatError
from svmarrow.io import load_libsvm_model, save_svmlight
from svmarrow.libsvm import (
    evaluations,
    svm_load_model,
    svm_parameter,
    svm_predict,
    svm_problem,
    svm_read_problem,
    svm_save_model,
    svm_train,
)

needs_libsvm = pytest.mark.skipif(shutil.which("svm-train") is None, reason="LIBSVM's programs are missing")

#: Options of the kernels. The sigmoid kernel is nearly definite, so that there is one optimum. Where nu times
#: the number of samples is even, nu-SVC may have no free support vector in a class, and then no unique C.
KERNELS = {0: "", 1: "-g 0.2 -r 1 -d 2", 2: "-g 0.1", 3: "-g 0.002 -r 0.0"}


def program(name, *arguments):
    done = subprocess.run([name, *map(str, arguments)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libsvm")
    X, y = load_wine(return_X_y=True)
    X = scale(X).round(4) + 1.0
    rng = np.random.default_rng(0)
    order = rng.permutation(y.size)
    X, y = X[order], y[order]
    save_svmlight(X, y + 3, folder / "classes")
    save_svmlight(X, np.where(y > 0, 1, -1), folder / "two")
    save_svmlight(X, np.round(X[:, 0] + 0.3 * rng.normal(size=y.size), 4), folder / "numbers")
    K = X @ X.T
    lines = [
        f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
        for i, (label, row) in enumerate(zip(y.tolist(), K.tolist(), strict=True))
    ]
    (folder / "kernel").write_text("\n".join(lines) + "\n")
    return folder


def data_of(svm_type, kernel_type):
    return "kernel" if kernel_type == 4 else "numbers" if svm_type >= 3 else "classes"


@needs_libsvm
@pytest.mark.parametrize("svm_type", range(5))
@pytest.mark.parametrize("kernel_type", range(5))
def test_models_are_those_of_libsvm(folder, tmp_path, svm_type, kernel_type):
    data = folder / data_of(svm_type, kernel_type)
    options = f"-s {svm_type} -t {kernel_type} {KERNELS.get(kernel_type, '')} -n 0.23 -e 1e-6 -q".split()
    y, x = svm_read_problem(data)
    ours = svm_train(y, x, options)
    svm_save_model(tmp_path / "ours", ours)
    program("svm-train", *options, data, tmp_path / "theirs")
    theirs = svm_load_model(tmp_path / "theirs")
    assert ours.get_labels() == theirs.get_labels()
    assert ours.get_svm_type() == theirs.get_svm_type() == svm_type
    values = [svm_predict(y, x, model, "-q") for model in (ours, theirs)]
    outputs = [np.array(value[2]) for value in values]
    if svm_type == 2:
        # Ours lowers the offset by the rounding of an output, so that at most nu n samples are outside.
        lowered = np.mean(outputs[0] - outputs[1])
        assert 0.0 <= lowered <= 1e-4 * np.abs(outputs[1]).max() + 1e-4
        outputs[1] = outputs[1] + lowered
    np.testing.assert_allclose(*outputs, atol=2e-4)
    # A support vector inside the bounds of a one-class SVM lies on the boundary: rounding decides.
    distances = np.abs([value[2] for value in values]).min(axis=(0, 2))
    is_clear = distances > 1e-4 if svm_type == 2 else np.ones(len(y), dtype=bool)
    assert is_clear.mean() > 0.5
    if svm_type < 3:
        assert np.array_equal(np.array(values[0][0])[is_clear], np.array(values[1][0])[is_clear])
    for name, (labels, _, _) in zip(("ours", "theirs"), values, strict=True):
        program("svm-predict", data, tmp_path / name, tmp_path / "answers")
        answers = np.loadtxt(tmp_path / "answers")
        np.testing.assert_allclose(answers[is_clear], np.array(labels)[is_clear], rtol=1e-9, atol=1e-9)


@needs_libsvm
@pytest.mark.parametrize("svm_type", range(5))
@pytest.mark.parametrize("more", ["", "-b 1", "-w3 5"])
def test_cross_validation_has_the_folds_of_libsvm(folder, capsys, svm_type, more):
    if svm_type == 2 and more == "-b 1":
        pytest.skip("one-class SVM has no probabilities")
    data = folder / data_of(svm_type, 2)
    options = f"-s {svm_type} -g 0.3 -n 0.2 -e 1e-6 -v 4 {more}"
    told = [line for line in program("svm-train", *options.split(), data) if line.startswith("Cross")]
    result = svm_train(*svm_read_problem(data), options)
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Cross")]
    for ours, theirs in zip(printed, told, strict=True):
        assert ours.split(" = ")[0] == theirs.split(" = ")[0]
        numbers = [float(line.split(" = ")[1].rstrip("%")) for line in (ours, theirs)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=1e-9)
    assert result == pytest.approx(float(printed[0].split(" = ")[1].rstrip("%")), rel=1e-5)


@needs_libsvm
@pytest.mark.parametrize("name", ["two", "classes"])
@pytest.mark.parametrize("svm_type", [0, 1])
def test_probabilities_are_those_of_libsvm(folder, tmp_path, name, svm_type):
    data = folder / name
    options = ["-s", svm_type, "-b", 1, "-e", "1e-6", "-g", 0.1, "-n", 0.2, "-q"]
    program("svm-train", *options, data, tmp_path / "theirs")
    theirs = svm_load_model(tmp_path / "theirs")
    y, x = svm_read_problem(data)
    labels, _, shares = svm_predict(y, x, theirs, "-b 1 -q")
    program("svm-predict", "-b", 1, data, tmp_path / "theirs", tmp_path / "answers")
    lines = (tmp_path / "answers").read_text().splitlines()
    assert lines[0].split()[1:] == [str(label) for label in theirs.get_labels()]
    printed = np.array([line.split() for line in lines[1:]], dtype=float)
    np.testing.assert_array_equal(printed[:, 0], labels)
    np.testing.assert_allclose(printed[:, 1:], shares, rtol=6e-6)  # six digits are printed
    ours = svm_train(y, x, list(map(str, options)))
    np.testing.assert_allclose(ours._prob_a, theirs._prob_a, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours._prob_b, theirs._prob_b, rtol=1e-3, atol=1e-3)


@needs_libsvm
@pytest.mark.parametrize("svm_type", [3, 4])
def test_scale_of_the_errors_is_that_of_libsvm(folder, tmp_path, capsys, svm_type):
    options = f"-s {svm_type} -b 1 -e 1e-6 -q"
    program("svm-train", *options.split(), folder / "numbers", tmp_path / "theirs")
    theirs = svm_load_model(tmp_path / "theirs")
    y, x = svm_read_problem(folder / "numbers")
    ours = svm_train(y, x, options)
    assert ours.get_svr_probability() == pytest.approx(theirs.get_svr_probability(), rel=1e-4)
    _, errors, values = svm_predict(y, x, ours, "-b 1")
    assert "Laplace distribution" in capsys.readouterr().out
    assert values == [[]] * len(y)
    assert errors[1] < 0.2


def test_containers_are_alike():
    X, y = load_iris(return_X_y=True)
    rows = [{j + 1: value for j, value in enumerate(row) if value} for row in X.tolist()]
    containers = [rows, X.tolist(), tuple(map(tuple, X.tolist())), X, sp.csr_array(X), sp.csc_matrix(X)]
    models = [svm_train(y, x, "-c 4 -q") for x in containers]
    expected = svm_predict(y, X, models[0], "-q")
    assert expected[1][0] > 95.0
    for x, model in zip(containers, models, strict=True):
        assert svm_predict(y, x, model, "-q") == expected
    problem = svm_problem(y.tolist(), rows)
    assert svm_train(problem, svm_parameter("-c 4 -q")).get_SV() == models[0].get_SV()
    assert (problem.l, problem.n) == (150, 4)


def test_output_of_training_and_prediction(capsys):
    y, x = [1, -1, 1, -1], [{1: 1}, {1: -1}, {1: 2}, {1: -2}]
    model = svm_train(y, x, "-t 0 -c 4")
    assert "optimization finished, #iter = " in capsys.readouterr().out
    assert model.get_labels() == [1, -1]
    assert sorted(model.get_sv_indices()) == [1, 2]
    np.testing.assert_allclose(model.get_sv_coef(), [(0.5,), (-0.5,)], atol=1e-3)
    labels, accuracy, values = svm_predict([], [[3.0], [-3.0, 7.0]], model)
    assert capsys.readouterr().out == "Accuracy = 0% (0/2) (classification)\n"
    assert labels == [1.0, -1.0]
    np.testing.assert_allclose(values, [[3.0], [-3.0]], atol=1e-2)
    assert accuracy[0] == 0.0
    svm_predict(y, x, model, "-q")
    assert capsys.readouterr().out == ""


def test_files_come_back(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = svm_train(y, X, "-b 1 -q")
    svm_save_model(tmp_path / "model", model)
    again = svm_load_model(tmp_path / "model")
    assert svm_predict(y, X, again, "-q -b 1") == svm_predict(y, X, model, "-q -b 1")
    assert again.get_sv_coef() == model.get_sv_coef()
    assert again.get_SV() == model.get_SV()
    general = load_libsvm_model(tmp_path / "model")
    assert general.predict(X).tolist() == svm_predict(y, X, again, "-q")[0]
    text = (tmp_path / "model").read_text().replace("probB ", "probB 1 ")
    (tmp_path / "model").write_text(text)
    with pytest.raises(FormatError, match="probA and probB have 3 and 4 values"):
        svm_load_model(tmp_path / "model")


def test_problems_are_read(tmp_path):
    (tmp_path / "rows").write_text("1 1:0.5 3:2\n-1 2:1\n")
    assert svm_read_problem(tmp_path / "rows") == ([1.0, -1.0], [{1: 0.5, 3: 2.0}, {2: 1.0}])
    y, x = svm_read_problem(tmp_path / "rows", return_scipy=True)
    assert x.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert y.tolist() == [1.0, -1.0]


def test_evaluations():
    accuracy, error, correlation = evaluations([1, 2, 3], [1, 2, 5])
    assert accuracy == pytest.approx(200 / 3)
    assert error == pytest.approx(4 / 3)
    assert correlation == pytest.approx(np.corrcoef([1, 2, 3], [1, 2, 5])[0, 1] ** 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-s 5", "-s 5: the value must be an integer from 0 to 4"),
        ("-t x", "-t x: the value must be an integer"),
        ("-c 0", "-c 0.0: the value must be above 0"),
        ("-c nan", "-c nan: the value must be a finite number"),
        ("-n 0 -s 1", "-n 0.0: the value must be above 0 and at most 1"),
        ("-s 1 -n 1", "-n 1.0: the specified nu is infeasible"),
        ("-v 1", "-v 1: the value must be at least 2"),
        ("-s 2 -b 1", "-b 1 is not supported for one-class SVM"),
        ("-h 2", "-h 2: the value must be 0 or 1"),
        ("-z 2", "unknown option: -z"),
        ("-c", "-c needs a value"),
        ("-w1 1 -w1 2", "-w1 appears twice"),
        ("-w1x 1", "-wi 1x: the value must be an integer"),
        ("rows", "rows is no option of svm-train"),
    ],
)
def test_options_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        svm_train([1, -1, -1], [[1.0], [2.0], [3.0]], options)


def test_an_early_end_is_a_warning(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.where(rng.random(60) < 0.5, 1, -1)
    match = (
        r"ended before the tolerance was reached \(stalled\): the violation is .* for -e 1e-15, .* raise -e$"
    )
    with pytest.warns(ConvergenceWarning, match=match) as warned:
        svm_train(y, X, "-c 1e3 -e 1e-15 -q")
    assert [warning.filename for warning in warned] == [__file__]
    assert capsys.readouterr() == ("", "")


def test_attributes_of_the_options_may_be_changed():
    parameter = svm_parameter("-c 2 -w1 3 -v 4 -b 1")
    assert (parameter.C, parameter.weight_label, parameter.weight) == (2.0, [1], [3.0])
    assert (parameter.cross_validation, parameter.nr_fold, parameter.probability) == (True, 4, 1)
    parameter.C, parameter.shrinking, parameter.eps = np.float64(0.1) * 3, False, 1e-300
    parameter.check()
    assert vars(svm_parameter(parameter._words())) == vars(parameter)
    parameter.nr_fold = 1
    with pytest.raises(ValueError, match="-v 1: the value must be at least 2"):
        parameter.check()
    parameter.cross_validation, parameter.C = False, -1
    with pytest.raises(ValueError, match=r"-c -1\.0: the value must be above 0"):
        svm_train([1, -1], [[1.0], [2.0]], parameter)


@pytest.mark.parametrize(
    ("y", "x", "options", "message"),
    [
        ([1, 1], [[1.0], [2.0]], "", "only one class"),
        ([1, 2], [[1.0]], "", r"len\(y\) is 2 and len\(x\) is 1"),
        ([1, 2], [{0: 1.0}, {1: 1.0}], "", "index 0 of x"),
        ([1, 2], [[0.0], [0.0]], "", "no features"),
        ([1, 2], [[1, 1.0, 0.0], [3, 0.0, 1.0]], "-t 4", "serial numbers"),
        ([], [], "", "no rows"),
    ],
)
def test_data_is_refused(y, x, options, message):
    with pytest.raises(ValueError, match=message):
        svm_train(y, x, options)


def test_an_asymmetric_kernel_matrix_is_refused(tmp_path):
    rows = np.random.default_rng(0).normal(size=(12, 3))
    kernel = np.exp(-((rows[:, np.newaxis] - rows) ** 2).sum(axis=2))
    serials = np.arange(1.0, 13.0)[:, np.newaxis]
    y = np.repeat([1.0, -1.0], 6)
    model = svm_train(y, np.hstack([serials, kernel]), "-t 4 -q")
    assert model.get_nr_sv() > 0
    kernel[3, 8] += 1e-3
    wrong = np.hstack([serials, kernel])
    for options in ("-t 4 -q", "-t 4 -s 3 -q", "-t 4 -b 1 -q", "-t 4 -v 3 -q"):
        with pytest.raises(ValueError, match="not symmetric: rows 4 and 9 have the values"):
            svm_train(y, wrong, options)
    path = tmp_path / "kernel"
    lines = [
        f"{label:g} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(map(float, row)))
        for label, row in zip(y, wrong, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "svmarrow", "svm-train", "-t", "4", path, tmp_path / "model"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not symmetric: rows 4 and 9" in done.stderr


def test_options_may_be_a_list_with_numbers():
    parameter = svm_parameter(["-c", 4, "-w1", 2.5])
    assert (parameter.C, parameter.weight_label, parameter.weight) == (4.0, [1], [2.5])
    parameter.weight_label = [1.0]
    parameter.check()
    parameter.weight_label = [1.5]
    with pytest.raises(ValueError, match=r"1\.5"):
        parameter.check()
