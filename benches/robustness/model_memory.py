"""The memory that a model takes beyond its vectors: packed copies, outliers, compiled models, many threads.

    python benches/robustness/model_memory.py --output docs/reliability/model_memory.json

Linux alone. Each sequence of steps runs in a process of its own (tests/helpers/model_memory.py). The
numbers are megabytes beyond those of the vectors: the peak during a step, and what stays after it.
"""

from __future__ import annotations

from reports import arguments, keep

FEATURES = 784


def main() -> None:
    """Prints a table, and writes it if a file is named."""
    from helpers.model_memory import SEQUENCES, measure

    given = arguments("Memory of models.", megabytes=90)
    results = {}
    for sequence in SEQUENCES:
        numbers = 8 if "double" in sequence else 4
        vectors = given.megabytes * 1_000_000 // (numbers * FEATURES)
        results[sequence] = [
            {
                "step": step,
                "peak_mb": round(peak * given.megabytes),
                "stays_mb": round(stays * given.megabytes),
            }
            for step, peak, stays in measure(sequence, vectors, FEATURES)
        ]
        for row in results[sequence]:
            print(f"{sequence:18} {row['step']:22} {row['peak_mb']:5} {row['stays_mb']:5}", flush=True)
    keep(given.output, {"megabytes": given.megabytes, "features": FEATURES, "sequences": results})


if __name__ == "__main__":
    main()
