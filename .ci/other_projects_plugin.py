"""A pytest plugin that writes the outcome of each test, seeds the global generators and provides fixtures.

pyRiemann's source archive does not contain `tests/conftest.py`; the fixtures below take its place.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

#: The text of the failure of each test, empty for a test that passed. Skipped tests are not listed.
outcomes: dict[str, str] = {}


def pytest_runtest_setup(item: pytest.Item) -> None:  # noqa: ARG001
    """Seed the global generators, so that a test draws the same numbers whichever tests ran before it."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the outcome of a test, or of one of its subtests."""
    if report.failed:
        outcomes[report.nodeid] = report.longreprtext
    elif report.when == "call" and report.passed:
        outcomes.setdefault(report.nodeid, "")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that cannot be imported as a failure."""
    if report.failed:
        outcomes[report.nodeid] = report.longreprtext


def pytest_sessionfinish() -> None:
    """Write the outcomes."""
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(outcomes), encoding="utf-8")


@pytest.fixture
def rndstate() -> np.random.RandomState:
    """Return a seeded generator."""
    return np.random.RandomState(0)


@pytest.fixture
def get_mats(rndstate: np.random.RandomState) -> Callable[..., Any]:
    """Return a function that draws matrices of a kind, such as symmetric positive definite ones."""
    from pyriemann.datasets import make_matrices  # noqa: PLC0415

    return lambda n_matrices, n_dim, kind: make_matrices(n_matrices, n_dim, kind, rndstate)


@pytest.fixture
def get_weights(rndstate: np.random.RandomState) -> Callable[[int], np.ndarray]:
    """Return a function that draws positive sample weights."""
    return lambda n_matrices: rndstate.uniform(1.0, 2.0, n_matrices)


@pytest.fixture
def get_targets(rndstate: np.random.RandomState) -> Callable[[int], np.ndarray]:
    """Return a function that draws targets of a regression."""
    return lambda n_matrices: rndstate.uniform(size=n_matrices)


@pytest.fixture
def get_labels() -> Callable[[int, int], np.ndarray]:
    """Return a function that makes labels of classes of equal size."""
    return lambda n_matrices, n_classes: np.repeat(np.arange(n_classes), n_matrices // n_classes)
