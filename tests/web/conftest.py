"""The engine for web browsers, in Node.js: `web/build` makes it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "web" / "dist" / "svmarrow.wasm"
NODE = shutil.which("node")
RUNNER = Path(__file__).with_name("runner.mjs")


@pytest.fixture(scope="session")
def node():
    """Runs calls of the engine in Node.js, `runner.mjs` says which; returns their results."""
    if NODE is None:
        pytest.skip("Node.js is not installed")
    if not MODULE.is_file():
        pytest.skip("web/dist/svmarrow.wasm is not built: web/build")

    def run(calls):
        done = subprocess.run(
            [NODE, str(RUNNER), str(ROOT / "web" / "svmarrow.js"), str(MODULE)],
            input=json.dumps(calls), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
