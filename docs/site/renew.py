"""Regenerates figures and pictures on all pages from the committed JSON: `python docs/site/renew.py`.

Pictures contain the digest of the file they were drawn from, which a test compares with the file.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from measured import ROOT, pages, renewed

if TYPE_CHECKING:
    from pathlib import Path

#: A picture, the file it shows, and the program that draws it from that.
PICTURES = {
    "docs/benchmarks/dropin.png": (
        "docs/benchmarks/dropin.json",
        ("docs/site/pictures.py", "dropin", "{json}", "{png}"),
    ),
    "docs/benchmarks/text.png": (
        "docs/benchmarks/text.json",
        ("docs/site/pictures.py", "text", "{json}", "{png}"),
    ),
    "docs/benchmarks/distillation.png": (
        "docs/benchmarks/distillation.json",
        ("docs/site/pictures.py", "distillation", "{json}", "{png}"),
    ),
    "docs/benchmarks/trees.png": (
        "docs/benchmarks/trees.json",
        ("docs/site/pictures.py", "trees", "{json}", "{png}"),
    ),
    "docs/benchmarks/libsvm.png": (
        "docs/benchmarks/libsvm_models.json",
        ("docs/site/pictures.py", "libsvm", "{json}", "{png}"),
    ),
    "docs/peers.png": ("docs/benchmarks/svm.json", ("benches/peers/plot.py", "{json}", "{png}")),
    "docs/benchmarks/ship.png": (
        "docs/benchmarks/ship.json",
        ("benches/peers/ship.py", "--redraw", "--json", "{json}", "--picture", "{png}"),
    ),
    "docs/benchmarks/choosing.png": (
        "docs/benchmarks/choosing.json",
        ("benches/choosing/plot.py", "{json}", "{png}"),
    ),
    "docs/benchmarks/tabular.png": (
        "docs/benchmarks/tabular.json",
        ("benches/peers/tabular_plot.py", "{json}", "{png}"),
    ),
}


def digest(path: Path) -> str:
    """Returns the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def drawn_from(picture: Path) -> str:
    """Returns the digest in a picture, empty if there is none."""
    with Image.open(picture) as image:
        return str(image.info.get("Source", ""))


def draw(picture: str) -> None:
    """Draws a picture and stores the digest in it."""
    source, program = PICTURES[picture]
    names = {"json": str(ROOT / source), "png": str(ROOT / picture)}
    subprocess.run([sys.executable, *(word.format(**names) for word in program)], cwd=ROOT, check=True)
    note = PngInfo()
    note.add_text("Source", digest(ROOT / source))
    with Image.open(ROOT / picture) as image:
        image.load()
        image.save(ROOT / picture, pnginfo=note, optimize=True)


def main() -> None:
    """Regenerates what has changed."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if renewed(text) != text:
            path.write_text(renewed(text), encoding="utf-8")
            print("renewed", path.relative_to(ROOT))
    for picture, (source, _) in PICTURES.items():
        if not (ROOT / picture).exists() or drawn_from(ROOT / picture) != digest(ROOT / source):
            draw(picture)
            print("drawn", picture)


if __name__ == "__main__":
    main()
