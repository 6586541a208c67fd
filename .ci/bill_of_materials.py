"""Checks the bill of materials inside a wheel: it names every crate that is linked, with version and licence.

python .ci/bill_of_materials.py svmarrow-0.1.0-cp311-abi3-linux_x86_64.whl
"""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

#: Reads Cargo.lock; the crates that the extension links, each as "name v1.2.3".
TREE = "cargo tree --locked --package svmarrow-python --edges normal --prefix none --format {p}"

with zipfile.ZipFile(sys.argv[1]) as wheel:
    (path,) = (name for name in wheel.namelist() if name.endswith(".cyclonedx.json"))
    bill = json.loads(wheel.read(path))
root = bill["metadata"]["component"]
named = {(part["name"], part["version"]): part for part in [root, *bill["components"]]}
lines = subprocess.run(
    TREE.split(), capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
).stdout
linked = set(re.findall(r"^(\S+) v(\S+)", lines, flags=re.MULTILINE))
problems = [f"{name} {version} is linked but not named" for name, version in sorted(linked - named.keys())]
problems += [
    f"{name} {version} has no licence"
    for (name, version), part in sorted(named.items())
    if not part.get("licenses")
]
print(*problems, sep="\n", end="\n" if problems else "")
print(f"bill of materials: {len(named)} components, {len(linked)} linked crates, {len(problems)} problems")
sys.exit(bool(problems))
