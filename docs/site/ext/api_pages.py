"""Generates the reference: an index, and a page for each public name of `public_names.py`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from public_names import SECTIONS, thing

#: Examples of the gallery that use a name are listed below it.
GALLERY = "\n.. minigallery:: {name}\n   :add-heading: Examples\n   :heading-level: ^\n"


def shown(name: str) -> str:
    """Returns a name without the package."""
    return name.removeprefix("svmarrow.")


def page(name: str) -> str:
    """Returns the page of a name in reStructuredText."""
    module, _, attribute = name.rpartition(".")
    lines = [name, "=" * len(name), "", f".. currentmodule:: {module}", ""]
    if inspect.isclass(thing(name)):
        lines += [f".. autoclass:: {attribute}", "   :members:", "   :inherited-members:"]
    else:
        lines += [f".. autofunction:: {attribute}"]
    return "\n".join(lines) + "\n" + GALLERY.format(name=name)


def index() -> str:
    """Returns the list of all names by section."""
    title = "API reference"
    lines = [title, "=" * len(title), "", "All public classes and functions, grouped by task.", ""]
    for section in SECTIONS:
        lines += [section.title, "-" * len(section.title), ""]
        lines += [f"{section.about} See :doc:`../../guide/{section.guide}`.", ""]
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~{name}" for name in section.names] + [""]
    for section in SECTIONS:
        lines += [".. toctree::", "   :hidden:", f"   :caption: {section.title}", ""]
        lines += [f"   {shown(name)} <{name}>" for name in section.names] + [""]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Writes index and pages that have changed, so that Sphinx does not read the others again."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"index": index()} | {name: page(name) for section in SECTIONS for name in section.names}
    for old in folder.glob("*.rst"):
        if old.stem not in texts:
            old.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def skip(_app: Any, _what: str, name: str, member: Any, _skipped: bool, _options: Any) -> bool | None:
    """Leave out what scikit-learn documents: routing, and methods that are inherited from there."""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    function = inspect.unwrap(member) if callable(member) else getattr(member, "fget", None)
    module = getattr(function, "__module__", None) or ""
    return True if module.partition(".")[0] in {"sklearn", "builtins", "collections", "_operator"} else None


def setup(app: Any) -> dict[str, Any]:
    """Write the pages before Sphinx looks for sources."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "made" / "api"))
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
