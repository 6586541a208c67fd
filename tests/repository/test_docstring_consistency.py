"""Parameters and attributes of the same name are described alike, in the manner of scikit-learn's check.

scikit-learn's `assert_docstring_consistency` needs numpydoc; entries are read here by their indentation.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import pytest

from helpers.estimators import EXPANSION_MODELS
from helpers.public import PUBLIC

ESTIMATORS = {
    name: kind for name, kind in PUBLIC.items() if isinstance(kind, type) and hasattr(kind, "get_params")
}
#: Entries whose type and description are the same everywhere, but for some classes: models of a finished
#: expansion have no attributes that a fit sets.
SAME = {
    "cache_size": {"KMPClassifier", "KMPRegressor", "QuantileSVRCV", "SVCCV", "SVRCV"},
    "classes_": EXPANSION_MODELS,
    "coef0": set(),
    "degree": set(),
    "feature_names_in_": EXPANSION_MODELS,
    "n_features_in_": EXPANSION_MODELS,
}
#: How the description of an entry begins everywhere, one of the beginnings where there are several families.
BEGINNINGS = {
    "expansion_": ("The model", "All machines", "The expansion", "The compressed model"),
    "fit_intercept": ("Whether to fit an intercept",),
    "gamma": ("Kernel coefficient",),
    "intercept_": ("Intercepts of the machines", "Intercepts of the outputs"),
    "max_iter": ("Maximum number of",),
    "max_time": ("Maximum number of seconds of",),
    "n_iter_": ("Number of",),
    "n_jobs": ("Number of threads. None means all cores that this process may use, within the limits of",),
    "random_state": ("Seed of",),
    "verbose": ("Whether to show the progress on stderr",),
    "warm_start": ("Whether `fit` reuses the previous solution as the starting point",),
}
TYPES = {
    "n_jobs": {"int or None, default=None"},
    "random_state": {
        "int, RandomState instance or None, default=None",
        # Folds of a guard decide on a model, which is the same for the same data.
        "int, RandomState instance or None, default=0",
    },
    "verbose": {"bool or int, default=False"},
}


def entries(kind):
    """(name, type, description) of the parameters and attributes in a docstring."""
    text = inspect.getdoc(kind) or ""
    for section in ("Parameters", "Attributes"):
        found = re.search(rf"\n{section}\n-+\n(.*?)(?=\n[A-Z][\w ]+\n-+\n|\Z)", text, re.DOTALL)
        for entry in re.finditer(
            r"^(\w+) : (.*)\n((?:    .*\n?|\n)*)", f"{found[1]}\n" if found else "", re.MULTILINE
        ):
            yield entry[1], entry[2], " ".join(entry[3].split())


@pytest.fixture(scope="module")
def described():
    """By name of an entry: by class, type and description."""
    found = defaultdict(dict)
    for name, kind in ESTIMATORS.items():
        for entry, own, words in entries(kind):
            found[entry][name] = own, words
    return found


@pytest.mark.parametrize("entry", SAME)
def test_equal_names_have_equal_descriptions(described, entry):
    said = {name: words for name, words in described[entry].items() if name not in SAME[entry]}
    assert len(said) > 1
    assert len(set(said.values())) == 1, said


@pytest.mark.parametrize("entry", BEGINNINGS)
def test_descriptions_begin_alike(described, entry):
    assert len(described[entry]) > 1
    others = {
        n: words for n, (_, words) in described[entry].items() if not words.startswith(BEGINNINGS[entry])
    }
    assert others == {}


@pytest.mark.parametrize("entry", TYPES)
def test_types_are_written_alike(described, entry):
    assert {own for own, _ in described[entry].values()} == TYPES[entry]
