"""Writes the shares of lines that tests reach, from the reports of llvm-cov and coverage.py, as JSON.

Lines of the crates' unit tests count with the files that hold them.
Usage: summarise_coverage.py RUST.json PYTHON.json OUTPUT.json, in the repository's root.
"""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

rust, python = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])


def part(path: str) -> str:
    """Returns the crate or folder of a source file."""
    return "binding" if "/python/src/" in path else "core" if "/src/" in path else ""


lines: dict[str, dict[str, int]] = {}
for file in rust["data"][0]["files"]:
    if name := part(file["filename"]):
        at = lines.setdefault(name, {"lines": 0, "reached": 0})
        at["lines"] += file["summary"]["lines"]["count"]
        at["reached"] += file["summary"]["lines"]["covered"]
totals = python["totals"]
lines["package"] = {"lines": totals["num_statements"], "reached": totals["covered_lines"]}

commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
record = {
    "commit": commit.stdout.strip(),
    "command": ".ci/coverage docs/benchmarks/coverage.json",
    "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "machine": {"processor": platform.machine(), "processors": os.cpu_count()},
    **lines,
}
Path(sys.argv[3]).write_text(json.dumps(record, indent=1) + "\n")
