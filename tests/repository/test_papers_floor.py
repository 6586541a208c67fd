"""The product does not import the experiments of the papers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "svmarrow"


def imported(path):
    """Names of the modules and members that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def test_no_file_of_the_product_imports_the_papers():
    papers = PACKAGE / "papers"
    assert any(
        name.startswith("svmarrow.papers.") for path in papers.rglob("*.py") for name in imported(path)
    )
    users = [
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(papers)
        and any(f"{name}.".startswith("svmarrow.papers.") for name in imported(path))
    ]
    assert users == []


def test_importing_the_product_does_not_load_the_papers():
    program = (
        "import svmarrow, svmarrow.multiclass, svmarrow.reduced_set, svmarrow.online, svmarrow.cli, sys\n"
        "sys.exit(any(name.startswith('svmarrow.papers') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
