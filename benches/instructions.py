"""Instructions of the hot loops, counted in the library's assembly: no processor of the target is needed.

The library is compiled to assembly. A hot loop is the innermost loop of its function that computes the most
results. The table has its instructions for each result (a product of two numbers, a value of the exponential)
and its accesses to the stack, which are mostly spilled registers.

    python benches/instructions.py --target aarch64-unknown-linux-gnu --json docs/benchmarks/instructions.json
    python benches/instructions.py --assembly before.s after.s
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class HotLoop:
    """A loop: the name of its function, and the operations that it has and lacks."""

    name: str
    symbol: str  # a pattern of the mangled name (v0), which holds the types: f is single, d double precision
    unit: str  # the operation that is counted once for each vector of results
    precision: str = "f"
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    unrolled: bool = False  # whether the rows of a tile are unrolled: the parts without a branch count too


# Operations by the names of their instructions on either architecture.
OPERATIONS = {
    "multiply-add": r"fmla|vfn?m(add|sub)\d*p[sd]",
    "divide": r"fdiv|vdivp[sd]",
    "power of two": r"shl|vscalefp[sd]|vpsll[dq]",
    "absolute": r"fabs|fabd|vandp[sd]|vandnp[sd]|vpandn?[dq]?",
    "subtract": r"fsub|fabd|vsubp[sd]",
    "add": r"fadd|vaddp[sd]",
    "root": r"fsqrt|vsqrtp[sd]",
    "byte product": r"udot|usdot|vpdpbusd",
}

TILE = r"9PanelTile{0}E|10panel_tile{0}E"


def _loops(p: str) -> list[HotLoop]:
    """Return the hot loops in single (f) or double precision (d)."""
    tile, product = TILE.format(p), "multiply-add"
    return [
        HotLoop("tile, inner product", tile, product, p, lacks=("subtract", "divide", "power of two")),
        HotLoop(
            "tile, squared distance", tile, product, p, has=("subtract",), lacks=("divide", "power of two")
        ),
        HotLoop("tile, chi-squared", tile, "divide", p, lacks=("power of two",)),
        HotLoop("exponential of a tile", tile, "power of two", p, lacks=("divide", "root"), unrolled=True),
        HotLoop("coefficients of many outputs", f"17ApplyCoefficients{p}E", product, p),
        HotLoop("products of long rows", f"5inner8Products{p}E|12row_products{p}E", product, p),
        HotLoop("factorisation", f"5panel4Tile{p}{p}E|16subtract_product{p}{p}E", product, p),
    ]


LOOPS = [
    *_loops("f"),
    *_loops("d"),
    HotLoop("gradients from rows in single precision", r"4blas7AddRowsfE|8add_rowsfE", "multiply-add", "d"),
    HotLoop("tile of bytes", r"5bytes9byte_tile|5bytes7dotprod|5bytes4vnni", "byte product", "b"),
]


@dataclass
class Loop:
    """The lines of an innermost loop."""

    lines: list[str] = field(default_factory=list)

    def count(self, operation: str) -> int:
        pattern = re.compile(rf"^({OPERATIONS[operation]})\b")
        return sum(bool(pattern.match(line)) and not is_scalar(line) for line in self.lines)

    def lanes(self, operation: str, precision: str) -> int:
        """Return the number of lanes of an operation's results."""
        pattern = re.compile(rf"^({OPERATIONS[operation]})\b")
        size = {"f": 4, "d": 8, "b": 4}[precision]
        return sum(
            vector_bytes(line) // size for line in self.lines if pattern.match(line) and not is_scalar(line)
        )

    def spills(self) -> int:
        return sum(bool(re.search(r"\[sp\b|\(%[re]sp\b", line)) for line in self.lines)


def is_scalar(line: str) -> bool:
    return bool(re.match(r"^f\w+\s+[sd]\d+,", line) or re.match(r"^v\w+s[sd]\s", line))


def vector_bytes(line: str) -> int:
    if "%zmm" in line:
        return 64
    if "%ymm" in line:
        return 32
    return 16


