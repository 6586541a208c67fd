"""An exported C header on an emulated Cortex-M4: labels, flash and instructions a row.

It needs the Debian packages gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. The emulator
counts instructions, not cycles: `-icount shift=0` lets each take a nanosecond of the machine's 25 MHz timer.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

COMPILER, SIZE, EMULATOR = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
FLAGS = ["-std=gnu99", "-O2", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
#: Nanoseconds of a tick of the timer, which are instructions here.
TICK = 40

START = """#include <stdint.h>
extern void _start(void);
void reset(void) {
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* the floating-point unit on */
    __asm volatile("dsb\\n isb");
    _start();
}
__attribute__((section(".vectors"), used)) const void *vectors[2] = {(void *)0x20400000u, (void *)reset};
"""
MAIN = """#include <stdio.h>
#include <stdint.h>
#include "model.h"
#include "rows.h"
int main(void) {
    volatile uint32_t *timer = (volatile uint32_t *)0xE000E010u;
    uint64_t ticks = 0;
    int i;
    timer[1] = 0xFFFFFFu;
    timer[2] = 0;
    timer[0] = 5;
    printf("%d\\n", p_self_test());
    for (i = 0; i < ROWS; ++i) {
        const uint32_t start = timer[2];
        const int answer = p_predict(rows[i]);
        ticks += (start - timer[2]) & 0xFFFFFFu;
        printf("%d\\n", answer);
    }
    printf("%lu\\n", (unsigned long)(ticks / ROWS));
    return 0;
}
"""
#: What is linked beside the model does not count as its flash.
EMPTY = '#include "model.h"\nint (*volatile f)(const float *) = p_predict;\nvoid reset(void) { f(0); }\n'


@dataclass(frozen=True)
class Outcome:
    """What the emulated machine answered."""

    numbers: np.ndarray
    #: Bytes of code and tables.
    flash: int
    instructions: int


def missing() -> list[str]:
    """Programs that are not here."""
    return [name for name in (COMPILER, SIZE, EMULATOR) if shutil.which(name) is None]


def run(text: str, X: np.ndarray, folder: Path, timeout: float = 120.0) -> Outcome:
    """The numbers of the classes of rows, from a header with the prefix ``p``."""
    (folder / "model.h").write_text(text)
    values = ",\n".join("{" + ", ".join(f"{v:.9e}f" for v in row) + "}" for row in np.asarray(X, np.float32))
    (folder / "rows.h").write_text(
        f"#define ROWS {len(X)}\nstatic const float rows[ROWS][{X.shape[1]}] = {{\n{values}\n}};\n"
    )
    (folder / "start.c").write_text(START)
    (folder / "main.c").write_text(MAIN)
    program = folder / "program.elf"
    link = ["--specs=rdimon.specs", "-Wl,--section-start=.vectors=0", "-lm"]
    subprocess.run(
        [COMPILER, *FLAGS, folder / "start.c", folder / "main.c", "-o", program, *link], check=True
    )
    machine = ["-M", "mps2-an386", "-cpu", "cortex-m4", "-nographic", "-monitor", "none", "-serial", "none"]
    semihosting = ["-semihosting-config", "enable=on,target=native", "-icount", "shift=0"]
    done = subprocess.run(
        [EMULATOR, *machine, *semihosting, "-kernel", program],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    found = [int(line) for line in done.stdout.split()]
    if len(found) != len(X) + 2 or found[0] != 1:
        raise RuntimeError(f"the emulated machine said {done.stdout[:200]!r}")
    return Outcome(np.array(found[1:-1]), _flash(folder), TICK * found[-1])


def _flash(folder: Path) -> int:
    (folder / "empty.c").write_text(EMPTY)
    alone = folder / "alone.elf"
    command = [COMPILER, *FLAGS, "-Os", "-ffunction-sections", folder / "empty.c", "-o", alone]
    subprocess.run(
        [*command, "-nostartfiles", "-Wl,--gc-sections", "-Wl,-e,reset", "--specs=nosys.specs", "-lm"],
        check=True,
    )
    sizes = subprocess.run([SIZE, alone], capture_output=True, text=True, check=True)
    text, data = sizes.stdout.splitlines()[1].split()[:2]
    return int(text) + int(data)
