"""The counter of instructions finds loops and counts their results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "benches" / "instructions.py"
specification = importlib.util.spec_from_file_location("instructions", PROGRAM)
instructions = importlib.util.module_from_spec(specification)
sys.modules["instructions"] = instructions
specification.loader.exec_module(instructions)

ARM = """
_RINv4simd4neon3runINtNtB4_5micro9PanelTilefEEB6_:
\t.cfi_startproc
\tmov\tx8, x0 // before the loop
.LBB0_0:
\tmov\tx9, x11
.LBB0_1:
\tldr\tq2, [x8], #16
\tfmla\tv0.4s, v2.4s, v3.s[0]
\tfmla\tv1.4s, v2.4s, v3.s[1]
\tstr\tq1, [sp, #16]
\tsubs\tx9, x9, #1
\tb.ne\t.LBB0_1
.LBB0_2:
\tfmla\tv0.4s, v2.4s, v3.s[0]
\tsubs\tx10, x10, #1
\tb.ne\t.LBB0_0
\tret
"""
X86 = """
_RINv4simd6x86_6410run_avx512INtNtB4_5micro9PanelTiledEEB6_:
.LBB1_1:
\tvbroadcastsd\t(%rax), %zmm2
\tvfmadd231pd\t%zmm2, %zmm3, %zmm0
\tvfmadd231pd\t%zmm2, %zmm4, %zmm1
\tvfmadd231sd\t%xmm2, %xmm4, %xmm1
\tdecq\t%rcx
\tjne\t.LBB1_1
\tretq
"""


def test_an_inner_loop_is_counted_without_the_loop_around_it():
    (row,) = instructions.measure(ARM)
    assert row == {
        "loop": "tile, inner product",
        "precision": "single",
        "instructions": 6,
        "results": 8,
        "instructions_per_result": 0.75,
        "stack_accesses": 1,
    }


def test_vectors_of_any_width_are_counted_and_scalars_are_not():
    (row,) = instructions.measure(X86)
    assert (row["precision"], row["instructions"], row["results"]) == ("double", 6, 16)


def test_text_without_hot_loops_has_none():
    assert instructions.measure("main:\n\tret\n") == []
