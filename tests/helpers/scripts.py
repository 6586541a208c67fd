"""Import of the scripts in benches/robustness, whose cases the tests run in part."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benches" / "robustness"


def robustness_script(name):
    """Returns the module of a script; the source distribution has no benchmarks, so the test module skips."""
    if not SCRIPTS.is_dir():
        pytest.skip("benches/robustness is not here", allow_module_level=True)
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(SCRIPTS))
