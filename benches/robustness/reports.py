"""What the scripts of this folder share: the list of operations, the choice among them, the reports."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

__all__ = ["arguments", "chosen", "keep"]


def arguments(description: str, **numbers: float) -> argparse.Namespace:
    """The arguments of a script: words that names contain, a part of all, where the report goes, numbers."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("words", nargs="*", help="only operations whose names contain one of these words")
    parser.add_argument("--part", default="1/1", help="the k-th of m parts of the list, as k/m")
    parser.add_argument("--jobs", type=int, default=1, help="threads of each operation")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def chosen(given: argparse.Namespace) -> Iterator[Any]:
    """The operations that were asked for."""
    from helpers.operations import OPERATIONS

    part, parts = map(int, given.part.split("/"))
    names = [name for name in OPERATIONS if not given.words or any(word in name for word in given.words)]
    return (OPERATIONS[name] for name in names[part - 1 :: parts])


def keep(path: Path | None, results: Any) -> None:
    """The results with the command, the commit, the processor and the date, if a file is named."""
    if path is None:
        return
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    about = {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit.stdout.strip(),
        "processor": _processor(),
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "python": platform.python_version(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**about, "results": results}, indent=1) + "\n")


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()
