"""How a value or a claim of a paper is compared with ours: rows, standard errors, tables of the pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import sqrt

from common import PAGES

AGREES, REPRODUCED, ERRATUM = "agrees", "reproduced at a setting not printed", "erratum"
DIFFERS, OPEN, NOT_COMPARED = "differs", "open", "not comparable"
#: Relative difference up to which two numbers of vectors agree.
SIZE_TOLERANCE = 0.1


@dataclass(frozen=True)
class Row:
    """A value or claim of a paper, our value, the verdict and what it rests on."""

    part: str
    where: str
    row: str
    paper: str
    ours: str
    verdict: str
    basis: str = ""


def table(page: str, title: str, at: int = 0) -> list[dict[str, str]]:
    """Return the lines of a table of a page; ``at`` selects one of several tables with the same title."""
    lines = (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines()
    try:
        return table_of(lines, title, at)
    except ValueError as missing:
        raise ValueError(f"{page}.md: {missing}") from None


def table_of(lines: list[str], title: str, at: int = 0) -> list[dict[str, str]]:
    """Return the lines of the table of a text whose title begins so."""
    begins = [i for i, line in enumerate(lines) if line.startswith(f"**{title}")]
    if len(begins) <= at:
        raise ValueError(f"there is no table {title!r}")
    rows, first = [], begins[at] + 2
    head = cells(lines[first])
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(unique(head), cells(line), strict=True)))
    return rows


def part_text(page: str, part: str) -> str:
    """Return the text of a part of a page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    pieces = re.split(r"^<!-- part: (\S+) -->$", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True)).get(part, "")


def cells(line: str) -> list[str]:
    """Split a line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def unique(names: list[str]) -> list[str]:
    """Append 2, 3, ... to names that occur again."""
    return [
        f"{name} {names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)
    ]


def number(text: str) -> float:
    """Return the first number of a cell."""
    return numbers(text)[0]


def numbers(text: str) -> list[float]:
    """Return all numbers of a cell."""
    return [float(part) for part in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", text.replace(",", ""))]


def both(cell: str) -> tuple[float, float]:
    """Return the two numbers of a cell "paper / ours"."""
    paper, ours = (number(part) for part in cell.split(" / ")[:2])
    return paper, ours


def by_error(paper: float, ours: float, error: float, why: str = "") -> tuple[str, str]:
    """Compare two values whose difference has this standard error."""
    apart = abs(ours - paper)
    if apart <= 1e-12:
        return AGREES, "the same value"
    basis = f"{apart / error:.1f} standard errors" if error > 0 else "no error to compare with"
    if apart <= 2 * error:
        return AGREES, basis
    side = "lower" if ours < paper else "higher"
    return DIFFERS, f"{side} by {basis}{'; ' + why if why else ''}"


def by_count(paper: float, ours: float, discordant: float, why: str = "") -> tuple[str, str]:
    """Compare two counts of errors on the same test samples.

    ``discordant`` is the number of samples on which exactly one of the two models errs; the difference has
    its square root as standard error (McNemar).
    """
    verdict, basis = by_error(paper, ours, sqrt(discordant), why)
    return verdict, basis.replace("standard errors", "paired standard errors")


def by_samples(paper: float, ours: float, samples: int, allowed: int = 2) -> tuple[str, str]:
    """Compare two shares of the same samples by a deterministic method with the same parameters."""
    apart = round(abs(paper - ours) * samples, 1)
    basis = f"{apart:g} of {samples:,} samples; nothing is drawn at random"
    return (AGREES if apart <= allowed else DIFFERS), basis


def by_size(paper: float, ours: float) -> tuple[str, str]:
    """Compare two numbers of vectors."""
    basis = f"{100 * (ours / paper - 1):+.0f} %"
    return (AGREES if abs(ours - paper) <= SIZE_TOLERANCE * paper + 0.5 else DIFFERS), basis


def reproduced(found: tuple[str, str], setting: str) -> tuple[str, str]:
    """Return the verdict for a value at a setting that the paper does not print."""
    verdict, basis = found
    return (REPRODUCED if verdict == AGREES else verdict), "; ".join(filter(None, (basis, setting)))


def claim(holds: bool, basis: str = "") -> tuple[str, str]:
    """Return the verdict on a claim that is a comparison."""
    return (AGREES if holds else DIFFERS), basis


def binomial(paper: float, ours: float, samples: int) -> float:
    """Return the standard error of the difference of two error rates on different samples."""
    return sqrt((paper * (1 - paper) + ours * (1 - ours)) / samples)


def unshared() -> float:
    """Return the share of errors that our SVM and our matching pursuit on USPS do not have in common.

    It is the number of test samples on which exactly one of the two errs, over the sum of their errors. It
    stands for the disagreement of the paper's model and ours, since the papers print no predictions.
    """
    pairs = table("kmp", "Table 1: test samples on which exactly one")[-1]
    errors = table("kmp", "Table 1: test errors of 2,007")[-1]
    total = both(errors["SVM"])[1] + both(errors["KMP, same"])[1]
    return number(pairs["SVM and KMP, same"]) / total
