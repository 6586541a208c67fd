"""Options that would be ignored and outputs of an unknown format are refused before any work."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import svmarrow
from helpers.programs import command
from svmarrow.io import save_svmlight

X, KIND = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    save_svmlight(X, KIND, folder / "iris.svm")
    svmarrow.SVC().fit(X, KIND).save(folder / "model")
    return folder


def error(folder, arguments):
    before = sorted(folder.iterdir())
    words = [str(folder / word[1:]) if word.startswith("@") else word for word in arguments.split()]
    result = command(*words, code=1)
    assert sorted(folder.iterdir()) == before
    return " ".join(result.stderr.replace(str(folder), "@").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--tune -C 5", "--C=5.0 is not allowed with --tune, which chooses it"),
        ("--tune --gamma 0.5", "--gamma=0.5 is not allowed with --tune"),
        ("--racing", "--racing is not allowed without --tune"),
        ("--tune-plot x.png", "--tune-plot=x.png is not allowed without --tune"),
        ("-k linear -g 1", "--gamma=1 is not allowed with --kernel=linear, which has none"),
        ("--degree 2", "--degree=2 is not allowed with --kernel=rbf"),
        ("-k laplacian --coef0 1", "--coef0=1.0 is not allowed with --kernel=laplacian"),
        ("--epsilon 0.2", "--epsilon=0.2 is not allowed without --task=regression"),
        ("--task regression --balanced", "--balanced is not allowed with --task=regression"),
        ("--task regression --multi-class ovr", "--multi-class=ovr is not allowed with --task=regression"),
        ("--alpha 2", "--alpha=2.0 is not allowed without --low-rank"),
        ("--piece 9", "--piece=9 is not allowed without --low-rank"),
        ("--random-state 1", "--random-state=1 is not allowed without --low-rank"),
        *(
            (f"--low-rank 5 {option}", "is not allowed with --low-rank")
            for option in ("-C 2", "--tune", "--tol 1", "--cache-size 9", "--max-time 9", "--multi-class ovr")
        ),
        ("--low-rank 5 -k linear --gamma 2", "--gamma=2 is not allowed with --kernel=linear"),
    ],
)
def test_train_refuses_what_it_would_ignore(folder, arguments, message):
    assert message in error(folder, f"train @iris.svm -o @out {arguments}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compress @model -o @out -n 5 --float32", "--float32 is not allowed without --data or --validation"),
        ("compress @model -o @out -n 5 --target a", "--target=a is not allowed without --data"),
        ("compress @model -o @out -n 5 --no-header", "--no-header is not allowed without --data"),
        (
            "compress @model -o @out -n 5 --data @iris.svm --validation-test",
            "--validation-test is not allowed without --validation",
        ),
        (
            "compress @model -o @out -n 5 -m backfit --random-state 3",
            "--random-state=3 is not allowed with --method=backfit",
        ),
        ("convert @model -o @out.onnx --format csv", "--format=csv is not allowed without --data"),
        ("predict @model @iris.svm --decision", "--decision is not allowed without --output"),
    ],
)
def test_other_commands_refuse_what_they_would_ignore(folder, arguments, message):
    assert message in error(folder, arguments)


@pytest.mark.parametrize(
    ("arguments", "option", "name"),
    [
        ("train @iris.svm -o @b.pmml", "--output", "@/b.pmml"),
        ("compress @model -n 5 -o @b.pkl", "--output", "@/b.pkl"),
        ("convert @model -o @b.pmml", "--output", "@/b.pmml"),
        ("predict @model @iris.svm -o @b.npz", "--output", "@/b.npz"),
        ("train @iris.svm --tune --tune-plot @b.xyz -o @out", "--tune-plot", "@/b.xyz"),
        ("compress @model -o @out --validation @iris.svm --curve @b.txt", "--curve", "@/b.txt"),
    ],
)
def test_names_that_say_no_known_format_are_refused(folder, arguments, option, name, monkeypatch):
    monkeypatch.setattr(svmarrow.SVC, "fit", lambda *_: pytest.fail("it trained first"))
    line = error(folder, arguments)
    assert f"{option}={name} is not allowed: its name must end in one of " in line


def test_a_format_that_is_given_goes_with_any_name(folder, tmp_path):
    command("convert", folder / "model", "-o", tmp_path / "b.pmml", "--model-format", "safetensors")
    assert (svmarrow.load(tmp_path / "b.pmml").predict(X) == svmarrow.load(folder / "model").predict(X)).all()


def test_save_refuses_names_of_other_formats(tmp_path):
    model = svmarrow.SVC().fit(X, KIND)
    for save in (model.save, lambda path: svmarrow.save(model, path), model.as_expansion().save):
        with pytest.raises(ValueError, match=r"path='.*m\.onnx' is not allowed.*\.safetensors"):
            save(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "m.SafeTensors")
    assert np.array_equal(svmarrow.load(tmp_path / "m.SafeTensors").predict(X), model.predict(X))
