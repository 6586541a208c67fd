"""Links names in inline code to the reference: `SVC`, `svm.QuantileSVR`, `SVC.fit` and `compress(...)`.

A name is linked where a section first has it. A bare name of lower case is linked only if the package itself
has it: `predict` means the method of an estimator, not the function of a submodule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

from public_names import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Collection

PACKAGE = "svmarrow."
NAME = re.compile(r"(?:svmarrow\.)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(.*\))?", re.DOTALL)
#: What has a place of its own, or is a link already.
OUTSIDE = (nodes.reference, nodes.title)


def full_name(text: str, names: Collection[str]) -> str | None:
    """Returns the name in the reference that inline code stands for, if it stands for one."""
    match = NAME.fullmatch(text)
    if match is None:
        return None
    name = match[1]
    if PACKAGE + name in names:
        return PACKAGE + name
    first, _, rest = name.partition(".")
    if not first[0].isupper():
        return None
    homes = [full for section in SECTIONS for full in section.names if full.endswith(f".{first}")]
    if len(homes) != 1:
        return None
    found = f"{homes[0]}.{rest}" if rest else homes[0]
    return found if found in names else None


def first_above(node: nodes.Node, kinds: Any) -> nodes.Node | None:
    """Returns the innermost node of these kinds that a node is in."""
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node


def link_names(app: Any, tree: nodes.document, page: str) -> None:
    """Links the inline code of a page that is a name of another page."""
    objects = app.env.domains["py"].objects
    linked = set()
    for code in list(tree.findall(nodes.literal)):
        name = full_name(code.astext(), objects)
        if name is None or objects[name].docname == page or first_above(code, OUTSIDE) is not None:
            continue
        place = (id(first_above(code, nodes.section)), name)
        if place in linked:
            continue
        linked.add(place)
        target = app.builder.get_relative_uri(page, objects[name].docname) + "#" + objects[name].node_id
        code.replace_self(nodes.reference("", "", code.deepcopy(), refuri=target, internal=True))


def setup(app: Any) -> dict[str, Any]:
    """Connects to the pages when all names are known."""
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
