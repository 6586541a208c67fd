"""Checks with pyright's engine that at least 99 % of the public names have complete types.

Types from scikit-learn and SciPy, which have none, do not count.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MIN_COMPLETENESS = 0.99

command = ["basedpyright", "--pythonpath", sys.executable, "--verifytypes", "svmarrow", "--ignoreexternal"]
spec = importlib.util.find_spec("svmarrow")
assert spec is not None
assert spec.origin is not None
with tempfile.TemporaryDirectory() as folder:
    # The engine leaves out folders whose names begin with a dot, such as .venv.
    shutil.copytree(Path(spec.origin).parent, Path(folder, "svmarrow"))
    report = subprocess.run(
        [sys.executable, "-m", *command, "--outputjson"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": folder},
    ).stdout
types = json.loads(report)["typeCompleteness"]
for symbol in types["symbols"]:
    if symbol["isExported"] and not (symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]):
        print(
            symbol["name"],
            *(line["message"].replace("\n", " ") for line in symbol["diagnostics"][:2]),
            sep=": ",
        )
completeness = types["completenessScore"]
print(f"types: {completeness:.2%} of the public names are complete")
sys.exit(completeness < MIN_COMPLETENESS)
