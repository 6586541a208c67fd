"""Every example in a docstring runs, on the package that is installed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re

import pytest

import svmarrow
from helpers.public import PUBLIC

MODULES = ["svmarrow", *(info.name for info in pkgutil.walk_packages(svmarrow.__path__, "svmarrow."))]
#: Their documentation is scikit-learn's, for its tests to run.
FOREIGN = ("svmarrow.patch.svm", "svmarrow.patch.ridge")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    "name", [name for name in MODULES if not name.endswith("__main__") and name not in FOREIGN]
)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert outcome.failed == 0


def test_public_names_are_documented():
    assert [name for name in PUBLIC if not (PUBLIC[name].__doc__ or "").strip()] == []


def test_help_begins_with_the_ten_most_important_names():
    listed = (svmarrow.__doc__ or "").partition("Start with these ten names:\n\n")[2].partition("\n\n")[0]
    names = [name for line in listed.splitlines() for name in re.findall(r"`(\w+)`", line.partition(":")[0])]
    assert len(names) == len(set(names)) == 10
    assert set(names) <= set(svmarrow.__all__)
