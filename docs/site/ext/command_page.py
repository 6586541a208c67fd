"""The page of the command `svmarrow`: its subcommands, arguments and options, read off the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from svmarrow.cli.app import app as program

START = """# The command

*What can I do from a shell?* Train, shrink, convert and apply models, without a line of Python. It needs
`pip install 'svmarrow[cli]'`; the same text is shown by `svmarrow COMMAND --help`.

"""


def plain(text: str | None) -> str:
    """Help without the marks for the terminal's colours, safe inside a table."""
    text = re.sub(r"\[/?(bold|dim|green|cyan)\]", "", text or "").replace("\b", "")
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def written(parameter: Any) -> str:
    """How a parameter is written in a command."""
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    return ", ".join(f"`{name}`" for name in parameter.opts + parameter.secondary_opts)


def text() -> str:
    """The page, in Markdown."""
    parts = [START]
    for name, command in sorted(typer.main.get_command(program).commands.items()):
        head, _, rest = (command.help or "").partition("\n\n")
        examples = re.sub(r"\[/?(bold|dim|green|cyan)\]", "", rest).replace("\b", "").strip("\n")
        parts += [f"## svmarrow {name}\n\n{plain(head)}\n\n"]
        if examples:
            parts += [f"```text\n{examples}\n```\n\n"]
        shown = [p for p in command.params if p.name != "help" and not p.hidden]
        if shown:
            parts += ["| | |\n|---|---|\n"]
            parts += [f"| {written(p)} | {plain(p.help)} |\n" for p in shown] + ["\n"]
    return "".join(parts)


def write(folder: Path) -> None:
    """Write the page, if it differs from what is there."""
    path = folder / "command.md"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text():
        path.write_text(text(), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Write the page before Sphinx looks for sources."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "made"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
