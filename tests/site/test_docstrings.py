"""The docstring of every public name and method says what it has to, in numpydoc's form."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from public_names import SECTIONS, thing

validate = pytest.importorskip("numpydoc.validate", reason="the extra docs is not installed")
pycode = pytest.importorskip("sphinx.pycode")

#: What numpydoc asks for and we do not.
LEFT_OUT = {
    "ES01": "a summary that says it all needs no second paragraph",
    "SA01": "a neighbour is named where it is easily overlooked; the guide leads from one to the other",
    "SS05": "a noun may begin a sentence",
    "PR04": "parameters that are another function's stand in one line that names it",
    **dict.fromkeys(("PR08", "RT04", "SS02"), "q, b and k are names"),
}
#: A method whose one sentence says all needs no sections; its example is that of its class.
ONE_SENTENCE = {"PR01", "RT01"}
OF_MEMBERS = {"EX01"}
#: Classes that functions and fits give back: their fields or attributes are described instead of parameters.
GIVEN_BACK = {
    "svmarrow.kernels.PreparedObjects",
    "svmarrow.libsvm.svm_model",
    "svmarrow.matching_pursuit.MatchingPath",
    "svmarrow.reduced_set.CompressionPath",
    "svmarrow.reduced_set.GradientPath",
}
#: Shown by the example of another name: the one that gives them back, or takes them, or undoes them.
SHOWN_ELSEWHERE = {
    "svmarrow.reduced_set.GradientSettings": "svmarrow.compress",
    "svmarrow.reduced_set.SelectionSettings": "svmarrow.compress",
    "svmarrow.load": "svmarrow.save",
    **dict.fromkeys(
        (f"svmarrow.libsvm.{name}" for name in ("svm_problem", "svm_parameter", "svm_model", "svm_predict")),
        "svmarrow.libsvm.svm_train",
    ),
    **dict.fromkeys(
        (f"svmarrow.libsvm.{name}" for name in ("svm_load_model", "svm_read_problem", "evaluations")),
        "svmarrow.libsvm.svm_save_model",
    ),
    "svmarrow.unpatch_sklearn": "svmarrow.patch_sklearn",
    "svmarrow.exceptions.FallbackWarning": "svmarrow.patch_sklearn",
    "svmarrow.io.save_svmlight": "svmarrow.io.load_svmlight",
    "svmarrow.io.save_libsvm_model": "svmarrow.as_expansion",
    "svmarrow.io.load_libsvm_model": "svmarrow.as_expansion",
    "svmarrow.export.register_skl2onnx": "svmarrow.export.to_onnx",
    "svmarrow.papers.rifkin.binary_errors": "svmarrow.papers.rifkin.BinaryErrorDisplay",
    "svmarrow.reduced_set.subsample_baseline": "svmarrow.reduced_set.SizeAccuracyDisplay",
}


def members(name):
    """A name, and what it has of its own."""
    yield name
    if inspect.isclass(thing(name)):
        for own, value in vars(thing(name)).items():
            plain = inspect.unwrap(value) if callable(value) else value
            kinds = (type(members), property, classmethod, staticmethod)
            if not own.startswith("_") and isinstance(plain, kinds):
                yield f"{name}.{own}"


def left_out(name, member):
    """Codes that are not asked of a docstring."""
    found = set(LEFT_OUT)
    if member != name:
        documented = thing(name).__dict__[member.rpartition(".")[2]].__doc__ or ""
        found |= OF_MEMBERS | (ONE_SENTENCE if "----" not in documented else set())
    elif dataclasses.is_dataclass(thing(name)) or name in GIVEN_BACK:
        found |= {"PR01", "EX01"}
    elif name in SHOWN_ELSEWHERE or name.startswith(("svmarrow.papers.rifkin.", "svmarrow.exceptions.")):
        found |= {"EX01"}
    return found


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_docstrings(section):
    faults = [
        f"{member}: {code} {text}"
        for name in section.names
        # Two of the exceptions are scikit-learn's own.
        if thing(name).__module__.startswith("svmarrow")
        for member in members(name)
        for code, text in validate.validate(member)["errors"]
        if code not in left_out(name, member)
    ]
    assert faults == []


@pytest.mark.parametrize(
    "name",
    [
        name
        for section in SECTIONS
        for name in section.names
        if dataclasses.is_dataclass(thing(name)) and thing(name).__module__.startswith("svmarrow")
    ],
)
def test_fields_are_described(name):
    kind = thing(name)
    modules = {base.__module__ for base in kind.__mro__ if base.__module__.startswith("svmarrow")}
    above = [pycode.ModuleAnalyzer.for_module(module).find_attr_docs() for module in sorted(modules)]
    described = {name for found in above for _, name in found}
    for field in dataclasses.fields(kind):
        assert field.name in described or field.name in (kind.__doc__ or ""), field.name
