"""Programs that draw, with scikit-learn's classes and with their replacements: the same pictures?

    python benches/patch/gallery.py examples/svm/plot_*.py

takes programs as they are, scikit-learn's gallery for example, runs each twice without a screen, and tells
the share of pixels that differ by more than 8 of 255 in a colour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.image
import numpy as np

#: Runs a program and keeps every figure that it leaves open.
DRAW = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.show = lambda *_, **__: None
program, folder, patch = sys.argv[1:]
if patch == "True":
    import svmarrow
    svmarrow.patch_sklearn()
runpy.run_path(program, run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).savefig(f"{folder}/{number}.png")
"""


def pictures(program: str, *, patch: bool) -> list[np.ndarray]:
    """What a program draws, as arrays of bytes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", DRAW, program, folder, str(patch)],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
        files = sorted(Path(folder).glob("*.png"))
        return [np.round(255 * matplotlib.image.imread(file)).astype(int) for file in files]


def main() -> None:
    """Tell for each program and picture how many pixels differ."""
    for program in sys.argv[1:]:
        pairs = zip(pictures(program, patch=False), pictures(program, patch=True), strict=True)
        for number, (theirs, ours) in enumerate(pairs, 1):
            differ = (np.abs(theirs - ours).max(axis=2) > 8).mean()
            size = f"{theirs.shape[1]} x {theirs.shape[0]}"
            print(f"{Path(program).name} picture {number} of {size}: {differ:.4%}")


if __name__ == "__main__":
    main()
