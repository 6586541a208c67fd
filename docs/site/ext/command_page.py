"""Generates the page of the command `svmarrow`: its subcommands, arguments and options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from svmarrow.cli.app import app as program

START = """# Command line

The command `svmarrow` trains, compresses, converts and applies models without Python code. Install it by
`pip install 'svmarrow[cli]'`; `svmarrow COMMAND --help` shows the text of this page.

## CSV files and other formats

Data files are svmlight, CSV, npz or parquet; models are safetensors files or LIBSVM's text files.

"""

#: Commands in the order of their use; others follow by name.
ORDER = ("train", "predict", "compress", "convert", "info", "demo", "svm-train", "svm-predict", "svm-scale")
OPTION = re.compile(r"(?<![\w`-])(--[A-Za-z][\w-]*)")


def plain(text: str | None) -> str:
    """Returns a help text without markup for terminals, escaped for a table, with options as code."""
    text = re.sub(r"\[/?(bold|dim|green|cyan)\]", "", text or "").replace("\b", "")
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return OPTION.sub(r"`\1`", text)


def written(parameter: Any) -> str:
    """Returns the name of an argument, or the names of an option."""
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    return ", ".join(f"`{name}`" for name in parameter.opts + parameter.secondary_opts)


def text() -> str:
    """Returns the page in Markdown."""
    parts = [START]
    commands = typer.main.get_command(program).commands
    names = [*ORDER, *sorted(set(commands) - set(ORDER))]
    for name, command in ((name, commands[name]) for name in names):
        head, _, rest = (command.help or "").partition("\n\n")
        examples = re.sub(r"\[/?(bold|dim|green|cyan)\]", "", rest).replace("\b", "").strip("\n")
        parts += [f"## svmarrow {name}\n\n{plain(head)}\n\n"]
        if examples:
            parts += [f"```text\n{examples}\n```\n\n"]
        shown = [p for p in command.params if p.name != "help" and not p.hidden]
        if shown:
            parts += ["| argument or option | meaning |\n|---|---|\n"]
            parts += [f"| {written(p)} | {plain(p.help)} |\n" for p in shown] + ["\n"]
    return "".join(parts)


def write(folder: Path) -> None:
    """Writes the page if it has changed."""
    path = folder / "command.md"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text():
        path.write_text(text(), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Write the page before Sphinx looks for sources."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "made"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
