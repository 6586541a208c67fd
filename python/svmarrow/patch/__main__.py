"""`python -m svmarrow.patch script.py`: a program with svmarrow's classes in the place of scikit-learn's."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from svmarrow.patch.replacement import patch_sklearn

USAGE = "usage: python -m svmarrow.patch (SCRIPT | -m MODULE) [ARGUMENT ...]"


def main() -> None:
    """Run a script or a module as ``python`` would, patched."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv = arguments[1:]
        patch_sklearn()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments and not arguments[0].startswith("-"):
        sys.argv = arguments
        # As for `python script.py`: its folder first, in the place of the working directory.
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        patch_sklearn()
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        sys.exit(USAGE)


if __name__ == "__main__":
    main()
