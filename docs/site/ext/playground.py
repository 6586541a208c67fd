"""The directive `{playground}`: the parts of the playground, or a note where the module was not built.

`web/build` makes the module in `web/dist`, which is copied to `_static` if it is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[3]
DIST = ROOT / "web" / "dist"
MODULE = DIST / "svmarrow.wasm"
BODY = ROOT / "docs" / "site" / "playground" / "playground.html"
MISSING = (
    "This copy of the documentation was built without the module for web browsers, because no compiler "
    "for WebAssembly was installed. Build it with web/build, and then the documentation again."
)


class Playground(SphinxDirective):
    """Adds the playground, or the reason why it is missing."""

    def run(self) -> list[nodes.Node]:
        """Returns the nodes."""
        self.env.note_dependency(str(BODY))
        self.env.note_dependency(str(MODULE))
        if not MODULE.is_file():
            return [nodes.warning("", nodes.paragraph(text=MISSING), ids=["no-playground"])]
        return [nodes.raw("", BODY.read_text(encoding="utf-8"), format="html")]


def add_module(_app: Any, config: Any) -> None:
    """Adds the module to the static files."""
    if MODULE.is_file():
        config.html_static_path.append(str(DIST))


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("playground", Playground)
    app.connect("config-inited", add_module)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
