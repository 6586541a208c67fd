"""Savers that are killed at random moments: the file is the old one or the new one, whole.

    python benches/robustness/kills.py              # 300 kills
    python benches/robustness/kills.py --kills 1000

One process saves two models of one name in turn, in each of the three formats, without a pause, and gets
SIGKILL after some milliseconds. Then the file must be read and be one of the two. What a killed process has
begun stays as a file named ``.svmarrow-*`` beside it, one for each process that was killed: nothing removes
it, since another process may be writing it. The run checks that there are no more.

A part of the kills runs in ``tests/io/test_disk.py``.
"""

from __future__ import annotations

import argparse
import collections
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent))

from reports import keep

import svmarrow
from svmarrow import KernelExpansion
from svmarrow.io import load_libsvm_model, load_svmlight, save_libsvm_model, save_svmlight
from svmarrow.models import ExpansionRegressor

ROWS, COLUMNS = 4000, 20


def _numbers(value: float) -> np.ndarray:
    return np.full((ROWS, COLUMNS), value) + np.arange(COLUMNS)


def _model(value: float) -> KernelExpansion:
    return KernelExpansion(_numbers(value), np.full((ROWS, 1), value), np.zeros(1), "rbf", gamma=1.0)


SAVE = {
    "model": lambda value, path: _model(value).save(path),
    "libsvm": lambda value, path: save_libsvm_model(ExpansionRegressor(_model(value)), path),
    "svmlight": lambda value, path: save_svmlight(_numbers(value), np.full(ROWS, value), path),
}
LOAD = {
    "model": lambda path: svmarrow.load(path).vectors,
    "libsvm": lambda path: load_libsvm_model(path).expansion_.vectors,
    "svmlight": lambda path: load_svmlight(path)[0],
}
#: Both have every number written out, so that nothing that is cut off could pass for the other.
VALUES = (0.25, 1.75)


def save_for_ever(folder: Path) -> None:
    """Overwrites the three files until killed; tells when each is there."""
    for kind, save in SAVE.items():
        save(VALUES[0], folder / kind)
    print("ready", flush=True)
    while True:
        for value in reversed(VALUES):
            for kind, save in SAVE.items():
                save(value, folder / kind)


def _state(kind: str, path: Path) -> str:
    try:
        read = LOAD[kind](path)
    except (OSError, ValueError):
        return "broken"
    for name, value in zip(("old", "new"), VALUES, strict=True):
        if np.array_equal(read.toarray() if sparse.issparse(read) else read, _numbers(value)):
            return name
    return "broken"


def run(kills: int, seed: int = 0) -> collections.Counter[str]:
    """Kills that many savers; the states that their files are in, the worst of the three for each."""
    random = np.random.default_rng(seed)
    outcomes: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(kills):
            with subprocess.Popen(
                [sys.executable, __file__, "--folder", folder], stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                time.sleep(random.uniform(0.0, 0.1))
                process.send_signal(signal.SIGKILL)
            states = {_state(kind, Path(folder) / kind) for kind in SAVE}
            outcomes["broken" if "broken" in states else "whole"] += 1
        left = [entry.name for entry in Path(folder).iterdir() if entry.name not in SAVE]
        assert all(name.startswith(".svmarrow-") for name in left)
        assert len(left) <= kills, "at most the one file that each process had begun"
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        save_for_ever(options.folder)
    outcomes = run(options.kills)
    print("  ".join(f"{name} {count}" for name, count in sorted(outcomes.items())))
    keep(options.output, dict(sorted(outcomes.items())))
    return 1 if outcomes["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
