"""Rust code allocates products of sizes and what a file asks for by functions that may fail with an error.

Vectors with one number for each sample, feature or vector are reserved before the work (`memory::reserve`):
`vec!` and `collect` are safe for them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
#: The program of the crate ends when memory is refused; no caller goes on.
PROGRAM = ROOT / "src" / "bin"
RUST = sorted(
    path
    for folder in ("src", "python/src")
    for path in (ROOT / folder).rglob("*.rs")
    if PROGRAM not in path.parents
)
#: Code that allocates by the lengths that a file states.
READERS = {ROOT / "python" / "src" / "io.rs", *(ROOT / "src" / "io").rglob("*.rs")}

#: The start of plain allocations of a length, and whether the length is the first or the last argument.
ALLOCATIONS = {
    r"(?<!try_)vec!\[": -1,
    r"\bVec::with_capacity\(": 0,
    r"\.reserve(?:_exact)?\(": 0,
    r"\.resize\(": 0,
    r"\bArray\d?::(?:<\w+>::)?(?:zeros|ones|from_elem|from_shape_fn)\(": 0,
}
#: Plain copies of matrices, and lists of vectors.
COPIES = {
    r"(\]\)|\.(t|view|row|column)\([^()]*\))\.to_owned\(\)": "try_to_matrix",
    r"\.mapv\(": "try_matrix",
    r"vec!\[vec!\[[^\]]*;|\.map\(\|[^|]*\| vec!\[[^\]]*;": "try_zero_matrix, or try_vec! for each",
}
#: A reason why a product is small, on the line of the allocation or the one before it.
SMALL = re.compile(r"// small: \w+")
#: A factor that does not grow with the data: a number, a constant, the width of a panel.
CONSTANT = re.compile(
    r"[\d_.]+|(?:\w+::)*[A-Z][A-Z\d_]+|(?:self\.)?width|panel_width::<\w+>\(\)|lanes::<\w+>\(\)"
)


def arguments(text: str) -> list[str]:
    """The arguments of a call or macro whose opening bracket has just been read."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        if depth == 0 and character in ",;":
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def factors(length: str) -> list[str]:
    """The factors of a length, or the sizes of a shape, that grow with the data."""
    sizes = arguments(length[1:]) if length.startswith("(") and length.endswith(")") else [length]
    if length.endswith(")") and ".saturating_mul(" in length:
        first, _, second = length.partition(".saturating_mul(")
        sizes = [first, second[:-1]]
    parts = [part.strip() for size in sizes for part in re.split(r"\s\*\s", size)]
    return [part for part in parts if not CONSTANT.fullmatch(part)]


def lengths(code: str) -> Iterator[tuple[int, str]]:
    """Places of plain allocations of a length, with the length."""
    for pattern, which in ALLOCATIONS.items():
        for start in re.finditer(pattern, code):
            given = arguments(code[start.end() :])
            opened = code[start.end() :]
            if "vec!" in pattern and (len(given) != 2 or opened[len(given[0]) :].lstrip()[:1] != ";"):
                continue  # a list of items
            if given:
                yield start.start(), given[which]


def findings(text: str, *, is_reader: bool = False) -> list[tuple[int, str]]:
    """Line numbers of plain allocations that must be refusable, with what to write instead; without tests."""
    code = re.split(r"^#\[cfg\(test\)\]", text, maxsplit=1, flags=re.MULTILINE)[0]
    code = re.sub(r"//.*", "", code)
    found = []
    for place, length in lengths(code):
        growing = factors(length)
        if len(growing) > 1 or (is_reader and growing):
            found.append((place, "an allocation of src/memory.rs that may be refused"))
    for pattern, instead in COPIES.items():
        found += [(copy.start(), instead) for copy in re.finditer(pattern, code)]
    lines = text.splitlines()
    numbered = sorted((code.count("\n", 0, place), instead) for place, instead in found)
    return [
        (number + 1, instead)
        for number, instead in numbered
        if not any(SMALL.search(line) for line in lines[max(0, number - 1) : number + 1])
    ]


def test_products_of_sizes_may_be_refused():
    found = [
        f"{path.relative_to(ROOT)}:{line}: write {instead}"
        for path in RUST
        if path != ROOT / "src" / "memory.rs"
        for line, instead in findings(path.read_text(encoding="utf-8"), is_reader=path in READERS)
    ]
    assert not found, "\n".join(found)


def test_the_check_finds_products():
    def lines(text: str, *, is_reader: bool = False) -> list[int]:
        return [line for line, _ in findings(text, is_reader=is_reader)]

    assert lines("let a = vec![0.0; n * d];\nlet b = Vec::with_capacity(n.saturating_mul(d));\n") == [1, 2]
    assert lines("a.resize(\n    rows.len() * q,\n    0.0,\n);\nlet b = Array2::zeros((n, q));\n") == [1, 5]
    assert lines(
        "let a = (0..q).map(|_| vec![0.0; n]).collect();\nlet b = k.slice(s![..]).to_owned();\n"
    ) == [1, 2]
    assert lines("let a = values.mapv(f64::sqrt);\n") == [1]
    assert not findings("let a = vec![0.0; n];\nlet b: Vec<u8> = a.iter().collect();\nlet c = b.to_vec();\n")
    assert not findings("let a = vec![0.0; 2 * n];\nlet b = vec![T::ZERO; BLOCK_ROWS * width];\n")
    assert not findings("let a = try_vec![0.0; n * d]?;\nlet b = vec![1, 2 * n * d];\n// vec![0; n * d]\n")
    assert not findings("let a = Array2::zeros((0, q));\n")
    assert not findings("// small: a block\nlet a = vec![0.0; rows * q];\n")
    assert not findings("fn f() {}\n#[cfg(test)]\nmod tests { let a = vec![0; n * d]; }\n")
    assert lines("let a = Vec::with_capacity(length);\n", is_reader=True) == [1]
