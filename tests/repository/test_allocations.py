"""Rust code allocates arrays by functions that may fail with an error; `vec!` and `collect` abort."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The program of the crate ends when memory is refused; no caller goes on.
PROGRAM = ROOT / "src" / "bin"
RUST = sorted(
    path
    for folder in ("src", "python/src")
    for path in (ROOT / folder).rglob("*.rs")
    if PROGRAM not in path.parents
)
#: What allocates without asking, and what to write instead (src/memory.rs).
FORBIDDEN = {
    r"(?<!try_)vec!\[[^\[\];]*(\[[^\]]*\])?[^\[\];]*;": "try_vec![value; len]?",
    r"\.collect(::<.*>)?\(\)": ".try_collect_vec()? or .try_collect_results()?",
    r"\bVec::with_capacity\(": "try_with_capacity(what, len)?",
    r"\bArray\d?::(<\w+>::)?(zeros|ones|from_elem|from_shape_fn)\(": "try_zero_matrix or try_matrix",
    r"\.(to_vec|into_owned|unzip|concat|mapv)\(": ".try_to_vec()?, try_to_matrix or a loop",
    r"[)\]]\??\.to_owned\(\)": "try_to_matrix",
    r"\.sort(_by|_by_key|_by_cached_key)?\(": "a sort that is not stable, which takes no memory",
}
#: A reason why an allocation is small, on its line or the line before it, or for a whole file in its header.
SMALL = re.compile(r"(//|/\*) small: \w+|^//! All (other )?allocations are small: \w+", re.MULTILINE)


def findings(text: str) -> list[tuple[int, str]]:
    """Line numbers of allocations without a reason, with what to write instead; tests are left out."""
    code = re.split(r"^#\[cfg\(test\)\]", text, maxsplit=1, flags=re.MULTILINE)[0]
    header = re.split(r"^(?!//!)", code, maxsplit=1, flags=re.MULTILINE)[0]
    if SMALL.search(header):
        return []
    lines = code.splitlines()
    found = []
    for number, line in enumerate(lines):
        near = "\n".join(lines[max(0, number - 1) : number + 1])
        written = re.sub(r"//.*|/\*.*?\*/", "", line)
        for pattern, instead in FORBIDDEN.items():
            if re.search(pattern, written) and not SMALL.search(near):
                found.append((number + 1, instead))
    return found


def test_arrays_are_asked_for():
    told = [
        f"{path.relative_to(ROOT)}:{line}: write {instead}, or say why it is small"
        for path in RUST
        if path != ROOT / "src" / "memory.rs"
        for line, instead in findings(path.read_text(encoding="utf-8"))
    ]
    assert not told, "\n".join(told)


def test_the_check_finds_allocations():
    text = "let a = vec![0.0; n];\nlet b: Vec<u8> = a.iter().collect();\nlet c = b.to_vec();\n"
    assert [line for line, _ in findings(text)] == [1, 2, 3]
    assert not findings("let a = try_vec![0.0; n]?;\nlet b = vec![1, 2];\n// vec![0; n]\n")
    assert not findings("let a = vec![0; q]; // small: one number per output\n")
    assert [line for line, _ in findings("a.sort_by_key(|v| v.0);\na.sort();\na.sort_unstable();\n")] == [
        1,
        2,
    ]
    assert not findings("//! A file.\n//!\n//! All allocations are small: blocks.\n\nlet a = vec![0; q];\n")
    assert not findings("fn f() {}\n#[cfg(test)]\nmod tests { let a = vec![0; 3]; }\n")
