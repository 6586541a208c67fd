"""No circle of files: whoever reads a file can read what it stands on first, and never comes back.

Python: every import of the package counts, those for types and inside functions too. Rust: every ``use``
outside of tests; names that a ``mod.rs`` re-exports lead to the file that defines them, so a ``mod.rs`` that
only declares and re-exports stands on nothing. That the floors are kept is import-linter's business, see
``pyproject.toml``.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def circle(graph):
    """Files of one circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def python_graph(folder):
    """File to the files that it imports, for the package in this folder."""
    package = folder.name
    modules = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        modules[".".join((package, *parts))] = path
    graph = {}
    for path in modules.values():
        asked = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                asked.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    asked.add(inner if inner in modules else node.module)
        # The root gives the extension module only: what it re-exports is imported by its own name.
        found = {modules[name] for name in asked if name in modules and name != package}
        graph[path] = found - {path}
    return graph


#: ``use a::b::{c, d::e};`` with what stands before it.
USE = re.compile(r"^\s*(?P<public>pub(?:\([^)]*\))? )?use (?P<tree>[^;]+);", re.MULTILINE)


def leaves(tree, before=()):
    """All paths of a use tree, as tuples of names."""
    head, brace, rest = tree.strip().partition("{")
    names = tuple(name for name in head.split("::") if name)
    if not brace:
        *most, last = names or ("",)
        return [(*before, *most, last.split(" as ")[0].strip())]
    found, depth, start = [], 0, 0
    inner = rest[: rest.rindex("}")]
    for i, character in enumerate(inner + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if inner[start:i].strip():
                found += leaves(inner[start:i], (*before, *names))
            start = i + 1
    return found


def rust_graph(folder):
    """File to the files that it uses, for the crate in this folder."""
    modules = {(): folder / "lib.rs"}
    for path in folder.rglob("*.rs"):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts != ("lib",):
            modules[parts[:-1] if parts[-1] == "mod" else parts] = path
    texts = {
        name: re.sub(r"//.*", "", path.read_text(encoding="utf-8")).split("#[cfg(test)]\nmod ", maxsplit=1)[0]
        for name, path in modules.items()
    }

    def absolute(path, module):
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                module, path = (module[:-1] if path[0] == "super" else module), path[1:]
            return (*module, *path)
        return (*module, *path) if (*module, path[0]) in modules else None

    exported = {}
    for name, text in texts.items():
        for match in USE.finditer(text):
            if match["public"]:
                for path in leaves(match["tree"]):
                    full = absolute(path, name)
                    if full:
                        exported[(*name, full[-1])] = full

    def home(path):
        """The file that defines what a path names."""
        for _ in range(9):
            if path not in exported:
                break
            path = exported[path]
        while path not in modules:
            path = path[:-1]
        return modules[path]

    graph = {}
    for name, path in modules.items():
        found = set()
        for match in USE.finditer(texts[name]):
            if not match["public"]:
                for asked in leaves(match["tree"]):
                    full = absolute(asked, name)
                    if full:
                        found.add(home(full))
        graph[path] = found - {path}
    return graph


def test_no_circle_in_the_package():
    assert circle(python_graph(ROOT / "python" / "svmarrow")) == []


def test_no_circle_in_the_core():
    assert circle(rust_graph(ROOT / "src")) == []


def test_no_circle_in_the_binding():
    assert circle(rust_graph(ROOT / "python" / "src")) == []


def test_a_circle_of_python_is_found(tmp_path):
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("from house.roof import Roof\n")
    (package / "roof.py").write_text("from house.wall import Wall\n")
    (package / "wall.py").write_text("from house import _core\n")
    assert circle(python_graph(package)) == []
    (package / "wall.py").write_text("def build():\n    from house.roof import Roof\n")
    assert {path.name for path in circle(python_graph(package))} == {"roof.py", "wall.py"}


def test_a_circle_of_rust_is_found(tmp_path):
    (tmp_path / "svm").mkdir()
    (tmp_path / "lib.rs").write_text("pub mod svm;\npub mod data;\n")
    (tmp_path / "data.rs").write_text("pub struct Rows;\n")
    (tmp_path / "svm" / "mod.rs").write_text("mod fit;\nmod step;\npub use fit::{fit, Fit};\n")
    (tmp_path / "svm" / "fit.rs").write_text(
        "use super::step::{step, Step as Move};\nuse crate::data::Rows;\n"
    )
    (tmp_path / "svm" / "step.rs").write_text("use crate::data::Rows;\n")
    assert circle(rust_graph(tmp_path)) == []
    step = "use crate::{data::Rows,\n    svm::{self as other, Fit}};\n"
    (tmp_path / "svm" / "step.rs").write_text(step)
    assert {path.name for path in circle(rust_graph(tmp_path))} >= {"fit.rs", "step.rs"}
    # A look from inside a test closes no circle.
    (tmp_path / "svm" / "step.rs").write_text("#[cfg(test)]\nmod tests {\n    " + step + "}\n")
    assert circle(rust_graph(tmp_path)) == []


def test_no_circle_of_rooms_in_the_core():
    """Folders and files at the top of the core stand on each other one way, too."""
    source = ROOT / "src"
    rooms = {}
    for path, used in rust_graph(source).items():
        room, *others = [file.relative_to(source).parts[0].removesuffix(".rs") for file in (path, *used)]
        rooms.setdefault(room, set()).update(set(others) - {room})
    assert circle(rooms) == []
