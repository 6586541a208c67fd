"""Reasons of rows that differ, where an experiment on the page tests the reason."""

from __future__ import annotations

from dataclasses import replace

from judging import DIFFERS, OPEN, Row

#: By part and the beginning of a row.
TESTED: dict[tuple[str, str], str] = {
    ("tr132/two-class", "Waveform: the objective is lowest for the pursuit"): (
        "by no reading of lossy l0 is the pursuit lowest at all sizes, except where l0 is l1 itself (part "
        "zero-norm)"
    ),
    ("rifkin_svmfu/blocks", "the same: almost certain to lead to disaster"): (
        "a block costs its size in updates of the gradients, which are kept: blocks times size changes by .8 "
        "(USPS) and 7 times (magic)"
    ),
    ("rifkin_rls/usps", "USPS: bagging leaves the order of the methods"): (
        "nystrom has an alpha of its own, with which it is the best method"
    ),
}


def with_reasons(row: Row) -> Row:
    """Return a row that differs with its tested reason, else as an open one."""
    if row.verdict != DIFFERS:
        return row
    for (part, beginning), reason in TESTED.items():
        if row.part == part and row.row.startswith(beginning):
            return replace(row, basis="; ".join(filter(None, (row.basis, reason))))
    return replace(row, verdict=OPEN)
