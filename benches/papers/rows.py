"""Compares every value and claim of the papers with ours: ``python benches/papers/rows.py``.

It runs no experiment. It reads the tables of the pages, which the other scripts have written, and writes
``docs/papers/rows.md`` and the account (claim, differences in setting, result, verdict, why) at the head of
every part of the papers' pages. Run it again after a script has renewed a part.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

from accounts_rifkin import ACCOUNTS
from common import PAGES
from judging import AGREES, DIFFERS, ERRATUM, NOT_COMPARED, OPEN, REPRODUCED, Row, unshared
from reasons import with_reasons
from rows_perceptrons import perceptrons
from rows_rifkin import thesis
from rows_selection import compressed, kmp, tr132

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accounts import Account

PAPERS: dict[str, Callable[[], Iterator[Row]]] = {
    "Weston and Bakir (2004), reduced set selection, TR-132": tr132,
    "Xu and others (2015), Compressed Support Vector Machines": compressed,
    "Vincent and Bengio (2002), Kernel Matching Pursuit": kmp,
    "Rifkin (2002), Everything Old Is New Again": thesis,
    "Ukkonen and Arias (2010), perceptron trees": perceptrons,
}
BEGIN, END = "<!-- account -->", "<!-- end of account -->"
PART = re.compile(r"^<!-- part: (\S+) -->$", re.MULTILINE)
MAX_LISTED_ROWS = 4
#: What the verdicts other than agreement are called in a sentence of counts.
COUNTED = {
    REPRODUCED: "{} are reproduced at a setting that is not printed",
    ERRATUM: "{} are errata",
    DIFFERS: "{} differ for a reason that was tested",
    OPEN: "{} differ and stay open",
    NOT_COMPARED: "{} cannot be compared",
}
OWN_HEADING = "## Measurements and targets of our own"


def counted(rows: list[Row]) -> str:
    """Return a sentence on the verdicts of some rows."""
    counts = Counter(row.verdict for row in rows)
    said = [f"{counts[AGREES]} of {len(rows)} rows agree"]
    said += [text.format(counts[verdict]) for verdict, text in COUNTED.items() if counts[verdict]]
    return ", ".join(said) + "."


def listed(rows: list[Row]) -> str:
    """Return what some rows say, in one line."""
    said = "; ".join(
        f"{row.row}: {row.ours or 'nothing'}" + (f" (printed: {row.paper})" if row.paper else "")
        for row in rows
    )
    return said[:1].upper() + said[1:]


def result(rows: list[Row]) -> str:
    """Return the result: all rows of a short part, else the rows that differ."""
    compared = [row for row in rows if row.verdict != NOT_COMPARED]
    if len(compared) <= MAX_LISTED_ROWS:
        return listed(compared) + "." if compared else "No value can be compared."
    different = [row for row in compared if row.verdict in (DIFFERS, OPEN)]
    if not different:
        return f"None of {len(compared)} values and claims differs by the rules of [the list](rows.md)."
    shown = different[: 2 * MAX_LISTED_ROWS]
    rest = len(different) - len(shown)
    return (
        "The rows that differ: "
        + listed(shown)
        + (f"; and {rest} more, see [the list](rows.md)" * bool(rest))
    ) + "."


def account(of: Account, rows: list[Row], *, first_own: bool = False) -> str:
    """Return the head of a part."""
    found = of.result(rows) if of.result else result(rows)
    verdict = counted(rows) if rows else of.verdict
    lines = [f"### {of.title}" if of.own else f"## {of.title}"]
    if first_own:
        lines.insert(0, OWN_HEADING)
    for label, text in (
        ("Claim", of.claim),
        ("Differences in setting", of.differences),
        ("Result", found),
        ("Verdict", verdict),
        ("Why", of.why),
    ):
        lines.append(f"**{label}.** {text}")
    return "\n\n".join([BEGIN, *lines, END])


def with_accounts(page: str, text: str, rows: list[Row]) -> str:
    """Return a page with the account of each of its parts renewed."""
    head, *pieces = PART.split(text)
    bodies = dict(zip(pieces[::2], pieces[1::2], strict=True))
    order = [key.split("/")[1] for key in ACCOUNTS if key.startswith(f"{page}/")]
    if not set(bodies) <= set(order):
        raise ValueError(f"{page}.md has parts without an account: {set(bodies) - set(order)}")
    parts, before_own = [], True
    # Parts that were not run are on no page.
    for name in filter(bodies.__contains__, order):
        key = f"{page}/{name}"
        bare = re.sub(rf"{BEGIN}.*?{END}", "", bodies[name], flags=re.DOTALL).strip()
        own = [row for row in rows if row.part == key]
        first_own = ACCOUNTS[key].own and before_own
        before_own = before_own and not ACCOUNTS[key].own
        text = account(ACCOUNTS[key], own, first_own=first_own)
        parts.append(f"<!-- part: {name} -->\n\n{text}\n\n{bare}\n")
    return "\n".join([head.rstrip() + "\n", *parts])


def rows_page(found: dict[str, list[Row]]) -> str:
    """Return the page of all rows."""
    every = [row for rows in found.values() for row in rows]
    parts = [
        "# All values and claims",
        (
            "Every value that the papers print and every claim of their text, compared with ours. "
            "`python benches/papers/rows.py` computes this list from the tables of the "
            "[pages of the papers](index.md), where the settings, the commit, the processor and the date of "
            "each measurement are given. " + counted(every)
        ),
        (
            "The verdict follows from these rules:\n\n"
            "- **Means over random splits** agree within two standard errors of the difference. The standard "
            "error is that of our mean over the splits, times the square root of two, because the paper's "
            "mean has one of the same size.\n"
            "- **Error counts on the same test samples** agree within two paired standard errors: the square "
            "root of the number of samples on which exactly one of the two models errs (McNemar). The papers "
            "print no predictions, so this number is estimated as the sum of both error counts times "
            f"{unshared():.2f}. That is the share of errors which our SVM and our matching pursuit with as "
            f"many vectors do not have in common on USPS, all digits together.\n"
            "- **Codes that draw nothing at random**, with the printed parameters on the same samples, agree "
            "within two samples. Random codes are drawn twenty times, and the printed value must lie within "
            "two standard deviations of these draws; it is not judged where the deviation is above three "
            "points.\n"
            "- **Error rates on different samples** agree within two binomial standard errors of the "
            "difference.\n"
            "- **Numbers of vectors** agree within a tenth. Where a row has an error and a number of "
            "vectors, both must agree.\n"
            "- **Claims without a figure** agree where the inequality in the row holds; the last column "
            "names the threshold where the paper gives none.\n"
            "The verdicts:\n\n"
            "- **agrees**: by one of the rules above, with a test that could have failed.\n"
            "- **reproduced at a setting not printed**: agrees once a parameter or a step has a value that "
            "the paper does not print. The last column names it. It comes from work that the paper cites, or "
            "was searched for on training samples. Where the last column says *a search judged by the "
            "claim*, it was searched for on the samples that the claim is about: the row shows that the "
            "claim can hold, and not that it holds where the paper's procedure leads.\n"
            "- **erratum**: the print is wrong, see [the errata](errata.md).\n"
            "- **differs**: the last column gives a reason, and the part of the page has the experiment that "
            "tests it.\n"
            "- **open**: differs, and no reason was tested. About one row in twenty differs by chance where "
            "the rule is two standard errors.\n"
            "- **not comparable**: the set is not available, the setting is not printed, the experiment was "
            "not run, another program was timed, or the test has no power. The last column says which."
        ),
    ]
    for paper, rows in found.items():
        lines = [f"## {paper}", "", counted(rows), ""]
        lines += ["| where | row | paper | ours | verdict | basis |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {row.where} | {row.row} | {row.paper} | {row.ours} | {row.verdict} | {row.basis} |"
            for row in rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def renewed() -> dict[str, str]:
    """Return all pages that this script writes, by their file names."""
    found = {paper: [with_reasons(row) for row in rows()] for paper, rows in PAPERS.items()}
    every = [row for rows in found.values() for row in rows]
    unknown = {row.part for row in every} - set(ACCOUNTS)
    if unknown:
        raise ValueError(f"rows of parts without an account: {sorted(unknown)}")
    texts = {"rows.md": rows_page(found)}
    for page in dict.fromkeys(key.split("/")[0] for key in ACCOUNTS):
        path = PAGES / f"{page}.md"
        texts[path.name] = with_accounts(page, path.read_text(encoding="utf-8"), every)
    return texts


def main() -> int:
    """Write the pages, or report whether they would change."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page would change")
    options = parser.parse_args()
    changed = 0
    for name, text in renewed().items():
        path = PAGES / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        changed += 1
        if options.check:
            print(f"{name} would change: python benches/papers/rows.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return int(bool(changed) and options.check)


if __name__ == "__main__":
    sys.exit(main())
