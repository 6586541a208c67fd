"""Every example in a docstring runs, on the package that is installed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

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


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    assert (PUBLIC[name].__doc__ or "").strip()
