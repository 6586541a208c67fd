"""Rules of the house that a reader can forget and a test does not."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

from svmarrow import _core

ROOT = Path(__file__).resolve().parents[2]
RUST = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "python" / "src").rglob("*.rs")]
PYTHON = [*(ROOT / "python" / "svmarrow").rglob("*.py")]


def code_of(path):
    """Rust source without comments."""
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8"))


def test_sources_are_here():
    assert len(RUST) > 20
    assert len(PYTHON) > 5


def test_one_gate_out_of_the_interpreter():
    gates = {path.name: len(re.findall(r"\.detach\(", code_of(path))) for path in RUST}
    assert {name: count for name, count in gates.items() if count} == {"run.rs": 1}


def test_unsafe_only_in_simd():
    users = {path for path in RUST if re.search(r"\bunsafe\b\s*(\{|fn|impl|extern)", code_of(path))}
    assert users
    assert all(path.is_relative_to(ROOT / "src" / "simd") for path in users)


def test_every_unsafe_block_has_a_safety_comment():
    for path in (ROOT / "src" / "simd").rglob("*.rs"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bunsafe \{", line.split("//")[0]):
                before = "\n".join(lines[max(0, number - 8) : number])
                assert "SAFETY" in before, f"{path}:{number + 1}"


def test_classes_of_the_extension_are_frozen():
    for path in (ROOT / "python" / "src").rglob("*.rs"):
        for attributes in re.findall(r"#\[pyclass(\(.*?\))?\]", code_of(path)):
            assert "frozen" in attributes, path


def lines_of_code(text: str) -> int:
    """Lines of Python that are neither empty nor comments nor docstrings."""
    code = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            text_of = node.body[0]
            code -= set(range(text_of.lineno, (text_of.end_lineno or text_of.lineno) + 1))
    return len(code)


def test_files_stay_short():
    for path in RUST:
        text = path.read_text(encoding="utf-8")
        lines = text.split("#[cfg(test)]", maxsplit=1)[0].count("\n")
        assert lines <= 500, f"{path.relative_to(ROOT)} has {lines} lines"
    for path in PYTHON:
        lines = lines_of_code(path.read_text(encoding="utf-8"))
        assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines of code"


def test_the_package_has_few_files():
    assert len(list((ROOT / "python" / "svmarrow").rglob("*.py"))) <= 129


def test_a_reader_of_a_method_opens_few_files():
    spec = importlib.util.spec_from_file_location("files_opened", ROOT / ".ci" / "files_opened.py")
    files_opened = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(files_opened)
    counts = {title: len(files_opened.walk(*start)) for title, start in files_opened.WALKS.items()}
    limits = {"SVC.fit": 8, "SVC.predict": 4, "compress": 19, "TabularClassifier.fit": 19}
    assert counts.keys() == limits.keys()
    assert {title: count for title, count in counts.items() if count > limits[title]} == {}


def test_docstrings_and_comments_are_no_code():
    assert (
        lines_of_code('"""A file."""\n\n# why\ndef f():\n    """Do.\n\n    Well.\n    """\n    return 1\n')
        == 2
    )


def test_no_logic_in_package_inits():
    for path in (ROOT / "python" / "svmarrow").rglob("__init__.py"):
        if path.parent.name == "cli":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            assert isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)), path


def test_stub_covers_the_extension():
    stub = ast.parse((ROOT / "python" / "svmarrow" / "_core.pyi").read_text(encoding="utf-8"))
    names = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names |= {ast.unparse(node.target) for node in stub.body if isinstance(node, ast.AnnAssign)}
    present = {name for name in dir(_core) if not name.startswith("_")}
    assert {name for name in names if not name.startswith("_")} == present


def test_core_is_called_by_position():
    """Keywords would freeze the names of parameters, but for those that are taken by name only."""
    stub = ast.parse((ROOT / "python" / "svmarrow" / "_core.pyi").read_text(encoding="utf-8"))
    by_name = {
        node.name: {argument.arg for argument in node.args.kwonlyargs}
        for node in stub.body
        if isinstance(node, ast.FunctionDef)
    }
    nodes = [
        (path, node)
        for path in PYTHON
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_core.")
    ]
    assert nodes
    for path, node in nodes:
        named = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
        assert named <= by_name.get(node.func.attr, set()), f"{path.name}:{node.lineno}"
