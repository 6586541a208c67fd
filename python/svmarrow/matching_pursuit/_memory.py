"""Memory estimates of a pursuit."""

from __future__ import annotations

from svmarrow._support.rows import cache_bytes

__all__ = ["bytes_of", "dictionary_bytes"]

#: Most bytes of a dictionary that is kept where nothing is said of it. Above them each step looks at a
#: sample: on 43,500 rows of the shuttle data that takes 3 seconds where 7.6 GB of values take 50, for the
#: same accuracy.
KEPT = 2_000_000_000
#: Most bytes of the columns that are made before they are chosen (`src/matching_pursuit/prepared.rs`).
WAITING = 2**26


def dictionary_bytes(cache_size: float | None) -> int:
    """Returns the memory limit for the values of a dictionary."""
    return (
        min(cache_bytes(None), KEPT) if cache_size is None else int(min(float(cache_size) * 2.0**20, 2.0**62))
    )


def bytes_of(
    functions: int, rows: int, size: int, outputs: int, *, single: bool, sample: int | None, most: int
) -> int:
    """Returns the bytes of a pursuit: cached function values, the basis, residuals."""
    values = functions * rows * (4 if single else 8)
    if sample is None and values <= most:
        # Eight for each choice, of which some are taken back.
        kept = values + min(8 * rows * min(functions, 16 * size), WAITING)
    else:
        kept = 8 * rows * (sample or 59)
    return kept + 8 * rows * (min(size, functions) + 4 * outputs + 8) + 8 * functions * (outputs + 8)