def functions(text: str) -> dict[str, list[str]]:
    """Return the lines of each function of an assembly file."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        name = re.match(r"^([A-Za-z_$][\w.$]*):", line)
        if name and not name[1].startswith(".L"):
            current = found.setdefault(name[1], [])
        elif current is not None:
            line = re.split(r"\s*(?://|#)", line.strip(), maxsplit=1)[0]
            if line and (not line.startswith(".") or line.endswith(":")):
                current.append(line.replace("\t", " "))
    return found


def straight_parts(lines: list[str]) -> list[Loop]:
    """Return the parts without a branch or label: an unrolled loop."""
    parts = [Loop()]
    for line in lines:
        if line.endswith(":"):
            parts.append(Loop())
        else:
            parts[-1].lines.append(line)
            if re.match(r"(b|b\.\w+|cbn?z|tbn?z|ret|br|j\w+) ", line + " "):
                parts.append(Loop())
    return parts


def innermost_loops(lines: list[str]) -> list[Loop]:
    """Return the loops that hold no other: from a label to a branch back to it."""
    labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(":")}
    spans: dict[int, int] = {}
    for at, line in enumerate(lines):
        target = re.search(r"(\.L\w+)$", line)
        if target and not line.endswith(":") and labels.get(target[1], at) < at:
            start = labels[target[1]]
            spans[start] = max(spans.get(start, 0), at)
    inner = [
        (start, end)
        for start, end in spans.items()
        if not any((s, e) != (start, end) and start <= s and e <= end for s, e in spans.items())
    ]
    return [Loop([line for line in lines[s : e + 1] if not line.endswith(":")]) for s, e in inner]


def measure(text: str) -> list[dict[str, object]]:
    found = functions(text)
    loops = {name: innermost_loops(lines) for name, lines in found.items()}
    parts = {
        name: straight_parts(lines) for name, lines in found.items() if re.search(TILE.format("[fd]"), name)
    }
    table = []
    for hot in LOOPS:
        symbol = re.compile(hot.symbol)
        # NEON's loops are chosen before portable ones, which the compiler may have made as wide.
        candidates = [
            ("4neon" in name or "7dotprod" in name, loop)
            for name, inner in loops.items()
            if symbol.search(name)
            for loop in [*inner, *(parts[name] if hot.unrolled else ())]
            if loop.count(hot.unit)
            and all(loop.count(operation) for operation in hot.has)
            and not any(loop.count(operation) for operation in hot.lacks)
        ]
        if not candidates:
            continue
        # The widest instruction set and the highest tile have the most results.
        _, best = max(
            candidates,
            key=lambda found: (found[0], found[1].lanes(hot.unit, hot.precision), -len(found[1].lines)),
        )
        results = best.lanes(hot.unit, hot.precision) * (4 if hot.precision == "b" else 1)
        table.append(
            {
                "loop": hot.name,
                "precision": {"f": "single", "d": "double", "b": "bytes"}[hot.precision],
                "instructions": len(best.lines),
                "results": results,
                "instructions_per_result": round(len(best.lines) / results, 3),
                "stack_accesses": best.spills(),
            }
        )
    return table


def compile_library(target: str | None) -> str:
    """Compile the library of this folder to assembly, as a release but without link-time optimisation."""
    environment = {
        **os.environ,
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
        "CARGO_INCREMENTAL": "0",
    }
    folder = Path(environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "target" / "instructions")))
    output = folder / (target or "") / "release" / "deps"
    for old in output.glob("svmarrow*.s"):
        old.unlink()
    command = ["cargo", "rustc", "--locked", "--release", "--lib", *(["--target", target] if target else [])]
    subprocess.run(
        [*command, "--", "--emit=asm", "-Csymbol-mangling-version=v0"], cwd=ROOT, env=environment, check=True
    )
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(output.glob("svmarrow*.s")))


def provenance(target: str | None) -> dict[str, str]:
    """Return the command, commit, processor, date and compiler of a run."""

    def output(*command: str) -> str:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    command = ["python", "benches/instructions.py", *(["--target", target] if target else [])]
    return {
        "command": " ".join(command),
        "commit": output("git", "rev-parse", "--short", "HEAD"),
        "cpu": f"assembly for {target or platform.machine()}, not run",
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "compiler": output(os.environ.get("RUSTC", "rustc"), "--version"),
    }


def read(paths: list[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", help="a target of rustc; default: this machine's")
    parser.add_argument("--before", type=Path, nargs="+", help="assembly of an earlier revision, to compare")
    parser.add_argument("--assembly", type=Path, nargs="+", help="count in these files, compile nothing")
    parser.add_argument("--json", type=Path, help="write the table to a file")
    arguments = parser.parse_args()
    now = measure(read(arguments.assembly) if arguments.assembly else compile_library(arguments.target))
    if not now:
        sys.exit("no hot loop was found in the assembly")
    before = {}
    if arguments.before:
        before = {(row["loop"], row["precision"]): row for row in measure(read(arguments.before))}
    print(f"{'loop':40} {'precision':9} {'before':>8} {'now':>8} {'instructions':>13} {'stack':>6}")
    for row in now:
        old = before.get((row["loop"], row["precision"]))
        row["before"] = old["instructions_per_result"] if old else None
        print(
            f"{row['loop']:40} {row['precision']:9} {row['before'] or '':>8}"
            f" {row['instructions_per_result']:>8} {row['instructions']:>6}/{row['results']:<6}"
            f" {row['stack_accesses']:>6}"
        )
    if arguments.json:
        document = {"about": provenance(arguments.target), "loops": now}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
